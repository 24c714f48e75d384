//! Triangular solves with one launch per level (`kernels/sptrsv/slices.cu`).

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaGraph, CudaSlice, DriverError, result, sys};

use super::colours::{self, FEW};
use super::slices::{SLICES_PER_BLOCK, Slices, THREADS};
use super::triangles::{self, BlockDiagonal};
use super::{Algorithm, InHalves, Solve, System};
use crate::base::error::{Error, Result};
use crate::compute::Bytes;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, SolveArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::{Numbers, Values};
use crate::compute::cuda::sources::{TRSV, Variant};
use crate::compute::cuda::storage::{DevicePattern, Structure};
use crate::compute::trisolve::Description;

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "levels",
    summary: "one launch per level, replayed as a CUDA graph (Yang et al., Algorithm 6)",
    per_level: true,
    advised: true,
    ..Description::PLAIN
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    about: ABOUT,
    seconds: None,
    largest_block: usize::MAX,
    host_rows: true,
    new: blockwise,
    in_halves: Some(in_halves),
};

/// One launch per level; more than [`FEW`] are replayed as one graph on vectors of its own: the copies to
/// and from these cost more than so many launches.
pub(super) struct Levels {
    lower: Slices,
    upper: Slices,
    forward: CudaFunction,
    backward: CudaFunction,
    /// `z = D y` for blocks of the size of the factorisation, when the triangles are point
    /// triangular systems; and the vector it writes.
    apart: Option<(BlockDiagonal, CudaSlice<f64>)>,
    diagonal: Option<Rc<Numbers>>,
    y: CudaSlice<f64>,
    replayed: Option<Replayed>,
}

/// The vectors of a graph, and the graph once it is recorded.
struct Replayed {
    r: CudaSlice<f64>,
    z: CudaSlice<f64>,
    graph: Option<CudaGraph>,
}

/// Block rows of a level at a time; of few levels in an order of their own as [`colours`].
fn blockwise(s: &System) -> Result<Box<dyn Solve>> {
    match s.order {
        Some(order) if s.analysis.schedules()[0].levels() <= FEW => colours::solve(s, order),
        _ => Ok(Box::new(Levels::new(s, 1)?)),
    }
}

impl Levels {
    /// With blocks that are `spread` times smaller than those of the factorisation.
    pub(super) fn new(s: &System, spread: usize) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let (size, rows) = (f.block_size / spread, f.pattern.rows());
        let n = rows * f.block_size;
        let [lower, upper] = Slices::both(s, spread)?;
        let variant = || Variant::from(size).storing(s.precision);
        let apart = match spread {
            1 => None,
            _ => Some((BlockDiagonal::new(d, f, s.precision)?, d.alloc(n)?)),
        };
        let levels = lower.levels.len() + upper.levels.len() - 2;
        let replayed = (levels > FEW)
            .then(|| -> Result<Replayed> {
                Ok(Replayed { r: d.alloc(n)?, z: d.alloc(n)?, graph: None })
            })
            .transpose()?;
        Ok(Self {
            lower,
            upper,
            forward: d.kernel(&TRSV, variant(), "level_forward")?,
            backward: d.kernel(&TRSV, variant(), "level_backward")?,
            apart,
            diagonal: None,
            y: d.alloc(n)?,
            replayed,
        })
    }

    /// Captures the launches, where they are to be replayed.
    fn record(&mut self, d: &Device) -> Result<()> {
        let Some(Replayed { r, z, .. }) = &self.replayed else { return Ok(()) };
        let vectors = [address(r), address(z)];
        let fault = |e: DriverError| failed("cannot capture the solves", e);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        d.stream().begin_capture(mode).map_err(fault)?;
        let launched = self.launch_levels(d, vectors);
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = d.stream().end_capture(flags).map_err(fault)?;
        launched.map_err(fault)?;
        if let Some(graph) = &graph {
            graph.upload().map_err(fault)?;
        }
        if let Some(replayed) = &mut self.replayed {
            replayed.graph = graph;
        }
        Ok(())
    }

    fn launch_levels(&self, d: &Device, [r, z]: [Address; 2]) -> Result<(), DriverError> {
        let diagonal = self.diagonal.as_ref().map_or(0, |diagonal| diagonal.address());
        let arg = SolveArg { r, diagonal, y: address(&self.y), z };
        each_level(d, &self.forward, &self.lower, arg)?;
        let backward = |arg| each_level(d, &self.backward, &self.upper, arg);
        let Some((scale, scaled)) = &self.apart else { return backward(arg) };
        let y = address(scaled);
        scale.launch(d, diagonal, arg.y, y)?;
        backward(SolveArg { y, diagonal: 0, ..arg })
    }

    fn replay(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let Some(Replayed { r: r_of_graph, z: z_of_graph, graph }) = &self.replayed else {
            return self.launch_levels(d, [address(r), address(z)]);
        };
        let bytes = 8 * r.len();
        let stream = d.stream().cu_stream();
        // SAFETY: all four vectors have the order of the system
        unsafe { result::memcpy_dtod_async(address(r_of_graph), address(r), bytes, stream) }?;
        graph.as_ref().map_or(Ok(()), CudaGraph::launch)?;
        // SAFETY: as above
        unsafe { result::memcpy_dtod_async(address(z), address(z_of_graph), bytes, stream) }
    }
}

impl Solve for Levels {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        self.lower.set_values(d, &f.lower.row_ptr, &v.lower)?;
        self.upper.set_values(d, &f.upper.row_ptr, &v.upper)?;
        self.diagonal = Some(v.diagonal);
        self.record(d)?;
        Ok(0.0)
    }

    fn bytes(&self) -> Option<Bytes> {
        let diagonal = self.diagonal.as_ref().map_or(0, |diagonal| diagonal.bytes());
        let held = self.lower.bytes() + self.upper.bytes() + diagonal;
        // a graph has copies of r and z, a diagonal of its own reads and writes once more
        let vectors = 4 + if self.replayed.is_some() { 4 } else { 0 };
        let vectors = vectors + if self.apart.is_some() { 2 } else { 0 };
        Some(Bytes { held, moved: held + vectors * 8 * self.y.len() })
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        self.replay(d, r, z).map_err(|e| failed("triangular solve", e))
    }
}

/// One triangle with a launch per level.
struct Triangle {
    slices: Slices,
    kernel: CudaFunction,
}

fn in_halves(s: &System) -> Result<Box<dyn InHalves>> {
    let [lower, upper] = Slices::both(s, 1)?;
    let triangle = |slices, name| {
        let variant = Variant::from(s.structure.block_size).storing(s.precision);
        Ok::<_, Error>(Some(Triangle { slices, kernel: s.device.kernel(&TRSV, variant, name)? }))
    };
    let pair = [triangle(lower, "level_forward")?, triangle(upper, "level_backward")?];
    triangles::in_halves(s, pair)
}

impl triangles::Triangle for Triangle {
    const READS_DIAGONAL: bool = true;
    const MARKS: bool = false;

    fn bytes(&self) -> usize {
        self.slices.bytes()
    }

    fn set_values(
        &mut self,
        d: &Device,
        pattern: &DevicePattern,
        blocks: &CudaSlice<f64>,
        _: &Numbers,
    ) -> Result<()> {
        self.slices.set_values(d, &pattern.row_ptr, blocks)
    }

    fn solve(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError> {
        each_level(d, &self.kernel, &self.slices, arg)
    }
}

/// A launch for each level.
fn each_level(
    d: &Device,
    kernel: &CudaFunction,
    t: &Slices,
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
