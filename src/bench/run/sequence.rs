//! Runs a case on a sequence of systems: what depends on the pattern alone is made once, as long as the pattern stays.

use std::sync::Arc;

use super::crowd::Crowd;
use super::phases::{self, PhaseClock, Stopwatch};
use super::step::Step;
use super::{Job, NoResult, Progress, Reuse, Solved, Stage, range, with_job, without_backend};
use crate::base::error::Result;
use crate::base::parse::choice_name;
use crate::base::threads::Threads;
use crate::case::{Case, Execution, Refactor};
use crate::compute::krylov::{Projection, Settings, System, Transposed};
use crate::compute::preconditioner::Lagged;
use crate::compute::{Backend, Clock, Visitor, with_threads};
use crate::config::sampling::Measure;
use crate::matrix::pattern::count_blocks;
use crate::matrix::{Csr, Equilibration};
use crate::methods::precond::quality::quality;
use crate::methods::precond::transposed::Both;
use crate::methods::precond::{self, Kept};
use crate::methods::solver;
use crate::problem::Problem;
use crate::problem::sequence::other_size;
use crate::record::Record;
use crate::record::schema::{SetupDone, Times};

/// The system of a step.
pub(crate) struct StepSystem {
    /// In the order of the case.
    pub problem: Problem,
    /// Its right-hand side.
    pub b: Vec<f64>,
    /// What its solve starts from; zero if nothing.
    pub guess: Option<Vec<f64>>,
}

/// The system of a step, or the record of one that there is not.
pub(crate) type Loaded = Result<StepSystem, Box<Record>>;

/// Has the systems of a sequence and takes their results.
pub(crate) trait Steps {
    /// The system of a step, from 0; a record where there is none.
    ///
    /// # Errors
    /// When it cannot be read; the sequence ends there.
    fn load(&mut self, step: usize) -> Result<Loaded>;
    /// A stage begins; `false` ends the sequence.
    fn stage(&mut self, stage: Stage) -> bool;
    /// A step is finished.
    ///
    /// # Errors
    /// When its record cannot be kept; the sequence ends there.
    fn done(&mut self, step: usize, solved: Solved) -> Result<()>;
}

/// As [`solve_sequence`](super::solve_sequence), on one device.
pub(super) fn on_device(cases: &[&Case], measure: &Measure, steps: &mut dyn Steps) -> Result<bool> {
    let Some(first) = cases.first() else { return Ok(true) };
    let loaded = steps.load(0)?;
    let entries = loaded.as_ref().map_or(usize::MAX, |system| system.problem.matrix.nnz());
    let run = Run { cases, measure, steps: &mut *steps, loaded: Some(loaded) };
    let why = match with_threads(&first.backend, first.threads, entries, run) {
        Some(Ok(ended)) => return ended,
        Some(Err(why)) => Some(why),
        None => None,
    };
    none(cases, why.as_ref(), steps)
}

/// Hands over the records of steps whose backend is not there, or could not be made.
pub(super) fn none(
    cases: &[&Case],
    why: Option<&crate::Error>,
    steps: &mut dyn Steps,
) -> Result<bool> {
    for (step, case) in cases.iter().enumerate() {
        steps.done(step, without_backend(case, why).into())?;
    }
    Ok(true)
}

struct Run<'a> {
    cases: &'a [&'a Case],
    measure: &'a Measure,
    steps: &'a mut dyn Steps,
    /// The first system.
    loaded: Option<Loaded>,
}

/// What a step leaves to the next.
struct Left<K: Backend> {
    /// The matrix, whose pattern counts.
    a: Arc<Csr>,
    /// Its blocks.
    blocks: usize,
    /// Power of two by which it was divided, after its rows and columns were scaled.
    exponent: i32,
    equilibration: Option<Equilibration>,
    /// As the product takes it, and its transpose.
    matrix: K::Matrix,
    other: Option<K::Matrix>,
    m: Both<K>,
    /// Whether the setup has a phase.
    has_phases: bool,
}

/// How long a preconditioner has been in use, and what it costs.
#[derive(Debug, Default)]
pub(super) struct Lag {
    /// Steps since it was made, the one included.
    steps: usize,
    /// Iterations of that step, and of the last one.
    fresh: usize,
    last: usize,
    failed: bool,
}

impl Lag {
    /// Whether the next step is to have a new one.
    pub(super) fn is_over(&self, refactor: Refactor) -> bool {
        let over = match refactor {
            Refactor::Always => true,
            Refactor::Every(steps) => self.steps >= steps,
            Refactor::Adaptive(factor) => self.last as f64 > factor * self.fresh.max(1) as f64,
        };
        over || self.failed
    }

    pub(super) fn solved(&mut self, new: bool, iterations: usize, succeeded: bool) {
        if new {
            (self.steps, self.fresh) = (0, iterations);
        }
        self.steps += 1;
        (self.last, self.failed) = (iterations, !succeeded);
    }
}

