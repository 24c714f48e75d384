//! Triangular solves with block ILU factors (`kernels/trsv.cu`).

use cudarc::driver::{CudaFunction, CudaGraph, CudaSlice, DriverError, LaunchConfig, result, sys};

use super::device::{Device, failed, grid};
use super::ilu::{DevicePattern, Factorisation, Factors};
use super::launch::{SolveArg, address, launch};
use super::slices::{SLICES_PER_BLOCK, THREADS, Triangle};
use super::sources::{TRSV, Variant};
use crate::case::Trisolve;
use crate::error::Result;
use crate::symbolic::{Pattern, Schedule};

/// Both triangles in slices, and a way to run through them.
pub(super) struct Sliced {
    lower: Triangle,
    upper: Triangle,
    diagonal: Option<CudaSlice<f64>>,
    /// Forward solution.
    y: CudaSlice<f64>,
    way: Way,
}

/// How the slices are run through.
enum Way {
    Syncfree(Syncfree),
    Levels(Levels),
}

impl Sliced {
    /// Plans and storage; `schedules` are those of the forward and the backward solve.
    pub(super) fn new(
        d: &Device,
        f: &Factorisation,
        schedules: &[Schedule; 2],
        trisolve: Trisolve,
    ) -> Result<Self> {
        let b = f.block_size;
        let pointwise = trisolve == Trisolve::Pointwise && b > 1;
        let (size, spread) = if pointwise { (1, b) } else { (b, 1) };
        let triangle = |pattern: &Pattern, device: &DevicePattern, s, backward| {
            let on_device = (&device.row_ptr, &device.col_ind);
            Triangle::new(d, pattern.view(), on_device, s, size, spread, backward)
        };
        let n = f.pattern.rows() * b;
        let lower = triangle(&f.pattern.lower, &f.lower, &schedules[0], false)?;
        let upper = triangle(&f.pattern.upper, &f.upper, &schedules[1], true)?;
        let mut y = d.alloc(n)?;
        let way = if trisolve == Trisolve::Syncfree {
            d.mark_absent(&mut y)?;
            Way::Syncfree(Syncfree::new(d, size, &lower, &upper)?)
        } else {
            Way::Levels(Levels::new(d, size, pointwise.then_some(b), n)?)
        };
        Ok(Self { lower, upper, diagonal: None, y, way })
    }

    /// Takes over the factors.
    pub(super) fn set_values(&mut self, d: &Device, f: &Factorisation, v: Factors) -> Result<()> {
        self.lower.set_values(d, &f.lower.row_ptr, &v.lower)?;
        self.upper.set_values(d, &f.upper.row_ptr, &v.upper)?;
        self.diagonal = Some(v.diagonal);
        let arg = self.argument();
        match &mut self.way {
            Way::Syncfree(_) => Ok(()),
            Way::Levels(way) => way.record(d, &self.lower, &self.upper, arg, f.pattern.rows()),
        }
    }

    fn argument(&self) -> SolveArg {
        let diagonal = self.diagonal.as_ref().map_or(0, address);
        SolveArg { r: 0, diagonal, y: address(&self.y), z: 0 }
    }

    /// `z = (L D U')^-1 r`.
    pub(super) fn apply(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let arg = SolveArg { r: address(r), z: address(z), ..self.argument() };
        match &self.way {
            Way::Syncfree(way) => way.apply(d, &self.lower, &self.upper, arg),
            Way::Levels(way) => way.apply(d, r, z),
        }
    }
}

/// One launch per triangle; rows wait for the values they need.
struct Syncfree {
    forward: CudaFunction,
    backward: CudaFunction,
    config: LaunchConfig,
}

/// Most blocks of a row that a lane has registers for: 3 for each and 2 for each of its numbers.
fn most_ahead(block_size: usize) -> usize {
    match block_size {
        33.. => 4,
        b => (190 / (3 + 2 * b)).min(32),
    }
}

/// The variant of `trsv.cu` for rows of `longest` blocks: few different ones, so that few are compiled.
fn variant(block_size: usize, longest: usize) -> Variant {
    const STEPS: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
    let ahead = STEPS.iter().copied().find(|&step| step >= longest).unwrap_or(longest);
    Variant { defines: vec![("AHEAD", ahead.min(most_ahead(block_size)))], ..block_size.into() }
}

/// The variant of `trsv.cu` that needs the most registers.
pub fn largest_variant(block_size: usize) -> Variant {
    variant(block_size, usize::MAX)
}

