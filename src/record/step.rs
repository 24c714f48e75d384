//! What the record of a step of a sequence says of it.

use serde::{Deserialize, Serialize};

use crate::methods::precond::Kept;

/// What a step of a sequence makes of its preconditioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetupDone {
    /// Every phase.
    All,
    /// Analysis and numeric phase, on the known pattern of the factors.
    Analysis,
    /// The numeric phase alone.
    Numeric,
    /// Nothing: it is that of an earlier step.
    None,
}

impl From<Kept> for SetupDone {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Nothing => Self::All,
            Kept::Pattern => Self::Analysis,
            Kept::Analysis => Self::Numeric,
        }
    }
}

impl SetupDone {
    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Analysis => "analysis",
            Self::Numeric => "numeric",
            Self::None => "none",
        }
    }
}
