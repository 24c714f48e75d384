//! Patterns of triangular factors.

use std::borrow::Cow;

use crate::matrix::pattern::Pattern;

/// The pattern of the factors: strictly lower and strictly upper part; a diagonal is stored for
/// every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillPattern {
    /// Pattern of L without its unit diagonal.
    pub lower: Pattern<'static>,
    /// Pattern of U without the diagonal.
    pub upper: Pattern<'static>,
    /// Rows whose diagonal is neither an entry of A nor fill: their pivot is zero.
    pub no_diagonal: Vec<u32>,
}

impl FillPattern {
    /// Number of (block) rows.
    pub fn rows(&self) -> usize {
        self.lower.rows()
    }

    /// Entries of L, D and U together.
    pub fn blocks(&self) -> usize {
        self.lower.entries() + self.rows() + self.upper.entries()
    }

    /// Bytes held by the pattern.
    pub fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes()
    }

    /// The pattern of the transposed factors.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let (lower, upper) = (self.upper.transposed(), self.lower.transposed());
        Self { lower, upper, no_diagonal: self.no_diagonal.clone() }
    }

    /// The pattern of a diagonal matrix: what block Jacobi keeps.
    pub fn diagonal(rows: usize) -> Self {
        let empty =
            || Pattern { row_ptr: Cow::Owned(vec![0; rows + 1]), col_ind: Cow::Owned(Vec::new()) };
        Self { lower: empty(), upper: empty(), no_diagonal: Vec::new() }
    }
}
