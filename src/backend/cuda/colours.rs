//! Solves with factors of few levels of many rows each, as colours make them (`kernels/colours.cu`).

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::ffi::c_void;
use std::ops::Range;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, sys};
use rayon::prelude::*;

use super::colour_stream;
use super::device::{Device, failed, grid};
use super::ilu::Factorisation;
use super::launch::{Address, ColourSlicesArg, ColourSweepArg, address, launch};
use super::numbers::{Numbers, Values};
use super::solve::{Solve, System};
use super::sources::{COLOURS, Variant};
use crate::backend::Bytes;
use crate::case::FactorPrecision;
use crate::error::{Error, Result};
use crate::matrix::inverse;
use crate::symbolic::{FillPattern, Pattern, PatternView, Schedule};

/// Threads of a block and slices it works on; mirrors `colours.cu`.
const THREADS: u32 = 128;
const SLICES_PER_BLOCK: usize = THREADS as usize / 32;

/// Most colours that are launched one by one.
pub(super) const FEW: usize = 32;

/// Colours up to which vectors stay in their own order: a launch then reads both colours, and with them
/// whole sectors. With more of them each launch would leave most of a sector unused.
const IN_PLACE: usize = 2;

/// Compute capability at which a launch may begin before the one before it has ended.
const EARLY_ARCH: (i32, i32) = (9, 0);

/// How a slice stores columns; mirrors `colours.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Wide,
    Uniform,
    Near,
}

/// The same of an entry that is not there.
const NONE: u32 = u32::MAX;
const NOT_NEAR: u16 = u16::MAX;

/// Rows colour by colour, in slices.
pub(super) struct Plan {
    /// Row of the factors at each position.
    pub(super) rows: Vec<u32>,
    /// First position of each slice, and one past the last.
    pub(super) first: Vec<u32>,
    /// First slice of each colour, and one past the last.
    pub(super) colours: Vec<u32>,
}

impl Plan {
    /// Rows of like length in both triangles share a slice of `size` rows at most; equal ones stay in order,
    /// near each other in memory.
    pub(super) fn new(schedule: &Schedule, pattern: &FillPattern, size: usize) -> Self {
        let (lower, upper) = (pattern.lower.view(), pattern.upper.view());
        let lengths = |&i: &u32| [lower, upper].map(|t| t.range(i as usize).len());
        let mut rows = schedule.rows.clone();
        let (mut first, mut colours) = (vec![0], vec![0]);
        for l in 0..schedule.levels() {
            let range = schedule.level_ptr[l] as usize..schedule.level_ptr[l + 1] as usize;
            let of_colour = &mut rows[range.clone()];
            if !of_colour.par_windows(2).all(|two| lengths(&two[0]) <= lengths(&two[1])) {
                of_colour.par_sort_by_key(lengths);
            }
            first.extend(range.clone().step_by(size).skip(1).map(|p| p as u32));
            first.push(range.end as u32);
            colours.push(first.len() as u32 - 1);
        }
        Self { rows, first, colours }
    }

    pub(super) fn slices(&self) -> usize {
        self.first.len() - 1
    }

    /// Positions of a slice.
    pub(super) fn slice(&self, s: usize) -> Range<usize> {
        self.first[s] as usize..self.first[s + 1] as usize
    }
}

/// Where a triangle's blocks and columns lie: as in `colours.cu`.
#[derive(Default)]
pub(super) struct Layout {
    start: Vec<u32>,
    pub(super) shape: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) index: Vec<u32>,
    /// Stored blocks, those that fill up short rows included.
    blocks: usize,
}

