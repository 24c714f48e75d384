//! Rows of a [run](super::super::runs::Runs): columns are at the distances of its first row. Each row has the operations
//! of [`forward_row`](super::rows::forward_row) and [`backward_row`](super::rows::backward_row), in their order; an
//! unknown that the next row takes stays in a register.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use std::ops::Range;

use super::super::block::Fixed;
use super::super::entry::{Entry, scale};
use super::super::ilu::Plan;
use super::super::multiversion::multiversion;
use super::super::row_sums::{far_in_four_sums, row_sum};
use super::super::runs::{Run, Runs, with_columns};
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead};
use super::Factors;
use super::rows::Numbers;
use super::uniform::Uniform;

/// `z = (L D U')^-1 r`, as [`super::apply`].
pub(super) fn apply<T: Entry>(
    runs: &[Runs; 2],
    f: Factors<Uniform<T>>,
    plan: Option<&Plan>,
    r: &[f64],
    z: &mut [f64],
) {
    let n = f.rows();
    assert!(r.len() == n && z.len() == n);
    let Some(plan) = plan else {
        forward(runs, f, 0..n, r, z);
        backward(runs, f, 0..n, z);
        return;
    };
    let z = Shared::new(z);
    plan.lower.run(&|rows| match consecutive(rows) {
        Some(rows) => forward_runs(runs, f, &r[rows.clone()], z, rows),
        None => super::forward_rows(Fixed::<1>, f, r, z, rows),
    });
    plan.upper.run(&|rows| match consecutive(rows) {
        Some(rows) => backward_runs(runs, f, z, rows),
        None => super::backward_rows(Fixed::<1>, f, z, rows),
    });
}

/// As [`super::forward_part`].
pub(super) fn forward<T: Entry>(
    runs: &[Runs; 2],
    f: Factors<Uniform<T>>,
    rows: Range<usize>,
    r: &[f64],
    z: &mut [f64],
) {
    forward_runs(runs, f, r, Shared::new(z), rows);
}

/// As [`super::backward_part`].
pub(super) fn backward<T: Entry>(
    runs: &[Runs; 2],
    f: Factors<Uniform<T>>,
    rows: Range<usize>,
    z: &mut [f64],
) {
    backward_runs(runs, f, Shared::new(z), rows);
}

/// The rows of a task, where they follow each other: ascending or descending.
fn consecutive(rows: &[u32]) -> Option<Range<usize>> {
    let (first, last) = (*rows.first()? as usize, *rows.last()? as usize);
    debug_assert!(rows.is_sorted() || rows.is_sorted_by(|a, b| a > b));
    (first.abs_diff(last) + 1 == rows.len()).then(|| first.min(last)..first.max(last) + 1)
}

multiversion! { fn forward_runs[T: Entry](runs: &[Runs; 2], f: Factors<Uniform<T>>, r: &[f64], z: Shared, rows: Range<usize>) = forward_body }
multiversion! { fn backward_runs[T: Entry](runs: &[Runs; 2], f: Factors<Uniform<T>>, z: Shared, rows: Range<usize>) = backward_body }

/// r begins with the first of `rows`.
#[inline(always)]
fn forward_body<T: Entry, S: Simd>(
    s: S,
    [lower, _]: &[Runs; 2],
    f: Factors<Uniform<T>>,
    r: &[f64],
    z: Shared,
    rows: Range<usize>,
) {
    let first = rows.start;
    for run in lower.ahead(rows) {
        let r = &r[run.rows.start - first..run.rows.end - first];
        let columns = run.distances.len();
        with_columns!(columns, M, forward_run::<M, T, S>(s, f.numbers, r, z, &run), {
            for (i, r) in run.rows.zip(r.chunks_exact(1)) {
                f.numbers.forward::<true, _, _>(s, Fixed::<1>, f.lower, r, z, i);
            }
        });
    }
}

#[inline(always)]
fn backward_body<T: Entry, S: Simd>(
    s: S,
    [_, upper]: &[Runs; 2],
    f: Factors<Uniform<T>>,
    z: Shared,
    rows: Range<usize>,
) {
    for run in upper.behind(rows) {
        let columns = run.distances.len();
        with_columns!(columns, M, backward_run::<M, T, S>(s, f.numbers, z, &run), {
            for i in run.rows.rev() {
                f.numbers.backward::<true, _, _>(s, Fixed::<1>, f.upper, z, i);
            }
        });
    }
}

/// The forward solve in rows of M columns; r begins with the first of them.
#[inline(always)]
fn forward_run<const M: usize, T: Entry, S: Simd>(
    s: S,
    f: Uniform<T>,
    r: &[f64],
    z: Shared,
    run: &Run,
) {
    let (rows, back, entries) = (run.rows.clone(), run.back::<M>(), run.entries::<M, _>(f.lower));
    // SAFETY: columns of these rows are solved: earlier in the loop, or in a task that was waited for.
    let read = |i: usize, t: usize| unsafe { z.read(i - back[t]..i - back[t] + 1)[0] };
    let chained = back[M - 1] == 1;
    let mut last = if chained { read(rows.start, M - 1) } else { 0.0 };
    for ((i, of_row), &own) in rows.zip(entries).zip(r) {
        prefetch_ahead(of_row);
        let start = if T::SCALED { 0.0 } else { own };
        let mut acc = far_sum::<M>(start, |sum, t| s.madd(-of_row[t].wide(), read(i, t), sum));
        let nearest = if chained { last } else { read(i, M - 1) };
        acc = s.madd(-of_row[M - 1].wide(), nearest, acc);
        if T::SCALED {
            acc = s.madd(scale(f.lower_scales[i]), acc, own);
        }
        last = acc;
        // SAFETY: this call alone writes row i, and nobody reads it before the task ends.
        unsafe { z.write(i..i + 1)[0] = acc };
    }
}

/// Subtracts products of all columns but the nearest from `start`; `minus(sum, column)` subtracts one.
#[inline(always)]
fn far_sum<const M: usize>(start: f64, minus: impl Fn(f64, usize) -> f64) -> f64 {
    row_sum([const { far_in_four_sums(M) }, M - 1], start, minus)
}

/// The backward solve in `rows`, from the last to the first.
#[inline(always)]
fn backward_run<const M: usize, T: Entry, S: Simd>(s: S, f: Uniform<T>, z: Shared, run: &Run) {
    let (rows, ahead) = (run.rows.clone(), run.ahead::<M>());
    let entries = run.entries_behind::<M, _>(f.upper);
    // SAFETY: as above.
    let read = |i: usize, t: usize| unsafe { z.read(i + ahead[t]..i + ahead[t] + 1)[0] };
    let chained = ahead[M - 1] == 1;
    let mut last = if chained { read(rows.end - 1, M - 1) } else { 0.0 };
    for (i, of_row) in rows.rev().zip(entries) {
        prefetch_ahead(of_row);
        // SAFETY: this call alone touches row i.
        let own = unsafe { z.write(i..i + 1) };
        let mut start = s.madd(f.inverse_diagonal[i].wide(), own[0], 0.0);
        if T::SCALED {
            start = s.madd(scale(f.inverse_scales[i]), start, 0.0);
        }
        let from = if T::SCALED { 0.0 } else { start };
        let mut acc = far_sum::<M>(from, |sum, t| s.madd(-of_row[t].wide(), read(i, t), sum));
        let nearest = if chained { last } else { read(i, M - 1) };
        acc = s.madd(-of_row[M - 1].wide(), nearest, acc);
        if T::SCALED {
            acc = s.madd(scale(f.upper_scales[i]), acc, start);
        }
        last = acc;
        own[0] = acc;
    }
}
