//! When rows of triangles can be solved for, and lists in order, found on the device (`kernels/setup/symbolic.cu`).

use std::borrow::Cow;
use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::compressed::{THREADS, by_threads, counts, of_lanes, run, starts};
use super::device::{Device, WARP, grid};
use super::launch::{Address, address};
use super::sources::SYMBOLIC;
use super::storage::DevicePattern;
use crate::base::error::Result;
use crate::base::memory;
use crate::symbolic::{Schedule, Stencil};

/// Numbers that a thread block sorts; mirrors `setup/scan.cuh`.
const PART: usize = THREADS as usize * 8;

/// A kernel for which groups of threads do not matter.
pub(super) fn plain(d: &Device, name: &str) -> Result<CudaFunction> {
    d.kernel(&SYMBOLIC, of_lanes(8), name)
}

/// Threads that look at what a row needs; mirrors `setup/symbolic.cu`.
const LOOKING: usize = 4;

/// When each row of a triangle can be solved for: one step after the last row that it needs, or more after one of
/// another part.
pub(super) struct Waiting {
    pub(super) time: CudaSlice<u32>,
    /// The largest.
    pub(super) last: u32,
}

impl Waiting {
    /// With the part of each row, and the steps from one part to another, where there are parts; and the rows of
    /// lines in which each needs the one before, where all are.
    pub(super) fn new(
        d: &Device,
        p: &DevicePattern,
        backward: bool,
        parts: Option<(&CudaSlice<u32>, u32)>,
        line: Option<usize>,
    ) -> Result<Self> {
        let n = p.row_ptr.len() - 1;
        let mut time = d.alloc::<u32>(n)?;
        d.mark_absent(&mut time)?;
        let (taken, steps) = (d.zeros::<u32>(1)?, d.zeros::<u32>(1)?);
        let (rows, backward) = (n as u32, u32::from(backward));
        let (part, crossing) = parts.map_or((0, 1), |(part, crossing)| (address(part), crossing));
        let (row_ptr, col_ind) = (&p.row_ptr, &p.col_ind);
        if let Some(line) = line.filter(|line| n.is_multiple_of(*line)) {
            let (find, config) = (plain(d, "find_levels_of_lines")?, by_threads(n / line * WARP));
            let line = line as u32;
            run!(d, find, config; rows, line, *row_ptr, *col_ind, backward, part, crossing, time, taken, steps);
        } else {
            let (find, config) = (plain(d, "find_levels")?, by_threads(n * LOOKING));
            run!(d, find, config; rows, *row_ptr, *col_ind, backward, part, crossing, time, taken, steps);
        }
        Ok(Self { time, last: d.host(&steps)?[0].saturating_sub(1) })
    }
}

/// Rows step by step, each of which needs rows of earlier steps alone.
pub(super) struct Steps {
    /// The step of each row.
    pub(super) of_rows: Waiting,
    /// Rows, step by step, in increasing order within a step.
    order: CudaSlice<u32>,
    /// Start of each step in `order`, and the end of the last.
    starts: CudaSlice<u32>,
    rows: usize,
    pub(super) count: usize,
}

impl Steps {
    /// Those of the solve with a triangle: its levels.
    pub(super) fn new(
        d: &Device,
        p: &DevicePattern,
        backward: bool,
        line: Option<usize>,
    ) -> Result<Self> {
        let of_rows = Waiting::new(d, p, backward, None, line)?;
        Self::sorted(d, p.row_ptr.len() - 1, of_rows)
    }

    /// Those of the shortest march over a strictly lower triangle with this stencil: at least as many as it has levels.
    pub(super) fn of_march(d: &Device, stencil: &Stencil) -> Result<Self> {
        let (march, [nx, ny, nz]) = (stencil.shortest_march(), stencil.extents);
        let lines = (0..nz).flat_map(|z| (0..ny).map(move |y| (y, z)));
        let first =
            |(y, z): (usize, usize)| march.skew((y + march.shear * z) as i32, z as i32) as u32;
        let first = d.copied(&lines.map(first).collect::<Vec<u32>>())?;
        let n = nx * ny * nz;
        let (time, rows, line) = (d.alloc::<u32>(n)?, n as u32, nx as u32);
        run!(d, plain(d, "find_steps_of_march")?, by_threads(n); rows, line, first, time);
        Self::sorted(d, n, Waiting { time, last: march.levels(stencil.extents) as u32 - 1 })
    }

    fn sorted(d: &Device, rows: usize, of_rows: Waiting) -> Result<Self> {
        let Waiting { time, last } = &of_rows;
        let count = if rows > 0 { *last as usize + 1 } else { 0 };
        let (starts, _) = starts(d, count, &counts(d, rows, time, *last as usize)?)?;
        let order = sorted(d, rows, time, *last, None)?;
        Ok(Self { of_rows, order, starts, rows, count })
    }

