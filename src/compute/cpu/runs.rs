//! Runs of rows: consecutive rows with blocks of one whose columns are at the same distances from the diagonal, as the
//! rows along a line of a grid have them. Products and solves read the columns of the first row of a run alone.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;

/// Mean rows of a run below which rows are taken one by one.
const FEWEST: usize = 4;

/// The runs of all rows, ascending. What a pass reads of them lies together: it comes to a new run too seldom for the
/// processor to fetch the columns of its first row from memory ahead.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    heads: Vec<Head>,
    /// Columns of a row less the row, of one run after the other.
    distances: Vec<i32>,
}

/// Where a run begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    end: u32,
    /// The first entry of the first row.
    entry: u32,
    /// The first of its distances; the last is before that of the next run.
    distance: u32,
}

/// Rows of a run, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run<'a> {
    /// The rows.
    pub(super) rows: Range<usize>,
    /// The first entry of the first row.
    pub(super) entry: usize,
    /// The columns of each row less the row, ascending.
    pub(super) distances: &'a [i32],
}

impl Run<'_> {
    /// The columns of the first row, which are M.
    #[inline(always)]
    pub(super) fn columns<const M: usize>(&self) -> [usize; M] {
        std::array::from_fn(|t| self.rows.start.wrapping_add_signed(self.distances[t] as isize))
    }

    /// Rows from a column back to its row, of a lower triangle; the furthest first.
    #[inline(always)]
    pub(super) fn back<const M: usize>(&self) -> [usize; M] {
        self.columns().map(|j| self.rows.start - j)
    }

    /// Rows from a row ahead to its column, of an upper triangle; the furthest first.
    #[inline(always)]
    pub(super) fn ahead<const M: usize>(&self) -> [usize; M] {
        let mut ahead = self.columns().map(|j| j - self.rows.start);
        ahead.reverse();
        ahead
    }

    /// The entries of each row, of those of all rows.
    #[inline(always)]
    pub(super) fn entries<'v, const M: usize, T>(&self, all: &'v [T]) -> &'v [[T; M]] {
        all[self.entry..][..M * self.rows.len()].as_chunks().0
    }

    /// The same where they are stored from the last to the first: those of the last row come first.
    #[inline(always)]
    pub(super) fn entries_behind<'v, const M: usize, T>(&self, all: &'v [T]) -> &'v [[T; M]] {
        let count = M * self.rows.len();
        all[all.len() - self.entry - count..][..count].as_chunks().0
    }
}

impl Runs {
    /// Those of a pattern; `None` where they are short.
    pub(super) fn of(threads: Threads, pattern: PatternView) -> Option<Self> {
        found(threads, pattern)
    }

    /// Bytes of indices that a product reads: what is kept of each run.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.heads) + size_of_val(&*self.distances)
    }

    /// The first row of run r.
    fn start(&self, r: usize) -> usize {
        if r == 0 { 0 } else { self.heads[r - 1].end as usize }
    }

    /// The rows of run r that are in `rows`.
    #[inline(always)]
    fn run(&self, r: usize, rows: &Range<usize>) -> Run<'_> {
        let (of, start) = (self.heads[r], self.start(r));
        let rows = start.max(rows.start)..(of.end as usize).min(rows.end);
        let next = self.heads.get(r + 1).map_or(self.distances.len(), |of| of.distance as usize);
        let distances = &self.distances[of.distance as usize..next];
        let entry = of.entry as usize + (rows.start - start) * distances.len();
        Run { rows, entry, distances }
    }

    /// Those within `rows`, ascending.
    #[inline(always)]
    pub(super) fn ahead(&self, rows: Range<usize>) -> impl Iterator<Item = Run<'_>> {
        let first = self.heads.partition_point(|of| of.end as usize <= rows.start);
        let some = (first..self.heads.len()).take_while({
            let end = rows.end;
            move |&r| self.start(r) < end
        });
        some.map(move |r| self.run(r, &rows))
    }

    /// Those within `rows`, descending.
    #[inline(always)]
    pub(super) fn behind(&self, rows: Range<usize>) -> impl Iterator<Item = Run<'_>> {
        // the run of the last row is the first that ends there or behind it
        let last = self.heads.partition_point(|of| (of.end as usize) < rows.end);
        let some = (0..self.heads.len().min(last + 1)).rev().take_while({
            let start = rows.start;
            move |&r| self.heads[r].end as usize > start
        });
        some.map(move |r| self.run(r, &rows))
    }
}

/// `$run` with the constant `$M`, the entries of a row, where it is from 1 to as many as are listed; else `$other`.
macro_rules! with_columns {
    ($count:expr, $M:ident, $run:expr, $other:expr) => {
        $crate::compute::cpu::runs::with_columns!(@ $count, $M, $run, $other,
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24)
    };
    (@ $count:expr, $M:ident, $run:expr, $other:expr, $($m:literal)*) => {
        match $count {
            $($m => {
                const $M: usize = $m;
                $run
            })*
            _ => $other,
        }
    };
}
pub(super) use with_columns;

