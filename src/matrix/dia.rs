//! DIA: whole diagonals, with single entries beside them.

use std::sync::Arc;

use super::storage::{Storage, TILE, check_padding};
use super::{Coo, Csr};
use crate::base::choices::Format;
use crate::base::error::{Error, Result};
use crate::base::memory::Buffer;
use crate::base::threads::Threads;

/// Part of its length that a diagonal must fill to be stored whole.
const LEAST_FILL: usize = 32;

/// Entries of 100 that may lie on other diagonals.
const MOST_REST: usize = 10;

/// A square matrix by diagonals.
///
/// A diagonal that holds an entry in at least one of 32 rows is stored whole, one number for each
/// row of the matrix. Other entries are in a COO part: the well rows and columns of a reservoir
/// matrix would make two diagonals of each of their entries.
pub struct Dia {
    rows: usize,
    /// Column minus row of each diagonal, ascending.
    offsets: Vec<i64>,
    /// By tiles of [`TILE`] rows, within which the diagonals follow each other.
    values: Buffer<f64>,
    rest: Coo,
}

impl Dia {
    /// Converts `a`.
    ///
    /// # Errors
    /// When more than a tenth of the entries lie on sparsely filled diagonals, or more than eight
    /// numbers would be stored for an entry; names the first entry that lies apart.
    ///
    /// # Panics
    /// If `a` is not square.
    pub(crate) fn from_csr(a: &Csr) -> Result<Self> {
        assert_eq!(a.rows(), a.cols(), "a square matrix");
        let n = a.rows();
        // diagonal j - i at place n - 1 + j - i
        let place = |i: usize, j: u32| n - 1 + j as usize - i;
        let mut counts = counts(a, place);
        let whole = |count: u32| Self::whole(count as usize, n);
        let rest: usize = counts.iter().filter(|&&c| !whole(c)).map(|&c| c as usize).sum();
        if rest * 100 > MOST_REST * a.nnz() {
            let apart = |i: usize| a.row(i).0.iter().find(|&&j| !whole(counts[place(i, j)]));
            let (row, col) = (0..n).find_map(|i| apart(i).map(|&j| (i, j))).unwrap_or((0, 0));
            return Err(Error::input(format!(
                "the matrix does not fit `dia`: {rest} of {} entries lie on sparsely filled \
                 diagonals, the first in row {}, offset {:+}",
                a.nnz(),
                row + 1,
                i64::from(col) - row as i64
            ))
            .hint("choose `csr`, `hyb` or `sell`"));
        }
        let offsets: Vec<i64> = (0..counts.len())
            .filter(|&at| whole(counts[at]))
            .map(|at| at as i64 - (n as i64 - 1))
            .collect();
        check_padding("dia", offsets.len() * n, a.nnz())?;
        // number of each stored diagonal
        let mut number = 0;
        for count in &mut counts {
            *count = if whole(*count) {
                number += 1;
                number - 1
            } else {
                u32::MAX
            };
        }
        let count = offsets.len();
        let mut values = Buffer::<f64>::zeros(count * n);
        let rests: Vec<Coo> =
            Threads::Pool.chunks(&mut values, (TILE * count).max(1), 1, |tile, values| {
                let height = values.len() / count;
                let mut rest = Coo::default();
                for r in 0..height {
                    let i = tile * TILE + r;
                    let (cols, row) = a.row(i);
                    for (&j, &v) in cols.iter().zip(row) {
                        match counts[place(i, j)] {
                            u32::MAX => rest.push(i, j, v),
                            d => values[d as usize * height + r] = v,
                        }
                    }
                }
                rest
            });
        let mut rest = Coo::default();
        for later in &rests {
            rest.append(later);
        }
        Ok(Self { rows: n, offsets, values, rest })
    }

    /// Whether `a` is little else than whole diagonals, as some of its rows tell: at most a quarter more
    /// numbers than it has entries would be stored.
    pub fn suits(a: &Csr) -> bool {
        /// Rows that are looked at, in runs so that all rows of a block are among them, and most diagonals.
        const SAMPLE: usize = 1024;
        const RUN: usize = 32;
        let n = a.rows();
        // an odd distance, so that not all begin a line of a grid
        let apart = (n / (SAMPLE / RUN)).max(RUN) | 1;
        let rows = || (0..n).step_by(apart).flat_map(|i| i..n.min(i + RUN));
        let (mut offsets, mut entries) = (Vec::new(), 0);
        for i in rows() {
            for &j in a.row(i).0 {
                let offset = i64::from(j) - i as i64;
                if let Err(at) = offsets.binary_search(&offset) {
                    offsets.insert(at, offset);
                }
            }
            entries += a.row(i).0.len();
            if offsets.len() > Self::MOST_SUITING {
                return false;
            }
        }
        Self::few(offsets.len(), [rows().count(), entries])
    }

