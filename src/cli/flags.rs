//! Flags shared by `run` and `reproduce`: axes of a sweep, measurement, result files.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::base::error::{Error, Result};
use crate::bench::engine::isolated::Isolation;
use crate::bench::process::kill_counters;
use crate::cli::complete;
use crate::compute::distributed::launch;
use crate::config::axes::Axis;
use crate::config::measure::{MeasureOptions, SETTINGS};
use crate::config::peer;
use crate::config::source::repeated_remark;
use crate::config::sweep::axis;
use crate::config::{AXES, Sweep};
use crate::methods::registry::Names;
use crate::record::output::Existing;
use crate::report::ReportFormat;
use crate::report::columns::Columns;

/// The flags of the axes and of the measurement, generated from the same lists as the TOML keys.
#[derive(Clone, Debug, Default)]
pub(super) struct SweepFlags {
    /// Flag name and the words given to it.
    words: Vec<(&'static str, Vec<String>)>,
    /// Words `SETTING=VALUES`.
    only: Vec<String>,
}

/// The values of the flags.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Overrides {
    /// Axes that were given.
    pub sweep: Sweep,
    /// Values that cases must have to be run.
    pub only: Sweep,
    /// Measuring options that were given.
    pub measure: MeasureOptions,
    /// Remarks about them.
    pub remarks: Vec<String>,
}

impl SweepFlags {
    /// Parses and checks the words. Errors name the flag.
    pub(super) fn resolve(&self) -> Result<Overrides> {
        let mut overrides = Overrides::default();
        for (name, words) in &self.words {
            let place = format!("--{name}");
            if let Some(axis) = AXES.iter().find(|a| a.name == *name) {
                let repeated =
                    axis.set(&mut overrides.sweep, words).map_err(|e| e.in_file(&place))?;
                overrides.remarks.extend(repeated_remark(&place, &repeated));
            }
            for setting in SETTINGS.iter().filter(|s| s.name == *name) {
                for word in words {
                    setting.set(&mut overrides.measure, word).map_err(|e| e.in_file(&place))?;
                }
            }
        }
        overrides.measure.resolve()?;
        overrides.only = settings(&self.only).map_err(|e| e.in_file("--only"))?;
        Ok(overrides)
    }
}

/// Parses words `SETTING=VALUES`.
///
/// # Errors
/// When a word has another form, or a setting or a value is unknown.
pub(super) fn settings(words: &[String]) -> Result<Sweep> {
    let mut sweep = Sweep::default();
    for word in words {
        let (name, values) = word
            .split_once('=')
            .ok_or_else(|| Error::input(format!("`{word}` is not SETTING=VALUES")))?;
        axis(name)?.set(&mut sweep, &[values.to_owned()])?;
    }
    Ok(sweep)
}

impl FromArgMatches for SweepFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = AXES.iter().map(|a| a.name).chain(SETTINGS.iter().map(|s| s.name));
        let only = matches.get_many::<String>("only").unwrap_or_default().cloned().collect();
        Ok(Self { words: words(matches, names), only })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(name: &'static str, metavar: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(metavar).allow_hyphen_values(true)
}

/// The words given to each of the flags `names`, where there are some.
pub(super) fn words(
    matches: &ArgMatches,
    names: impl Iterator<Item = &'static str>,
) -> Vec<(&'static str, Vec<String>)> {
    let given = |name| Some((name, matches.get_many::<String>(name)?.cloned().collect()));
    names.filter_map(given).collect()
}

/// Adds a flag for each axis.
pub(super) fn axis_flags<C: Default, S>(command: Command, axes: &'static [Axis<C, S>]) -> Command {
    let default = C::default();
    let mut command = command.next_help_heading(
        "Sweep: a value or a list a,b; whole numbers also as inclusive ranges 0..3",
    );
    for axis in axes {
        let choices = match (axis.choices)().as_slice() {
            [] => String::new(),
            names => format!(": {}", names.join(", ")),
        };
        let help = format!("{}{choices} [default: {}]", axis.help, (axis.text)(&default));
        let flag = flag(axis.name, axis.metavar).help(help).action(ArgAction::Append);
        command = command.arg(flag.add(complete::values(axis)));
    }
    command.next_help_heading(None::<&str>)
}

