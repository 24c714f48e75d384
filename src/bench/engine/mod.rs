//! Runs the cases of an experiment in order and keeps every finished record at once.

pub(crate) mod isolated;
mod limit;
mod loaded;
pub(crate) mod preflight;
pub(crate) mod progress;
mod sequence;

use std::sync::atomic::{self, AtomicUsize};
use std::sync::{Mutex, PoisonError};

use crate::base::error::{Error, Kind, Result};
use crate::base::input::say;
use crate::base::units::plural;
use crate::bench::run;
use crate::bench::run::{OfRanks, Outline, Reuse, Stage};
use crate::bench::solution::Solutions;
use crate::case::{Case, Zeros};
use crate::compute::distributed::launch;
use crate::config::sampling::Measure;
use crate::problem::{self, Problem};
use crate::record::output::Outputs;
use crate::record::{Record, contents, environment, rounds};
pub(crate) use loaded::Permuted;
use loaded::{Loaded, System, check_block_sizes};

/// The numerical work, behind a trait so that the engine is tested without it.
pub(crate) trait Runner {
    /// Loads or generates the system of a case.
    fn load(&mut self, case: &Case) -> Result<Problem>;
    /// Makes a right-hand side for it, or several: rows of as many numbers.
    fn right_hand_side(&mut self, problem: &Problem, spec: &str) -> Result<Vec<f64>>;
    /// The ranks, where they have the rows of a case's system, and none has it as a whole.
    fn ranks(&mut self, _case: &Case) -> Option<&mut OnRanks> {
        None
    }
    /// Runs one case on a system and a right-hand side, its unknowns being in their new order, or on those that the
    /// ranks have; `None` when `progress` asked to stop.
    fn run(
        &mut self,
        case: &Case,
        system: Option<(&Problem, &[f64])>,
        measure: &Measure,
        progress: &mut dyn FnMut(Stage) -> bool,
    ) -> Option<Record>;
    /// Hands over x of the case that was run last, its unknowns being in their new order; `None` where it
    /// had none.
    fn solution(&mut self) -> Option<Vec<f64>> {
        None
    }
}

/// The solvers of this crate.
#[derive(Debug, Default)]
pub(crate) struct Solvers {
    reuse: Reuse,
    /// The system that was loaded before anything ran, with a case of it.
    kept: Option<(Case, Problem)>,
    ranks: OnRanks,
    /// Whether solutions are asked for.
    pub with_solutions: bool,
    x: Option<Vec<f64>>,
}

/// A system of which each rank has rows.
#[derive(Debug, Default)]
pub(crate) struct OnRanks {
    ranks: OfRanks,
    /// What is known of it, with a case of it.
    known: Option<(Case, Outline)>,
}

impl OnRanks {
    /// Has the ranks make or get the system of a case, if they have another one.
    fn load(&mut self, case: &Case) -> Result<Outline> {
        let same = |of: &Case| one_system(of, case) && of.block_size == case.block_size;
        if let Some((_, outline)) = self.known.as_ref().filter(|(of, _)| same(of)) {
            return Ok(outline.clone());
        }
        self.known = None;
        let outline = self.ranks.load(case)?;
        self.known = Some((case.clone(), outline.clone()));
        Ok(outline)
    }

    /// Frees it.
    fn clear(&mut self) -> Result<()> {
        self.known = None;
        self.ranks.clear()
    }
}

/// Whether two cases are of one system: the right-hand side and the order are none of it.
fn one_system(a: &Case, b: &Case) -> bool {
    (&a.matrix, a.read_as, a.zeros) == (&b.matrix, b.read_as, b.zeros)
}

impl Runner for Solvers {
    fn load(&mut self, case: &Case) -> Result<Problem> {
        if let Some((_, problem)) = self.kept.take().filter(|(of, _)| one_system(of, case)) {
            return Ok(problem);
        }
        self.ranks.clear()?;
        let problem = problem::load(&case.matrix, case.read_as)?;
        Ok(match case.zeros {
            Zeros::Keep => problem,
            Zeros::Drop => problem.without_zeros(),
        })
    }

    fn right_hand_side(&mut self, problem: &Problem, spec: &str) -> Result<Vec<f64>> {
        problem::right_hand_sides(problem, spec)
    }

