//! `compare`: two result files side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::output;
use crate::config::parse::{number, pieces};
use crate::config::sweep::{AXES, Axis, axis};
use crate::engine::progress::say;
use crate::error::{Error, Result};
use crate::report::{ReportFormat, compare};
use crate::result::Record;
use crate::result::read;

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The verdict comes from the 95 % confidence intervals of both medians: \
                        `slower` and `faster` only when the whole interval of the ratio lies \
                        beyond the threshold, `same` when it lies within, else `unclear`. The line \
                        `overall` judges the geometric mean of all cases in the same way. \
                        docs/compare.md has the formulas.")]
pub struct CompareArgs {
    /// Result file of before
    old: PathBuf,
    /// Result file of after
    new: PathBuf,

    /// Settings that make two records the same case, such as matrix,block-size,fill
    /// [default: all]
    #[arg(long, value_name = "SETTINGS", conflicts_with = "ignore")]
    by: Option<String>,

    /// Settings that may differ between the files, such as backend
    #[arg(long, value_name = "SETTINGS")]
    ignore: Option<String>,

    /// Changes up to this many percent are none
    #[arg(long, value_name = "PERCENT", default_value = "5", allow_hyphen_values = true)]
    threshold: String,

    /// Exit with 1 when a case became slower by more than PERCENT, beyond the noise, or no longer
    /// converges [default: the threshold]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    fail_on_regression: Option<String>,

    /// Form of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: ReportFormat,
}

/// Prints the comparison.
pub fn run(args: &CompareArgs) -> Result<ExitCode> {
    let threshold = number(&args.threshold, "0 to 1000 percent", |v| (0.0..=1000.0).contains(&v))
        .map_err(|e| e.in_file("--threshold"))?;
    let limit = args.fail_on_regression.as_deref().filter(|text| !text.is_empty());
    let limit = limit
        .map(|text| number(text, "0 to 1000 percent", |v| (0.0..=1000.0).contains(&v)))
        .transpose()
        .map_err(|e| e.in_file("--fail-on-regression"))?;
    let by = join_axes(args)?;
    let (old, new) = (records(&args.old)?, records(&args.new)?);
    for (path, records) in [(&args.old, &old), (&args.new, &new)] {
        timed(path, records)?;
    }
    let names = (args.old.display().to_string(), args.new.display().to_string());
    let comparison = compare::compare((&names.0, &old), (&names.1, &new), &by, threshold)?;
    output::print(&args.format.render(&comparison.report)?)?;
    let regressions = match limit {
        Some(percent) => comparison.regressions_beyond(percent),
        None => comparison.regressions,
    };
    let fail = args.fail_on_regression.is_some() && regressions > 0;
    Ok(if fail { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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

/// Refuses records that were solved and have no time: there is nothing to compare.
fn timed(path: &Path, records: &[Record]) -> Result<()> {
    let mut solved = records.iter().filter(|r| r.status.succeeded()).peekable();
    if solved.peek().is_some() && solved.all(|r| r.times.solve_s.is_none()) {
        let what = "no record has a value in the column `solve-s`: there is nothing to compare";
        return Err(Error::input(what)
            .in_file(&path.display().to_string())
            .hint("`bilu-bench run -o FILE` writes the column; was it removed?"));
    }
    Ok(())
}

/// The records of a result file; says when its last one is cut off.
pub(super) fn records(path: &Path) -> Result<Vec<Record>> {
    let contents = read::read(path)?;
    if contents.cut_off {
        say(&format!("note: {}: the last record is cut off and left out", path.display()));
    }
    Ok(contents.records)
}