    /// On the host.
    pub(super) fn schedule(&self, d: &Device) -> Result<Schedule> {
        Ok(Schedule {
            rows: d.host_part(&self.order, self.rows)?,
            level_ptr: d.host(&self.starts)?,
        })
    }

    /// The rows, each step filled up to whole groups by rows that are [`NONE`]; and how many these are together.
    pub(super) fn in_groups(&self, d: &Device, group: usize) -> Result<(CudaSlice<u32>, usize)> {
        let starts = d.host(&self.starts)?;
        let mut to = Vec::with_capacity(starts.len());
        let mut all = 0;
        for step in starts.windows(2) {
            to.push(all as u32);
            all += ((step[1] - step[0]) as usize).next_multiple_of(group);
        }
        let (to, mut spread) = (d.copied(&to)?, d.alloc::<u32>(all)?);
        d.mark_absent(&mut spread)?;
        let (spreading, config, rows) =
            (plain(d, "spread_steps")?, by_threads(self.rows), self.rows as u32);
        run!(d, spreading, config; rows, self.order, self.of_rows.time, self.starts, to, spread);
        Ok((spread, all))
    }
}

/// The list, or without one 0, 1, 2 and so on, sorted by keys of up to `most`; the order among equals is kept.
pub(super) fn sorted(
    d: &Device,
    n: usize,
    key: &CudaSlice<u32>,
    most: u32,
    list: Option<&CudaSlice<u32>>,
) -> Result<CudaSlice<u32>> {
    let mut order = by_digit(d, n, key, list, 0)?;
    for shift in (8..u32::BITS).step_by(8).take_while(|&shift| most >> shift > 0) {
        order = by_digit(d, n, key, Some(&order), shift)?;
    }
    Ok(order)
}

/// The list, or without one 0, 1, 2 and so on, sorted by 8 bits of the keys; the order among equals is kept.
fn by_digit(
    d: &Device,
    n: usize,
    key: &CudaSlice<u32>,
    order: Option<&CudaSlice<u32>>,
    shift: u32,
) -> Result<CudaSlice<u32>> {
    let parts = n.div_ceil(PART).max(1);
    let (count, moved) = (d.alloc::<u32>(256 * parts)?, d.alloc::<u32>(n)?);
    let (n, config) = (n as u32, grid(parts, THREADS));
    let order: Address = order.map_or(0, address);
    run!(d, plain(d, "count_digits")?, config; n, *key, order, shift, count);
    let (start, _) = starts(d, 256 * parts, &count)?;
    run!(d, plain(d, "move_by_digits")?, config; n, *key, order, shift, start, moved);
    Ok(moved)
}

/// Fills up the last group of a step.
const NONE: u32 = u32::MAX;

/// Rows step by step, where they are known.
pub(super) enum Order<'a> {
    /// On the host.
    Host(Cow<'a, Schedule>),
    /// On the device.
    Device(Rc<Steps>),
}

impl Order<'_> {
    /// Steps of the rows.
    pub(super) fn levels(&self) -> usize {
        match self {
            Self::Host(schedule) => schedule.levels(),
            Self::Device(steps) => steps.count,
        }
    }

    /// The rows on the device, each step filled up to whole groups by rows that are [`NONE`]; and how many these are
    /// together.
    pub(super) fn in_groups(&self, d: &Device, group: usize) -> Result<(CudaSlice<u32>, usize)> {
        match self {
            Self::Host(schedule) => {
                let order = grouped(schedule, group);
                Ok((d.copied(&order)?, order.len()))
            }
            Self::Device(steps) => steps.in_groups(d, group),
        }
    }
}

/// Rows level by level, each level filled up to whole groups.
fn grouped(schedule: &Schedule, group: usize) -> Vec<u32> {
    /// Rows that a thread copies.
    const PART: usize = 1 << 14;
    let none = vec![NONE; group];
    let mut parts: Vec<&[u32]> = Vec::new();
    for level in 0..schedule.levels() {
        let rows = schedule.level(level);
        parts.extend(rows.chunks(PART));
        parts.push(&none[..rows.len().next_multiple_of(group) - rows.len()]);
    }
    memory::joined(&parts, schedule.levels() < schedule.rows.len() / PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_filled_up_to_whole_groups() {
        let schedule = Schedule { rows: vec![0, 2, 4, 1, 3], level_ptr: vec![0, 3, 5] };
        assert_eq!(grouped(&schedule, 1), schedule.rows);
        assert_eq!(grouped(&schedule, 4), [0, 2, 4, NONE, 1, 3, NONE, NONE]);
    }
}
