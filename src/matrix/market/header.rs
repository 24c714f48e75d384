//! The first lines of a file: banner and sizes.

use super::blocks::{Fault, Text};
use super::field::{Field, Symmetry};
use super::line::{self, Words};
use crate::base::error::Result;

/// How the entries are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `row column value`, in any order.
    Coordinate,
    /// All values, column by column.
    Array,
}

/// Banner and size line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) layout: Layout,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Entries that follow.
    pub(super) entries: usize,
    /// Line of the sizes.
    pub(super) line: usize,
}

const EXAMPLE: &str =
    "the first line must read like `%%MatrixMarket matrix coordinate real general`";

/// Reads the lines up to and including the size line.
pub(super) fn read(text: &mut Text) -> Result<Header> {
    let first = text.line()?.unwrap_or_default();
    let (layout, field, symmetry) = banner(&first).map_err(|f| text.error_at_last(f))?;
    loop {
        let Some(line) = text.line()? else {
            return Err(text
                .error_here("the file ends before the size line")
                .hint("after the comments must follow `rows columns entries`"));
        };
        if !line::is_blank(&line) {
            let sizes = sizes(&line, layout, symmetry).map_err(|f| text.error_at_last(f))?;
            let [rows, cols, entries] = sizes;
            if symmetry != Symmetry::General && rows != cols {
                let message = format!("a symmetric matrix must be square, not {rows} x {cols}");
                return Err(text.error_at_last(Fault::new(1, message)));
            }
            let line = text.lines();
            return Ok(Header { layout, field, symmetry, rows, cols, entries, line });
        }
    }
}

fn banner(line: &[u8]) -> Result<(Layout, Field, Symmetry), Fault> {
    let mut words = Words::new(line);
    let (column, mark) = words.next().unwrap_or((1, b""));
    if column != 1 || !mark.eq_ignore_ascii_case(b"%%MatrixMarket") {
        let start = line::shown(&line[..line.len().min(40)]);
        let what = format!("not a Matrix Market file: its first line is `{start}`");
        return Err(Fault::new(1, what).hint(EXAMPLE));
    }
    choose(&mut words, "object", &[("matrix", ())])?;
    let layout = choose(
        &mut words,
        "layout",
        &[("coordinate", Layout::Coordinate), ("array", Layout::Array)],
    )?;
    let field = choose(
        &mut words,
        "field",
        &[
            ("real", Field::Real),
            ("double", Field::Real),
            ("integer", Field::Integer),
            ("pattern", Field::Pattern),
        ],
    )?;
    let symmetry = choose(
        &mut words,
        "symmetry",
        &[
            ("general", Symmetry::General),
            ("symmetric", Symmetry::Symmetric),
            ("skew-symmetric", Symmetry::SkewSymmetric),
            ("hermitian", Symmetry::Symmetric),
        ],
    )?;
    if let Some((column, word)) = words.next() {
        return Err(Fault::new(column, format!("unexpected `{}`", line::shown(word))));
    }
    if layout == Layout::Array && field == Field::Pattern {
        return Err(Fault::new(1, "an array has values: it must be real or integer"));
    }
    Ok((layout, field, symmetry))
}

/// The meaning of the next word of the banner, in any case of letters.
fn choose<T: Copy>(words: &mut Words<'_>, what: &str, known: &[(&str, T)]) -> Result<T, Fault> {
    let Some((column, word)) = words.next() else {
        let message = format!("the first line ends before the {what}");
        return Err(Fault::new(words.column(), message).hint(EXAMPLE));
    };
    if let Some((_, value)) = known.iter().find(|(k, _)| word.eq_ignore_ascii_case(k.as_bytes())) {
        return Ok(*value);
    }
    let names: Vec<&str> = known.iter().map(|(k, _)| *k).collect();
    let shown = line::shown(word);
    if what == "field" && word.eq_ignore_ascii_case(b"complex") {
        return Err(Fault::new(column, "complex values are not supported")
            .hint("only real systems are solved here"));
    }
    let message = format!("unknown {what} `{shown}`, expected {}", names.join(", "));
    Err(Fault::new(column, message).hint(EXAMPLE))
}

/// Rows, columns and entries; an array has no third number.
fn sizes(line: &[u8], layout: Layout, symmetry: Symmetry) -> Result<[usize; 3], Fault> {
    let names = ["rows", "columns", "entries"];
    let count = if layout == Layout::Coordinate { 3 } else { 2 };
    let mut words = Words::new(line);
    let mut sizes = [0_usize; 3];
    for (size, name) in sizes.iter_mut().zip(names).take(count) {
        let Some((column, word)) = words.next() else {
            let message = format!("the size line ends before the number of {name}");
            return Err(Fault::new(words.column(), message)
                .hint("it must read `rows columns entries` (no entries for an array)"));
        };
        let parsed = std::str::from_utf8(word).ok().and_then(|w| w.parse::<u64>().ok());
        let Some(value) = parsed else {
            let shown = line::shown(word);
            if !word.is_empty() && word.iter().all(u8::is_ascii_digit) {
                let message = format!("{shown} {name}: the limit is {}", u32::MAX);
                return Err(Fault::new(column, message));
            }
            return Err(Fault::new(column, format!("`{shown}` is not a number of {name}")));
        };
        if value > u64::from(u32::MAX) {
            return Err(Fault::new(column, format!("{value} {name}: the limit is {}", u32::MAX)));
        }
        *size = value as usize;
    }
    if let Some((column, word)) = words.next() {
        let shown = line::shown(word);
        return Err(Fault::new(column, format!("unexpected `{shown}` on the size line")));
    }
    let [rows, cols, _] = sizes;
    if rows == 0 || cols == 0 {
        return Err(Fault::new(1, format!("the matrix is empty: {rows} x {cols}")));
    }
    if layout == Layout::Array {
        // of a symmetric one the columns of the lower triangle
        sizes[2] = match symmetry {
            Symmetry::General => rows * cols,
            Symmetry::Symmetric => rows * (rows + 1) / 2,
            Symmetry::SkewSymmetric => rows * (rows - 1) / 2,
        };
    }
    Ok(sizes)
}