/// The runs; `None` where they are short.
fn found(threads: Threads, of: PatternView) -> Option<Runs> {
    /// Rows that are looked at together, and by a thread.
    const TOGETHER: usize = 16;
    const PART: usize = 1 << 14;
    /// Ends after which a part looks at those of all.
    const ENOUGH: usize = 256;
    let rows = of.row_ptr.len() - 1;
    let size = if threads.count() == 1 { rows.max(1) } else { PART };
    let found = AtomicUsize::new(0);
    let length = |row: usize| of.row_ptr[row + 1] - of.row_ptr[row];
    // whether so many rows from `at` on have `length` columns each, one more than those of the row before
    let continues = |at: usize, count: usize, length: u32| {
        let of_rows = of.row_ptr[at..=at + count].windows(2);
        let differ = of_rows.fold(0, |all, of| all | ((of[1] - of[0]) ^ length));
        let (before, own) = (of.row_ptr[at - 1] as usize, of.row_ptr[at] as usize);
        differ == 0 && {
            let own = &of.col_ind[own..own + count * length as usize];
            let pairs = of.col_ind[before..].iter().zip(own);
            pairs.fold(0, |all, (&a, &b)| all | (a.wrapping_add(1) ^ b)) == 0
        }
    };
    // the ends before a part and in it, and the runs that begin in it
    let of_part = |part: usize| {
        let (mut ends, mut runs) = (Vec::new(), Runs::default());
        let (mut end, last) = (part * size, rows.min((part + 1) * size));
        let mut begins = end == 0;
        if end > 0 && !continues(end, 1, length(end - 1)) {
            ends.push(end as u32);
            begins = true;
        }
        let mut told = 0;
        while end < last {
            if ends.len() >= told + ENOUGH {
                // runs of all parts are too short when as many ends are found
                let before = found.fetch_add(ends.len() - told, Ordering::Relaxed);
                told = ends.len();
                if (before + ENOUGH) * FEWEST > rows {
                    break;
                }
            }
            let length = length(end);
            if begins {
                let entry = of.row_ptr[end] as usize;
                let distance = runs.distances.len() as u32;
                runs.heads.push(Head { end: 0, entry: entry as u32, distance });
                let columns = &of.col_ind[entry..entry + length as usize];
                runs.distances.extend(columns.iter().map(|&j| j.wrapping_sub(end as u32) as i32));
            }
            begins = true;
            end += 1;
            while end + TOGETHER <= last && continues(end, TOGETHER, length) {
                end += TOGETHER;
            }
            while end < last && continues(end, 1, length) {
                end += 1;
            }
            if end < last || end == rows {
                ends.push(end as u32);
            }
        }
        (ends, runs)
    };
    let parts = threads.map(rows.div_ceil(size), 1, of_part);
    if parts.iter().map(|(ends, _)| ends.len()).sum::<usize>() * FEWEST > rows {
        return None;
    }
    let (mut all, mut ends) = (Runs::default(), Vec::new());
    for (of_part, runs) in parts {
        let before = all.distances.len() as u32;
        let heads = runs.heads.into_iter();
        all.heads.extend(heads.map(|of| Head { distance: of.distance + before, ..of }));
        all.distances.extend(runs.distances);
        ends.extend(of_part);
    }
    debug_assert_eq!(ends.len(), all.heads.len());
    all.heads.iter_mut().zip(ends).for_each(|(of, end)| of.end = end);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::samples::{matrix, pattern};

    #[test]
    fn runs_of_any_rows_cover_them_in_order_with_columns_at_the_same_distances() {
        for (name, fill) in [("poisson3d:17x4x3", 0), ("poisson3d:41x3x3", 2)] {
            let a = matrix(name);
            let pattern = pattern(&a, fill);
            let whole = PatternView::new(a.row_ptr(), a.col_ind());
            let n = a.rows();
            for of in [pattern.lower.view(), pattern.upper.view(), whole] {
                let runs = Runs::of(Threads::One, of).unwrap();
                assert!(runs.heads.len() * FEWEST <= n);
                for rows in [0..n, 5..n, 0..7, 13..14, 12..n - 3, 9..9] {
                    let ahead: Vec<_> = runs.ahead(rows.clone()).collect();
                    let all = ahead.iter().flat_map(|run| run.rows.clone());
                    assert!(all.eq(rows.clone()), "{rows:?} {ahead:?}");
                    let behind: Vec<_> = runs.behind(rows.clone()).collect();
                    let all = behind.iter().flat_map(|run| run.rows.clone().rev());
                    assert!(all.eq(rows.clone().rev()), "{rows:?} {behind:?}");
                    for run in ahead.into_iter().chain(behind) {
                        assert_eq!(run.entry, of.row_ptr[run.rows.start] as usize);
                        for i in run.rows.clone() {
                            let moved = run.distances.iter().map(|&d| i as i64 + i64::from(d));
                            assert!(moved.eq(of.row(i).iter().map(|&j| i64::from(j))));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_in_another_order_have_no_runs() {
        let a = matrix("poisson3d:9");
        let order: Vec<u32> = (0..729).map(|i| i * 200 % 729).collect();
        let a = a.permuted(&order);
        assert!(Runs::of(Threads::One, PatternView::new(a.row_ptr(), a.col_ind())).is_none());
    }

    #[test]
    fn threads_find_the_runs_of_one() {
        // parts of threads end within lines, and at their ends
        for (name, fill) in [("poisson3d:64x32x20", 0), ("poisson3d:37x41x30", 1)] {
            let a = matrix(name);
            let pattern = pattern(&a, fill);
            for of in [&pattern.lower, &pattern.upper] {
                let [one, all] =
                    [Threads::One, Threads::Pool].map(|on| Runs::of(on, of.view()).unwrap());
                assert_eq!(one.heads.last().unwrap().end, a.rows() as u32);
                assert_eq!(one, all);
            }
        }
    }
}