impl Layout {
    /// `number` is that of each row of the factors in the vector that is multiplied.
    pub(super) fn new(plan: &Plan, triangle: PatternView, number: &[u32]) -> Result<Self> {
        /// Slices that a task lays out.
        const TASK: usize = 512;
        let tasks = plan.slices().div_ceil(TASK);
        let parts: Vec<(Vec<u32>, Vec<u32>, Vec<u32>)> = (0..tasks)
            .into_par_iter()
            .map(|task| {
                let (mut shape, mut ends, mut index) = (Vec::new(), Vec::new(), Vec::new());
                for s in task * TASK..((task + 1) * TASK).min(plan.slices()) {
                    let (length, kind) =
                        store(&plan.rows[plan.slice(s)], triangle, number, &mut index);
                    shape.push(4 * length + kind as u32);
                    ends.push(index.len() as u32);
                }
                (shape, ends, index)
            })
            .collect();
        let mut all = Self::default();
        let too_many = |_| Error::memory("a factor has more than 2^32 blocks");
        for (shape, ends, index) in parts {
            let base = u32::try_from(all.index.len()).map_err(too_many)?;
            all.columns.push(base);
            all.columns.extend(ends[..ends.len() - 1].iter().map(|end| base + end));
            for shape in shape {
                let s = all.shape.len();
                all.start.push(u32::try_from(all.blocks).map_err(too_many)?);
                all.shape.push(shape);
                all.blocks += plan.slice(s).len() * (shape / 4) as usize;
            }
            all.index.extend(index);
        }
        Ok(all)
    }
}

/// Puts the columns of the `rows` of a slice behind `index`; blocks of the longest row, and how the columns
/// are stored.
fn store(rows: &[u32], triangle: PatternView, number: &[u32], index: &mut Vec<u32>) -> (u32, Kind) {
    let lengths = rows.iter().map(|&i| triangle.range(i as usize).len());
    let length = lengths.clone().max().unwrap_or(0);
    let column = |i: u32, e: usize| triangle.row(i as usize).get(e).map(|&j| number[j as usize]);
    let distance = |i: u32, e: usize| column(i, e).map(|j| j.wrapping_sub(number[i as usize]));
    let alike = |e: usize| rows.iter().all(|&i| distance(i, e) == distance(rows[0], e));
    if lengths.min() == Some(length) && (0..length).all(alike) {
        index.extend((0..length).filter_map(|e| distance(rows[0], e)));
        return (length as u32, Kind::Uniform);
    }
    let of = |e: usize| rows.iter().filter_map(move |&i| column(i, e));
    let least = |e: usize| of(e).min().unwrap_or(0);
    if (0..length).all(|e| of(e).max().unwrap_or(0) - least(e) < u32::from(NOT_NEAR)) {
        index.extend((0..length).map(least));
        let near = (0..length).flat_map(|e| {
            rows.iter().map(move |&i| column(i, e).map_or(NOT_NEAR, |j| (j - least(e)) as u16))
        });
        let near: Vec<u16> = near.collect();
        let two = |two: &[u16]| u32::from(two[0]) | u32::from(*two.get(1).unwrap_or(&0)) << 16;
        index.extend(near.chunks(2).map(two));
        return (length as u32, Kind::Near);
    }
    index.extend((0..length).flat_map(|e| rows.iter().map(move |&i| column(i, e).unwrap_or(NONE))));
    (length as u32, Kind::Wide)
}

/// A triangle on the device.
struct Triangle {
    start: CudaSlice<u32>,
    shape: CudaSlice<u32>,
    columns: CudaSlice<u32>,
    index: CudaSlice<u32>,
    index_len: usize,
    val: Numbers,
}

impl Triangle {
    fn new(d: &Device, layout: &Layout, bb: usize, precision: FactorPrecision) -> Result<Self> {
        Ok(Self {
            start: d.copied(&layout.start)?,
            shape: d.copied(&layout.shape)?,
            columns: d.copied(&layout.columns)?,
            index: d.copied(&layout.index)?,
            index_len: layout.index.len(),
            val: Numbers::alloc(d, layout.blocks * bb, precision)?,
        })
    }
}

/// The parts of a solve.
struct Kernels {
    forward: CudaFunction,
    turn: CudaFunction,
    backward: CudaFunction,
    values: CudaFunction,
    diagonal: CudaFunction,
}

/// A launch for each colour, and two for two of them.
struct Colours {
    kernels: Kernels,
    block_size: usize,
    /// First slice of each colour, and one past the last.
    ends: Vec<u32>,
    rows: usize,
    /// Row of the factors, and of the vectors, at each position.
    factor_row: CudaSlice<u32>,
    row: CudaSlice<u32>,
    first: CudaSlice<u32>,
    triangles: [Triangle; 2],
    /// By position.
    diagonal: Numbers,
    /// A vector by position, where those at hand are not enough.
    x: Option<CudaSlice<f64>>,
    bytes: Bytes,
}

