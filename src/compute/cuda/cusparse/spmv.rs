//! Sparse matrix-vector products.

use std::rc::Rc;

use cudarc::cusparse::sys::{self, cusparseSpMVAlg_t as Algorithm};
use cudarc::driver::CudaSlice;

use super::generic::Generic;
use super::owned::{self, Owned};
use super::symbol::call;
use super::{AS_IS, COLUMN, DevicePattern, Handle, timing};
use crate::base::error::Result;
use crate::compute::Bytes;

/// The library's ways of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpmvAlgorithm {
    /// `SpMV` on CSR, the library's choice.
    CsrDefault,
    /// `SpMV` on CSR, the first algorithm.
    CsrAlg1,
    /// `SpMV` on CSR, the second algorithm: balanced over the entries.
    CsrAlg2,
    /// `SpMV` on BSR.
    BsrAlg1,
    /// `Dbsrmv`, the older function for BSR.
    Bsrmv,
}

impl SpmvAlgorithm {
    /// Those that take blocks of `block_size`: CSR for 1, BSR beyond.
    pub fn candidates(block_size: usize) -> &'static [Self] {
        match block_size {
            1 => &[Self::CsrDefault, Self::CsrAlg1, Self::CsrAlg2],
            _ => &[Self::BsrAlg1, Self::Bsrmv],
        }
    }

    /// The library's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CsrDefault => "SpMV, SPMV_ALG_DEFAULT",
            Self::CsrAlg1 => "SpMV, SPMV_CSR_ALG1",
            Self::CsrAlg2 => "SpMV, SPMV_CSR_ALG2",
            Self::BsrAlg1 => "SpMV, SPMV_BSR_ALG1",
            Self::Bsrmv => "Dbsrmv",
        }
    }

    /// Its number for the generic functions; `None` for the older one.
    fn generic(self) -> Option<Algorithm> {
        match self {
            Self::CsrDefault => Some(Algorithm::CUSPARSE_SPMV_ALG_DEFAULT),
            Self::CsrAlg1 => Some(Algorithm::CUSPARSE_SPMV_CSR_ALG1),
            Self::CsrAlg2 => Some(Algorithm::CUSPARSE_SPMV_CSR_ALG2),
            Self::BsrAlg1 => Some(Algorithm::CUSPARSE_SPMV_BSR_ALG1),
            Self::Bsrmv => None,
        }
    }
}

/// A matrix stored for products by one algorithm; keeps its values.
pub struct Spmv {
    pattern: Rc<DevicePattern>,
    values: Rc<CudaSlice<f64>>,
    algorithm: SpmvAlgorithm,
    plan: Plan,
    handle: Rc<Handle>,
}

/// What an algorithm needs beside the matrix.
enum Plan {
    Generic(Generic),
    Older(Owned<sys::cusparseMatDescr_t>),
}

impl Spmv {
    /// Stores a matrix for the fastest of the library's algorithms, found by running each on it:
    /// one warm-up, then the median of five; waits. Blocks in `values` are column by column.
    ///
    /// # Errors
    /// When no algorithm works on the matrix.
    ///
    /// # Panics
    /// If there are fewer values than the pattern has places.
    pub fn new(
        handle: &Rc<Handle>,
        pattern: &Rc<DevicePattern>,
        values: impl Into<Rc<CudaSlice<f64>>>,
    ) -> Result<Self> {
        let candidates = SpmvAlgorithm::candidates(pattern.block_size());
        Self::fastest(handle, pattern, values.into(), candidates)
    }

    /// As [`new`](Self::new), with the algorithm chosen by the caller.
    pub fn with_algorithm(
        handle: &Rc<Handle>,
        pattern: &Rc<DevicePattern>,
        values: impl Into<Rc<CudaSlice<f64>>>,
        algorithm: SpmvAlgorithm,
    ) -> Result<Self> {
        Self::fastest(handle, pattern, values.into(), &[algorithm])
    }

