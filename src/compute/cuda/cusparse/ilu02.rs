//! Incomplete LU factorisation in place: csrilu02 and bsrilu02.

use std::ffi::c_int;
use std::rc::Rc;

use cudarc::cusparse::sys::{self, cusparseStatus_t as Status};
use cudarc::driver::CudaSlice;

use super::older::{Older, older};
use super::owned::{self, Owned};
use super::symbol::{call, check, status};
use super::{COLUMN, DevicePattern, Handle, Policy, Workspace, older_size, timing};
use crate::base::error::Result;

/// Factorises `A = L U` on the pattern of `A`, which holds both triangles and the diagonal, by
/// csrilu02 for blocks of one and bsrilu02 for larger ones.
///
/// The factors take the place of the values. Neither function pivots, and both leave factors of
/// *numbers*: a diagonal block `A_ii` becomes its own `L_ii U_ii` (`L_ii` with a unit diagonal that
/// is not stored), blocks below hold `L_ij = A_ij U_jj^-1`, blocks above `U_ij = L_ii^-1 A_ij`. The
/// result is the point factorisation on the pattern with full blocks (the library's documentation:
/// `bsr2csr(bsrilu02(A)) = csrilu02(bsr2csr(A))`): L is the unit lower and U the upper triangle of
/// the numbers. No diagonal block is inverted.
pub struct Ilu02 {
    pattern: Rc<DevicePattern>,
    policy: Policy,
    descriptor: Owned<sys::cusparseMatDescr_t>,
    analysed: Option<(Info, Workspace)>,
    handle: Rc<Handle>,
}

/// What the analysis found.
enum Info {
    Csr(Owned<sys::csrilu02Info_t>),
    Bsr(Owned<sys::bsrilu02Info_t>),
}

impl Ilu02 {
    /// A factorisation to come.
    pub fn new(handle: &Rc<Handle>, pattern: &Rc<DevicePattern>, policy: Policy) -> Result<Self> {
        let descriptor = owned::matrix_descriptor()?;
        let (handle, pattern) = (Rc::clone(handle), Rc::clone(pattern));
        Ok(Self { pattern, policy, descriptor, analysed: None, handle })
    }

    /// The function and its policy.
    pub fn name(&self) -> String {
        let function = if self.pattern.block_size() == 1 { "csrilu02" } else { "bsrilu02" };
        format!("{function} ({})", self.policy.name())
    }

    /// Bytes of the library's workspace.
    pub(crate) fn workspace_bytes(&self) -> usize {
        self.analysed.as_ref().map_or(0, |(_, workspace)| workspace.bytes())
    }

    /// Analyses the pattern; the numbers in `values` do not matter. Replaces an earlier analysis,
    /// and waits. `Some(row)` is the first block row without a diagonal block.
    ///
    /// # Panics
    /// If there are fewer values than the pattern has places.
    pub fn analyse(&mut self, values: &mut CudaSlice<f64>) -> Result<Option<usize>> {
        self.pattern.assert_values(values);
        self.analysed = None;
        let (handle, pattern) = (&*self.handle, &*self.pattern);
        let a = Older::new(handle, pattern, self.descriptor.raw(), handle.address_mut(values));
        let (policy, mut bytes) = (self.policy.raw(), 0);
        let analysed = if pattern.block_size() == 1 {
            let info = owned::csrilu02_info()?;
            older!(csrilu02 cusparseDcsrilu02_bufferSize(a, info; &raw mut bytes))?;
            let workspace = handle.workspace(older_size("csrilu02", bytes)?)?;
            older!(csrilu02 cusparseDcsrilu02_analysis(a, info; policy, workspace.address))?;
            (Info::Csr(info), workspace)
        } else {
            let info = owned::bsrilu02_info()?;
            older!(bsrilu02 cusparseDbsrilu02_bufferSize(a, info; &raw mut bytes))?;
            let workspace = handle.workspace(older_size("bsrilu02", bytes)?)?;
            older!(bsrilu02 cusparseDbsrilu02_analysis(a, info; policy, workspace.address))?;
            (Info::Bsr(info), workspace)
        };
        let structural = self.zero_pivot_of(&analysed.0)?;
        self.analysed = Some(analysed);
        Ok(structural)
    }

