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
mod stages;
mod step;
mod task;
mod traffic;
mod verdict;
mod watch;

use crate::compute::{Backend, Platform, Products, Visitor};
use std::sync::Arc;

use crate::base::error::Kind;
use crate::base::external::external;
use crate::base::status::Status;
use crate::base::threads::Threads;
use crate::case::{Case, RunKind};
use crate::compute;
pub use crate::config::sampling::Measure;
use crate::matrix::pattern::count_blocks;
use crate::matrix::{Csr, bsr};
use crate::problem::Problem;
use crate::record::Record;
pub(crate) use loading::{by_rows, divided};
use no_result::NoResult;
use range::Scaled;
#[cfg(feature = "mpi")]
pub(crate) use ranks::serve;
pub(crate) use ranks::{OfRanks, Outline};
pub(crate) use reuse::Reuse;
use scaling::{Equilibrated, Given};
pub(crate) use sequence::{Loaded, StepSystem, Steps};
pub(crate) use verdict::contradicts;

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
    with_job((case, problem), &in_range, (measure, progress, reuse), |mut job| {
        let (a, record) = (job.a, &mut job.record);
        let blocks = || count_blocks(Threads::Pool, a);
        record.size.matrix_blocks = job.reuse.blocks(case.block_size, blocks);
        let columns = b.len() / problem.matrix.rows().max(1);
        if columns > 1 {
            record.size.rhs_count = Some(columns);
            if let Some(why) = several::refused(case, columns) {
                record.status = Status::Unsupported;
                record.remark(why);
                return Some(job.record.into());
            }
        }
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
    })
}

/// Does `work` with a case and its system, rows and columns of which are scaled as the case asks for.
fn with_job<T>(
    (case, problem): (&Case, &Problem),
    in_range: &Scaled,
    (measure, progress, reuse): (&Measure, Progress, &mut Reuse),
    work: impl FnOnce(Job) -> T,
) -> T {
    let equilibrated = scaling::equilibrated(case, in_range);
    let scaling = equilibrated.as_ref().map(|(_, of)| of);
    let system = equilibrated.as_ref().map_or(in_range, |(system, _)| system);
    let a = &Arc::new(bsr::pad(&system.matrix, case.block_size));
    work(Job {
        case,
        problem,
        system,
        given: scaling.map(|of| of.given(in_range)),
        a,
        unknowns: a.rows(),
        measure,
        progress,
        reuse,
        record: begun(case, problem, system, scaling, a),
        x: None,
        limit_s: None,
    })
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
