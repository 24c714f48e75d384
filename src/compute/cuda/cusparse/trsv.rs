//! The vendor's triangular solve for a block size.

use std::rc::Rc;

use cudarc::driver::CudaSlice;

use super::{BsrSv2, DevicePattern, Diagonal, Handle, Policy, Spsv, Triangle};
use crate::base::error::Result;

/// `SpSV` for blocks of one, bsrsv2 for larger ones, behind the phases of a solver.
pub enum TriangularSolve {
    /// CSR.
    Spsv(Spsv),
    /// BSR.
    BsrSv2(BsrSv2),
}

impl TriangularSolve {
    /// Solves to come with one triangle; larger blocks start with [`Policy::Level`].
    pub fn new(
        handle: &Rc<Handle>,
        pattern: &Rc<DevicePattern>,
        triangle: Triangle,
        diagonal: Diagonal,
    ) -> Result<Self> {
        if pattern.block_size() == 1 {
            Ok(Self::Spsv(Spsv::new(handle, pattern, triangle, diagonal)))
        } else {
            BsrSv2::new(handle, pattern, triangle, diagonal, Policy::Level).map(Self::BsrSv2)
        }
    }

    /// The function and its policy.
    pub fn name(&self) -> String {
        match self {
            Self::Spsv(_) => "SpSV".to_owned(),
            Self::BsrSv2(solver) => format!("bsrsv2 ({})", solver.policy().name()),
        }
    }

    /// Bytes of the library's workspace.
    pub(crate) fn workspace_bytes(&self) -> usize {
        match self {
            Self::Spsv(solver) => solver.workspace_bytes(),
            Self::BsrSv2(solver) => solver.workspace_bytes(),
        }
    }

    /// The part of the analysis that needs the pattern alone; the numbers in `values` do not
    /// matter. For `SpSV` there is none, and an earlier analysis is forgotten.
    pub(crate) fn analyse_pattern(&mut self, values: &CudaSlice<f64>) -> Result<()> {
        match self {
            Self::Spsv(solver) => {
                solver.forget();
                Ok(())
            }
            Self::BsrSv2(solver) => solver.analyse(values),
        }
    }

    /// The part that needs the values: analysis of `SpSV`, or its update where there has been one.
    /// Nothing for bsrsv2, which reads the values when it solves.
    pub(crate) fn take_values(&mut self, values: &CudaSlice<f64>) -> Result<()> {
        match self {
            Self::Spsv(solver) => solver.update(values),
            Self::BsrSv2(_) => Ok(()),
        }
    }

    /// Solves `T y = x` with the values taken last. Asynchronous.
    pub fn solve(
        &self,
        values: &CudaSlice<f64>,
        x: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        match self {
            Self::Spsv(solver) => solver.solve(values, x, y),
            Self::BsrSv2(solver) => solver.solve(values, x, y),
        }
    }

    /// Takes the faster policy on these values, where there is a choice; waits. `x` and `y` are
    /// vectors to work on.
    pub fn choose(
        &mut self,
        values: &CudaSlice<f64>,
        x: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) -> Result<()> {
        match self {
            Self::Spsv(_) => Ok(()),
            Self::BsrSv2(solver) => solver.choose(values, x, y),
        }
    }
}
