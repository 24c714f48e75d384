//! A GPU's part of the grid and its kernels (`kernels/obstacle/sweep.cu`, `kernels/obstacle/blocked.cu`).

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::sync::Arc;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{
    CudaEvent, CudaFunction, CudaSlice, DriverError, LaunchConfig, PinnedHostSlice, sys,
};

use super::kernels::{EndingArg, GridArg, Kind, blocked_variant, variant};
use super::peers::{Neighbours, Window};
use super::tiles::{Shape, Tile, Tiles};
use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::{Address, address, launch};
use crate::compute::cuda::layout::shared;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::{OBSTACLE, OBSTACLE_BLOCKED, Source};
use crate::obstacle::field::{Extent, Field, Layout};
use crate::obstacle::part::Region;
use crate::obstacle::{Case, Problem, Split, StopOn};

/// Words that tell how a time step goes on.
const CONTROL: usize = 8;

shared! { words [u32; CONTROL] = "Control" of "obstacle/grid.cuh"; }

/// Threads of a thread block of `conclude`.
const CONCLUDING: u32 = 1024;

/// Kernels of a kind of sweep, with their tiles.
struct Sweep {
    kernel: CudaFunction,
    list: CudaSlice<Tile>,
    first: CudaSlice<u32>,
    config: LaunchConfig,
    segments: u32,
    /// Tiles at the faces towards neighbours, which come first.
    rim: u32,
    colours: u32,
    /// Sweeps of a launch.
    levels: u32,
}

/// State of a time step, as written by the kernels.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    pub(super) done: bool,
    pub(super) sweeps: usize,
    pub(super) norm: f64,
    pub(super) worst: f64,
    /// Squared changes of the last sweep that counted, for each part of the norm.
    pub(super) squared: Vec<f64>,
}

/// One sweep or pass of several to launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch {
    /// Number of its last sweep in the time step; 0 if its update is not monitored.
    pub(super) number: usize,
    /// Tolerance with which the kernels themselves end the time step.
    pub(super) bound: f64,
}

/// A GPU's part.
pub(super) struct Part {
    pub(super) device: Arc<Device>,
    pub(super) extent: Extent,
    pub(super) layout: Layout,
    problem: Problem,
    norm: Split,
    by_worst: bool,
    /// The iterate and the field that is not.
    pub(super) window: Window,
    /// Which field is the iterate.
    now: usize,
    source: CudaSlice<f64>,
    floor: Option<CudaSlice<f64>>,
    factors: [CudaSlice<f64>; 3],
    begin_step: CudaFunction,
    conclude: CudaFunction,
    judge: CudaFunction,
    sweeps: Vec<(Kind, bool, Sweep)>,
    blocked: Option<Sweep>,
    /// `Control`, then the squared change of each part of the norm, then the largest.
    control: CudaSlice<u32>,
    squared: CudaSlice<f64>,
    worst: CudaSlice<f64>,
    host: [PinnedHostSlice<u32>; 2],
    /// Where neighbours read the boundary values.
    pub(super) neighbours: Neighbours,
}

impl Part {
    /// A part with u = 0.
    pub(super) fn new(device: Arc<Device>, case: &Case, extent: Extent) -> Result<Self> {
        let problem = Problem::new(case)?;
        let layout = Layout::of(&extent);
        let floor = match Field::floor(&problem, &extent)? {
            None => None,
            Some(floor) => Some(device.copied(&floor.data[..])?),
        };
        let kernel = |name: &str| {
            device.kernel(&OBSTACLE, variant(Kind::Jacobi, floor.is_some(), false), name)
        };
        let [begin_step, conclude, judge] =
            [kernel("begin_step")?, kernel("conclude")?, kernel("judge")?];
        let of =
            |d: usize, range: std::ops::Range<usize>| device.copied(&problem.factors[d][range]);
        let factors = [of(0, 0..case.m)?, of(1, extent.y.clone())?, of(2, extent.z.clone())?];
        let words = CONTROL + 4 * case.norm_split.count();
        let pinned = || {
            let context = device.stream().context();
            // SAFETY: written by a download before they are read
            unsafe { context.alloc_pinned_with_flags::<u32>(words, 0) }
                .map_err(|e| failed("cannot pin host memory", e))
        };
        Ok(Self {
            layout,
            norm: case.norm_split,
            by_worst: case.stop == StopOn::Complementarity,
            window: Window::new(&device, layout)?,
            now: 0,
            source: device.zeros(layout.len())?,
            floor,
            factors,
            begin_step,
            conclude,
            judge,
            sweeps: Vec::new(),
            blocked: None,
            control: device.zeros(words)?,
            squared: device.zeros(1)?,
            worst: device.zeros(1)?,
            host: [pinned()?, pinned()?],
            neighbours: Neighbours::default(),
            problem,
            extent,
            device,
        })
    }

