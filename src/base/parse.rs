//! The words of a sweep: lists, inclusive ranges, names and bounded numbers.

use clap::ValueEnum;

use crate::base::error::{Error, Result};

/// Most values that one range may stand for.
const MAX_RANGE: usize = 1000;

/// Splits `a,b,c`. A piece that holds `=` is an option of the piece before it
/// (`convdiff3d:8x8x8,ax=4`) and stays with it.
pub fn pieces(word: &str) -> Result<Vec<String>> {
    let mut list: Vec<String> = Vec::new();
    for piece in word.split(',').map(str::trim) {
        if piece.is_empty() {
            let what =
                if word.trim().is_empty() { "empty list" } else { "empty value in the list" };
            return Err(
                Error::input(format!("{what} `{word}`")).hint("give one value or several: `a,b`")
            );
        }
        match list.last_mut() {
            Some(last) if piece.contains('=') && !piece.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => list.push(piece.to_owned()),
        }
    }
    Ok(list)
}

/// A whole number in `min..=max`, or an inclusive range `a..b` of them.
pub fn count(text: &str, min: usize, max: usize, out: &mut Vec<usize>) -> Result<()> {
    let Some((from, to)) = text.split_once("..") else {
        out.push(whole(text, min, max)?);
        return Ok(());
    };
    let to = to.strip_prefix('=').unwrap_or(to);
    if from.trim().is_empty() || to.trim().is_empty() {
        return Err(Error::input(format!("the range `{text}` lacks an end"))
            .hint(format!("ranges include both ends: `{min}..{}`", min + 3)));
    }
    let (from, to) = (whole(from, min, max)?, whole(to, min, max)?);
    if from > to {
        return Err(Error::input(format!("the range `{text}` is empty"))
            .hint(format!("ranges include both ends and ascend: `{to}..{from}`")));
    }
    if to - from >= MAX_RANGE {
        return Err(Error::input(format!("the range `{text}` holds more than {MAX_RANGE} values")));
    }
    out.extend(from..=to);
    Ok(())
}