    fn ranks(&mut self, case: &Case) -> Option<&mut OnRanks> {
        run::by_rows(case).then_some(&mut self.ranks)
    }

    fn run(
        &mut self,
        case: &Case,
        system: Option<(&Problem, &[f64])>,
        measure: &Measure,
        progress: &mut dyn FnMut(Stage) -> bool,
    ) -> Option<Record> {
        self.x = None;
        let solved = match system {
            Some((problem, b)) => {
                run::solve_case(case, problem, b, measure, progress, &mut self.reuse)?
            }
            None => self.ranks.ranks.run(case, measure, self.with_solutions, progress)?,
        };
        self.x = solved.x;
        Some(solved.record)
    }

    fn solution(&mut self) -> Option<Vec<f64>> {
        self.x.take()
    }
}

/// Receives the events of a run; remarks are printed to standard error, unless it does otherwise.
#[allow(unused_variables, reason = "names for those who implement it")]
pub(crate) trait Observer {
    /// Of `total` cases those in `pending` follow; the others are finished already.
    fn begin(&mut self, total: usize, pending: &[&Case]) {}
    /// A matrix is being loaded.
    fn loading(&mut self, spec: &str) {}
    /// A remark that the user should see.
    fn remark(&mut self, text: &str) {
        say(&format!("note: {text}"));
    }
    /// A case starts.
    fn case(&mut self, case: &Case) {}
    /// A stage of it starts.
    fn stage(&mut self, stage: Stage) {}
    /// It is finished and kept.
    fn finished(&mut self, record: &Record) {}
    /// Nothing follows.
    fn end(&mut self) {}
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SweepEnd {
    /// Every case has its record.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// A matrix, a right-hand side or an output file was not usable.
    Failed(Error),
}

/// What a run yields.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Finished records in the order of the cases, those of an earlier run included; one of all rounds of a
    /// case.
    pub records: Vec<Record>,
    pub end: SweepEnd,
}

/// Runs every case that `outputs` does not hold yet. `interrupts` counts the user's requests to
/// stop: it is polled at the start of every stage. A solution is in its file before its case is recorded.
pub(crate) fn execute(
    cases: &[Case],
    measure: &Measure,
    outputs: &mut Outputs,
    solutions: Option<&Solutions>,
    runner: &mut dyn Runner,
    observer: &mut dyn Observer,
    interrupts: &AtomicUsize,
) -> Outcome {
    let mut loaded = Loaded::new(cases);
    let of_round = measure.of_round();
    let going = || interrupts.load(atomic::Ordering::SeqCst) == 0;
    let written =
        |record: &Record, x: Option<Vec<f64>>, observer: &mut dyn Observer| -> Result<()> {
            match (solutions, x) {
                (Some(solutions), Some(x)) => {
                    solutions.write(&record.case, &x, record.size.rhs_count.unwrap_or(1))?;
                }
                (Some(solutions), None) => {
                    solutions.none(record).iter().for_each(|said| observer.remark(said));
                }
                (None, _) => {}
            }
            Ok(())
        };
    each_pending(cases, measure, outputs, observer, &mut |cases, _, observer, keep| {
        if !going() {
            return Ok(false);
        }
        let case = cases[0];
        if !case.sequence.is_empty() {
            let mut kept = |record: Record, x, observer: &mut dyn Observer| {
                written(&record, x, observer)?;
                keep(record, observer)
            };
            return sequence::run(cases, &of_round, runner, observer, &going, &mut kept);
        }
        let record = step(case, &of_round, &mut loaded, runner, observer, &going)?;
        let Some(record) = record else { return Ok(false) };
        let x = runner.solution().map(|x| loaded.of_source(case, x));
        written(&record, x, observer)?;
        keep(record, observer).map(|()| true)
    })
}

/// The cases of all rounds, in the order in which they run.
fn turns<'a>(cases: &'a [Case], measure: &Measure) -> Vec<(&'a Case, Option<usize>)> {
    let rounds = measure.round_numbers();
    rounds.iter().flat_map(|round| cases.iter().map(|case| (case, *round))).collect()
}

/// The earlier record of a case in a round.
fn record_of<'a>(case: &Case, round: Option<usize>, earlier: &'a [Record]) -> Option<&'a Record> {
    earlier.iter().find(|r| r.case == *case && r.round == round)
}