impl Syncfree {
    fn new(d: &Device, block_size: usize, lower: &Triangle, upper: &Triangle) -> Result<Self> {
        let variant = variant(block_size, lower.longest.max(upper.longest));
        let forward = d.kernel(&TRSV, variant.clone(), "syncfree_forward")?;
        let backward = d.kernel(&TRSV, variant, "syncfree_backward")?;
        let resident = d.resident(&forward, THREADS, 0)?.min(d.resident(&backward, THREADS, 0)?);
        let most = lower.slices.max(upper.slices).div_ceil(SLICES_PER_BLOCK) as u32;
        let config = grid(resident.min(most).max(1) as usize, THREADS);
        Ok(Self { forward, backward, config })
    }

    fn apply(
        &self,
        d: &Device,
        lower: &Triangle,
        upper: &Triangle,
        arg: SolveArg,
    ) -> Result<(), DriverError> {
        let (slices, t) = (lower.slices as u32, lower.argument());
        launch!(cooperative d, &self.forward, self.config; slices, t, arg)?;
        let (slices, t) = (upper.slices as u32, upper.argument());
        launch!(cooperative d, &self.backward, self.config; slices, t, arg)
    }
}

/// One launch per level, all of them replayed as one graph on vectors of its own.
struct Levels {
    forward: CudaFunction,
    backward: CudaFunction,
    /// `z = D y` for blocks of the size of the factorisation, when the triangles are point
    /// triangular systems; and the vector it writes.
    diagonal: Option<(CudaFunction, usize, CudaSlice<f64>)>,
    r: CudaSlice<f64>,
    z: CudaSlice<f64>,
    graph: Option<CudaGraph>,
}

impl Levels {
    fn new(d: &Device, block_size: usize, apart: Option<usize>, n: usize) -> Result<Self> {
        let diagonal = match apart {
            Some(b) => Some((d.kernel(&TRSV, b, "block_diagonal")?, b, d.alloc(n)?)),
            None => None,
        };
        Ok(Self {
            forward: d.kernel(&TRSV, block_size, "level_forward")?,
            backward: d.kernel(&TRSV, block_size, "level_backward")?,
            diagonal,
            r: d.alloc(n)?,
            z: d.alloc(n)?,
            graph: None,
        })
    }

    /// Captures the launches.
    fn record(
        &mut self,
        d: &Device,
        lower: &Triangle,
        upper: &Triangle,
        arg: SolveArg,
        block_rows: usize,
    ) -> Result<()> {
        let fault = |e: DriverError| failed("cannot capture the solves", e);
        let arg = SolveArg { r: address(&self.r), z: address(&self.z), ..arg };
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        d.stream().begin_capture(mode).map_err(fault)?;
        let launched = self.launch_levels(d, lower, upper, arg, block_rows);
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = d.stream().end_capture(flags).map_err(fault)?;
        launched.map_err(fault)?;
        if let Some(graph) = &graph {
            graph.upload().map_err(fault)?;
        }
        self.graph = graph;
        Ok(())
    }

    fn launch_levels(
        &self,
        d: &Device,
        lower: &Triangle,
        upper: &Triangle,
        arg: SolveArg,
        block_rows: usize,
    ) -> Result<(), DriverError> {
        each_level(d, &self.forward, lower, arg)?;
        let Some((kernel, b, scaled)) = &self.diagonal else {
            return each_level(d, &self.backward, upper, arg);
        };
        let rows_per_block = (32 / (*b).min(32)) * SLICES_PER_BLOCK;
        let (rows, to_scaled) = (block_rows as u32, SolveArg { z: address(scaled), ..arg });
        let config = grid(block_rows.div_ceil(rows_per_block), THREADS);
        launch!(d, kernel, config; rows, to_scaled)?;
        each_level(d, &self.backward, upper, SolveArg { y: address(scaled), diagonal: 0, ..arg })
    }

    fn apply(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let bytes = 8 * r.len();
        let stream = d.stream().cu_stream();
        // SAFETY: all four vectors have the order of the system
        unsafe { result::memcpy_dtod_async(address(&self.r), address(r), bytes, stream) }?;
        self.graph.as_ref().map_or(Ok(()), CudaGraph::launch)?;
        // SAFETY: as above
        unsafe { result::memcpy_dtod_async(address(z), address(&self.z), bytes, stream) }
    }
}

fn each_level(
    d: &Device,
    kernel: &CudaFunction,
    t: &Triangle,
    arg: SolveArg,
) -> Result<(), DriverError> {
    let slices = t.argument();
    for level in t.levels.windows(2) {
        let (begin, end) = (level[0], level[1]);
        let config = grid((end - begin).div_ceil(SLICES_PER_BLOCK as u32) as usize, THREADS);
        launch!(d, kernel, config; begin, end, slices, arg)?;
    }
    Ok(())
}
