//! Layouts of colours ([`super::slices`]) on the device.

use cudarc::driver::CudaSlice;

use super::slices::Layout;
use crate::base::error::Result;
use crate::compute::cuda::device::Device;

/// What is known of each position and slice, on the device.
pub(super) struct Placed {
    /// Row of the vectors, and of the factors, at each position.
    pub(super) row: CudaSlice<u32>,
    pub(super) factor_row: CudaSlice<u32>,
    /// First position of each slice, and one past the last.
    pub(super) first: CudaSlice<u32>,
}

/// Columns of a triangle on the device.
pub(super) struct Laid {
    pub(super) shape: CudaSlice<u32>,
    pub(super) columns: CudaSlice<u32>,
    pub(super) index: CudaSlice<u32>,
}

impl Laid {
    pub(super) fn new(d: &Device, layout: &Layout) -> Result<Self> {
        Ok(Self {
            shape: d.copied(&layout.shape)?,
            columns: d.copied(&layout.columns)?,
            index: d.copied(&layout.index)?,
        })
    }
}
