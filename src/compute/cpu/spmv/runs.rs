//! Products with rows in [runs](Runs): each has the operations of a row alone, in their order, and the columns of its
//! run's first row.

#![allow(unsafe_code, reason = "instruction sets chosen at run time")]

use super::super::multiversion::multiversion;
use super::super::row_sums::{in_four_sums, row_sum};
use super::super::runs::{Run, Runs, with_columns};
use super::super::simd::{Simd, prefetch_ahead};
use super::{ROWS_PER_TASK, Rows, rows_by_columns};
use crate::base::threads::Threads;

/// As [`super::product`], of blocks of one.
pub(in super::super) fn product(
    runs: &Runs,
    a: Rows,
    x: &[f64],
    b: Option<&[f64]>,
    y: &mut [f64],
    parallel: bool,
) {
    assert_eq!((y.len(), x.len()), (a.row_ptr.len() - 1, a.columns));
    let task = |task, y: &mut [f64]| {
        let first = task * ROWS_PER_TASK;
        rows(runs, a, x, b.map(|b| &b[first..]), first, y);
    };
    Threads::when(parallel).chunks(y, ROWS_PER_TASK, 1, task);
}

multiversion! { fn rows[](runs: &Runs, a: Rows, x: &[f64], b: Option<&[f64]>, first: usize, y: &mut [f64]) = rows_body }

#[inline(always)]
fn rows_body<S: Simd>(
    s: S,
    runs: &Runs,
    a: Rows,
    x: &[f64],
    b: Option<&[f64]>,
    first: usize,
    y: &mut [f64],
) {
    match b {
        Some(b) => some_runs::<true, S>(s, runs, a, x, b, first, y),
        None => some_runs::<false, S>(s, runs, a, x, &[], first, y),
    }
}

/// Rows from `first` on, with which y and b begin.
#[inline(always)]
fn some_runs<const MINUS: bool, S: Simd>(
    s: S,
    runs: &Runs,
    a: Rows,
    x: &[f64],
    b: &[f64],
    first: usize,
    y: &mut [f64],
) {
    for run in runs.ahead(first..first + y.len()) {
        let (at, of) = (run.rows.start, run.rows.start - first..run.rows.end - first);
        let (y, b) = (&mut y[of.clone()], if MINUS { &b[of] } else { b });
        with_columns!(
            run.distances.len(),
            M,
            one_run::<M, MINUS, S>(s, a, x, b, &run, y),
            rows_by_columns::<MINUS, f64, S>(s, a, x, b, at, y)
        );
    }
}

/// A run of rows of M entries.
#[inline(always)]
fn one_run<const M: usize, const MINUS: bool, S: Simd>(
    s: S,
    a: Rows,
    x: &[f64],
    b: &[f64],
    run: &Run,
    y: &mut [f64],
) {
    let (entries, columns) = (run.entries::<M, _>(a.values), run.columns::<M>());
    for (i, (y, of_row)) in y.iter_mut().zip(entries).enumerate() {
        prefetch_ahead(of_row);
        let add = |sum: f64, t: usize| {
            // SAFETY: row i of the run has this column, below `a.columns` by the invariant of the matrix, and `x` is
            // that long.
            let x = unsafe { *x.get_unchecked(columns[t] + i) };
            s.madd(if MINUS { -of_row[t] } else { of_row[t] }, x, sum)
        };
        let start = if MINUS { b[i] } else { 0.0 };
        *y = row_sum([const { in_four_sums(M) }, M], start, add);
    }
}
