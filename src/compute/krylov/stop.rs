//! Stopping rules shared by all methods.

use std::time::Instant;

use crate::base::measure::{now, seconds_since};
use crate::base::status::Status;

/// Growth of the residual over its initial value that counts as divergence.
pub(crate) const DIVERGED: f64 = 1e10;

/// Restart cycles (or spans of as many iterations) over which progress is judged.
pub(crate) const STALL_CYCLES: usize = 8;

/// Iterations that make up a cycle when progress is judged.
pub(crate) const CYCLE: usize = 50;

/// A residual that keeps more than this part over [`STALL_CYCLES`] cycles has stagnated.
const STALL_FACTOR: f64 = 0.999;

/// When a solve ends.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Converged when the monitored residual is at most this part of its initial value. With 0 the
    /// iteration limit is the number of iterations that is asked for.
    pub rtol: f64,
    /// Iteration limit.
    pub max_iterations: usize,
    /// Seconds after which the solve is given up.
    pub time_limit_s: Option<f64>,
}

impl Stop {
    /// The part of a residual that no span of [`STALL_CYCLES`] may keep. Where a number of iterations is
    /// asked for, they are made whether or not they lead anywhere: any part.
    pub(crate) fn stall(&self) -> f64 {
        if self.rtol == 0.0 { f64::INFINITY } else { STALL_FACTOR }
    }
}

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolveEnd {
    /// The monitored residual met the tolerance.
    Converged,
    /// Iteration limit.
    IterationLimit,
    /// No progress over several restarts.
    Stagnated,
    /// NaN, infinite or enormous residual.
    Diverged,
    /// A recurrence divided by zero; says which quantity vanished.
    Breakdown(&'static str),
    /// Deadline passed.
    TimeLimit,
    /// The user stopped it.
    Cancelled,
}

impl SolveEnd {
    /// Status of a run that ended so; `None` for a cancelled one.
    pub fn status(self) -> Option<Status> {
        Some(match self {
            Self::Converged => Status::Converged,
            Self::IterationLimit => Status::NotConverged,
            Self::Stagnated => Status::Stagnated,
            Self::Diverged => Status::Diverged,
            Self::Breakdown(_) => Status::Breakdown,
            Self::TimeLimit => Status::TimeLimit,
            Self::Cancelled => return None,
        })
    }
}

/// Sees every iteration.
pub trait Monitor {
    /// Norm of the monitored residual before the first iteration, to which the others are relative.
    fn start(&mut self, _norm: f64) {}

    /// Residual after `iteration`, relative to the initial one; `false` ends the solve.
    fn iteration(&mut self, iteration: usize, residual: f64) -> bool;
}

/// Looks at nothing.
impl Monitor for () {
    fn iteration(&mut self, _: usize, _: f64) -> bool {
        true
    }
}

/// Records the residual history.
impl Monitor for Vec<f64> {
    fn iteration(&mut self, _: usize, residual: f64) -> bool {
        self.push(residual);
        true
    }
}

/// Applies the rules of a [`Stop`] from iteration to iteration.
pub struct ConvergenceMonitor<'a> {
    stop: &'a Stop,
    monitor: &'a mut dyn Monitor,
    start: Instant,
    /// Residual norm that counts as one.
    scale: f64,
    /// Residuals at the ends of past cycles.
    cycles: Vec<f64>,
    /// Iterations after which the method began anew, and why the first time.
    restarts: Vec<usize>,
    reason: &'static str,
    /// Whether it did at the last look.
    restarted: bool,
    /// Iterations so far.
    pub iterations: usize,
    /// Residual relative to the initial one.
    pub residual: f64,
    /// That of the iteration before.
    before: f64,
}

impl<'a> ConvergenceMonitor<'a> {
    /// Starts with the norm of the initial residual.
    pub fn new(stop: &'a Stop, monitor: &'a mut dyn Monitor, initial: f64) -> Self {
        let scale = if initial > 0.0 { initial } else { 1.0 };
        let residual = initial / scale;
        monitor.start(initial);
        Self {
            stop,
            monitor,
            start: now(),
            scale,
            cycles: Vec::new(),
            restarts: Vec::new(),
            reason: "",
            restarted: false,
            iterations: 0,
            residual,
            before: residual,
        }
    }

    /// Judges the state before the first iteration: a zero or broken right-hand side.
    pub fn first(&self) -> Option<SolveEnd> {
        if !self.residual.is_finite() {
            Some(SolveEnd::Diverged)
        } else if self.residual == 0.0 {
            Some(SolveEnd::Converged)
        } else if self.stop.max_iterations == 0 {
            Some(SolveEnd::IterationLimit)
        } else {
            None
        }
    }

