//! How long and how often a case is measured.

/// How long and how often to measure.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Fewest timed solves.
    pub min_repetitions: usize,
    /// Most timed solves.
    pub max_repetitions: usize,
    /// Stop repeating after this many seconds of timed solves (the minimum is kept). A first solve
    /// that takes longer than this counts as a measurement instead of a warm-up.
    pub time_budget_s: f64,
    /// Matrices with new values on the same pattern for which the numeric phase is timed again.
    pub repeat_values: usize,
    /// Iterations whose residuals are kept, with the initial one; 0 keeps none.
    pub history: usize,
    /// A single solve is stopped after this many seconds.
    pub time_limit_s: Option<f64>,
    /// One setup and one solve, both timed, and nothing else: no bandwidths.
    pub once: bool,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            min_repetitions: 1,
            max_repetitions: 10,
            time_budget_s: 5.0,
            repeat_values: 0,
            history: 0,
            time_limit_s: None,
            once: false,
        }
    }
}
