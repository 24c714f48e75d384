//! Runs one case and yields its record.

use crate::case::Case;
use crate::problem::Problem;
use crate::result::Record;

/// How long and how often to measure.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Fewest timed solves.
    pub min_repetitions: usize,
    /// Most timed solves.
    pub max_repetitions: usize,
    /// Stop repeating after this many seconds of timed solves (the minimum is kept).
    pub time_budget_s: f64,
    /// A single solve is stopped after this many seconds.
    pub time_limit_s: Option<f64>,
}

impl Default for Measure {
    fn default() -> Self {
        Self { min_repetitions: 1, max_repetitions: 10, time_budget_s: 5.0, time_limit_s: None }
    }
}

/// A stage of a case, for progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Fill pattern.
    Symbolic,
    /// Factorisation.
    Numeric,
    /// Untimed first solve.
    WarmUp,
    /// Timed solve number i (from 1).
    Solve(usize),
    /// Bandwidth of the pieces.
    Traffic,
}

/// Runs `case` on `problem` (which must be the one `case.matrix` names) with right-hand side `b`.
///
/// Never fails: breakdown, divergence, exhausted memory and unknown combinations are records.
/// `progress` is told each stage as it starts; when it returns `false` the case is abandoned and
/// `None` is returned (Ctrl-C).
pub fn run_case(
    case: &Case,
    problem: &Problem,
    b: &[f64],
    measure: &Measure,
    progress: &mut dyn FnMut(Stage) -> bool,
) -> Option<Record> {
    let _ = (case, problem, b, measure, progress);
    todo!("written by the core")
}
