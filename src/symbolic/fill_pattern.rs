//! Patterns of triangular factors.

use crate::matrix::Csr;
use crate::matrix::pattern::{Lazy, Pattern};

/// The pattern of the factors: strictly lower and strictly upper part; a diagonal is stored for
/// every row. Columns of a row are in the order of elimination, which may differ from that of the rows in a part of
/// factors over ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillPattern {
    /// Pattern of L without its unit diagonal.
    pub lower: Lazy,
    /// Pattern of U without the diagonal.
    pub upper: Lazy,
    /// Rows whose diagonal is neither an entry of A nor fill: their pivot is zero.
    pub no_diagonal: Vec<u32>,
}

impl FillPattern {
    /// Of the strictly lower and the strictly upper part, which are there, and the rows without a diagonal.
    pub fn new(lower: Pattern<'static>, upper: Pattern<'static>, no_diagonal: Vec<u32>) -> Self {
        Self { lower: lower.into(), upper: upper.into(), no_diagonal }
    }

    /// Unknowns per block.
    pub fn block_size(&self) -> usize {
        self.lower.block_size()
    }

    /// Whether elimination on the pattern changes diagonal blocks alone: where entries (i, p) and (p, j) with p < i,
    /// p < j and i != j are there, (i, j) is not. Its off-diagonal blocks are then those of the matrix.
    pub(crate) fn changes_diagonals_alone(&self) -> bool {
        (0..self.rows()).all(|i| {
            let (lower, upper) = (self.lower.row(i), self.upper.row(i));
            let held = |j: &u32| {
                let part = if (*j as usize) < i { lower } else { upper };
                part.binary_search(j).is_ok()
            };
            lower.iter().all(|&p| !self.upper.row(p as usize).iter().any(held))
        })
    }

    /// Number of (block) rows.
    pub fn rows(&self) -> usize {
        self.lower.rows()
    }

    /// Whether the diagonal of a (block) row is not in the pattern of the matrix.
    #[inline]
    pub(crate) fn lacks_diagonal(&self, row: usize) -> bool {
        self.no_diagonal.binary_search(&(row as u32)).is_ok()
    }

    /// Entries of L, D and U together.
    pub fn blocks(&self) -> usize {
        self.lower.entries() + self.rows() + self.upper.entries()
    }

    /// Numbers in the blocks of L, D and U together.
    pub fn numbers(&self) -> usize {
        self.blocks() * self.block_size() * self.block_size()
    }

    /// L, D and U together.
    pub fn whole(&self) -> Pattern<'static> {
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::with_capacity(self.blocks()));
        for i in 0..self.rows() {
            col_ind.extend_from_slice(self.lower.row(i));
            col_ind.push(i as u32);
            col_ind.extend_from_slice(self.upper.row(i));
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind).in_blocks(self.block_size())
    }

    /// Whether it has no block beside the diagonal.
    pub(crate) fn is_diagonal(&self) -> bool {
        self.lower.entries() == 0 && self.upper.entries() == 0
    }

    /// Has its rows made by all threads of the pool, where they are not in this memory; none of these may look at
    /// them meanwhile.
    pub(crate) fn fetch(&self) {
        self.lower.fetch();
        self.upper.fetch();
    }

    /// Whether its rows are in this memory.
    pub(crate) fn is_there(&self) -> bool {
        self.lower.is_there() && self.upper.is_there()
    }

    /// Bytes held by the pattern.
    pub fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes()
    }

    /// The pattern of the transposed factors.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let (lower, upper) = (self.upper.transposed(), self.lower.transposed());
        Self::new(lower, upper, self.no_diagonal.clone())
    }

    /// The pattern of a diagonal matrix of `rows` blocks: what block Jacobi keeps.
    pub fn diagonal(rows: usize, block_size: usize) -> Self {
        let empty = || Pattern::new(vec![0; rows + 1], Vec::new()).in_blocks(block_size);
        Self::new(empty(), empty(), Vec::new())
    }

    /// That of the diagonal blocks of `a`.
    pub(crate) fn diagonal_of(a: &Csr) -> Self {
        Self::diagonal(a.rows() / a.block_size(), a.block_size())
    }
}

#[cfg(test)]
mod tests {
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::iluk;

    #[test]
    fn stencils_change_diagonals_alone_and_triangles_do_not() {
        for (spec, b, k, alone) in [
            ("poisson3d:5x4x3", 1, 0, true),
            ("poisson3d:9x1x1", 1, 3, true),
            ("blockpoisson3d:4x3x2,b=3", 3, 0, true),
            ("poisson3d:5x4x3", 1, 1, false),
            ("poisson3d:5x4x3", 2, 0, false),
            ("fem-p1:6x5", 1, 0, false),
        ] {
            let a = load(spec, ReadAs::Expanded).unwrap().matrix;
            let point = block_pattern(&a.in_blocks(b)).into_owned();
            let pattern = iluk(&point, k, LevelRule::Min, usize::MAX).unwrap();
            assert_eq!(pattern.changes_diagonals_alone(), alone, "{spec}, b {b}, k {k}");
        }
    }
}
