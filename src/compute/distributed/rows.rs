//! Rows of other ranks, and the places that they get on this one.

use std::ops::Range;

use crate::base::memory;

/// Rows by their numbers, with those of their columns, which ascend.
#[derive(Default)]
pub(crate) struct Rows {
    numbers: Vec<u64>,
    /// Where each row ends.
    ends: Vec<usize>,
    columns: Vec<u64>,
    values: Vec<f64>,
}

impl Rows {
    /// Room for more.
    pub(super) fn reserve(&mut self, rows: usize, entries: usize) {
        memory::reserve(&mut self.numbers, rows);
        memory::reserve(&mut self.ends, rows);
        memory::reserve(&mut self.columns, entries);
        memory::reserve(&mut self.values, entries);
    }

    pub(super) fn push(&mut self, row: u64, columns: impl Iterator<Item = u64>, values: &[f64]) {
        self.numbers.push(row);
        self.columns.extend(columns);
        self.values.extend_from_slice(values);
        self.ends.push(self.columns.len());
    }

    pub(super) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Columns of all rows.
    pub(super) fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// Which row is the first by its number, which follows it, and so on.
    pub(super) fn ascending(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.numbers.len() as u32).collect();
        // runs, which a stable sort merges
        order.sort_by_key(|&at| self.numbers[at as usize]);
        order
    }

    /// A row's number, columns and values.
    pub(super) fn row(&self, at: usize) -> (u64, &[u64], &[f64]) {
        let of = if at == 0 { 0 } else { self.ends[at - 1] }..self.ends[at];
        (self.numbers[at], &self.columns[of.clone()], &self.values[of])
    }
}

/// Finds unknowns among those of a rank, row after row: mostly where those of the row before were, or behind them.
pub(super) struct Places<'a> {
    /// Numbers of the rank's block rows.
    pub(super) own: Range<u64>,
    /// Those of other blocks that have places, ascending.
    pub(super) others: &'a [u64],
    /// How many of these come before its own.
    pub(super) before: usize,
    pub(super) block_size: usize,
    /// The last block found among the others, for each column of a row.
    pub(super) last: Vec<usize>,
}

impl Places<'_> {
    /// The place of an unknown, the `nth` that is looked for in a row.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub(super) fn find(&mut self, nth: usize, unknown: u64) -> u32 {
        let (own, others, b) = (&self.own, self.others, self.block_size);
        let (block, within) = (unknown / b as u64, (unknown % b as u64) as usize);
        if own.contains(&block) {
            return ((self.before + (block - own.start) as usize) * b + within) as u32;
        }
        if nth >= self.last.len() {
            self.last.resize(nth + 1, 0);
        }
        let last = &mut self.last[nth];
        let is_at = |at: usize| others.get(at) == Some(&block);
        if !is_at(*last) {
            let next = *last + 1;
            let found = || others.binary_search(&block).expect("a block that has a place");
            *last = if is_at(next) { next } else { found() };
        }
        let more = if *last < self.before { 0 } else { (own.end - own.start) as usize };
        ((*last + more) * b + within) as u32
    }
}
