//! Runs the cases of an experiment in order and keeps every finished record at once.

pub mod interrupt;
pub mod progress;

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::case::{Case, Reorder, Zeros};
use crate::error::{Error, Result};
use crate::problem::reorder::reordered;
use crate::problem::{self, Problem};
use crate::report::units::plural;
use crate::result::output::Outputs;
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
    let earlier = outputs.records();
    let find = |case: &Case| earlier.iter().find(|r| r.case == *case);
    let done: Vec<&Record> = cases.iter().filter_map(find).collect();
    if let Some(text) = other_revision(&done) {
        observer.remark(&text);
    }
    let pending: Vec<&Case> = cases.iter().filter(|case| find(case).is_none()).collect();
    observer.begin(cases.len(), &pending);
    let mut loaded = Loaded { pending: &pending, problem: None, rhs: None, reordered: None };
    let mut records = Vec::with_capacity(cases.len());
    let mut end = End::Complete;
    for case in cases {
        if let Some(record) = find(case) {
            records.push(record.clone());
            continue;
        }
        match step(case, measure, &mut loaded, outputs, runner, observer, interrupts) {
            Ok(Some(record)) => records.push(record),
            Ok(None) => end = End::Interrupted,
            Err(error) => end = End::Failed(error),
        }
        if end != End::Complete {
            break;
        }
    }
    observer.end();
    Outcome { records, end }
}

/// Runs one case and keeps its record; `None` when the user stopped it.
fn step(
    case: &Case,
    measure: &Measure,
    loaded: &mut Loaded<'_>,
    outputs: &mut Outputs,
    runner: &mut dyn Runner,
    observer: &mut dyn Observer,
    interrupts: &AtomicUsize,
) -> Result<Option<Record>> {
    let going = || interrupts.load(Ordering::SeqCst) == 0;
    if !going() {
        return Ok(None);
    }
    let (problem, b) = loaded.get(case, runner, observer)?;
    observer.case(case);
    let start = environment::now();
    let mut latest = None;
    let result = runner.run(case, problem, b, measure, &mut |stage| {
        // a solve reports every iteration
        if latest.replace(stage) != Some(stage) {
            observer.stage(stage);
        }
        going()
    });
    let Some(mut record) = result else { return Ok(None) };
    environment::complete(&mut record.environment, start);
    outputs.add(&record)?;
    observer.finished(&record);
    Ok(Some(record))
}

/// The system and the right-hand side of the case before, which the next one mostly shares.
struct Loaded<'a> {
    pending: &'a [&'a Case],
    problem: Option<(Case, Problem)>,
    rhs: Option<(String, Vec<f64>)>,
    reordered: Option<Reordered>,
}

/// The same with the unknowns in another order.
struct Reordered {
    /// Which order, and the unknowns per block.
    of: (Reorder, usize),
    order: Vec<u32>,
    problem: Problem,
    rhs: (String, Vec<f64>),
}

impl Loaded<'_> {
    fn get(
        &mut self,
        case: &Case,
        runner: &mut dyn Runner,
        observer: &mut dyn Observer,
    ) -> Result<(&Problem, &[f64])> {
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
            check_block_sizes(self.pending, &case.matrix, problem.matrix.rows())?;
            self.problem = Some((case.clone(), problem));
        }
        let (_, problem) = self.problem.as_ref().expect("loaded above");
        if self.rhs.as_ref().is_none_or(|(spec, _)| *spec != case.rhs) {
            self.rhs = Some((case.rhs.clone(), runner.right_hand_side(problem, &case.rhs)?));
        }
        let (_, b) = self.rhs.as_ref().expect("made above");
        let of = (case.reorder, case.block_size);
        if self.reordered.as_ref().is_none_or(|known| known.of != of) {
            self.reordered = None;
            if let Some(order) = case.reorder.order(&problem.matrix, case.block_size) {
                let rhs = (case.rhs.clone(), reordered(b, &order));
                let problem = problem.reordered(&order);
                self.reordered = Some(Reordered { of, order, problem, rhs });
            }
        }
        let Some(other) = &mut self.reordered else { return Ok((problem, b)) };
        if other.rhs.0 != case.rhs {
            other.rhs = (case.rhs.clone(), reordered(b, &other.order));
        }
        Ok((&other.problem, &other.rhs.1))
    }
}

/// Refuses blocks larger than a matrix of order `n` before any of its cases runs.
fn check_block_sizes(cases: &[&Case], matrix: &str, n: usize) -> Result<()> {
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