    /// Judges a residual of the norm `norm` that no iteration made: that of a projection.
    pub fn between(&mut self, norm: f64) -> Option<SolveEnd> {
        self.residual = norm / self.scale;
        if self.residual.is_finite() {
            (self.residual <= self.stop.rtol).then_some(SolveEnd::Converged)
        } else {
            Some(SolveEnd::Diverged)
        }
    }

    /// Counts an iteration that ended with the residual norm `norm`.
    pub fn step(&mut self, norm: f64) -> Option<SolveEnd> {
        self.iterations += 1;
        self.before = std::mem::replace(&mut self.residual, norm / self.scale);
        let go_on = self.monitor.iteration(self.iterations, self.residual);
        if !self.residual.is_finite() || self.residual > DIVERGED {
            Some(SolveEnd::Diverged)
        } else if self.residual <= self.stop.rtol {
            Some(SolveEnd::Converged)
        } else if !go_on {
            Some(SolveEnd::Cancelled)
        } else if self.iterations >= self.stop.max_iterations {
            Some(SolveEnd::IterationLimit)
        } else if self.stop.time_limit_s.is_some_and(|s| seconds_since(self.start) > s) {
            Some(SolveEnd::TimeLimit)
        } else {
            None
        }
    }

    /// Whether the next iteration may well be the last: the limit's, or one that shrinks the residual as the last one
    /// did, give or take a factor of two.
    pub fn may_end(&self) -> bool {
        let next = self.residual * (self.residual / self.before).min(1.0);
        self.iterations + 1 >= self.stop.max_iterations || next <= 2.0 * self.stop.rtol
    }

    /// Whether the iteration limit is reached.
    pub(crate) fn is_last(&self) -> bool {
        self.iterations >= self.stop.max_iterations
    }

    /// Judges progress at the end of a restart cycle.
    pub fn cycle(&mut self) -> Option<SolveEnd> {
        self.cycles.push(self.residual);
        let past = self.cycles.len().checked_sub(STALL_CYCLES + 1)?;
        (self.residual > self.stop.stall() * self.cycles[past]).then_some(SolveEnd::Stagnated)
    }

    /// The same of a method without restarts, which has a cycle of `length` iterations.
    pub(crate) fn cycle_of(&mut self, length: usize) -> Option<SolveEnd> {
        self.iterations.is_multiple_of(length).then(|| self.cycle()).flatten()
    }

    /// Judges a recurrence at the end of an iteration: `broken` names what vanished, if anything did.
    /// The method then begins anew from the residual at hand, unless it has just done so: that would
    /// lead nowhere.
    pub fn recurrence(&mut self, broken: Option<&'static str>) -> Option<SolveEnd> {
        let again = std::mem::replace(&mut self.restarted, broken.is_some());
        let what = broken?;
        if again {
            return Some(SolveEnd::Breakdown(what));
        }
        if self.restarts.is_empty() {
            self.reason = what;
        }
        self.restarts.push(self.iterations);
        None
    }

    /// The outcome with the given end.
    pub fn outcome(&self, end: SolveEnd) -> super::Outcome {
        let remark = self.restarts.first().map(|first| {
            let further = match self.restarts.len() {
                1 => String::new(),
                count => format!(", and {} more times", count - 1),
            };
            format!("began anew after iteration {first}{further}: {}", self.reason)
        });
        super::Outcome { end, iterations: self.iterations, residual: self.residual, remark }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_asks_for_a_tolerance_stagnates() {
        let ends = |rtol: f64, residual: f64| {
            let stop = Stop { rtol, max_iterations: 100, time_limit_s: None };
            let mut nothing = ();
            let mut judge = ConvergenceMonitor::new(&stop, &mut nothing, 1.0);
            let mut cycle = || {
                assert_eq!(judge.step(residual), None);
                judge.cycle()
            };
            (0..20).position(|_| cycle() == Some(SolveEnd::Stagnated))
        };
        // the ninth is the first that is 8 cycles behind another
        assert_eq!(ends(1e-6, 0.5), Some(STALL_CYCLES));
        assert_eq!(ends(0.0, 0.5), None);
        assert_eq!(ends(0.0, f64::MIN_POSITIVE), None);
    }

    #[test]
    fn the_last_iteration_is_foreseen() {
        let stop = Stop { rtol: 1e-3, max_iterations: 7, time_limit_s: None };
        let mut nothing = ();
        let mut judge = ConvergenceMonitor::new(&stop, &mut nothing, 1.0);
        let foreseen = [0.5, 0.2, 0.05, 0.06, 0.009].map(|norm| {
            assert_eq!(judge.step(norm), None);
            judge.may_end()
        });
        // 0.2, 0.08, 0.0125, 0.06 as it grew, and 0.00135, which is less than twice the tolerance
        assert_eq!(foreseen, [false, false, false, false, true]);
        assert_eq!(judge.step(0.009), None);
        // the seventh is the limit's
        assert!(judge.may_end());
    }
}