impl Visitor for Run<'_> {
    type Output = Result<bool>;

    fn visit<K: Backend + 'static>(self, k: &K) -> Result<bool> {
        let Self { cases, measure, steps, loaded } = self;
        let (mut left, mut lag) = (None, Lag::default());
        each(cases, measure, steps, loaded, |mut job, guess, number| {
            let kernels = Kernels::before(k);
            job.on(k);
            let done = job.step(k, &mut left, &mut lag, (number, guess));
            kernels.record(k, &mut job.record.times);
            job.ended(done)
        })
    }
}

/// Has `solve` run each step, of which it gets the guess and the number, from 0; the first system may be `loaded`.
/// `false` when the user stopped it.
///
/// # Errors
/// As [`solve_sequence`](super::solve_sequence).
pub(super) fn each(
    cases: &[&Case],
    measure: &Measure,
    steps: &mut dyn Steps,
    mut loaded: Option<Loaded>,
    mut solve: impl FnMut(Job, Option<Vec<f64>>, usize) -> Option<Solved>,
) -> Result<bool> {
    let mut n = None;
    for (number, case) in cases.iter().enumerate() {
        let StepSystem { problem, b, guess } =
            match loaded.take().map_or_else(|| steps.load(number), Ok)? {
                Ok(system) => system,
                Err(record) => {
                    steps.done(number, (*record).into())?;
                    continue;
                }
            };
        let rows = problem.matrix.rows();
        let first = *n.get_or_insert(rows);
        if first != rows {
            return Err(other_size(&case.matrix, number, rows, first));
        }
        let in_range = range::in_range(&problem.matrix, &b);
        // a pattern that is known here costs nothing
        let reuse = &mut Reuse::default();
        let progress: Progress = &mut |stage| steps.stage(stage);
        let with = (measure, progress, reuse);
        let solved = with_job((case, &problem), &in_range, with, |job| solve(job, guess, number));
        let Some(solved) = solved else { return Ok(false) };
        steps.done(number, solved)?;
    }
    Ok(true)
}

/// Seconds of compiling and choosing kernels before a step.
pub(super) struct Kernels([Option<f64>; 2]);

impl Kernels {
    pub(super) fn before(k: &impl Clock) -> Self {
        Self([k.compile_seconds(), k.trial_seconds()])
    }

    /// Records those of the step.
    pub(super) fn record(self, k: &impl Clock, times: &mut Times) {
        let [compiled, tried] = self.0;
        let since = |now: Option<f64>, before: Option<f64>| Some(now? - before.unwrap_or(0.0));
        times.compile_s = since(k.compile_seconds(), compiled);
        times.trial_s = since(k.trial_seconds(), tried);
    }
}

