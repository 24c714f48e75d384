//! Triangular solves stage by stage, with one launch per level (`kernels/sptrsv/slices.cu`).

use cudarc::driver::{CudaFunction, DriverError};

use super::System;
use super::levels::each_level;
use super::slices::Slices;
use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::SolveArg;
use crate::compute::cuda::numbers::Values;
use crate::compute::cuda::sources::{TRSV, Variant};
use crate::compute::cuda::storage::Structure;

/// Both triangles, and the levels of each stage.
pub(in crate::compute::cuda) struct Staged {
    triangles: [Slices; 2],
    kernels: [CudaFunction; 2],
    /// First level of each stage in the forward and the backward solve, and their end.
    first: [Vec<usize>; 2],
}

impl Staged {
    pub(in crate::compute::cuda) fn new(s: &System, first: [Vec<usize>; 2]) -> Result<Self> {
        let variant = || Variant::from(s.structure.block_size).storing(s.precision);
        let kernels = [
            s.device.kernel(&TRSV, variant(), "level_forward")?,
            s.device.kernel(&TRSV, variant(), "level_backward")?,
        ];
        Ok(Self { triangles: Slices::both(s, 1)?, kernels, first })
    }

    pub(in crate::compute::cuda) fn set_values(
        &mut self,
        d: &Device,
        f: &Structure,
        v: &Values,
    ) -> Result<()> {
        let [lower, upper] = &mut self.triangles;
        lower.set_values(d, &f.lower.row_ptr, &v.lower)?;
        upper.set_values(d, &f.upper.row_ptr, &v.upper)
    }

    /// The forward solve of a stage.
    pub(in crate::compute::cuda) fn forward(
        &self,
        d: &Device,
        stage: usize,
        arg: SolveArg,
    ) -> Result<(), DriverError> {
        self.solve(d, 0, stage, arg)
    }

    /// The backward solve of a stage.
    pub(in crate::compute::cuda) fn backward(
        &self,
        d: &Device,
        stage: usize,
        arg: SolveArg,
    ) -> Result<(), DriverError> {
        self.solve(d, 1, stage, arg)
    }

    fn solve(
        &self,
        d: &Device,
        way: usize,
        stage: usize,
        arg: SolveArg,
    ) -> Result<(), DriverError> {
        let levels = self.first[way][stage]..self.first[way][stage + 1];
        each_level(d, &self.kernels[way], &self.triangles[way], levels, arg)
    }
}
