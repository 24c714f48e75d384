//! How preconditioners and their parameters are written: `name` or `name:key=value,key=value`.

use std::fmt;

use crate::base::error::{Error, Result};
use crate::base::parse::{shown, whole};
use crate::symbolic::Colouring;

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A whole number between two, which it may be.
    Whole(usize, usize),
    /// A number above the first and below the second.
    Number(f64, f64),
    /// One of these words.
    Words(&'static [&'static str]),
}

/// A parameter of a preconditioner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Key.
    pub key: &'static str,
    /// Value when it is not given, as it would be written.
    pub default: &'static str,
    /// What it may be.
    pub range: Range,
    /// What it is.
    pub summary: &'static str,
}

/// How preconditioners that go by colours find them.
pub(super) const COLOURING: Parameter = Parameter {
    key: "colouring",
    default: Colouring::NAMES[0],
    range: Range::Words(Colouring::NAMES),
    summary: "of a stencil on a box evenly spaced, with fewer colours, or as first fit has them",
};

/// A preconditioner's checked parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    values: Vec<(&'static str, String)>,
}

impl Options {
    /// Reads what stands behind the colon of `spec`, for the preconditioner called `name`.
    ///
    /// # Errors
    /// Names the parameter that is unknown, given twice or out of range.
    pub(super) fn parse(name: &str, parameters: &'static [Parameter], text: &str) -> Result<Self> {
        let mut values: Vec<(&'static str, String)> =
            parameters.iter().map(|p| (p.key, p.default.to_owned())).collect();
        let mut given = Vec::new();
        for word in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                Error::input(format!("`{name}`: `{word}` is not of the form key=value"))
                    .hint(usage(name, parameters))
            })?;
            let Some(at) = parameters.iter().position(|p| p.key == key) else {
                let keys: Vec<&str> = parameters.iter().map(|p| p.key).collect();
                if keys.is_empty() {
                    return Err(Error::input(format!("`{name}` has no parameters")));
                }
                return Err(Error::unknown(&format!("parameter of `{name}`"), key, &keys));
            };
            if given.contains(&at) {
                return Err(Error::input(format!("`{name}`: `{key}` is given twice")));
            }
            given.push(at);
            values[at].1 = parameters[at].range.canonical(name, key, value)?;
        }
        Ok(Self { values })
    }

    /// The parameters that differ from their defaults, as they would be written.
    pub(super) fn text(&self, parameters: &[Parameter]) -> String {
        let changed = self.values.iter().zip(parameters).filter(|(v, p)| v.1 != p.default);
        changed.map(|((key, value), _)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }

    /// All parameters, as they would be written.
    pub(super) fn all(&self) -> String {
        self.values
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(",")
    }

    fn get(&self, key: &str) -> &str {
        &self.values.iter().find(|v| v.0 == key).expect("a parameter of the preconditioner").1
    }

    /// The whole number `key`.
    ///
    /// # Panics
    /// When the preconditioner has no such number.
    pub fn whole(&self, key: &str) -> usize {
        self.get(key).parse().expect("checked when read")
    }

    /// The number `key`.
    ///
    /// # Panics
    /// When the preconditioner has no such number.
    pub fn number(&self, key: &str) -> f64 {
        self.get(key).parse().expect("checked when read")
    }

    /// The word `key`.
    ///
    /// # Panics
    /// When the preconditioner has no such word.
    pub fn word(&self, key: &str) -> &str {
        self.get(key)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(min, max) => write!(f, "{min} to {max}"),
            Self::Number(min, max) => write!(f, "above {min} and below {max}"),
            Self::Words(words) => f.write_str(&words.join(" or ")),
        }
    }
}

impl Range {
    /// `value` as it is always written.
    fn canonical(self, name: &str, key: &str, value: &str) -> Result<String> {
        let outside = |range: String| {
            Error::input(format!(
                "`{name}`: `{key}={}` is outside the range: {range}",
                shown(value)
            ))
        };
        match self {
            Self::Whole(min, max) => whole(value, min, max)
                .map(|v| v.to_string())
                .map_err(|_| outside(format!("whole numbers from {min} to {max}"))),
            Self::Number(min, max) => {
                let number = value.parse::<f64>().ok().filter(|v| *v > min && *v < max);
                number
                    .map(|v| shown(&v.to_string()))
                    .ok_or_else(|| outside(format!("above {min} and below {max}")))
            }
            Self::Words(words) if words.contains(&value) => Ok(value.to_owned()),
            Self::Words(words) => {
                Err(Error::unknown(&format!("`{key}` of `{name}`"), value, words))
            }
        }
    }
}

/// The form of a spec.
pub(super) fn usage(name: &str, parameters: &[Parameter]) -> String {
    let keys: Vec<String> = parameters.iter().map(|p| format!("{}=..", p.key)).collect();
    if keys.is_empty() {
        format!("write `{name}`")
    } else {
        format!("write `{name}:{}`", keys.join(","))
    }
}
