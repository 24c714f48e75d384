//! How fast the machine was while a case was solved.

use std::time::Instant;

use crate::base::measure::{now, reference_seconds, seconds_since, waits};
use crate::compute::Operations;

/// The largest share of its time that a thread counts as having waited: readings of the system are not of one
/// moment.
const MOST: f64 = 0.99;

/// What is known before the first solve.
pub(super) struct Speed {
    reference: Option<f64>,
    start: Instant,
    waits: Option<Vec<f64>>,
}

impl Speed {
    /// Before the first solve; `None` where solves are not on the cores of this host. Collective.
    pub(super) fn before<K: Operations>(k: &K) -> Option<Self> {
        k.on_cores().then(|| {
            let reference = k.on_host(reference_seconds);
            Self { reference, start: now(), waits: k.on_host(waits) }
        })
    }

    /// Seconds of the reference computation, before the first solve and after the last, divided by the share of
    /// their time that the threads had processors in between; of the slowest rank. `None` without memory for it.
    /// Collective.
    pub(super) fn reference_s<K: Operations>(self, k: &K) -> Option<f64> {
        let waits = k.on_host(waits);
        let seconds = seconds_since(self.start);
        let waited = self.waits.zip(waits).map_or(0.0, |(from, to)| longest(&from, &to));
        let both = self.reference.zip(k.on_host(reference_seconds));
        let own = both.map(|(before, after)| as_long(0.5 * (before + after), waited / seconds));
        Some(k.of_all(own.unwrap_or(0.0))).filter(|s| *s > 0.0)
    }
}

/// The longest of the waits of some threads, in seconds.
fn longest(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(from, to)| to - from).fold(0.0, f64::max)
}

/// As long as what takes `seconds` takes where others have the processor for a share of the time.
fn as_long(seconds: f64, share: f64) -> f64 {
    seconds / (1.0 - share.clamp(0.0, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::cpu::Cpu;

    #[test]
    fn who_waits_half_of_the_time_takes_twice_as_long() {
        assert_eq!(longest(&[1.0, 2.0, 5.0], &[1.5, 4.0, 6.0]), 2.0);
        assert_eq!((as_long(3.0, 0.5), as_long(3.0, 0.0)), (6.0, 3.0));
        assert!((as_long(3.0, 1.5) / 300.0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_host_has_a_reference() {
        for k in [Cpu::sequential(), Cpu::of_threads(2).unwrap()] {
            let speed = Speed::before(&k).unwrap();
            assert!(speed.reference.unwrap() > 0.0);
            assert!(speed.reference_s(&k).unwrap() > 0.0);
        }
    }
}
