//! When rows of triangles can be solved for, and lists in order, found on the device (`kernels/setup/symbolic.cu`).

use cudarc::driver::{CudaFunction, CudaSlice};

use super::compressed::{THREADS, by_threads, counts, of_lanes, run, starts};
use super::device::{Device, grid};
use super::launch::{Address, address};
use super::sources::SYMBOLIC;
use super::storage::DevicePattern;
use crate::base::error::Result;
use crate::symbolic::Schedule;

/// Numbers that a thread block sorts; mirrors `setup/scan.cuh`.
const PART: usize = THREADS as usize * 8;

/// A kernel for which groups of threads do not matter.
pub(super) fn plain(d: &Device, name: &str) -> Result<CudaFunction> {
    d.kernel(&SYMBOLIC, of_lanes(8), name)
}

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
            let (find, config) = (plain(d, "find_levels_of_lines")?, by_threads(n / line * 32));
            let line = line as u32;
            run!(d, find, config; rows, line, *row_ptr, *col_ind, backward, part, crossing, time, taken, steps);
        } else {
            let (find, config) = (plain(d, "find_levels")?, by_threads(n));
            run!(d, find, config; rows, *row_ptr, *col_ind, backward, part, crossing, time, taken, steps);
        }
        Ok(Self { time, last: d.host(&steps)?[0].saturating_sub(1) })
    }
}

/// The schedule of the solve with a triangle.
pub(super) fn schedule(
    d: &Device,
    p: &DevicePattern,
    backward: bool,
    line: Option<usize>,
) -> Result<Schedule> {
    let n = p.row_ptr.len() - 1;
    let Waiting { time, last } = Waiting::new(d, p, backward, None, line)?;
    let levels = if n > 0 { last as usize + 1 } else { 0 };
    let (level_ptr, _) = starts(d, levels, &counts(d, n, &time, last as usize)?)?;
    let order = sorted(d, n, &time, last, None)?;
    Ok(Schedule { rows: d.host_part(&order, n)?, level_ptr: d.host(&level_ptr)? })
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
