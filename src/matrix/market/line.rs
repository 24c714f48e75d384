//! One line at a time, with everything the grammar allows: the reference for the fast path, and
//! the source of every message about a line.

use super::blocks::Fault;
use super::field::{Field, Symmetry};
use super::number;

/// Whether a byte separates words.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// Whether the line is empty or a comment.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().find(|&&b| !is_space(b)).is_none_or(|&b| b == b'%')
}

/// A word of the file as it can be shown in a message: printable and not too long.
pub(super) fn shown(word: &[u8]) -> String {
    const LONGEST: usize = 40;
    let mut text: String = word
        .iter()
        .take(LONGEST)
        .map(|&b| if b.is_ascii_graphic() || b == b' ' { b as char } else { '?' })
        .collect();
    if word.len() > LONGEST {
        text.push_str("..");
    }
    text
}

/// The words of a line with their columns (from 1).
pub(super) struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// The words of `line`.
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    /// Column after the last word taken.
    pub(super) fn column(&self) -> usize {
        self.at + 1
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.line[self.at..];
        let start = self.at + rest.iter().position(|&b| !is_space(b))?;
        let word = &self.line[start..];
        let length = word.iter().position(|&b| is_space(b)).unwrap_or(word.len());
        self.at = start + length;
        Some((start + 1, &word[..length]))
    }
}

/// What the header says about every entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) rows: u32,
    pub(super) cols: u32,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
}

/// The entry on `line`, row and column from 0; `None` on a blank line or comment.
pub(super) fn entry(line: &[u8], rules: &Rules) -> Result<Option<(u32, u32, f64)>, Fault> {
    if is_blank(line) {
        return Ok(None);
    }
    let mut words = Words::new(line);
    let row = position(&mut words, "row", rules.rows)?;
    let col = position(&mut words, "column", rules.cols)?;
    let value = match rules.field {
        Field::Pattern => 1.0,
        Field::Real | Field::Integer => value(&mut words, rules.field)?,
    };
    no_more(&mut words)?;
    let lower = match rules.symmetry {
        Symmetry::General => true,
        Symmetry::Symmetric => row >= col,
        Symmetry::SkewSymmetric => row > col,
    };
    if !lower {
        return Err(above(row + 1, col + 1));
    }
    Ok(Some((row, col, value)))
}

/// The single value on `line` of an array; `None` on a blank line or comment.
pub(super) fn single(line: &[u8], field: Field) -> Result<Option<f64>, Fault> {
    if is_blank(line) {
        return Ok(None);
    }
    let mut words = Words::new(line);
    let value = value(&mut words, field)?;
    no_more(&mut words)?;
    Ok(Some(value))
}

fn position(words: &mut Words<'_>, what: &str, limit: u32) -> Result<u32, Fault> {
    let Some((column, word)) = words.next() else {
        return Err(Fault::new(words.column(), format!("the line ends before the {what}")));
    };
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    let outside = || {
        let message = format!("{what} {} is outside 1..={limit}", shown(word));
        Fault::new(column, message).hint("indices count from 1")
    };
    let unsigned = digits.strip_prefix(b"-").unwrap_or(digits);
    if unsigned.is_empty() || !unsigned.iter().all(u8::is_ascii_digit) {
        let message = format!("`{}` is not a {what} number", shown(word));
        return Err(Fault::new(column, message));
    }
    let parsed = std::str::from_utf8(digits).ok().and_then(|d| d.parse::<u32>().ok());
    match parsed {
        Some(index) if (1..=limit).contains(&index) => Ok(index - 1),
        _ => Err(outside()),
    }
}

fn value(words: &mut Words<'_>, field: Field) -> Result<f64, Fault> {
    let Some((column, word)) = words.next() else {
        return Err(Fault::new(words.column(), "the line ends before the value"));
    };
    let wrong = |what: &str| Fault::new(column, format!("`{}` is {what}", shown(word)));
    if field == Field::Integer {
        let digits = word.strip_prefix(b"+").or(word.strip_prefix(b"-")).unwrap_or(word);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(wrong("not an integer").hint("the header says `integer`"));
        }
    }
    match number::real(word, 0) {
        Some((value, end)) if end == word.len() => {
            if value.is_finite() {
                Ok(value)
            } else {
                Err(wrong("beyond the range of float64"))
            }
        }
        _ => {
            let lower = word.to_ascii_lowercase();
            let bare = lower.strip_prefix(b"-").or(lower.strip_prefix(b"+")).unwrap_or(&lower);
            if bare.starts_with(b"nan") || bare.starts_with(b"inf") {
                return Err(wrong("not finite").hint("the system cannot be solved with it"));
            }
            Err(wrong("not a number"))
        }
    }
}

fn no_more(words: &mut Words<'_>) -> Result<(), Fault> {
    match words.next() {
        None => Ok(()),
        Some((column, word)) => {
            let message = format!("unexpected `{}` after the entry", shown(word));
            Err(Fault::new(column, message))
        }
    }
}

fn above(row: u32, col: u32) -> Fault {
    if row == col {
        let message = format!("diagonal entry ({row}, {col}) in a skew-symmetric file");
        return Fault::new(1, message).hint("the diagonal of a skew-symmetric matrix is zero");
    }
    let message = format!("entry ({row}, {col}) above the diagonal of a symmetric file");
    Fault::new(1, message).hint("only the lower triangle is stored; should the header say general?")
}
