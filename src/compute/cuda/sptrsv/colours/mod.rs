//! Solves with factors of few levels of many rows each, as colours make them (`kernels/sptrsv/colours/slices.cu`).

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

mod boxes;
mod choice;
mod chunks;
mod layout;
mod slices;
mod stream;

use std::borrow::Cow;
use std::ffi::c_void;
use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig, sys};

use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::Bytes;
use crate::compute::cuda;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, ColourSlicesArg, ColourSweepArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::{Numbers, Values};
use crate::compute::cuda::sources::{COLOURS, Variant};
use crate::compute::cuda::sptrsv::{Solve, System};
use crate::compute::cuda::storage::Structure;
use crate::matrix::inverse;
use crate::matrix::pattern::Pattern;

use choice::Either;
use layout::{Laid, Placed};
use slices::{Layout, Plan};

/// Structs that the kernels share.
pub(super) fn layouts() -> impl Iterator<Item = &'static [cuda::Layout]> {
    std::iter::once(chunks::LAYOUTS).chain(boxes::LAYOUTS)
}

/// Threads of a block; mirrors `sptrsv/colours/slices.cu`.
const THREADS: u32 = 128;

/// Most colours that are launched one by one.
pub(super) const FEW: usize = 32;

/// Colours up to which vectors stay in their own order: a launch then reads both colours, and with them
/// whole sectors. With more of them each launch would leave most of a sector unused.
const IN_PLACE: usize = 2;

/// Compute capability at which a launch may begin before the one before it has ended.
const EARLY_ARCH: (i32, i32) = (9, 0);

/// A triangle on the device.
struct Triangle {
    start: CudaSlice<u32>,
    laid: Laid,
    index_len: usize,
    val: Numbers,
}

impl Triangle {
    fn new(d: &Device, layout: &Layout, bb: usize, precision: FactorPrecision) -> Result<Self> {
        Ok(Self {
            start: d.copied(&layout.start)?,
            laid: Laid::new(d, layout)?,
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
    placed: Rc<Placed>,
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
    let (d, f) = (s.device, s.structure);
    let b = f.block_size;
    let schedule = &s.analysis.schedules()[0];
    let in_place = schedule.levels() <= IN_PLACE;
    if !in_place && let Some(boxes) = boxes::solve(s, &schedule.level_ptr, order)? {
        return Ok(Box::new(boxes));
    }
    let align = (!in_place).then_some(order);
    let plan = Plan::new(schedule, &f.pattern, (32 / b).max(1), align);
    let row: Vec<u32> = Threads::Pool.map(plan.rows.len(), 1, |i| order[plan.rows[i] as usize]);
    let number = if in_place { Cow::Borrowed(order) } else { Cow::Owned(inverse(&plan.rows)) };
    let layout = |p: &Pattern| Layout::new(&plan, p.view(), &number, order);
    let (lower, upper) = rayon::join(|| layout(&f.pattern.lower), || layout(&f.pattern.upper));
    let (lower, upper) = (lower?, upper?);
    let layouts = [&lower, &upper];
    let placed = Rc::new(Placed {
        row: d.copied(&row)?,
        factor_row: d.copied(&plan.rows)?,
        first: d.copied(&plan.first)?,
    });
    let one = if in_place { stream::solve(s, &plan, layouts, (&row, &placed))? } else { None };
    let launches = || Colours::new(s, &plan, layouts, &placed);
    Ok(match one {
        Some(one) if one.bytes.moved <= d.l2_bytes() => {
            Box::new(Either::new([Box::new(one), Box::new(launches()?)]))
        }
        Some(one) => Box::new(one),
        None => Box::new(launches()?),
    })
}

impl Colours {
    fn new(
        s: &System,
        plan: &Plan,
        [lower, upper]: [&Layout; 2],
        placed: &Rc<Placed>,
    ) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let (b, n) = (f.block_size, f.pattern.rows());
        let bb = b * b;
        let in_place = plan.colours.len() - 1 <= IN_PLACE;
        let triangle = |layout| Triangle::new(d, layout, bb, s.precision);
        let triangles = [triangle(lower)?, triangle(upper)?];
        let kernel = |name| d.kernel(&COLOURS, Variant::from(b).storing(s.precision), name);
        // what stands for each slice, and what for each row
        let of_slices = 4 * plan.slices() * (1 + 3 * 2);
        let index: usize = triangles.iter().map(|t| 4 * t.index_len).sum();
        let held = s.precision.bytes() * f.pattern.blocks() * bb + index + of_slices + 4 * n;
        let vectors = if in_place { 2 } else { 4 };
        Ok(Self {
            kernels: Kernels {
                forward: kernel("colour_forward")?,
                turn: kernel("colour_turn")?,
                backward: kernel("colour_backward")?,
                values: kernel("colour_values")?,
                diagonal: kernel("colour_diagonal")?,
            },
            block_size: b,
            rows: n,
            placed: Rc::clone(placed),
            ends: plan.colours.clone(),
            triangles,
            diagonal: Numbers::alloc(d, n * bb, s.precision)?,
            x: (!in_place).then(|| d.alloc(n * b)).transpose()?,
            bytes: Bytes { held, moved: held + vectors * 8 * n * b },
        })
    }
}

/// A warp for each of so many slices.
fn warps(slices: usize) -> LaunchConfig {
    grid(slices.div_ceil(THREADS as usize / 32), THREADS)
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
            row: address(&self.placed.row),
            first: address(&self.placed.first),
            start: address(&triangle.start),
            shape: address(&triangle.laid.shape),
            columns: address(&triangle.laid.columns),
            index: address(&triangle.laid.index),
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
        let config = warps((end - begin) as usize);
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
        let config = warps(count);
        let count = count as u32;
        launch!(d, &self.kernels.values, config; count, arg, self.placed.factor_row, *row_ptr, *blocks, to)
    }
}

impl Solve for Colours {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        let fault = |e: DriverError| failed("cannot lay out the factors", e);
        let [lower, upper] = &self.triangles;
        self.set_triangle(d, lower, &f.lower.row_ptr, &v.lower).map_err(fault)?;
        self.set_triangle(d, upper, &f.upper.row_ptr, &v.upper).map_err(fault)?;
        let (rows, bb) = (self.rows as u32, self.block_size * self.block_size);
        let config = grid((self.rows * bb).div_ceil(THREADS as usize), THREADS);
        let (from, to) = (v.diagonal.address(), self.diagonal.address());
        launch!(d, &self.kernels.diagonal, config; rows, self.placed.factor_row, from, to)
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