    /// Compiles the kernels of a run before the first sweep.
    pub(super) fn prepare(&mut self, kind: Kind, with_residual: bool) -> Result<()> {
        if self.sweeps.iter().any(|(k, l, _)| (*k, *l) == (kind, with_residual)) {
            return Ok(());
        }
        let variant = variant(kind, self.floor.is_some(), with_residual);
        let [wide, lines, warps, slices] =
            self.device.constants::<4>(&OBSTACLE, variant.clone(), "sweep_shape")?;
        let kernel = self.device.kernel(&OBSTACLE, variant, "sweep")?;
        let across = self.layout.nx.div_ceil(wide as usize);
        let lines = lines as usize;
        let shape = if slices == 0 {
            Shape { lines, ..Shape::default() }
        } else {
            let (in_y, nz) = (self.layout.ny.div_ceil(lines), self.layout.nz);
            let resident = self.device.resident(&kernel, 32 * warps, 0)? as usize;
            // shorter where there would be less to do than thread blocks
            let most = Tiles::slices(nz, across * in_y, resident, 0.7).min(slices as usize);
            let slices = Tiles::fitting(most, in_y + self.norm.y, self.norm.z, nz);
            // sides that another part wants
            let early = [self.extent.z.start > 0, self.extent.z.end < self.extent.m];
            Shape { lines, slices: Some(slices), early }
        };
        let sweep = self.cut(kernel, shape, across, (32, warps, 1), 0)?;
        let sweep = Sweep { colours: kind.colours(), ..sweep };
        self.sweeps.push((kind, with_residual, sweep));
        Ok(())
    }

    /// As [`prepare`](Self::prepare) for passes of several sweeps, or of several colours.
    pub(super) fn prepare_blocked(&mut self, sweeps: usize, colours: usize) -> Result<()> {
        let source: &'static Source = &OBSTACLE_BLOCKED;
        let variant = blocked_variant(sweeps, colours, self.floor.is_some());
        let kernel = self.device.kernel(source, variant.clone(), "blocked")?;
        let [threads, wide, lines, shared] =
            self.device.constants::<4>(source, variant, "blocked_shape")?;
        kernel
            .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
            .map_err(|e| failed("cannot take the shared memory of a pass", e))?;
        let resident = self.device.resident(&kernel, threads, shared)? as usize;
        let (wide, lines) = (wide as usize, lines as usize);
        let across = self.layout.nx.div_ceil(wide);
        let columns = across * self.layout.ny.div_ceil(lines);
        let slices =
            Tiles::slices(self.layout.nz, columns, resident, 2.0 * (sweeps * colours) as f64);
        let shape = Shape { lines, slices: Some(slices), ..Shape::default() };
        let sweep = self.cut(kernel, shape, across, (threads, 1, 1), shared)?;
        self.blocked = Some(Sweep { levels: sweeps as u32, ..sweep });
        Ok(())
    }

    fn cut(
        &mut self,
        kernel: CudaFunction,
        shape: Shape,
        across: usize,
        threads: (u32, u32, u32),
        shared: u32,
    ) -> Result<Sweep> {
        let tiles = Tiles::new(&self.extent, self.norm, shape);
        let first: Vec<u32> = tiles.first.iter().map(|f| f * across as u32).collect();
        let slots = tiles.list.len() * across;
        if self.squared.len() < slots {
            (self.squared, self.worst) = (self.device.zeros(slots)?, self.device.zeros(slots)?);
        }
        Ok(Sweep {
            kernel,
            config: LaunchConfig {
                grid_dim: (across as u32, (tiles.list.len() / tiles.segments) as u32, 1),
                block_dim: threads,
                shared_mem_bytes: shared,
            },
            list: self.device.copied(&tiles.list)?,
            first: self.device.copied(&first)?,
            segments: tiles.segments as u32,
            rim: tiles.early as u32,
            colours: 1,
            levels: 1,
        })
    }

    /// Address of the iterate.
    #[cfg(feature = "mpi")]
    pub(super) fn iterate(&self) -> Address {
        self.window.fields()[self.now]
    }

