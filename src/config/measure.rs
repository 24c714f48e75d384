//! Measuring options: how often and how long a solve is timed.

use crate::config::parse::{number, whole};
use crate::error::{Error, Result};
use crate::run::Measure;

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

/// Measuring options as far as they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasureOptions {
    min_repetitions: Option<usize>,
    max_repetitions: Option<usize>,
    time_budget_s: Option<f64>,
    time_limit_s: Option<f64>,
    repeat_values: Option<usize>,
    history: Option<usize>,
}

/// Most repetitions of one solve.
const MAX_REPETITIONS: usize = 100_000;

/// Most iterations whose residuals are kept.
const MAX_HISTORY: usize = 10_000;

/// Every measuring option.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "min-repetitions",
        metavar: "N",
        help: "Fewest timed solves per case [default: 1]",
        set: |o, t| whole(t, 1, MAX_REPETITIONS).map(|v| o.min_repetitions = Some(v)),
    },
    Setting {
        name: "max-repetitions",
        metavar: "N",
        help: "Most timed solves per case [default: 10]",
        set: |o, t| whole(t, 1, MAX_REPETITIONS).map(|v| o.max_repetitions = Some(v)),
    },
    Setting {
        name: "time-budget",
        metavar: "SECONDS",
        help: "No further repetition after this many seconds of timed solves [default: 5]",
        set: |o, t| seconds(t).map(|v| o.time_budget_s = Some(v)),
    },
    Setting {
        name: "time-limit",
        metavar: "SECONDS",
        help: "A single solve is stopped after this many seconds [default: none]",
        set: |o, t| seconds(t).map(|v| o.time_limit_s = Some(v)),
    },
    Setting {
        name: "repeat-values",
        metavar: "N",
        help: "Numeric phases timed after the solves, each on new values of the same pattern [default: 0]",
        set: |o, t| whole(t, 0, MAX_REPETITIONS).map(|v| o.repeat_values = Some(v)),
    },
    Setting {
        name: "history",
        metavar: "N",
        help: "Residuals kept per case: the initial one and those of the first N iterations [default: 0, none]",
        set: |o, t| whole(t, 0, MAX_HISTORY).map(|v| o.history = Some(v)),
    },
];

fn seconds(text: &str) -> Result<f64> {
    number(text, "above 0 and at most 1e7 seconds", |v| v > 0.0 && v <= 1e7)
}

impl MeasureOptions {
    /// The options given in `other` replace those of `self`.
    #[must_use]
    pub fn overridden_by(&self, other: &Self) -> Self {
        Self {
            min_repetitions: other.min_repetitions.or(self.min_repetitions),
            max_repetitions: other.max_repetitions.or(self.max_repetitions),
            time_budget_s: other.time_budget_s.or(self.time_budget_s),
            time_limit_s: other.time_limit_s.or(self.time_limit_s),
            repeat_values: other.repeat_values.or(self.repeat_values),
            history: other.history.or(self.history),
        }
    }

    /// Fills in the defaults. A limit that was not given yields to the one that was.
    pub fn resolve(&self) -> Result<Measure> {
        let default = Measure::default();
        let (min, max) = match (self.min_repetitions, self.max_repetitions) {
            (Some(min), Some(max)) if min > max => {
                return Err(Error::input(format!(
                    "min-repetitions {min} is more than max-repetitions {max}"
                )));
            }
            (Some(min), Some(max)) => (min, max),
            (Some(min), None) => (min, default.max_repetitions.max(min)),
            (None, Some(max)) => (default.min_repetitions.min(max), max),
            (None, None) => (default.min_repetitions, default.max_repetitions),
        };
        Ok(Measure {
            min_repetitions: min,
            max_repetitions: max,
            time_budget_s: self.time_budget_s.unwrap_or(default.time_budget_s),
            time_limit_s: self.time_limit_s.or(default.time_limit_s),
            repeat_values: self.repeat_values.unwrap_or(default.repeat_values),
            history: self.history.unwrap_or(default.history),
            once: default.once,
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
        assert_eq!((m.min_repetitions, m.max_repetitions), (20, 20));
        let m = given(&[("max-repetitions", "3"), ("time-limit", "0.5")]).unwrap();
        assert_eq!((m.min_repetitions, m.max_repetitions, m.time_limit_s), (1, 3, Some(0.5)));
        assert_eq!(m.repeat_values, 0);
        assert_eq!(given(&[("repeat-values", "4")]).unwrap().repeat_values, 4);
        assert_eq!((m.history, given(&[("history", "20")]).unwrap().history), (0, 20));
    }

    #[test]
    fn contradictions_and_bad_values_are_refused() {
        let message = |pairs: &[_]| given(pairs).unwrap_err().to_string();
        assert_eq!(
            message(&[("min-repetitions", "5"), ("max-repetitions", "2")]),
            "min-repetitions 5 is more than max-repetitions 2"
        );
        assert_eq!(message(&[("min-repetitions", "0")]), "`0` is outside 1 to 100000");
        assert_eq!(
            message(&[("time-budget", "-1")]),
            "`-1` is outside the range: above 0 and at most 1e7 seconds"
        );
    }
}
