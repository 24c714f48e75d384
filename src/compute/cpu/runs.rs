//! Runs of rows: consecutive rows with blocks of one whose columns are at the same distances from the diagonal, as the
//! rows along a line of a grid have them. Products and solves read the columns of the first row of a run alone.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;

/// Mean rows of a run below which rows are taken one by one.
const FEWEST: usize = 4;

/// Where runs end, ascending; they cover all rows.
pub(super) struct Runs(Vec<u32>);

impl Runs {
    /// Those of a pattern; `None` where they are short.
    pub(super) fn of(threads: Threads, pattern: PatternView) -> Option<Self> {
        ends(threads, pattern).map(Self)
    }

    /// Bytes of indices that a product reads: the columns of the first row of each run, where it begins and ends, and
    /// where the run ends.
    pub(super) fn bytes(&self, row_ptr: &[u32]) -> usize {
        let first = |row: usize| 3 + (row_ptr[row + 1] - row_ptr[row]) as usize;
        let rows = row_ptr.len() - 1;
        size_of::<u32>() * self.ahead(0..rows).map(|run| first(run.start)).sum::<usize>()
    }

    /// Those within `rows`, ascending.
    pub(super) fn ahead(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let first = self.0.partition_point(|&end| end as usize <= rows.start);
        let mut start = rows.start;
        self.0[first..].iter().map_while(move |&end| {
            let run = start..(end as usize).min(rows.end);
            start = run.end;
            (!run.is_empty()).then_some(run)
        })
    }

    /// Those within `rows`, descending.
    pub(super) fn behind(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let before = self.0.partition_point(|&end| (end as usize) < rows.end);
        let mut end = rows.end;
        let starts = self.0[..before].iter().rev().map(|&end| end as usize).chain([0]);
        starts.map_while(move |start| {
            let run = start.max(rows.start)..end;
            end = run.start;
            (!run.is_empty()).then_some(run)
        })
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

/// Ends of the runs; `None` where they are short.
fn ends(threads: Threads, of: PatternView) -> Option<Vec<u32>> {
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
    // the ends before a part and in it
    let of_part = |part: usize| {
        let (mut ends, mut end, last) = (Vec::new(), part * size, rows.min((part + 1) * size));
        if end > 0 && !continues(end, 1, length(end - 1)) {
            ends.push(end as u32);
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
        ends
    };
    let ends = threads.map(rows.div_ceil(size), 1, of_part).concat();
    (ends.len() * FEWEST <= rows).then_some(ends)
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
                assert!(runs.0.len() * FEWEST <= n);
                for rows in [0..n, 5..n, 0..7, 13..14, 12..n - 3, 9..9] {
                    let ahead: Vec<_> = runs.ahead(rows.clone()).collect();
                    assert!(ahead.iter().cloned().flatten().eq(rows.clone()), "{rows:?} {ahead:?}");
                    let behind: Vec<_> = runs.behind(rows.clone()).collect();
                    assert!(behind.iter().flat_map(|run| run.clone().rev()).eq(rows.rev()));
                    for run in ahead.into_iter().chain(behind) {
                        let of_first = of.row(run.start);
                        for i in run.clone() {
                            let moved = of_first.iter().map(|&j| j + (i - run.start) as u32);
                            assert!(moved.eq(of.row(i).iter().copied()));
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
                    [Threads::One, Threads::Pool].map(|on| ends(on, of.view()).unwrap());
                assert_eq!(one.last(), Some(&(a.rows() as u32)));
                assert_eq!(one, all);
            }
        }
    }
}
