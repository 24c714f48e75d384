//! What `run` and `reproduce` have in common around the engine: result files, progress, Ctrl-C and
//! the exit code.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;

use crate::backend;
use crate::case::Case;
use crate::cli::flags::{IsolationFlags, OutputFlags, Overrides};
use crate::config::Experiment;
use crate::engine::progress::{self, say};
use crate::engine::{self, End, Outcome, Solvers, interrupt, isolated};
use crate::error::{Error, Kind, Result};
use crate::problem::{Folders, Source};
use crate::report::units::plural;
use crate::result::Record;
use crate::result::output::{Existing, Outputs};

/// Finds what can be known to be wrong before anything runs: measuring options that contradict each
/// other, matrices that nobody knows or whose file is not there.
pub fn check(experiment: &Experiment) -> Result<()> {
    experiment.measure.resolve()?;
    let (folders, mut known) = (Folders::from_env(), HashSet::new());
    for case in experiment.cases()?.0 {
        if !known.contains(&case.matrix) {
            let found = Source::find(&case.matrix, &folders).and_then(|source| match source {
                Source::File(path) => {
                    std::fs::metadata(&path).map(drop).map_err(|e| Error::io("read", &path, &e))
                }
                Source::Generated { .. } => Ok(()),
            });
            found.map_err(|e| experiment.at_matrix(&case.matrix, e))?;
            known.insert(case.matrix);
        }
    }
    Ok(())
}

/// One invocation that runs cases.
pub struct Session<'a> {
    flags: &'a OutputFlags,
    isolation: IsolationFlags,
    interrupts: &'static AtomicUsize,
    /// Backends that cannot compute here.
    missing: Vec<Missing>,
}

/// A backend that cannot compute here, and why.
struct Missing {
    backend: String,
    why: Error,
}

impl<'a> Session<'a> {
    /// Says what was noticed in the flags and starts to listen for Ctrl-C.
    pub fn start(
        flags: &'a OutputFlags,
        isolation: IsolationFlags,
        overrides: &Overrides,
    ) -> Result<Self> {
        remarks(&overrides.remarks);
        Ok(Self { flags, isolation, interrupts: interrupt::install()?, missing: Vec::new() })
    }

    /// Opens the result files for `experiments`, each group of `files` with the same records, after a
    /// look at what their backends need. Says which backends are left out because something is missing.
    ///
    /// # Errors
    /// When a case has to run and no backend can compute; no file is made then.
    pub fn open(
        &mut self,
        experiments: &[&Experiment],
        files: &[Vec<PathBuf>],
    ) -> Result<Vec<Outputs>> {
        let mut cases = Vec::new();
        for experiment in experiments {
            cases.extend(experiment.cases()?.0);
        }
        let backends = backends(&cases);
        let mut missing = missing(&backends)?;
        let existing = self.flags.existing();
        let resumed = existing == Existing::Resume;
        if !resumed {
            some_usable(&backends, &missing)?;
        }
        let open = |files: &Vec<PathBuf>| Outputs::open(files, existing);
        let outputs = files.iter().map(open).collect::<Result<Vec<Outputs>>>()?;
        for outputs in &outputs {
            remarks(&outputs.remarks);
        }
        if resumed {
            // what is finished needs no backend any more
            let done: Vec<Record> = outputs.iter().flat_map(Outputs::records).collect();
            let pending = |case: &Case| !done.iter().any(|r| r.case == *case);
            missing.retain(|m| cases.iter().any(|c| c.backend == m.backend && pending(c)));
            some_usable(&backends, &missing)?;
        }
        remarks(&left_out(&missing));
        self.missing = missing;
        Ok(outputs)
    }

    /// Runs the cases of `experiment` that `outputs` lacks, on the backends that are there.
    pub fn run(&self, experiment: &Experiment, outputs: &mut Outputs) -> Result<Outcome> {
        let (mut cases, repeated) = experiment.cases()?;
        if !self.missing.is_empty() {
            let done = outputs.records();
            let is_missing = |name: &str| self.missing.iter().any(|m| m.backend == name);
            cases.retain(|c| !is_missing(&c.backend) || done.iter().any(|r| r.case == *c));
        }
        remarks(&experiment.remarks);
        if repeated > 0 {
            remarks(&[format!("{} in more than one sweep, run once", plural(repeated, "case"))]);
        }
        let measure = experiment.measure.resolve()?;
        let mut observer = progress::observer(self.flags.quiet);
        if let Some(isolation) = self.isolation.isolation(&measure)? {
            let observer = observer.as_mut();
            return Ok(isolated::execute(&cases, &isolation, outputs, observer, self.interrupts));
        }
        Ok(engine::execute(
            &cases,
            &measure,
            outputs,
            &mut Solvers::default(),
            observer.as_mut(),
            self.interrupts,
        ))
    }

    /// Exit code of the whole, with the experiments of `outcomes`; says how to go on after Ctrl-C and how many runs failed.
    pub fn end(
        &self,
        experiments: &[&Experiment],
        outcomes: &[Outcome],
        outputs: &[Outputs],
    ) -> Result<ExitCode> {
        for outcome in outcomes {
            match &outcome.end {
                End::Failed(error) => return Err(error.clone()),
                End::Interrupted => {
                    say(&interrupted(outputs));
                    return Ok(ExitCode::from(interrupt::EXIT_CODE));
                }
                End::Complete => {}
            }
        }
        let records = outcomes.iter().flat_map(|o| &o.records);
        let total = records.clone().count();
        let pairs = experiments.iter().zip(outcomes);
        let aside: usize = pairs.map(|(e, o)| e.not_applicable(&o.records).len()).sum();
        let failed = records.filter(|r| !r.status.succeeded()).count() - aside;
        if aside > 0 {
            say(&format!("note: {} of `all` left out: not applicable", plural(aside, "case")));
        }
        if failed > 0 {
            say(&format!("{failed} of {} did not converge", plural(total, "case")));
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn interrupted(outputs: &[Outputs]) -> String {
    let paths = outputs.iter().flat_map(Outputs::paths);
    let files: Vec<String> = paths.map(|p| format!("`{}`", p.display())).collect();
    if files.is_empty() {
        "stopped; with --output FILE a run can be continued".into()
    } else {
        format!(
            "stopped; finished cases are in {}; the same command with --resume goes on",
            files.join(", ")
        )
    }
}

/// The backends of `cases`, in the order of their first appearance.
fn backends(cases: &[Case]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for case in cases {
        if !names.contains(&case.backend.as_str()) {
            names.push(&case.backend);
        }
    }
    names
}

/// Those that cannot compute here; a wrong setting of theirs is an error.
fn missing(backends: &[&str]) -> Result<Vec<Missing>> {
    let missing = |name: &&str| match backend::available(name) {
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

fn remarks(remarks: &[String]) {
    for text in remarks {
        say(&format!("note: {text}"));
    }
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
