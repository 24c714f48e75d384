//! The formats of products behind one trait.
//!
//! A new format is a type with [`Storage`], an implementation of [`Product`] and a line in `stored`.

use std::sync::Arc;

use super::groups::Groups;
use super::runs::Runs;
use super::single::SingleMatrix;
use super::spmv::Rows;
use super::{bdia, columns, multi, spmv};
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;
use crate::matrix::{Bdia, Bsr, Csr, Dia, Hyb, Sell, Storage};

/// Rows of a slice of SELL: the doubles of a wide register.
const SLICE: usize = 8;
/// Rows of a window of SELL within which rows are sorted by length.
const WINDOW: usize = 1024;

/// A stored matrix that multiplies.
pub trait Product: Storage {
    /// `y = A x`, or `y = b - A x` when `b` is given, on the threads of the current pool when
    /// `parallel`.
    fn product(&self, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool);

    /// `y -= A x` in place, where that is less work than a product; whether it is done.
    fn subtract(&self, _x: &[f64], _y: &mut [f64], _parallel: bool) -> bool {
        false
    }

    /// Bytes that this moves at least, where it is done.
    fn subtract_moved(&self) -> Option<usize> {
        None
    }

    /// Bytes of numbers and indices that a product reads.
    fn read(&self) -> usize {
        self.bytes()
    }

    /// The matrix in float32, where its format has such products.
    fn single(&self) -> Option<SingleMatrix> {
        None
    }

    /// The matrix by rows, where its format has them: products of multivectors go by them.
    fn by_rows(&self) -> Option<Rows<'_>> {
        None
    }

    /// The product of multivectors: one column after the other where there are no rows.
    fn multiproduct(
        &self,
        columns: usize,
        x: &[f64],
        b: Option<&[f64]>,
        y: &mut [f64],
        parallel: bool,
    ) {
        if let Some(rows) = self.by_rows() {
            return multi::product(rows, columns, x, b, y, parallel);
        }
        let (mut of_x, mut of_y) = (vec![0.0; x.len() / columns], vec![0.0; self.rows()]);
        for j in 0..columns {
            multi::gather(columns, j, x, &mut of_x);
            self.product(&of_x, None, &mut of_y, parallel);
            for (i, v) in of_y.iter().enumerate() {
                let at = i * columns + j;
                y[at] = b.map_or(*v, |b| b[at] - v);
            }
        }
    }
}

/// `a` in the format that `format` stands for.
///
/// # Errors
/// When the matrix does not fit the format.
pub(super) fn stored(a: &Arc<Csr>, format: Format) -> Result<Box<dyn Product>> {
    Ok(match format.stored(a) {
        Format::Auto | Format::Csr => Box::new(Compressed::new(a)),
        Format::Bsr => Box::new(Bsr::from_csr(a)),
        Format::Hyb => Box::new(Hyb::from_csr(a)),
        Format::Sell => Box::new(Sell::from_csr(a, SLICE, WINDOW)?),
        Format::Dia => Box::new(Dia::from_csr(a)?),
        Format::Bdia => Box::new(Bdia::from_csr(a)?),
    })
}

/// CSR, of whose rows products read the columns of each run or group once.
struct Compressed {
    a: Arc<Csr>,
    runs: Option<Runs>,
    /// Where there are no runs.
    groups: Option<Groups>,
    /// The rows that have entries, where most have none.
    filled: Option<Vec<u32>>,
}

/// Rows for each that has entries, at least, where those are kept.
const EMPTY: usize = 4;

impl Compressed {
    fn new(a: &Arc<Csr>) -> Self {
        let pattern = PatternView::new(a.row_ptr(), a.col_ind());
        let runs = Runs::of(Threads::Pool, pattern);
        let groups = if runs.is_none() { Groups::alike(Threads::Pool, pattern) } else { None };
        Self { a: Arc::clone(a), runs, groups, filled: filled(a) }
    }
}

/// The rows that have entries, where most have none.
fn filled(a: &Csr) -> Option<Vec<u32>> {
    // as a rule no row has to be looked at
    if a.nnz() >= a.rows() {
        return None;
    }
    let rows = (0..a.rows() as u32).filter(|&i| !a.row(i as usize).0.is_empty());
    let rows: Vec<u32> = rows.collect();
    (EMPTY * rows.len() <= a.rows()).then_some(rows)
}

impl Storage for Compressed {
    fn format(&self) -> Format {
        self.a.format()
    }

    fn rows(&self) -> usize {
        self.a.rows()
    }