    /// Most diagonals of a matrix that they [suit](Self::suits).
    pub(crate) const MOST_SUITING: usize = 128;

    /// Whether `diagonals` are few enough for so many rows and entries to be stored whole.
    pub fn few(diagonals: usize, [rows, entries]: [usize; 2]) -> bool {
        entries > 0 && diagonals <= Self::MOST_SUITING && 4 * diagonals * rows <= 5 * entries
    }

    /// Whether a diagonal with so many entries is stored whole in a matrix of `rows`.
    pub fn whole(entries: usize, rows: usize) -> bool {
        entries > 0 && entries * LEAST_FILL >= rows
    }

    /// Column minus row of each whole diagonal, ascending.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// Tile by tile, in which the diagonals follow each other, each with a number for every row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Entries on other diagonals.
    pub fn rest(&self) -> &Coo {
        &self.rest
    }
}

/// Entries of each diagonal, by [`place`](Dia::from_csr): each thread counts in some rows.
fn counts(a: &Csr, place: impl Fn(usize, u32) -> usize + Sync) -> Vec<u32> {
    let n = a.rows();
    let places = (2 * n).max(1) - 1;
    let part = n.div_ceil(rayon::current_num_threads()).max(TILE);
    let of_part = |first: usize| {
        let mut counts = vec![0_u32; places];
        for i in first..n.min(first + part) {
            a.row(i).0.iter().for_each(|&j| counts[place(i, j)] += 1);
        }
        counts
    };
    let parts = Threads::Pool.map(n.div_ceil(part), 1, |at| of_part(at * part));
    Threads::Pool.map(places, 1 << 12, |place| parts.iter().map(|part| part[place]).sum())
}

impl Storage for Dia {
    fn format(&self) -> Format {
        Format::Dia
    }
    fn rows(&self) -> usize {
        self.rows
    }
    fn stored(&self) -> usize {
        self.values.len() + self.rest.len()
    }
    fn bytes(&self) -> usize {
        8 * (self.values.len() + self.offsets.len()) + self.rest.bytes()
    }
    fn set_values(&mut self, a: &Arc<Csr>) {
        *self = Self::from_csr(a).expect("the pattern was stored before");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::samples;

    /// Tridiagonal of order 40 with a corner entry.
    fn matrix() -> Csr {
        let n = 40_u32;
        let (mut row_ptr, mut col_ind, mut values) = (vec![0], vec![], vec![]);
        for i in 0..n {
            let mut cols: Vec<u32> = (i.saturating_sub(1)..(i + 2).min(n)).collect();
            if i == 0 {
                cols.push(n - 1);
            }
            values.extend(cols.iter().map(|&j| f64::from(100 * i + j)));
            col_ind.extend(cols);
            row_ptr.push(col_ind.len() as u32);
        }
        Csr::new(n as usize, n as usize, row_ptr, col_ind, values).unwrap()
    }

    #[test]
    fn full_diagonals_are_whole_and_single_entries_beside_them() {
        let d = Dia::from_csr(&matrix()).unwrap();
        assert_eq!(d.offsets(), [-1, 0, 1]);
        assert_eq!(d.rest().of_rows(0..40).collect::<Vec<_>>(), [(0, 39, 39.0)]);
        assert_eq!((d.values()[0], d.values()[1], d.values()[41]), (0.0, 100.0, 101.0));
        assert_eq!((d.stored(), d.bytes()), (121, 8 * (120 + 3) + 16));
    }

    #[test]
    fn whole_diagonals_are_told_from_others() {
        let suits = |spec| Dia::suits(&samples::matrix(spec));
        // seven of seven, and some rows without two or three of them
        assert!(suits("poisson3d:40x1x1") && suits("poisson3d:30x20x20"));
        // a fourth diagonal for the corner of a small matrix
        assert!(!Dia::suits(&matrix()));
        assert!(suits("convdiff3d:15x14x13") && !suits("poisson3d:3x3x3"));
        // dense blocks of three: 35 diagonals for 21 entries
        assert!(!suits("blockpoisson3d:12x11x10,b=3"));
        assert!(!Dia::suits(&Csr::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap()));
    }

    #[test]
    fn scattered_entries_do_not_fit() {
        // an arrow of order 100: its entries have 199 diagonals, of which one is full
        let n = 100_u32;
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for i in 0..n {
            match i {
                0 => col_ind.extend(0..n),
                _ => col_ind.extend([0, i]),
            }
            row_ptr.push(col_ind.len() as u32);
        }
        let values = vec![1.0; col_ind.len()];
        let a = Csr::new(n as usize, n as usize, row_ptr, col_ind, values).unwrap();
        assert_eq!(
            Dia::from_csr(&a).err().unwrap().to_string(),
            "the matrix does not fit `dia`: 198 of 298 entries lie on sparsely filled diagonals, \
             the first in row 1, offset +1"
        );
    }
}
