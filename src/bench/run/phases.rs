//! Times the phases of a setup.

use std::sync::Arc;
use std::time::Instant;

use super::reuse::Of;
use super::{Progress, Reuse, Stage};
use crate::base::measure::{median, now, seconds_since, spans};
use crate::compute::Operations;
use crate::methods::precond::{Phase, Phases};
use crate::record::schema::Times;
use crate::symbolic::FillPattern;

/// Seconds of the symbolic, analysis and numeric phase, where the method has them.
pub(super) type PhaseSeconds = [Option<f64>; 3];

/// Measures wall-clock time without what the backend excludes, such as the compilation of kernels.
#[derive(Clone, Copy)]
pub(super) struct Stopwatch {
    start: Instant,
    /// Excluded seconds at the start.
    excluded: f64,
}

impl Stopwatch {
    pub(super) fn start<K: Operations>(k: &K) -> Self {
        Self { excluded: k.uncounted(), start: now() }
    }

    /// Waits for all work, and returns the seconds since the start.
    pub(super) fn seconds<K: Operations>(&self, k: &K) -> f64 {
        k.synchronise();
        k.of_all(seconds_since(self.start) - (k.uncounted() - self.excluded))
    }
}

/// Times the phases of one setup and reports them to the progress display.
pub(super) struct PhaseClock<'a, K> {
    k: &'a K,
    progress: Progress<'a>,
    running: Option<(Phase, Stopwatch)>,
    seconds: PhaseSeconds,
    cancelled: bool,
    /// Patterns of earlier cases, and which one this case needs; `None` where it needs several.
    patterns: Option<(&'a mut Reuse, Of)>,
}

impl<'a, K: Operations> PhaseClock<'a, K> {
    pub(super) fn new(
        k: &'a K,
        progress: Progress<'a>,
        patterns: Option<(&'a mut Reuse, Of)>,
    ) -> Self {
        Self { k, progress, running: None, seconds: [None; 3], cancelled: false, patterns }
    }

    fn end(&mut self) {
        if let Some((phase, stopwatch)) = self.running.take() {
            let seconds = stopwatch.seconds(self.k);
            if spans::on() {
                eprintln!("{phase:?} {:.3} ms", 1e3 * seconds);
            }
            self.charge(phase, seconds);
        }
    }

    fn charge(&mut self, phase: Phase, seconds: f64) {
        *self.seconds[phase as usize].get_or_insert(0.0) += seconds;
    }

    /// Ends the last phase; `None` when the case was cancelled.
    pub(super) fn finish(mut self) -> Option<PhaseSeconds> {
        self.end();
        (!self.cancelled).then_some(self.seconds)
    }
}

impl<K: Operations> Phases for PhaseClock<'_, K> {
    fn begin(&mut self, phase: Phase) {
        self.end();
        let stage = match phase {
            Phase::Symbolic => Stage::Symbolic,
            Phase::Analysis | Phase::Numeric => Stage::Numeric,
        };
        self.cancelled |= !(self.progress)(stage);
        self.running = Some((phase, Stopwatch::start(self.k)));
    }

    fn known_pattern(&mut self) -> Option<Arc<FillPattern>> {
        let (reuse, of) = self.patterns.as_mut()?;
        let (pattern, seconds) = reuse.pattern(*of)?;
        let (phase, _) = self.running?;
        self.charge(phase, seconds);
        Some(pattern)
    }

    fn found_pattern(&mut self, pattern: &Arc<FillPattern>) {
        if let (Some((_, stopwatch)), Some((reuse, of))) = (self.running, self.patterns.as_mut()) {
            reuse.keep(*of, pattern, stopwatch.seconds(self.k));
        }
    }
}

/// Whether a setup had any phase.
pub(super) fn any(times: &Times) -> bool {
    [times.symbolic_s, times.analysis_s, times.numeric_s].iter().any(Option::is_some)
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
    // a sum of nothing would be -0
    times.setup_s = Some(phases.into_iter().flatten().fold(0.0, |sum, phase| sum + phase));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::threads::Threads;
    use crate::bench::run::reuse::key;
    use crate::case::Case;
    use crate::compute::cpu::Cpu;

    #[test]
    fn a_known_pattern_costs_what_it_did() {
        let (k, pattern) = (Cpu::sequential(), Arc::new(FillPattern::diagonal(3, 1)));
        let (mut reuse, of) = (Reuse::default(), key(&Case::default(), Threads::One));
        reuse.keep(of, &pattern, 2.5);
        let mut stages = Vec::new();
        let mut progress = |stage| {
            stages.push(stage);
            true
        };
        let mut clock = PhaseClock::new(&k, &mut progress, Some((&mut reuse, of)));
        clock.begin(Phase::Symbolic);
        assert!(clock.known_pattern().is_some_and(|known| Arc::ptr_eq(&known, &pattern)));
        clock.begin(Phase::Numeric);
        let [symbolic, analysis, numeric] = clock.finish().unwrap();
        // the phase did nothing else
        assert!((2.5..3.5).contains(&symbolic.unwrap()) && numeric.unwrap() < 1.0);
        assert_eq!((analysis, stages), (None, vec![Stage::Symbolic, Stage::Numeric]));
    }
}
