//! Runs the cases of an experiment in order and keeps every finished record at once.

pub mod isolated;
pub mod progress;

use std::sync::atomic::{self, AtomicUsize};

pub use crate::interrupt;

use crate::case::{Case, Ordering, Zeros};
use crate::error::{Error, Kind, Result};
use crate::measure::{now, seconds_since};
use crate::ordering::reordered;
use crate::problem::{self, Problem};
use crate::report::units::plural;
use crate::result::output::Outputs;
use crate::result::record::Status;
use crate::result::{Record, environment};
use crate::run::{self, Measure, Reuse, Stage};

/// The numerical work, behind a trait so that the engine is tested without it.
pub trait Runner {
    /// Loads or generates the system of a case.
    fn load(&mut self, case: &Case) -> Result<Problem>;
    /// Makes a right-hand side for it.
    fn right_hand_side(&mut self, problem: &Problem, spec: &str) -> Result<Vec<f64>>;
    /// Runs one case, its unknowns being in their new order; `None` when `progress` asked to stop.
    fn run(
        &mut self,
        case: &Case,
        problem: &Problem,
        b: &[f64],
        measure: &Measure,
        progress: &mut dyn FnMut(Stage) -> bool,
    ) -> Option<Record>;
}

/// The solvers of this crate.
#[derive(Debug, Default)]
pub struct Solvers {
    reuse: Reuse,
}

impl Runner for Solvers {
    fn load(&mut self, case: &Case) -> Result<Problem> {
        let problem = problem::load(&case.matrix, case.read_as)?;
        Ok(match case.zeros {
            Zeros::Keep => problem,
            Zeros::Drop => problem.without_zeros(),
        })
    }

    fn right_hand_side(&mut self, problem: &Problem, spec: &str) -> Result<Vec<f64>> {
        problem::right_hand_side(problem, spec)
    }

    fn run(
        &mut self,
        case: &Case,
        problem: &Problem,
        b: &[f64],
        measure: &Measure,
        progress: &mut dyn FnMut(Stage) -> bool,
    ) -> Option<Record> {
        run::run_case_reusing(case, problem, b, measure, progress, &mut self.reuse)
    }
}

/// What is told about a run while it goes on.
pub trait Observer {
    /// Of `total` cases those in `pending` follow; the others are finished already.
    fn begin(&mut self, total: usize, pending: &[&Case]);
    /// A matrix is being loaded.
    fn loading(&mut self, spec: &str);
    /// A remark that the user should see.
    fn remark(&mut self, text: &str);
    /// A case starts.
    fn case(&mut self, case: &Case);
    /// A stage of it starts.
    fn stage(&mut self, stage: Stage);
    /// It is finished and kept.
    fn finished(&mut self, record: &Record);
    /// Nothing follows.
    fn end(&mut self);
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every case has its record.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// A matrix, a right-hand side or an output file was not usable.
    Failed(Error),
}

/// What a run yields.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Finished records in the order of the cases, those of an earlier run included.
    pub records: Vec<Record>,
    /// How it ended.
    pub end: End,
}

/// Runs every case that `outputs` does not hold yet. `interrupts` counts the user's requests to
/// stop: it is looked at whenever a stage starts.
pub fn execute(
    cases: &[Case],
    measure: &Measure,
    outputs: &mut Outputs,
    runner: &mut dyn Runner,
    observer: &mut dyn Observer,
    interrupts: &AtomicUsize,
) -> Outcome {
    let mut loaded = Loaded { cases, problem: None, rhs: None, reordered: None };
    let going = || interrupts.load(atomic::Ordering::SeqCst) == 0;
    each_pending(cases, outputs, observer, &mut |case, observer| {
        if going() { step(case, measure, &mut loaded, runner, observer, &going) } else { Ok(None) }
    })
}

/// Makes the record of a case; `None` when the user stopped it.
type RunCase<'a> = dyn FnMut(&Case, &mut dyn Observer) -> Result<Option<Record>> + 'a;

