//! Vectors: `array` files, and `coordinate` files with one column in use.

use crate::base::choices::ReadAs;
use crate::base::error::Result;
use crate::base::measure::check_memory;

use super::blocks::{Fault, Text};
use super::entries;
use super::field::Symmetry;
use super::header::{self, Layout};
use super::values::{self, Values};

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
        Layout::Array if header.symmetry != Symmetry::General => {
            let message = "a symmetric array is a matrix, not a vector";
            return Err(text.error_at_last(Fault::new(1, message)));
        }
        Layout::Array => {
            if whole {
                check_memory(8 * text.at_most(rows))
                    .map_err(|e| e.at(text.name(), header.line, None))?;
            }
            let mut before = 0;
            let column = chosen * rows..(chosen + 1) * rows;
            let parse = |block: &[u8], limit| values::parse(block, header.field, limit);
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
