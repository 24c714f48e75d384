//! Block ILU(k) factors on the GPU: numeric factorisation (`kernels/ilu.cu`).

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::device::{Device, failed, grid};
use super::launch::{FactorsArg, PatternArg, address, launch};
use super::sources::ILU;
use crate::backend::SingularBlock;
use crate::error::Result;
use crate::matrix::Csr;
use crate::symbolic::{FillPattern, Pattern, Schedule};

/// A pattern on the device.
pub(super) struct DevicePattern {
    pub(super) row_ptr: CudaSlice<u32>,
    pub(super) col_ind: CudaSlice<u32>,
}

impl DevicePattern {
    fn new(d: &Device, p: &Pattern) -> Result<Self> {
        Ok(Self { row_ptr: d.copied(&p.row_ptr)?, col_ind: d.copied(&p.col_ind)? })
    }

    fn argument(&self) -> PatternArg {
        PatternArg { row_ptr: address(&self.row_ptr), col_ind: address(&self.col_ind) }
    }
}

/// Factors `L D U'` in the order of the pattern; blocks column-major. D holds inverses.
pub(super) struct Factors {
    pub(super) lower: CudaSlice<f64>,
    pub(super) diagonal: CudaSlice<f64>,
    pub(super) upper: CudaSlice<f64>,
}

/// What the factorisation needs apart from values: pattern, order, kernels.
pub(super) struct Factorisation {
    pub(super) pattern: Arc<FillPattern>,
    pub(super) block_size: usize,
    pub(super) lower: DevicePattern,
    pub(super) upper: DevicePattern,
    order: CudaSlice<u32>,
    /// Epoch in which each row was last finished.
    ready: CudaSlice<u32>,
    epoch: u32,
    /// Seconds of the last run of the kernel.
    pub(super) seconds: f64,
    absent: CudaSlice<u32>,
    scatter: CudaFunction,
    factor: CudaFunction,
    config: LaunchConfig,
}

/// No singular block.
const REGULAR: u64 = u64::MAX;

impl Factorisation {
    /// `forward` is the schedule of the forward solve.
    pub(super) fn new(
        d: &Device,
        pattern: &Arc<FillPattern>,
        forward: &Schedule,
        block_size: usize,
    ) -> Result<Self> {
        let factor = d.kernel(&ILU, block_size, "factor")?;
        let config = launch_config(d, &factor, block_size, pattern.rows())?;
        Ok(Self {
            pattern: Arc::clone(pattern),
            block_size,
            lower: DevicePattern::new(d, &pattern.lower)?,
            upper: DevicePattern::new(d, &pattern.upper)?,
            order: d.copied(&forward.rows)?,
            ready: d.zeros(pattern.rows())?,
            epoch: 0,
            seconds: f64::NAN,
            absent: d.copied(&pattern.no_diagonal)?,
            scatter: d.kernel(&ILU, block_size, "scatter")?,
            factor,
            config,
        })
    }

    /// Factors of `a`; see [`crate::backend::Backend::ilu_factor`]. The inner result tells of a
    /// singular block.
    pub(super) fn run(
        &mut self,
        d: &Device,
        a: &Csr,
        shift: f64,
    ) -> Result<Result<Factors, SingularBlock>> {
        let fault = |e: DriverError| failed("factorisation", e);
        let bb = self.block_size * self.block_size;
        let rows = self.pattern.rows();
        let values = Factors {
            lower: d.zeros(self.pattern.lower.entries() * bb)?,
            diagonal: d.zeros(rows * bb)?,
            upper: d.zeros(self.pattern.upper.entries() * bb)?,
        };
        let factors = FactorsArg {
            lower: address(&values.lower),
            diagonal: address(&values.diagonal),
            upper: address(&values.upper),
        };
        let (lower, upper) = (self.lower.argument(), self.upper.argument());
        {
            let (row_ptr, col_ind) = (d.copied(a.row_ptr())?, d.copied(a.col_ind())?);
            let (val, n) = (d.copied(a.values())?, a.rows() as u32);
            let config = grid(a.rows().div_ceil(256), 256);
            launch!(
                d, &self.scatter, config; n, row_ptr, col_ind, val, shift, lower, upper, factors
            )
            .map_err(fault)?;
        }
        self.epoch += 1;
        let error = d.copied(&[REGULAR])?;
        let (n, n_absent) = (rows as u32, self.pattern.no_diagonal.len() as u32);
        self.seconds = d.time(|| {
            launch!(
                cooperative d, &self.factor, self.config;
                n, self.order, lower, upper, factors, self.ready, self.epoch,
                self.absent, n_absent, shift, error
            )
            .map_err(fault)
        })?;
        let found = d.host(&error)?[0];
        if found == REGULAR {
            return Ok(Ok(values));
        }
        let row = (found >> 32) as usize;
        let block = values.diagonal.slice(row * bb..=row * bb);
        let mut pivot = [0.0];
        d.stream().memcpy_dtoh(&block, &mut pivot).map_err(fault)?;
        d.stream().synchronize().map_err(fault)?;
        let absent = self.pattern.no_diagonal.binary_search(&(row as u32)).is_ok();
        Ok(Err(SingularBlock { row, within: found as u32 as usize, pivot: pivot[0], absent }))
    }
}

/// All thread blocks resident, and no more than there are rows.
fn launch_config(
    d: &Device,
    factor: &CudaFunction,
    block_size: usize,
    rows: usize,
) -> Result<LaunchConfig> {
    use cudarc::driver::sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let module = d.module(&ILU, block_size)?;
    let fault = |e: DriverError| failed("cannot prepare the factorisation", e);
    let mut numbers = [0u32; 3];
    let mut bytes = [0u8; 12];
    let global = module.get_global("factor_launch", d.stream()).map_err(fault)?;
    d.stream().memcpy_dtoh(&global, &mut bytes).map_err(fault)?;
    d.stream().synchronize().map_err(fault)?;
    for (n, b) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
        *n = u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
    }
    let [threads, teams, shared] = numbers;
    factor
        .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
        .map_err(fault)?;
    let resident = d.resident(factor, threads, shared)?;
    let wanted = rows.div_ceil(teams as usize).max(1) as u32;
    Ok(LaunchConfig {
        grid_dim: (resident.min(wanted), 1, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: shared,
    })
}
