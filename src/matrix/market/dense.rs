//! Matrices in array files: the entries that are not zero are kept.

use crate::base::choices::ReadAs;
use crate::base::error::{Error, Result};
use crate::matrix::gather::{Gather, zeros_left_out};

use super::Matrix;
use super::blocks::Text;
use super::field::Symmetry;
use super::header::Header;
use super::values::{self, Values};

/// Reads what follows the header of an array file.
///
/// # Errors
/// When it has one column, or is broken.
pub(super) fn after(mut text: Text, header: &Header, read_as: ReadAs) -> Result<Matrix> {
    let Header { rows, cols, symmetry, .. } = *header;
    if cols == 1 && symmetry == Symmetry::General {
        return Err(not_a_matrix(&text));
    }
    let mirrored = read_as == ReadAs::Expanded && symmetry != Symmetry::General;
    let sign = if symmetry == Symmetry::SkewSymmetric { -1.0 } else { 1.0 };
    // first row of a column
    let first = |col: usize| match symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric => col,
        Symmetry::SkewSymmetric => col + 1,
    };
    let mut gather = Gather::new([rows, cols], text.at_most(header.entries))?;
    let (mut row, mut col, mut zeros) = (first(0), 0, 0);
    let parse = |block: &[u8], limit| values::parse(block, header.field, limit);
    text.parse(header.entries, parse, |part: Values| {
        for &value in &part.values {
            if value == 0.0 {
                zeros += 1;
            } else {
                gather.push(row as u32, col as u32, value)?;
                if mirrored && row != col {
                    gather.push(col as u32, row as u32, sign * value)?;
                }
            }
            row += 1;
            if row == rows {
                col += 1;
                row = first(col);
            }
        }
        Ok(())
    })?;
    let named = |e: Error| e.at(text.name(), header.line, None);
    let mut read = gather.finish().map_err(named)?;
    read.symmetry = symmetry;
    read.remarks.extend(zeros_left_out(zeros, &format!("{rows} x {cols} array")));
    Ok(read)
}

/// The error for an array of one column.
fn not_a_matrix(text: &Text) -> Error {
    text.error_here("an array file holds a vector, not a sparse matrix")
        .hint("name it as a right-hand side: `file:PATH`")
}
