//! Triangular solves with CSR matrices by the generic `SpSV`.

use std::ptr;
use std::rc::Rc;

use cudarc::cusparse::sys;
use cudarc::driver::CudaSlice;

use super::owned::{self, Owned};
use super::symbol::{call, has};
use super::{AS_IS, DevicePattern, Diagonal, Handle, NUMBERS, Triangle, Workspace};
use crate::base::error::Result;

/// Calls a function of the family `SpSV` for `T y = x`: with matrix, vectors and what the analysis
/// found, and what this function takes beside.
macro_rules! spsv {
    ($name:ident($handle:expr, $with:expr; $($rest:expr),*)) => {{
        let (matrix, x, y, descriptor) = $with;
        call!($name(
            $handle.raw(),
            AS_IS,
            ptr::from_ref(&ONE).cast(),
            matrix.raw().cast_const(),
            x.raw().cast_const(),
            y.raw(),
            NUMBERS,
            ALGORITHM,
            descriptor.raw(),
            $($rest),*
        ))
    }};
}

/// Solves with one triangle of a CSR matrix, which may be the whole matrix: the other triangle is
/// not looked at, nor is a stored diagonal where it is declared to be ones.
///
/// The library copies values into its workspace during the analysis. The analysis therefore belongs
/// to the numeric phase, and new values must be announced by [`update`](Self::update).
pub struct Spsv {
    pattern: Rc<DevicePattern>,
    triangle: Triangle,
    diagonal: Diagonal,
    analysed: Option<Analysed>,
    handle: Rc<Handle>,
}

/// What the analysis made. The descriptor goes before the workspace it refers to.
struct Analysed {
    descriptor: Owned<sys::cusparseSpSVDescr_t>,
    matrix: Owned<sys::cusparseSpMatDescr_t>,
    x: Owned<sys::cusparseDnVecDescr_t>,
    y: Owned<sys::cusparseDnVecDescr_t>,
    /// Where the values are.
    at: *mut f64,
    workspace: Workspace,
}

impl Spsv {
    /// Solves to come on a pattern of numbers.
    ///
    /// # Panics
    /// If the pattern is one of blocks.
    pub fn new(
        handle: &Rc<Handle>,
        pattern: &Rc<DevicePattern>,
        triangle: Triangle,
        diagonal: Diagonal,
    ) -> Self {
        assert_eq!(pattern.block_size(), 1, "SpSV takes no blocks");
        let (handle, pattern) = (Rc::clone(handle), Rc::clone(pattern));
        Self { pattern, triangle, diagonal, analysed: None, handle }
    }

    /// Analyses the triangle with its values; replaces an earlier analysis. To be timed apart from
    /// solves; not to be taken for asynchronous.
    ///
    /// # Panics
    /// If there are fewer values than the pattern has places.
    pub fn analyse(&mut self, values: &CudaSlice<f64>) -> Result<()> {
        self.pattern.assert_values(values);
        self.analysed = None;
        if self.is_identity() {
            return Ok(());
        }
        let (handle, n) = (&*self.handle, self.pattern.unknowns());
        let at = handle.address(values);
        let matrix = owned::sparse_matrix(handle, &self.pattern, at)?;
        set_attribute(
            &matrix,
            sys::cusparseSpMatAttribute_t::CUSPARSE_SPMAT_FILL_MODE,
            self.triangle.fill_mode(),
        )?;
        set_attribute(
            &matrix,
            sys::cusparseSpMatAttribute_t::CUSPARSE_SPMAT_DIAG_TYPE,
            self.diagonal.diag_type(),
        )?;
        // the vectors of the analysis only say their length; solves bring their own
        let (scratch_x, mut scratch_y) = (handle.zeros(n)?, handle.zeros(n)?);
        let x = owned::dense_vector(n, handle.address(&scratch_x))?;
        let y = owned::dense_vector(n, handle.address_mut(&mut scratch_y))?;
        let descriptor = owned::spsv_descriptor()?;
        let mut bytes = 0usize;
        let with = (&matrix, &x, &y, &descriptor);
        spsv!(cusparseSpSV_bufferSize(handle, with; &raw mut bytes))?;
        let workspace = handle.workspace(bytes)?;
        spsv!(cusparseSpSV_analysis(handle, with; workspace.address))?;
        self.analysed = Some(Analysed { descriptor, matrix, x, y, at, workspace });
        Ok(())
    }

    /// Takes new values on the same pattern: without another analysis where the library can
    /// (`cusparseSpSV_updateMatrix`, since CUDA 12.1) and there has been one.
    ///
    /// # Panics
    /// If there are fewer values than the pattern has places.
    pub fn update(&mut self, values: &CudaSlice<f64>) -> Result<()> {
        self.pattern.assert_values(values);
        let Some(analysed) = &mut self.analysed else {
            return self.analyse(values);
        };
        if !has("cusparseSpSV_updateMatrix") {
            return self.analyse(values);
        }
        let at = self.handle.address(values);
        call!(cusparseSpMatSetValues(analysed.matrix.raw(), at.cast()))?;
        analysed.at = at;
        call!(cusparseSpSV_updateMatrix(
            self.handle.raw(),
            analysed.descriptor.raw(),
            at.cast(),
            sys::cusparseSpSVUpdate_t::CUSPARSE_SPSV_UPDATE_GENERAL,
        ))
    }

    /// Solves `T y = x` with the `values` of the last analysis or update. Asynchronous. A zero on a
    /// stored diagonal gives infinities, not an error.
    ///
    /// # Panics
    /// If nothing was analysed, a length does not fit, or `values` lies elsewhere than it did then.
    pub fn solve(
        &self,
        values: &CudaSlice<f64>,
        x: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        self.pattern.assert_values(values);
        self.pattern.assert_vectors(x, y);
        let handle = &*self.handle;
        if self.is_identity() {
            return handle.copy(x, y, self.pattern.unknowns());
        }
        let analysed = self.analysed.as_ref().expect("SpSV is analysed before it solves");
        assert_eq!(analysed.at, handle.address(values), "values that SpSV was not told about");
        call!(cusparseDnVecSetValues(analysed.x.raw(), handle.address(x).cast()))?;
        call!(cusparseDnVecSetValues(analysed.y.raw(), handle.address_mut(y).cast()))?;
        let with = (&analysed.matrix, &analysed.x, &analysed.y, &analysed.descriptor);
        spsv!(cusparseSpSV_solve(handle, with;))
    }

    /// Forgets the analysis, so that the next [`update`](Self::update) is one.
    pub(crate) fn forget(&mut self) {
        self.analysed = None;
    }

    /// Bytes of the library's workspace.
    pub(crate) fn workspace_bytes(&self) -> usize {
        self.analysed.as_ref().map_or(0, |a| a.workspace.bytes())
    }

    /// A unit diagonal and nothing else: the library refuses matrices without entries.
    fn is_identity(&self) -> bool {
        self.pattern.entries() == 0 && self.diagonal == Diagonal::Unit
    }
}

fn set_attribute<T>(
    matrix: &Owned<sys::cusparseSpMatDescr_t>,
    attribute: sys::cusparseSpMatAttribute_t,
    mut value: T,
) -> Result<()> {
    call!(cusparseSpMatSetAttribute(
        matrix.raw(),
        attribute,
        (&raw mut value).cast(),
        size_of::<T>(),
    ))
}

const ONE: f64 = 1.0;
const ALGORITHM: sys::cusparseSpSVAlg_t = sys::cusparseSpSVAlg_t::CUSPARSE_SPSV_ALG_DEFAULT;
