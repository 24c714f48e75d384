//! Block rows around those of a rank, as its part of factors of the whole matrix has them.

use std::ops::Range;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::memory;
use crate::compute::distributed::part::Part;
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;
use crate::symbolic::interfaces::Elimination;
use crate::symbolic::{FillPattern, Schedule};

/// Block rows that a rank's factors have, stage by stage.
pub(super) struct Rows {
    pub(super) order: Arc<Elimination>,
    /// Of each block row of the part its number in the order of elimination, where that is not stage by stage.
    pub(super) given: Option<Arc<[u64]>>,
    /// Block rows of this rank.
    pub(super) own: Range<u64>,
    /// Numbers of all, and their places in the part.
    pub(super) numbers: Vec<u64>,
    pub(super) places: Vec<u32>,
}

impl Rows {
    /// Ascends in the order of the rows here.
    fn key(&self, row: u64) -> (usize, u64) {
        (self.order.stage(row as usize), row)
    }

    /// Where a row is.
    pub(super) fn place(&self, row: u64) -> Option<u32> {
        let key = self.key(row);
        self.numbers.binary_search_by_key(&key, |&other| self.key(other)).ok().map(|at| at as u32)
    }

    /// Places in `numbers` of those that are `kept`, all own rows among them, stage by stage in the order of their
    /// numbers.
    fn by_stages(&self, kept: &[bool]) -> Vec<u32> {
        let mut own = vec![0; (self.own.end - self.own.start) as usize];
        let mut others = Vec::new();
        for ((at, &row), _) in (0..).zip(&self.numbers).zip(kept).filter(|(_, kept)| **kept) {
            if self.own.contains(&row) {
                own[(row - self.own.start) as usize] = at;
            } else {
                others.push((row, at));
            }
        }
        others.sort_unstable();
        let before = others.partition_point(|&(row, _)| row < self.own.start);
        let place = |&(_, at): &(u64, u32)| at;
        let (before, after) = others.split_at(before);
        let rows: Vec<u32> =
            before.iter().map(place).chain(own).chain(after.iter().map(place)).collect();
        let stage = |&at: &u32| self.order.stage(self.numbers[at as usize] as usize) as u32;
        let stages: Vec<u32> = rows.iter().map(stage).collect();
        // stable
        Schedule::from_levels(&stages).rows.iter().map(|&at| rows[at as usize]).collect()
    }

    pub(super) fn is_own(&self, at: usize) -> bool {
        self.own.contains(&self.numbers[at])
    }

    /// Of each place in the part the number that its row has here, `u32::MAX` where it has none.
    fn inverse(&self, part: &Part) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; part.blocks()];
        (0..).zip(&self.places).for_each(|(number, &place)| numbers[place as usize] = number);
        numbers
    }
}

/// Couplings between rows, in their order.
pub(super) fn pattern(rows: &Rows, part: &Part) -> Pattern<'static> {
    let (a, b, numbers) = (part.matrix(), part.block_size(), rows.inverse(part));
    let (mut row_ptr, mut col_ind) =
        (memory::with_capacity(rows.places.len() + 1), memory::with_capacity(a.nnz() / b.pow(2)));
    row_ptr.push(0);
    for place in rows.places.iter().map(|&place| place as usize) {
        let first = col_ind.len();
        for i in place * b..(place + 1) * b {
            let mut last = u32::MAX;
            for block in a.row(i).0.iter().map(|column| column / b as u32) {
                if block != last {
                    let number = numbers[block as usize];
                    col_ind.extend((number != u32::MAX).then_some(number));
                    last = block;
                }
            }
        }
        if !col_ind[first..].is_sorted() {
            col_ind[first..].sort_unstable();
        }
        let mut end = first;
        for at in first..col_ind.len() {
            if at == first || col_ind[at] != col_ind[end - 1] {
                col_ind[end] = col_ind[at];
                end += 1;
            }
        }
        col_ind.truncate(end);
        row_ptr.push(end as u32);
    }
    Pattern::new(row_ptr, col_ind).in_blocks(b)
}

