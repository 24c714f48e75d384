//! A product by the library's generic functions, on a matrix of any of its formats.

use std::ptr;

use cudarc::cusparse::sys::{self, cusparseSpMVAlg_t as Algorithm, cusparseStatus_t as Status};
use cudarc::driver::CudaSlice;

use super::owned::{self, Owned};
use super::symbol::{call, check, has, status};
use super::{AS_IS, Handle, NUMBERS, Workspace};
use crate::base::error::Result;

/// Calls a function of the family `SpMV` by [`call!`] or [`status!`] for `y = alpha A x + beta y`: with
/// coefficients, matrix, vectors and algorithm, and what this function takes beside.
macro_rules! spmv {
    ($how:ident $name:ident($handle:expr, $with:expr; $($rest:expr),*)) => {{
        let (alpha, matrix, x, beta, y, algorithm) = $with;
        let (alpha, beta): (f64, f64) = (alpha, beta);
        $how!($name(
            $handle.raw(),
            AS_IS,
            ptr::from_ref(&alpha).cast(),
            matrix.raw().cast_const(),
            x.raw().cast_const(),
            ptr::from_ref(&beta).cast(),
            y.raw(),
            NUMBERS,
            algorithm,
            $($rest),*
        ))
    }};
}

/// A matrix whose arrays stay the caller's, prepared for products by one algorithm.
pub(super) struct Generic {
    algorithm: Algorithm,
    matrix: Owned<sys::cusparseSpMatDescr_t>,
    x: Owned<sys::cusparseDnVecDescr_t>,
    y: Owned<sys::cusparseDnVecDescr_t>,
    /// Holds what the preprocessing found.
    workspace: Workspace,
}

impl Generic {
    /// Prepares `algorithm` for a `matrix` of so many rows and columns; with preprocessing, where the
    /// library has it.
    pub(super) fn new(
        handle: &Handle,
        matrix: Owned<sys::cusparseSpMatDescr_t>,
        (rows, columns): (usize, usize),
        x: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
        algorithm: Algorithm,
    ) -> Result<Self> {
        let x = owned::dense_vector(columns, handle.address(x))?;
        let y = owned::dense_vector(rows, handle.address_mut(y))?;
        let mut bytes = 0usize;
        let with = (1.0, &matrix, &x, 0.0, &y, algorithm);
        spmv!(call cusparseSpMV_bufferSize(handle, with; &raw mut bytes))?;
        let workspace = handle.workspace(bytes)?;
        // an acceleration that newer libraries offer for some algorithms
        if has("cusparseSpMV_preprocess") {
            let answer = spmv!(status cusparseSpMV_preprocess(handle, with; workspace.address))?;
            if answer != Status::CUSPARSE_STATUS_NOT_SUPPORTED {
                check("cusparseSpMV_preprocess", answer)?;
            }
        }
        Ok(Self { algorithm, matrix, x, y, workspace })
    }

    /// Bytes of the workspace.
    pub(super) fn bytes(&self) -> usize {
        self.workspace.bytes()
    }

    /// `y = alpha A x + beta y`; asynchronous. Vectors are at least as long as the matrix is wide.
    pub(super) fn run(
        &self,
        handle: &Handle,
        alpha: f64,
        x: &CudaSlice<f64>,
        beta: f64,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        call!(cusparseDnVecSetValues(self.x.raw(), handle.address(x).cast()))?;
        call!(cusparseDnVecSetValues(self.y.raw(), handle.address_mut(y).cast()))?;
        let with = (alpha, &self.matrix, &self.x, beta, &self.y, self.algorithm);
        spmv!(call cusparseSpMV(handle, with; self.workspace.address))
    }
}
