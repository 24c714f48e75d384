//! Rows in [runs](Runs) with strips of multivectors: columns of the matrix and factors are at the distances of
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
use super::lanes::{Lanes, Strip};

multiversion! {
    /// Rows from `first` on of `A X`, with which `y` begins; A is square, and X has its rows. Runs of longer rows are
    /// left to `others`.
    pub(super) fn product[L: Lanes](lanes: L, runs: &Runs, a: Rows, strip: Strip, x: &[f64], first: usize, y: &mut [f64], others: &dyn Fn(usize, &mut [f64])) = product_body
}
multiversion! {
    /// The forward solve in `rows`, which comes from the rows before; runs of longer rows are left to `others`.
    pub(super) fn forward[L: Lanes, T: Entry](lanes: L, runs: &Runs, f: Factors<T>, strip: Strip, r: &[f64], z: Shared, rows: Range<usize>, others: &dyn Fn(Range<u32>)) = forward_body
}
multiversion! {
    /// The backward solve in `rows`, which comes from the rows behind, likewise.
    pub(super) fn backward[L: Lanes, T: Entry](lanes: L, runs: &Runs, f: Factors<T>, strip: Strip, z: Shared, rows: Range<usize>, others: &dyn Fn(Range<u32>)) = backward_body
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn product_body<L: Lanes, S: Simd>(
    s: S,
    _: L,
    runs: &Runs,
    a: Rows,
    strip: Strip,
    x: &[f64],
    first: usize,
    y: &mut [f64],
    others: &dyn Fn(usize, &mut [f64]),
) {
    let strip = strip.known::<L>();
    for run in runs.ahead(first..first + y.len() / strip.columns) {
        let at = run.rows.start;
        let y = &mut y[strip.rows(at - first, run.rows.len())];
        with_columns!(@ run.distances.len(), M, product_run::<M, L, S>(s, a, strip, x, &run, y),
            others(at, y), 1 2 3 4 5 6 7);
    }
}

#[inline(always)]
fn product_run<const M: usize, L: Lanes, S: Simd>(
    s: S,
    a: Rows,
    strip: Strip,
    x: &[f64],
    run: &Run,
    y: &mut [f64],
) {
    let y = y.chunks_exact_mut(strip.columns);
    let entries = run.entries::<M, _>(a.values);
    let columns: [usize; M] = run.columns().map(|j| strip.of_row(j));
    for (i, (y, of_row)) in y.zip(entries).enumerate() {
        prefetch_ahead(of_row);
        let mut sum = L::zero(s);
        for t in 0..M {
            let from = columns[t] + i * strip.columns;
            // SAFETY: row i of the run has this column, below `a.columns` by the invariant of the matrix, and `x` has as
            // many rows.
            let x = L::load(s, unsafe { x.get_unchecked(from..from + L::COUNT) });
            sum = L::madd(s, of_row[t], x, sum);
        }
        L::store(s, sum, &mut y[strip.at..]);
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn forward_body<L: Lanes, T: Entry, S: Simd>(
    s: S,
    _: L,
    runs: &Runs,
    f: Factors<T>,
    strip: Strip,
    r: &[f64],
    z: Shared,
    rows: Range<usize>,
    others: &dyn Fn(Range<u32>),
) {
    let strip = strip.known::<L>();
    assert!(r.len() >= rows.end * strip.columns);
    for run in runs.ahead(rows) {
        with_columns!(@ run.distances.len(), M, forward_run::<M, L, T, S>(s, f, strip, r, z, &run), {
            others(numbers(run.rows));
        }, 1 2 3 4 5 6 7);
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn backward_body<L: Lanes, T: Entry, S: Simd>(
    s: S,
    _: L,
    runs: &Runs,
    f: Factors<T>,
    strip: Strip,
    z: Shared,
    rows: Range<usize>,
    others: &dyn Fn(Range<u32>),
) {
    let strip = strip.known::<L>();
    for run in runs.behind(rows) {
        with_columns!(@ run.distances.len(), M, backward_run::<M, L, T, S>(s, f, strip, z, &run), {
            others(numbers(run.rows));
        }, 1 2 3 4 5 6 7);
    }
}

fn numbers(rows: Range<usize>) -> Range<u32> {
    rows.start as u32..rows.end as u32
}

/// Row i of a solve, of which the strip's columns are at the head.
///
/// # Safety
/// Nobody writes it now.
#[inline(always)]
unsafe fn solved<L: Lanes, S: Simd>(s: S, strip: Strip, z: Shared, i: usize) -> L::Of<S> {
    let at = strip.of_row(i);
    // SAFETY: by the caller's promise.
    L::load(s, unsafe { z.read(at..at + L::COUNT) })
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn forward_run<const M: usize, L: Lanes, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    strip: Strip,
    r: &[f64],
    z: Shared,
    run: &Run,
) {
    let (rows, back, entries) = (run.rows.clone(), run.back::<M>(), run.entries::<M, _>(f.lower));
    let chained = back[M - 1] == 1;
    // SAFETY: columns of these rows are solved: earlier in the loop, or in a task that was waited for.
    let mut last = unsafe { solved::<L, S>(s, strip, z, rows.start - back[M - 1]) };
    for (i, of_row) in rows.zip(entries) {
        let at = strip.of_row(i);
        let own = &r[at..at + L::COUNT];
        // SAFETY: this call alone writes row i, and nobody reads it before the task ends.
        let to = unsafe { z.write(at..at + L::COUNT) };
        prefetch_ahead(of_row);
        if f.far {
            prefetch_ahead(&r[strip.rows(i, 1)]);
            prefetch_ahead(to);
        }
        let mut sum = L::load(s, own);
        for t in 0..M - 1 {
            // SAFETY: as above.
            let z = unsafe { solved::<L, S>(s, strip, z, i - back[t]) };
            sum = L::madd(s, -of_row[t].wide(), z, sum);
        }
        if !chained {
            // SAFETY: as above.
            last = unsafe { solved::<L, S>(s, strip, z, i - back[M - 1]) };
        }
        last = L::madd(s, -of_row[M - 1].wide(), last, sum);
        L::store(s, last, to);
    }
}

#[inline(always)]
fn backward_run<const M: usize, L: Lanes, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    strip: Strip,
    z: Shared,
    run: &Run,
) {
    let (rows, ahead) = (run.rows.clone(), run.ahead::<M>());
    let entries = run.entries_behind::<M, _>(f.upper);
    let chained = ahead[M - 1] == 1;
    // SAFETY: as above.
    let mut last = unsafe { solved::<L, S>(s, strip, z, rows.end - 1 + ahead[M - 1]) };
    for (i, of_row) in rows.rev().zip(entries) {
        // SAFETY: this call alone touches row i.
        let own = unsafe { z.write(strip.of_row(i)..strip.of_row(i) + L::COUNT) };
        let inverse = &f.inverse_diagonal[i..=i];
        prefetch_ahead(of_row);
        if f.far {
            prefetch_before(inverse);
            prefetch_before(own);
        }
        let mut sum = L::madd(s, inverse[0].wide(), L::load(s, own), L::zero(s));
        for t in 0..M - 1 {
            // SAFETY: as above.
            let z = unsafe { solved::<L, S>(s, strip, z, i + ahead[t]) };
            sum = L::madd(s, -of_row[t].wide(), z, sum);
        }
        if !chained {
            // SAFETY: as above.
            last = unsafe { solved::<L, S>(s, strip, z, i + ahead[M - 1]) };
        }
        last = L::madd(s, -of_row[M - 1].wide(), last, sum);
        L::store(s, last, own);
    }
}
