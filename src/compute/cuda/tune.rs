//! Kernels whose macros are chosen by measurement.
//!
//! A new one is an implementation of [`Tunable`] and a line in [`SUBJECTS`](super::SUBJECTS); where the kernel is made, it
//! asks `Device::tuning` for what was found.

use std::time::Instant;

use super::device::Device;
use crate::base::error::{Error, Result};
use crate::base::measure::median;
use crate::compute::tune::Choices;
use crate::compute::tune::descent::{Axis, Descent, Trial};

/// Samples of a trial, at least and, while there is time, at most.
const SAMPLES: (usize, usize) = (5, 15);
/// Seconds that a sample lasts at least, if that takes no more runs than [`MOST_RUNS`].
const SAMPLE_SECONDS: f64 = 0.5e-3;
const MOST_RUNS: f64 = 50.0;
/// Seconds after which a trial has no more samples.
const TRIAL_SECONDS: f64 = 0.05;

/// Work with a kernel whose macros can be chosen.
pub trait Tunable {
    /// What tuning knows the kernel by.
    fn key(&self) -> String;
    /// Scalar rows.
    fn rows(&self) -> usize;
    /// Bytes that one run moves at least.
    fn bytes(&self) -> usize;
    /// What may be chosen, the usual values first.
    fn axes(&self) -> Vec<Axis>;
    /// Takes `choices` from now on.
    ///
    /// # Errors
    /// When the kernel cannot be compiled or launched with them.
    fn choose(&mut self, d: &Device, choices: &Choices) -> Result<()>;
    /// Runs once, and fails when what comes out is not what it was with the usual choices.
    ///
    /// # Errors
    /// When it is not, or the run fails.
    fn check(&mut self, d: &Device) -> Result<()>;
    /// One run; asynchronous.
    ///
    /// # Errors
    /// When it cannot be launched.
    fn run(&mut self, d: &Device) -> Result<()>;
}

/// The usual choices.
pub(super) fn usual(axes: &[Axis]) -> Choices {
    axes.iter().map(|axis| (axis.name.to_owned(), axis.values[0])).collect()
}

/// Whether `choices` has a value for each axis, and no other.
pub(super) fn allowed(axes: &[Axis], choices: &Choices) -> bool {
    let has = |axis: &Axis| choices.get(axis.name).is_some_and(|v| axis.values.contains(v));
    choices.len() == axes.len() && axes.iter().all(has)
}

/// Goes on with the search for the fastest choices of `work`, while `go_on` says so.
///
/// # Errors
/// When the device fails, or nothing works.
pub fn search(
    d: &Device,
    work: &mut dyn Tunable,
    descent: &mut Descent,
    go_on: impl FnMut(&[Trial]) -> bool,
) -> Result<()> {
    let axes = work.axes();
    // of another version of the program
    descent.trials.retain(|trial| allowed(&axes, &trial.choices));
    let mut first_error: Option<Error> = None;
    let measure = |choices: &Choices| match seconds(d, work, choices) {
        Ok(seconds) => Some(seconds),
        Err(e) => {
            first_error.get_or_insert(e);
            None
        }
    };
    descent.search(&axes, measure, go_on);
    match (descent.best(), first_error) {
        (None, Some(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Median seconds of a run with `choices`.
fn seconds(d: &Device, work: &mut dyn Tunable, choices: &Choices) -> Result<f64> {
    work.choose(d, choices)?;
    work.check(d)?;
    let once = d.time(|| work.run(d))?;
    let runs = (SAMPLE_SECONDS / once).clamp(1.0, MOST_RUNS) as usize;
    let (least, most) = SAMPLES;
    let start = Instant::now();
    let mut samples = Vec::with_capacity(most);
    while samples.len() < least
        || (samples.len() < most && start.elapsed().as_secs_f64() < TRIAL_SECONDS)
    {
        let all = d.time(|| (0..runs).try_for_each(|_| work.run(d)))?;
        samples.push(all / runs as f64);
    }
    Ok(median(&samples).map_or(f64::NAN, |m| m.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_of_the_axes_are_taken() {
        let axes = [Axis { name: "A", values: vec![2, 4] }, Axis { name: "B", values: vec![0] }];
        let choices = |pairs: &[(&str, usize)]| -> Choices {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        assert_eq!(usual(&axes), choices(&[("A", 2), ("B", 0)]));
        assert!(allowed(&axes, &choices(&[("A", 4), ("B", 0)])));
        for wrong in [&[("A", 3), ("B", 0)][..], &[("A", 4)], &[("A", 4), ("B", 0), ("C", 1)]] {
            assert!(!allowed(&axes, &choices(wrong)));
        }
    }
}
