//! `advise`: searches for the settings that solve a system fastest on this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::base::error::{Error, Result};
use crate::base::input::{say, silence};
use crate::base::units::{plural, seconds};
use crate::base::{files, interrupt};
use crate::bench::advise;
use crate::bench::advise::check::{Sweeping, against_all};
use crate::bench::advise::{Advice, Question, Told, Tried, describe};
use crate::case::{Case, ReadAs};
use crate::cli::flags::{PeerFlags, limit, settings};
use crate::cli::{complete, output};
use crate::config::{Sweep, peer, write};
use crate::problem::{self, Folders, Source};
use crate::report::ReportFormat;
use crate::report::advice::report as advice_report;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Tries block sizes, fill levels and their rule, orderings, preconditioners, \
                        solvers, backends and algorithms of triangular solves that suit the matrix, \
                        aborts trials that are slower than the best so far, and measures the best \
                        in alternation. The criterion is the time from the matrix in memory to the \
                        solution: ordering, storage, setup and solves."
)]
pub(super) struct AdviseArgs {
    /// Matrix: a generator (`poisson3d:60`), a catalogue name or a file
    #[arg(value_name = "MATRIX", add = complete::matrix())]
    matrix: String,

    /// Time budget in seconds, from the loaded matrix on
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = limit, allow_negative_numbers = true)]
    time_budget: f64,

    /// Number of solves with the same factors: with 1 a cheap setup pays off, with many a good one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    solves: u32,

    /// Restrict a setting to these values, such as `backend=cpu`, `fill=0..2`, `rtol=1e-8` or `rhs=own`
    /// (repeatable; `bilu-bench list settings` names them). The right-hand side is the matrix's own, if it has one
    #[arg(long, value_name = "SETTING=VALUES", add = complete::assignment())]
    set: Vec<String>,

    /// Also try the best methods of these peers, such as AMG (`petsc,hypre`, or `all`)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "exhaustive")]
    with_peers: Vec<String>,

    #[command(flatten)]
    peers: PeerFlags,

    /// How a symmetric file is read
    #[arg(long, value_enum, default_value_t)]
    read_as: ReadAs,

    /// Write the best settings as an experiment for `run`
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    /// Format of the table
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: ReportFormat,

    /// No progress on standard error
    #[arg(short, long)]
    quiet: bool,

    /// Also run every combination and compare the best of them with the advice, as JSON
    #[arg(long, hide = true)]
    exhaustive: bool,

    /// Result file of the sweep of `--exhaustive`; an interrupted sweep continues from it
    #[arg(long, hide = true, requires = "exhaustive", value_name = "FILE")]
    sweep_file: Option<PathBuf>,

    /// Time limit of that sweep, in seconds
    #[arg(long, hide = true, requires = "exhaustive", value_name = "SECONDS", value_parser = limit, allow_negative_numbers = true)]
    sweep_budget: Option<f64>,
}

/// Settings that have flags of their own.
const NOT_SEARCHED: [&str; 4] = ["matrix", "read-as", "zeros", "kind"];

/// The sweep to which `--set` restricts the search.
fn allowed(words: &[String]) -> Result<Sweep> {
    let place = |e: Error| e.in_file("--set");
    let given = |name: &&str| words.iter().any(|word| word.starts_with(&format!("{name}=")));
    if let Some(name) = NOT_SEARCHED.iter().find(|name| given(name)) {
        return Err(place(Error::input(format!("`{name}` is not searched"))));
    }
    settings(words).map_err(place)
}

/// Searches, prints the best and writes the experiment.
pub(super) fn run(args: &AdviseArgs) -> Result<ExitCode> {
    let fixed = allowed(&args.set)?;
    args.peers.apply()?;
    let peers = peer::named(&args.with_peers).map_err(|e| e.in_file("--with-peers"))?;
    if let Some(path) = &args.output {
        if path.extension().is_none_or(|e| e != "toml") {
            return Err(Error::input(format!("`{}` does not end in .toml", path.display())));
        }
        files::refuse_existing(path, args.force)?;
        let source = Source::find(&args.matrix, &Folders::from_env())?;
        files::refuse_overlap(&[path], &source.files())?;
        files::check_folder(path)?;
    }
    let interrupts = interrupt::install()?;
    if args.quiet {
        silence();
    }
    let problem = problem::load(&args.matrix, args.read_as)?;
    output::notes(problem.remarks.iter().map(|remark| format!("{}: {remark}", args.matrix)));
    let rhs = match &fixed.rhs {
        Some(given) => match given.as_slice() {
            [one] => one.clone(),
            _ => return Err(Error::input("--set: one right-hand side")),
        },
        None if problem.own_rhs.is_some() => "own".into(),
        None => "ones".into(),
    };
    let b = problem::right_hand_side(&problem, &rhs)?;
    let base = Case { matrix: args.matrix.clone(), rhs, read_as: args.read_as, ..Case::default() };
    let solves = args.solves as usize;
    let question = Question { base, fixed, solves, budget_s: args.time_budget, peers };
    let mut told = |told: Told| match told {
        _ if args.quiet => {}
        Told::Tried(tried, best) => say(&progress(tried, best)),
        Told::Finals(count) => say(&format!("{} measured in rounds", plural(count, "finalist"))),
    };
    let advice = advise::advise(&question, &problem, &b, interrupts, &mut told)?;
    if advice.found.interrupted {
        if !advice.finalists.is_empty() {
            output::tables(&advice_report(&question, &advice), args.format)?;
        }
        say("stopped");
        return Ok(ExitCode::from(crate::base::error::STOPPED));
    }
    if args.exhaustive {
        let sweeping = Sweeping { file: args.sweep_file.clone(), budget_s: args.sweep_budget };
        let check = against_all(&question, &advice, &problem, &b, interrupts, &sweeping)?;
        output::print(&format!("{check}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::tables(&advice_report(&question, &advice), args.format)?;
    let Some(best) = advice.finalists.first() else { return Ok(ExitCode::FAILURE) };
    let folder = args.output.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let case = write::named_in(folder, &best.case)
        .map_err(|e| Error::run(format!("the working directory is not known: {e}")))?;
    let toml = experiment(&args.matrix, &advice, &case);
    match &args.output {
        Some(path) => files::write(path, toml.as_bytes())?,
        None if args.format == ReportFormat::Table => output::print(&format!("\n{toml}"))?,
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The experiment that runs the best settings again.
fn experiment(matrix: &str, advice: &Advice, case: &Case) -> String {
    let note = advice.structure.describe();
    write::stated(&format!("Advice for {matrix}"), &[note], case)
}

/// One line that reports a trial.
fn progress(tried: &Tried, best: f64) -> String {
    let how = match &tried.trial {
        advise::Trial::Solved { seconds: s, record, .. } => {
            format!("{}, {} iterations", seconds(*s), record.convergence.iterations)
        }
        advise::Trial::CutOff { .. } => "takes longer".into(),
        advise::Trial::Failed { reason } => format!("fails: {reason}"),
    };
    let best = if best.is_finite() { format!(" (best {})", seconds(best)) } else { String::new() };
    format!("{}: {how}{best}", describe(&tried.case))
}
