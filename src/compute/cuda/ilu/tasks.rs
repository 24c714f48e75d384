//! In which order the rows of a factorisation are taken, and where each is held meanwhile
//! (`kernels/ilu/rows.cu`).

use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig};

use super::updates::Updates;
use crate::base::error::Result;
use crate::compute::cuda::analysis;
use crate::compute::cuda::compressed::Compressed;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{RowsArg, address, launch};
use crate::compute::cuda::layout::shared;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::schedules::Order;
use crate::compute::cuda::sources::{ILU, Variant};
use crate::compute::cuda::storage::DevicePattern;

/// Bytes that the driver keeps of each thread block's shared memory.
const RESERVED: usize = 1024;

/// How a variant of the kernel is launched: `factor_launch` of `ilu/rows.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    /// Threads of a thread block.
    threads: usize,
    /// Rows that a thread block works on at a time.
    rows: usize,
    /// Rows that a warp works on at a time; they must be of one level.
    group: usize,
    /// Numbers of a block in work.
    block: usize,
    /// Bytes of shared memory besides the rows.
    scratch: usize,
    /// Updates of a job.
    pub(super) width: usize,
}

impl Launch {
    pub(super) fn of(d: &Device, variant: &Variant) -> Result<Self> {
        let numbers = d.constants::<6>(&ILU, variant.clone(), "factor_launch")?;
        let number = |n: usize| numbers[n] as usize;
        Ok(Self {
            threads: number(0),
            rows: number(1),
            group: number(2),
            block: number(3),
            scratch: number(4),
            width: number(5),
        })
    }

    /// Blocks for which each row of a thread block finds room in `bytes` of shared memory.
    fn room(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.scratch) / (8 * self.block * self.rows)
    }

    /// Bytes of shared memory for rows of up to `held` blocks with `listed` updates.
    fn bytes(&self, held: usize, listed: usize) -> usize {
        self.scratch + 8 * self.rows * (self.block * held + listed)
    }
}

/// Blocks of the longest row that is worked on in shared memory: of lengths, all but the longest
/// hundredth, where all would leave room for fewer than `several` thread blocks; at most `most`. And of the longest row.
fn held(
    rows: usize,
    length: impl Fn(usize) -> usize + Sync,
    several: usize,
    most: usize,
) -> [usize; 2] {
    let [common, longest] = analysis::lengths(rows, length, rows.saturating_sub(1) * 99 / 100 + 1);
    [common.max(several).min(most).min(longest), longest]
}

/// Words that tell a thread block about a row.
const TASK: usize = 12;

shared! { words [u32; TASK] = "Task" of "ilu/rows.cuh"; }

/// What is known of the rows, in the order in which they are taken, and where they are held.
pub(super) struct Rows {
    tasks: CudaSlice<[u32; TASK]>,
    count: usize,
    held: usize,
    listed: usize,
    /// Blocks of the rows that are not held in shared memory.
    spilled_blocks: usize,
    block: usize,
    place_entries: CudaFunction,
}

