//! Measuring options: how often and how long a solve is timed.

use crate::base::error::{Error, Result};
use crate::base::parse::{number, whole};
use crate::config::sampling::Measure;

/// One measuring option, a flag and a key of `[measure]`.
pub struct Setting {
    /// Name of the flag and the key.
    pub name: &'static str,
    /// Placeholder of the value in the help text.
    pub metavar: &'static str,
    /// What it means, with the default.
    pub help: &'static str,
    set: fn(&mut MeasureOptions, &str) -> Result<()>,
}

impl Setting {
    /// Sets this option to the value that `text` writes.
    pub fn set(&self, options: &mut MeasureOptions, text: &str) -> Result<()> {
        (self.set)(options, text)
    }
}

/// Most repetitions of one solve.
const MAX_REPETITIONS: usize = 100_000;

/// Most rounds over all cases.
const MAX_ROUNDS: usize = 1000;

/// Most iterations whose residuals are kept.
const MAX_HISTORY: usize = 10_000;

fn seconds(text: &str) -> Result<f64> {
    number(text, "above 0 and at most 1e7 seconds", |v| v > 0.0 && v <= 1e7)
}

/// Declares [`MeasureOptions`], a value for each option, and [`SETTINGS`].
macro_rules! options {
    ($($field:ident: $type:ty, $name:literal, $metavar:literal, $parse:expr, $help:literal;)*) => {
        /// Measuring options as far as they were given.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct MeasureOptions {
            $($field: Option<$type>,)*
        }

        /// Every measuring option.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: $name,
            metavar: $metavar,
            help: $help,
            set: |options, text| ($parse)(text).map(|value| options.$field = Some(value)),
        }),*];

        impl MeasureOptions {
            /// The options given in `other` replace those of `self`.
            #[must_use]
            pub(crate) fn overridden_by(&self, other: &Self) -> Self {
                Self { $($field: other.$field.or(self.$field),)* }
            }

            /// The flags that give these options.
            pub fn flags(&self) -> Vec<String> {
                let flags = [$(self.$field.map(|value| format!("--{}={value}", $name))),*];
                flags.into_iter().flatten().collect()
            }
        }
    };
}

options! {
    min_repetitions: usize, "min-repetitions", "N", |t| whole(t, 1, MAX_REPETITIONS),
        "Least number of timed solves per case, even beyond the time budget [default: 6 solves and 100 ms, \
         within the budget]";
    max_repetitions: usize, "max-repetitions", "N", |t| whole(t, 1, MAX_REPETITIONS),
        "Largest number of timed solves per case, and of samples of setup, product and other operations \
         [default: 10 solves, or as many as fit in 100 ms, up to 1000]";
    time_budget_s: f64, "time-budget", "SECONDS", seconds,
        "No further repetition once timed solves, or setups, have taken this many seconds [default: 5]";
    time_limit_s: f64, "time-limit", "SECONDS", seconds,
        "A single solve is stopped after this many seconds [default: none]";
    repeat_values: usize, "repeat-values", "N", |t| whole(t, 0, MAX_REPETITIONS),
        "Number of numeric phases timed after the solves, each with new values on the same pattern [default: 0]";
    history: usize, "history", "N", |t| whole(t, 0, MAX_HISTORY),
        "Residuals recorded per case: the initial one and those of the first N iterations [default: 0, none]";
    rounds: usize, "rounds", "N", |t| whole(t, 1, MAX_ROUNDS),
        "Rounds over all cases, each with its share of the samples, so that slow drift of the machine affects \
         all cases alike; one row per case and round [default: 1]";
}

