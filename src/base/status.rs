//! How a run ended.

use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The monitored residual met the tolerance and the recomputed one agrees.
    #[default]
    Converged,
    /// A product was checked and measured; there was nothing to converge.
    Measured,
    /// The iteration limit was reached.
    NotConverged,
    /// The residual no longer falls.
    Stagnated,
    /// The monitored residual met the tolerance, and the recomputed one contradicts it.
    FalseConvergence,
    /// The preconditioned residual met the tolerance, as was asked for, and the recomputed one, which is
    /// below that of x = 0, is far from it.
    PreconditionedOnly,
    /// The residual grew beyond all bounds or became NaN.
    Diverged,
    /// A singular block in the factorisation or a zero in a recurrence.
    Breakdown,
    /// The time limit of a run was reached.
    TimeLimit,
    /// Not enough memory.
    OutOfMemory,
    /// All iterations that were asked for were made: `rtol` is 0.
    Complete,
    /// The case cannot run here (no such device, a format that does not fit, ...).
    Unsupported,
    /// An operation of the device failed.
    Failed,
}

impl Status {
    /// Whether the run did what was asked of it.
    pub fn succeeded(self) -> bool {
        matches!(self, Self::Converged | Self::Measured | Self::Complete)
    }

    /// The name used in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Measured => "measured",
            Self::NotConverged => "not-converged",
            Self::Stagnated => "stagnated",
            Self::FalseConvergence => "false-convergence",
            Self::PreconditionedOnly => "preconditioned-only",
            Self::Diverged => "diverged",
            Self::Breakdown => "breakdown",
            Self::TimeLimit => "time-limit",
            Self::OutOfMemory => "out-of-memory",
            Self::Complete => "complete",
            Self::Unsupported => "unsupported",
            Self::Failed => "failed",
        }
    }
}