/// For the vectors' order that the system names, and factors of few levels: in one launch where that is
/// faster, or in one for each colour.
pub(super) fn solve(s: &System, order: &[u32]) -> Result<Box<dyn Solve>> {
    let (d, f) = (s.device, s.factorisation);
    let (b, n) = (f.block_size, f.pattern.rows());
    let bb = b * b;
    let plan = Plan::new(&s.analysis.schedules[0], &f.pattern, (32 / b).max(1));
    let row: Vec<u32> = plan.rows.par_iter().map(|&i| order[i as usize]).collect();
    let in_place = plan.colours.len() - 1 <= IN_PLACE;
    let number = if in_place { order.to_vec() } else { inverse(&plan.rows) };
    let layout = |p: &Pattern| Layout::new(&plan, p.view(), &number);
    let (lower, upper) = rayon::join(|| layout(&f.pattern.lower), || layout(&f.pattern.upper));
    let (lower, upper) = (lower?, upper?);
    let layouts = [&lower, &upper];
    if in_place && let Some(both) = colour_stream::solve(s, &plan, layouts, &row)? {
        return Ok(both);
    }
    let triangle = |layout| Triangle::new(d, layout, bb, s.precision);
    let triangles = [triangle(&lower)?, triangle(&upper)?];
    let kernel = |name| d.kernel(&COLOURS, Variant::from(b).storing(s.precision), name);
    // what stands for each slice, and what for each row
    let of_slices = 4 * plan.slices() * (1 + 3 * 2);
    let index: usize = triangles.iter().map(|t| 4 * t.index_len).sum();
    let held = s.precision.bytes() * f.pattern.blocks() * bb + index + of_slices + 4 * n;
    let vectors = if in_place { 2 } else { 4 };
    Ok(Box::new(Colours {
        kernels: Kernels {
            forward: kernel("colour_forward")?,
            turn: kernel("colour_turn")?,
            backward: kernel("colour_backward")?,
            values: kernel("colour_values")?,
            diagonal: kernel("colour_diagonal")?,
        },
        block_size: b,
        rows: n,
        factor_row: d.copied(&plan.rows)?,
        row: d.copied(&row)?,
        first: d.copied(&plan.first)?,
        ends: plan.colours,
        triangles,
        diagonal: Numbers::alloc(d, n * bb, s.precision)?,
        x: (!in_place).then(|| d.alloc(n * b)).transpose()?,
        bytes: Bytes { held, moved: held + vectors * 8 * n * b },
    }))
}

/// Which part of the factors a launch works with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Forward,
    Turn,
    Backward,
}

impl Colours {
    fn slices(&self, triangle: &Triangle) -> ColourSlicesArg {
        ColourSlicesArg {
            row: address(&self.row),
            first: address(&self.first),
            start: address(&triangle.start),
            shape: address(&triangle.shape),
            columns: address(&triangle.columns),
            index: address(&triangle.index),
            val: triangle.val.address(),
        }
    }

    /// All launches of `z = (L D U')^-1 r`.
    fn launch(&self, d: &Device, r: Address, z: Address) -> Result<(), DriverError> {
        let last = self.ends.len() - 2;
        let diagonal = self.diagonal.address();
        let of_r = ColourSweepArg { right: r, right_placed: 1, diagonal, ..Default::default() };
        let Some(x) = self.x.as_ref().map(address) else {
            // y of the first colour is r
            let turn = ColourSweepArg { x: r, x_placed: 1, out: z, ..of_r };
            self.part(d, Part::Turn, last, turn, false)?;
            return match last {
                0 => Ok(()),
                _ => self.part(d, Part::Backward, 0, ColourSweepArg { x: z, ..turn }, true),
            };
        };
        let forward = ColourSweepArg { x, to: x, ..of_r };
        for colour in 0..last {
            self.part(d, Part::Forward, colour, forward, colour > 0)?;
        }
        self.part(d, Part::Turn, last, ColourSweepArg { out: z, ..forward }, true)?;
        for colour in (0..last).rev() {
            // nobody asks for the first colour
            let to = if colour == 0 { 0 } else { x };
            let backward = ColourSweepArg { right: x, right_placed: 0, to, out: z, ..forward };
            self.part(d, Part::Backward, colour, backward, true)?;
        }
        Ok(())
    }