    /// Enqueues a signal to the neighbours that the work launched so far is complete.
    pub(super) fn signal(&mut self) -> Result<()> {
        self.neighbours.signal(self.device.stream())
    }

    /// Makes later launches wait until the neighbours have signalled as many steps.
    pub(super) fn wait(&self) -> Result<()> {
        self.neighbours.wait(self.device.stream(), &self.window)
    }

    fn grid(&self, in_place: bool) -> GridArg {
        let fields = self.window.fields();
        let to = if in_place { self.now } else { 1 - self.now };
        let ghost = |end: usize| self.neighbours.to[end].map_or(0, |remote| remote.ghosts[to]);
        let Layout { nx, ny, nz, pitch, slice, .. } = self.layout;
        GridArg {
            old: fields[self.now],
            next: fields[to],
            source: address(&self.source),
            floor: self.floor.as_ref().map_or(0, address),
            before: ghost(0),
            behind: ghost(1),
            centre: self.problem.coefficients.centre,
            share: self.problem.coefficients.share,
            flat: self.problem.flat_floor().unwrap_or_default(),
            nx: nx as u32,
            ny: ny as u32,
            nz: nz as u32,
            pitch: pitch as u32,
            slice: slice as u64,
        }
    }

    fn ending(&self, sweep: &Sweep, launch: Launch) -> EndingArg {
        EndingArg {
            control: address(&self.control),
            squared: address(&self.squared),
            worst: address(&self.worst),
            part: address(&self.control) + (CONTROL * size_of::<u32>()) as Address,
            first: address(&sweep.first),
            parts: self.norm.count() as u32,
            sweep: launch.number as u32,
            by_worst: self.by_worst.into(),
            bound: launch.bound,
        }
    }

    /// Computes the right-hand side of a time step and resets its state.
    pub(super) fn begin_step(&mut self) -> Result<()> {
        let fault = |e: DriverError| failed("cannot begin a time step", e);
        self.forget()?;
        let grid = self.grid(true);
        let config = self.over_points();
        let [fx, fy, fz] = &self.factors;
        launch!(self.device, &self.begin_step, config; grid, self.source, *fx, *fy, *fz, self.problem.delta)
            .map_err(fault)
    }

    /// Continues the time step.
    pub(super) fn forget(&mut self) -> Result<()> {
        let stream = self.device.stream();
        stream.memset_zeros(&mut self.control).map_err(|e| failed("cannot clear memory", e))
    }

    fn over_points(&self) -> LaunchConfig {
        let Layout { nx, ny, nz, .. } = self.layout;
        LaunchConfig {
            grid_dim: (nx.div_ceil(128) as u32, ny as u32, nz.min(16) as u32),
            block_dim: (128, 1, 1),
            shared_mem_bytes: 0,
        }
    }

    /// Launches a sweep of a kind that was prepared.
    pub(super) fn sweep(&mut self, kind: Kind, with_residual: bool, launch: Launch) -> Result<()> {
        self.sweep_over(None, kind, with_residual, launch)?;
        self.conclude_sweep(kind, with_residual, launch)
    }

    /// A Jacobi sweep into the other field, which nobody needs: its monitored quantities are those of the
    /// iterate.
    pub(super) fn look(&mut self, launch: Launch) -> Result<()> {
        self.sweep(Kind::Jacobi, true, launch)
    }

    fn prepared(&self, kind: Kind, with_residual: bool) -> &Sweep {
        let found = self.sweeps.iter().find(|(k, l, _)| (*k, *l) == (kind, with_residual));
        &found.expect("prepared").2
    }

    /// Launches the tiles of a sweep that belong to `region`, or all. When all are launched,
    /// [`conclude_sweep`](Self::conclude_sweep) is due.
    pub(super) fn sweep_over(
        &mut self,
        region: Option<Region>,
        kind: Kind,
        with_residual: bool,
        launch: Launch,
    ) -> Result<()> {
        let sweep = self.prepared(kind, with_residual);
        let (grid, ending) = (self.grid(kind.in_place()), self.ending(sweep, launch));
        let (y, z) = (self.extent.y.start, self.extent.z.start);
        let first = if kind == Kind::Points { y + z } else { y } as u32;
        let (rim, all) = (sweep.rim, sweep.config.grid_dim.1);
        let (from, to) = match region {
            None => (0, all),
            Some(Region::Rim) => (0, rim),
            Some(Region::Inner) => (rim, all),
        };
        if from == to {
            return Ok(());
        }
        let list = address(&sweep.list) + (from as usize * size_of::<Tile>()) as Address;
        let mut config = sweep.config;
        config.grid_dim.1 = to - from;
        for colour in 0..sweep.colours {
            launch!(self.device, &sweep.kernel, config; grid, list, sweep.segments, colour, first, ending)
                .map_err(|e| failed("sweep", e))?;
        }
        Ok(())
    }