impl Rows {
    /// `variant` is that of `launch` and `updates`; the pattern on the device is in `lower` and
    /// `upper`.
    pub(super) fn new(
        d: &Device,
        variant: &Variant,
        like: analysis::Rows,
        order: &Order,
        launch: &Launch,
        updates: Option<&Updates>,
        [lower, upper]: [&DevicePattern; 2],
    ) -> Result<Self> {
        let (rows, length) = (like.count(), |i: usize| like.length(i));
        let (order, count) = order.in_groups(d, launch.group)?;
        let bytes = d.shared_for_values();
        // rows that are done quickly want several thread blocks, of which one works while others wait
        let several = if updates.is_some() { 4 } else { 1 };
        let part = ((bytes + RESERVED) / several).saturating_sub(RESERVED);
        let [held, longest] = held(rows, length, launch.room(part), launch.room(bytes));
        // even, so that pairs of numbers behind the list are aligned
        let common = updates.map_or(0, |u| u.common.next_multiple_of(2));
        let listed = if launch.bytes(held, common) <= part.max(bytes / 2) { common } else { 0 };
        let mut spilled = Vec::new();
        let mut spilled_blocks = 0;
        if longest > held {
            spilled = vec![0; rows];
            for (i, start) in spilled.iter_mut().enumerate() {
                *start = spilled_blocks as u32;
                spilled_blocks += if length(i) > held { length(i) } else { 0 };
            }
        }
        let tasks = d.alloc(count)?;
        let kernel = d.kernel(&ILU, variant.clone(), "list_tasks")?;
        let (count, config) = (count as u32, grid(count.div_ceil(256), 256));
        let spilled_at = d.copied(&spilled)?;
        let first_job = updates.map_or(0, |u| address(&u.first));
        let spilled = if spilled.is_empty() { 0 } else { address(&spilled_at) };
        let (l, u) = (lower.argument(), upper.argument());
        launch!(d, &kernel, config; count, order, l, u, first_job, spilled, tasks)
            .map_err(|e| failed("cannot list the rows", e))?;
        Ok(Self {
            tasks,
            count: count as usize,
            held,
            listed,
            spilled_blocks,
            block: launch.block,
            place_entries: d.kernel(&ILU, variant.clone(), "place_entries")?,
        })
    }

    /// Where in the rows the entries of `a` go.
    pub(super) fn places(
        &self,
        d: &Device,
        a: &Compressed,
        [lower, upper]: [&DevicePattern; 2],
    ) -> Result<CudaSlice<u32>> {
        let place = d.alloc::<u32>(a.entries)?;
        let DevicePattern { row_ptr, col_ind } = &*a.pattern;
        let (count, config) = (self.count as u32, grid(self.count.div_ceil(256 / 32), 256));
        let (l, u) = (lower.argument(), upper.argument());
        launch!(d, &self.place_entries, config; count, self.tasks, *row_ptr, *col_ind, l, u, place)
            .map_err(|e| failed("cannot place the entries", e))?;
        Ok(place)
    }

    /// Numbers of the memory in which the other rows are held.
    pub(super) fn spilled_numbers(&self) -> usize {
        self.spilled_blocks * self.block
    }

    /// `spill` has room for [`spilled_numbers`](Self::spilled_numbers).
    pub(super) fn argument(&self, spill: &CudaSlice<f64>) -> RowsArg {
        RowsArg {
            task: address(&self.tasks),
            count: self.count as u32,
            held: self.held as u32,
            listed: self.listed as u32,
            spill: address(spill),
        }
    }

    /// All thread blocks resident, and no more than there is work for.
    pub(super) fn config(
        &self,
        d: &Device,
        factor: &CudaFunction,
        launch: &Launch,
    ) -> Result<LaunchConfig> {
        use cudarc::driver::sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let (threads, shared) =
            (launch.threads as u32, launch.bytes(self.held, self.listed) as u32);
        factor
            .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
            .map_err(|e| failed("cannot prepare the factorisation", e))?;
        let wanted = self.count.div_ceil(launch.rows).max(1) as u32;
        Ok(LaunchConfig {
            grid_dim: (d.resident(factor, threads, shared)?.min(wanted), 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: shared,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_for_common_rows() {
        let lengths = |longest| move |i| if i == 7 { longest } else { 5 };
        assert_eq!(held(200, lengths(20), 20, 80), [20, 20]);
        // the one long row finds its place elsewhere; the room of several is there anyway
        assert_eq!(held(200, lengths(21), 20, 80), [20, 21]);
        assert_eq!(held(9, |_| 50, 20, 80), [50, 50]);
        assert_eq!(held(9, |_| 90, 20, 80), [80, 90]);
        assert_eq!(held(200, |i| i + 1, 20, 500), [198, 200]);
        assert_eq!(held(0, |_| 5, 20, 80), [0, 0]);
    }
}
