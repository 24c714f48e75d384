//! Vectors: `array` files, and `coordinate` files with one column in use.

use crate::base::choices::ReadAs;
use crate::base::error::Result;
use crate::base::measure::check_memory;

use super::blocks::{Fault, Part, Text};
use super::field::Field;
use super::header::{self, Layout};
use super::{entries, line, number};

/// Values of a coordinate file that are taken at a time.
const PIECE: usize = 1 << 16;

/// A vector as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// The values.
    pub values: Vec<f64>,
    /// Columns of the file.
    pub columns: usize,
    /// Array or coordinate.
    pub layout: Layout,
    /// What a reader of the results has to know (which of several columns this is).
    pub remarks: Vec<String>,
}

/// The values of one block.
struct Values {
    values: Vec<f64>,
    lines: usize,
}

impl Part for Values {
    fn stored(&self) -> usize {
        self.values.len()
    }

    fn lines(&self) -> usize {
        self.lines
    }
}

/// Reads the chosen column.
pub(super) fn read(text: Text, column: Option<usize>) -> Result<Vector> {
    let mut values = Vec::new();
    let take = &mut |piece: &[f64]| values.extend_from_slice(piece);
    let read = read_to(text, column, true, take)?;
    Ok(Vector { values, ..read })
}

/// The same, where `take` gets the values in pieces: those that are returned are none. They may be too many for the
/// memory, unless all are to be kept as a `whole`.
pub(super) fn read_to(
    mut text: Text,
    column: Option<usize>,
    whole: bool,
    take: &mut dyn FnMut(&[f64]),
) -> Result<Vector> {
    let header = header::read(&mut text)?;
    let (rows, columns) = (header.rows, header.cols);
    let chosen = column.unwrap_or(0);
    if chosen >= columns {
        let message = format!("there is no column {} in {rows} x {columns}", chosen + 1);
        return Err(text.error_here(message));
    }
    let mut remarks = Vec::new();
    match header.layout {
        Layout::Array => {
            if whole {
                check_memory(8 * text.at_most(rows))
                    .map_err(|e| e.at(text.name(), header.line, None))?;
            }
            let mut before = 0;
            let column = chosen * rows..(chosen + 1) * rows;
            let parse = |block: &[u8], limit| parse(block, header.field, limit);
            text.parse(header.entries, parse, |part: Values| {
                let of = |place: usize| place.clamp(before, before + part.values.len()) - before;
                take(&part.values[of(column.start)..of(column.end)]);
                before += part.values.len();
                Ok(())
            })?;
        }
        Layout::Coordinate => {
            let matrix = entries::after(text, &header, ReadAs::Expanded)?;
            remarks = matrix.remarks;
            let value = |i| matrix.matrix.get(i, chosen).unwrap_or(0.0);
            for first in (0..rows).step_by(PIECE) {
                let piece: Vec<f64> = (first..rows.min(first + PIECE)).map(value).collect();
                take(&piece);
            }
        }
    }
    if columns > 1 {
        remarks.push(format!("column {} of {columns} taken", chosen + 1));
    }
    Ok(Vector { values: Vec::new(), columns, layout: header.layout, remarks })
}

fn parse(block: &[u8], field: Field, limit: usize) -> Result<Values, Fault> {
    let mut part = Values { values: Vec::new(), lines: 0 };
    let mut at = 0;
    while at < block.len() {
        let fast = number::real(block, at)
            .filter(|&(v, end)| field == Field::Real && v.is_finite() && block[end] == b'\n');
        let (value, next) = if let Some((value, end)) = fast {
            (Some(value), end + 1)
        } else {
            let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |e| at + e);
            let value = line::single(&block[at..end], field).map_err(|f| f.down(part.lines))?;
            (value, end + 1)
        };
        if let Some(value) = value {
            if part.values.len() == limit {
                return Err(entries::surplus().down(part.lines));
            }
            part.values.push(value);
        }
        part.lines += 1;
        at = next;
    }
    Ok(part)
}
