//! Block ILU factors as they lie on the device.

use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::device::Device;
use super::launch::{PatternArg, TriangleArg, address};
use crate::base::error::Result;
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// A pattern on the device.
pub(super) struct DevicePattern {
    pub(super) row_ptr: CudaSlice<u32>,
    pub(super) col_ind: CudaSlice<u32>,
}

impl DevicePattern {
    /// A copy of rows of the host.
    pub(super) fn copied(d: &Device, row_ptr: &[u32], col_ind: &[u32]) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { row_ptr: d.copied(row_ptr)?, col_ind: d.copied(col_ind)? }))
    }

    /// Starts of the rows and columns on the host.
    pub(super) fn host(&self, d: &Device, entries: usize) -> Result<[Vec<u32>; 2]> {
        let row_ptr = d.host_part(&self.row_ptr, self.row_ptr.len())?;
        Ok([row_ptr, d.host_part(&self.col_ind, entries)?])
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
        let copied = |p: &Pattern| DevicePattern::copied(d, &p.row_ptr, &p.col_ind);
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
