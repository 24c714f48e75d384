//! Triangular solves with block ILU factors (`kernels/trsv.cu`).

use cudarc::driver::sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
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
            let way = Syncfree::new(d, size, &lower, &upper)?;
            way.reset(d, &mut y)?;
            Way::Syncfree(way)
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
    /// Numbers of shared memory that a warp has.
    held: u32,
}

/// Where a row's values are while it waits for its operands; mirrors `VALUES` of `trsv.cu`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Registers = 0,
    Shared = 1,
    Memory = 2,
}

/// Bytes of shared memory that a thread block takes at most for its slices, and that a single slice
/// may take.
const SHARED_BLOCK: usize = 72 << 10;
const SHARED_SLICE: usize = 200 << 10;

impl Values {
    /// Most blocks of a row that are under way together, as registers allow.
    fn most(self, block_size: usize) -> usize {
        match (self, block_size) {
            (Self::Registers, 1) => 24,
            (Self::Registers, 2) => 18,
            (Self::Registers, 3) => 14,
            (Self::Registers, 4) => 12,
            (Self::Registers, _) => 0,
            (Self::Shared, 1..=8) => 24,
            (Self::Shared, _) => 16,
            (Self::Memory, _) => 8,
        }
    }

    /// For rows of `longest` blocks in slices of `largest` numbers.
    fn choose(block_size: usize, longest: usize, largest: usize) -> Self {
        if longest <= Self::Registers.most(block_size) {
            Self::Registers
        } else if block_size <= 32 && 8 * largest <= SHARED_SLICE {
            Self::Shared
        } else {
            Self::Memory
        }
    }

    /// The variant of `trsv.cu` for rows of `longest` blocks: few different ones, so that few are
    /// compiled.
    fn variant(self, block_size: usize, longest: usize) -> Variant {
        let ahead = match longest {
            0..=4 => longest.max(1),
            _ => longest.next_multiple_of(2),
        };
        let ahead = ahead.min(self.most(block_size));
        Variant { block_size, defines: vec![("AHEAD", ahead), ("VALUES", self as usize)] }
    }
}

/// Variants of `trsv.cu` with the most registers that may be asked for at run time.
pub fn largest_variants(block_size: usize) -> Vec<Variant> {
    [Values::Registers, Values::Shared, Values::Memory]
        .into_iter()
        .filter(|v| v.most(block_size) > 0 && (block_size <= 32 || *v == Values::Memory))
        .map(|v| v.variant(block_size, usize::MAX / 2))
        .collect()
}

impl Syncfree {
    fn new(d: &Device, block_size: usize, lower: &Triangle, upper: &Triangle) -> Result<Self> {
        let bb = block_size * block_size;
        let longest = lower.longest.max(upper.longest);
        // whole 16 bytes
        let largest = (lower.largest.max(upper.largest) * bb).next_multiple_of(2);
        let values = Values::choose(block_size, longest, largest);
        let variant = values.variant(block_size, longest);
        let forward = d.kernel(&TRSV, variant.clone(), "syncfree_forward")?;
        let backward = d.kernel(&TRSV, variant, "syncfree_backward")?;
        let held = if values == Values::Shared { largest } else { 0 };
        let warps = match 8 * held {
            0 => SLICES_PER_BLOCK,
            bytes => (SHARED_BLOCK / bytes).clamp(1, SLICES_PER_BLOCK),
        };
        let (threads, shared) = (32 * warps as u32, (8 * held * warps) as u32);
        let mut resident = u32::MAX;
        for kernel in [&forward, &backward] {
            kernel
                .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
                .map_err(|e| failed("cannot prepare the solves", &e))?;
            resident = resident.min(d.resident(kernel, threads, shared)?);
        }
        let most = lower.slices.max(upper.slices).div_ceil(warps).max(1) as u32;
        let config = LaunchConfig {
            grid_dim: (resident.min(most).max(1), 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: shared,
        };
        Ok(Self { forward, backward, config, held: held as u32 })
    }

    /// Marks all of y as not there yet.
    fn reset(&self, d: &Device, y: &mut CudaSlice<f64>) -> Result<()> {
        // SAFETY: y has that many bytes
        unsafe { result::memset_d8_async(address(y), 0xff, y.len() * 8, d.stream().cu_stream()) }
            .map_err(|e| failed("cannot clear memory", &e))
    }

    fn apply(
        &self,
        d: &Device,
        lower: &Triangle,
        upper: &Triangle,
        arg: SolveArg,
    ) -> Result<(), DriverError> {
        let (slices, t) = (lower.slices as u32, lower.argument());
        launch!(cooperative d, &self.forward, self.config; slices, t, arg, self.held)?;
        let (slices, t) = (upper.slices as u32, upper.argument());
        launch!(cooperative d, &self.backward, self.config; slices, t, arg, self.held)
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
        let fault = |e: DriverError| failed("cannot capture the solves", &e);
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