/// The cases that run where `earlier` is there, in their order: one of several rounds once for each round
/// that it lacks.
pub(crate) fn pending<'a>(
    cases: &'a [Case],
    measure: &Measure,
    earlier: &[Record],
) -> Vec<&'a Case> {
    let lacking = |turn: &(&'a Case, _)| record_of(turn.0, turn.1, earlier).is_none();
    turns(cases, measure).into_iter().filter(lacking).map(|(case, _)| case).collect()
}

/// Keeps a record.
type Keep<'a> = dyn FnMut(Record, &mut dyn Observer) -> Result<()> + 'a;

/// Makes the record of a case in a round, or those of all steps of a sequence; `false` when the user stopped it.
type RunCases<'a> =
    dyn FnMut(&[&Case], Option<usize>, &mut dyn Observer, &mut Keep<'_>) -> Result<bool> + 'a;

/// Whether two cases are steps of one run of a sequence.
fn one_run(a: &Case, b: &Case) -> bool {
    let of = |case: &Case| Case { matrix: String::new(), ..case.clone() };
    !a.sequence.is_empty() && of(a) == of(b)
}

/// Keeps what `run` makes of every case and round that `outputs` does not hold yet, until the user stops it. A
/// sequence of which a step is lacking runs as a whole, and adds the steps that lack.
fn each_pending(
    cases: &[Case],
    measure: &Measure,
    outputs: &mut Outputs,
    observer: &mut dyn Observer,
    run: &mut RunCases<'_>,
) -> Outcome {
    let earlier = outputs.records();
    let rounds = measure.round_numbers();
    let same = same_rounds(cases, &earlier, &rounds);
    if let Err(error) = same.and_then(|()| same_ranks(cases, &earlier, launch::ranks())) {
        return Outcome { records: Vec::new(), end: SweepEnd::Failed(error) };
    }
    let turns = turns(cases, measure);
    let done: Vec<&Record> =
        turns.iter().filter_map(|(case, round)| record_of(case, *round, &earlier)).collect();
    if let Some(text) = other_revision(&done) {
        observer.remark(&text);
    }
    observer.begin(turns.len(), &pending(cases, measure, &earlier));
    let (mut records, mut end) = (Vec::with_capacity(turns.len()), SweepEnd::Complete);
    for of_run in turns.chunk_by(|(a, of_a), (b, of_b)| of_a == of_b && one_run(a, b)) {
        let (round, cases) = (of_run[0].1, of_run.iter().map(|(case, _)| *case));
        let cases: Vec<&Case> = cases.collect();
        let open = Mutex::new(Open { at: 0, start: environment::now(), outputs: &mut *outputs });
        let turn = Turn { cases, round, earlier: &earlier, open };
        if let Err(error) = same_steps(&turn.cases, |case| turn.known(case)) {
            end = SweepEnd::Failed(error);
            break;
        }
        if turn.cases.iter().all(|case| turn.known(case).is_some()) {
            records.extend(turn.cases.iter().filter_map(|case| turn.known(case).cloned()));
            continue;
        }
        let work = |restart: &dyn Fn()| {
            let mut keep = |record: Record, observer: &mut dyn Observer| -> Result<()> {
                restart();
                records.push(turn.kept(record, &records, observer)?);
                Ok(())
            };
            run(&turn.cases, round, observer, &mut keep)
        };
        match limit::watched(measure.case_limit_s, work, |limit_s| turn.late(limit_s)) {
            Ok(true) => {}
            Ok(false) => end = SweepEnd::Interrupted,
            Err(error) if error.kind() == Kind::Stopped => {
                observer.remark(&error.to_string());
                end = SweepEnd::Interrupted;
            }
            Err(error) => end = SweepEnd::Failed(error),
        }
        if end != SweepEnd::Complete {
            break;
        }
    }
    observer.end();
    Outcome { records: rounds::aggregated(&records), end }
}

/// Cases that run together.
struct Turn<'a> {
    cases: Vec<&'a Case>,
    round: Option<usize>,
    /// Records that were there before.
    earlier: &'a [Record],
    open: Mutex<Open<'a>>,
}

/// The case of a turn that runs, by its place and the time at which it began, and where its record goes.
struct Open<'a> {
    at: usize,
    start: String,
    outputs: &'a mut Outputs,
}

