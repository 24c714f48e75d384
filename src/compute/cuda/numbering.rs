//! Vectors in another order than factors (`kernels/vectors/operations.cu`).

use std::cell::RefCell;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError};

use super::device::{Device, grid};
use super::launch::launch;
use super::memory::failed;
use super::sources::VECTOR;
use crate::base::error::Result;

/// Threads of a block; mirrors `vectors/operations.cu`.
const THREADS: u32 = 256;

/// The place of each block row of the factors in the vectors, and both vectors in the factors' order.
pub(super) struct Numbering {
    order: CudaSlice<u32>,
    block_size: usize,
    gather: CudaFunction,
    scatter: CudaFunction,
    vectors: RefCell<[CudaSlice<f64>; 2]>,
}

impl Numbering {
    pub(super) fn new(d: &Device, order: &[u32], block_size: usize) -> Result<Self> {
        let n = order.len() * block_size;
        Ok(Self {
            order: d.copied(order)?,
            block_size,
            gather: d.kernel(&VECTOR, 1, "gather")?,
            scatter: d.kernel(&VECTOR, 1, "scatter")?,
            vectors: RefCell::new([d.alloc(n)?, d.alloc(n)?]),
        })
    }

    /// `z = P' solve(P r)`.
    pub(super) fn around(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
        solve: impl FnOnce(&CudaSlice<f64>, &mut CudaSlice<f64>) -> Result<()>,
    ) -> Result<()> {
        let mut vectors = self.vectors.borrow_mut();
        let [inside, solved] = &mut *vectors;
        self.moved(d, &self.gather, r, inside)?;
        solve(inside, solved)?;
        self.moved(d, &self.scatter, solved, z)
    }

    fn moved(
        &self,
        d: &Device,
        kernel: &CudaFunction,
        from: &CudaSlice<f64>,
        to: &mut CudaSlice<f64>,
    ) -> Result<()> {
        let n = self.order.len() * self.block_size;
        let config = grid(n.div_ceil(THREADS as usize), THREADS);
        let (count, size) = (n as u32, self.block_size as u32);
        launch!(d, kernel, config; count, size, self.order, *from, *to)
            .map_err(|e: DriverError| failed("cannot renumber a vector", e))
    }
}
