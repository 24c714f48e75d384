//! `run`: a sweep given by flags, a TOML file or both.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::flags::{IsolationFlags, OutputFlags, SweepFlags};
use crate::cli::output;
use crate::cli::session::{Session, check};
use crate::config::{Experiment, Sweep};
use crate::error::Result;
use crate::report;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The cases are the cross product of all values, in the order of the flags \
                        above: the matrix is the outermost loop, the backend the innermost.")]
pub struct RunArgs {
    /// Experiment to run; flags replace its settings
    #[arg(value_name = "FILE.toml")]
    experiment: Option<PathBuf>,

    #[command(flatten)]
    sweep: SweepFlags,

    #[command(flatten)]
    isolation: IsolationFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the experiment and prints its table.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    let flags = args.sweep.resolve()?;
    let experiment = match &args.experiment {
        Some(path) => Experiment::open(path)?,
        None => Experiment::of(Sweep::default()),
    };
    let experiment =
        experiment.overridden_by(&flags.sweep, &flags.measure).restricted_to(&flags.only);
    check(&experiment)?;
    let mut session = Session::start(&args.output, args.isolation, &flags)?;
    let mut outputs = session.open(&[&experiment], std::slice::from_ref(&args.output.output))?;
    let outcome = session.run(&experiment, &mut outputs[0])?;
    if outcome.records.is_empty() {
        // stopped before the first record: nothing to show
        return session.end(&[&experiment], &[outcome], &outputs);
    }
    let report = report::of_experiment("run", &experiment, &outcome.records, None);
    output::print(&args.output.format.render(&report)?)?;
    session.end(&[&experiment], &[outcome], &outputs)
}
