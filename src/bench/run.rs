//! Runs one case and returns its record.

mod answer;
mod basis;
mod bisections;
mod checks;
mod crowd;
mod distributed;
mod divided;
mod exchange;
mod first_rank;
mod held;
mod judge;
mod levels;
mod loading;
mod new_values;
mod no_result;
mod on_ranks;
pub(crate) mod peer;
mod phases;
mod product;
mod range;
mod ranks;
mod refill;
mod reuse;
mod roof;
mod scaling;
mod sequence;
pub(crate) mod several;
mod speed;
mod step;
mod task;
mod traffic;
mod verdict;
mod watch;

use crate::compute::{Backend, Clock, Operations, Platform, Products, Visitor};
use std::sync::Arc;

use crate::base::error::Kind;
use crate::base::external::external;
use crate::base::measure::{median, now, seconds_since};
use crate::base::parse::choice_name;
use crate::base::status::Status;
use crate::base::threads::Threads;
use crate::case::{Case, Execution, RunKind};
use crate::compute;
use crate::compute::krylov::{Outcome, Projection, Settings, Solver, Stop, System, Transposed};
use crate::compute::preconditioner::{FactorSize, Preconditioner};
pub use crate::config::sampling::Measure;
use crate::matrix::pattern::count_blocks;
use crate::matrix::{Csr, bsr};
use crate::methods::precond::quality::quality;
use crate::methods::precond::transposed::{self, Both};
use crate::methods::precond::{Setup, Shape};
use crate::methods::{precond, solver};
use crate::problem::Problem;
use crate::record::Record;
use crowd::Crowd;
pub(crate) use loading::{by_rows, divided};
use no_result::{NoResult, together};
use phases::{PhaseClock, PhaseSeconds, Stopwatch};
use range::Scaled;
#[cfg(feature = "mpi")]
pub(crate) use ranks::serve;
pub(crate) use ranks::{OfRanks, Outline};
pub(crate) use reuse::Reuse;
use roof::Roof;
use scaling::{Equilibrated, Given};
pub(crate) use sequence::{Loaded, StepSystem, Steps};
use speed::Speed;
pub(crate) use verdict::contradicts;
use watch::{CaseMonitor, History};

/// A stage of a case, for progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Conversion of the matrix to the format of the product.
    Storage,
    /// Fill pattern.
    Symbolic,
    /// Schedules, storage and factorisation.
    Numeric,
    /// First solve, not timed unless it is long.
    WarmUp,
    /// Timed solve number i (from 1), or the solve of step i of a sequence.
    Solve(usize),
    /// Times and bandwidth of single operations.
    Traffic,
    /// Numeric phase on new values number i (from 1).
    NewValues(usize),
}

/// Progress callback, called at the start of each stage and at every iteration; `false` cancels the case.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(Stage) -> bool;

/// Runs `case` on `problem` (which must be the one `case.matrix` names, in the order of
/// `case.ordering`) with right-hand side `b`.
///
/// Never fails: breakdown, divergence, exhausted memory and unsupported combinations are records.
/// `progress` is called at the start of each stage; when it returns `false` (Ctrl-C), the case is
/// cancelled and `None` is returned.
pub fn run_case(
    case: &Case,
    problem: &Problem,
    b: &[f64],
    measure: &Measure,
    progress: Progress,
) -> Option<Record> {
    let solved = solve_case(case, problem, b, measure, progress, &mut Reuse::default())?;
    Some(solved.record)
}

#[derive(Clone, Debug)]
pub(crate) struct Solved {
    pub record: Record,
    /// x of the last solve, without padding, in the order of the unknowns of the problem that was solved;
    /// `None` if no solve was completed.
    pub x: Option<Vec<f64>>,
}

impl From<Record> for Solved {
    fn from(record: Record) -> Self {
        Self { record, x: None }
    }
}

