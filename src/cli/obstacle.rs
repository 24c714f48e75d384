//! `obstacle`: projected Richardson on the obstacle problem, from flags or an experiment.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::base::error::{Error, Result};
use crate::base::files::{refuse_existing, refuse_overlap};
use crate::base::input::say;
use crate::base::interrupt;
use crate::base::units::{grouped, plural, seconds};
use crate::bench::obstacle::{Measure, Solved, run as run_case};
use crate::bench::solution::Solutions;
use crate::cli::flags::{self, OutputFlags, axis_flags, words};
use crate::cli::{complete, output};
use crate::compute;
#[cfg(feature = "mpi")]
use crate::compute::distributed::launch;
use crate::config::obstacle::axes::{AXES, Sweep, axis};
use crate::config::obstacle::{self as experiment, Experiment};
use crate::obstacle::{self, Case};
use crate::record::obstacle::{self as record, Record, refuse_others};
use crate::record::output::{Existing, Outputs};
use crate::report::plot::obstacle as figure;
use crate::report::{obstacle as report, plot};

#[derive(Debug, clap::Args)]
#[command(after_help = "The cases are the cross product of all values, in the order of the flags \
                        above: m is the outermost loop, the mode the innermost. Over MPI: \
                        `mpirun -n 4 bilu-bench obstacle --backend mpi`, with a program built by \
                        `cargo build --release --features mpi`.")]
pub(super) struct ObstacleArgs {
    /// Experiment to run: a name that `--list` shows or a TOML file; flags replace its settings
    #[arg(value_name = "NAME|FILE.toml", add = complete::one_of(experiment::names))]
    experiment: Option<String>,

    /// List the experiments of the paper and stop
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    sweep: Flags,

    /// Timed repetitions of a case
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), allow_negative_numbers = true, help_heading = "Measuring")]
    repetitions: u16,

    /// Time limit of a run of a case, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "86400",
        allow_hyphen_values = true,
        help_heading = "Measuring"
    )]
    time_limit: String,

    /// Figure of grid points relaxed per second against nodes (.svg, .png)
    #[arg(long, value_name = "FILE", group = "files")]
    figure: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputFlags,
}

