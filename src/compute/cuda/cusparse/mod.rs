//! cuSPARSE as the vendor's baseline: products, incomplete factorisations, triangular solves.
//!
//! Conventions of this module:
//! - Values are f64, indices u32 on our side and 32-bit `int` in cuSPARSE, both from 0. Blocks are
//!   stored column by column. Lengths of vectors are in numbers, not blocks.
//! - Patterns are shared ([`DevicePattern`] in an `Rc`) and belong to the wrappers; values and
//!   vectors are passed to each call, unless a wrapper says that it keeps them.
//! - All work goes to the stream of the [`Handle`] and is asynchronous unless documented
//!   otherwise. Buffers must have been allocated on that stream, so that freeing them (which is
//!   ordered on the stream too) cannot overtake their use; cudarc's event tracking is not needed.
//! - Coefficients are numbers of the host.
//! - Lengths that do not fit the pattern are mistakes of the program and panic; everything the
//!   library answers comes back as an [`Error`] naming the function.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries, some by macros")]

mod bsrsv;
mod generic;
mod ilu;
mod ilu02;
mod older;
mod owned;
mod pattern;
mod sell;
mod solve;
mod spmv;
mod spsv;
mod stored;
mod symbol;
mod timing;
mod trsv;

use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::cusparse::sys;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DriverError};

use super::device::Device;
use super::memory;
use crate::base::error::{Error, Result};
pub use bsrsv::BsrSv2;
pub use ilu::{BlockIluVendor, filled};
pub use ilu02::Ilu02;
pub use pattern::DevicePattern;
pub use sell::SpmvSell;
pub use solve::{SolveWithOurFactors, with_diagonal};
pub use spmv::{Spmv, SpmvAlgorithm};
pub use spsv::Spsv;
pub use stored::StoredMatrix;
use symbol::call;
pub use symbol::version;
pub use trsv::TriangularSolve;

/// Matrices are never transposed.
const AS_IS: sys::cusparseOperation_t = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
/// Type of values, vectors and arithmetic.
const NUMBERS: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_64F;
/// Order of the numbers in a block.
const COLUMN: sys::cusparseDirection_t = sys::cusparseDirection_t::CUSPARSE_DIRECTION_COLUMN;

/// A part of a matrix that is solved with; entries of the other triangle are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// Forward substitution.
    Lower,
    /// Backward substitution.
    Upper,
}

impl Triangle {
    fn fill_mode(self) -> sys::cusparseFillMode_t {
        match self {
            Self::Lower => sys::cusparseFillMode_t::CUSPARSE_FILL_MODE_LOWER,
            Self::Upper => sys::cusparseFillMode_t::CUSPARSE_FILL_MODE_UPPER,
        }
    }
}

/// What the diagonal of a triangle is. It is the diagonal of numbers, also where blocks are
/// stored: of a diagonal block only the triangle is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonal {
    /// Ones, whatever is stored.
    Unit,
    /// The stored numbers.
    Stored,
}

impl Diagonal {
    fn diag_type(self) -> sys::cusparseDiagType_t {
        match self {
            Self::Unit => sys::cusparseDiagType_t::CUSPARSE_DIAG_TYPE_UNIT,
            Self::Stored => sys::cusparseDiagType_t::CUSPARSE_DIAG_TYPE_NON_UNIT,
        }
    }
}

/// How the older functions (csrilu02, bsrilu02, bsrsv2) order their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// By the levels that the analysis found.
    Level,
    /// Rows wait for each other.
    NoLevel,
}

impl Policy {
    /// Both, the library's usual one first.
    pub const ALL: [Self; 2] = [Self::Level, Self::NoLevel];

    /// Word for it in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::NoLevel => "no level",
        }
    }

    fn raw(self) -> sys::cusparseSolvePolicy_t {
        match self {
            Self::Level => sys::cusparseSolvePolicy_t::CUSPARSE_SOLVE_POLICY_USE_LEVEL,
            Self::NoLevel => sys::cusparseSolvePolicy_t::CUSPARSE_SOLVE_POLICY_NO_LEVEL,
        }
    }
}

