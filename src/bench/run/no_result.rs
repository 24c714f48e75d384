//! Why a case ended early, and what its record says of that.

use serde::{Deserialize, Serialize};

use crate::base::error::Kind;
use crate::base::status::Status;
use crate::base::units::memory;
use crate::compute::Clock;
use crate::compute::preconditioner::SetupFailure;

/// Why a case ended before its solves were measured.
#[derive(Serialize, Deserialize)]
pub(super) enum NoResult {
    Cancelled,
    Ended(Status, String),
    /// Another rank says how.
    Elsewhere,
}

impl NoResult {
    pub(super) fn ended(status: Status, reason: impl Into<String>) -> Self {
        Self::Ended(status, reason.into())
    }

    pub(super) fn unsupported(reason: String) -> Self {
        Self::Ended(Status::Unsupported, reason)
    }
}

/// What all ranks make of a step: the failure of the first of them that failed, on every one; collective.
pub(super) fn together<K: Clock, T>(k: &K, own: Result<T, NoResult>) -> Result<T, NoResult> {
    let why = own.as_ref().err().filter(|why| !matches!(why, NoResult::Elsewhere));
    let said = why.map(|why| serde_json::to_string(why).expect("words"));
    match k.failure(said) {
        None => own,
        Some(said) => Err(match own {
            Err(why) if !matches!(why, NoResult::Elsewhere) => why,
            _ => serde_json::from_str(&said)
                .unwrap_or_else(|_| NoResult::ended(Status::Failed, said)),
        }),
    }
}

impl From<crate::Error> for NoResult {
    fn from(e: crate::Error) -> Self {
        let status = match e.kind() {
            Kind::Stopped => return Self::Cancelled,
            Kind::Memory => Status::OutOfMemory,
            Kind::Run => Status::Failed,
            Kind::Input => Status::Unsupported,
        };
        Self::ended(status, e.to_string())
    }
}

impl From<SetupFailure> for NoResult {
    fn from(f: SetupFailure) -> Self {
        match f {
            SetupFailure::Breakdown(why) => NoResult::ended(Status::Breakdown, why.to_string()),
            SetupFailure::NoPivot { block, subscripts: [i, j, k] } => {
                let what = if block.absent {
                    "there is no diagonal block".to_owned()
                } else {
                    format!("no pivot in row {} of the diagonal block", block.within + 1)
                };
                let reason = format!("{what} at (i, j, k) = ({i}, {j}, {k})");
                NoResult::ended(Status::Breakdown, reason)
            }
            // indices have 32 bits
            SetupFailure::TooLarge { at, needed, free } if needed <= free => NoResult::ended(
                Status::OutOfMemory,
                format!("the factors have {} blocks up to row {}: too many", at.entries, at.row),
            ),
            SetupFailure::TooLarge { at, needed, free } => {
                lacking(needed, &format!(" for the factors up to row {}", at.row), free)
            }
            SetupFailure::OutOfMemory { needed, free } => lacking(needed, "", free),
            SetupFailure::Broken(why) => NoResult::ended(Status::Breakdown, why),
            SetupFailure::Elsewhere => NoResult::Elsewhere,
            SetupFailure::Backend(e) => e.into(),
        }
    }
}

fn lacking(needed: usize, what: &str, free: usize) -> NoResult {
    let reason = format!("{} needed{what}, {} free", memory(needed), memory(free));
    NoResult::ended(Status::OutOfMemory, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::matrix::pattern::TooLarge;

    fn said(stopped: impl Into<NoResult>) -> (Status, String) {
        match stopped.into() {
            NoResult::Ended(status, reason) => (status, reason),
            _ => panic!("it says why"),
        }
    }

    #[test]
    fn too_little_memory_is_told_with_what_is_needed_and_free() {
        let out = |reason: &str| (Status::OutOfMemory, reason.to_owned());
        let (needed, free) = (3 << 30, 5 << 29);
        let expected = out("3.00 GiB needed, 2.50 GiB free");
        assert_eq!(said(SetupFailure::OutOfMemory { needed, free }), expected);
        let at = TooLarge { row: 7, entries: 4_294_967_296 };
        assert_eq!(
            said(SetupFailure::TooLarge { at, needed, free }),
            out("3.00 GiB needed for the factors up to row 7, 2.50 GiB free")
        );
        assert_eq!(
            said(SetupFailure::TooLarge { at, needed: free, free: needed }),
            out("the factors have 4294967296 blocks up to row 7: too many")
        );
    }

    #[test]
    fn an_error_of_the_backend_keeps_its_kind() {
        let of = |e: Error| said(SetupFailure::Backend(e)).0;
        assert_eq!(of(Error::memory("x")), Status::OutOfMemory);
        assert_eq!(of(Error::run("x")), Status::Failed);
        assert_eq!(of(Error::input("x")), Status::Unsupported);
    }
}
