//! Unknowns whose values ranks exchange, and couplings with the values that come (`kernels/distributed/halo.cu`).

use std::ops::Range;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError};

use crate::base::error::Result;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, address, launch};
use crate::compute::cuda::sources::{HALO, VECTOR};
use crate::compute::distributed::Coupling;

/// Threads of a block; mirrors `distributed/halo.cu` and `vectors/operations.cu`.
const THREADS: u32 = 256;

/// As many thread blocks as `n` threads make.
fn blocks(n: usize) -> usize {
    n.div_ceil(THREADS as usize)
}

/// Numbers of unknowns, and what is done with these.
pub struct Places {
    numbers: CudaSlice<u32>,
    count: usize,
    gather: CudaFunction,
    scatter: CudaFunction,
    extend: CudaFunction,
}

impl Places {
    pub(super) fn new(d: &Device, of: &[u32]) -> Result<Self> {
        Ok(Self {
            numbers: d.copied(of)?,
            count: of.len(),
            gather: d.kernel(&VECTOR, 1, "gather")?,
            scatter: d.kernel(&VECTOR, 1, "scatter")?,
            extend: d.kernel(&HALO, 1, "extend")?,
        })
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// `to[i] = from[places[i]]`.
    pub(super) fn gather(
        &self,
        d: &Device,
        from: &CudaSlice<f64>,
        to: Address,
    ) -> Result<(), DriverError> {
        self.gather_part(d, 0..self.count, from, to)
    }

    /// `to[i] = from[places[part][i]]`.
    pub(super) fn gather_part(
        &self,
        d: &Device,
        part: Range<usize>,
        from: &CudaSlice<f64>,
        to: Address,
    ) -> Result<(), DriverError> {
        if part.is_empty() {
            return Ok(());
        }
        assert!(part.end <= self.count, "{part:?} of {} places", self.count);
        let numbers = address(&self.numbers) + 4 * part.start as u64;
        let (n, size, config) = (part.len() as u32, 1_u32, grid(blocks(part.len()), THREADS));
        launch!(d, &self.gather, config; n, size, numbers, *from, to)
    }

    /// `to[places[i]] = from[i]`.
    pub(super) fn scatter(
        &self,
        d: &Device,
        from: Address,
        to: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        if self.count == 0 {
            return Ok(());
        }
        let (n, size, config) = (self.count as u32, 1_u32, grid(blocks(self.count), THREADS));
        launch!(d, &self.scatter, config; n, size, self.numbers, from, *to)
    }

    /// `to[i]` is the unknown `places[i]` of `from`, and behind its end one of `ghosts`.
    pub(super) fn extend(
        &self,
        d: &Device,
        [from, ghosts]: [&CudaSlice<f64>; 2],
        to: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let (n, own, config) =
            (self.count as u32, from.len() as u32, grid(blocks(self.count), THREADS));
        launch!(d, &self.extend, config; n, self.numbers, own, *from, *ghosts, *to)
    }
}

/// Rows that are coupled with others.
pub struct Coupled {
    count: usize,
    rows: CudaSlice<u32>,
    row_ptr: CudaSlice<u32>,
    columns: CudaSlice<u32>,
    values: CudaSlice<f64>,
    add: CudaFunction,
}

impl Coupled {
    pub(super) fn new(d: &Device, of: &Coupling) -> Result<Self> {
        Ok(Self {
            count: of.rows.len(),
            rows: d.copied(&of.rows)?,
            row_ptr: d.copied(&of.row_ptr)?,
            columns: d.copied(&of.columns)?,
            values: d.copied(&of.values)?,
            add: d.kernel(&HALO, 1, "add_coupling")?,
        })
    }

    /// `y += sign C g`.
    pub(super) fn add(
        &self,
        d: &Device,
        sign: f64,
        ghosts: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        if self.count == 0 {
            return Ok(());
        }
        let (n, config) = (self.count as u32, grid(blocks(self.count), THREADS));
        let Self { rows, row_ptr, columns, values, .. } = self;
        launch!(d, &self.add, config; n, *rows, *row_ptr, *columns, *values, sign, *ghosts, *y)
    }
}