/// A whole number in `min..=max`; underscores may group the digits.
pub fn whole(text: &str, min: usize, max: usize) -> Result<usize> {
    let digits = text.trim().replace('_', "");
    let outside = || Error::input(format!("`{}` is outside {min} to {max}", shown(text)));
    match digits.parse::<usize>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        Ok(_) => Err(outside()),
        Err(_) if is_integer(&digits) => Err(outside()),
        Err(_) => Err(Error::input(format!("`{}` is not a whole number", shown(text))).hint(
            format!("a number from {min} to {max}, or a range such as `{min}..{}`", min + 3),
        )),
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A finite number that `accept` accepts; `range` says which those are.
pub fn number(text: &str, range: &str, accept: impl Fn(f64) -> bool) -> Result<f64> {
    let value: f64 = text
        .trim()
        .replace('_', "")
        .parse()
        .map_err(|_| Error::input(format!("`{}` is not a number", shown(text))))?;
    // 1e-400 is not the 0 that float64 makes of it, which may have a meaning of its own
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    if value == 0.0 && mantissa.contains(|digit| ('1'..='9').contains(&digit)) {
        return Err(Error::input(format!("`{}` is too small for float64", text.trim())));
    }
    if value.is_finite() && accept(value) {
        // -0.0 and 0.0 are one setting
        Ok(value + 0.0)
    } else {
        Err(Error::input(format!("`{}` is outside the range: {range}", shown(text))))
    }
}

/// A number as it is shown: one of more digits than any float64 needs in its short form, other long words
/// by their beginning.
pub fn shown(text: &str) -> String {
    /// Those of `-2.2250738585072014e-308`.
    const NEEDED: usize = 24;
    const LONGEST: usize = 60;
    let text = text.trim();
    match text.replace('_', "").parse::<f64>() {
        _ if text.len() <= NEEDED => text.to_owned(),
        Ok(value) if value.is_finite() && text.contains(['.', 'e', 'E']) => number_text(value),
        _ if text.chars().count() > LONGEST => {
            let start: String = text.chars().take(LONGEST).collect();
            format!("{start}..")
        }
        _ => text.to_owned(),
    }
}

/// One of the names of an enumeration.
pub fn choice<T: ValueEnum>(what: &str, text: &str) -> Result<T> {
    T::from_str(text, false).map_err(|_| {
        let names = choices::<T>();
        Error::unknown(what, text, &names.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

/// The names of an enumeration.
pub fn choices<T: ValueEnum>() -> Vec<String> {
    T::value_variants().iter().map(choice_name).collect()
}

/// The name of one value of an enumeration.
pub(crate) fn choice_name<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}

/// One of the names in a registry of `(name, summary)`.
pub fn registered(what: &str, text: &str, registry: &[(&str, &str)]) -> Result<String> {
    let names: Vec<&str> = registry.iter().map(|(name, _)| *name).collect();
    if names.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(Error::unknown(what, text, &names))
    }
}

/// Shortest text that reads back as `value`: `0.25`, `1e-6`.
pub(crate) fn number_text(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// Has files hold values of a type as these are written and read:
/// `#[serde(into = "String", try_from = "String")]`.
macro_rules! as_text {
    ($type:ty) => {
        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = $crate::base::error::Error;

            fn try_from(text: String) -> $crate::base::error::Result<Self> {
                text.parse()
            }
        }
    };
}
pub(crate) use as_text;

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Result<Vec<usize>> {
        let mut out = Vec::new();
        count(text, 1, 5000, &mut out).map(|()| out)
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(counts("2..5").unwrap(), [2, 3, 4, 5]);
        assert_eq!(counts("2..=5").unwrap(), [2, 3, 4, 5]);
        assert_eq!(counts("3..3").unwrap(), [3]);
        assert_eq!(counts("2_000").unwrap(), [2000]);
    }

    #[test]
    fn bad_counts_say_what_is_wrong() {
        let text = |t: &str| counts(t).unwrap_err().to_string();
        assert_eq!(text("5..2"), "the range `5..2` is empty");
        assert_eq!(text("1..2000"), "the range `1..2000` holds more than 1000 values");
        assert_eq!(text("0"), "`0` is outside 1 to 5000");
        assert_eq!(text("-3"), "`-3` is outside 1 to 5000");
        assert_eq!(
            text("99999999999999999999999"),
            "`99999999999999999999999` is outside 1 to 5000"
        );
        assert_eq!(text("2.5"), "`2.5` is not a whole number");
        assert_eq!(text("1.."), "the range `1..` lacks an end");
        assert_eq!(text("..=3"), "the range `..=3` lacks an end");
        assert_eq!(text("two"), "`two` is not a whole number");
    }

    #[test]
    fn numbers_of_many_digits_are_shown_in_short() {
        for (text, short) in [
            ("0.25", "0.25"),
            ("-2.2250738585072014e-308", "-2.2250738585072014e-308"),
            ("0.1000000000000000055511151231257827021181583404541015625", "0.1"),
            ("0.00000000000000000000000000000000000000000000001", "1e-47"),
            ("100000000000000000000000000000000000000000000000.5", "1e47"),
            ("99999999999999999999999999", "99999999999999999999999999"),
        ] {
            assert_eq!(shown(text), short);
        }
        assert_eq!(shown(&"x".repeat(70)), format!("{}..", "x".repeat(60)));
    }

    #[test]
    fn options_stay_with_their_generator() {
        let list = pieces("a:8x8,p=1,q=2, b").unwrap();
        assert_eq!(list, ["a:8x8,p=1,q=2", "b"]);
        assert_eq!(pieces("").unwrap_err().to_string(), "empty list ``");
        assert_eq!(pieces("1,,2").unwrap_err().to_string(), "empty value in the list `1,,2`");
    }

    #[test]
    fn numbers_are_finite_and_in_range() {
        let open = |t: &str| number(t, "above 0 and below 1", |v| v > 0.0 && v < 1.0);
        assert_eq!(open("1e-6").unwrap(), 1e-6);
        assert_eq!(
            open("nan").unwrap_err().to_string(),
            "`nan` is outside the range: above 0 and below 1"
        );
        assert_eq!(
            open("1").unwrap_err().to_string(),
            "`1` is outside the range: above 0 and below 1"
        );
        assert_eq!(open("x").unwrap_err().to_string(), "`x` is not a number");
        let closed = |t: &str| number(t, "0 or above", |v| v >= 0.0).map_err(|e| e.to_string());
        assert_eq!(closed("1e-400"), Err("`1e-400` is too small for float64".into()));
        assert_eq!(closed(" 0.2E-999"), Err("`0.2E-999` is too small for float64".into()));
        assert_eq!(
            (closed("0"), closed("0.0e7"), closed("1e-310")),
            (Ok(0.0), Ok(0.0), Ok(1e-310))
        );
        for value in [0.0, 1e-6, 0.25, 4.8e-6, 1e300, 123_456.0] {
            assert_eq!(number_text(value).parse::<f64>().unwrap(), value);
        }
        assert_eq!(number_text(1e-6), "1e-6");
    }
}