/// As [`run_case`], with the solution; if `reuse` holds the pattern of the factors from an earlier case of the
/// same matrix, it is used, and `symbolic_s` is the time of that case.
pub(crate) fn solve_case(
    case: &Case,
    problem: &Problem,
    b: &[f64],
    measure: &Measure,
    progress: Progress,
    reuse: &mut Reuse,
) -> Option<Solved> {
    reuse.begin(&problem.matrix);
    let in_range = match case.kind {
        RunKind::Solve => range::in_range(&problem.matrix, b),
        // nothing is squared
        RunKind::Spmv => range::as_given(&problem.matrix, b),
    };
    let equilibrated = scaling::equilibrated(case, &in_range);
    let given = equilibrated.as_ref().map(|(_, of)| of.given(&in_range));
    let system = equilibrated.as_ref().map_or(&in_range, |(system, _)| system);
    let a = &Arc::new(bsr::pad(&system.matrix, case.block_size));
    let scaling = equilibrated.as_ref().map(|(_, of)| of);
    let mut record = begun(case, problem, system, scaling, a);
    let blocks = || count_blocks(Threads::Pool, a);
    record.size.matrix_blocks = reuse.blocks(case.block_size, blocks);
    let unknowns = a.rows();
    let columns = b.len() / problem.matrix.rows().max(1);
    if columns > 1 {
        record.size.rhs_count = Some(columns);
        if let Some(why) = several::refused(case, columns) {
            record.status = Status::Unsupported;
            record.remark(why);
            return Some(record.into());
        }
    }
    let job = Job {
        case,
        problem,
        system,
        given,
        a,
        unknowns,
        measure,
        progress,
        reuse,
        record,
        x: None,
        limit_s: None,
    };
    if let Some(peer) = external(&case.backend) {
        return job.by_peer(peer);
    }
    if compute::over_ranks(&case.backend) {
        return job.lead();
    }
    match compute::with_threads(&case.backend, case.threads, a.nnz(), job) {
        Some(Ok(solved)) => solved,
        Some(Err(why)) => Some(without_backend(case, Some(&why)).into()),
        None => Some(without_backend(case, None).into()),
    }
}

/// Runs `cases`, which differ in their matrix alone, one after the other with what the last one left. Each phase of a
/// step is done and timed once. `false` when the user stopped it.
///
/// # Errors
/// Those of `steps`, and a step with another number of unknowns.
pub(crate) fn solve_sequence(
    cases: &[&Case],
    measure: &Measure,
    steps: &mut dyn Steps,
) -> crate::base::error::Result<bool> {
    let measure = &Measure { once: true, ..measure.clone() };
    match cases.first() {
        Some(first) if compute::over_ranks(&first.backend) => on_ranks::lead(cases, measure, steps),
        _ => sequence::on_device(cases, measure, steps),
    }
}

/// The record of a case whose backend is not there, or could not be made.
fn without_backend(case: &Case, why: Option<&crate::Error>) -> Record {
    let (status, reason) = match why {
        Some(e) if e.kind() == Kind::Memory => (Status::OutOfMemory, e.to_string()),
        Some(e) => (Status::Unsupported, e.to_string()),
        None => (Status::Unsupported, format!("there is no backend `{}`", case.backend)),
    };
    Record { case: case.clone(), status, reason: Some(reason), ..Record::default() }
}

/// The record of a case with what is known before it runs, but for the number of blocks.
fn begun(
    case: &Case,
    problem: &Problem,
    system: &Scaled,
    scaling: Option<&Equilibrated>,
    a: &Csr,
) -> Record {
    let mut record = Record { case: case.clone(), ..Record::default() };
    record.reason = (!problem.remarks.is_empty()).then(|| problem.remarks.join("; "));
    record.size.n = problem.matrix.rows();
    record.size.nnz = problem.matrix.nnz();
    record.size.padding = a.rows() - problem.matrix.rows();
    record.size.block_rows = a.rows() / case.block_size;
    system.scaling.remarks().for_each(|remark| record.remark(remark));
    if let Some(of) = scaling {
        record.times.scaling_s = Some(of.seconds);
        record.remark(of.equilibration.remark());
    }
    record
}

