//! Projected Richardson on one GPU or several of one host; mirrors `obstacle::threads`.

mod connect;
mod kernels;
mod part;
mod peers;
#[cfg(feature = "mpi")]
mod rank;
mod tiles;

use std::collections::VecDeque;
use std::sync::Arc;

use cudarc::driver::CudaEvent;

use crate::base::error::Result;
use crate::base::measure::{now, seconds_since};
use crate::base::status::Status;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::layout::Layout;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::{OBSTACLE, OBSTACLE_BLOCKED, Source, Variant};
use crate::compute::krylov::SolveEnd;
use crate::obstacle::field::Extent;
use crate::obstacle::solve::{Limits, Outcome};
use crate::obstacle::threads::Ran;
use crate::obstacle::{Case, MAX_SWEEPS_PER_PASS, Method, Mode, Problem, Split, StopOn};
use kernels::Kind;
use part::{Launch, Part};
#[cfg(feature = "mpi")]
pub use rank::RankNode;
#[cfg(feature = "mpi")]
pub(crate) use rank::{check_rank_memory, device_of};

/// Memory traffic of the sweeps between two tests of the stopping criterion: some milliseconds.
const BYTES_AHEAD: f64 = 8e9;

/// Structs that the kernels share with this module.
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    [kernels::LAYOUTS, part::LAYOUTS, tiles::LAYOUTS].into_iter().flatten()
}

/// Every variant of the sources, for the tests of their compilation.
pub fn obstacle_variants() -> Vec<(&'static Source, Variant)> {
    let mut list = Vec::new();
    for floor in [false, true] {
        for kind in [Kind::Jacobi, Kind::Lines, Kind::Points, Kind::InPlace] {
            list.extend(
                [false, true]
                    .map(|with_residual| (&OBSTACLE, kernels::variant(kind, floor, with_residual))),
            );
        }
        let passes = (2..=MAX_SWEEPS_PER_PASS).map(|sweeps| (sweeps, 1)).chain([(1, 2)]);
        list.extend(passes.map(|(sweeps, colours)| {
            (&OBSTACLE_BLOCKED, kernels::blocked_variant(sweeps, colours, floor))
        }));
    }
    list
}

/// Devices of a run, for its record.
pub struct Used {
    /// Their description.
    pub device: String,
    /// Copy bandwidth of one in GB/s, where it could be measured.
    pub copy_gbps: Option<f64>,
    /// Seconds that compiling and loading kernels took.
    pub compile_s: f64,
}

/// Runs a case on `split.z` GPUs.
///
/// # Errors
/// When there are not as many, or an operation of one fails.
pub fn run(case: &Case, limits: Limits<'_>, keep: bool) -> Result<(Ran, Used)> {
    let split = case.split.unwrap_or(Split::WHOLE);
    let count = split.count();
    let devices = Device::several(count)?;
    // measured first: its arrays do not add to the fields
    let copy_gbps = Some(devices[0].copy_bandwidth()).filter(|gbps| gbps.is_finite());
    let start = now();
    let compiled =
        |devices: &[Arc<Device>]| devices.iter().map(|d| d.compile_seconds()).sum::<f64>();
    let before = compiled(&devices);
    let parts = devices.iter().enumerate().map(|(number, device)| {
        Part::new(Arc::clone(device), case, Extent::of_node(case.m, split, number))
    });
    let mut run = Run { case, parts: parts.collect::<Result<_>>()? };
    run.prepare()?;
    let compile_s = compiled(&devices) - before;
    let setup = seconds_since(start) - compile_s;
    let start = now();
    let mut outcome = run.steps(limits)?;
    let seconds = [setup, seconds_since(start)];
    run.judge(&mut outcome)?;
    let solution = if keep { Some(run.solution()?) } else { None };
    let name = devices[0].describe();
    let device = if count > 1 { format!("{count} x {name}") } else { name };
    Ok((Ran { outcome, seconds, solution }, Used { device, copy_gbps, compile_s }))
}

struct Run<'a> {
    case: &'a Case,
    parts: Vec<Part>,
}

/// The asynchronous sweeps of a GPU between two synchronous ones.
struct FreeRun {
    /// Sweeps launched in the time step.
    launched: usize,
    /// The sweep after which it had converged.
    done: Option<usize>,
    /// The monitored quantity at its last poll.
    value: f64,
    /// Polls in flight, and where their results arrive.
    asked: VecDeque<(usize, CudaEvent)>,
    /// Index of the next poll.
    place: usize,
}