    /// One colour; `early` lets the launch begin before the one before it, which was of the same solve, has
    /// ended.
    fn part(
        &self,
        d: &Device,
        part: Part,
        colour: usize,
        sweep: ColourSweepArg,
        early: bool,
    ) -> Result<(), DriverError> {
        let (kernel, triangle) = match part {
            Part::Forward => (&self.kernels.forward, 0),
            Part::Turn => (&self.kernels.turn, 0),
            Part::Backward => (&self.kernels.backward, 1),
        };
        let (mut begin, mut end) = (self.ends[colour], self.ends[colour + 1]);
        let (mut slices, mut sweep) = (self.slices(&self.triangles[triangle]), sweep);
        let config = grid((end - begin).div_ceil(SLICES_PER_BLOCK as u32) as usize, THREADS);
        if !early || d.arch() < EARLY_ARCH {
            return launch!(d, kernel, config; begin, end, slices, sweep);
        }
        let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
        value.programmaticStreamSerializationAllowed = 1;
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value,
        };
        let config = sys::CUlaunchConfig {
            gridDimX: config.grid_dim.0,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: THREADS,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: d.stream().cu_stream(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let mut arguments: [*mut c_void; 4] = [
            (&raw mut begin).cast(),
            (&raw mut end).cast(),
            (&raw mut slices).cast(),
            (&raw mut sweep).cast(),
        ];
        // SAFETY: the parameters that the kernels declare, on buffers of their sizes; the kernels wait
        // for the launch before them where they first read what it may have written
        unsafe {
            let arguments = arguments.as_mut_ptr();
            sys::cuLaunchKernelEx(
                &raw const config,
                kernel.cu_function(),
                arguments,
                std::ptr::null_mut(),
            )
        }
        .result()
    }

    /// Lays out the blocks of a triangle, which are in the order of the pattern.
    fn set_triangle(
        &self,
        d: &Device,
        triangle: &Triangle,
        row_ptr: &CudaSlice<u32>,
        blocks: &CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let count = *self.ends.last().expect("at least one") as usize;
        let (arg, to) = (self.slices(triangle), triangle.val.address());
        let config = grid(count.div_ceil(SLICES_PER_BLOCK), THREADS);
        let count = count as u32;
        launch!(d, &self.kernels.values, config; count, arg, self.factor_row, *row_ptr, *blocks, to)
    }
}

impl Solve for Colours {
    fn set_values(&mut self, d: &Device, f: &Factorisation, v: Values) -> Result<f64> {
        let fault = |e: DriverError| failed("cannot lay out the factors", e);
        let [lower, upper] = &self.triangles;
        self.set_triangle(d, lower, &f.lower.row_ptr, &v.lower).map_err(fault)?;
        self.set_triangle(d, upper, &f.upper.row_ptr, &v.upper).map_err(fault)?;
        let (rows, bb) = (self.rows as u32, self.block_size * self.block_size);
        let config = grid((self.rows * bb).div_ceil(THREADS as usize), THREADS);
        let (from, to) = (v.diagonal.address(), self.diagonal.address());
        launch!(d, &self.kernels.diagonal, config; rows, self.factor_row, from, to)
            .map_err(fault)?;
        Ok(0.0)
    }

    fn in_order(&self) -> bool {
        true
    }

