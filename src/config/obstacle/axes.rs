//! The settings of a case as flags and TOML keys, and the cross product of their values.

use crate::base::error::{Error, Result};
use crate::base::parse::{choice, choice_name, choices, count, number, number_text, registered};
use crate::config::axes::{self, axes, one};
use crate::config::csv::positive;
use crate::obstacle::case::{Case, MAX_POINTS, MAX_SWEEPS_PER_PASS};
use crate::obstacle::problem::convection;
use crate::obstacle::{BACKENDS, Method, Mode, Obstacle, Split, StopOn, Transport};

/// Most cases of one experiment.
const MAX_CASES: usize = 10_000;

/// One setting of a case.
pub type Axis = axes::Axis<Case, Sweep>;

/// The setting called `name`.
///
/// # Errors
/// When there is none.
pub fn axis(name: &str) -> Result<&'static Axis> {
    axes::named(AXES, name)
}

axes! {
    Case, most MAX_CASES;
    m: usize, "m", "M",
        "Grid points in each direction",
        Vec::new, usize::to_string, |t, out| count(t, 1, MAX_POINTS, out);
    obstacle: String, "obstacle", "NAME",
        "Obstacle (lower bound phi): zero, none, flat:V, hill:H",
        Vec::new, String::clone, |t, out| one(Obstacle::parse(t).map(|_| t.to_owned()), out);
    convection: String, "convection", "B",
        "Convection b1:b2:b3, eliminated by a change of variables",
        Vec::new, String::clone, |t, out| one(convection(t).map(|_| t.to_owned()), out);
    eta: f64, "eta", "ETA",
        "Diffusion coefficient",
        Vec::new, |v: &f64| number_text(*v), |t, out| one(positive(t), out);
    c: f64, "c", "C",
        "Reaction coefficient",
        Vec::new, |v: &f64| number_text(*v), |t, out| one(number(t, "0 or above", |v| v >= 0.0), out);
    time_step: f64, "time-step", "K",
        "Length of a time step",
        Vec::new, |v: &f64| number_text(*v), |t, out| one(positive(t), out);
    steps: usize, "steps", "N",
        "Number of time steps",
        Vec::new, usize::to_string, |t, out| count(t, 1, 1_000_000, out);
    method: Method, "method", "NAME",
        "Relaxation method of a sweep",
        choices::<Method>, choice_name, |t, out| one(choice("method", t), out);
    stop: StopOn, "stop", "NAME",
        "Stopping criterion: a time step ends when this quantity is below epsilon",
        choices::<StopOn>, choice_name, |t, out| one(choice("criterion", t), out);
    epsilon: f64, "epsilon", "EPS",
        "Tolerance of the stopping criterion",
        Vec::new, |v: &f64| number_text(*v), |t, out| one(number(t, "0 or above", |v| v >= 0.0), out);
    norm_split: Split, "norm-split", "YxZ",
        "Subdomains in y and z over which the norm of an update is taken; the largest counts",
        Vec::new, Split::to_string, |t, out| one(t.parse(), out);
    max_relaxations: usize, "max-relaxations", "N",
        "Limit of sweeps per node and time step",
        Vec::new, usize::to_string, |t, out| count(t, 1, 1_000_000_000, out);
    backend: String, "backend", "NAME",
        "Backend that runs it",
        backends, String::clone, |t, out| one(registered("backend", t, BACKENDS), out);
    split: Option<Split>, "split", "YxZ",
        "Nodes in y and z: threads, ranks or GPUs; `auto` leaves the choice to the backend",
        Vec::new, split_text, split;
    transport: Transport, "transport", "NAME",
        "Halo exchange between ranks with a GPU each: direct stores into the neighbour's memory where possible, or messages",
        choices::<Transport>, choice_name, |t, out| one(choice("transport", t), out);
    sweeps_per_pass: usize, "sweeps-per-pass", "N",
        "Jacobi sweeps fused into one pass over the memory of a GPU",
        Vec::new, usize::to_string, |t, out| count(t, 1, MAX_SWEEPS_PER_PASS, out);
    check_every: usize, "check-every", "N",
        "Sweeps between tests of the stopping criterion",
        Vec::new, usize::to_string, |t, out| count(t, 1, 1_000_000, out);
    mode: Mode, "mode", "NAME",
        "Synchronous, or asynchronous: sweeps do not wait for the neighbours",
        choices::<Mode>, choice_name, |t, out| one(choice("mode", t), out);
}

fn backends() -> Vec<String> {
    BACKENDS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn split(text: &str, out: &mut Vec<Option<Split>>) -> Result<()> {
    one(if text == "auto" { Ok(None) } else { text.parse().map(Some) }, out)
}

#[expect(clippy::ref_option, reason = "the field of a case as it is")]
fn split_text(split: &Option<Split>) -> String {
    split.map_or_else(|| "auto".into(), |s| s.to_string())
}

impl Sweep {
    /// Every combination, the last settings of [`AXES`] innermost, each checked.
    ///
    /// # Errors
    /// Names the settings that cannot be together.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let cases = self.product()?;
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
            axis(name)?.set(&mut sweep, &[(*words).to_owned()])?;
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
            let mut sweep = Sweep::default();
            axis.set(&mut sweep, &[(axis.text)(&default)]).unwrap();
            assert!(axis.is_given(&sweep), "{}", axis.name);
            assert_eq!(sweep.cases().unwrap(), std::slice::from_ref(&default), "{}", axis.name);
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
