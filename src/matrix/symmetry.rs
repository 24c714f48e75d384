//! Whether a matrix is symmetric, and by how much it is not.

use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

use super::{Csr, Sums};
use crate::base::error::Result;
use crate::base::threads::Threads;

/// Largest [`Asymmetry::relative`] that is taken for rounding unless a case says otherwise.
pub(crate) const SYMMETRY_TOLERANCE: f64 = 1e-12;

/// An entry that is not that of its mirror place. Written out, rows and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Asymmetry {
    /// Row, from 0.
    #[serde(serialize_with = "from_one")]
    pub row: usize,
    /// Column, from 0.
    #[serde(serialize_with = "from_one")]
    pub column: usize,
    /// The entry.
    pub value: f64,
    /// The one across the diagonal, 0 where none is stored.
    pub mirrored: f64,
    /// Their difference over the largest entry of row `row` or that of row `column`, whichever is smaller,
    /// or over the larger of both entries where that is more: terms that cancel leave the rounding of what
    /// they were. Infinite where a value is no number.
    pub relative: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn from_one<S: Serializer>(place: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(*place as u64 + 1)
}

impl Asymmetry {
    /// Of two the one that is further off, else the one that comes first in the matrix.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let first = (self.row, self.column) < (other.row, other.column);
        let further = self.relative > other.relative;
        if further || (self.relative == other.relative && first) { self } else { other }
    }

    /// `(1, 2) is -0.75, (2, 1) is -1.25`
    pub fn pair(&self) -> String {
        let (i, j) = (self.row + 1, self.column + 1);
        format!("({i}, {j}) is {}, ({j}, {i}) is {}", self.value, self.mirrored)
    }

    /// Says that it was found and taken for rounding: `what` was done with the matrix.
    pub fn accepted(&self, what: &str) -> String {
        let (i, j) = (self.row + 1, self.column + 1);
        format!("asymmetry of {:.1e} at ({i}, {j}) taken for rounding, {what}", self.relative)
    }
}

impl fmt::Display for Asymmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the matrix is not symmetric: {}, {:.1e} apart", self.pair(), self.relative)
    }
}

impl Csr {
    /// The entry that differs most from the one across the diagonal, the first of several; `None` where
    /// none differs at all. Entries that are not stored count as zero.
    pub fn asymmetry(&self) -> Option<Asymmetry> {
        self.asymmetry_of(0..self.rows())
    }

    /// The same of some rows, whose columns are rows that are known.
    pub(crate) fn asymmetry_of(&self, rows: Range<usize>) -> Option<Asymmetry> {
        let largest =
            |row: usize| self.row(row).1.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        let largest: Vec<f64> = Threads::Pool.map(self.rows(), 1024, largest);
        let of_row = |worst: Option<Asymmetry>, i: usize| {
            let row = rows.start + i;
            let (columns, values) = self.row(row);
            let of_entry = |(&column, &value): (&u32, &f64)| {
                let column = column as usize;
                let mirrored = self.get(column, row).unwrap_or(0.0);
                if value == mirrored {
                    return None;
                }
                let beside = largest[row].min(largest[column]);
                let relative =
                    (value - mirrored).abs() / value.abs().max(mirrored.abs()).max(beside);
                let relative = if relative.is_nan() { f64::INFINITY } else { relative };
                Some(Asymmetry { row, column, value, mirrored, relative })
            };
            worst
                .into_iter()
                .chain(columns.iter().zip(values).filter_map(of_entry))
                .reduce(Asymmetry::worse)
        };
        let worse = |a: Option<Asymmetry>, b| a.into_iter().chain(b).reduce(Asymmetry::worse);
        Threads::Pool.fold(rows.len(), 1024, || None, of_row, worse)
    }

    /// The same where it is larger than `tolerance`, relative as in [`Asymmetry::relative`].
    pub fn asymmetry_beyond(&self, tolerance: f64) -> Option<Asymmetry> {
        self.asymmetry().filter(|found| found.relative > tolerance)
    }

    /// `(A + A') / 2`, symmetric to the last bit.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn averaged(&self, threads: Threads) -> Result<Self> {
        self.mean(&self.transposed(), threads)
    }

    /// `(A + B) / 2` of two matrices of the same order.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn mean(&self, other: &Self, threads: Threads) -> Result<Self> {
        self.by_rows_like(
            threads,
            || Sums::new(self.cols()),
            |sums, i, to| {
                for m in [self, other] {
                    sums.add_row(m.row(i), 0.5);
                }
                sums.finish(to);
                Ok(())
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::samples::matrix;

    /// `[100 v 0; w 1 x; 0 y 1]`, with places of zeros left out.
    fn small(v: f64, w: f64, x: f64, y: f64) -> Csr {
        let rows =
            [vec![(0, 100.0), (1, v)], vec![(0, w), (1, 1.0), (2, x)], vec![(1, y), (2, 1.0)]];
        let mut row_ptr = vec![0];
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            for (j, value) in row.into_iter().filter(|(_, value)| *value != 0.0) {
                columns.push(j);
                values.push(value);
            }
            row_ptr.push(columns.len() as u32);
        }
        Csr::new(3, 3, row_ptr, columns, values).unwrap()
    }

    #[test]
    fn the_largest_asymmetry_is_found_and_named() {
        assert_eq!(matrix("poisson3d:9x8x7").asymmetry(), None);
        let a = matrix("convdiff3d:4x3x2,px=0.25");
        let found = a.asymmetry().unwrap();
        assert_eq!(found.relative, 0.5 / 6.0);
        assert_eq!(
            found.to_string(),
            "the matrix is not symmetric: (1, 2) is -0.75, (2, 1) is -1.25, 8.3e-2 apart"
        );
        // of two the larger
        let found = small(0.5, 0.25, 3.0, 1.0).asymmetry().unwrap();
        assert_eq!((found.row, found.column, found.relative), (1, 2, 2.0 / 3.0));
    }

    #[test]
    fn differences_are_relative_to_the_pair_or_the_smaller_of_two_rows() {
        let relative = |a: Csr| a.asymmetry().map_or(0.0, |found| found.relative);
        // the rows' largest are 100 and 1: what is left of cancelled ones counts beside 1
        assert_eq!(relative(small(1e-14, 0.0, 0.0, 0.0)), 1e-14);
        assert_eq!(relative(small(0.25, 0.5, 0.0, 0.0)), 0.25);
        // the pair is larger than what else its rows hold
        assert_eq!(relative(small(0.0, 0.0, 8.0, 4.0)), 0.5);
        assert_eq!(relative(small(f64::NAN, 1.0, 0.0, 0.0)), f64::INFINITY);
        let a = small(1e-14, 0.0, 0.0, 0.0);
        assert_eq!(a.asymmetry_beyond(1e-14), None);
        assert!(a.asymmetry_beyond(9e-15).is_some());
        assert_eq!(
            a.asymmetry().unwrap().accepted("used as it is"),
            "asymmetry of 1.0e-14 at (1, 2) taken for rounding, used as it is"
        );
    }

    #[test]
    fn averages_are_symmetric_to_the_last_bit() {
        let a = small(0.1, 0.3, 0.0, 1e-300).averaged(Threads::One).unwrap();
        assert_eq!((a.asymmetry(), a.get(0, 1), a.get(1, 2)), (None, Some(0.2), Some(5e-301)));
        assert_eq!((a.nnz(), a.get(0, 0)), (7, Some(100.0)));
    }
}
