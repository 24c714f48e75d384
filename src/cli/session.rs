//! What `run` and `reproduce` have in common around the engine: result files, progress, Ctrl-C and
//! the exit code.

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;

use crate::cli::flags::{OutputFlags, Overrides};
use crate::config::Experiment;
use crate::engine::progress::{self, say};
use crate::engine::{self, End, Outcome, Solvers, interrupt};
use crate::error::{Error, Result};
use crate::problem::{Folders, Source};
use crate::report::units::plural;
use crate::result::Status;
use crate::result::output::Outputs;

/// Finds what can be known to be wrong before anything runs: measuring options that contradict each
/// other, matrices that nobody knows or whose file is not there.
pub fn check(experiment: &Experiment) -> Result<()> {
    experiment.measure.resolve()?;
    let (folders, mut known) = (Folders::from_env(), HashSet::new());
    for case in experiment.cases()?.0 {
        if !known.contains(&case.matrix) {
            if let Source::File(path) = Source::find(&case.matrix, &folders)? {
                std::fs::metadata(&path).map_err(|e| Error::io("read", &path, &e))?;
            }
            known.insert(case.matrix);
        }
    }
    Ok(())
}

/// One invocation that runs cases.
pub struct Session<'a> {
    flags: &'a OutputFlags,
    interrupts: &'static AtomicUsize,
}

impl<'a> Session<'a> {
    /// Says what was noticed in the flags and starts to listen for Ctrl-C.
    pub fn start(flags: &'a OutputFlags, overrides: &Overrides) -> Result<Self> {
        remarks(&overrides.remarks);
        Ok(Self { flags, interrupts: interrupt::install()? })
    }

    /// Opens the result files.
    pub fn open(&self) -> Result<Outputs> {
        let outputs = Outputs::open(&self.flags.output, self.flags.existing())?;
        remarks(&outputs.remarks);
        Ok(outputs)
    }

    /// Runs the cases of `experiment` that `outputs` lacks.
    pub fn run(&self, experiment: &Experiment, outputs: &mut Outputs) -> Result<Outcome> {
        let (cases, repeated) = experiment.cases()?;
        remarks(&experiment.remarks);
        if repeated > 0 {
            remarks(&[format!("{} in more than one sweep, run once", plural(repeated, "case"))]);
        }
        let measure = experiment.measure.resolve()?;
        let mut observer = progress::observer(self.flags.quiet);
        Ok(engine::execute(
            &cases,
            &measure,
            outputs,
            &mut Solvers,
            observer.as_mut(),
            self.interrupts,
        ))
    }

    /// Exit code of the whole; says how to go on after Ctrl-C and how many runs failed.
    pub fn end(&self, outcomes: &[Outcome], outputs: &Outputs) -> Result<ExitCode> {
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
        let failed = records.filter(|r| r.status != Status::Converged).count();
        if failed > 0 {
            say(&format!("{failed} of {} did not converge", plural(total, "case")));
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn interrupted(outputs: &Outputs) -> String {
    let files: Vec<String> = outputs.paths().map(|p| format!("`{}`", p.display())).collect();
    if files.is_empty() {
        "stopped; with --output FILE a run can be continued".into()
    } else {
        format!(
            "stopped; finished cases are in {}; the same command with --resume goes on",
            files.join(", ")
        )
    }
}

fn remarks(remarks: &[String]) {
    for text in remarks {
        say(&format!("note: {text}"));
    }
}
