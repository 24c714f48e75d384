//! The settings of a case as flags and TOML keys, and the cross product of their values.

use super::BACKENDS;
use super::case::{Case, MAX_POINTS, MAX_SWEEPS_PER_PASS};
use crate::config::parse::{
    choice, choice_name, choices, count, number, number_text, pieces, registered,
};
use crate::error::{Error, Result};

/// Most cases of one experiment.
const MAX_CASES: usize = 10_000;

/// One setting.
pub struct Axis {
    /// Name of the flag (`--name`), the TOML key and the result column.
    pub name: &'static str,
    /// Placeholder of the value in the help text.
    pub metavar: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Accepted names, empty when the values are no fixed set.
    pub choices: fn() -> Vec<String>,
    /// The value in a case, as it would be written in a flag.
    pub text: fn(&Case) -> String,
    /// The values that a word stands for, each as a word of one.
    expand: fn(&str) -> Result<Vec<String>>,
    set: fn(&mut Case, &str) -> Result<()>,
}

/// Values of some settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Settings by their place in [`AXES`], each with its values.
    values: Vec<(usize, Vec<String>)>,
}

fn nothing() -> Vec<String> {
    Vec::new()
}

fn backends() -> Vec<String> {
    BACKENDS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn many(word: &str) -> Result<Vec<String>> {
    pieces(word)
}

/// Lists and ranges of whole numbers.
fn counts(word: &str) -> Result<Vec<String>> {
    let mut values = Vec::new();
    for piece in pieces(word)? {
        count(&piece, 0, usize::MAX, &mut values)?;
    }
    Ok(values.iter().map(ToString::to_string).collect())
}

fn whole(text: &str, min: usize, max: usize) -> Result<usize> {
    crate::config::parse::whole(text, min, max)
}

fn positive(text: &str) -> Result<f64> {
    number(text, "above 0", |v| v > 0.0)
}

/// Every setting, outermost loop first.
pub const AXES: &[Axis] = &[
    Axis {
        name: "m",
        metavar: "M",
        help: "Grid points in each direction",
        choices: nothing,
        text: |c| c.m.to_string(),
        expand: counts,
        set: |c, t| whole(t, 1, MAX_POINTS).map(|v| c.m = v),
    },
    Axis {
        name: "obstacle",
        metavar: "NAME",
        help: "Lower bound phi: zero, none, flat:V, hill:H",
        choices: nothing,
        text: |c| c.obstacle.clone(),
        expand: many,
        set: |c, t| super::Obstacle::parse(t).map(|_| t.clone_into(&mut c.obstacle)),
    },
    Axis {
        name: "convection",
        metavar: "B",
        help: "Convection b1:b2:b3, removed by the change of variables",
        choices: nothing,
        text: |c| c.convection.clone(),
        expand: many,
        set: |c, t| {
            t.clone_into(&mut c.convection);
            Ok(())
        },
    },
    Axis {
        name: "eta",
        metavar: "ETA",
        help: "Diffusion",
        choices: nothing,
        text: |c| number_text(c.eta),
        expand: many,
        set: |c, t| positive(t).map(|v| c.eta = v),
    },
    Axis {
        name: "c",
        metavar: "C",
        help: "Reaction",
        choices: nothing,
        text: |c| number_text(c.c),
        expand: many,
        set: |c, t| number(t, "0 or above", |v| v >= 0.0).map(|v| c.c = v),
    },
    Axis {
        name: "time-step",
        metavar: "K",
        help: "Length of a time step",
        choices: nothing,
        text: |c| number_text(c.time_step),
        expand: many,
        set: |c, t| positive(t).map(|v| c.time_step = v),
    },
    Axis {
        name: "steps",
        metavar: "N",
        help: "Time steps",
        choices: nothing,
        text: |c| c.steps.to_string(),
        expand: counts,
        set: |c, t| whole(t, 1, 1_000_000).map(|v| c.steps = v),
    },
    Axis {
        name: "method",
        metavar: "NAME",
        help: "How a sweep makes new values",
        choices: choices::<super::Method>,
        text: |c| choice_name(&c.method),
        expand: many,
        set: |c, t| choice("method", t).map(|v| c.method = v),
    },
    Axis {
        name: "stop",
        metavar: "NAME",
        help: "What ends a time step when it is below epsilon",
        choices: choices::<super::StopOn>,
        text: |c| choice_name(&c.stop),
        expand: many,
        set: |c, t| choice("criterion", t).map(|v| c.stop = v),
    },
    Axis {
        name: "epsilon",
        metavar: "EPS",
        help: "Bound of it",
        choices: nothing,
        text: |c| number_text(c.epsilon),
        expand: many,
        set: |c, t| number(t, "0 or above", |v| v >= 0.0).map(|v| c.epsilon = v),
    },
    Axis {
        name: "norm-split",
        metavar: "YxZ",
        help: "Parts in y and z over which the norm of a step is taken, the largest counts",
        choices: nothing,
        text: |c| c.norm_split.to_string(),
        expand: many,
        set: |c, t| t.parse().map(|v| c.norm_split = v),
    },
    Axis {
        name: "max-relaxations",
        metavar: "N",
        help: "Most sweeps of a node in a time step",
        choices: nothing,
        text: |c| c.max_relaxations.to_string(),
        expand: counts,
        set: |c, t| whole(t, 1, 1_000_000_000).map(|v| c.max_relaxations = v),
    },
    Axis {
        name: "backend",
        metavar: "NAME",
        help: "Where it runs",
        choices: backends,
        text: |c| c.backend.clone(),
        expand: many,
        set: |c, t| registered("backend", t, BACKENDS).map(|v| c.backend = v),
    },
    Axis {
        name: "split",
        metavar: "YxZ",
        help: "Nodes in y and z: threads, ranks or GPUs; auto for the backend's own",
        choices: nothing,
        text: |c| c.split.map_or_else(|| "auto".into(), |s| s.to_string()),
        expand: many,
        set: |c, t| {
            c.split = if t == "auto" { None } else { Some(t.parse()?) };
            Ok(())
        },
    },
    Axis {
        name: "sweeps-per-pass",
        metavar: "N",
        help: "Jacobi sweeps that one pass through the memory of a GPU makes",
        choices: nothing,
        text: |c| c.sweeps_per_pass.to_string(),
        expand: counts,
        set: |c, t| whole(t, 1, MAX_SWEEPS_PER_PASS).map(|v| c.sweeps_per_pass = v),
    },
    Axis {
        name: "check-every",
        metavar: "N",
        help: "Sweeps between looks at whether to stop",
        choices: nothing,
        text: |c| c.check_every.to_string(),
        expand: counts,
        set: |c, t| whole(t, 1, 1_000_000).map(|v| c.check_every = v),
    },
    Axis {
        name: "mode",
        metavar: "NAME",
        help: "With or without waiting for the neighbours",
        choices: choices::<super::Mode>,
        text: |c| choice_name(&c.mode),
        expand: many,
        set: |c, t| choice("mode", t).map(|v| c.mode = v),
    },
];

/// The setting called `name`.
///
/// # Errors
/// When there is none.
pub fn axis(name: &str) -> Result<usize> {
    AXES.iter().position(|a| a.name == name).ok_or_else(|| {
        let known: Vec<&str> = AXES.iter().map(|a| a.name).collect();
        Error::unknown("setting", name, &known)
    })
}

impl Sweep {
    /// Gives setting number `at` the values that `words` list, in place of those it had.
    ///
    /// # Errors
    /// When a word is no value of it.
    pub fn set(&mut self, at: usize, words: &[String]) -> Result<()> {
        let axis = &AXES[at];
        let mut values: Vec<String> = Vec::new();
        for word in words {
            for value in (axis.expand)(word)? {
                let mut case = Case::default();
                (axis.set)(&mut case, &value)?;
                let text = (axis.text)(&case);
                if !values.contains(&text) {
                    values.push(text);
                }
            }
        }
        if values.is_empty() {
            return Err(Error::input("empty list"));
        }
        self.values.retain(|(other, _)| *other != at);
        self.values.push((at, values));
        self.values.sort_by_key(|(at, _)| *at);
        Ok(())
    }

    /// Whether setting number `at` has values.
    pub fn is_given(&self, at: usize) -> bool {
        self.values.iter().any(|(other, _)| *other == at)
    }

    /// The settings that `flags` has in place of one's own.
    #[must_use]
    pub fn overridden_by(&self, flags: &Self) -> Self {
        let mut both = self.clone();
        both.values.retain(|(at, _)| !flags.is_given(*at));
        both.values.extend(flags.values.iter().cloned());
        both.values.sort_by_key(|(at, _)| *at);
        both
    }

    /// Every combination, the last settings of [`AXES`] innermost, each checked.
    ///
    /// # Errors
    /// Names the settings that cannot be together.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let total: usize = self.values.iter().map(|(_, v)| v.len()).product();
        if total > MAX_CASES {
            return Err(Error::input(format!("{total} cases: the limit is {MAX_CASES}")));
        }
        let mut cases = vec![Case::default()];
        for (at, values) in &self.values {
            let set = AXES[*at].set;
            let mut next = Vec::with_capacity(cases.len() * values.len());
            for case in &cases {
                for value in values {
                    let mut case = case.clone();
                    set(&mut case, value)?;
                    next.push(case);
                }
            }
            cases = next;
        }
        cases.iter().try_for_each(Case::check)?;
        Ok(cases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(settings: &[(&str, &str)]) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        for (name, words) in settings {
            sweep.set(axis(name)?, &[(*words).to_owned()])?;
        }
        Ok(sweep)
    }

    #[test]
    fn values_make_the_cross_product_and_flags_replace_them() {
        let own = sweep(&[("mode", "sync,async"), ("m", "8,16"), ("backend", "cpu-mt")]).unwrap();
        let of = |s: &Sweep| -> Vec<String> {
            let text = |c: &Case| format!("{} {:?} {}", c.m, c.mode, c.backend);
            s.cases().unwrap().iter().map(text).collect()
        };
        assert_eq!(
            of(&own),
            ["8 Sync cpu-mt", "8 Async cpu-mt", "16 Sync cpu-mt", "16 Async cpu-mt"]
        );
        let flags = sweep(&[("m", "4..5"), ("mode", "sync")]).unwrap();
        assert_eq!(of(&own.overridden_by(&flags)), ["4 Sync cpu-mt", "5 Sync cpu-mt"]);
    }

    #[test]
    fn every_setting_reads_what_it_writes() {
        let default = Case::default();
        for axis in AXES {
            let mut case = Case::default();
            (axis.set)(&mut case, &(axis.text)(&default)).unwrap();
            assert_eq!(case, default, "{}", axis.name);
        }
    }

    #[test]
    fn bad_words_say_what_is_wrong() {
        let message = |name, word| sweep(&[(name, word)]).unwrap_err().to_string();
        assert_eq!(message("m", "0"), "`0` is outside 1 to 4096");
        assert_eq!(message("methods", "jacobi"), "unknown setting `methods`");
        assert_eq!(message("method", "jacob"), "unknown method `jacob`");
        assert_eq!(message("norm-split", "3"), "`3` is no split");
        assert_eq!(message("epsilon", "-1"), "`-1` is outside the range: 0 or above");
        assert_eq!(
            message("obstacle", "flat:1"),
            "obstacle `flat:1` is above the boundary value 0"
        );
        assert_eq!(message("backend", "gpu"), "unknown backend `gpu`");
        assert_eq!(message("sweeps-per-pass", "9"), "`9` is outside 1 to 4");
    }
}