impl Args for SweepFlags {
    fn augment_args(command: Command) -> Command {
        let only = flag("only", "SETTING=VALUES").add(complete::assignment());
        let only = only.action(ArgAction::Append).help(
            "Run only the cases with these values, such as `backend=cuda` or `fill=0..1` (repeatable)",
        );
        let mut command = axis_flags(command, AXES).arg(only).next_help_heading("Measuring");
        for setting in SETTINGS {
            command = command.arg(flag(setting.name, setting.metavar).help(setting.help));
        }
        command.next_help_heading(None::<&str>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Isolation of cases in separate processes.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Isolation")]
pub(super) struct IsolationFlags {
    /// Run every case in a separate process, which reads the matrix again: a crash or a lack of memory
    /// costs one record
    #[arg(long)]
    isolate: bool,

    /// Time limit of a case in seconds, setup included; implies --isolate, but on several ranks, where it
    /// records the case and ends the job
    #[arg(long, value_name = "SECONDS", value_parser = limit, allow_negative_numbers = true)]
    case_limit: Option<f64>,

    /// The only round to run, for a case in a separate process
    #[arg(long, hide = true)]
    pub round: Option<usize>,
}

/// Parses a limit of time, in seconds.
pub(super) fn limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e7 => Ok(seconds),
        _ => Err("above 0 and at most 1e7 seconds".into()),
    }
}

impl IsolationFlags {
    /// Whether cases run in separate processes.
    pub(super) fn isolates(self) -> bool {
        self.isolate || (self.case_limit.is_some() && launch::ranks() == 1)
    }

    /// The time limit of a case on several ranks.
    pub(super) fn limit_over_ranks(self) -> Option<f64> {
        self.case_limit.filter(|_| launch::ranks() > 1)
    }

    /// How cases are isolated, where they are.
    pub(super) fn isolation(self, measure: &MeasureOptions) -> Result<Option<Isolation>> {
        if !self.isolates() {
            return Ok(None);
        }
        let program = std::env::current_exe()
            .map_err(|e| Error::run(format!("cannot find this program: {e}")))?;
        let flags = measure.flags();
        Ok(Some(Isolation { program, flags, limit_s: self.case_limit, counters: kill_counters() }))
    }
}

/// Where peers are described.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct PeerFlags {
    /// Folder with descriptions of peers (`NAME.toml`), searched first, for backends `external:NAME`
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
}

impl PeerFlags {
    /// Searches the folder from now on.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn apply(&self) -> Result<()> {
        self.peers.as_deref().map_or(Ok(()), peer::give_folder)
    }
}

/// Result files and the report at the end.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
#[command(group(clap::ArgGroup::new("files").multiple(true)))]
pub(super) struct OutputFlags {
    /// Result file, .csv, .jsonl, .json or .md; every finished case is written at once (repeatable).
    /// `reproduce` also takes a folder: records, tables and figures, named as in the paper
    #[arg(short, long, value_name = "FILE", group = "files")]
    pub output: Vec<PathBuf>,

    /// File for the solution x of the last solve, `.npy` (`NumPy`) or `.mtx` (Matrix Market). Several cases need
    /// a pattern of settings, or of the number of the case: `x-{precond}-k{fill}.npy`, `x-{case}.npy`
    #[arg(long, value_name = "FILE", group = "files")]
    pub solution: Option<PathBuf>,

    /// Keep the records in the result files and run only the missing cases
    #[arg(long, requires = "output", conflicts_with = "force")]
    resume: bool,

    /// Overwrite existing files; a result file is kept until the first new record is complete
    #[arg(long, requires = "files")]
    force: bool,

    /// Format of the report on standard output
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub format: ReportFormat,

    /// Columns of the table, by their heads or by the names of `list columns`; `all` ignores the width of
    /// the terminal [default: those that fit]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, add = complete::list_of(complete::columns))]
    pub columns: Option<String>,

    /// No progress on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Hint about the columns that do not fit.
pub(super) const ALL: &str = "`--columns all` shows them";

impl OutputFlags {
    /// The columns of the table; known names are `heads` and the record columns `columns`.
    ///
    /// # Errors
    /// At the first unknown name.
    pub(super) fn columns(&self, heads: &[String], columns: Names) -> Result<Columns> {
        let Some(text) = &self.columns else { return Ok(Columns::Fit) };
        let records = columns.iter().map(|(name, _)| *name);
        let known: Vec<&str> = heads.iter().map(String::as_str).chain(records).collect();
        Columns::parse(text, &known).map_err(|e| e.in_file("--columns"))
    }