impl Turn<'_> {
    fn known(&self, case: &Case) -> Option<&Record> {
        record_of(case, self.round, self.earlier)
    }

    /// Writes the record of the case that ran, unless it was there before; `others` are those of this run.
    fn kept(
        &self,
        record: Record,
        others: &[Record],
        observer: &mut dyn Observer,
    ) -> Result<Record> {
        // whoever ends the job holds it for good
        let open = &mut *self.open.lock().unwrap_or_else(PoisonError::into_inner);
        (open.at, open.start) = (open.at + 1, environment::now());
        if let Some(record) = self.known(&record.case) {
            return Ok(record.clone());
        }
        let record = Record { round: self.round, ..record };
        // a matrix may have changed since the run began
        let file = open.outputs.paths().next().map(|path| path.display().to_string());
        let others = self.earlier.iter().chain(others);
        contents::refuse_others(file.as_deref().unwrap_or("this run"), others, &record)?;
        open.outputs.add(&record)?;
        observer.finished(&record);
        Ok(record)
    }

    /// Writes that the case which runs took too long, and ends all ranks.
    fn late(&self, limit_s: f64) {
        let open = &mut *self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // the last one has just been kept
        let Some(case) = self.cases.get(open.at) else { return };
        let mut kept = Ok(());
        if self.known(case).is_none() {
            let why = limit::late_over_ranks(limit_s);
            let record = limit::without_result(case, why, open.start.clone());
            kept = open.outputs.add(&Record { round: self.round, ..record });
        }
        limit::end_job(kept, case, limit_s)
    }
}

/// Refuses to add rounds to cases measured without rounds, or vice versa: no reader could tell
/// how often what was measured.
fn same_rounds(cases: &[Case], earlier: &[Record], rounds: &[Option<usize>]) -> Result<()> {
    let with = rounds.iter().any(Option::is_some);
    let other = |r: &&Record| r.round.is_some() != with && cases.contains(&r.case);
    if !earlier.iter().any(|r| other(&r)) {
        return Ok(());
    }
    Err(if with {
        Error::input(
            "the result file has records of these cases that were measured without --rounds",
        )
        .hint("go on without --rounds, or write to another file")
    } else {
        Error::input("the result file has records of these cases by rounds")
            .hint("give --rounds as before, or write to another file")
    })
}

/// Refuses to go on with a sequence whose steps have other numbers in earlier records.
fn same_steps<'a>(cases: &[&Case], known: impl Fn(&Case) -> Option<&'a Record>) -> Result<()> {
    for (number, case) in (1..).zip(cases) {
        if let Some(before) = known(case).and_then(|r| r.step).filter(|step| *step != number) {
            return Err(Error::input(format!(
                "the result file has `{}` as step {before} of the sequence, and it is step {number} now",
                case.matrix
            ))
            .hint("give the steps of before, or write to another file"));
        }
    }
    Ok(())
}

/// Refuses to go on with cases that were measured on other ranks: their number is no setting of a case.
fn same_ranks(cases: &[Case], earlier: &[Record], ranks: usize) -> Result<()> {
    let of_cases = earlier.iter().filter(|r| cases.contains(&r.case));
    match of_cases.filter_map(|r| r.division.ranks).find(|before| *before != ranks) {
        None => Ok(()),
        Some(before) => Err(Error::input(format!(
            "the result file has records of these cases on {}, not on {ranks}",
            plural(before, "rank")
        ))
        .hint("start as many ranks as before, or write to another file")),
    }
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
    let system = loaded.get(case, runner, observer)?;
    observer.case(case);
    let start = environment::now();
    let mut latest = None;
    let result = match system {
        Ok(System { here, ordering_s, hash }) => {
            let told = |stage| {
                // a solve reports every iteration
                if latest.replace(stage) != Some(stage) {
                    observer.stage(stage);
                }
                going()
            };
            let record = runner.run(case, here, measure, &mut { told });
            record.map(|mut record| {
                // ranks order their rows themselves
                record.times.add_ordering(ordering_s);
                record.hash = hash;
                record.times.total_s = record.times.to_solution(1);
                record
            })
        }
        Err(why) => Some(why.record(case)),
    };
    Ok(result.map(|mut record| {
        environment::complete(&mut record.environment, &case.backend, start);
        record
    }))
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
