//! Entries of consecutive lines, brought together by ranges of rows.

use crate::base::threads::Threads;
use rayon::prelude::*;

/// Entries a range should hold on average: 16 bytes each, about one second-level cache.
pub(super) const RANGE: usize = 1 << 15;
/// Most ranges, which bounds the counters of the first pass.
const RANGES: usize = 1 << 10;

/// One stored or mirrored entry, row and column from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::matrix) struct Entry {
    pub(in crate::matrix) row: u32,
    pub(in crate::matrix) col: u32,
    pub(in crate::matrix) value: f64,
}

/// How the rows are split into ranges.
#[derive(Clone, Copy, Debug)]
pub(in crate::matrix) struct Ranges {
    /// A range holds `2^shift` rows.
    pub(super) shift: u32,
    pub(super) count: usize,
}

impl Ranges {
    /// Ranges for a matrix of `rows` rows (at least 1) and about `entries` entries.
    pub(in crate::matrix) fn new(rows: usize, entries: usize) -> Self {
        let count = (entries / RANGE).clamp(1, RANGES);
        let shift = rows.div_ceil(count).next_power_of_two().trailing_zeros();
        Self { shift, count: ((rows - 1) >> shift) + 1 }
    }

    pub(super) fn of(self, entry: &Entry) -> usize {
        // as a usize: beyond 2^31 rows one range takes a shift by all 32 bits
        entry.row as usize >> self.shift
    }
}

/// Entries of consecutive lines.
#[derive(Debug)]
pub(in crate::matrix) struct Part {
    /// In the order of the file within each range.
    pub(super) entries: Vec<Entry>,
    /// Start of each range in `entries`, and their end; empty when the rows never decrease.
    pub(super) starts: Vec<usize>,
}

impl Part {
    /// Takes `entries` in the order of the file.
    pub(in crate::matrix) fn new(entries: Vec<Entry>, ranges: Ranges) -> Self {
        if entries.is_sorted_by(|a, b| a.row <= b.row) {
            return Self { entries, starts: Vec::new() };
        }
        let mut starts = vec![0; ranges.count + 1];
        for e in &entries {
            starts[ranges.of(e) + 1] += 1;
        }
        for r in 0..ranges.count {
            starts[r + 1] += starts[r];
        }
        let mut next = starts.clone();
        let mut together = vec![Entry::default(); entries.len()];
        for e in &entries {
            let to = &mut next[ranges.of(e)];
            together[*to] = *e;
            *to += 1;
        }
        Self { entries: together, starts }
    }

    /// Adds the entries of each row to `counts`.
    pub(super) fn count_rows(&self, counts: &mut [u32]) {
        for e in &self.entries {
            counts[e.row as usize] += 1;
        }
    }

    /// Makes sure that `starts` is there.
    pub(super) fn locate(&mut self, ranges: Ranges) {
        if self.starts.is_empty() {
            let start = |r: usize| self.entries.partition_point(|e| ranges.of(e) < r);
            self.starts = (0..=ranges.count).map(start).collect();
        }
    }

    /// The entries, in the order of the file where there is one range.
    pub(in crate::matrix) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn range(&self, r: usize) -> &[Entry] {
        &self.entries[self.starts[r]..self.starts[r + 1]]
    }
}

/// Whether half of the entries of the fullest range or more share a place with another one.
pub(super) fn mostly_repeated(parts: &mut [Part], ranges: Ranges) -> bool {
    Threads::Pool.each(parts.iter_mut().collect(), |p: &mut Part| p.locate(ranges));
    let size = |r: usize| parts.iter().map(|p| p.range(r).len()).sum::<usize>();
    let Some(fullest) = (0..ranges.count).max_by_key(|&r| size(r)) else { return false };
    let entries = parts.iter().flat_map(|p| p.range(fullest));
    let mut places: Vec<u64> = entries.map(|e| u64::from(e.row) << 32 | u64::from(e.col)).collect();
    let all = places.len();
    places.par_sort_unstable();
    places.dedup();
    2 * places.len() <= all
}