    /// What to do with result files that exist.
    pub(super) fn existing(&self) -> Existing {
        match (self.resume, self.force) {
            (true, _) => Existing::Resume,
            (_, true) => Existing::Overwrite,
            _ => Existing::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::config::file::parse;
    use crate::config::source::Source;

    fn flags(arguments: &[String]) -> Overrides {
        let command = SweepFlags::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).unwrap();
        SweepFlags::from_arg_matches(&matches).unwrap().resolve().unwrap()
    }

    /// Up to three words that the axis accepts; for whole numbers also a range.
    fn words(axis: &'static crate::config::Axis) -> BoxedStrategy<Vec<String>> {
        let mut choices = (axis.choices)();
        if axis.name == "ordering" {
            choices.retain(|name| name.parse::<crate::case::Ordering>().is_ok());
        }
        if !choices.is_empty() {
            return prop::collection::vec(prop::sample::select(choices), 1..3).boxed();
        }
        match axis.name {
            "matrix" => prop::collection::vec("poisson3d:[1-9](,p=[1-9]){0,2}", 1..3).boxed(),
            "sequence" => prop::collection::vec("reservoir:[1-9],steps=[1-9]", 1..3).boxed(),
            "refactor" => prop::collection::vec("always|every:[1-9]|adaptive:[1-9]", 1..3).boxed(),
            "rhs" => prop::collection::vec("ones|a-ones|random:[1-9](\\*[2-9])?|own", 1..3).boxed(),
            "deflation" => {
                let form =
                    "none|levelset|(levelset-)?subdomain:[1-9](x[1-9]x[1-9])?|subdomains(:[1-9])?";
                prop::collection::vec(form, 1..3).boxed()
            }
            "schwarz" => {
                prop::collection::vec("jacobi|ras:[1-9]|exact(:interface|:natural)?", 1..3).boxed()
            }
            "shift" | "drop-tolerance" | "inner-rtol" | "rtol" | "symmetry-tolerance" => {
                prop::collection::vec("1e-[1-9]|0\\.0[1-9]", 1..3).boxed()
            }
            _ => prop::collection::vec("[1-9]|[1-4]\\.\\.[5-9]", 1..3).boxed(),
        }
    }

    /// For every axis nothing or words.
    fn sweep() -> impl Strategy<Value = Vec<(&'static str, Vec<String>)>> {
        let axes: Vec<_> = AXES
            .iter()
            .map(|axis| prop::option::weighted(0.2, words(axis)).prop_map(|w| (axis.name, w)))
            .collect();
        let given = |all: Vec<(&'static str, Option<Vec<String>>)>| {
            let mut all: Vec<_> =
                all.into_iter().filter_map(|(name, w)| Some((name, w?))).collect();
            // what no sequence has
            if all.iter().any(|(name, _)| ["matrix", "kind", "backend"].contains(name)) {
                all.retain(|(name, _)| *name != "sequence");
            }
            // products alone have one vector
            if all.iter().any(|(name, words)| *name == "rhs" && words.concat().contains('*')) {
                all.retain(|(name, _)| *name != "kind");
            }
            all
        };
        axes.prop_map(given)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn flags_and_toml_make_the_same_cases(sweep in sweep(), repeat in any::<bool>()) {
            // a sweep of more cases is refused
            let values = |word: &String| match word.split_once("..") {
                Some((a, b)) => b.parse::<usize>().unwrap() - a.parse::<usize>().unwrap() + 1,
                None => 1,
            };
            let of_axis = |(_, words): &(_, Vec<String>)| words.iter().map(values).sum::<usize>();
            prop_assume!(sweep.iter().map(of_axis).product::<usize>() <= 100_000);
            let mut arguments = Vec::new();
            let mut toml = String::from("[[sweep]]\n");
            for (name, words) in &sweep {
                if repeat {
                    arguments.extend(words.iter().map(|word| format!("--{name}={word}")));
                } else {
                    arguments.extend([format!("--{name}"), words.join(",")]);
                }
                writeln!(toml, "{name} = {words:?}").unwrap();
            }
            let source = Source {
                name: "x.toml",
                text: &toml,
                folder: None,
                beside: &|_| unreachable!("no file is named"),
            };
            let from_file = parse(&source).unwrap();
            let from_flags = flags(&arguments);
            prop_assert_eq!(&from_file.sweeps[0], &from_flags.sweep);
            let cases = from_flags.sweep.cases().unwrap();
            prop_assert_eq!(from_file.cases().unwrap(), (cases, 0));
        }
    }

    #[test]
    fn measuring_options_are_the_same_too() {
        let given = ["--min-repetitions=3", "--time-limit=2.5", "--fill=1,1"];
        let overrides = flags(&given.map(str::to_owned));
        let text = "[measure]\nmin-repetitions = 3\ntime-limit = 2.5\n[[sweep]]\n";
        let beside = |_: &str| unreachable!("no file is named");
        let file = parse(&Source { name: "x.toml", text, folder: None, beside: &beside }).unwrap();
        assert_eq!(overrides.measure, file.measure);
        assert_eq!(overrides.remarks, ["--fill: 1 given more than once, kept once"]);
    }
}
