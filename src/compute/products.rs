//! Matrices stored for products.

use std::sync::Arc;

use super::Bytes;
use super::vectors::Vectors;
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::matrix::Csr;

/// Products with a matrix in one of the [`Format`]s.
pub trait Products: Vectors {
    /// A matrix stored for products, in one of the [`Format`]s.
    type Matrix;
    /// Format in which a matrix is stored, never [`Format::Auto`].
    fn format(&self, a: &Self::Matrix) -> Format;
    /// What tuning chose for the product's kernel, where that is in use.
    fn tuned(&self, a: &Self::Matrix) -> Option<String> {
        let _ = a;
        None
    }
    /// Bytes of one product.
    fn matrix_bytes(&self, a: &Self::Matrix) -> Bytes;
    /// `y = A x`.
    fn spmv(&self, a: &Self::Matrix, x: &Self::Vector, y: &mut Self::Vector);
    /// `r = b - A x`.
    fn residual(&self, a: &Self::Matrix, x: &Self::Vector, b: &Self::Vector, r: &mut Self::Vector);
    /// `y -= A x`. What `other`, of the length of `y`, has afterwards is not said.
    fn subtract(
        &self,
        a: &Self::Matrix,
        x: &Self::Vector,
        y: &mut Self::Vector,
        other: &mut Self::Vector,
    ) {
        self.residual(a, x, y, other);
        std::mem::swap(y, other);
    }
    /// Bytes that this moves at least.
    fn subtract_moved(&self, a: &Self::Matrix) -> usize {
        self.matrix_bytes(a).moved
    }
}

/// Stores a matrix of the host for products.
pub trait Storage: Products {
    /// Stores `a`, whose blocks must be full.
    fn matrix(&self, a: &Arc<Csr>, format: Format) -> Result<Self::Matrix>;
    /// Takes over the values of `a`, whose pattern must be that of the stored matrix; its arrays
    /// on the device stay where they are.
    fn matrix_values(&self, matrix: &mut Self::Matrix, a: &Arc<Csr>) -> Result<()>;
}
