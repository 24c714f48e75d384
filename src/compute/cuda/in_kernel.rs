//! Krylov methods as one kernel (`kernels/krylov`).
//!
//! A launch does some hundred iterations at most and leaves behind what the next one goes on with, so
//! that a solve can be watched and given up. The host replays the residuals of a launch through the
//! same [`ConvergenceMonitor`] that the other executions ask; the kernel ends by the same rules.

use cudarc::driver::{CudaFunction, CudaSlice, DeviceRepr, DriverError, LaunchConfig, sys};

use arguments::MatrixArgument::{Block, Other, Point};
use arguments::{FACTORS, Inverse, MatrixArgument, argument, inverse, matrix_defines};

use super::Cuda;
use super::device::{Device, grid};
use super::formats::Argument;
use super::launch::{
    BicgstabArg, FactorsOfKernelArg, HistoryArg, QmrArg, RulesArg, address, launch,
};
use super::layout::shared;
use super::memory::failed;
use super::ranges::Ranges;
use super::sources::{self, Source, Variant};
use super::sptrsv::{Parts, RESIDENT_THREADS as THREADS};
use crate::base::choices::{Execution, Side};
use crate::base::error::Result;
use crate::compute::krylov::stop::{CYCLE, ConvergenceMonitor, DIVERGED, STALL_CYCLES};
use crate::compute::krylov::{Monitor, Outcome, Persistent, Settings, SolveEnd, Solver, System};
use crate::compute::no_execution;

mod arguments;

/// Shared memory of a block that is not for vectors: the barrier's.
const RESERVED: usize = 4096;
/// Most sums of a barrier in each set of their parts, and numbers before the parts; mirror
/// `krylov/grid_barrier.cuh`.
const PARTS: usize = 4 * 2;
const BEFORE_PARTS: usize = 16;
/// Cycles whose residuals are remembered; mirrors `krylov/in_kernel.cuh`.
const REMEMBERED: usize = 16;
const _: () = assert!(REMEMBERED > STALL_CYCLES);

/// Most iterations of a launch.
const MOST: usize = 512;
/// Words of what a launch leaves behind: a report, a norm for each iteration, half a word for what broke down.
const REPORT: usize = 9;
const WORDS: usize = REPORT + MOST + MOST / 2;

shared! { words [u64; REPORT] = "Report" of "krylov/in_kernel.cuh"; }

/// A method set up for one matrix and one kind of preconditioner.
struct InKernel {
    method: &'static Persistent,
    settings: Settings,
    kernel: CudaFunction,
    config: LaunchConfig,
    n: usize,
    starts: CudaSlice<u32>,
    longest: u32,
    on_chip: usize,
    /// Vectors that products read, one behind the other.
    read: CudaSlice<f64>,
    /// Where range vectors lie that do not fit, and all of them between launches.
    home: CudaSlice<f64>,
    parts: CudaSlice<f64>,
    /// Right-hand side of triangular solves, where there are any.
    right: CudaSlice<f64>,
    words: CudaSlice<f64>,
    cycles: CudaSlice<f64>,
}

/// `method` as a kernel of `k`: see [`Executions::in_kernel`](crate::compute::Executions::in_kernel).
pub(super) fn make(
    k: &Cuda,
    method: &'static Persistent,
    settings: &Settings,
    system: &System<Cuda>,
) -> Result<Box<dyn Solver<Cuda>>> {
    let refused = |reason: &str| no_execution(Execution::Persistent, reason);
    let matrix = argument(system.a)
        .ok_or_else(|| refused("its formats are `csr`, `bsr`, `hyb`, `dia` and `bdia`, ours"))?;
    let inverse = inverse(system.m).filter(|m| m.parts().is_none() || method.factors);
    let inverse = inverse.ok_or_else(|| refused(preconditioners(method)))?;
    let (block_size, precision) = match inverse.stored() {
        Some((block_size, precision)) => (block_size, Some(precision)),
        None => (system.a.block_size(), None),
    };
    let d = k.gpu();
    let mut variant = Variant::from(block_size);
    variant.defines.push(("FORMAT", matrix.number()));
    variant.defines.push(("PRECOND", inverse.number()));
    variant.defines.extend(matrix_defines(d, system.a, block_size));
    let threads = threads(method, &variant);
    variant.defines.push(("THREADS", threads as usize));
    let variant = variant.storing(precision.unwrap_or_default());
    let kernel = d.kernel(source(method), variant.clone(), method.name)?;
    Ok(Box::new(InKernel::new(d, method, settings, (system, &inverse), kernel, &variant)?))
}

