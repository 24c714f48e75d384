//! Monitors a solve: progress and residual history.

use std::time::Instant;

use super::{NoResult, Progress, Stage};
use crate::base::measure::{now, seconds_since};
use crate::compute::krylov::{Monitor, Outcome, Solver, System};
use crate::compute::{Clock, Operations};

/// Reports iterations to the progress callback, and records the residuals of the last solve.
struct CaseMonitor<'a, K> {
    k: &'a K,
    progress: Progress<'a>,
    stage: Stage,
    cancelled: bool,
    history: &'a mut History,
    start: Instant,
    limit_s: Option<f64>,
}

/// Solves with `method`; also returns the seconds. Stops where ranks must agree on `limit_s` and it has passed.
pub(super) fn watched<K: Operations>(
    k: &K,
    (method, system, x): (&mut dyn Solver<K>, &System<K>, &mut K::Vector),
    (stage, progress, limit_s): (Stage, Progress, Option<f64>),
    history: &mut History,
) -> Result<(Outcome, f64), NoResult> {
    going(k, progress, stage)?;
    let start = now();
    let mut monitor = CaseMonitor { k, progress, stage, cancelled: false, history, start, limit_s };
    let mark = k.mark();
    let outcome = method.solve(k, system, x, &mut monitor);
    let seconds = k.seconds(&mark, &k.mark());
    k.check()?;
    let cancelled = k.of_all(f64::from(u8::from(monitor.cancelled))) > 0.0;
    if cancelled { Err(NoResult::Cancelled) } else { Ok((outcome, seconds)) }
}

/// Reports a stage; an error on all ranks when it is to be the last.
pub(super) fn going<K: Clock>(k: &K, progress: Progress, stage: Stage) -> Result<(), NoResult> {
    let stop = f64::from(u8::from(!progress(stage)));
    if k.of_all(stop) > 0.0 { Err(NoResult::Cancelled) } else { Ok(()) }
}

impl<K: Clock> Monitor for CaseMonitor<'_, K> {
    fn start(&mut self, norm: f64) {
        self.k.go_on();
        self.history.start(norm);
    }

    fn iteration(&mut self, _: usize, residual: f64) -> bool {
        self.history.add(residual);
        self.cancelled = !(self.progress)(self.stage);
        let late = self.limit_s.is_some_and(|limit| seconds_since(self.start) > limit);
        !self.k.agree(self.cancelled || late)
    }
}

/// Norms of the monitored residual: before the first iteration, then after each.
#[derive(Debug)]
pub(super) struct History {
    pub(super) norms: Vec<f64>,
    /// Number of iterations to record; 0 records nothing.
    iterations: usize,
    /// Whether all residuals so far were finite; recording ends at the first that is not.
    finite: bool,
}

impl History {
    pub(super) fn new(iterations: usize) -> Self {
        Self { norms: Vec::new(), iterations, finite: true }
    }

    /// Starts a solve with the norm of its initial residual, and discards the previous solve.
    fn start(&mut self, norm: f64) {
        self.norms.clear();
        self.finite = true;
        if self.iterations > 0 {
            self.push(norm);
        }
    }

    /// Adds the residual after the next iteration, relative to the initial one.
    fn add(&mut self, residual: f64) {
        if let Some(first) = self.norms.first()
            && self.norms.len() <= self.iterations
        {
            self.push(first * residual);
        }
    }

    fn push(&mut self, norm: f64) {
        self.finite &= norm.is_finite();
        if self.finite {
            self.norms.push(norm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_iterations_of_the_last_solve_are_kept() {
        let mut history = History::new(2);
        for start in [5.0, 4.0] {
            history.start(start);
            for residual in [0.5, 0.25, 0.125] {
                history.add(residual);
            }
        }
        assert_eq!(history.norms, [4.0, 2.0, 1.0]);
    }

    #[test]
    fn nothing_is_kept_unasked_or_after_a_number_that_is_none() {
        let mut none = History::new(0);
        none.start(1.0);
        none.add(0.5);
        assert!(none.norms.is_empty());
        let mut broken = History::new(9);
        broken.start(2.0);
        for residual in [0.5, f64::NAN, 0.25] {
            broken.add(residual);
        }
        assert_eq!(broken.norms, [2.0, 1.0]);
        broken.start(4.0);
        broken.add(0.5);
        assert_eq!(broken.norms, [4.0, 2.0]);
        broken.start(f64::INFINITY);
        broken.add(0.5);
        assert!(broken.norms.is_empty());
    }
}
