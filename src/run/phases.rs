//! Times the phases of a setup.

use std::time::Instant;

use super::{Progress, Stage};
use crate::backend::Backend;
use crate::measure::{median, now, seconds_since};
use crate::precond::{Phase, Phases};
use crate::result::record::Times;

/// Seconds of the symbolic, analysis and numeric phase, where the method has them.
pub(super) type PhaseSeconds = [Option<f64>; 3];

/// A stretch of time without what the backend says is not to be counted.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    start: Instant,
    /// Seconds not to be counted until then.
    uncounted: f64,
}

impl Stretch {
    pub(super) fn start<K: Backend>(k: &K) -> Self {
        Self { uncounted: k.uncounted(), start: now() }
    }

    /// Seconds until all work is done; waits.
    pub(super) fn seconds<K: Backend>(&self, k: &K) -> f64 {
        k.synchronise();
        seconds_since(self.start) - (k.uncounted() - self.uncounted)
    }
}

/// Clock of one setup; passes the phases on to the progress display.
pub(super) struct PhaseClock<'a, K> {
    k: &'a K,
    progress: Progress<'a>,
    running: Option<(Phase, Stretch)>,
    seconds: PhaseSeconds,
    cancelled: bool,
}

impl<'a, K: Backend> PhaseClock<'a, K> {
    pub(super) fn new(k: &'a K, progress: Progress<'a>) -> Self {
        Self { k, progress, running: None, seconds: [None; 3], cancelled: false }
    }

    fn end(&mut self) {
        if let Some((phase, stretch)) = self.running.take() {
            *self.seconds[phase as usize].get_or_insert(0.0) += stretch.seconds(self.k);
        }
    }

    /// Ends the last phase; `None` when the case was abandoned.
    pub(super) fn finish(mut self) -> Option<PhaseSeconds> {
        self.end();
        (!self.cancelled).then_some(self.seconds)
    }
}

impl<K: Backend> Phases for PhaseClock<'_, K> {
    fn begin(&mut self, phase: Phase) {
        self.end();
        let stage = match phase {
            Phase::Symbolic => Stage::Symbolic,
            Phase::Analysis | Phase::Numeric => Stage::Numeric,
        };
        self.cancelled |= !(self.progress)(stage);
        self.running = Some((phase, Stretch::start(self.k)));
    }
}

/// Writes the median of each phase over the setups into `times`.
pub(super) fn record(runs: &[PhaseSeconds], times: &mut Times) {
    let of = |phase: Phase| {
        let samples: Vec<f64> = runs.iter().filter_map(|r| r[phase as usize]).collect();
        median(&samples).map(|m| m.value)
    };
    times.symbolic_s = of(Phase::Symbolic);
    times.analysis_s = of(Phase::Analysis);
    times.numeric_s = of(Phase::Numeric);
    let phases = [times.symbolic_s, times.analysis_s, times.numeric_s];
    times.setup_s = Some(phases.into_iter().flatten().sum());
}