impl MeasureOptions {
    /// Fills in the defaults. A limit that was not given yields to the one that was.
    pub fn resolve(&self) -> Result<Measure> {
        let default = Measure::default();
        if let (Some(min), Some(max)) = (self.min_repetitions, self.max_repetitions)
            && min > max
        {
            return Err(Error::input(format!(
                "min-repetitions {min} is more than max-repetitions {max}"
            )));
        }
        let min = self.min_repetitions.unwrap_or(default.min_repetitions);
        let max = self.max_repetitions.unwrap_or(default.max_repetitions.max(min));
        Ok(Measure {
            min_repetitions: min,
            // whoever asks for fewer solves wants no more of the rest
            samples: default.samples.min(self.min_repetitions.unwrap_or(default.samples)).min(max),
            min_time_s: default.min_time_s,
            enough: self.max_repetitions.unwrap_or(default.enough.max(min)),
            max_repetitions: max,
            rounds: self.rounds.unwrap_or(default.rounds),
            time_budget_s: self.time_budget_s.unwrap_or(default.time_budget_s),
            time_limit_s: self.time_limit_s.or(default.time_limit_s),
            repeat_values: self.repeat_values.unwrap_or(default.repeat_values),
            history: self.history.unwrap_or(default.history),
            once: default.once,
            case_limit_s: None,
            round: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Result<Measure> {
        let mut options = MeasureOptions::default();
        for (name, text) in pairs {
            let option = SETTINGS.iter().find(|o| o.name == *name).expect("a known option");
            option.set(&mut options, text)?;
        }
        options.resolve()
    }

    #[test]
    fn the_limit_that_is_not_given_yields() {
        let m = given(&[("min-repetitions", "20")]).unwrap();
        assert_eq!((m.min_repetitions, m.samples, m.enough, m.max_repetitions), (20, 6, 20, 1000));
        let m = given(&[("min-repetitions", "2000")]).unwrap();
        assert_eq!((m.min_repetitions, m.enough, m.max_repetitions), (2000, 2000, 2000));
        let m = given(&[("min-repetitions", "1")]).unwrap();
        assert_eq!((m.min_repetitions, m.samples, m.enough), (1, 1, 10));
        let m = given(&[("max-repetitions", "3"), ("time-limit", "0.5")]).unwrap();
        assert_eq!((m.samples, m.enough, m.max_repetitions), (3, 3, 3));
        assert_eq!((m.min_repetitions, m.time_limit_s, m.rounds), (1, Some(0.5), 1));
        assert_eq!(given(&[]).unwrap(), Measure::default());
        assert_eq!(given(&[("rounds", "5")]).unwrap().rounds, 5);
        assert_eq!(m.repeat_values, 0);
        assert_eq!(given(&[("repeat-values", "4")]).unwrap().repeat_values, 4);
        assert_eq!((m.history, given(&[("history", "20")]).unwrap().history), (0, 20));
    }

    #[test]
    fn flags_give_the_options_back() {
        let words = [
            ("min-repetitions", "2"),
            ("max-repetitions", "3"),
            ("time-budget", "0.25"),
            ("time-limit", "1e3"),
            ("repeat-values", "4"),
            ("history", "5"),
            ("rounds", "6"),
        ];
        // every setting is among them
        assert_eq!(words.map(|w| w.0)[..], SETTINGS.iter().map(|s| s.name).collect::<Vec<_>>());
        let mut options = MeasureOptions::default();
        assert_eq!(options.flags(), Vec::<String>::new());
        let mut again = options.clone();
        for (setting, (_, text)) in SETTINGS.iter().zip(words) {
            setting.set(&mut options, text).unwrap();
        }
        for flag in options.flags() {
            let (name, text) = flag.trim_start_matches("--").split_once('=').unwrap();
            let setting = SETTINGS.iter().find(|s| s.name == name).unwrap();
            setting.set(&mut again, text).unwrap();
        }
        assert_eq!(again, options);
    }

    #[test]
    fn contradictions_and_bad_values_are_refused() {
        let message = |pairs: &[_]| given(pairs).unwrap_err().to_string();
        assert_eq!(
            message(&[("min-repetitions", "5"), ("max-repetitions", "2")]),
            "min-repetitions 5 is more than max-repetitions 2"
        );
        assert_eq!(message(&[("min-repetitions", "0")]), "`0` is outside 1 to 100000");
        assert_eq!(message(&[("rounds", "0")]), "`0` is outside 1 to 1000");
        assert_eq!(
            message(&[("time-budget", "-1")]),
            "`-1` is outside the range: above 0 and at most 1e7 seconds"
        );
    }
}
