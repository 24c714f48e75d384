//! Numbers on the diagonal alone: the host inverts them.

use super::{Algorithm, By, Description};
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::SingularBlock;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::storage::Factors;
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

const ABOUT: Description = Description {
    name: "points",
    summary: "the host inverts the diagonal, which it reads faster than it sends the matrix",
    takes: "entries, the diagonal alone",
    source: None,
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    about: ABOUT,
    variants: |_| Vec::new(),
    new: |s| {
        let of = &s.subject;
        let alone = of.block_size == 1 && of.pattern.blocks() == of.pattern.rows();
        Ok(alone.then_some(By::Host(factor)))
    },
};

/// The inverse numbers of the diagonal of `a`.
fn factor(
    d: &Device,
    pattern: &FillPattern,
    a: &Csr,
    shift: f64,
) -> Result<Result<Factors, SingularBlock>> {
    let pivots: Vec<f64> =
        Threads::Pool.map(a.rows(), 4096, |row| a.get(row, row).unwrap_or(0.0) + shift);
    let zero = |row: usize| (pivots[row] == 0.0).then_some(row);
    if let Some(row) = Threads::Pool.find_map(pivots.len(), 4096, zero) {
        let absent = pattern.lacks_diagonal(row);
        return Ok(Err(SingularBlock { row, within: 0, pivot: 0.0, absent }));
    }
    let inverse: Vec<f64> = Threads::Pool.map(pivots.len(), 4096, |row| 1.0 / pivots[row]);
    let (lower, upper) = (d.alloc(0)?, d.alloc(0)?);
    Ok(Ok(Factors { lower, diagonal: d.copied(&inverse)?, upper }))
}
