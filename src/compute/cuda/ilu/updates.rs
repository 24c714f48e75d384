//! The updates of a factorisation, listed once for a pattern (`kernels/ilu/rows.cu`).

use cudarc::driver::{CudaSlice, DriverError};

use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::cuda::analysis::Rows;
use crate::compute::cuda::compressed::{counts, starts};
use crate::compute::cuda::device::{Device, WARP, grid};
use crate::compute::cuda::launch::launch;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::{ILU, Variant};
use crate::compute::cuda::storage::DevicePattern;

/// Blocks of a row that an update can number.
const MOST_BLOCKS: usize = 0xffff;

/// Jobs of a row that are told apart.
const MOST_COMMON: usize = 1 << 14;

/// Block rows that a thread block of the kernels lists.
const ROWS_PER_BLOCK: usize = 256 / WARP;

/// Jobs of the rows and their updates, on the device.
pub(super) struct Updates {
    /// Jobs of the rows before each row, and all.
    pub(super) first: CudaSlice<u32>,
    pub(super) list: CudaSlice<[u32; 2]>,
    /// Updates of the longest row but a hundredth of all.
    pub(super) common: usize,
}

impl Updates {
    /// Lists them for a `variant` of `ilu/rows.cu` that makes `width` updates at once. `None` when a row
    /// has too many blocks for it, or the list would take more than a quarter of the free memory.
    pub(super) fn new(
        d: &Device,
        variant: &Variant,
        width: usize,
        like: Rows,
        [lower, upper]: [&DevicePattern; 2],
    ) -> Result<Option<Self>> {
        let rows = like.count();
        if !Threads::Pool.all(rows, 4096, |i| like.length(i) < MOST_BLOCKS) {
            return Ok(None);
        }
        let fault = |e: DriverError| failed("cannot list the updates", e);
        let (l, u, n) = (lower.argument(), upper.argument(), rows as u32);
        let config = grid(rows.div_ceil(ROWS_PER_BLOCK), 256);
        let jobs = d.zeros::<u32>(rows)?;
        let count = d.kernel(&ILU, variant.clone(), "count_jobs")?;
        launch!(d, &count, config; n, l, u, jobs).map_err(fault)?;
        let (first, all) = starts(d, rows, &jobs)?;
        if all > u32::MAX as usize {
            return Ok(None);
        }
        let all = all * width;
        if 8 * all > (d.memory()?.free / 4).min(d.limits().update_bytes) {
            return Ok(None);
        }
        // of longer ones there is no room in shared memory
        let common = common(&d.host(&counts(d, rows, &jobs, MOST_COMMON)?)?) * width;
        let new = Self { first, list: d.alloc(all)?, common };
        let kernel = d.kernel(&ILU, variant.clone(), "list_jobs")?;
        launch!(d, &kernel, config; n, l, u, new.first, new.list).map_err(fault)?;
        Ok(Some(new))
    }
}

/// The largest number but for a hundredth of all, of which `counts` says how often each occurs.
fn common(counts: &[u32]) -> usize {
    let all: usize = counts.iter().map(|&count| count as usize).sum();
    let mut left = all.saturating_sub(1) * 99 / 100;
    let at = counts.iter().position(|&count| {
        let here = left < count as usize;
        left = left.saturating_sub(count as usize);
        here
    });
    at.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_may_be_longer() {
        let jobs: Vec<usize> = (0..1000).map(|i| i * 7 % 1000).collect();
        for n in [1, 2, 99, 100, 101, 1000] {
            let mut sorted = jobs[..n].to_vec();
            sorted.sort_unstable();
            let mut counts = vec![0; 1000];
            jobs[..n].iter().for_each(|&jobs| counts[jobs] += 1);
            assert_eq!(common(&counts), sorted[(n - 1) * 99 / 100]);
        }
        assert_eq!(common(&[0; 3]), 0);
    }
}