impl Job<'_> {
    /// Whether the matrix stores the entries of that of the step before, if there was one; remarks where it does not.
    pub(super) fn is_alike(&mut self, before: Option<&Csr>, number: usize) -> bool {
        let of = |a: &Csr| (a.row_ptr(), a.col_ind()) == (self.a.row_ptr(), self.a.col_ind());
        let alike = before.map(of);
        if alike == Some(false) {
            self.record.remark(format!(
                "the pattern is not that of step {number}: symbolic phase and analysis again"
            ));
        }
        alike == Some(true)
    }

    /// Whether the preconditioner is regenerated; a remark says where another scaling alone is why.
    pub(super) fn is_due(&mut self, scaled: bool, lag: &Lag) -> bool {
        let over = lag.is_over(self.case.refactor);
        if scaled && !over {
            let why = "another scaling than that of the step before: a new preconditioner";
            self.record.remark(why.into());
        }
        scaled || over
    }

    /// One step with what the last one left, which is lost where this one fails before its solve.
    fn step<K: Backend + 'static>(
        &mut self,
        k: &K,
        left: &mut Option<Left<K>>,
        lag: &mut Lag,
        (number, guess): (usize, Option<Vec<f64>>),
    ) -> Result<(), NoResult> {
        let before = left.take();
        if before.is_none() && number > 0 {
            self.record.remark(format!("step {number} left nothing: every phase again"));
        }
        let alike = self.is_alike(before.as_ref().map(|left| &*left.a), number);
        let crowd = Crowd::before(k);
        let (now, made) = match before.filter(|_| alike) {
            Some(known) => self.with_new_values(k, known, lag)?,
            None => self.all_phases(k)?,
        };
        self.record.setup_done = Some(made);
        self.record_factors(k, &*now.m.0);
        self.solve_with(k, &now, guess, number + 1)?;
        if made != SetupDone::None {
            // what cannot be told is left out
            self.record.quality = quality(k, &*now.m.0, self.a).unwrap_or_default();
        }
        crowd.remark(k).into_iter().for_each(|remark| self.record.remark(remark));
        let succeeded = self.record.status.succeeded();
        let new = made != SetupDone::None;
        lag.solved(new, self.record.convergence.iterations, succeeded);
        *left = Some(now);
        Ok(())
    }

    /// Every phase.
    fn all_phases<K: Backend + 'static>(
        &mut self,
        k: &K,
    ) -> Result<(Left<K>, SetupDone), NoResult> {
        let (setup, _) = self.methods(k)?;
        self.check_matrix(k)?;
        let blocks = count_blocks(Threads::Pool, self.a);
        self.record.size.matrix_blocks = blocks;
        let (matrix, other) = self.store(k, solver::needs_transposed(&self.case.solver))?;
        let (transposed, other) = other.unzip();
        let m = self.set_up(k, setup, transposed.as_ref())?;
        let has_phases = phases::any(&self.record.times);
        let (a, exponent) = (Arc::clone(self.a), self.system.scaling.matrix);
        let equilibration = self.given.map(|given| given.equilibration.clone());
        let left = Left { a, blocks, exponent, equilibration, matrix, other, m, has_phases };
        Ok((left, if has_phases { SetupDone::All } else { SetupDone::None }))
    }

    /// New values alone; the preconditioner stays as it is where it may.
    fn with_new_values<K: Backend + 'static>(
        &mut self,
        k: &K,
        mut known: Left<K>,
        lag: &Lag,
    ) -> Result<(Left<K>, SetupDone), NoResult> {
        self.methods(k)?;
        self.record.size.matrix_blocks = known.blocks;
        known.a = Arc::clone(self.a);
        self.begin(k, Stage::Storage)?;
        let stopwatch = Stopwatch::start(k);
        let transposed = known.other.is_some().then(|| Arc::new(self.a.transposed()));
        k.matrix_values(&mut known.matrix, self.a)?;
        if let Some((matrix, a)) = known.other.as_mut().zip(transposed.as_ref()) {
            k.matrix_values(matrix, a)?;
        }
        self.record.times.matrix_s = Some(stopwatch.seconds(k));
        self.record.format_used = Some(choice_name(&k.format(&known.matrix)));
        self.record.tuned = k.tuned(&known.matrix);
        let equilibration = self.given.map(|given| given.equilibration);
        let scaled = known.exponent != self.system.scaling.matrix
            || known.equilibration.as_ref() != equilibration;
        let due = known.has_phases && self.is_due(scaled, lag);
        known.exponent = self.system.scaling.matrix;
        known.equilibration = equilibration.cloned();
        if !due {
            phases::record(&[[None; 3]], &mut self.record.times);
            return Ok((known, SetupDone::None));
        }
        let kept = self.renew(k, &mut known.m, transposed.as_ref())?;
        Ok((known, kept.into()))
    }

    /// Preconditioners of the new values.
    fn renew<K: Backend + 'static>(
        &mut self,
        k: &K,
        (m, other): &mut Both<K>,
        transposed: Option<&Arc<Csr>>,
    ) -> Result<Kept, NoResult> {
        let settings = self.case.preconditioning();
        let mut clock = PhaseClock::new(k, self.progress, None);
        let mut renewed = precond::renew(m, k, self.a, &settings, &mut clock);
        if let Some((m, a)) = other.as_mut().zip(transposed)
            && renewed.is_ok()
        {
            renewed = precond::renew(m, k, a, &settings, &mut clock);
        }
        k.check()?;
        let Some(seconds) = clock.finish() else { return Err(NoResult::Cancelled) };
        let times = &mut self.record.times;
        phases::record(&[seconds], times);
        let kept = renewed?;
        let kernel = m.numeric_kernel_seconds(k).filter(|seconds| !seconds.is_nan());
        times.numeric_kernel_s = kernel.or(times.numeric_s);
        Ok(kept)
    }

    /// One solve.
    fn solve_with<K: Backend + 'static>(
        &mut self,
        k: &K,
        now: &Left<K>,
        guess: Option<Vec<f64>>,
        number: usize,
    ) -> Result<(), NoResult> {
        let deflation = self.deflate(k)?;
        let guess = self.guess(guess);
        let (m, other_m) = &now.m;
        let lagged = Lagged(&**m);
        let of_others = self.record.setup_done == Some(SetupDone::None);
        let (case, n) = (self.case, self.unknowns);
        let solver = |k: &K, settings: &Settings, system: &System<K>| match case.execution {
            Execution::Persistent => Ok(solver::in_kernel(&case.solver, k, settings, system)?),
            _ => Ok(solver::lookup::<K>(&case.solver).expect("looked up before")(k, settings, n)?),
        };
        let step = Step {
            matrix: &now.matrix,
            m: if of_others { &lagged } else { &**m },
            transposed: now
                .other
                .as_ref()
                .zip(other_m.as_deref())
                .map(|(a, m)| Transposed { a, m }),
            second: deflation.as_ref().map(|d| d as &dyn Projection<K>),
            solver: &solver,
            number,
        };
        let b = &self.system.b;
        let (x, outcome) = self.solve_step(k, &step, b, guess.as_deref())?;
        self.conclude(k, &x, &outcome);
        Ok(())
    }
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
