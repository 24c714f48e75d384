//! What all storage formats of the product have in common.

use std::sync::Arc;

use super::{Bsr, Csr};
use crate::base::choices::Format;
use crate::base::error::{Error, Result};
use crate::base::measure::memory_free;
use crate::base::units::memory;

/// Rows of a tile of HYB and DIA, whose numbers lie together in memory, one column after the other: a
/// product then reads one stream and not as many as there are columns. The last tile has the rows that
/// are left.
pub const TILE: usize = 256;

/// A matrix stored for products in one format, converted from CSR.
pub trait Storage: Send + Sync {
    /// The format, never [`Format::Auto`].
    fn format(&self) -> Format;
    /// Scalar rows, padding to whole blocks included.
    fn rows(&self) -> usize;
    /// Numbers that are stored: entries, and the zeros that the format puts between them.
    fn stored(&self) -> usize;
    /// Bytes of all arrays that a product reads: numbers and indices.
    fn bytes(&self) -> usize;
    /// Takes over the values of `a`, which must have the pattern of the matrix that this one was
    /// made of.
    fn set_values(&mut self, a: &Arc<Csr>);
}

impl Storage for Arc<Csr> {
    fn format(&self) -> Format {
        Format::Csr
    }
    fn rows(&self) -> usize {
        Csr::rows(self)
    }
    fn stored(&self) -> usize {
        self.nnz()
    }
    fn bytes(&self) -> usize {
        Csr::bytes(self)
    }
    fn set_values(&mut self, a: &Arc<Csr>) {
        *self = Arc::clone(a);
    }
}

impl Storage for Bsr {
    fn format(&self) -> Format {
        Format::Bsr
    }
    fn rows(&self) -> usize {
        self.block_rows() * self.block_size()
    }
    fn stored(&self) -> usize {
        self.values().len()
    }
    fn bytes(&self) -> usize {
        Bsr::bytes(self)
    }
    fn set_values(&mut self, a: &Arc<Csr>) {
        Bsr::set_values(self, a);
    }
}

/// Numbers that a padded format may store for each entry of the matrix.
const MOST_PADDING: usize = 8;

/// Refuses to store far more zeros than entries, and more than there is memory for.
pub(super) fn check_padding(format: &str, stored: usize, nnz: usize) -> Result<()> {
    if stored <= MOST_PADDING.saturating_mul(nnz) {
        let (needed, free) = (12 * stored, memory_free());
        if needed <= free {
            return Ok(());
        }
        return Err(Error::memory(format!(
            "{} needed for `{format}`, {} free",
            memory(needed),
            memory(free)
        )));
    }
    Err(Error::input(format!(
        "the matrix does not fit `{format}`: {stored} numbers would be stored for {nnz} entries"
    ))
    .hint(format!("`{format}` holds up to {MOST_PADDING} numbers for an entry; choose `csr`")))
}
