//! Rows in [runs](Runs) with multivectors of eight columns: columns of the matrix and factors are at the distances of
//! the run's first row. Each row has the operations of a row alone, in their order; one that the next row takes stays in
//! a register.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use std::ops::Range;

use super::super::entry::Entry;
use super::super::multiversion::multiversion;
use super::super::runs::{Run, Runs, with_columns};
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead, prefetch_before};
use super::super::spmv::Rows;
use super::factors::Factors;
use super::lanes::Strip;

/// Columns of the multivectors.
pub(super) const COLUMNS: usize = 8;
/// The strip that is all of them.
pub(super) const ALL: Strip = Strip { at: 0, columns: COLUMNS };

multiversion! {
    /// Rows from `first` on of `A X`, with which `y` begins; A is square, and X has its rows. Runs of longer rows are
    /// left to `others`.
    pub(super) fn product[](runs: &Runs, a: Rows, x: &[f64], first: usize, y: &mut [f64], others: &dyn Fn(usize, &mut [f64])) = product_body
}
multiversion! {
    /// The forward solve in `rows`, which comes from the rows before; runs of longer rows are left to `others`.
    pub(super) fn forward[T: Entry](runs: &Runs, f: Factors<T>, r: &[f64], z: Shared, rows: Range<usize>, others: &dyn Fn(Range<u32>)) = forward_body
}
multiversion! {
    /// The backward solve in `rows`, which comes from the rows behind, likewise.
    pub(super) fn backward[T: Entry](runs: &Runs, f: Factors<T>, z: Shared, rows: Range<usize>, others: &dyn Fn(Range<u32>)) = backward_body
}

#[inline(always)]
fn product_body<S: Simd>(
    s: S,
    runs: &Runs,
    a: Rows,
    x: &[f64],
    first: usize,
    y: &mut [f64],
    others: &dyn Fn(usize, &mut [f64]),
) {
    for run in runs.ahead(first..first + y.len() / COLUMNS) {
        let at = run.rows.start;
        let y = &mut y[(at - first) * COLUMNS..(run.rows.end - first) * COLUMNS];
        with_columns!(@ run.distances.len(), M, product_run::<M, S>(s, a, x, &run, y),
            others(at, y), 1 2 3 4 5 6 7);
    }
}

#[inline(always)]
fn product_run<const M: usize, S: Simd>(s: S, a: Rows, x: &[f64], run: &Run, y: &mut [f64]) {
    let y = y.as_chunks_mut::<COLUMNS>().0;
    let entries = run.entries::<M, _>(a.values);
    let columns: [usize; M] = run.columns().map(|j| j * COLUMNS);
    for (i, (y, of_row)) in y.iter_mut().zip(entries).enumerate() {
        prefetch_ahead(of_row);
        let mut sum = s.splat8(0.0);
        for t in 0..M {
            let from = columns[t] + i * COLUMNS;
            // SAFETY: row i of the run has this column, below `a.columns` by the invariant of the matrix, and `x` has as
            // many rows.
            let x = s.load8::<COLUMNS>(unsafe { x.get_unchecked(from..from + COLUMNS) });
            sum = s.madd8(s.splat8(of_row[t]), x, sum);
        }
        s.store8::<COLUMNS>(sum, y);
    }
}

/// Row i of a vector.
#[inline(always)]
fn row(i: usize) -> Range<usize> {
    i * COLUMNS..(i + 1) * COLUMNS
}

#[inline(always)]
fn forward_body<T: Entry, S: Simd>(
    s: S,
    runs: &Runs,
    f: Factors<T>,
    r: &[f64],
    z: Shared,
    rows: Range<usize>,
    others: &dyn Fn(Range<u32>),
) {
    assert!(r.len() >= rows.end * COLUMNS);
    for run in runs.ahead(rows) {
        with_columns!(@ run.distances.len(), M, forward_run::<M, T, S>(s, f, r, z, &run), {
            others(numbers(run.rows));
        }, 1 2 3 4 5 6 7);
    }
}

