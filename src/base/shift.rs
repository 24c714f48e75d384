//! The diagonal shift of a factorisation, as flags, TOML and records write it: a number or `search`.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

use super::error::{Error, Result};
use super::parse::{number, number_text};

/// What is added to the diagonal before a factorisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shift {
    /// So many times the largest diagonal entry.
    Fixed(f64),
    /// The least multiple of the diagonal that is tried and makes a usable factorisation.
    Search,
}

/// The word for [`Shift::Search`].
const SEARCH: &str = "search";

impl Shift {
    /// The fixed shift; 0 where it is searched, for that is done on a matrix that is shifted already.
    pub fn fixed(self) -> f64 {
        match self {
            Self::Fixed(shift) => shift,
            Self::Search => 0.0,
        }
    }
}

impl Default for Shift {
    fn default() -> Self {
        Self::Fixed(0.0)
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(shift) => f.write_str(&number_text(*shift)),
            Self::Search => f.write_str(SEARCH),
        }
    }
}

impl FromStr for Shift {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.trim() == SEARCH {
            return Ok(Self::Search);
        }
        let read = number(text, "0 to 1e6", |v| (0.0..=1e6).contains(&v));
        read.map(Self::Fixed).map_err(|e| e.hint("a number, or `search`"))
    }
}

impl Serialize for Shift {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(shift) => to.serialize_f64(*shift),
            Self::Search => to.serialize_str(SEARCH),
        }
    }
}

impl<'a> Deserialize<'a> for Shift {
    fn deserialize<D: Deserializer<'a>>(from: D) -> std::result::Result<Self, D::Error> {
        /// Numbers of JSON, words of CSV.
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Shift;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a shift: a number or `search`")
            }
            fn visit_f64<E>(self, shift: f64) -> std::result::Result<Shift, E> {
                Ok(Shift::Fixed(shift))
            }
            fn visit_u64<E>(self, shift: u64) -> std::result::Result<Shift, E> {
                Ok(Shift::Fixed(shift as f64))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Shift, E> {
                text.parse().map_err(|e: Error| E::custom(e.message()))
            }
        }
        from.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_a_number_or_a_word() {
        for (text, shift) in
            [("0", Shift::Fixed(0.0)), ("0.25", Shift::Fixed(0.25)), ("search", Shift::Search)]
        {
            assert_eq!(text.parse::<Shift>(), Ok(shift));
            assert_eq!(shift.to_string(), text);
            let json = serde_json::to_string(&shift).unwrap();
            assert_eq!(serde_json::from_str::<Shift>(&json).unwrap(), shift);
            assert_eq!(serde_json::from_str::<Shift>(&format!("\"{text}\"")).unwrap(), shift);
        }
        assert_eq!(serde_json::from_str::<Shift>("1").unwrap(), Shift::Fixed(1.0));
        let bad = |text: &str| text.parse::<Shift>().unwrap_err().to_string();
        assert_eq!(bad("-0.1"), "`-0.1` is outside the range: 0 to 1e6");
        assert_eq!(bad("NaN"), "`NaN` is outside the range: 0 to 1e6");
        assert_eq!(bad("find"), "`find` is not a number");
    }
}
