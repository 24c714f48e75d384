//! Flags that `run` and `reproduce` share: the axes of a sweep, measuring, result files.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::case::Case;
use crate::config::file::repeated_remark;
use crate::config::measure::{MeasureOptions, SETTINGS};
use crate::config::{AXES, Sweep};
use crate::error::Result;
use crate::report::ReportFormat;
use crate::result::output::Existing;

/// The flags of the axes and of measuring, made from the same lists that the TOML keys are.
#[derive(Clone, Debug, Default)]
pub struct SweepFlags {
    /// Flag name and the words given to it.
    words: Vec<(&'static str, Vec<String>)>,
}

/// What the flags say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Axes that were given.
    pub sweep: Sweep,
    /// Measuring options that were given.
    pub measure: MeasureOptions,
    /// What was noticed.
    pub remarks: Vec<String>,
}

impl SweepFlags {
    /// Parses and checks the words. Errors name the flag.
    pub fn resolve(&self) -> Result<Overrides> {
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
        Ok(overrides)
    }
}

impl FromArgMatches for SweepFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = AXES.iter().map(|a| a.name).chain(SETTINGS.iter().map(|s| s.name));
        let words = names
            .filter_map(|name| {
                let given = matches.get_many::<String>(name)?;
                Some((name, given.cloned().collect()))
            })
            .collect();
        Ok(Self { words })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SweepFlags {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str, metavar: &'static str| {
            Arg::new(name).long(name).value_name(metavar).allow_hyphen_values(true)
        };
        let default = Case::default();
        let mut command = command.next_help_heading(
            "Sweep: one value or a list a,b; whole numbers also inclusive ranges 0..3",
        );
        for axis in AXES {
            let choices = (axis.choices)();
            let choices = if choices.is_empty() {
                String::new()
            } else {
                format!(": {}", choices.join(", "))
            };
            let help = format!("{}{choices} [default: {}]", axis.help, (axis.text)(&default));
            command =
                command.arg(flag(axis.name, axis.metavar).help(help).action(ArgAction::Append));
        }
        command = command.next_help_heading("Measuring");
        for setting in SETTINGS {
            command = command.arg(flag(setting.name, setting.metavar).help(setting.help));
        }
        command.next_help_heading(None::<&str>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Result files and the report at the end.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Result file, .csv, .jsonl, .json or .md; every finished case is in it at once (repeatable)
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,

    /// Keep the records in the result files and run only the cases that are missing
    #[arg(long, requires = "output", conflicts_with = "force")]
    resume: bool,

    /// Overwrite result files that exist
    #[arg(long, requires = "output")]
    force: bool,

    /// Form of the report on standard output
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub format: ReportFormat,

    /// No progress on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

impl OutputFlags {
    /// What to do with result files that exist.
    pub fn existing(&self) -> Existing {
        match (self.resume, self.force) {
            (true, _) => Existing::Resume,
            (_, true) => Existing::Overwrite,
            _ => Existing::Refuse,
        }
    }
}
