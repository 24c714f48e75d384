//! Times the phases of a setup.

use std::time::Instant;

use super::{Progress, Stage};
use crate::backend::Backend;
use crate::measure::{median, now, seconds_since};
use crate::precond::{Phase, Phases};
use crate::result::record::Times;

/// Seconds of the symbolic, analysis and numeric phase, where the method has them.
pub(super) type PhaseSeconds = [Option<f64>; 3];

/// Clock of one setup; passes the phases on to the progress display.
pub(super) struct PhaseClock<'a, K> {
    k: &'a K,
    progress: Progress<'a>,
    /// Phase, its start, and the seconds not to be counted until then.
    running: Option<(Phase, Instant, f64)>,
    seconds: PhaseSeconds,
    cancelled: bool,
}

impl<'a, K: Backend> PhaseClock<'a, K> {
    pub(super) fn new(k: &'a K, progress: Progress<'a>) -> Self {
        Self { k, progress, running: None, seconds: [None; 3], cancelled: false }
    }

    fn end(&mut self) {
        if let Some((phase, start, before)) = self.running.take() {
            self.k.synchronise();
            let seconds = seconds_since(start) - (self.k.uncounted() - before);
            *self.seconds[phase as usize].get_or_insert(0.0) += seconds;
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
        self.running = Some((phase, now(), self.k.uncounted()));
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
