//! Rows of a [run](super::super::ilu::Runs): columns are at the distances of its first row. Each row has the operations
//! of [`forward_row`](super::rows::forward_row) and [`backward_row`](super::rows::backward_row), in their order; an
//! unknown that the next row takes stays in a register.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use std::ops::Range;

use super::super::entry::{Entry, scale};
use super::super::shared::Shared;
use super::super::simd::Simd;
use super::rows::Uniform;
use crate::matrix::pattern::PatternView;

/// Most columns of the rows of a run.
pub(super) const MOST: usize = 32;

/// Calls `$f::<M, ..>(M, $args)` for rows of few columns M, whose loops are unrolled, and `$f::<0, ..>(M, $args)` for
/// those of up to [`MOST`]; `$else` for others.
macro_rules! with_columns {
    ($count:expr, $f:ident<$T:ty, $S:ty>($($arg:expr),*), $else:expr) => {
        match $count {
            1 => $f::<1, $T, $S>(1, $($arg),*),
            2 => $f::<2, $T, $S>(2, $($arg),*),
            3 => $f::<3, $T, $S>(3, $($arg),*),
            4 => $f::<4, $T, $S>(4, $($arg),*),
            5 => $f::<5, $T, $S>(5, $($arg),*),
            6 => $f::<6, $T, $S>(6, $($arg),*),
            count if (1..=MOST).contains(&count) => $f::<0, $T, $S>(count, $($arg),*),
            _ => $else,
        }
    };
}
pub(super) use with_columns;

/// The forward solve in `rows` of `count` columns, which is M unless M is 0; r begins with the first of them.
#[inline(always)]
pub(super) fn forward_run<const M: usize, T: Entry, S: Simd>(
    count: usize,
    s: S,
    f: Uniform<T>,
    lower: PatternView,
    r: &[f64],
    z: Shared,
    rows: Range<usize>,
) {
    let (first, at) = (rows.start, lower.range(rows.start).start);
    let m = if M == 0 { count } else { M };
    let mut back = [0; MOST];
    for (back, &column) in back.iter_mut().zip(&lower.col_ind[at..at + m]) {
        *back = first - column as usize;
    }
    let entries = f.lower[at..at + m * rows.len()].chunks_exact(m);
    // SAFETY: columns of these rows are solved: earlier in the loop, or in a task that was waited for.
    let read = |i: usize, t: usize| unsafe { z.read(i - back[t]..i - back[t] + 1)[0] };
    let chained = back[m - 1] == 1;
    let mut last = if chained { read(first, m - 1) } else { 0.0 };
    for ((i, of_row), &own) in rows.zip(entries).zip(r) {
        let mut acc = if T::SCALED { 0.0 } else { own };
        for t in 0..m - 1 {
            acc = s.madd(-of_row[t].wide(), read(i, t), acc);
        }
        let nearest = if chained { last } else { read(i, m - 1) };
        acc = s.madd(-of_row[m - 1].wide(), nearest, acc);
        if T::SCALED {
            acc = s.madd(scale(f.lower_scales[i]), acc, own);
        }
        last = acc;
        // SAFETY: this call alone writes row i, and nobody reads it before the task ends.
        unsafe { z.write(i..i + 1)[0] = acc };
    }
}

/// The backward solve in `rows`, from the last to the first.
#[inline(always)]
pub(super) fn backward_run<const M: usize, T: Entry, S: Simd>(
    count: usize,
    s: S,
    f: Uniform<T>,
    upper: PatternView,
    z: Shared,
    rows: Range<usize>,
) {
    let (first, end) = (rows.end - 1, upper.range(rows.end - 1).end);
    let m = if M == 0 { count } else { M };
    let mut ahead = [0; MOST];
    for (ahead, &column) in ahead.iter_mut().zip(upper.col_ind[end - m..end].iter().rev()) {
        *ahead = column as usize - first;
    }
    let at = upper.entries() - end;
    let entries = f.upper[at..at + m * rows.len()].chunks_exact(m);
    // SAFETY: as above.
    let read = |i: usize, t: usize| unsafe { z.read(i + ahead[t]..i + ahead[t] + 1)[0] };
    let chained = ahead[m - 1] == 1;
    let mut last = if chained { read(first, m - 1) } else { 0.0 };
    for (i, of_row) in rows.rev().zip(entries) {
        // SAFETY: this call alone touches row i.
        let own = unsafe { z.write(i..i + 1) };
        let mut start = s.madd(f.inverse_diagonal[i].wide(), own[0], 0.0);
        if T::SCALED {
            start = s.madd(scale(f.inverse_scales[i]), start, 0.0);
        }
        let mut acc = if T::SCALED { 0.0 } else { start };
        for t in 0..m - 1 {
            acc = s.madd(-of_row[t].wide(), read(i, t), acc);
        }
        let nearest = if chained { last } else { read(i, m - 1) };
        acc = s.madd(-of_row[m - 1].wide(), nearest, acc);
        if T::SCALED {
            acc = s.madd(scale(f.upper_scales[i]), acc, start);
        }
        last = acc;
        own[0] = acc;
    }
}
