//! Triangular factors in the order in which a solve reads them (`kernels/sptrsv/slices.cu`).

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::partition::{SlicesOfSteps, Strict, triangles};
use super::{System, prepared};
use crate::base::error::{Error, Result};
use crate::compute::cuda::Cuda;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{SlicesArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Numbers;
use crate::compute::cuda::schedules::Steps;
use crate::compute::cuda::sources::{TRSV, Variant};
use crate::compute::cuda::symbolic::Place;
use crate::symbolic::{FillPattern, Schedule};

/// Threads of a block and slices it works on; mirrors `sptrsv/slices.cu`.
pub(super) const THREADS: u32 = 128;
pub(super) const SLICES_PER_BLOCK: usize = THREADS as usize / 32;

/// Block rows of one level, as many as a warp holds: the plan of the slices of a slices.
struct Plan {
    order: Vec<u32>,
    first: Vec<u32>,
    start: Vec<u32>,
    length: Vec<u32>,
    /// Start of each level in the slices, and one past the last.
    levels: Vec<u32>,
    /// Stored blocks, those that fill up short rows included.
    blocks: usize,
}

impl Plan {
    /// `rows` of each slice at most; `entries(i)` blocks in row i.
    fn new(schedule: &Schedule, rows: usize, entries: impl Fn(u32) -> u32) -> Result<Self> {
        let mut order = schedule.rows.clone();
        let (mut first, mut start, mut length) = (vec![0], Vec::new(), Vec::new());
        let mut levels = vec![0];
        let mut blocks = 0;
        for level in schedule.level_ptr.windows(2) {
            let range = level[0] as usize..level[1] as usize;
            // rows of like length share a slice; equal ones stay in order, near each other in memory
            order[range.clone()].sort_by_key(|&i| entries(i));
            for slice in order[range].chunks(rows) {
                let longest = slice.last().map_or(0, |&i| entries(i));
                let at = u32::try_from(blocks)
                    .map_err(|_| Error::memory("a factor has more than 2^32 blocks"))?;
                start.push(at);
                length.push(longest);
                blocks += longest as usize * slice.len();
                first.push(first[first.len() - 1] + slice.len() as u32);
            }
            levels.push(length.len() as u32);
        }
        Ok(Self { order, first, start, length, levels, blocks })
    }
}

/// A strictly triangular factor on the device.
pub(super) struct Slices {
    order: CudaSlice<u32>,
    first: CudaSlice<u32>,
    start: CudaSlice<u32>,
    length: CudaSlice<u32>,
    col_ind: CudaSlice<u32>,
    val: Numbers,
    gate: CudaSlice<u32>,
    fill_values: CudaFunction,
    /// Blocks of the pattern are taken apart to blocks this many times smaller.
    spread: u32,
    /// Whether rows are taken from their end: 1 or 0.
    backward: u32,
    /// Slices.
    pub(super) count: usize,
    pub(super) levels: Vec<u32>,
    /// Most blocks of a row.
    pub(super) longest: usize,
}

impl Slices {
    /// Both triangles on plans of the host, their blocks taken apart to blocks `spread` times smaller.
    pub(super) fn both(s: &System, spread: usize) -> Result<[Self; 2]> {
        Ok([Self::new(s, spread, false)?, Self::new(s, spread, true)?])
    }

    /// Both triangles on plans that the device makes where it finds the steps; none has levels then.
    pub(super) fn by_steps(s: &System) -> Result<[Self; 2]> {
        let (d, f) = (s.device, s.structure);
        let Some(steps) = s.analysis.steps(d, f)? else { return Self::both(s, 1) };
        let rows = (32 / f.block_size).max(1);
        let of = |triangle: Strict, steps: &Steps| {
            let plan = d.span("slices", || triangle.slices_of_steps(steps, rows))?;
            Self::of(s, 1, triangle.backward, plan, Vec::new())
        };
        let [lower, upper] = triangles(d, (s.analysis, f));
        Ok([of(lower, &steps[0])?, of(upper, &steps[1])?])
    }

    /// L, or U' for a `backward` solve, on a plan of the host. A `spread` is 1, or the block size.
    fn new(s: &System, spread: usize, backward: bool) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let pattern = if backward { &f.pattern.upper } else { &f.pattern.lower };
        let (pattern, block_size) = (pattern.view(), f.block_size / spread);
        let schedule = &s.analysis.schedules()[usize::from(backward)];
        assert!(spread == 1 || block_size == 1);
        let rows = (32 / block_size).max(1);
        let plan = if spread == 1 {
            Plan::new(schedule, rows, |i| pattern.range(i as usize).len() as u32)?
        } else {
            let point = spread_schedule(schedule, spread as u32);
            let s = spread as u32;
            Plan::new(&point, rows, |i| pattern.range((i / s) as usize).len() as u32 * s)?
        };
        let on_device = SlicesOfSteps {
            order: d.copied(&plan.order)?,
            first: d.copied(&plan.first)?,
            start: d.copied(&plan.start)?,
            length: d.copied(&plan.length)?,
            count: plan.length.len(),
            blocks: plan.blocks,
            longest: plan.length.iter().copied().max().unwrap_or(0) as usize,
        };
        Self::of(s, spread, backward, on_device, plan.levels)
    }

    /// On a plan, with columns; those of a `backward` solve keep the entries of a row from its end.
    fn of(
        s: &System,
        spread: usize,
        backward: bool,
        plan: SlicesOfSteps,
        levels: Vec<u32>,
    ) -> Result<Self> {
        let (d, f, precision) = (s.device, s.structure, s.precision);
        let on_device = if backward { &f.upper } else { &f.lower };
        let block_size = f.block_size / spread;
        let variant = || Variant::from(block_size).storing(precision);
        let slices = Self {
            order: plan.order,
            first: plan.first,
            start: plan.start,
            length: plan.length,
            col_ind: d.alloc(plan.blocks)?,
            val: Numbers::alloc(d, plan.blocks * block_size * block_size, precision)?,
            gate: d.alloc(plan.count)?,
            fill_values: d.kernel(&TRSV, variant(), "slice_values")?,
            spread: spread as u32,
            backward: u32::from(backward),
            count: plan.count,
            longest: plan.longest,
            levels,
        };
        let columns = d.kernel(&TRSV, variant(), "slice_columns")?;
        let (count, arg) = (slices.count as u32, slices.argument());
        launch!(
            d, &columns, grid(slices.count.div_ceil(SLICES_PER_BLOCK), THREADS);
            count, arg, on_device.row_ptr, on_device.col_ind, slices.spread, slices.backward, slices.col_ind, slices.gate
        )
        .map_err(|e| failed("slice_columns", e))?;
        Ok(slices)
    }

    /// Takes over the values of `blocks`, which are in the order of the pattern.
    pub(super) fn set_values(
        &mut self,
        d: &Device,
        row_ptr: &CudaSlice<u32>,
        blocks: &CudaSlice<f64>,
    ) -> Result<()> {
        let (count, arg) = (self.count as u32, self.argument());
        launch!(
            d, &self.fill_values, grid(self.count.div_ceil(SLICES_PER_BLOCK), THREADS);
            count, arg, *row_ptr, *blocks, self.spread, self.backward, self.val.address()
        )
        .map_err(|e| failed("slice_values", e))
    }

    /// Bytes of what a solve reads: rows, columns and numbers, and four words for each slice.
    pub(super) fn bytes(&self) -> usize {
        self.val.bytes() + 4 * (self.col_ind.len() + self.order.len()) + 16 * self.count
    }

    /// For kernels.
    pub(super) fn argument(&self) -> SlicesArg {
        SlicesArg {
            order: address(&self.order),
            first: address(&self.first),
            start: address(&self.start),
            length: address(&self.length),
            col_ind: address(&self.col_ind),
            val: self.val.address(),
            gate: address(&self.gate),
        }
    }
}

