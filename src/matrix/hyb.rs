//! HYB: most entries in ELLPACK, those of exceptionally long rows in COO (Bell and Garland 2009).

use std::sync::Arc;

use super::storage::{Storage, TILE};
use super::{Coo, Csr};
use crate::base::choices::Format;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;

/// A matrix in HYB.
///
/// The ELLPACK part has as many columns as at least a third of the rows can fill (Al-Mouhamed and
/// Khan 2017, section 4): a row's first entries, its later ones are in the COO part. Both arrays of
/// the ELLPACK part are column-major within tiles of [`TILE`] rows. A place without an entry holds a zero and the column of the
/// entry before it, so that no other part of x is read for it. As every column is filled to a third,
/// at most three numbers are stored for an entry.
pub struct Hyb {
    rows: usize,
    columns: usize,
    width: usize,
    col_ind: Buffer<u32>,
    values: Buffer<f64>,
    rest: Coo,
}

impl Hyb {
    /// Converts `a`.
    pub(crate) fn from_csr(a: &Csr) -> Self {
        let (rows, width) = (a.rows(), width(a));
        let (mut col_ind, mut values) =
            (Buffer::<u32>::zeros(rows * width), Buffer::<f64>::zeros(rows * width));
        let of_tile = (TILE * width).max(1);
        let tiles = col_ind.chunks_mut(of_tile).zip(values.chunks_mut(of_tile)).enumerate();
        Threads::Pool.each(tiles.collect(), |(tile, (col_ind, values))| {
            let height = col_ind.len() / width;
            for r in 0..height {
                let (cols, row) = a.row(tile * TILE + r);
                let mut nearest = cols.first().copied().unwrap_or(0);
                for c in 0..width {
                    if let Some(&j) = cols.get(c) {
                        nearest = j;
                        values[c * height + r] = row[c];
                    }
                    col_ind[c * height + r] = nearest;
                }
            }
        });
        let mut rest = Coo::default();
        for i in 0..rows {
            let (cols, row) = a.row(i);
            for (&j, &v) in cols.iter().zip(row).skip(width) {
                rest.push(i, j, v);
            }
        }
        Self { rows, columns: a.cols(), width, col_ind, values, rest }
    }

    /// Number of columns of the matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Entries of a row in the ELLPACK part.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Columns of the ELLPACK part, tile by tile, column-major.
    pub fn col_ind(&self) -> &[u32] {
        &self.col_ind
    }

    /// Values of the ELLPACK part, tile by tile, column-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The COO part.
    pub fn rest(&self) -> &Coo {
        &self.rest
    }
}

impl Storage for Hyb {
    fn format(&self) -> Format {
        Format::Hyb
    }
    fn rows(&self) -> usize {
        self.rows
    }
    fn stored(&self) -> usize {
        self.values.len() + self.rest.len()
    }
    fn bytes(&self) -> usize {
        12 * self.values.len() + self.rest.bytes()
    }
    fn set_values(&mut self, a: &Arc<Csr>) {
        *self = Self::from_csr(a);
    }
}

/// The largest length that at least a third of the rows have.
fn width(a: &Csr) -> usize {
    let mut lengths: Vec<u32> =
        Threads::Pool.map(a.rows(), 1, |i| a.row_ptr()[i + 1] - a.row_ptr()[i]);
    if lengths.is_empty() {
        return 0;
    }
    let third = lengths.len().div_ceil(3);
    // the third-longest third begins here
    let (_, &mut length, _) = lengths.select_nth_unstable_by(third - 1, |a, b| b.cmp(a));
    length as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_rows_decides_the_width() {
        // lengths 1, 2, 3, 1, 1, 2: two rows (a third) have 2 or more, one has 3
        let a = Csr::new(
            6,
            6,
            vec![0, 1, 3, 6, 7, 8, 10],
            vec![0, 0, 1, 1, 2, 5, 3, 4, 0, 5],
            (1..=10).map(f64::from).collect(),
        )
        .unwrap();
        let h = Hyb::from_csr(&a);
        assert_eq!(h.width(), 2);
        assert_eq!(h.values(), [1., 2., 4., 7., 8., 9., 0., 3., 5., 0., 0., 10.]);
        assert_eq!(h.col_ind(), [0, 0, 1, 3, 4, 0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(h.rest().of_rows(0..6).collect::<Vec<_>>(), [(2, 5, 6.0)]);
        assert_eq!((h.stored(), h.bytes()), (13, 12 * 12 + 16));
    }
}
