//! When a sequence of systems has a new preconditioner.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::parse::{as_text, number, number_text, whole};

/// Steps of a sequence whose preconditioner is made of their own values; others go on with that of an earlier step.
///
/// Written `always`, `every:5`, `adaptive:1.5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Refactor {
    /// All.
    #[default]
    Always,
    /// The first and every n-th from there.
    Every(usize),
    /// The step after one that took more than so many times the iterations of the last step with a preconditioner
    /// of its own, or that did not converge.
    Adaptive(f64),
}

/// How they are written.
pub(crate) const KNOWN: &[&str] = &["always", "every:N", "adaptive:F"];

/// Most steps with one preconditioner.
const MOST: usize = 10_000;

impl fmt::Display for Refactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Every(steps) => write!(f, "every:{steps}"),
            Self::Adaptive(factor) => write!(f, "adaptive:{}", number_text(*factor)),
        }
    }
}

impl FromStr for Refactor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "always" => Ok(Self::Always),
            Some(("every", steps)) => match whole(steps, 1, MOST)? {
                1 => Ok(Self::Always),
                steps => Ok(Self::Every(steps)),
            },
            Some(("adaptive", factor)) => {
                let factor = number(factor, "1 to 1000", |f| (1.0..=1000.0).contains(&f))?;
                Ok(Self::Adaptive(factor))
            }
            _ => Err(Error::unknown("way to refactorise", text, KNOWN)),
        }
    }
}

as_text!(Refactor);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_they_are_written() {
        for text in ["always", "every:2", "every:10000", "adaptive:1", "adaptive:1.25"] {
            assert_eq!(text.parse::<Refactor>().unwrap().to_string(), text);
        }
        assert_eq!("every:1".parse::<Refactor>().unwrap(), Refactor::Always);
        let message = |text: &str| text.parse::<Refactor>().unwrap_err().to_string();
        assert_eq!(message("never"), "unknown way to refactorise `never`");
        assert_eq!(message("every:0"), "`0` is outside 1 to 10000");
        assert_eq!(message("adaptive:0.5"), "`0.5` is outside the range: 1 to 1000");
        assert_eq!(message("every"), "unknown way to refactorise `every`");
    }
}