/// The flags of the settings, generated from the same list as the TOML keys.
#[derive(Clone, Debug, Default)]
struct Flags {
    /// Flag name and the words given to it.
    words: Vec<(&'static str, Vec<String>)>,
}

impl Flags {
    fn resolve(&self) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        for (name, words) in &self.words {
            let set = axis(name).and_then(|axis| axis.set(&mut sweep, words));
            set.map_err(|e| e.in_file(format!("--{name}")))?;
        }
        Ok(sweep)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { words: words(matches, AXES.iter().map(|a| a.name)) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        axis_flags(command, AXES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Runs the cases and prints their tables. A rank that fails ends the others; the first rank reports errors
/// that concern all.
pub(super) fn run(args: &ObstacleArgs) -> Result<ExitCode> {
    let done = run_cases(args);
    #[cfg(feature = "mpi")]
    if let Err(error) = &done {
        if obstacle::mpi::started() {
            output::error(error);
            obstacle::mpi::abort();
        } else if launch::rank() > 0 {
            return Ok(launch::left_to_first(error.exit_code()));
        }
    }
    done
}

fn run_cases(args: &ObstacleArgs) -> Result<ExitCode> {
    if args.list {
        return list();
    }
    let sweep = args.sweep.resolve()?;
    let limit = crate::base::parse::number(&args.time_limit, "above 0", |v| v > 0.0 && v < 1e9);
    let measure = Measure {
        repetitions: args.repetitions.into(),
        time_limit_s: limit.map_err(|e| e.in_file("--time-limit"))?,
        keep: args.output.solution.is_some(),
    };
    let experiment = match &args.experiment {
        Some(name) => Experiment::open(name)?.overridden_by(&sweep),
        None => Experiment { sweeps: vec![sweep], ..Experiment::default() },
    };
    check_files(args)?;
    let columns = args.output.columns(&report::heads(), &record::COLUMNS)?;
    let cases = experiment.cases()?;
    let solutions = solutions(args, &cases)?;
    let ranks = Ranks::of(&cases)?;
    let interrupts = interrupt::install()?;
    let mut outputs = ranks.together(opened(args, &ranks, &cases))?;
    if ranks.first {
        output::notes(&outputs.remarks);
    }
    let earlier = outputs.records();
    if let Some(solutions) = &solutions {
        let finished = cases.iter().filter(|case| earlier.iter().any(|r| r.case == **case));
        output::notes(solutions.missing(finished));
    }
    let mut records: Vec<Record> = Vec::new();
    let mut interrupted = false;
    for (number, case) in cases.iter().enumerate() {
        let known = earlier.iter().find(|r| r.case == *case);
        if ranks.agree(known.is_some()) {
            records.extend(known.cloned());
            continue;
        }
        let Some(Solved { record, u }) = run_case(case, measure, interrupts)? else {
            interrupted = true;
            break;
        };
        if let Some(solutions) = &solutions {
            if let Some(u) = u {
                solutions.write(case, &u, 1)?;
            } else {
                output::notes(solutions.none(&record));
            }
        }
        if ranks.first {
            outputs.add(&record)?;
            if !args.output.quiet {
                say(&format!("[{}/{}] {}", number + 1, cases.len(), summary(&record)));
            }
        }
        records.push(record);
    }
    if !ranks.first {
        return Ok(ExitCode::SUCCESS);
    }
    if !records.is_empty() {
        let report = report::report(Some(&experiment), &records, None);
        output::report(&report, args.output.format, &columns, flags::ALL)?;
        if !args.figure.is_empty() {
            let figure = figure::scaling(&records, experiment.title.as_deref());
            plot::write(&figure, &args.figure)?;
        }
    }
    Ok(ending(&records, interrupted))
}

/// Prints the experiments of the paper.
fn list() -> Result<ExitCode> {
    let mut text = String::new();
    for name in experiment::names() {
        let title = Experiment::open(&name)?.title.unwrap_or_default();
        _ = writeln!(text, "{name:18} {title}");
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that the files can be written, and that none is read as well.
fn check_files(args: &ObstacleArgs) -> Result<()> {
    for path in &args.figure {
        plot::check(path).map_err(|e| e.in_file("--figure"))?;
        // as a table, a figure grows with the records that it is of
        refuse_existing(path, args.output.existing() != Existing::Refuse)?;
    }
    let written: Vec<PathBuf> = args.output.output.iter().chain(&args.figure).cloned().collect();
    // experiments of the paper are in the program
    let read: Vec<PathBuf> =
        args.experiment.iter().map(PathBuf::from).filter(|p| p.is_file()).collect();
    refuse_overlap(&written, &read)
}

/// The result files, if the cases fit what they hold. The first rank keeps the records; the others hear from it which
/// are there.
fn opened(args: &ObstacleArgs, ranks: &Ranks, cases: &[Case]) -> Result<Outputs<Record>> {
    let files: &[_] = if ranks.first { &args.output.output } else { &[] };
    let mut outputs = Outputs::check_or_none(files, args.output.existing())?;
    let earlier = outputs.records();
    let file = outputs.paths().next().map(|path| path.display().to_string()).unwrap_or_default();
    cases.iter().try_for_each(|case| refuse_others(&file, &earlier, case))?;
    usable(cases.iter().filter(|case| !earlier.iter().any(|r| r.case == **case)))?;
    outputs.start()?;
    Ok(outputs)
}

/// Says what was left out or failed, and the exit code of that.
fn ending(records: &[Record], interrupted: bool) -> ExitCode {
    if interrupted {
        say("stopped; with --output FILE a run can be continued by --resume");
        return ExitCode::from(crate::base::error::STOPPED);
    }
    let failed = records.iter().filter(|r| !r.status.succeeded()).count();
    if failed > 0 {
        say(&format!("{failed} of {} did not converge", plural(records.len(), "case")));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Checks, before a result file is touched, that some case can run here or that there is none.
///
/// # Errors
/// When all cases need a GPU and none can be used.
fn usable<'a>(mut pending: impl Iterator<Item = &'a Case>) -> Result<()> {
    let Some(first) = pending.next().filter(|case| case.backend == "cuda") else { return Ok(()) };
    if pending.all(|case| case.backend == first.backend) {
        compute::available(&first.backend)?;
    }
    Ok(())
}

/// The files of the solutions, if requested.
fn solutions(args: &ObstacleArgs, cases: &[Case]) -> Result<Option<Solutions>> {
    let Some(pattern) = &args.output.solution else { return Ok(None) };
    if let Some(case) = cases.iter().find(|case| obstacle::over_ranks(&case.backend)) {
        let text = format!("the ranks of `{}` keep no solution", case.backend);
        return Err(Error::input(text).in_file("--solution").hint("`cpu`, `cpu-mt` and `cuda` do"));
    }
    let all = [cases.to_vec()];
    let mut plans = Solutions::plan(pattern, AXES, &all, args.output.existing(), &[])?;
    Ok(plans.pop())
}

/// The processes that run the cases together.
struct Ranks {
    /// Whether this is the one that prints and writes.
    first: bool,
    /// Whether there may be other processes.
    many: bool,
}

impl Ranks {
    /// This process alone, or those that `mpirun` started when a case asks for them.
    fn of(cases: &[Case]) -> Result<Self> {
        if cases.iter().all(|case| !obstacle::over_ranks(&case.backend)) {
            return Ok(Self { first: true, many: false });
        }
        #[cfg(feature = "mpi")]
        {
            if let Some(case) = cases.iter().find(|case| !obstacle::over_ranks(&case.backend)) {
                return Err(crate::Error::input(format!(
                    "backend `{}` beside `mpi` in one run",
                    case.backend
                ))
                .hint("every rank would run it: run them one after the other into one file with --resume"));
            }
            let first = obstacle::mpi::world()?.rank() == 0;
            Ok(Self { first, many: true })
        }
        #[cfg(not(feature = "mpi"))]
        Err(obstacle::no_mpi())
    }

    /// The answer of the first rank.
    fn agree(&self, answer: bool) -> bool {
        #[cfg(feature = "mpi")]
        if self.many {
            return obstacle::mpi::agree(answer);
        }
        let _ = self.many;
        answer
    }

    /// The files that the first rank opened; if it fails, all ranks end.
    fn together<T: Default>(&self, opened: Result<T>) -> Result<T> {
        if self.agree(opened.is_ok()) {
            return opened;
        }
        match opened {
            Err(error) => Err(error),
            // the first rank says what is wrong
            Ok(_) => std::process::exit(2),
        }
    }
}

/// `256^3 jacobi sync, cuda: 8,475 sweeps, 0.8 s, converged`
fn summary(record: &Record) -> String {
    let case = &record.case;
    let text = |name: &str| {
        let found = AXES.iter().find(|a| a.name == name);
        found.map(|a| (a.text)(case)).unwrap_or_default()
    };
    let time = record.cost.solve_s.map(|s| format!(", {}", seconds(s))).unwrap_or_default();
    let why = record.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!(
        "{}^3 {} {}, {}: {} sweeps{time}, {}{why}",
        case.m,
        text("method"),
        text("mode"),
        case.backend,
        grouped(record.iteration.sweeps_per_node.round() as usize),
        record.status.name(),
    )
}