/// Keeps what `run` makes of every case that `outputs` does not hold yet, until it makes nothing because
/// the user stopped it.
fn each_pending(
    cases: &[Case],
    outputs: &mut Outputs,
    observer: &mut dyn Observer,
    run: &mut RunCase<'_>,
) -> Outcome {
    let earlier = outputs.records();
    let find = |case: &Case| earlier.iter().find(|r| r.case == *case);
    let done: Vec<&Record> = cases.iter().filter_map(find).collect();
    if let Some(text) = other_revision(&done) {
        observer.remark(&text);
    }
    let pending: Vec<&Case> = cases.iter().filter(|case| find(case).is_none()).collect();
    observer.begin(cases.len(), &pending);
    let (mut records, mut end) = (Vec::with_capacity(cases.len()), End::Complete);
    for case in cases {
        if let Some(record) = find(case) {
            records.push(record.clone());
            continue;
        }
        let kept = run(case, observer).and_then(|record| {
            if let Some(record) = &record {
                outputs.add(record)?;
                observer.finished(record);
            }
            Ok(record)
        });
        match kept {
            Ok(Some(record)) => records.push(record),
            Ok(None) => end = End::Interrupted,
            Err(error) if error.kind() == Kind::Stopped => {
                observer.remark(&error.to_string());
                end = End::Interrupted;
            }
            Err(error) => end = End::Failed(error),
        }
        if end != End::Complete {
            break;
        }
    }
    observer.end();
    Outcome { records, end }
}

/// The record of a case; `None` when the user stopped it.
fn step(
    case: &Case,
    measure: &Measure,
    loaded: &mut Loaded<'_>,
    runner: &mut dyn Runner,
    observer: &mut dyn Observer,
    going: &dyn Fn() -> bool,
) -> Result<Option<Record>> {
    let system = match loaded.get(case, runner, observer) {
        // the next matrix may be smaller
        Err(why) if why.kind() == Kind::Memory => Err(NoSystem { why, n: 0, nnz: 0 }),
        other => other?,
    };
    observer.case(case);
    let start = environment::now();
    let mut latest = None;
    let result = match system {
        Ok(System { problem, b, ordering_s }) => {
            let told = |stage| {
                // a solve reports every iteration
                if latest.replace(stage) != Some(stage) {
                    observer.stage(stage);
                }
                going()
            };
            let record = runner.run(case, problem, b, measure, &mut { told });
            record.map(|mut record| {
                record.times.ordering_s = ordering_s;
                record
            })
        }
        Err(why) => Some(why.record(case)),
    };
    Ok(result.map(|mut record| {
        environment::complete(&mut record.environment, start);
        record
    }))
}

/// A system that has no such order, or is not there for want of memory: then without its size.
struct NoSystem {
    why: Error,
    n: usize,
    nnz: usize,
}

impl NoSystem {
    fn record(&self, case: &Case) -> Record {
        let Self { why, n, nnz } = self;
        let hint = why.hint_text().map(|hint| format!("; {hint}")).unwrap_or_default();
        let status = match why.kind() {
            Kind::Memory => Status::OutOfMemory,
            Kind::Input | Kind::Run | Kind::Stopped => Status::Unsupported,
        };
        let reason = Some(format!("{why}{hint}"));
        let mut record = Record { case: case.clone(), status, reason, ..Record::default() };
        (record.size.n, record.size.nnz) = (*n, *nnz);
        record
    }
}

/// What a case runs on.
struct System<'a> {
    problem: &'a Problem,
    b: &'a [f64],
    /// Seconds that ordering it took, unless it is in natural order.
    ordering_s: Option<f64>,
}

/// The system and the right-hand side of the case before, which the next one mostly shares.
struct Loaded<'a> {
    cases: &'a [Case],
    problem: Option<(Case, Problem)>,
    rhs: Option<(String, Vec<f64>)>,
    reordered: Option<Reordered>,
}

/// The same with the unknowns in another order.
struct Reordered {
    /// Which order, and the unknowns per block.
    of: (Ordering, usize),
    /// Or why there is none.
    system: Result<Renumbered>,
}

