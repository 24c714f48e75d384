//! Which deflation vectors there are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::parse::{as_text, whole};

/// Deflation vectors, all piecewise constant.
///
/// Written `none`, `subdomain:4`, `subdomain:4x2x1`, `levelset`, `levelset-subdomain:2x2x2`, and over ranks
/// `subdomains` or `subdomains:3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Choice {
    /// No deflation.
    #[default]
    None,
    /// One for each of so many boxes in x, y and z.
    Subdomain([usize; 3]),
    /// One for each region without a jump of the coefficient: each bubble, each layer.
    LevelSet,
    /// One for each piece of such a region in each of so many boxes.
    LevelSetSubdomain([usize; 3]),
    /// One for each of so many pieces of every subdomain of a system over ranks.
    Subdomains(usize),
}

/// How they are written.
pub(crate) const KNOWN: &[&str] = &[
    "none",
    "subdomain:KxLxM",
    "levelset",
    "levelset-subdomain:KxLxM",
    "subdomains",
    "subdomains:M",
];

const SUBDOMAINS: &str = "subdomains";

/// Why there are no such vectors on one device.
pub(crate) const OVER_RANKS: &str =
    "deflation by `subdomains` is of backends over ranks; others have boxes, `subdomain:4`";

/// Most boxes in a direction, and pieces of a subdomain.
const MOST_BOXES: usize = 4096;

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, boxes) = match self {
            Self::None => return f.write_str("none"),
            Self::LevelSet => return f.write_str("levelset"),
            Self::Subdomains(1) => return f.write_str(SUBDOMAINS),
            Self::Subdomains(pieces) => return write!(f, "{SUBDOMAINS}:{pieces}"),
            Self::Subdomain(boxes) => ("subdomain", boxes),
            Self::LevelSetSubdomain(boxes) => ("levelset-subdomain", boxes),
        };
        match boxes {
            [x, y, z] if x == y && y == z => write!(f, "{name}:{x}"),
            [x, y, z] => write!(f, "{name}:{x}x{y}x{z}"),
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "levelset" => Ok(Self::LevelSet),
            None if text == SUBDOMAINS => Ok(Self::Subdomains(1)),
            Some((SUBDOMAINS, pieces)) => {
                whole(pieces, 1, MOST_BOXES).map(Self::Subdomains).map_err(|e| invalid(text, &e))
            }
            Some(("subdomain", size)) => boxes(text, size).map(Self::Subdomain),
            Some(("levelset-subdomain", size)) => boxes(text, size).map(Self::LevelSetSubdomain),
            _ => Err(Error::unknown("deflation", text, KNOWN)),
        }
    }
}

fn invalid(text: &str, why: &Error) -> Error {
    Error::input(format!("deflation `{text}`: {}", why.message()))
}

/// Reads `4` or `4x2x1`.
fn boxes(text: &str, size: &str) -> Result<[usize; 3]> {
    let parts = size.split('x').map(|part| whole(part, 1, MOST_BOXES)).collect::<Result<Vec<_>>>();
    let parts = parts.map_err(|e| invalid(text, &e))?;
    match parts[..] {
        [n] => Ok([n; 3]),
        [x, y, z] => Ok([x, y, z]),
        _ => {
            Err(Error::input(format!("deflation `{text}`: {} directions, not 1 or 3", parts.len()))
                .hint("write the boxes as `4` or `4x2x1`"))
        }
    }
}

as_text!(Choice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_written_as_they_are_read() {
        let written = [
            "none",
            "levelset",
            "subdomain:4",
            "levelset-subdomain:4x2x1",
            "subdomains",
            "subdomains:3",
        ];
        for text in written {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        assert_eq!("subdomains:1".parse(), Ok(Choice::Subdomains(1)));
        assert_eq!("subdomain:3x3x3".parse(), Ok(Choice::Subdomain([3; 3])));
        let message = |text: &str| text.parse::<Choice>().unwrap_err().to_string();
        assert_eq!(message("subdomains:0"), "deflation `subdomains:0`: `0` is outside 1 to 4096");
        assert_eq!(
            message("subdomains:2x2"),
            "deflation `subdomains:2x2`: `2x2` is not a whole number"
        );
        assert_eq!(message("subdomain"), "unknown deflation `subdomain`");
        assert_eq!(message("subdomain:0"), "deflation `subdomain:0`: `0` is outside 1 to 4096");
        assert_eq!(message("subdomain:2x2"), "deflation `subdomain:2x2`: 2 directions, not 1 or 3");
    }
}
