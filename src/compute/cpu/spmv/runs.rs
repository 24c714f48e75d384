//! Products with rows in [runs](Runs): each has the operations of a row alone, in their order, and the columns of its
//! run's first row.

#![allow(unsafe_code, reason = "instruction sets chosen at run time")]

use super::super::multiversion::multiversion;
use super::super::row_sums::{in_four_sums, row_sum};
use super::super::runs::{Run, Runs, with_columns};
use super::super::simd::{Simd, prefetch_ahead};
use super::{Rows, rows_by_columns};
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
    let per_task = a.per_task();
    let task = |task, y: &mut [f64]| {
        let first = task * per_task;
        rows(runs, a, x, b.map(|b| &b[first..]), first, y);
    };
    Threads::when(parallel).chunks(y, per_task, 1, task);
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

/// Rows of a run that a register has.
const TOGETHER: usize = 8;

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
    let mut done = 0;
    if const { M >= 4 && in_four_sums(M) == 0 } {
        for (of_rows, y) in entries.as_chunks().0.iter().zip(y.as_chunks_mut().0) {
            let b = if MINUS { &b[done..][..TOGETHER] } else { b };
            eight_rows::<M, MINUS, S>(s, of_rows, x, columns.map(|j| j + done), b, y);
            done += TOGETHER;
        }
    }
    let rest = y[done..].iter_mut().zip(&entries[done..]);
    for (i, (y, of_row)) in (done..).zip(rest) {
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

/// Rows with one sum of four entries or more, each in a lane; the columns are those of the first.
#[inline(always)]
fn eight_rows<const M: usize, const MINUS: bool, S: Simd>(
    s: S,
    of_rows: &[[f64; M]; TOGETHER],
    x: &[f64],
    columns: [usize; M],
    b: &[f64],
    y: &mut [f64; TOGETHER],
) {
    prefetch_ahead(of_rows.as_flattened());
    let mut sum = if MINUS { s.load8::<TOGETHER>(b) } else { s.splat8(0.0) };
    // the second four begin so that they end with the rows
    for (from, done) in [(0, 0), (M - 4, 4)] {
        if done == M {
            break;
        }
        let values = s.columns8(four::<M>(of_rows, from));
        let mut t = from.max(done);
        while t < from + 4 {
            // SAFETY: row i of these has this column and i more, below the columns of the matrix, and `x` is that long.
            let x =
                s.load8::<TOGETHER>(unsafe { x.get_unchecked(columns[t]..columns[t] + TOGETHER) });
            let v = values[t - from];
            sum = if MINUS { s.msub8(v, x, sum) } else { s.madd8(v, x, sum) };
            t += 1;
        }
    }
    s.store8::<TOGETHER>(sum, y);
}

/// Four entries of each row.
#[inline(always)]
fn four<const M: usize>(of_rows: &[[f64; M]; TOGETHER], from: usize) -> [&[f64; 4]; TOGETHER] {
    let mut four = [&[0.0; 4]; TOGETHER];
    for row in 0..TOGETHER {
        four[row] = of_rows[row][from..].first_chunk().unwrap_or(four[row]);
    }
    four
}
