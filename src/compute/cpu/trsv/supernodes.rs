//! Rows of a supernode: an index and an unknown are read once for all of them. Each row has the operations of a row alone,
//! in their order.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use super::super::entry::{Entry, scale};
use super::super::row_sums::{SUMS, far_in_four_sums, four_sums};
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead};
use super::uniform::Uniform;
use crate::matrix::pattern::PatternView;

/// Rows in the order in which they are solved: each has the columns of the one before, and then that row itself.
struct Node<'a, const N: usize, T> {
    /// Entries of each row from the far end to the near one.
    rows: [&'a [T]; N],
    /// What products are subtracted from.
    start: [f64; N],
    /// Where entries have scales, those of the rows.
    scales: [u16; N],
}

/// `N` rows of the forward solve, from row i on; r begins with `r_i`.
#[inline(always)]
pub(super) fn forward<const N: usize, T: Entry, S: Simd>(
    s: S,
    f: Uniform<T>,
    lower: PatternView,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    let range = lower.range(i);
    let node = Node::<N, T> {
        rows: std::array::from_fn(|row| &f.lower[lower.range(i + row)]),
        start: std::array::from_fn(|row| r[row]),
        scales: std::array::from_fn(|row| if T::SCALED { f.lower_scales[i + row] } else { 0 }),
    };
    let columns = &lower.col_ind[range];
    // SAFETY: asked for places below their number.
    let column = |at: usize| unsafe { *columns.get_unchecked(at) } as usize;
    let solved = node.solved(s, columns.len(), column, z);
    // SAFETY: this call alone writes these, and nobody reads them before it ends.
    unsafe { z.write(i..i + N) }.copy_from_slice(&solved);
}

/// The same of the backward solve.
#[inline(always)]
pub(super) fn backward<const N: usize, T: Entry, S: Simd>(
    s: S,
    f: Uniform<T>,
    upper: PatternView,
    z: Shared,
    i: usize,
) {
    let (last, entries) = (i + N - 1, upper.entries());
    let range = upper.range(last);
    // SAFETY: this call alone touches these.
    let y = unsafe { z.write(i..i + N) };
    let start = |row: usize| {
        let start = s.madd(f.inverse_diagonal[last - row].wide(), y[N - 1 - row], 0.0);
        if T::SCALED { s.madd(scale(f.inverse_scales[last - row]), start, 0.0) } else { start }
    };
    let node = Node::<N, T> {
        rows: std::array::from_fn(|row| {
            let range = upper.range(last - row);
            &f.upper[entries - range.end..entries - range.start]
        }),
        start: std::array::from_fn(start),
        scales: std::array::from_fn(|row| if T::SCALED { f.upper_scales[last - row] } else { 0 }),
    };
    let columns = &upper.col_ind[range];
    // SAFETY: asked for places below their number.
    let column = |at: usize| unsafe { *columns.get_unchecked(columns.len() - 1 - at) } as usize;
    let solved = node.solved(s, columns.len(), column, z);
    y.iter_mut().rev().zip(solved).for_each(|(z, of)| *z = of);
}

impl<const N: usize, T: Entry> Node<'_, N, T> {
    /// The unknowns, where the first row has `common` columns, given by their places.
    #[inline(always)]
    fn solved<S: Simd>(
        &self,
        s: S,
        common: usize,
        column: impl Fn(usize) -> usize,
        z: Shared,
    ) -> [f64; N] {
        for row in self.rows {
            assert!(row.len() >= common);
            prefetch_ahead(row);
        }
        // SAFETY: these are solved: earlier in the loop, or in a task that was waited for.
        let read = |at: usize| unsafe { z.read(column(at)..column(at) + 1)[0] };
        // SAFETY: all rows have that many entries.
        let entry = |row: usize, at: usize| unsafe { self.rows[row].get_unchecked(at) }.wide();
        let minus = |sums: &mut [f64; N], at: usize, in_one: [bool; N]| {
            let x = read(at);
            for row in 0..N {
                if in_one[row] {
                    sums[row] = s.madd(-entry(row, at), x, sums[row]);
                }
            }
        };
        let mut sums = if T::SCALED { [0.0; N] } else { self.start };
        if far_in_four_sums(common + N - 1) == 0 {
            (0..common).for_each(|at| minus(&mut sums, at, [true; N]));
        } else {
            let far: [usize; N] = std::array::from_fn(|row| far_in_four_sums(common + row));
            // SAFETY: all rows have the columns of the first, and more.
            let of_far = unsafe { four_sums::<N, true, T, S>(s, self.rows, far, read) };
            for row in 0..N {
                sums[row] = if far[row] > 0 { sums[row] + of_far[row] } else { sums[row] };
            }
            // what some rows have in four sums others have in one
            let in_one = far.map(|of_row| of_row == far[0]);
            let either = common.min(far[0] + SUMS);
            (far[0]..either).for_each(|at| minus(&mut sums, at, in_one));
            (either..common).for_each(|at| minus(&mut sums, at, [true; N]));
        }
        for row in 0..N {
            for before in 0..row {
                sums[row] =
                    s.madd(-self.rows[row][common + before].wide(), sums[before], sums[row]);
            }
            if T::SCALED {
                sums[row] = s.madd(scale(self.scales[row]), sums[row], self.start[row]);
            }
        }
        sums
    }
}