#[inline(always)]
fn backward_body<T: Entry, S: Simd>(
    s: S,
    runs: &Runs,
    f: Factors<T>,
    z: Shared,
    rows: Range<usize>,
    others: &dyn Fn(Range<u32>),
) {
    for run in runs.behind(rows) {
        with_columns!(@ run.distances.len(), M, backward_run::<M, T, S>(s, f, z, &run), {
            others(numbers(run.rows));
        }, 1 2 3 4 5 6 7);
    }
}

fn numbers(rows: Range<usize>) -> Range<u32> {
    rows.start as u32..rows.end as u32
}

/// Row i of a solve.
///
/// # Safety
/// Nobody writes it now.
#[inline(always)]
unsafe fn solved<S: Simd>(s: S, z: Shared, i: usize) -> S::F8 {
    // SAFETY: by the caller's promise.
    s.load8::<COLUMNS>(unsafe { z.read(row(i)) })
}

#[inline(always)]
fn forward_run<const M: usize, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    r: &[f64],
    z: Shared,
    run: &Run,
) {
    let (rows, back, entries) = (run.rows.clone(), run.back::<M>(), run.entries::<M, _>(f.lower));
    let chained = back[M - 1] == 1;
    // SAFETY: columns of these rows are solved: earlier in the loop, or in a task that was waited for.
    let mut last = unsafe { solved(s, z, rows.start - back[M - 1]) };
    for (i, of_row) in rows.zip(entries) {
        let own = &r[row(i)];
        // SAFETY: this call alone writes row i, and nobody reads it before the task ends.
        let to = unsafe { z.write(row(i)) };
        prefetch_ahead(of_row);
        if f.far {
            prefetch_ahead(own);
            prefetch_ahead(to);
        }
        let mut sum = s.load8::<COLUMNS>(own);
        for t in 0..M - 1 {
            // SAFETY: as above.
            let z = unsafe { solved(s, z, i - back[t]) };
            sum = s.msub8(s.splat8(of_row[t].wide()), z, sum);
        }
        if !chained {
            // SAFETY: as above.
            last = unsafe { solved(s, z, i - back[M - 1]) };
        }
        last = s.msub8(s.splat8(of_row[M - 1].wide()), last, sum);
        s.store8::<COLUMNS>(last, to);
    }
}

#[inline(always)]
fn backward_run<const M: usize, T: Entry, S: Simd>(s: S, f: Factors<T>, z: Shared, run: &Run) {
    let (rows, ahead) = (run.rows.clone(), run.ahead::<M>());
    let entries = run.entries_behind::<M, _>(f.upper);
    let chained = ahead[M - 1] == 1;
    // SAFETY: as above.
    let mut last = unsafe { solved(s, z, rows.end - 1 + ahead[M - 1]) };
    for (i, of_row) in rows.rev().zip(entries) {
        // SAFETY: this call alone touches row i.
        let own = unsafe { z.write(row(i)) };
        let inverse = &f.inverse_diagonal[i..=i];
        prefetch_ahead(of_row);
        if f.far {
            prefetch_before(inverse);
            prefetch_before(own);
        }
        let mut sum = s.splat8(inverse[0].wide());
        sum = s.madd8(sum, s.load8::<COLUMNS>(own), s.splat8(0.0));
        for t in 0..M - 1 {
            // SAFETY: as above.
            let z = unsafe { solved(s, z, i + ahead[t]) };
            sum = s.msub8(s.splat8(of_row[t].wide()), z, sum);
        }
        if !chained {
            // SAFETY: as above.
            last = unsafe { solved(s, z, i + ahead[M - 1]) };
        }
        last = s.msub8(s.splat8(of_row[M - 1].wide()), last, sum);
        s.store8::<COLUMNS>(last, own);
    }
}
