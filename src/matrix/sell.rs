//! Sliced ELLPACK with sorted windows (SELL-C-sigma; Kreutzer et al. 2014).

use std::sync::Arc;

use super::Csr;
use super::storage::{Storage, check_padding};
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;

/// A matrix in SELL: slices of `height` consecutive rows, each as wide as its longest row and
/// column-major within.
///
/// Before slicing, the rows of every window of `window` rows (a multiple of `height`) are sorted by
/// length, longest first, rows of equal length in their order. A place without an entry holds a zero
/// and the column of the entry before it.
pub struct Sell {
    rows: usize,
    columns: usize,
    height: usize,
    window: usize,
    /// Start of each slice, in columns of `height` places.
    slice_ptr: Vec<u32>,
    /// Row at each place; empty when the rows are in their order.
    order: Vec<u32>,
    col_ind: Buffer<u32>,
    values: Buffer<f64>,
}

impl Sell {
    /// Converts `a` to slices of `height` rows, sorted in windows of `window` rows, rounded up to
    /// whole slices; 1 leaves the rows in their order.
    ///
    /// # Errors
    /// When more than eight numbers would be stored for an entry.
    ///
    /// # Panics
    /// If `height` is zero.
    pub(crate) fn from_csr(a: &Csr, height: usize, window: usize) -> Result<Self> {
        let rows = a.rows();
        let length = |i: u32| a.row_ptr()[i as usize + 1] - a.row_ptr()[i as usize];
        let mut order: Vec<u32> = (0..rows as u32).collect();
        let window = if window > 1 { window.next_multiple_of(height) } else { height };
        if window > height {
            Threads::Pool.chunks(&mut order, window, 1, |_, rows| {
                rows.sort_by_key(|&i| std::cmp::Reverse(length(i)));
            });
        }
        let longest = |slice: &[u32]| slice.iter().map(|&i| length(i)).max().unwrap_or(0);
        let widths: Vec<u32> = Threads::Pool.each(order.chunks(height).collect(), longest);
        let mut slice_ptr = vec![0];
        let mut columns = 0_usize;
        for &width in &widths {
            columns += width as usize;
            slice_ptr.push(columns as u32);
        }
        // the smallest matrices may end in a slice that is mostly padding
        check_padding("sell", columns.saturating_sub(slice_ptr.len()) * height, a.nnz())?;
        let mut col_ind = Buffer::<u32>::zeros(columns * height);
        let mut values = Buffer::<f64>::zeros(columns * height);
        let slices = order.chunks(height).zip(&widths);
        let places = parts(&mut col_ind, height, &widths).into_iter();
        let places = places.zip(parts(&mut values, height, &widths));
        let slices = slices.zip(places).collect();
        Threads::Pool.each(slices, |((rows, &width), (col_ind, values))| {
            for (lane, &i) in rows.iter().enumerate() {
                let (cols, row) = a.row(i as usize);
                let mut nearest = cols.first().copied().unwrap_or(0);
                for c in 0..width as usize {
                    let at = c * height + lane;
                    if let Some(&j) = cols.get(c) {
                        nearest = j;
                        values[at] = row[c];
                    }
                    col_ind[at] = nearest;
                }
            }
        });
        if order.iter().zip(0..).all(|(&i, place)| i == place) {
            order = Vec::new();
        }
        let columns = a.cols();
        Ok(Self { rows, columns, height, window, slice_ptr, order, col_ind, values })
    }

    /// The part of each slice of an array with a number for every place.
    pub(crate) fn by_slice<'a, T>(&self, all: &'a mut [T]) -> Vec<&'a mut [T]> {
        let widths: Vec<u32> = self.slice_ptr.windows(2).map(|ends| ends[1] - ends[0]).collect();
        parts(all, self.height, &widths)
    }

    /// Number of columns of the matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows of a slice.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Rows of a window, within which rows change places.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Start of each slice in columns of [`height`](Self::height) places, and the end of the last.
    pub(crate) fn slice_ptr(&self) -> &[u32] {
        &self.slice_ptr
    }

    /// Row at each place; empty when the rows are in their order.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Column at each place.
    pub fn col_ind(&self) -> &[u32] {
        &self.col_ind
    }

    /// Value at each place.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

/// The part of each slice, whose columns are `widths`.
fn parts<'a, T>(mut all: &'a mut [T], height: usize, widths: &[u32]) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(widths.len());
    for &width in widths {
        let (part, later) = all.split_at_mut(width as usize * height);
        parts.push(part);
        all = later;
    }
    parts
}

impl Storage for Sell {
    fn format(&self) -> Format {
        Format::Sell
    }
    fn rows(&self) -> usize {
        self.rows
    }
    fn stored(&self) -> usize {
        self.values.len()
    }
    fn bytes(&self) -> usize {
        4 * (self.slice_ptr.len() + self.order.len()) + 12 * self.values.len()
    }
    fn set_values(&mut self, a: &Arc<Csr>) {
        let same = Self::from_csr(a, self.height, self.window);
        *self = same.expect("the pattern was stored before");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths 1, 3, 0, 2, 1.
    fn matrix() -> Csr {
        let cols = vec![0, 0, 1, 4, 2, 3, 4];
        Csr::new(5, 5, vec![0, 1, 4, 4, 6, 7], cols, (1..=7).map(f64::from).collect()).unwrap()
    }

    #[test]
    fn slices_are_as_wide_as_their_longest_row() {
        let s = Sell::from_csr(&matrix(), 2, 1).unwrap();
        assert_eq!((s.slice_ptr(), s.order()), (&[0, 3, 5, 6][..], &[][..]));
        assert_eq!(s.values(), [1., 2., 0., 3., 0., 4., 0., 5., 0., 6., 7., 0.]);
        assert_eq!(s.col_ind(), [0, 0, 0, 1, 0, 4, 0, 2, 0, 3, 4, 0]);
        assert_eq!((s.stored(), s.bytes()), (12, 4 * 4 + 12 * 12));
    }

    #[test]
    fn sorted_windows_need_less_padding() {
        let s = Sell::from_csr(&matrix(), 2, 4).unwrap();
        assert_eq!((s.slice_ptr(), s.order()), (&[0, 3, 4, 5][..], &[1, 3, 0, 2, 4][..]));
        assert_eq!(s.values(), [2., 5., 3., 6., 4., 0., 1., 0., 7., 0.]);
        assert_eq!(s.window(), 4);
    }

    #[test]
    fn one_long_row_among_short_ones_does_not_fit() {
        // row 1 is full, the others have one entry
        let n = 64;
        let mut row_ptr = vec![0, 1];
        row_ptr.extend((0..n - 1).map(|i| 1 + n + i));
        let mut cols = vec![0];
        cols.extend(0..n);
        cols.extend(2..n);
        let a = Csr::new(n as usize, n as usize, row_ptr, cols.clone(), vec![1.0; cols.len()]);
        let a = a.unwrap();
        assert!(Sell::from_csr(&a, 8, 1).is_ok());
        let error = Sell::from_csr(&a, 64, 1).err().unwrap().to_string();
        assert_eq!(
            error,
            "the matrix does not fit `sell`: 3968 numbers would be stored for 127 entries"
        );
    }
}