/// The entries of this rank's rows; those of others are empty.
pub(super) fn values(rows: &Rows, part: &Part) -> Result<Csr> {
    let (a, b, numbers) = (part.matrix(), part.block_size(), rows.inverse(part));
    let room = part.entries();
    let (mut col_ind, mut values) = (memory::with_capacity(room), memory::with_capacity(room));
    let mut row_ptr = memory::with_capacity(rows.numbers.len() * b + 1);
    row_ptr.push(0);
    let mut unsorted: Vec<(u32, f64)> = Vec::new();
    for (at, place) in rows.places.iter().map(|&place| place as usize).enumerate() {
        if !rows.is_own(at) {
            row_ptr.extend(std::iter::repeat_n(col_ind.len() as u32, b));
            continue;
        }
        for i in place * b..(place + 1) * b {
            let (cols, entries) = a.row(i);
            let first = col_ind.len();
            for (&column, &value) in cols.iter().zip(entries) {
                let number = numbers[column as usize / b];
                if number != u32::MAX {
                    col_ind.push(number * b as u32 + column % b as u32);
                    values.push(value);
                }
            }
            if !col_ind[first..].is_sorted() {
                unsorted.clear();
                let own = col_ind[first..].iter().copied().zip(values[first..].iter().copied());
                unsorted.extend(own);
                unsorted.sort_unstable_by_key(|entry| entry.0);
                for (at, &(column, value)) in unsorted.iter().enumerate() {
                    (col_ind[first + at], values[first + at]) = (column, value);
                }
            }
            row_ptr.push(col_ind.len() as u32);
        }
    }
    let n = row_ptr.len() - 1;
    Ok(Csr::new(n, n, row_ptr, col_ind, values)?.in_blocks(b))
}

/// Of the pattern of `known` rows around those of this rank, in the order of elimination, the part that its factors
/// need: its rows, their columns, and of those below the diagonal the entries of U' that are subtracted. The rows are
/// put stage by stage, their columns stay in the order of elimination. Also returns these rows, by their places.
pub(super) fn needed(all: &FillPattern, known: &Rows) -> (FillPattern, Vec<u32>) {
    let (n, is_own) = (all.rows(), |i: usize| known.is_own(i));
    let (mut kept, mut below) = (vec![false; n], vec![false; n]);
    for i in (0..n).filter(|&i| is_own(i)) {
        kept[i] = true;
        for &j in all.lower.row(i) {
            (kept[j as usize], below[j as usize]) = (true, true);
        }
        all.upper.row(i).iter().for_each(|&j| kept[j as usize] = true);
    }
    let rows = known.by_stages(&kept);
    let mut number = vec![u32::MAX; n];
    rows.iter().enumerate().for_each(|(new, &old)| number[old as usize] = new as u32);
    let part = |of: &Pattern, has: &dyn Fn(usize) -> bool| {
        let mut row_ptr = memory::with_capacity(rows.len() + 1);
        let mut col_ind = memory::with_capacity(of.entries());
        row_ptr.push(0);
        for &i in &rows {
            if has(i as usize) {
                let columns = of.row(i as usize).iter().map(|&j| number[j as usize]);
                col_ind.extend(columns.filter(|&j| j != u32::MAX));
            }
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind).in_blocks(of.block_size())
    };
    let lower = part(&all.lower, &is_own);
    let upper = part(&all.upper, &|i| is_own(i) || below[i]);
    let own = all.no_diagonal.iter().filter(|&&i| is_own(i as usize));
    let mut no_diagonal: Vec<u32> = own.map(|&i| number[i as usize]).collect();
    no_diagonal.sort_unstable();
    (FillPattern::new(lower, upper, no_diagonal), rows)
}
