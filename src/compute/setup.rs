//! What setups compute with sparse matrices before there is anything to apply: products, inverses on
//! patterns, triangles.

use std::sync::Arc;

use crate::base::error::Result;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::products::Products;
use crate::matrix::{Asymmetry, Csr};
use crate::symbolic::FillPattern;

/// Which blocks (i, j) of a matrix are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All.
    All,
    /// Those with j < i.
    Lower,
    /// Those with j > i.
    Upper,
}

impl Part {
    /// Whether block (i, j) belongs to it.
    pub fn holds(self, i: usize, j: usize) -> bool {
        match self {
            Self::All => true,
            Self::Lower => j < i,
            Self::Upper => j > i,
        }
    }
}

/// Factors `L D U'` with unit diagonals of L and U', which are not stored.
pub struct Triangles<S> {
    /// Strictly lower blocks of L.
    pub lower: S,
    /// `D^-1`, block diagonal.
    pub inverse_diagonal: S,
    /// Strictly upper blocks of U'.
    pub upper: S,
}

/// Computes with square sparse matrices by rows, where the backend computes. Results are those of one CPU
/// thread but for rounding; what cannot be computed is told in the same words.
pub trait SetupOps: Products {
    /// A square sparse matrix, entries by rows in the order of their columns.
    type Sparse;
    /// The same without numbers.
    type Pattern;

    /// `a`, whose blocks must be full; from then on these are meant.
    ///
    /// # Errors
    /// When it does not fit.
    fn sparse(&self, a: &Csr) -> Result<Self::Sparse>;
    /// Stored entries.
    fn entries(&self, a: &Self::Sparse) -> usize;
    /// `a` on the host.
    ///
    /// # Errors
    /// When it cannot be copied.
    fn to_host(&self, a: &Self::Sparse) -> Result<Csr>;
    /// The entry that differs most from the one across the diagonal, by more than `tolerance`
    /// ([`Csr::asymmetry_beyond`]).
    ///
    /// # Errors
    /// When the backend fails.
    fn asymmetry(&self, a: &Self::Sparse, tolerance: f64) -> Result<Option<Asymmetry>>;
    /// The largest sum of the magnitudes of a row.
    ///
    /// # Errors
    /// When the backend fails.
    fn largest_row_sum(&self, a: &Self::Sparse) -> Result<f64>;

    /// A'.
    ///
    /// # Errors
    /// When it does not fit, as of all that follow.
    fn transposed(&self, a: &Self::Sparse) -> Result<Self::Sparse>;
    /// `A B`; terms of a number are added in the order of the entries of A, numbers that cancel are kept.
    ///
    /// # Errors
    /// When it does not fit.
    fn times(&self, a: &Self::Sparse, b: &Self::Sparse) -> Result<Self::Sparse>;
    /// `(A + B) / 2`.
    ///
    /// # Errors
    /// When it does not fit.
    fn mean(&self, a: &Self::Sparse, b: &Self::Sparse) -> Result<Self::Sparse>;
    /// `I - A` for a matrix without diagonal.
    ///
    /// # Errors
    /// When it does not fit.
    fn identity_minus(&self, a: &Self::Sparse) -> Result<Self::Sparse>;
    /// `D^-1` times a part of A.
    ///
    /// # Errors
    /// When a diagonal block that is needed cannot be inverted.
    fn scaled(&self, a: &Self::Sparse, part: Part) -> Result<Self::Sparse, SetupFailure>;
    /// `P A P'`: block row and column i are those that had the number `order[i]`.
    ///
    /// # Errors
    /// When it does not fit.
    fn permuted(&self, a: &Self::Sparse, order: &[u32]) -> Result<Self::Sparse>;
    /// M on the pattern of the blocks of A: what elimination on that pattern takes apart into `I + w L D^-1`,
    /// `D / (w (2 - w))` and `I + w D^-1 U`.
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted.
    fn gauss_seidel(&self, a: &Self::Sparse, omega: f64) -> Result<Self::Sparse, SetupFailure>;
    /// `a` plus `L D^-1 U` of what is left when the first rows are eliminated, which are sets of `sizes` block
    /// rows without couplings in a set: elimination then finds the factors of symmetric Gauss-Seidel there.
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted.
    fn with_gauss_seidel(
        &self,
        a: &Self::Sparse,
        sizes: &[usize],
    ) -> Result<Self::Sparse, SetupFailure>;
    /// `D^-1`.
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted.
    fn inverse_diagonal(&self, a: &Self::Sparse) -> Result<Self::Sparse, SetupFailure>;

    /// The lower triangle of the blocks of `|A|^q`, with the diagonal.
    ///
    /// # Errors
    /// When it has more entries than there is memory for.
    fn lower_power(&self, a: &Self::Sparse, q: usize) -> Result<Self::Pattern, SetupFailure>;
    /// The factorised approximate inverse G of a definite matrix on a lower triangle of blocks: row i has the
    /// columns J up to i, `A(J, J) y = e` for the last unit vector e, and the row is `y / sqrt(y_i)`. With the
    /// Cholesky factor C of `A(J, J)` that is the last row of C^-1.
    ///
    /// # Errors
    /// When a small system is not definite, or too large.
    fn factorised_inverse(
        &self,
        a: &Self::Sparse,
        lower: &Self::Pattern,
    ) -> Result<Self::Sparse, SetupFailure>;
    /// M' from A': column j of M has the rows J that column j of A has, and `A(I, J) m = e_j` in the sense of
    /// least squares, I being all rows in which the columns J of A have entries.
    ///
    /// # Errors
    /// When the columns near one depend on each other, or are too many.
    fn least_squares_inverse(&self, mirrored: &Self::Sparse) -> Result<Self::Sparse, SetupFailure>;
    /// W with `(W L)_ij = I_ij` on the pattern of a unit lower triangle L, whose diagonal is not stored, while
    /// that of W is. Row i has the columns J of row i of L: `w L(J, J) = e` for the last unit vector e.
    ///
    /// # Errors
    /// When it does not fit.
    fn triangular_inverse(&self, lower: &Self::Sparse) -> Result<Self::Sparse, SetupFailure>;
    /// Block ILU factors of `a` on a pattern, as matrices.
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted.
    fn triangles(
        &self,
        pattern: &Arc<FillPattern>,
        a: &Csr,
        shift: f64,
    ) -> Result<Triangles<Self::Sparse>, SetupFailure>;

    /// A matrix that a setup has made, stored for products in the format that is read fastest.
    ///
    /// # Errors
    /// When it does not fit or holds a number that is not finite.
    fn operator(&self, a: Self::Sparse) -> Result<Self::Matrix>;
}
