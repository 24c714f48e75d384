//! Sorting rows by column and adding up duplicates.

use super::part::{Part, RANGE, Ranges};
use super::{InOrder, arrays};
use crate::base::error::Result;
use crate::base::threads::Threads;

/// Rows up to this length are sorted by insertion.
const SHORT: usize = 24;

/// Row pointers, columns and values.
pub(super) type Arrays = (Vec<u32>, Vec<u32>, Vec<f64>);

/// Makes arrays of the rows and sorts these by column; yields whether entries share a place.
pub(super) fn finish_in_order(rows: usize, matrix: InOrder) -> (Arrays, bool) {
    let InOrder { mut row_ptr, mut col_ind, mut values, .. } = matrix;
    row_ptr.resize(rows + 1, col_ind.len() as u32);
    col_ind.shrink_to_fit();
    values.shrink_to_fit();
    let repeated = sort_rows(&row_ptr, &mut col_ind, &mut values);
    ((row_ptr, col_ind, values), repeated)
}

/// Sorts rows by column; yields whether entries share a place. `row_ptr` has the starts of the rows and
/// the end of the last; the arrays begin with the first of these rows.
pub(super) fn sort_rows(row_ptr: &[u32], mut cols: &mut [u32], mut vals: &mut [f64]) -> bool {
    let rows = row_ptr.len() - 1;
    let mut pieces = Vec::new();
    for first in (0..rows).step_by(RANGE) {
        let ptr = &row_ptr[first..=(first + RANGE).min(rows)];
        let size = (ptr[ptr.len() - 1] - ptr[0]) as usize;
        let (cols_here, vals_here);
        (cols_here, cols) = cols.split_at_mut(size);
        (vals_here, vals) = vals.split_at_mut(size);
        pieces.push((ptr, cols_here, vals_here));
    }
    let sort = |(ptr, cols, vals): (&[u32], &mut [u32], &mut [f64])| -> bool {
        let row = |w: &[u32]| (w[0] - ptr[0]) as usize..(w[1] - ptr[0]) as usize;
        ptr.windows(2).fold(false, |any, w| any | sort_row(&mut cols[row(w)], &mut vals[row(w)]))
    };
    Threads::Pool.each(pieces, sort).contains(&true)
}

/// Zeros on huge pages where the system grants them.
pub(super) fn zeros(count: usize) -> Result<(Vec<u32>, Vec<f64>)> {
    let (mut col_ind, mut values) = arrays(count)?;
    col_ind.resize(count, 0);
    values.resize(count, 0.0);
    Ok((col_ind, values))
}

/// Brings the parts together; yields whether entries share a place.
pub(super) fn merge(
    rows: usize,
    entries: usize,
    mut parts: Vec<Part>,
    ranges: Ranges,
) -> Result<(Arrays, bool)> {
    Threads::Pool.each(parts.iter_mut().collect(), |p: &mut Part| p.locate(ranges));
    let mut row_ptr = vec![0_u32; rows + 1];
    let (mut col_ind, mut values) = zeros(entries)?;
    let outputs = split(&parts, ranges, &mut row_ptr[1..], &mut col_ind, &mut values);
    let fill = |mut out: Output| out.fill(&parts);
    let repeated = Threads::Pool.each(outputs, fill).contains(&true);
    Ok(((row_ptr, col_ind, values), repeated))
}

/// Where the rows of one range go.
struct Output<'a> {
    range: usize,
    first_row: u32,
    /// Entries of the ranges before.
    base: u32,
    /// Ends of the rows.
    ends: &'a mut [u32],
    cols: &'a mut [u32],
    values: &'a mut [f64],
}

/// Cuts the arrays of the matrix at the limits of the ranges.
fn split<'a>(
    parts: &[Part],
    ranges: Ranges,
    mut ends: &'a mut [u32],
    mut cols: &'a mut [u32],
    mut values: &'a mut [f64],
) -> Vec<Output<'a>> {
    let mut outputs = Vec::with_capacity(ranges.count);
    let mut base = 0;
    for range in 0..ranges.count {
        let size: usize = parts.iter().map(|p| p.range(range).len()).sum();
        let rows = ends.len().min(1 << ranges.shift);
        let (ends_here, cols_here, values_here);
        (ends_here, ends) = ends.split_at_mut(rows);
        (cols_here, cols) = cols.split_at_mut(size);
        (values_here, values) = values.split_at_mut(size);
        outputs.push(Output {
            range,
            first_row: (range << ranges.shift) as u32,
            base,
            ends: ends_here,
            cols: cols_here,
            values: values_here,
        });
        base += size as u32;
    }
    outputs
}

impl Output<'_> {
    /// Sorts the entries of this range by row and column; yields whether some share a
    /// place.
    fn fill(&mut self, parts: &[Part]) -> bool {
        let entries = || parts.iter().flat_map(|p| p.range(self.range));
        for e in entries() {
            self.ends[(e.row - self.first_row) as usize] += 1;
        }
        let mut start = 0;
        for end in self.ends.iter_mut() {
            (*end, start) = (start, start + *end);
        }
        for e in entries() {
            let to = &mut self.ends[(e.row - self.first_row) as usize];
            self.cols[*to as usize] = e.col;
            self.values[*to as usize] = e.value;
            *to += 1;
        }
        let (mut start, mut repeated) = (0, false);
        for end in self.ends.iter_mut() {
            let row = start..*end as usize;
            start = row.end;
            *end += self.base;
            repeated |= sort_row(&mut self.cols[row.clone()], &mut self.values[row]);
        }
        repeated
    }
}

/// Sorts one row by column, entries of the same column in their order; yields whether there are
/// some.
fn sort_row(cols: &mut [u32], values: &mut [f64]) -> bool {
    if cols.is_sorted_by(|a, b| a < b) {
        return false;
    }
    if cols.len() <= SHORT {
        for i in 1..cols.len() {
            let (col, value) = (cols[i], values[i]);
            let mut to = i;
            while to > 0 && cols[to - 1] > col {
                cols[to] = cols[to - 1];
                values[to] = values[to - 1];
                to -= 1;
            }
            (cols[to], values[to]) = (col, value);
        }
    } else if !cols.is_sorted() {
        let mut row: Vec<(u32, f64)> = cols.iter().copied().zip(values.iter().copied()).collect();
        row.sort_by_key(|e| e.0);
        for ((col, value), e) in cols.iter_mut().zip(values).zip(row) {
            (*col, *value) = e;
        }
    }
    cols.windows(2).any(|c| c[0] == c[1])
}

/// Adds neighbouring entries of the same place, in their order; tells `at` the row and column of
/// each that was added to another. `row_ptr` has the starts of the rows from `first` on and the end of the
/// last, which is that of the arrays.
pub(super) fn sum_duplicates(
    first: usize,
    row_ptr: &mut [u32],
    cols: &mut Vec<u32>,
    values: &mut Vec<f64>,
    mut at: impl FnMut(u32, u32),
) {
    let mut start = row_ptr[0] as usize;
    let mut kept = start;
    for (row, end) in row_ptr[1..].iter_mut().enumerate() {
        let row = first + row;
        let row_start = kept;
        for k in start..*end as usize {
            if kept > row_start && cols[kept - 1] == cols[k] {
                values[kept - 1] += values[k];
                at(row as u32, cols[k]);
            } else {
                (cols[kept], values[kept]) = (cols[k], values[k]);
                kept += 1;
            }
        }
        start = *end as usize;
        *end = kept as u32;
    }
    cols.truncate(kept);
    values.truncate(kept);
}