/// The file of a method's kernel.
fn source(method: &Persistent) -> &'static Source {
    let named = sources::ALL.iter().find(|s| s.name.strip_prefix("krylov/") == Some(method.name));
    named.expect("a kernel for each of these methods")
}

/// Threads of a block for a variant.
fn threads(method: &Persistent, variant: &Variant) -> u32 {
    let has = |define| variant.defines.contains(&define);
    let long_rows = has(("PLACES", 2)) && !has(("HALF_SHIFT", 1)) && variant.block_size == 8;
    let more = method.long_row_threads.filter(|_| long_rows && !has(("PRECOND", FACTORS)));
    more.unwrap_or(THREADS)
}

/// What there is beside the preconditioner that is asked for.
fn preconditioners(method: &Persistent) -> &'static str {
    if method.factors {
        "its preconditioners are `none`, `jacobi` and, with blocks of up to 8 and `--trisolve` \
         `auto` or `partitioned`, `bilu`"
    } else {
        "its preconditioners are `none` and `jacobi`"
    }
}

/// The kernel of `method` and its variants for blocks of `block_size`, for tests.
pub fn in_kernel_variants(
    method: &Persistent,
    block_size: usize,
) -> Vec<(&'static Source, Variant)> {
    let of = |format: usize, precond: usize, more: &[(&'static str, usize)]| {
        let mut defines = vec![("FORMAT", format), ("PRECOND", precond)];
        defines.extend(more);
        Variant { defines, ..block_size.into() }
    };
    let mut all = vec![of(0, 1, &[("ROW_LANES", 8)]), of(2, 1, &[]), of(2, 0, &[])];
    if block_size == 1 {
        all.extend([of(3, 1, &[]), of(4, 1, &[])]);
    } else {
        all.extend([of(1, 1, &[]), of(1, 0, &[])]);
    }
    if block_size.is_multiple_of(2) {
        all.push(of(2, 1, &[("PLACES", 2)]));
        all.push(of(2, 1, &[("PLACES", 2), ("HALF_SHIFT", 1)]));
    }
    // those for block Jacobi, and the same for factors
    let mut factors = all.clone();
    factors.retain(|variant| variant.defines.contains(&("PRECOND", 1)));
    for variant in &mut factors {
        for (name, value) in &mut variant.defines {
            if *name == "PRECOND" {
                *value = FACTORS;
            }
        }
    }
    if method.factors {
        all.append(&mut factors);
    }
    let with_threads = |mut variant: Variant| {
        variant.defines.push(("THREADS", threads(method, &variant) as usize));
        (source(method), variant)
    };
    all.into_iter().map(with_threads).collect()
}

/// What a launch left behind.
struct Report {
    initial: f64,
    /// Breakdown of the last iteration, from 1, or 0.
    broken: u32,
    /// Norm of the residual and breakdown of each iteration.
    iterations: Vec<(f64, u32)>,
}

impl Report {
    /// Of a launch that failed: residuals that are no numbers end every solve.
    const FAILED: Self = Self { initial: f64::NAN, broken: 0, iterations: Vec::new() };

    fn read(words: &[f64]) -> Self {
        let halves = |word: f64| [word.to_bits() as u32, (word.to_bits() >> 32) as u32];
        let [count, broken] = halves(words[REPORT - 1]);
        let norms = &words[REPORT..REPORT + MOST];
        let what = words[REPORT + MOST..].iter().flat_map(|&word| halves(word));
        let iterations = norms.iter().copied().zip(what).take(count as usize).collect();
        Self { initial: words[0], broken, iterations }
    }
}

impl InKernel {
    fn new(
        d: &Device,
        method: &'static Persistent,
        settings: &Settings,
        (system, inverse): (&System<Cuda>, &Inverse),
        kernel: CudaFunction,
        variant: &Variant,
    ) -> Result<Self> {
        use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let n = system.b.len();
        let places = variant.defines.iter().find(|(name, _)| *name == "PLACES").map_or(1, |d| d.1);
        let ranges = Ranges::of(d, system.a, n, (places, variant.block_size))?;
        let vectors = method.range_vectors + 1;
        let solves = inverse.parts().map_or(0, |parts| 8 * parts.slots * variant.block_size);
        let room = d.shared_bytes().saturating_sub(RESERVED + solves).min(d.shared_for_values());
        let on_chip = (room / (8 * ranges.longest.max(1))).min(vectors);
        let shared = (8 * on_chip * ranges.longest + solves) as u32;
        // a part of the factors, of which there may be more than ranges, for each thread block
        let blocks = inverse.parts().map_or(0, |parts| parts.lower.count as usize);
        let blocks = blocks.max(ranges.count());
        let mut starts = ranges.starts;
        starts.resize(blocks + 1, n as u32);
        kernel
            .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
            .map_err(|e| failed("cannot prepare the solver", e))?;
        let mut config = grid(blocks, threads(method, variant));
        config.shared_mem_bytes = shared;
        Ok(Self {
            method,
            settings: settings.clone(),
            kernel,
            config,
            n,
            starts: d.copied(&starts)?,
            longest: ranges.longest as u32,
            on_chip,
            read: d.zeros(method.product_vectors * n)?,
            home: d.zeros(method.range_vectors * n)?,
            parts: d.alloc(BEFORE_PARTS + PARTS * blocks)?,
            right: d.zeros(if solves > 0 { n } else { 0 })?,
            words: d.zeros(WORDS)?,
            cycles: d.zeros(REMEMBERED)?,
        })
    }

    /// Does up to `most` iterations more, after `before` of them.
    fn launch(
        &mut self,
        k: &Cuda,
        system: &System<Cuda>,
        x: &CudaSlice<f64>,
        before: Option<usize>,
    ) -> Result<Report> {
        let d = k.gpu();
        d.clear(&mut self.parts)?;
        let left = self.settings.stop.max_iterations.saturating_sub(before.unwrap_or(0));
        let words = address(&self.words);
        let rules = RulesArg {
            rtol: self.settings.stop.rtol,
            diverged: DIVERGED,
            stall: self.settings.stop.stall(),
            most: left.clamp(1, MOST) as u32,
            before: before.unwrap_or(0) as u32,
            cycle: CYCLE as u32,
            stall_cycles: STALL_CYCLES as u32,
        };
        let history = HistoryArg {
            norm: words + 8 * REPORT as u64,
            broken: words + 8 * (REPORT + MOST) as u64,
            cycles: address(&self.cycles),
        };
        let fresh = u32::from(before.is_none());
        self.run(d, system, x, fresh, rules, history)
            .map_err(|e| failed("solver in one kernel", e))?;
        let mut host = [0.0; WORDS];
        k.fetch(&self.words, &mut host)?;
        Ok(Report::read(&host))
    }

    fn run(
        &self,
        d: &Device,
        system: &System<Cuda>,
        x: &CudaSlice<f64>,
        fresh: u32,
        rules: RulesArg,
        history: HistoryArg,
    ) -> Result<(), DriverError> {
        let (starts, home, parts) =
            (address(&self.starts), address(&self.home), address(&self.parts));
        let (n, on_chip, longest) = (self.n as u64, self.on_chip as u32, self.longest);
        let (b, x, report) = (address(system.b), address(x), address(&self.words));
        let read = |i: usize| address(&self.read) + (8 * i * self.n) as u64;
        let of = |m| inverse(m).expect("as when it was made");
        let a = argument(system.a).expect("as when it was made");
        let (kernel, config) = (&self.kernel, self.config);
        let Some(transposed) = &system.transposed else {
            let hat = [read(0), read(1), read(2)];
            let s = BicgstabArg {
                starts,
                b,
                x,
                hat,
                home,
                n,
                on_chip,
                longest,
                parts,
                fresh,
                rules,
                history,
                report,
            };
            let m = of(system.m);
            return match m.parts() {
                Some(&Parts { lower, upper, diagonal, y, .. }) => {
                    let right = address(&self.right);
                    let m = FactorsOfKernelArg { lower, upper, diagonal, right, y };
                    self.bicgstab(d, &a, &m, s)
                }
                None => self.bicgstab(d, &a, &m.blocks(), s),
            };
        };
        let inverse = of(system.m).blocks();
        let transposed_inverse = of(transposed.m).blocks();
        let left = u32::from(self.settings.side == Side::Left);
        let s = QmrArg {
            starts,
            b,
            x,
            p: read(0),
            q: read(1),
            home,
            n,
            on_chip,
            longest,
            inverse,
            transposed_inverse,
            parts,
            fresh,
            left,
            rules,
            history,
            report,
        };
        match (a, argument(transposed.a).expect("stored as A is")) {
            (Point(a), Point(t)) | (Block(a), Block(t)) => {
                launch!(cooperative d, kernel, config; a, t, s)
            }
            (Other(Argument::Bdia(a)), Other(Argument::Bdia(t))) => {
                launch!(cooperative d, kernel, config; a, t, s)
            }
            (Other(Argument::Hyb(a)), Other(Argument::Hyb(t))) => {
                launch!(cooperative d, kernel, config; a, t, s)
            }
            (Other(Argument::Dia(a)), Other(Argument::Dia(t))) => {
                launch!(cooperative d, kernel, config; a, t, s)
            }
            _ => unreachable!("A and A' are stored in one format"),
        }
    }

    /// Launches BiCGStab with the preconditioner as its kernel takes it.
    fn bicgstab<M: DeviceRepr>(
        &self,
        d: &Device,
        a: &MatrixArgument,
        m: &M,
        s: BicgstabArg,
    ) -> Result<(), DriverError> {
        let (kernel, config) = (&self.kernel, self.config);
        match a {
            Point(a) | Block(a) => launch!(cooperative d, kernel, config; *a, *m, s),
            Other(Argument::Bdia(a)) => launch!(cooperative d, kernel, config; *a, *m, s),
            Other(Argument::Hyb(a)) => launch!(cooperative d, kernel, config; *a, *m, s),
            Other(Argument::Dia(a)) => launch!(cooperative d, kernel, config; *a, *m, s),
        }
    }

    /// Why the solve ends with the iterations of a launch, if it does.
    fn judged(&self, judge: &mut ConvergenceMonitor, report: &Report) -> Option<SolveEnd> {
        let word =
            |broken: u32| (broken as usize).checked_sub(1).map(|at| self.method.breakdowns[at]);
        for &(norm, broken) in &report.iterations {
            if let Some(end) = judge.step(norm) {
                return Some(end);
            }
            if self.method.restarts
                && let Some(end) = judge.recurrence(word(broken))
            {
                return Some(end);
            }
            if judge.iterations.is_multiple_of(CYCLE)
                && let Some(end) = judge.cycle()
            {
                return Some(end);
            }
        }
        match word(report.broken) {
            Some(what) if !self.method.restarts => Some(SolveEnd::Breakdown(what)),
            // a launch that failed
            _ => report.iterations.is_empty().then_some(SolveEnd::Diverged),
        }
    }

    /// What does not fit on the chip.
    fn remark(&self) -> Option<String> {
        let vectors = self.method.range_vectors + 1;
        (self.on_chip < vectors)
            .then(|| format!("{} of {vectors} vectors in shared memory", self.on_chip))
    }
}

impl Solver<Cuda> for InKernel {
    fn solve(
        &mut self,
        k: &Cuda,
        system: &System<Cuda>,
        x: &mut CudaSlice<f64>,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let stop = self.settings.stop.clone();
        let mut launch = |before: Option<usize>| {
            self.launch(k, system, x, before).unwrap_or_else(|e| {
                k.failed(e);
                Report::FAILED
            })
        };
        let mut report = launch(None);
        let mut judge = ConvergenceMonitor::new(&stop, monitor, report.initial);
        let end = loop {
            if let Some(end) = judge.first().filter(|_| judge.iterations == 0) {
                break end;
            }
            if let Some(end) = self.judged(&mut judge, &report) {
                break end;
            }
            report = self.launch(k, system, x, Some(judge.iterations)).unwrap_or_else(|e| {
                k.failed(e);
                Report::FAILED
            });
        };
        let mut outcome = judge.outcome(end);
        let remarks: Vec<String> =
            [outcome.remark.take(), self.remark()].into_iter().flatten().collect();
        outcome.remark = (!remarks.is_empty()).then(|| remarks.join("; "));
        outcome
    }
}