    fn fastest(
        handle: &Rc<Handle>,
        pattern: &Rc<DevicePattern>,
        values: Rc<CudaSlice<f64>>,
        candidates: &[SpmvAlgorithm],
    ) -> Result<Self> {
        pattern.assert_values(&values);
        let x = handle.zeros(pattern.inputs())?;
        let mut y = handle.zeros(pattern.unknowns())?;
        let (algorithm, plan) = timing::fastest(candidates, |&algorithm| {
            let plan = Plan::new(handle, pattern, &values, &x, &mut y, algorithm)?;
            let ms = timing::median_ms(handle.stream(), || {
                plan.run(handle, pattern, &values, 1.0, &x, 0.0, &mut y)
            })?;
            Ok(((algorithm, plan), ms))
        })?;
        let (handle, pattern) = (Rc::clone(handle), Rc::clone(pattern));
        Ok(Self { pattern, values, algorithm, plan, handle })
    }

    /// Pattern of the matrix.
    pub fn pattern(&self) -> &DevicePattern {
        &self.pattern
    }

    /// Values of the matrix, on the device. They may be overwritten: what was found of the matrix before
    /// must hold for its pattern alone; the self-test multiplies after a change of values.
    pub fn values(&self) -> &CudaSlice<f64> {
        &self.values
    }

    /// The algorithm in use.
    pub fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Bytes held, and bytes a product moves at least: matrix, `x`, and `y` once.
    pub fn bytes(&self) -> Bytes {
        let matrix = self.pattern.bytes() + 8 * self.pattern.numbers();
        let workspace = match &self.plan {
            Plan::Generic(product) => product.bytes(),
            Plan::Older(_) => 0,
        };
        let vectors = 8 * (self.pattern.inputs() + self.pattern.unknowns());
        Bytes { held: matrix + workspace, moved: matrix + vectors }
    }

    /// `y = alpha A x + beta y`; with `beta` zero, `y` is not read. Asynchronous.
    ///
    /// # Panics
    /// If a vector is shorter than the matrix.
    pub fn apply(
        &self,
        alpha: f64,
        x: &CudaSlice<f64>,
        beta: f64,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        self.pattern.assert_vectors(x, y);
        self.plan.run(&self.handle, &self.pattern, &self.values, alpha, x, beta, y)
    }
}

impl Plan {
    /// Prepares `algorithm`; with preprocessing, where the library has it.
    fn new(
        handle: &Handle,
        pattern: &DevicePattern,
        values: &CudaSlice<f64>,
        x: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
        algorithm: SpmvAlgorithm,
    ) -> Result<Self> {
        let Some(algorithm) = algorithm.generic() else {
            return Ok(Self::Older(owned::matrix_descriptor()?));
        };
        let matrix = owned::sparse_matrix(handle, pattern, handle.address(values))?;
        let shape = (pattern.unknowns(), pattern.inputs());
        Ok(Self::Generic(Generic::new(handle, matrix, shape, x, y, algorithm)?))
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of one product")]
    fn run(
        &self,
        handle: &Handle,
        pattern: &DevicePattern,
        values: &CudaSlice<f64>,
        alpha: f64,
        x: &CudaSlice<f64>,
        beta: f64,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        match self {
            Self::Generic(product) => product.run(handle, alpha, x, beta, y),
            Self::Older(descriptor) => {
                let (x_at, y_at) = (handle.address(x), handle.address_mut(y));
                let (row_ptr, col_ind) = pattern.indices(handle);
                let (rows, columns) = (pattern.rows() as i32, pattern.columns() as i32);
                call!(cusparseDbsrmv(
                    handle.raw(),
                    COLUMN,
                    AS_IS,
                    rows,
                    columns,
                    pattern.entries() as i32,
                    &raw const alpha,
                    descriptor.raw(),
                    handle.address(values).cast_const(),
                    row_ptr.cast_const(),
                    col_ind.cast_const(),
                    pattern.block_size() as i32,
                    x_at.cast_const(),
                    &raw const beta,
                    y_at,
                ))
            }
        }
    }
}