/// The matrix as the product takes it, and its transpose in both forms where a method needs it.
type Stored<K> = (<K as Products>::Matrix, Option<(Arc<Csr>, <K as Products>::Matrix)>);

struct Job<'a> {
    case: &'a Case,
    problem: &'a Problem,
    /// The system as it is solved.
    system: &'a Scaled<'a>,
    /// The system by which the solution is judged, where rows and columns of the one that is solved are scaled.
    given: Option<Given<'a>>,
    /// Its matrix, padded.
    a: &'a Arc<Csr>,
    /// Unknowns of this rank.
    unknowns: usize,
    measure: &'a Measure,
    progress: Progress<'a>,
    reuse: &'a mut Reuse,
    record: Record,
    /// See [`Solved::x`].
    x: Option<Vec<f64>>,
    /// Seconds after which a solve is stopped by agreement of all ranks.
    limit_s: Option<f64>,
}

impl Visitor for Job<'_> {
    type Output = Option<Solved>;

    fn visit<K: Backend + 'static>(mut self, k: &K) -> Option<Solved> {
        self.on(k);
        let done = self.stages(k);
        self.record.times.compile_s = k.compile_seconds();
        self.record.times.trial_s = k.trial_seconds();
        self.ended(done)
    }
}

impl Job<'_> {
    /// Notes what it runs on.
    fn on(&mut self, k: &impl Platform) {
        let environment = &mut self.record.environment;
        environment.device = k.device();
        environment.threads = k.threads();
        environment.placement = k.placement();
        let spared = compute::spares_threads(&self.case.backend, self.case.threads, self.a.nnz());
        if spared && k.threads() == 1 {
            self.record.remark("one thread: several are slower for a system of this size".into());
        }
    }

    /// Right-hand sides that are solved for at once.
    fn columns(&self) -> usize {
        self.record.size.rhs_count.unwrap_or(1)
    }

    /// What there is to keep; `None` when the user cancelled it.
    fn ended(self, done: Result<(), NoResult>) -> Option<Solved> {
        closed(self.record, self.x, done)
    }
}

/// The same of a record and a solution.
fn closed(mut record: Record, x: Option<Vec<f64>>, done: Result<(), NoResult>) -> Option<Solved> {
    match done {
        Ok(()) => {}
        Err(NoResult::Cancelled) => return None,
        Err(NoResult::Ended(status, reason)) => {
            record.status = status;
            record.reason = Some(reason);
        }
        Err(NoResult::Elsewhere) => record.status = Status::Failed,
    }
    Some(Solved { record, x })
}

