//! Matrices of entries that come in any order, from files that have no lines.

use super::assemble::{
    Assembled, Assembly, Entry, LARGEST, MANY, Part, Plan, Ranges, check_nearly_empty, infinite,
    summed, too_large,
};
use super::csr::Csr;
use super::read::{Matrix, Symmetry};
use crate::base::error::{Error, Result};
use crate::base::measure::check_memory;
use crate::base::memory;

/// Entries that are handed on at a time.
const PIECE: usize = 1 << 16;

/// A matrix in the making. Entries of one place are added up in the order in which they come.
pub(super) struct Gather {
    size: [usize; 2],
    assembly: Assembly,
    ranges: Ranges,
    piece: Vec<Entry>,
}

impl Gather {
    /// No entries yet, of about so many to come.
    ///
    /// # Errors
    /// When the matrix is empty, or larger than indices of 32 bits reach.
    pub(super) fn new(size: [usize; 2], entries: usize) -> Result<Self> {
        check_size(size)?;
        let ranges = Ranges::new(size[0], entries);
        let plan =
            Plan { size, first: 0, ranges, capacity: 0, mirrored: false, most: None, many: MANY };
        Ok(Self { size, assembly: Assembly::new(plan)?, ranges, piece: Vec::new() })
    }

    /// Adds an entry, row and column from 0.
    ///
    /// # Errors
    /// When it is outside of the matrix or not finite, or there is no memory.
    pub(super) fn push(&mut self, row: u32, col: u32, value: f64) -> Result<()> {
        let [rows, cols] = self.size;
        if row as usize >= rows || col as usize >= cols {
            let message =
                format!("an entry at row {row}, column {col} of a {rows} x {cols} matrix");
            return Err(Error::input(message).hint("rows and columns count from 0"));
        }
        if !value.is_finite() {
            return Err(not_finite(row, col, value));
        }
        self.piece.push(Entry { row, col, value });
        if self.piece.len() == PIECE { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<()> {
        let piece = std::mem::take(&mut self.piece);
        self.assembly.add(Part::new(piece, self.ranges))
    }

    /// The matrix.
    ///
    /// # Errors
    /// When nearly every row is empty, a sum is not finite, or there is no memory.
    pub(super) fn finish(mut self) -> Result<Matrix> {
        self.hand_on()?;
        check_nearly_empty(self.size[0], self.assembly.entries())?;
        check_memory(4 * self.size[0])?;
        let Assembled::Matrix(matrix, added) = self.assembly.finish()? else {
            unreachable!("nothing is too much")
        };
        match infinite(&matrix) {
            Some(place) => Err(too_large(place)),
            None => Ok(general(matrix, summed(added))),
        }
    }
}

/// The matrix of rows: `row_ptr` has the start of each and the end of the last. Entries of one place are added up.
///
/// # Errors
/// As [`Gather`]; the starts have to be in order, and `col_ind` and `values` at least as long as the last says.
pub(super) fn of_rows(
    size: [usize; 2],
    row_ptr: Vec<u32>,
    mut col_ind: Vec<u32>,
    mut values: Vec<f64>,
) -> Result<Matrix> {
    check_size(size)?;
    let entries = *row_ptr.last().unwrap_or(&0) as usize;
    let row = |i: usize| row_ptr[i] as usize..row_ptr[i + 1] as usize;
    let increases = |i: usize| col_ind[row(i)].is_sorted_by(|a, b| a < b);
    if (0..size[0]).all(increases) {
        col_ind.truncate(entries);
        values.truncate(entries);
        let matrix = Csr::new(size[0], size[1], row_ptr, col_ind, values)?;
        return match infinite(&matrix) {
            Some([i, j]) => {
                Err(not_finite(i, j, matrix.get(i as usize, j as usize).unwrap_or(0.0)))
            }
            None => Ok(general(matrix, None)),
        };
    }
    let mut gather = Gather::new(size, entries)?;
    for i in 0..size[0] {
        for at in row(i) {
            gather.push(i as u32, col_ind[at], values[at])?;
        }
    }
    gather.finish()
}

/// An empty array with room for so many numbers of a file, which has them.
///
/// # Errors
/// When there is no memory for them.
pub(super) fn room<T>(count: usize) -> Result<Vec<T>> {
    let bytes = size_of::<T>().saturating_mul(count);
    check_memory(bytes)?;
    memory::try_with_capacity(count).ok_or_else(|| {
        let gb = bytes as f64 / 1e9;
        Error::memory(format!("the system refused {gb:.1} GB for the matrix"))
    })
}

/// The remark on zeros that were left out of `what`.
pub(super) fn zeros_left_out(zeros: usize, what: &str) -> Option<String> {
    let plural = if zeros == 1 { "" } else { "s" };
    (zeros > 0).then(|| format!("{zeros} zero{plural} of the {what} left out"))
}

/// Refuses a size that no matrix here can have.
///
/// # Errors
/// Says which size it is.
pub(super) fn check_size([rows, cols]: [usize; 2]) -> Result<()> {
    if rows == 0 || cols == 0 {
        return Err(Error::input(format!("the matrix is empty: {rows} x {cols}")));
    }
    for (count, what) in [(rows, "rows"), (cols, "columns")] {
        if count > LARGEST {
            return Err(Error::input(format!("{count} {what}: the limit is {LARGEST}")));
        }
    }
    Ok(())
}

fn general(matrix: Csr, remark: Option<String>) -> Matrix {
    Matrix { matrix, symmetry: Symmetry::General, remarks: remark.into_iter().collect() }
}

fn not_finite(row: u32, col: u32, value: f64) -> Error {
    Error::input(format!("the entry in row {row}, column {col} is {value} (both from 0)"))
        .hint("the system cannot be solved with it")
}
