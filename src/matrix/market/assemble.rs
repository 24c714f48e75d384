//! From entries in the order of the file to CSR.
//!
//! The rows are split into ranges. Entries are first brought together by range, then sorted by
//! row within each: both are stable counting sorts that stay in the cache, so a file sorted by
//! columns needs no comparison sort and a file sorted by rows no first pass. Ranges are
//! independent and done in parallel; the result depends on the order of the file alone.

use rayon::prelude::*;

use crate::error::Result;
use crate::matrix::Csr;

use super::entries::{Chunk, Entry};

/// Entries a range should hold on average: 16 bytes each, about one second-level cache.
const RANGE: usize = 1 << 15;
/// Most ranges, which bounds the counters of the first pass.
const RANGES: usize = 1 << 10;
/// Rows up to this length are sorted by insertion.
const SHORT: usize = 24;

/// The matrix and how many entries were added to earlier ones of the same place.
pub(super) fn to_csr(rows: usize, cols: usize, chunks: Vec<Chunk>) -> Result<(Csr, usize)> {
    let entries: usize = chunks.iter().map(|c| c.entries.len()).sum();
    let ranges = (entries / RANGE).clamp(1, RANGES);
    let shift = rows.div_ceil(ranges).next_power_of_two().trailing_zeros();
    let ranges = ((rows - 1) >> shift) + 1;
    let parts: Vec<Part> = chunks.into_par_iter().map(|c| Part::new(c, shift, ranges)).collect();

    let mut row_ptr = vec![0_u32; rows + 1];
    let mut col_ind = vec![0_u32; entries];
    let mut values = vec![0.0_f64; entries];
    let outputs = split(&parts, shift, ranges, &mut row_ptr[1..], &mut col_ind, &mut values);
    let summed = outputs.into_par_iter().map(|mut out| out.fill(&parts)).sum();
    drop(parts);
    if summed > 0 {
        sum_duplicates(&mut row_ptr, &mut col_ind, &mut values);
    }
    Ok((Csr::new(rows, cols, row_ptr, col_ind, values)?, summed))
}

/// The entries of one block, brought together by range of rows.
struct Part {
    entries: Vec<Entry>,
    /// Start of each range in `entries`, and their end.
    starts: Vec<usize>,
}

impl Part {
    fn new(chunk: Chunk, shift: u32, ranges: usize) -> Self {
        let entries = chunk.entries;
        if chunk.by_rows {
            let start = |r: usize| entries.partition_point(|e| ((e.row >> shift) as usize) < r);
            let starts = (0..=ranges).map(start).collect();
            return Self { entries, starts };
        }
        let mut starts = vec![0; ranges + 1];
        for e in &entries {
            starts[(e.row >> shift) as usize + 1] += 1;
        }
        for r in 0..ranges {
            starts[r + 1] += starts[r];
        }
        let mut next = starts.clone();
        let mut sorted = vec![Entry::default(); entries.len()];
        for e in &entries {
            let to = &mut next[(e.row >> shift) as usize];
            sorted[*to] = *e;
            *to += 1;
        }
        Self { entries: sorted, starts }
    }

    fn range(&self, r: usize) -> &[Entry] {
        &self.entries[self.starts[r]..self.starts[r + 1]]
    }
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
    shift: u32,
    ranges: usize,
    mut ends: &'a mut [u32],
    mut cols: &'a mut [u32],
    mut values: &'a mut [f64],
) -> Vec<Output<'a>> {
    let mut outputs = Vec::with_capacity(ranges);
    let mut base = 0;
    for range in 0..ranges {
        let size: usize = parts.iter().map(|p| p.range(range).len()).sum();
        let rows = ends.len().min(1 << shift);
        let (ends_here, cols_here, values_here);
        (ends_here, ends) = ends.split_at_mut(rows);
        (cols_here, cols) = cols.split_at_mut(size);
        (values_here, values) = values.split_at_mut(size);
        outputs.push(Output {
            range,
            first_row: (range << shift) as u32,
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
    /// Sorts the entries of this range by row and column; yields how many share a place with an
    /// earlier one.
    fn fill(&mut self, parts: &[Part]) -> usize {
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
        let (mut start, mut summed) = (0, 0);
        for end in self.ends.iter_mut() {
            let row = start..*end as usize;
            start = row.end;
            *end += self.base;
            summed += sort_row(&mut self.cols[row.clone()], &mut self.values[row]);
        }
        summed
    }
}

/// Sorts one row by column, entries of the same column in their order; yields how many of them
/// follow one of the same column.
fn sort_row(cols: &mut [u32], values: &mut [f64]) -> usize {
    if cols.is_sorted_by(|a, b| a < b) {
        return 0;
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
    cols.windows(2).filter(|c| c[0] == c[1]).count()
}

/// Adds neighbouring entries of the same place, in their order.
fn sum_duplicates(row_ptr: &mut [u32], cols: &mut Vec<u32>, values: &mut Vec<f64>) {
    let (mut kept, mut start) = (0, 0);
    for end in &mut row_ptr[1..] {
        let row_start = kept;
        for k in start..*end as usize {
            if kept > row_start && cols[kept - 1] == cols[k] {
                values[kept - 1] += values[k];
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