impl Cuda {
    /// Plans of solves by slices of one step each: the arrays of both triangles and the order of the forward solve in
    /// groups of four rows, as the device makes them, and as the host does.
    ///
    /// # Errors
    /// When the device fails or has too little memory.
    pub fn plans_of_slices(&self, pattern: &Arc<FillPattern>) -> Result<[Vec<Vec<u32>>; 2]> {
        let d = self.gpu();
        let there = self.triangles_of(pattern);
        let made = |plans: Place| {
            prepared(self, pattern, there.clone(), (plans, false), |s| {
                let mut all = Vec::new();
                for slices in Slices::by_steps(s)? {
                    let count = slices.count;
                    all.push(vec![count as u32, slices.longest as u32]);
                    all.push(d.host_part(&slices.order, pattern.rows())?);
                    all.push(d.host_part(&slices.first, count + 1)?);
                    all.push(d.host_part(&slices.start, count)?);
                    all.push(d.host_part(&slices.length, count)?);
                    all.push(d.host_part(&slices.col_ind, slices.col_ind.len())?);
                }
                let order = s.analysis.order_of_levels(d, s.structure)?;
                let (order, count) = order.in_groups(d, 4)?;
                all.push(d.host_part(&order, count)?);
                Ok(all)
            })
        };
        Ok([made(Place::Device)?, made(Place::Host)?])
    }
}

/// The schedule of the scalar rows of block rows: all rows of a block are in its level.
fn spread_schedule(schedule: &Schedule, spread: u32) -> Schedule {
    Schedule {
        rows: schedule.rows.iter().flat_map(|&i| i * spread..(i + 1) * spread).collect(),
        level_ptr: schedule.level_ptr.iter().map(|&p| p * spread).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_to_levels_and_sort_by_length() {
        let schedule = Schedule { rows: vec![0, 2, 4, 1, 3], level_ptr: vec![0, 3, 5] };
        let lengths = [3, 1, 0, 2, 1];
        let plan = Plan::new(&schedule, 2, |i| lengths[i as usize]).unwrap();
        assert_eq!(plan.order, [2, 4, 0, 1, 3]);
        assert_eq!(plan.first, [0, 2, 3, 5]);
        assert_eq!(plan.length, [1, 3, 2]);
        assert_eq!(plan.start, [0, 2, 5]);
        assert_eq!((plan.levels, plan.blocks), (vec![0, 2, 3], 9));
    }

    #[test]
    fn scalar_rows_of_a_block_row_share_its_level() {
        let schedule = Schedule { rows: vec![1, 0], level_ptr: vec![0, 1, 2] };
        let point = spread_schedule(&schedule, 2);
        assert_eq!((point.rows, point.level_ptr), (vec![2, 3, 0, 1], vec![0, 2, 4]));
    }
}
