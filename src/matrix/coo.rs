//! Single entries with row and column: what is left over of the formats for regular patterns.

use std::ops::Range;

/// Entries `(row, column, value)`, rows ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coo {
    rows: Vec<u32>,
    cols: Vec<u32>,
    values: Vec<f64>,
}

impl Coo {
    /// Adds an entry, whose row must not be below the last one's.
    pub(super) fn push(&mut self, row: usize, col: u32, value: f64) {
        debug_assert!(self.rows.last().is_none_or(|&last| last as usize <= row));
        self.rows.push(row as u32);
        self.cols.push(col);
        self.values.push(value);
    }

    /// Adds the entries of `later`, whose rows must not be below the last one's.
    pub(super) fn append(&mut self, later: &Self) {
        debug_assert!(
            self.rows.last().is_none_or(|last| later.rows.first().is_none_or(|r| r >= last))
        );
        self.rows.extend_from_slice(&later.rows);
        self.cols.extend_from_slice(&later.cols);
        self.values.extend_from_slice(&later.values);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Row of each entry.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Column of each entry.
    pub fn cols(&self) -> &[u32] {
        &self.cols
    }

    /// Value of each entry.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The entries `(row, column, value)` of some rows.
    pub(crate) fn of_rows(
        &self,
        rows: Range<usize>,
    ) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let at = |row: usize| self.rows.partition_point(|&r| (r as usize) < row);
        let range = at(rows.start)..at(rows.end);
        range.map(|e| (self.rows[e] as usize, self.cols[e] as usize, self.values[e]))
    }

    /// Bytes of the three arrays: 16 for each entry.
    pub fn bytes(&self) -> usize {
        16 * self.len()
    }
}
