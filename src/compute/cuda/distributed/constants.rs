//! Vectors that are constant on pieces of a rank's rows: inner products with ones, and a matrix with an entry for each
//! unknown.

use std::cell::RefCell;
use std::mem::swap;
use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::Partials;
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::cuda::Cuda;
use crate::compute::distributed::{self, Local};
use crate::compute::{Bytes, Products, Storage, Vectors};
use crate::matrix::Csr;

/// What stands for an unknown of no vector.
const NONE: u32 = u32::MAX;

pub struct Constants {
    starts: Vec<usize>,
    /// For each component of a block, ones on the unknowns that belong to a vector.
    masks: Vec<CudaSlice<f64>>,
    minus_z: <Cuda as Products>::Matrix,
    scratch: RefCell<CudaSlice<f64>>,
}

impl Constants {
    pub(super) fn new(k: &Cuda, of: &distributed::Constants) -> Result<Self> {
        let (b, n, vector) = (of.block_size, of.unknowns(), of.of_unknowns(NONE));
        let mask = |c: usize| {
            let one = |i: usize| f64::from(u8::from(i % b == c && vector[i] != NONE));
            let mut mask = k.vector(n)?;
            k.upload(&(0..n).map(one).collect::<Vec<_>>(), &mut mask);
            Ok(mask)
        };
        let masks = (0..b).map(mask).collect::<Result<_>>()?;
        let minus_z = Csr::one_each(Threads::Pool, &vector, of.vectors[1], -1.0);
        let minus_z = k.matrix(&Arc::new(minus_z), Format::Csr)?;
        let scratch = RefCell::new(k.vector(n)?);
        Ok(Self { starts: of.starts.clone(), masks, minus_z, scratch })
    }

    pub(super) fn sums(&self, k: &Cuda, v: &CudaSlice<f64>) -> Vec<f64> {
        let (b, parts) = (self.masks.len(), self.starts.len() - 1);
        let mut partials = Partials::default();
        k.partial_multi_dots(&self.masks, v, &self.starts, &mut partials);
        let by_component = k.take(&mut partials);
        (0..parts * b).map(|i| by_component[i % b * parts + i / b]).collect()
    }

    pub(super) fn add(&self, k: &Cuda, y: &CudaSlice<f64>, x: &mut CudaSlice<f64>) {
        let sum = &mut *self.scratch.borrow_mut();
        k.residual(&self.minus_z, y, x, sum);
        swap(x, sum);
    }

    pub(super) fn bytes(&self, k: &Cuda) -> Bytes {
        let (z, n) = (k.matrix_bytes(&self.minus_z), self.starts[self.starts.len() - 1]);
        let masks = 8 * n * self.masks.len();
        Bytes { held: z.held + masks, moved: z.moved + masks }
    }
}