    fn stored(&self) -> usize {
        self.a.stored()
    }

    fn bytes(&self) -> usize {
        self.a.bytes()
    }

    fn set_values(&mut self, a: &Arc<Csr>) {
        if self.a.pattern().is(a.pattern()) {
            self.a = Arc::clone(a);
        } else {
            // runs of another pattern would lead out of x
            *self = Self::new(a);
        }
    }
}

impl Product for Compressed {
    fn product(&self, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool) {
        let rows = Rows::from(&*self.a);
        match &self.runs {
            Some(runs) => spmv::runs::product(runs, rows, x, b, y, parallel),
            None => spmv::product(rows.in_groups(self.groups.as_ref()), x, b, y, parallel),
        }
    }

    fn subtract(&self, x: &[f64], y: &mut [f64], parallel: bool) -> bool {
        let Some(filled) = &self.filled else { return false };
        spmv::subtract(Rows::from(&*self.a), filled, x, y, parallel);
        true
    }

    fn subtract_moved(&self) -> Option<usize> {
        // a row's number, its bounds, and its number of y before and after
        let rows = self.filled.as_ref()?.len() * (4 + 4 + 16);
        Some(size_of_val(self.a.values()) + size_of_val(self.a.col_ind()) + rows)
    }

    fn read(&self) -> usize {
        let indices = match (&self.runs, &self.groups) {
            (Some(runs), _) => runs.bytes(),
            (None, Some(groups)) => groups.bytes(self.a.row_ptr()),
            (None, None) => return self.bytes(),
        };
        size_of_val(self.a.values()) + indices
    }

    fn single(&self) -> Option<SingleMatrix> {
        Some((&*self.a).into())
    }

    fn by_rows(&self) -> Option<Rows<'_>> {
        Some(Rows::from(&*self.a).in_runs(self.runs.as_ref()))
    }
}

impl Product for Bsr {
    fn product(&self, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool) {
        spmv::product(Rows::from(self), x, b, y, parallel);
    }

    fn single(&self) -> Option<SingleMatrix> {
        Some(self.into())
    }

    fn by_rows(&self) -> Option<Rows<'_>> {
        Some(Rows::from(self))
    }
}

impl Product for Hyb {
    fn product(&self, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool) {
        assert_eq!((x.len(), y.len()), (self.columns(), self.rows()));
        let rows = |first: usize, y: &mut [f64]| {
            columns::ellpack(self, x, first, y);
            columns::add_entries(self.rest(), x, first, y);
        };
        by_rows(columns::CHUNK, b, y, parallel, rows);
    }
}

impl Product for Dia {
    fn product(&self, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool) {
        assert_eq!((x.len(), y.len()), (self.rows(), self.rows()));
        let rows = |first: usize, y: &mut [f64]| {
            columns::diagonals(self, x, first, y);
            columns::add_entries(self.rest(), x, first, y);
        };
        by_rows(columns::CHUNK, b, y, parallel, rows);
    }
}

impl Product for Sell {
    fn product(&self, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool) {
        assert_eq!((x.len(), y.len()), (self.columns(), self.rows()));
        // rows change places within a window only
        let chunk = columns::CHUNK.next_multiple_of(self.window());
        by_rows(chunk, b, y, parallel, |first, y| columns::slices(self, x, first, y));
    }
}

impl Product for Bdia {
    fn product(&self, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool) {
        assert_eq!((x.len(), y.len()), (self.rows(), self.rows()));
        let chunk = columns::CHUNK.next_multiple_of(self.hepta().block_size);
        by_rows(chunk, b, y, parallel, |first, y| bdia::rows(self, x, first, y));
    }
}

/// Pieces of `y` that are written one after the other stay in the cache until `b` is subtracted;
/// several make a task.
const PIECES_PER_TASK: usize = 2;

/// Runs `rows(first, piece of y)` over pieces of `chunk` rows; then `y = b - y` when `b` is given.
fn by_rows(
    chunk: usize,
    b: Option<&[f64]>,
    y: &mut [f64],
    parallel: bool,
    rows: impl Fn(usize, &mut [f64]) + Sync,
) {
    let piece = |at: usize, y: &mut [f64]| {
        let first = at * chunk;
        rows(first, y);
        if let Some(b) = b {
            y.iter_mut().zip(&b[first..]).for_each(|(y, b)| *y = b - *y);
        }
    };
    Threads::when(parallel).chunks(y, chunk, PIECES_PER_TASK, piece);
}

#[cfg(test)]
#[path = "product_tests.rs"]
mod tests;
