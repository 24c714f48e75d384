//! Triangular solves with BSR matrices by bsrsv2.

use std::ffi::c_int;
use std::rc::Rc;

use cudarc::cusparse::sys;
use cudarc::driver::CudaSlice;

use super::ilu02::pivot;
use super::older::{Older, older};
use super::owned::{self, Owned};
use super::symbol::{call, status};
use super::{
    AS_IS, COLUMN, DevicePattern, Diagonal, Handle, Policy, Triangle, Workspace, older_size, timing,
};
use crate::base::error::Result;

/// Solves with one triangle of a BSR matrix, which may be the whole matrix: the other triangle is
/// not looked at.
///
/// The triangle is one of *numbers*: of a diagonal block only its lower or upper triangle counts,
/// with ones or the stored numbers on its diagonal (the library's documentation:
/// `bsr2csr(bsrsv2(A)) = csrsv2(bsr2csr(A))`). That is what [`Ilu02`](super::Ilu02) leaves:
/// [`Lower`](Triangle::Lower) and [`Unit`](Diagonal::Unit) for L, [`Upper`](Triangle::Upper) and
/// [`Stored`](Diagonal::Stored) for U. Stored diagonals must be in the pattern.
pub struct BsrSv2 {
    pattern: Rc<DevicePattern>,
    triangle: Triangle,
    diagonal: Diagonal,
    policy: Policy,
    descriptor: Owned<sys::cusparseMatDescr_t>,
    analysed: Option<(Owned<sys::bsrsv2Info_t>, Workspace)>,
    handle: Rc<Handle>,
}

impl BsrSv2 {
    /// Solves to come.
    pub fn new(
        handle: &Rc<Handle>,
        pattern: &Rc<DevicePattern>,
        triangle: Triangle,
        diagonal: Diagonal,
        policy: Policy,
    ) -> Result<Self> {
        let descriptor = owned::triangular_descriptor(triangle, diagonal)?;
        let (handle, pattern) = (Rc::clone(handle), Rc::clone(pattern));
        Ok(Self { pattern, triangle, diagonal, policy, descriptor, analysed: None, handle })
    }

    /// The policy in use.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Bytes of the library's workspace.
    pub(crate) fn workspace_bytes(&self) -> usize {
        self.analysed.as_ref().map_or(0, |(_, workspace)| workspace.bytes())
    }

    /// Analyses the pattern; the numbers in `values` do not matter. Replaces an earlier analysis.
    /// Not to be taken for asynchronous.
    ///
    /// # Panics
    /// If there are fewer values than the pattern has places.
    pub fn analyse(&mut self, values: &CudaSlice<f64>) -> Result<()> {
        self.pattern.assert_values(values);
        self.analysed = None;
        let (handle, pattern) = (&*self.handle, &*self.pattern);
        let a = Older::new(handle, pattern, self.descriptor.raw(), handle.address(values));
        let info = owned::bsrsv2_info()?;
        let mut bytes = 0;
        older!(bsrsv2 cusparseDbsrsv2_bufferSize(a, info; &raw mut bytes))?;
        let workspace = handle.workspace(older_size("bsrsv2", bytes)?)?;
        let policy = self.policy.raw();
        older!(bsrsv2 cusparseDbsrsv2_analysis(a, info; policy, workspace.address))?;
        self.analysed = Some((info, workspace));
        Ok(())
    }

    /// Solves `T y = x`. Asynchronous; with a stored diagonal, [`zero_pivot`](Self::zero_pivot)
    /// tells whether it went well.
    ///
    /// # Panics
    /// If nothing was analysed, or a length does not fit.
    pub fn solve(
        &self,
        values: &CudaSlice<f64>,
        x: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        self.pattern.assert_values(values);
        self.pattern.assert_vectors(x, y);
        let (info, workspace) = self.analysed.as_ref().expect("bsrsv2 is analysed first");
        let handle = &*self.handle;
        let descriptor = self.descriptor.raw();
        let a = Older::new(handle, &self.pattern, descriptor, handle.address(values));
        let (x, y, policy) = (handle.address(x), handle.address_mut(y), self.policy.raw());
        let one = 1.0;
        older!(bsrsv2 (&raw const one) cusparseDbsrsv2_solve(
            a, info; x, y, policy, workspace.address
        ))
    }

    /// The first block row (from 0) whose diagonal block is missing or has a zero on its stored
    /// diagonal, as the analysis or the last solve found it; waits for the whole device. A unit
    /// diagonal has none.
    ///
    /// # Panics
    /// If nothing was analysed.
    pub fn zero_pivot(&self) -> Result<Option<usize>> {
        let (info, _) = self.analysed.as_ref().expect("bsrsv2 is analysed first");
        let mut row: c_int = -1;
        let answer =
            status!(cusparseXbsrsv2_zeroPivot(self.handle.raw(), info.raw(), &raw mut row))?;
        pivot("cusparseXbsrsv2_zeroPivot", answer, row)
    }

    /// Becomes the solver with the faster policy on these values, analysed; waits. `x` and `y` are
    /// vectors to work on.
    pub fn choose(
        &mut self,
        values: &CudaSlice<f64>,
        x: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        *self = timing::fastest(Policy::ALL, |policy| {
            let (triangle, diagonal) = (self.triangle, self.diagonal);
            let mut solver = Self::new(&self.handle, &self.pattern, triangle, diagonal, policy)?;
            solver.analyse(values)?;
            let stream = self.handle.stream();
            let ms = timing::median_ms(stream, || solver.solve(values, x, y))?;
            Ok((solver, ms))
        })?;
        Ok(())
    }
}