impl Job<'_> {
    fn stages<K: Backend + 'static>(&mut self, k: &K) -> Result<(), NoResult> {
        let case = self.case;
        if case.kind == RunKind::Spmv {
            return self.product(k);
        }
        let (setup, build) = self.methods(k)?;
        let with_transposed = solver::needs_transposed(&case.solver);
        // measured first, so that its arrays do not add to the case's peak, and its time to no phase
        let roof = (!self.measure.once)
            .then(|| Roof { handover: k.handover_latency(), ..Roof::of_copies(k) });

        self.check_matrix(k)?;
        let (matrix, other) = self.store(k, with_transposed)?;
        let (other, other_matrix) = other.unzip();
        let (m, other_m) = self.set_up(k, setup, other.as_ref())?;
        self.record_factors(k, &*m);
        let deflation = self.deflate(k)?;

        self.check_vectors(k)?;
        let (n, columns) = (self.a.rows(), self.columns());
        let mut padded = self.system.b.to_vec();
        padded.resize(n * columns, 0.0);
        let (mut b, mut x) = (k.vector(n * columns)?, k.vector(n * columns)?);
        k.upload(&padded, &mut b);
        drop(padded);
        let Case { rtol, max_iterations, .. } = *case;
        let time_limit_s = self.measure.time_limit_s;
        let stop = Stop { rtol, max_iterations, time_limit_s };
        let settings = Settings { columns, ..case.solver_settings(stop) };
        let transposed =
            other_matrix.as_ref().zip(other_m.as_deref()).map(|(a, m)| Transposed { a, m });
        let second = deflation.as_ref().map(|d| d as &dyn Projection<K>);
        let adapted = levels::adapted(k, case, n, &*m, second)?;
        let system = System {
            a: &matrix,
            m: adapted.as_ref().map_or(&*m, |both| both),
            b: &b,
            transposed,
            deflation: second.filter(|_| adapted.is_none()),
        };
        let mut method = match case.execution {
            Execution::Persistent => solver::in_kernel(&case.solver, k, &settings, &system)?,
            _ => build(k, &settings, n)?,
        };
        let crowd = Crowd::before(k);
        let (outcome, _) = self.solve(k, &mut *method, &system, &mut x)?;
        crowd.remark(k).into_iter().for_each(|remark| self.record.remark(remark));
        // free its vectors for those of the measurements
        drop(method);
        // what cannot be told is left out
        self.record.quality = quality(k, &*m, self.a).unwrap_or_default();
        self.conclude(k, &x, &outcome);
        // one application is measured for the first level alone
        let system = System { m: &*m, ..system };
        // those are of one vector
        match roof.filter(|_| columns == 1) {
            Some(roof) => self.measure_traffic(k, &system, &mut x, roof)?,
            None => self.record.traffic.memory_bytes = Some(traffic::held(k, &system)),
        }
        drop(adapted);
        let mut systems = vec![(matrix, m)];
        systems.extend(other_matrix.zip(other_m));
        self.measure_new_values(k, &mut systems)
    }

    /// Records the size of the factors, and what a shift or a drop tolerance made of them.
    fn record_factors<K: Operations>(&mut self, k: &K, m: &dyn Preconditioner<K>) {
        let stored = self.record.size.matrix_blocks * self.case.block_size.pow(2);
        let factor = m.size(k);
        let ratio = |entries| entries as f64 / stored.max(1) as f64;
        let fill_ratio = factor.factor_entries.map(ratio);
        self.record.factor = FactorSize { fill_ratio, ..factor };
        let record = &mut self.record;
        let (size, factor) = (&record.size, &record.factor);
        let triangles = precond::shape(&self.case.precond) == Shape::Triangles;
        let bare =
            factor.factor_blocks == Some(size.block_rows) && size.matrix_blocks > size.block_rows;
        if let Some(alpha) = factor.shift_used.filter(|alpha| *alpha > 0.0) {
            record.remark(format!("factors of A + {alpha} diag(A)"));
        }
        if triangles && bare {
            record.remark("all but the diagonal of the factors was dropped".into());
        }
    }

    /// Converts the matrix, and its transpose if `with_transposed`, to the format of the product;
    /// repeated.
    fn store<K: Backend>(&mut self, k: &K, with_transposed: bool) -> Result<Stored<K>, NoResult> {
        let (a, format) = (self.a, self.case.format);
        let ((matrix, other), seconds) = self.repeated(k, Stage::Storage, || {
            let matrix = k.matrix(a, format)?;
            let other = with_transposed.then(|| {
                let a = Arc::new(a.transposed());
                k.matrix(&a, format).map(|matrix| (a, matrix))
            });
            Ok((matrix, other.transpose()?))
        })?;
        self.record.times.matrix_s = seconds;
        self.record.format_used = Some(choice_name(&k.format(&matrix)));
        self.record.tuned = k.tuned(&matrix);
        Ok((matrix, other))
    }

    /// Makes something as often as a setup is measured; the last that was made, and the median of the
    /// seconds.
    fn repeated<K: Operations, T>(
        &mut self,
        k: &K,
        stage: Stage,
        make: impl Fn() -> Result<T, NoResult>,
    ) -> Result<(T, Option<f64>), NoResult> {
        let (start, mut samples) = (now(), Vec::new());
        loop {
            self.begin(k, stage)?;
            let stopwatch = Stopwatch::start(k);
            let made = together(k, make())?;
            samples.push(stopwatch.seconds(k));
            k.check()?;
            if !self.measure.another(samples.len(), k.of_all(seconds_since(start))) {
                return Ok((made, median(&samples).map(|m| m.value)));
            }
        }
    }

    /// Reports a stage.
    fn begin<K: Clock>(&mut self, k: &K, stage: Stage) -> Result<(), NoResult> {
        going(k, self.progress, stage)
    }

    /// Symbolic, analysis and numeric phases, repeated.
    fn set_up<K: Backend + 'static>(
        &mut self,
        k: &K,
        setup: fn(Setup<K>) -> precond::Ready<K>,
        transposed: Option<&Arc<Csr>>,
    ) -> Result<Both<K>, NoResult> {
        let mut runs: Vec<PhaseSeconds> = Vec::new();
        let mut kernel = Vec::new();
        let settings = self.case.preconditioning();
        let start = now();
        loop {
            let of = reuse::key(self.case, k.on_host(|threads| threads));
            let patterns = Some((&mut *self.reuse, of));
            let mut clock = PhaseClock::new(k, self.progress, patterns);
            let ready = transposed::set_up(k, setup, (self.a, transposed), &settings, &mut clock);
            k.check()?;
            let Some(seconds) = clock.finish() else { return Err(NoResult::Cancelled) };
            runs.push(seconds);
            phases::record(&runs, &mut self.record.times);
            let ready = ready?;
            kernel.extend(ready.0.numeric_kernel_seconds(k));
            if !kernel.iter().any(|s| s.is_nan()) {
                let times = &mut self.record.times;
                times.numeric_kernel_s = median(&kernel).map(|m| m.value).or(times.numeric_s);
            }
            if !self.measure.another(runs.len(), seconds_since(start)) {
                return Ok(ready);
            }
        }
    }

    /// First solve and repetitions; fills the solve times. Also returns how often it solved.
    fn solve<K: Operations>(
        &mut self,
        k: &K,
        method: &mut dyn Solver<K>,
        system: &System<K>,
        x: &mut K::Vector,
    ) -> Result<(Outcome, usize), NoResult> {
        let (mut history, limit_s, mut solves) =
            (History::new(self.measure.history), self.limit_s, 0);
        let mut once = |stage: Stage, progress: Progress| {
            going(k, progress, stage)?;
            solves += 1;
            let mut monitor = CaseMonitor::new(k, progress, stage, &mut history).limited(limit_s);
            let start = k.mark();
            let outcome = method.solve(k, system, x, &mut monitor);
            let seconds = k.seconds(&start, &k.mark());
            k.check()?;
            if monitor.cancelled() { Err(NoResult::Cancelled) } else { Ok((outcome, seconds)) }
        };
        // not between solves, whose caches it would take
        let speed = (!self.measure.once).then(|| Speed::before(k)).flatten();
        let (mut outcome, first) = once(Stage::WarmUp, self.progress)?;
        let mut samples = Vec::new();
        if first > self.measure.time_budget_s || self.measure.once {
            samples.push(first);
        }
        let mut spent: f64 = samples.iter().sum();
        while self.measure.another_solve(&samples, spent) {
            let (again, seconds) = once(Stage::Solve(samples.len() + 1), self.progress)?;
            outcome = again;
            spent += seconds;
            samples.push(seconds);
        }
        self.record.times.reference_s = speed.and_then(|speed| speed.reference_s(k));
        let m = median(&samples).expect("at least one repetition");
        self.keep_history(history);
        let times = &mut self.record.times;
        times.set_solve(&m, false);
        times.total_s = times.to_solution(1);
        times.solve_s_per_rhs = self.record.size.rhs_count.map(|count| m.value / count as f64);
        times.ms_per_iteration =
            (outcome.iterations > 0).then(|| 1e3 * m.value / outcome.iterations as f64);
        Ok((outcome, solves))
    }
}

/// Reports a stage; an error on all ranks when it is to be the last.
fn going<K: Clock>(k: &K, progress: Progress, stage: Stage) -> Result<(), NoResult> {
    let stop = f64::from(u8::from(!progress(stage)));
    if k.of_all(stop) > 0.0 { Err(NoResult::Cancelled) } else { Ok(()) }
}