/// A system in another order.
pub(crate) struct Renumbered {
    order: Vec<u32>,
    pub(crate) problem: Problem,
    /// The right-hand side, with its name.
    pub(crate) rhs: (String, Vec<f64>),
    /// Seconds that finding the order and renumbering took.
    pub(crate) seconds: f64,
}

impl Renumbered {
    /// The system and the right-hand side of a case.
    ///
    /// # Errors
    /// When there is no such order.
    pub(crate) fn of(case: &Case, problem: &Problem, b: &[f64]) -> Result<Self> {
        let start = now();
        let order = case.ordering.order(problem, case.block_size)?;
        let problem = problem.reordered(&order);
        let rhs = (case.rhs.clone(), reordered(b, &order));
        Ok(Self { order, problem, rhs, seconds: seconds_since(start) })
    }
}

impl Loaded<'_> {
    /// The system of a case; within, why it cannot be ordered as the case asks.
    fn get(
        &mut self,
        case: &Case,
        runner: &mut dyn Runner,
        observer: &mut dyn Observer,
    ) -> Result<Result<System<'_>, NoSystem>> {
        let system = |c: &Case| (c.matrix.clone(), c.read_as, c.zeros);
        if self.problem.as_ref().is_none_or(|(of, _)| system(of) != system(case)) {
            // free the old system first: two large ones may not fit
            self.problem = None;
            self.rhs = None;
            self.reordered = None;
            observer.loading(&case.matrix);
            let problem = runner.load(case)?;
            for remark in &problem.remarks {
                observer.remark(&format!("{}: {remark}", case.matrix));
            }
            check_block_sizes(self.cases, &case.matrix, problem.matrix.rows())?;
            self.problem = Some((case.clone(), problem));
        }
        let (_, problem) = self.problem.as_ref().expect("loaded above");
        if self.rhs.as_ref().is_none_or(|(spec, _)| *spec != case.rhs) {
            self.rhs = Some((case.rhs.clone(), runner.right_hand_side(problem, &case.rhs)?));
        }
        let (_, b) = self.rhs.as_ref().expect("made above");
        if case.ordering.is_natural() {
            return Ok(Ok(System { problem, b, ordering_s: None }));
        }
        let of = (case.ordering, case.block_size);
        if self.reordered.as_ref().is_none_or(|known| known.of != of) {
            // free the old one first
            self.reordered = None;
            self.reordered = Some(Reordered { of, system: Renumbered::of(case, problem, b) });
        }
        let Reordered { system, .. } = self.reordered.as_mut().expect("made above");
        Ok(match system {
            Err(why) => {
                let (n, nnz) = (problem.matrix.rows(), problem.matrix.nnz());
                Err(NoSystem { why: why.clone(), n, nnz })
            }
            Ok(other) => {
                if other.rhs.0 != case.rhs {
                    other.rhs = (case.rhs.clone(), reordered(b, &other.order));
                }
                let Renumbered { problem, rhs, seconds, .. } = other;
                Ok(System { problem, b: &rhs.1, ordering_s: Some(*seconds) })
            }
        })
    }
}

/// Refuses blocks larger than a matrix of order `n` before any of its cases runs.
fn check_block_sizes(cases: &[Case], matrix: &str, n: usize) -> Result<()> {
    match cases.iter().find(|c| c.matrix == matrix && c.block_size > n) {
        None => Ok(()),
        Some(case) => Err(Error::input(format!(
            "block size {} is above the {} of `{matrix}`",
            case.block_size,
            plural(n, "unknown")
        ))
        .hint(format!("use block sizes up to {n}"))),
    }
}

/// A warning when earlier records come from another revision of the program.
fn other_revision(done: &[&Record]) -> Option<String> {
    let other = |r: &&&Record| r.environment.revision != environment::REVISION;
    let count = done.iter().filter(other).count();
    let first = done.iter().find(|r| other(r))?;
    Some(format!(
        "{count} of the earlier records are of {}, this is {}",
        first.environment.revision,
        environment::REVISION
    ))
}

#[cfg(test)]
mod tests;
