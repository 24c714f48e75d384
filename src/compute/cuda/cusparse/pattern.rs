//! A sparsity pattern in the memory of the device.

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::Handle;
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::compute::cuda::storage::DevicePattern as Rows;
use crate::matrix::pattern::PatternView;

/// Pattern of a matrix of `b x b` blocks (CSR where b = 1) on the device, checked, so that the library
/// can be trusted with it.
pub struct DevicePattern {
    block_size: usize,
    rows: usize,
    columns: usize,
    entries: usize,
    there: Arc<Rows>,
}

impl DevicePattern {
    /// Copies the pattern of a square matrix by block rows to the device; asynchronous.
    ///
    /// # Errors
    /// When it has no rows, rows do not follow each other, columns do not increase or lie outside,
    /// a count does not fit a 32-bit signed integer, or the device has no room.
    pub fn new(handle: &Handle, block_size: usize, host: PatternView<'_>) -> Result<Rc<Self>> {
        let (rows, entries) = (host.row_ptr.len().saturating_sub(1), host.entries());
        validate(block_size, host, rows)?;
        let there = Rows::copied(handle.device(), host.row_ptr, host.col_ind)?;
        Ok(Rc::new(Self { block_size, rows, columns: rows, entries, there }))
    }

    /// The pattern of a matrix that we have made on the device, with so many block columns and entries.
    ///
    /// # Errors
    /// When a count does not fit a 32-bit signed integer, or is zero.
    pub(in crate::compute::cuda) fn there(
        block_size: usize,
        there: &Arc<Rows>,
        [columns, entries]: [usize; 2],
    ) -> Result<Rc<Self>> {
        let rows = there.row_ptr.len() - 1;
        counted(block_size, [rows, columns, entries])?;
        Ok(Rc::new(Self { block_size, rows, columns, entries, there: Arc::clone(there) }))
    }

    /// Unknowns per block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Number of block rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of block columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored blocks.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Length of vectors with a number for each row.
    pub fn unknowns(&self) -> usize {
        self.rows * self.block_size
    }

    /// Length of vectors with a number for each column.
    pub fn inputs(&self) -> usize {
        self.columns * self.block_size
    }

    /// Length of the values.
    pub fn numbers(&self) -> usize {
        self.entries * self.block_size * self.block_size
    }

    /// Bytes of the pattern on the device.
    pub fn bytes(&self) -> usize {
        4 * (self.rows + 1 + self.entries)
    }

    /// Row pointers and columns on the device.
    pub(in crate::compute::cuda) fn rows_there(&self) -> &Rows {
        &self.there
    }

    /// `row_ptr` and `col_ind` as the library takes them.
    pub(super) fn indices(&self, handle: &Handle) -> (*mut i32, *mut i32) {
        (handle.address(&self.there.row_ptr).cast(), handle.address(&self.there.col_ind).cast())
    }

    /// Panics unless `values` has a number for each place of the pattern. More is allowed: an
    /// allocation cannot be empty.
    pub(super) fn assert_values(&self, values: &CudaSlice<f64>) {
        assert!(values.len() >= self.numbers(), "fewer values than the pattern has places");
    }

    /// Panics unless `x` has a number for each column, and `y` one for each row.
    pub(super) fn assert_vectors(&self, x: &CudaSlice<f64>, y: &CudaSlice<f64>) {
        assert!(
            x.len() >= self.inputs() && y.len() >= self.unknowns(),
            "a vector is shorter than the matrix"
        );
    }
}

/// What the library takes for granted: at least one row, rows that follow each other, columns that
/// increase and lie inside, and counts that fit 32-bit signed integers.
fn validate(block_size: usize, host: PatternView<'_>, columns: usize) -> Result<()> {
    let rows = host.row_ptr.len().saturating_sub(1);
    let entries = host.entries();
    counted(block_size, [rows, columns, entries])?;
    if host.row_ptr[0] != 0 || host.row_ptr[rows] as usize != entries {
        return wrong(&format!(
            "rows span {}..{} of {entries} entries",
            host.row_ptr[0], host.row_ptr[rows]
        ));
    }
    let of_row = |i: usize| {
        if host.row_ptr[i] > host.row_ptr[i + 1] || host.row_ptr[i + 1] as usize > entries {
            let (from, to) = (host.row_ptr[i], host.row_ptr[i + 1]);
            return wrong(&format!("row {i} spans {from}..{to} of {entries} entries"));
        }
        let row = host.row(i);
        if !row.is_sorted_by(|a, b| a < b) {
            return wrong(&format!("columns of row {i} do not increase"));
        }
        if row.last().is_some_and(|&j| j as usize >= columns) {
            return wrong(&format!("row {i} has a column outside 0..{columns}"));
        }
        Ok(())
    };
    // the time of it counts as the library's
    Threads::Pool.find_map(rows, 4096, |i| of_row(i).err()).map_or(Ok(()), Err)
}

fn wrong(what: &str) -> Result<()> {
    Err(Error::run(format!("pattern for cuSPARSE: {what}")))
}

/// That there is something, and that its counts fit.
fn counted(block_size: usize, [rows, columns, entries]: [usize; 3]) -> Result<()> {
    if block_size == 0 || rows == 0 || columns == 0 {
        return wrong(&format!("{rows} rows of blocks of {block_size}"));
    }
    let most = i32::MAX as usize;
    if entries > most || rows.max(columns).saturating_mul(block_size) > most {
        return wrong(&format!("{rows} rows and {entries} entries do not fit 32-bit integers"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(row_ptr: &[u32], col_ind: &[u32]) -> String {
        let rows = row_ptr.len().saturating_sub(1);
        validate(2, PatternView::new(row_ptr, col_ind), rows).unwrap_err().message().to_owned()
    }

    #[test]
    fn only_patterns_pass() {
        let passes =
            |col_ind, columns| validate(1, PatternView::new(&[0, 2, 2], col_ind), columns).is_ok();
        assert!(passes(&[0, 1], 2) && passes(&[0, 6], 7));
        assert!(!passes(&[0, 6], 6) && !passes(&[0, 1], 1));
        let at = "pattern for cuSPARSE: ";
        assert_eq!(refused(&[], &[]), format!("{at}0 rows of blocks of 2"));
        assert_eq!(refused(&[0, 1, 1], &[0, 1]), format!("{at}rows span 0..1 of 2 entries"));
        assert_eq!(refused(&[0, 2, 1], &[0]), format!("{at}row 0 spans 0..2 of 1 entries"));
        assert_eq!(refused(&[0, 1, 0, 1], &[0]), format!("{at}row 1 spans 1..0 of 1 entries"));
        assert_eq!(refused(&[0, 2, 2], &[1, 1]), format!("{at}columns of row 0 do not increase"));
        assert_eq!(refused(&[0, 0, 1], &[2]), format!("{at}row 1 has a column outside 0..2"));
    }

    #[test]
    fn counts_must_fit_an_int() {
        let huge = PatternView::new(&[0, 0], &[]);
        let error = validate(1 << 31, huge, 1).unwrap_err();
        assert_eq!(
            error.message(),
            "pattern for cuSPARSE: 1 rows and 0 entries do not fit 32-bit integers"
        );
    }
}