    fn bytes(&self) -> Option<Bytes> {
        Some(self.bytes)
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        self.launch(d, address(r), address(z)).map_err(|e| failed("triangular solve", e))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::{LevelRule, ReadAs};
    use crate::problem::load;
    use crate::symbolic::{Threads, block_pattern, colours, iluk, power};

    /// Pattern of ILU(p) in the order of the colours of `|A|^(p + 1)`, and these.
    pub(in super::super) fn coloured(spec: &str, p: usize) -> (FillPattern, Schedule) {
        let a = load(spec, ReadAs::Expanded).unwrap().matrix;
        let coupled = power(Threads::One, &block_pattern(&a, 1), p + 1, usize::MAX).unwrap();
        let sets = Schedule::from_levels(&colours(Threads::One, &coupled));
        let arranged = a.permuted(&sets.rows);
        (iluk(&block_pattern(&arranged, 1), p, LevelRule::Min, usize::MAX).unwrap(), sets)
    }

    /// Columns of row `g` of slice `s` as the kernels read them.
    fn read(plan: &Plan, layout: &Layout, number: &[u32], s: usize, g: usize) -> Vec<u32> {
        let (length, rows) = ((layout.shape[s] / 4) as usize, plan.slice(s).len());
        let index = &layout.index[layout.columns[s] as usize..];
        let own = number[plan.rows[plan.slice(s)][g] as usize];
        let near = |at: usize| (index[length + at / 2] >> (16 * (at % 2))) as u16;
        let column = |e: usize| match layout.shape[s] % 4 {
            0 => index[e * rows + g],
            1 => own.wrapping_add(index[e]),
            _ if near(e * rows + g) == NOT_NEAR => NONE,
            _ => index[e] + u32::from(near(e * rows + g)),
        };
        (0..length).map(column).filter(|&j| j != NONE).collect()
    }

    #[test]
    fn slices_hold_what_the_pattern_does() {
        let systems = [("bubbly:24x23x22", 0), ("bubbly:24x23x22", 1), ("fem-p1:61x57", 0)];
        for ((spec, p), size) in systems.into_iter().flat_map(|s| [(s, 32), (s, 10)]) {
            let (pattern, sets) = coloured(spec, p);
            let plan = Plan::new(&sets.in_place(), &pattern, size);
            assert_eq!(plan.colours.len(), sets.level_ptr.len());
            for (number, in_place) in [(sets.rows.clone(), true), (inverse(&plan.rows), false)] {
                for t in [&pattern.lower, &pattern.upper] {
                    let layout = Layout::new(&plan, t.view(), &number).unwrap();
                    let mut kinds = [0; 3];
                    for s in 0..plan.slices() {
                        for (g, &i) in plan.rows[plan.slice(s)].iter().enumerate() {
                            let want: Vec<u32> =
                                t.row(i as usize).iter().map(|&j| number[j as usize]).collect();
                            assert_eq!(read(&plan, &layout, &number, s, g), want);
                        }
                        kinds[(layout.shape[s] % 4) as usize] += plan.slice(s).len();
                    }
                    // two colours of a grid in its own order need hardly an index, others few bits
                    let (rows, words) = (plan.rows.len(), layout.index.len());
                    assert!(kinds[0] * 10 <= rows, "{spec}, p {p}: {kinds:?}");
                    if in_place && spec.starts_with("bubbly") && p == 0 && size == 32 {
                        assert!(words * 6 < t.entries(), "{words} words of {}", t.entries());
                    }
                    let (stored, there) = (layout.blocks, t.entries());
                    assert!(stored * 8 <= there * 9, "{spec}, p {p}, {size}: {stored} for {there}");
                    let (last, blocks) = (plan.slices() - 1, layout.blocks);
                    let rows = plan.slice(last).len() * (layout.shape[last] / 4) as usize;
                    assert_eq!(layout.start[last] as usize + rows, blocks);
                }
            }
        }
    }

    #[test]
    fn far_columns_are_stored_as_they_are() {
        let t = Pattern { row_ptr: vec![0, 0, 2, 3].into(), col_ind: vec![0, 1, 0].into() };
        let number = [70_000, 3, 9];
        let mut index = Vec::new();
        assert_eq!(store(&[1, 2], t.view(), &number, &mut index), (2, Kind::Near));
        assert_eq!(index, [70_000, 3, 0, 0xffff_0000]);
        let (number, mut index) = ([0, 70_000, 9], Vec::new());
        let far = Pattern { row_ptr: vec![0, 0, 1, 2].into(), col_ind: vec![0, 1].into() };
        assert_eq!(store(&[1, 2], far.view(), &number, &mut index), (1, Kind::Wide));
        assert_eq!(index, [0, 70_000]);
        assert_eq!(store(&[0], t.view(), &number, &mut Vec::new()), (0, Kind::Uniform));
    }
}
