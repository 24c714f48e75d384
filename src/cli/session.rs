//! Common frame of `run` and `reproduce` around the engine: result files, progress, Ctrl-C and the exit
//! code.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use itertools::Itertools as _;

use crate::base::error::{Error, Kind, Result};
use crate::base::files::refuse_overlap;
use crate::base::input::{is_stdin, say};
use crate::base::interrupt;
use crate::base::units::plural;
use crate::bench::engine;
use crate::bench::engine::preflight::{Broken, Earlier};
use crate::bench::engine::{Outcome, Solvers, SweepEnd, isolated, preflight, progress};
use crate::bench::solution::Solutions;
use crate::case::Case;
use crate::cli::flags::{IsolationFlags, OutputFlags, Overrides};
use crate::cli::output::notes;
use crate::cli::ranks;
use crate::config::peer;
use crate::config::sampling::Measure;
use crate::config::{AXES, Experiment};
use crate::problem::{Folders, Source, several};
use crate::record::Record;
use crate::record::output::{Existing, Outputs};

/// Detects errors before anything runs: contradictory measuring options, unknown matrices and missing
/// files.
pub(crate) fn check(experiment: &Experiment) -> Result<()> {
    experiment.measure.resolve()?;
    for (matrix, source) in sources(experiment)? {
        if let Source::File(path) = source
            && !is_stdin(&path)
        {
            let found = std::fs::metadata(&path).map_err(|e| Error::io("read", &path, &e));
            found.map_err(|e| experiment.at_matrix(&matrix, e))?;
        }
    }
    Ok(())
}

/// The matrices of an experiment, each once.
fn sources(experiment: &Experiment) -> Result<Vec<(String, Source)>> {
    let (folders, mut known) = (Folders::from_env(), HashSet::new());
    let mut cases = experiment.cases()?.0;
    cases.retain(|case| known.insert(case.matrix.clone()));
    let found =
        cases.into_iter().map(|Case { matrix, .. }| match Source::find(&matrix, &folders) {
            Ok(source) => Ok((matrix, source)),
            Err(e) => Err(experiment.at_matrix(&matrix, e)),
        });
    found.collect()
}

