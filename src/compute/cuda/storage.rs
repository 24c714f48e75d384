//! Block ILU factors as they lie on the device.

use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::compressed::Compressed;
use super::device::Device;
use super::launch::{PatternArg, TriangleArg, address};
use crate::base::error::Result;
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// A pattern on the device.
pub(super) struct DevicePattern {
    pub(super) row_ptr: CudaSlice<u32>,
    pub(super) col_ind: CudaSlice<u32>,
}

impl DevicePattern {
    fn new(d: &Device, p: &Pattern) -> Result<Self> {
        Ok(Self { row_ptr: d.copied(&p.row_ptr)?, col_ind: d.copied(&p.col_ind)? })
    }

    pub(super) fn argument(&self) -> PatternArg {
        PatternArg { row_ptr: address(&self.row_ptr), col_ind: address(&self.col_ind) }
    }

    /// With its numbers.
    pub(super) fn triangle(&self, val: &CudaSlice<f64>) -> TriangleArg {
        let PatternArg { row_ptr, col_ind } = self.argument();
        TriangleArg { row_ptr, col_ind, val: address(val) }
    }
}

/// L and U.
pub(super) type Triangles = [Arc<DevicePattern>; 2];

/// Factors `L D U'` in the order of the pattern; blocks column-major. D holds inverses.
pub(super) struct Factors {
    pub(super) lower: CudaSlice<f64>,
    pub(super) diagonal: CudaSlice<f64>,
    pub(super) upper: CudaSlice<f64>,
}

/// What is known of factors before their values: both triangles without the diagonal.
pub(super) struct Structure {
    pub(super) pattern: Arc<FillPattern>,
    pub(super) block_size: usize,
    pub(super) lower: Arc<DevicePattern>,
    pub(super) upper: Arc<DevicePattern>,
}

impl Structure {
    pub(super) fn new(d: &Device, pattern: &Arc<FillPattern>, block_size: usize) -> Result<Self> {
        let copied = |p| DevicePattern::new(d, p).map(Arc::new);
        Ok(Self::there(pattern, block_size, [copied(&pattern.lower)?, copied(&pattern.upper)?]))
    }

    /// With the triangles on the device.
    pub(super) fn there(
        pattern: &Arc<FillPattern>,
        block_size: usize,
        [lower, upper]: Triangles,
    ) -> Self {
        Self { pattern: Arc::clone(pattern), block_size, lower, upper }
    }

    /// L and U.
    pub(super) fn triangles(&self) -> [&DevicePattern; 2] {
        [&self.lower, &self.upper]
    }
}

/// A matrix that is to be factorised, where it is.
#[derive(Clone, Copy)]
pub(super) enum Factored<'a> {
    Host(&'a Csr),
    Device(&'a Compressed),
}