    /// Sums the partial norms of a monitored sweep.
    pub(super) fn conclude_sweep(
        &self,
        kind: Kind,
        with_residual: bool,
        launch: Launch,
    ) -> Result<()> {
        self.conclude(launch, self.ending(self.prepared(kind, with_residual), launch))
    }

    /// Launches a pass of several sweeps, the last of which counts.
    pub(super) fn pass(&mut self, launch: Launch) -> Result<()> {
        let sweep = self.blocked.as_ref().expect("prepared");
        let (grid, ending) = (self.grid(false), self.ending(sweep, launch));
        launch!(self.device, &sweep.kernel, sweep.config; grid, sweep.list, ending)
            .map_err(|e| failed("pass", e))?;
        self.conclude(launch, ending)
    }

    fn conclude(&self, launch: Launch, ending: EndingArg) -> Result<()> {
        if launch.number == 0 {
            return Ok(());
        }
        let config = LaunchConfig {
            grid_dim: (ending.parts, 1, 1),
            block_dim: (CONCLUDING, 1, 1),
            shared_mem_bytes: 0,
        };
        launch!(self.device, &self.conclude, config; ending).map_err(|e| failed("conclude", e))
    }

    /// Whether sweeps are made by [`pass`](Self::pass).
    pub(super) fn in_passes(&self) -> bool {
        self.blocked.is_some()
    }

    /// Sweeps of a pass.
    pub(super) fn levels(&self) -> usize {
        self.blocked.as_ref().map_or(1, |sweep| sweep.levels as usize)
    }

    /// Which field is the iterate, as a number to count from.
    pub(super) fn fields_order(&self) -> usize {
        self.now
    }

    /// The iterate is where `count` swaps from field 0 lead.
    pub(super) fn select(&mut self, count: usize) {
        self.now = count % 2;
    }

    /// The other field becomes the iterate.
    pub(super) fn swap(&mut self) {
        self.now = 1 - self.now;
    }

    /// Enqueues a copy of the state at this point of the stream, into slot 0 or 1.
    pub(super) fn ask(&mut self, place: usize) -> Result<CudaEvent> {
        let fault = |e: DriverError| failed("cannot read the state", e);
        let stream = self.device.stream();
        stream.memcpy_dtoh(&self.control, &mut self.host[place]).map_err(fault)?;
        stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)).map_err(fault)
    }

    /// The requested state; waits.
    pub(super) fn answer(&self, place: usize, event: &CudaEvent) -> Result<Control> {
        let fault = |e: DriverError| failed("a sweep failed", e);
        event.synchronize().map_err(fault)?;
        let words = self.host[place].as_slice().map_err(fault)?;
        let number =
            |at: usize| f64::from_bits(u64::from(words[at]) | u64::from(words[at + 1]) << 32);
        let parts = (0..self.norm.count()).map(|part| CONTROL + 2 * part);
        Ok(Control {
            done: words[0] != 0,
            sweeps: words[1] as usize,
            norm: number(4),
            worst: number(6),
            squared: parts.map(number).collect(),
        })
    }

    /// The state now; waits.
    pub(super) fn state(&mut self) -> Result<Control> {
        let event = self.ask(0)?;
        self.answer(0, &event)
    }

    /// Points on the obstacle and the part's share of the fingerprint.
    pub(super) fn judge(&mut self) -> Result<[u64; 2]> {
        let out = self.device.zeros::<u64>(2)?;
        let (grid, config) = (self.grid(true), self.over_points());
        let m = self.extent.m as u64;
        let line = self.extent.z.start as u64 * m + self.extent.y.start as u64;
        launch!(self.device, &self.judge, config; grid, line, m, out)
            .map_err(|e| failed("judge", e))?;
        let both = self.device.host(&out)?;
        Ok([both[0], both[1]])
    }

    /// The iterate.
    pub(super) fn field(&self) -> Result<Field> {
        self.window.read(self.device.stream(), self.now)
    }
}
