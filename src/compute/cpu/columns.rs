//! Products with the formats that run down columns: ELLPACK, its slices, diagonals.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use super::multiversion::multiversion;
use super::simd::{Simd, prefetch_ahead};
use crate::matrix::storage::TILE;
use crate::matrix::{Coo, Dia, Hyb, Sell, Storage};

/// Rows of a task: whole tiles.
pub(super) const CHUNK: usize = 8 * TILE;

/// Doubles of a wide register.
const LANES: usize = 8;

multiversion! {
    /// `y = A x` for the rows from `first` on, ELLPACK part.
    pub(super) fn ellpack[](a: &Hyb, x: &[f64], first: usize, y: &mut [f64]) = ellpack_body
}
multiversion! {
    /// `y = A x` for the rows from `first` on, which begin a window.
    pub(super) fn slices[](a: &Sell, x: &[f64], first: usize, y: &mut [f64]) = slices_body
}
multiversion! {
    /// `y = A x` for the rows from `first` on, whole diagonals.
    pub(super) fn diagonals[](a: &Dia, x: &[f64], first: usize, y: &mut [f64]) = diagonals_body
}

/// Adds the product with single entries.
pub(super) fn add_entries(a: &Coo, x: &[f64], first: usize, y: &mut [f64]) {
    if a.is_empty() {
        return;
    }
    for (i, j, v) in a.of_rows(first..first + y.len()) {
        y[i - first] += v * x[j];
    }
}

/// Entries of x at eight columns.
#[inline(always)]
fn gather<S: Simd>(s: S, x: &[f64], cols: &[u32; LANES]) -> S::F8 {
    // SAFETY: columns of a stored matrix are below its number of columns, which is that of x.
    let lanes: [f64; LANES] =
        std::array::from_fn(|l| unsafe { *x.get_unchecked(cols[l] as usize) });
    s.load8::<LANES>(&lanes)
}

#[inline(always)]
fn ellpack_body<S: Simd>(s: S, a: &Hyb, x: &[f64], first: usize, y: &mut [f64]) {
    y.fill(0.0);
    let width = a.width();
    for (tile, y) in y.chunks_mut(TILE).enumerate() {
        let (start, rows) = ((first + tile * TILE) * width, y.len());
        for c in 0..width {
            let at = start + c * rows;
            let (cols, col_rest) = a.col_ind()[at..at + rows].as_chunks::<LANES>();
            let (values, value_rest) = a.values()[at..at + rows].as_chunks::<LANES>();
            let (wide, rest) = y.as_chunks_mut::<LANES>();
            for ((y, cols), values) in wide.iter_mut().zip(cols).zip(values) {
                prefetch_ahead(cols);
                prefetch_ahead(values);
                let sum =
                    s.madd8(s.load8::<LANES>(values), gather(s, x, cols), s.load8::<LANES>(y));
                s.store8::<LANES>(sum, y);
            }
            for ((y, &j), &v) in rest.iter_mut().zip(col_rest).zip(value_rest) {
                *y = s.madd(v, x[j as usize], *y);
            }
        }
    }
}

#[inline(always)]
fn slices_body<S: Simd>(s: S, a: &Sell, x: &[f64], first: usize, y: &mut [f64]) {
    assert!(a.height() == LANES && first.is_multiple_of(LANES));
    let order = a.order();
    for slice in first / LANES..(first + y.len()).div_ceil(LANES) {
        let start = a.slice_ptr()[slice] as usize * LANES;
        let end = a.slice_ptr()[slice + 1] as usize * LANES;
        let mut sum = s.splat8(0.0);
        let cols = a.col_ind()[start..end].as_chunks::<LANES>().0;
        let values = a.values()[start..end].as_chunks::<LANES>().0;
        for (cols, values) in cols.iter().zip(values) {
            prefetch_ahead(cols);
            prefetch_ahead(values);
            sum = s.madd8(s.load8::<LANES>(values), gather(s, x, cols), sum);
        }
        let mut lanes = [0.0; LANES];
        s.store8::<LANES>(sum, &mut lanes);
        let place = slice * LANES;
        if order.is_empty() {
            let to = &mut y[place - first..];
            let count = to.len().min(LANES);
            to[..count].copy_from_slice(&lanes[..count]);
        } else {
            let rows = &order[place..order.len().min(place + LANES)];
            rows.iter().zip(lanes).for_each(|(&i, v)| y[i as usize - first] = v);
        }
    }
}

#[inline(always)]
fn diagonals_body<S: Simd>(s: S, a: &Dia, x: &[f64], first: usize, y: &mut [f64]) {
    y.fill(0.0);
    let n = a.rows();
    for (tile, y) in y.chunks_mut(TILE).enumerate() {
        let (first, rows) = (first + tile * TILE, y.len());
        let start = first * a.offsets().len();
        for (d, &offset) in a.offsets().iter().enumerate() {
            let diagonal = &a.values()[start + d * rows..start + (d + 1) * rows];
            // rows whose column lies in the matrix
            let from = first.max(usize::try_from(-offset).unwrap_or(0));
            let to = (first + rows).min((n as i64 - offset).clamp(0, n as i64) as usize);
            if from >= to {
                continue;
            }
            let column = (from as i64 + offset) as usize;
            let y = &mut y[from - first..to - first];
            let (x, diagonal) = (&x[column..column + y.len()], &diagonal[from - first..to - first]);
            let (xs, xr) = x.as_chunks::<LANES>();
            let (ds, dr) = diagonal.as_chunks::<LANES>();
            let (ys, yr) = y.as_chunks_mut::<LANES>();
            for ((y, x), d) in ys.iter_mut().zip(xs).zip(ds) {
                prefetch_ahead(d);
                let sum = s.madd8(s.load8::<LANES>(d), s.load8::<LANES>(x), s.load8::<LANES>(y));
                s.store8::<LANES>(sum, y);
            }
            for ((y, x), d) in yr.iter_mut().zip(xr).zip(dr) {
                *y = s.madd(*d, *x, *y);
            }
        }
    }
}