impl FreeRun {
    fn after(launched: usize) -> Self {
        Self { launched, done: None, value: f64::INFINITY, asked: VecDeque::new(), place: 0 }
    }

    /// Takes the result of the oldest poll; waits for it.
    fn poll(&mut self, part: &Part, with_residual: bool) -> Result<()> {
        let Some((place, event)) = self.asked.pop_front() else { return Ok(()) };
        let state = part.answer(place, &event)?;
        self.value = if with_residual { state.worst } else { state.norm };
        self.done = state.done.then_some(state.sweeps);
        Ok(())
    }
}

/// The end of a time step.
struct Step {
    /// Sweeps of each GPU.
    sweeps: Vec<usize>,
    stopped: Option<SolveEnd>,
}

impl Run<'_> {
    fn with_residual(&self) -> bool {
        self.case.stop == StopOn::Complementarity
    }

    fn prepare(&mut self) -> Result<()> {
        let (with_residual, case) = (self.with_residual(), self.case);
        connect::connect(&mut self.parts)?;
        for part in &mut self.parts {
            if case.colours_in_one_pass() {
                part.prepare_blocked(1, 2)?;
            } else if case.sweeps_per_pass > 1 {
                part.prepare_blocked(case.sweeps_per_pass, 1)?;
            } else {
                part.prepare(Kind::of(case.method), case.looks_before_sweep())?;
            }
            if case.mode == Mode::Async {
                part.prepare(Kind::InPlace, with_residual)?;
            }
            // the complementarity of the solution
            part.prepare(Kind::Jacobi, true)?;
        }
        Ok(())
    }

    fn steps(&mut self, limits: Limits<'_>) -> Result<Outcome> {
        let mut outcome = Outcome { status: Some(Status::Converged), ..Outcome::default() };
        for _ in 0..self.case.steps {
            for part in &mut self.parts {
                part.begin_step()?;
            }
            connect::meet(&mut self.parts)?;
            let step = match (self.case.mode, self.parts.len()) {
                (Mode::Async, _) => self.asynchronous(limits, &mut outcome)?,
                (Mode::Sync, 1) => self.alone(limits, &mut outcome)?,
                (Mode::Sync, _) => self.together(limits, &mut outcome)?,
            };
            let sweeps = step.sweeps.iter().sum::<usize>();
            outcome.relaxations += sweeps as u64;
            outcome.sweeps.push(sweeps as f64 / self.parts.len() as f64);
            if let Some(stopped) = step.stopped {
                outcome.status = stopped.status();
                break;
            }
        }
        Ok(outcome)
    }

    /// Sweeps to launch before the next poll of the state.
    fn ahead(&self) -> usize {
        let points = self.parts[0].layout.len() as f64;
        let pass = self.parts[0].levels();
        let passes = (BYTES_AHEAD / (24.0 * points)).clamp(4.0, 256.0) as usize;
        passes * pass
    }

    /// Whether to stop before sweep `next`, and why.
    fn stopped(&self, limits: Limits<'_>, sweeps: usize) -> Option<SolveEnd> {
        limits
            .stopped()
            .or((sweeps >= self.case.max_relaxations).then_some(SolveEnd::IterationLimit))
    }

    /// One GPU: the kernels end the time step themselves; later launches return at once.
    fn alone(&mut self, limits: Limits<'_>, outcome: &mut Outcome) -> Result<Step> {
        let (case, ahead) = (self.case, self.ahead());
        let kind = Kind::of(case.method);
        let part = &mut self.parts[0];
        let (start, levels) = (part.fields_order(), part.levels());
        let in_place = kind.in_place() && !part.in_passes();
        let (mut launched, mut asked) = (0, None);
        let mut place = 0;
        loop {
            let until = (launched + ahead).min(case.max_relaxations.next_multiple_of(levels));
            while launched < until {
                launched += levels;
                let last = launched >= case.max_relaxations;
                let counts = launched.is_multiple_of(case.check_every) || last;
                let number = if counts { launched } else { 0 };
                let launch = Launch { number, bound: case.epsilon };
                if part.in_passes() {
                    part.pass(launch)?;
                } else {
                    let number = if case.looks_after_sweep() { 0 } else { number };
                    part.sweep(kind, case.looks_before_sweep(), Launch { number, ..launch })?;
                }
                if !in_place {
                    part.swap();
                }
                if counts && case.looks_after_sweep() {
                    part.look(launch)?;
                }
            }
            let event = part.ask(place)?;
            // one poll behind, so that the GPU always has work
            let before = asked.replace((place, event));
            place = 1 - place;
            let exhausted = launched >= case.max_relaxations;
            let stop = limits.stopped().or(exhausted.then_some(SolveEnd::IterationLimit));
            let state = match before {
                _ if stop.is_some() => part.state()?,
                Some((place, event)) => part.answer(place, &event)?,
                None => continue,
            };
            if state.done || stop.is_some() {
                let sweeps = if state.done {
                    state.sweeps - usize::from(case.looks_before_sweep())
                } else {
                    launched
                };
                outcome.step_norm = state.norm;
                if !in_place {
                    part.select(start + sweeps / levels);
                }
                let stopped = if state.done { None } else { stop };
                return Ok(Step { sweeps: vec![sweeps], stopped });
            }
        }
    }

    /// Several GPUs that wait for each other's halos after each sweep; polling the norm needs all of them.
    fn together(&mut self, limits: Limits<'_>, outcome: &mut Outcome) -> Result<Step> {
        let (case, with_residual) = (self.case, self.with_residual());
        let mut sweeps = 0;
        loop {
            let until = (sweeps + case.check_every).min(case.max_relaxations);
            while sweeps < until {
                sweeps += 1;
                let number = if sweeps == until { sweeps } else { 0 };
                self.sweep_together(with_residual, number)?;
            }
            let done = self.change(outcome)? < case.epsilon;
            if done {
                sweeps -= self.take_back();
            }
            let stopped = if done { None } else { self.stopped(limits, sweeps) };
            if done || stopped.is_some() {
                return Ok(Step { sweeps: vec![sweeps; self.parts.len()], stopped });
            }
        }
    }

    /// Reverts the last sweep if its old values already met the tolerance; returns the number of reverted
    /// sweeps.
    fn take_back(&mut self) -> usize {
        let back = self.case.looks_before_sweep();
        if back {
            self.parts.iter_mut().for_each(Part::swap);
        }
        usize::from(back)
    }

    /// A Jacobi sweep of all parts, each after its neighbours' previous sweep.
    fn sweep_together(&mut self, with_residual: bool, number: usize) -> Result<()> {
        // never below: the host adds up
        let launch = Launch { number, bound: -1.0 };
        connect::meet(&mut self.parts)?;
        for part in &mut self.parts {
            part.sweep(Kind::Jacobi, with_residual, launch)?;
            part.swap();
        }
        Ok(())
    }

    /// The monitored quantity of the last counted sweep; waits for all GPUs.
    fn change(&mut self, outcome: &mut Outcome) -> Result<f64> {
        let mut worst = 0.0_f64;
        let mut squared = vec![0.0; self.case.norm_split.count()];
        let asked: Vec<_> = self.parts.iter_mut().map(|part| part.ask(0)).collect::<Result<_>>()?;
        for (part, event) in self.parts.iter().zip(&asked) {
            let state = part.answer(0, event)?;
            worst = worst.max(state.worst);
            for (sum, part) in squared.iter_mut().zip(state.squared) {
                *sum += part;
            }
        }
        outcome.step_norm = squared.iter().fold(0.0, |a: f64, v| a.max(v.sqrt()));
        Ok(if self.with_residual() { worst } else { outcome.step_norm })
    }

    /// Every GPU sweeps in place with the latest values of its neighbours and of its own thread blocks. When
    /// each has converged locally, a synchronous sweep verifies it.
    fn asynchronous(&mut self, limits: Limits<'_>, outcome: &mut Outcome) -> Result<Step> {
        const STRICTER: f64 = 0.8;
        let with_residual = self.with_residual();
        let mut bound = self.case.epsilon;
        let mut sweeps = vec![0; self.parts.len()];
        loop {
            let stopped = self.run_free(limits, bound, &mut sweeps)?;
            for part in &mut self.parts {
                part.forget()?;
            }
            // values of all, and of one time
            self.sweep_in_step(with_residual)?;
            for own in &mut sweeps {
                *own += 1;
            }
            let done = self.change(outcome)? < self.case.epsilon;
            if done {
                let back = self.take_back();
                for own in &mut sweeps {
                    *own -= back;
                }
            }
            if done || stopped.is_some() {
                return Ok(Step { sweeps, stopped: if done { None } else { stopped } });
            }
            outcome.false_alarms += 1;
            bound *= STRICTER;
        }
    }

    /// Asynchronous sweeps until the last poll of each GPU was below `bound`; adds them to `sweeps`. One
    /// GPU ends by itself where it is, several go on until all are there. Waits for nobody else.
    fn run_free(
        &mut self,
        limits: Limits<'_>,
        bound: f64,
        sweeps: &mut [usize],
    ) -> Result<Option<SolveEnd>> {
        let (case, with_residual, alone) = (self.case, self.with_residual(), self.parts.len() == 1);
        // a poll at least every 32 sweeps
        let ahead = self.ahead().clamp(1, 32);
        let mut runs: Vec<_> = sweeps.iter().map(|&made| FreeRun::after(made)).collect();
        let mut stopped = None;
        while runs.iter().any(|run| run.value >= bound) && stopped.is_none() {
            for (run, part) in runs.iter_mut().zip(&mut self.parts) {
                if let Some((_, event)) = run.asked.front() {
                    let complete = event.try_is_complete();
                    if complete.map_err(|e| failed("an asynchronous sweep failed", e))? {
                        run.poll(part, with_residual)?;
                    }
                }
                // one batch is in flight while the next waits
                while run.asked.len() < 2 && run.launched < case.max_relaxations {
                    let until = (run.launched + ahead).min(case.max_relaxations);
                    while run.launched < until {
                        run.launched += 1;
                        let counts = alone && run.launched.is_multiple_of(case.check_every);
                        let number = if counts || run.launched == until { run.launched } else { 0 };
                        let bound = if alone { bound } else { -1.0 };
                        part.sweep(Kind::InPlace, with_residual, Launch { number, bound })?;
                    }
                    run.asked.push_back((run.place, part.ask(run.place)?));
                    run.place = 1 - run.place;
                }
            }
            let least = runs.iter().map(|run| run.launched).min().unwrap_or(0);
            stopped = self.stopped(limits, least);
        }
        for ((run, part), sweeps) in runs.iter_mut().zip(&mut self.parts).zip(sweeps) {
            while !run.asked.is_empty() {
                run.poll(part, with_residual)?;
            }
            *sweeps = run.done.unwrap_or(run.launched);
        }
        // who was done with the last sweep that is allowed was not stopped
        Ok(stopped.filter(|_| runs.iter().any(|run| run.value >= bound)))
    }

    /// A synchronous sweep whose update is monitored.
    fn sweep_in_step(&mut self, with_residual: bool) -> Result<()> {
        let kind = Kind::of(self.case.method);
        if self.case.method == Method::Jacobi {
            return self.sweep_together(with_residual, 1);
        }
        let part = &mut self.parts[0];
        let number = usize::from(!with_residual);
        part.sweep(kind, false, Launch { number, bound: -1.0 })?;
        if !kind.in_place() {
            part.swap();
        }
        if with_residual { part.look(Launch { number: 1, bound: -1.0 }) } else { Ok(()) }
    }

    /// Complementarity, contact and fingerprint.
    fn judge(&mut self, outcome: &mut Outcome) -> Result<()> {
        for part in &mut self.parts {
            part.state()?;
            part.forget()?;
        }
        for part in &mut self.parts {
            part.look(Launch { number: 1, bound: -1.0 })?;
            outcome.complementarity = outcome.complementarity.max(part.state()?.worst);
            let [contact, fingerprint] = part.judge()?;
            outcome.contact += contact;
            outcome.fingerprint = outcome.fingerprint.wrapping_add(fingerprint);
        }
        Ok(())
    }

    /// All values, x fastest.
    fn solution(&self) -> Result<Vec<f64>> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.extend(part.field()?.values());
        }
        Ok(all)
    }
}

/// Whether a case fits the memory of each GPU.
///
/// # Errors
/// With the bytes needed and free.
pub(crate) fn check_memory(case: &Case, problem: &Problem) -> Result<()> {
    let devices = Device::several(case.split.map_or(1, Split::count))?;
    let needed = fields(problem) * problem.bytes() / devices.len();
    crate::obstacle::node::check_memory(needed, devices[0].memory()?.free, "each GPU")
}

/// Values per grid point on a GPU.
fn fields(problem: &Problem) -> usize {
    3 + usize::from(problem.flat_floor().is_none())
}
