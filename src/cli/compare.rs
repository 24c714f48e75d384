//! `compare`: compares two result files, or two commands measured in alternation.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::base::error::{Error, Result};
use crate::base::input::say;
use crate::base::parse::{number, pieces};
use crate::base::units::plural;
use crate::cli::{alternate, output};
use crate::config::sweep::{AXES, Axis, axis};
use crate::record::Record;
use crate::report::ReportFormat;
use crate::report::compare::{self, Rule};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The verdict comes from the 95 % confidence interval of the ratio, from the \
                        rounds of both files where they were measured with `--rounds`: `slower` and \
                        `faster` only when the whole interval lies beyond the threshold, `same` when \
                        it lies within, else `unclear`. The line `overall` judges the geometric mean \
                        of all cases in the same way. docs/compare.md has the formulas. Cases of another \
                        matrix or right-hand side of the same name are shown and not judged.\n\n\
                        With --run, OLD and NEW are commands: `run ...` of this program, or another \
                        program, such as the build of another revision, with its arguments:\n  \
                        bilu-bench compare --run 'old/bilu-bench run a.toml' 'run a.toml' \
                        --fail-on-regression=10"
)]
pub(super) struct CompareArgs {
    /// Result file of the old version; with --run a command
    #[arg(allow_hyphen_values = true)]
    old: PathBuf,
    /// Result file of the new version; with --run a command
    #[arg(allow_hyphen_values = true)]
    new: PathBuf,

    /// Run OLD and NEW as commands in alternation, so that drift of the machine affects both alike
    #[arg(long)]
    run: bool,

    /// Rounds, each of which runs both commands; an interval needs at least six [default: 6]
    #[arg(long, value_name = "N", requires = "run", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,

    /// Folder for the records, old.csv and new.csv; created if necessary
    #[arg(long, value_name = "FOLDER", requires = "run")]
    keep: Option<PathBuf>,

    /// Equal rounds of both files were measured in alternation, as by --run --keep
    #[arg(long, conflicts_with = "run")]
    paired: bool,

    /// Settings that identify a case in both files, such as matrix,block-size,fill
    /// [default: all]
    #[arg(long, value_name = "SETTINGS", conflicts_with = "ignore")]
    by: Option<String>,

    /// Settings that may differ between the files, such as backend
    #[arg(long, value_name = "SETTINGS")]
    ignore: Option<String>,

    /// Changes up to this percentage count as `same`
    #[arg(long, value_name = "PERCENT", default_value = "5", allow_hyphen_values = true)]
    threshold: String,

    /// Percentage by which two runs of the same program may differ because the machine drifts: `slower`
    /// and `faster` must exceed it too, or what the reference computation shows where that is more, except
    /// with alternating runs
    #[arg(long, value_name = "PERCENT", default_value = "5", allow_hyphen_values = true)]
    drift: String,

    /// Exit with code 1 when a case is slower by more than PERCENT (beyond the noise), no longer
    /// converges or has another matrix [default: the threshold]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    fail_on_regression: Option<String>,

    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: ReportFormat,
}

pub(super) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let percent = |text: &str, flag: &str| {
        number(text, "0 to 1000 percent", |v| (0.0..=1000.0).contains(&v))
            .map_err(|e| e.in_file(flag))
    };
    let rule = Rule {
        threshold_percent: percent(&args.threshold, "--threshold")?,
        drift_percent: percent(&args.drift, "--drift")?,
        paired: args.run || args.paired,
    };
    let limit = args.fail_on_regression.as_deref().filter(|text| !text.is_empty());
    let limit = limit.map(|text| percent(text, "--fail-on-regression")).transpose()?;
    let mut by = join_axes(args)?;
    let names = [&args.old, &args.new].map(|path| path.display().to_string());
    let [old, new] = if args.run {
        let rounds = args.rounds.map_or(ROUNDS, usize::from);
        let sides = alternate::measure(&names, rounds, args.keep.as_deref())?;
        if args.by.is_none() && args.ignore.is_none() {
            by.retain(|axis| alike(axis, &sides));
        }
        sides
    } else {
        [output::records(&args.old)?, output::records(&args.new)?]
    };
    for (path, records) in [(&args.old, &old), (&args.new, &new)] {
        timed(path, records)?;
    }
    let comparison = compare::compare((&names[0], &old), (&names[1], &new), &by, &rule)?;
    output::tables(&comparison.report, args.format)?;
    let regressions = match limit {
        Some(percent) => comparison.regressions_beyond(percent),
        None => comparison.regressions,
    };
    let strict = args.fail_on_regression.is_some();
    if strict && comparison.others > 0 {
        let cases = plural(comparison.others, "case");
        say(&format!(
            "{cases} of another matrix or right-hand side: --fail-on-regression takes them for failed"
        ));
    }
    let fail = strict && regressions + comparison.others > 0;
    Ok(if fail { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Default number of rounds of two commands: the fewest that give an interval.
const ROUNDS: usize = 6;

/// Whether both sides have the same values of a setting. A setting in which two commands are meant to differ
/// does not identify cases.
fn alike(axis: &Axis, sides: &[Vec<Record>; 2]) -> bool {
    let [old, new] = sides.each_ref().map(|records| {
        records.iter().map(|r| (axis.text)(&r.case)).collect::<std::collections::BTreeSet<_>>()
    });
    old == new
}

fn join_axes(args: &CompareArgs) -> Result<Vec<&'static Axis>> {
    let parse = |flag: &str, list: &str| -> Result<Vec<&'static Axis>> {
        pieces(list)
            .and_then(|names| names.iter().map(|name| axis(name)).collect())
            .map_err(|e| e.in_file(flag))
    };
    match (&args.by, &args.ignore) {
        (Some(list), _) => parse("--by", list),
        (None, Some(list)) => {
            let ignored = parse("--ignore", list)?;
            Ok(AXES.iter().filter(|axis| !ignored.contains(axis)).collect())
        }
        (None, None) => Ok(AXES.iter().collect()),
    }
}

/// Rejects records of finished solves without a time: there is nothing to compare.
fn timed(path: &Path, records: &[Record]) -> Result<()> {
    let mut solved = records.iter().filter(|r| r.status.succeeded()).peekable();
    if solved.peek().is_some() && solved.all(|r| r.times.solve_s.is_none()) {
        let what = "no record has a value in the column `solve-s`: there is nothing to compare";
        return Err(Error::input(what)
            .in_file(path.display().to_string())
            .hint("`bilu-bench run -o FILE` writes the column; was it removed?"));
    }
    Ok(())
}