    /// Starts the factorisation in place. Asynchronous: [`zero_pivot`](Self::zero_pivot) tells how
    /// it went.
    ///
    /// # Panics
    /// If nothing was analysed, or there are fewer values than the pattern has places.
    pub fn start(&self, values: &mut CudaSlice<f64>) -> Result<()> {
        self.pattern.assert_values(values);
        let (info, workspace) = self.analysed.as_ref().expect("ilu02 is analysed first");
        let at = self.handle.address_mut(values);
        let a = Older::new(&self.handle, &self.pattern, self.descriptor.raw(), at);
        let (policy, workspace) = (self.policy.raw(), workspace.address);
        match info {
            Info::Csr(info) => older!(csrilu02 cusparseDcsrilu02(a, info; policy, workspace)),
            Info::Bsr(info) => older!(bsrilu02 cusparseDbsrilu02(a, info; policy, workspace)),
        }
    }

    /// The first block row (from 0) whose diagonal is missing or singular in the last
    /// factorisation; waits for the whole device. The library finds exact zeros only.
    ///
    /// # Panics
    /// If nothing was analysed.
    pub fn zero_pivot(&self) -> Result<Option<usize>> {
        let (info, _) = self.analysed.as_ref().expect("ilu02 is analysed first");
        self.zero_pivot_of(info)
    }

    fn zero_pivot_of(&self, info: &Info) -> Result<Option<usize>> {
        let handle = self.handle.raw();
        let mut row: c_int = -1;
        let (name, status) = match info {
            Info::Csr(info) => (
                "cusparseXcsrilu02_zeroPivot",
                status!(cusparseXcsrilu02_zeroPivot(handle, info.raw(), &raw mut row))?,
            ),
            Info::Bsr(info) => (
                "cusparseXbsrilu02_zeroPivot",
                status!(cusparseXbsrilu02_zeroPivot(handle, info.raw(), &raw mut row))?,
            ),
        };
        pivot(name, status, row)
    }

    /// Analysed for the faster policy on the matrix in `values`, which stay as they are; `factors`
    /// holds the factors afterwards. Waits.
    pub(super) fn fastest(
        handle: &Rc<Handle>,
        pattern: &Rc<DevicePattern>,
        values: &CudaSlice<f64>,
        factors: &mut CudaSlice<f64>,
    ) -> Result<Self> {
        timing::fastest(Policy::ALL, |policy| {
            let mut ilu = Self::new(handle, pattern, policy)?;
            ilu.analyse(factors)?;
            let ms = timing::median_ms(handle.stream(), || {
                handle.copy(values, factors, pattern.numbers())?;
                ilu.start(factors)
            })?;
            Ok((ilu, ms))
        })
    }
}

/// Reads the answer of a `zeroPivot` function.
pub(super) fn pivot(name: &str, status: Status, row: c_int) -> Result<Option<usize>> {
    if status == Status::CUSPARSE_STATUS_ZERO_PIVOT {
        return Ok(Some(row.max(0) as usize));
    }
    check(name, status)?;
    Ok(usize::try_from(row).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_pivots_are_answers_and_other_failures_errors() {
        assert_eq!(pivot("f", Status::CUSPARSE_STATUS_ZERO_PIVOT, 7), Ok(Some(7)));
        assert_eq!(pivot("f", Status::CUSPARSE_STATUS_SUCCESS, -1), Ok(None));
        let error = pivot("f", Status::CUSPARSE_STATUS_EXECUTION_FAILED, -1).unwrap_err();
        assert_eq!(error.message(), "f failed: CUSPARSE_STATUS_EXECUTION_FAILED");
    }
}