/// The input files of experiments: their own, matrices, right-hand sides, fields.
fn inputs_of(experiments: &[&Experiment]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for experiment in experiments {
        files.extend(experiment.files.iter().cloned());
        let cases = experiment.cases()?.0;
        let of_file =
            |case: &'_ Case| several::name(&case.rhs).strip_prefix("file:").map(PathBuf::from);
        files.extend(cases.iter().filter_map(of_file));
        files.extend(sources(experiment)?.iter().flat_map(|(_, source)| source.files()));
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// One invocation that runs cases.
pub(super) struct Session<'a> {
    flags: &'a OutputFlags,
    isolation: IsolationFlags,
    interrupts: &'static AtomicUsize,
    /// Backends that are not usable here.
    missing: Vec<Missing>,
    /// Keeps the system that was loaded before anything ran.
    solvers: Solvers,
}

/// A backend that is not usable here, and why.
struct Missing {
    backend: String,
    why: Error,
}

impl<'a> Session<'a> {
    /// Prints remarks about the flags and installs the Ctrl-C handler.
    pub(super) fn start(
        flags: &'a OutputFlags,
        isolation: IsolationFlags,
        overrides: &Overrides,
    ) -> Result<Self> {
        notes(&overrides.remarks);
        let (interrupts, solvers) = (interrupt::install()?, Solvers::default());
        Ok(Self { flags, isolation, interrupts, missing: Vec::new(), solvers })
    }

    /// Opens the result files for `experiments`, each group of `files` with the same records, after it
    /// has checked backends, inputs, existing records, matrices and right-hand sides. Prints which backends are
    /// skipped because something is missing.
    ///
    /// # Errors
    /// When a case has to run and no backend is usable, or a check fails; all files are then unchanged.
    pub(super) fn open(
        &mut self,
        experiments: &[&Experiment],
        files: &[Vec<PathBuf>],
    ) -> Result<Vec<Outputs>> {
        let mut cases = Vec::new();
        for experiment in experiments {
            cases.extend(experiment.cases()?.0);
        }
        let backends = backends(&cases);
        ranks::check(backends.iter().copied(), self.isolation.isolates())?;
        if self.isolation.isolates() && cases.iter().any(|case| !case.sequence.is_empty()) {
            return Err(Error::input("the steps of a sequence have no process of their own")
                .hint("go without --isolate and --case-limit"));
        }
        if self.isolation.limit_over_ranks().is_some() && files.iter().any(Vec::is_empty) {
            return Err(Error::input("--case-limit on several ranks ends the job")
                .hint("give --output FILE, which keeps what was finished"));
        }
        let mut missing = missing(&backends)?;
        let existing = self.flags.existing();
        let resumed = existing == Existing::Resume;
        if !resumed {
            some_usable(&backends, &missing)?;
        }
        refuse_overlap(&files.concat(), &inputs_of(experiments)?)?;
        let check = |files: &Vec<PathBuf>| Outputs::check(files, existing);
        let mut outputs = files.iter().map(check).collect::<Result<Vec<Outputs>>>()?;
        for outputs in &outputs {
            notes(&outputs.remarks);
        }
        let done: Vec<Record> = outputs.iter().flat_map(Outputs::records).collect();
        let mut pending = Vec::new();
        for experiment in experiments {
            let (cases, measure) = (experiment.cases()?.0, self.measure(experiment)?);
            pending.extend(engine::pending(&cases, &measure, &done).into_iter().cloned());
        }
        if resumed {
            // what is finished needs no backend any more
            missing.retain(|m| pending.iter().any(|c| c.backend == m.backend));
            some_usable(&backends, &missing)?;
        }
        notes(left_out(&missing));
        self.missing = missing;
        let earlier: Vec<Earlier> = outputs.iter().filter_map(earlier).collect();
        let broken = self.preflight(&cases, &pending, &earlier).err();
        if let Some(Broken { matrix, error }) = broken {
            // a file knows its own place
            let of = experiments.iter().find(|e| e.matrix_places.iter().any(|(m, _)| *m == matrix));
            return Err(match of.filter(|_| error.place().is_none()) {
                Some(experiment) => experiment.at_matrix(&matrix, *error),
                None => *error,
            });
        }
        if self.interrupts.load(Ordering::SeqCst) == 0 {
            outputs.iter_mut().try_for_each(Outputs::start)?;
        }
        Ok(outputs)
    }

    /// The measuring options of an experiment in this process.
    fn measure(&self, experiment: &Experiment) -> Result<Measure> {
        Ok(Measure {
            round: self.isolation.round,
            case_limit_s: self.isolation.limit_over_ranks(),
            ..experiment.measure.resolve()?
        })
    }

    /// Checks the systems of the cases that can run, `pending` among them in their order.
    fn preflight(
        &mut self,
        cases: &[Case],
        pending: &[Case],
        earlier: &[Earlier],
    ) -> Result<(), Broken> {
        let is_missing = |case: &Case| self.missing.iter().any(|m| m.backend == case.backend);
        let cases: Vec<Case> = cases.iter().filter(|case| !is_missing(case)).cloned().collect();
        let first = pending.iter().find(|case| !is_missing(case));
        let mut observer = progress::observer(self.flags.quiet);
        // a separate process reads the matrix again
        let (keep, interrupts) = (!self.isolation.isolates(), self.interrupts);
        let going = || interrupts.load(Ordering::SeqCst) == 0;
        let observed = observer.as_mut();
        let checked =
            preflight::check(&cases, first, earlier, keep, &mut self.solvers, observed, &going);
        observer.end();
        checked
    }

    /// The files of the solutions of each experiment, if requested.
    pub(super) fn solutions(&self, experiments: &[&Experiment]) -> Result<Vec<Solutions>> {
        let Some(pattern) = &self.flags.solution else { return Ok(Vec::new()) };
        let cases = experiments.iter().map(|e| Ok(e.cases()?.0)).collect::<Result<Vec<_>>>()?;
        let read = inputs_of(experiments)?;
        Solutions::plan(pattern, AXES, &cases, self.flags.existing(), &read)
    }

    /// Runs the cases of `experiment` that are missing in `outputs`, on the available backends.
    pub(super) fn run(
        &mut self,
        experiment: &Experiment,
        outputs: &mut Outputs,
        solutions: Option<&Solutions>,
    ) -> Result<Outcome> {
        let (mut cases, repeated) = experiment.cases()?;
        let unused = experiment.unused(&cases);
        let measure = self.measure(experiment)?;
        if !self.missing.is_empty() {
            let done = outputs.records();
            let is_missing = |name: &str| self.missing.iter().any(|m| m.backend == name);
            cases.retain(|c| !is_missing(&c.backend) || finished(c, &measure, &done));
        }
        notes(&experiment.remarks);
        notes(unused);
        if repeated > 0 {
            notes([format!("{} in more than one sweep, run once", plural(repeated, "case"))]);
        }
        if measure.min_repetitions > 1 && cases.iter().any(|case| !case.sequence.is_empty()) {
            notes(["a step of a sequence is solved once; --rounds N repeats the sequence"]);
        }
        if let Some(solutions) = solutions {
            let done = outputs.records();
            let finished = cases.iter().filter(|case| finished(case, &measure, &done));
            notes(solutions.missing(finished));
        }
        self.solvers.with_solutions = solutions.is_some();
        let mut observer = progress::observer(self.flags.quiet);
        if let Some(isolation) = self.isolation.isolation(&experiment.measure)? {
            refuse_stdin(&cases)?;
            let observer = observer.as_mut();
            return Ok(isolated::execute(
                &cases,
                &measure,
                &isolation,
                outputs,
                solutions,
                observer,
                self.interrupts,
            ));
        }
        Ok(engine::execute(
            &cases,
            &measure,
            outputs,
            solutions,
            &mut self.solvers,
            observer.as_mut(),
            self.interrupts,
        ))
    }

    /// Exit code of the command. Prints how to continue after Ctrl-C, and how many runs failed.
    pub(super) fn end(
        experiments: &[&Experiment],
        outcomes: &[Outcome],
        outputs: &[Outputs],
    ) -> Result<ExitCode> {
        for outcome in outcomes {
            match &outcome.end {
                SweepEnd::Failed(error) => return Err(error.clone()),
                SweepEnd::Interrupted => {
                    say(&interrupted(outputs));
                    return Ok(ExitCode::from(crate::base::error::STOPPED));
                }
                SweepEnd::Complete => {}
            }
        }
        let records = outcomes.iter().flat_map(|o| &o.records);
        let total = records.clone().count();
        let pairs = experiments.iter().zip(outcomes);
        let aside: usize = pairs.map(|(e, o)| e.not_applicable(&o.records).len()).sum();
        let failed = records.filter(|r| !r.status.succeeded()).count() - aside;
        if aside > 0 {
            notes([format!("{} of `all` left out: not applicable", plural(aside, "case"))]);
        }
        if failed > 0 {
            say(&format!("{failed} of {} did not converge", plural(total, "case")));
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The records of a file that is resumed.
fn earlier(outputs: &Outputs) -> Option<Earlier> {
    let file = outputs.paths().next()?.display().to_string();
    Some(Earlier { file, records: outputs.records() }).filter(|e| !e.records.is_empty())
}

/// Whether `done` holds all rounds of a case.
fn finished(case: &Case, measure: &Measure, done: &[Record]) -> bool {
    engine::pending(std::slice::from_ref(case), measure, done).is_empty()
}

/// Rejects standard input as the matrix of isolated cases, whose processes read it again.
fn refuse_stdin(cases: &[Case]) -> Result<()> {
    if cases.iter().all(|case| !is_stdin(Path::new(&case.matrix))) {
        return Ok(());
    }
    Err(Error::input("cases with a process of their own cannot read standard input")
        .hint("write it to a file and name that, or go without --isolate and --case-limit"))
}

fn interrupted(outputs: &[Outputs]) -> String {
    let paths = outputs.iter().flat_map(Outputs::paths);
    let files: Vec<String> = paths.map(|p| format!("`{}`", p.display())).collect();
    if files.is_empty() {
        "stopped; with --output FILE a run can be continued".into()
    } else if outputs.iter().all(|o| o.added() == 0 && o.records().is_empty()) {
        format!("stopped before the first case was finished; {} as before", files.join(", "))
    } else {
        format!(
            "stopped; finished cases are in {}; the same command with --resume goes on",
            files.join(", ")
        )
    }
}

/// The backends of `cases`, in the order of their first appearance.
fn backends(cases: &[Case]) -> Vec<&str> {
    cases.iter().map(|case| &*case.backend).unique().collect()
}

/// Backends that are not usable here; an invalid setting of one is an error.
fn missing(backends: &[&str]) -> Result<Vec<Missing>> {
    let missing = |name: &&str| match peer::available(name) {
        Ok(()) => None,
        Err(why) if why.kind() == Kind::Input => Some(Err(why)),
        Err(why) => Some(Ok(Missing { backend: (*name).to_owned(), why })),
    };
    backends.iter().filter_map(missing).collect()
}

/// The first reason when every backend is missing.
fn some_usable(backends: &[&str], missing: &[Missing]) -> Result<()> {
    match missing.first() {
        Some(first) if missing.len() == backends.len() => Err(first.why.clone()),
        _ => Ok(()),
    }
}

/// One line per reason: `cuda, cusparse left out: no CUDA driver found (libcuda.so)`.
fn left_out(missing: &[Missing]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for Missing { backend, why } in missing {
        let why = why.to_string();
        match groups.iter_mut().find(|(text, _)| *text == why) {
            Some((_, names)) => names.push(backend),
            None => groups.push((why, vec![backend])),
        }
    }
    groups.iter().map(|(why, names)| format!("{} left out: {why}", names.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(backend: &str, why: &str) -> Missing {
        Missing { backend: backend.into(), why: Error::run(why) }
    }

    #[test]
    fn backends_without_a_device_are_grouped_by_the_reason() {
        let list = [missing("cuda", "no driver"), missing("cusparse", "no driver")];
        assert_eq!(left_out(&list), ["cuda, cusparse left out: no driver"]);
        let list = [missing("cuda", "too old"), missing("cusparse", "no library")];
        assert_eq!(left_out(&list), ["cuda left out: too old", "cusparse left out: no library"]);
    }

    #[test]
    fn one_usable_backend_is_enough() {
        let gone = [missing("cuda", "no driver")];
        assert_eq!(some_usable(&["cpu", "cuda"], &gone), Ok(()));
        assert_eq!(some_usable(&["cuda"], &gone), Err(Error::run("no driver")));
        assert_eq!(some_usable(&[], &[]), Ok(()));
    }
}
