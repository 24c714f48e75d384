//! Detects whether other processes occupied the processors during a measurement.

use std::fmt::Write as _;
use std::time::Instant;

use crate::base::measure::{now, seconds_since};
use crate::base::units::plural;
use crate::compute::{Alone, Operations};

/// Share of their time that threads may wait for a processor without a remark.
const QUIET: f64 = 0.1;

/// Seconds below which there is no remark: a time slice of another process lasts milliseconds.
const SHORT: f64 = 0.1;

/// When the work began, and how long threads had waited until then.
pub(super) struct Crowd {
    start: Instant,
    waited: Option<f64>,
    alone: Alone,
}

impl Crowd {
    pub(super) fn before<K: Operations>(k: &K) -> Self {
        Self { start: now(), waited: k.kept_waiting(), alone: k.made_alone() }
    }

    /// Remark for the record about the time since then.
    pub(super) fn remark<K: Operations>(&self, k: &K) -> Option<String> {
        let waited = k.kept_waiting()? - self.waited?;
        let Alone { solves, factorisations } = k.made_alone();
        let solves = solves - self.alone.solves;
        let alone = Alone { solves, factorisations: factorisations - self.alone.factorisations };
        said(waited, seconds_since(self.start), k.threads(), alone)
    }
}

fn said(waited: f64, seconds: f64, threads: usize, alone: Alone) -> Option<String> {
    let part = waited / (seconds * threads as f64);
    let mut text = format!(
        "other processes had the processors for {:.0} % of the time of {}",
        100.0 * part,
        if threads == 1 { "the thread".into() } else { format!("the {threads} threads") }
    );
    let Alone { solves, factorisations } = alone;
    if solves > 0 {
        _ = write!(text, ", and one thread made {} of L and U", plural(solves, "solve"));
    }
    if factorisations > 0 {
        _ = write!(text, ", and one thread made {}", plural(factorisations, "factorisation"));
    }
    (solves + factorisations > 0 || seconds > SHORT && part > QUIET).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_when_others_had_the_processors() {
        let none = Alone::default();
        let expected = "other processes had the processors for 24 % of the time of the 2 threads";
        assert_eq!(said(0.48, 1.0, 2, none).as_deref(), Some(expected));
        assert_eq!(said(0.19, 1.0, 2, none), None);
        assert_eq!(said(0.09, 0.09, 2, none), None);
        // with one thread the others no longer wait
        let expected = "other processes had the processors for 2 % of the time of the 2 threads, and \
                        one thread made 7 solves of L and U";
        let solves = Alone { solves: 7, ..none };
        assert_eq!(said(0.04, 1.0, 2, solves).as_deref(), Some(expected));
        let factorisations = said(0.0, 0.01, 2, Alone { factorisations: 1, ..none }).unwrap();
        assert!(factorisations.ends_with("threads, and one thread made 1 factorisation"));
    }
}