/// Why a factorisation did not come about.
#[derive(Clone, Debug, PartialEq)]
pub enum FactorFailure {
    /// The diagonal block of this block row (from 0) is missing or singular.
    ZeroPivot(usize),
    /// The library failed.
    Library(Error),
}

impl From<Error> for FactorFailure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// A connection to cuSPARSE that works on one stream, with coefficients on the host.
///
/// Neither it nor what is made with it may leave the thread.
pub struct Handle {
    raw: owned::Owned<sys::cusparseHandle_t>,
    device: Arc<Device>,
    version: String,
}

impl Handle {
    /// Opens the library on the stream of `device`, whose context becomes current for this thread and must stay
    /// so while the handle is used.
    ///
    /// # Errors
    /// When the library is missing or cannot start.
    pub fn new(device: &Arc<Device>) -> Result<Rc<Self>> {
        let (version, stream) = (version()?, device.stream());
        stream.context().bind_to_thread().map_err(|e| driver("cannot use the context", e))?;
        let raw = owned::handle()?;
        call!(cusparseSetStream(raw.raw(), stream.cu_stream().cast()))?;
        let host = sys::cusparsePointerMode_t::CUSPARSE_POINTER_MODE_HOST;
        call!(cusparseSetPointerMode(raw.raw(), host))?;
        Ok(Rc::new(Self { raw, device: Arc::clone(device), version }))
    }

    /// Version of the library, such as `12.6.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The stream all work goes to.
    pub fn stream(&self) -> &Arc<CudaStream> {
        self.device.stream()
    }

    /// The GPU.
    fn device(&self) -> &Device {
        &self.device
    }

    fn raw(&self) -> sys::cusparseHandle_t {
        self.raw.raw()
    }

    /// Address of `slice`. cudarc hands out the address for the length of a guard that records an
    /// event; here everything is ordered by the one stream, so the address alone is enough.
    fn address<T>(&self, slice: &CudaSlice<T>) -> *mut T {
        let (address, _guard) = slice.device_ptr(self.stream());
        address as *mut T
    }

    /// Address of `slice`, to be written.
    fn address_mut<T>(&self, slice: &mut CudaSlice<T>) -> *mut T {
        let (address, _guard) = slice.device_ptr_mut(self.stream());
        address as *mut T
    }

    /// Workspace of `bytes` bytes; at least one, since an allocation of nothing fails.
    fn workspace(&self, bytes: usize) -> Result<Workspace> {
        // cuSPARSE writes what it reads of its workspace
        let buffer = memory::alloc::<u8>(self.stream(), bytes)?;
        let address = self.address(&buffer).cast();
        Ok(Workspace { buffer, address })
    }

    /// Copies the first `n` numbers.
    fn copy(&self, from: &CudaSlice<f64>, to: &mut CudaSlice<f64>, n: usize) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        self.stream()
            .memcpy_dtod(&from.slice(..n), &mut to.slice_mut(..n))
            .map_err(|e| driver("cannot copy on the device", e))
    }

    /// `n` numbers, all zero; room for one where `n` is zero.
    fn zeros(&self, n: usize) -> Result<CudaSlice<f64>> {
        memory::zeros(self.stream(), n)
    }
}

/// Memory that cuSPARSE works in, kept as long as the library may use it.
struct Workspace {
    buffer: CudaSlice<u8>,
    address: *mut c_void,
}

impl Workspace {
    fn bytes(&self) -> usize {
        self.buffer.len()
    }
}

/// Size of a workspace as the older functions tell it.
fn older_size(function: &str, bytes: i32) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| {
        Error::run(format!("{function} asks for more workspace than an `int` can tell"))
            .hint("take a smaller case")
    })
}

fn driver(what: &str, error: DriverError) -> Error {
    let text = format!("{what}: {error}");
    if error.0 == cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Error::memory(text);
    }
    Error::run(text)
}
