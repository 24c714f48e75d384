//! Inner products and updates of multivectors.
//!
//! They run over fixed chunks whose sums are added in order, so that one thread and many give the same bits.

use super::super::multiversion::multiversion;
use super::super::simd::{Simd, prefetch_ahead};
use super::lanes::{Lanes, Strip, from_memory, strips, with_lanes};
use crate::base::threads::Threads;
use crate::compute::multivectors::Own;

/// Numbers of a chunk: it stays in the first-level cache while others stream by.
const CHUNK: usize = 1024;

/// Rows of an update side by side: none waits for the sums of another.
const ROWS: usize = 4;

/// Chunks that one task works on.
const CHUNKS_PER_TASK: usize = 16;

/// Numbers of a chunk of whole rows.
fn chunk(columns: usize) -> usize {
    (CHUNK / columns).max(1) * columns
}

/// `out[i] = basis[i]' W`.
pub(super) fn grams(columns: usize, basis: &[&[f64]], w: &[f64], parallel: bool, out: &mut [f64]) {
    let (chunk, small, far) = (chunk(columns), columns * columns, from_memory(w.len()));
    assert_eq!(out.len(), basis.len() * small);
    let part = |at: usize, w: &[f64], out: &mut [f64]| {
        for (x, out) in basis.iter().zip(out.chunks_exact_mut(small)) {
            let x = &x[at * chunk..][..w.len()];
            for (strip, width) in strips(columns) {
                with_lanes!(width, gram(strip, far, x, w, out));
            }
        }
    };
    out.fill(0.0);
    let add = |out: &mut [f64], part: &[f64]| out.iter_mut().zip(part).for_each(|(o, p)| *o += p);
    let size = out.len();
    if parallel {
        let mut parts = vec![0.0; w.len().div_ceil(chunk) * size];
        Threads::Pool.chunks(&mut parts, size, CHUNKS_PER_TASK, |at, out| {
            let from = at * chunk;
            part(at, &w[from..w.len().min(from + chunk)], out);
        });
        parts.chunks_exact(size).for_each(|part| add(out, part));
    } else {
        let mut sums = vec![0.0; size];
        for (at, w) in w.chunks(chunk).enumerate() {
            sums.fill(0.0);
            part(at, w, &mut sums);
            add(out, &sums);
        }
    }
}

multiversion! { fn gram[L: Lanes](lanes: L, strip: Strip, far: bool, x: &[f64], w: &[f64], out: &mut [f64]) = gram_body }

/// The columns of the strip in `X' W`, as many rows at a time as registers hold.
#[inline(always)]
fn gram_body<L: Lanes, S: Simd>(
    s: S,
    _: L,
    strip: Strip,
    far: bool,
    x: &[f64],
    w: &[f64],
    out: &mut [f64],
) {
    let mut row = 0;
    while S::EIGHTS > 16 && row + 8 <= strip.columns {
        gram_rows::<8, L, S>(s, strip, far, row, x, w, out);
        row += 8;
    }
    while row + 4 <= strip.columns {
        gram_rows::<4, L, S>(s, strip, far, row, x, w, out);
        row += 4;
    }
    for row in row..strip.columns {
        gram_rows::<1, L, S>(s, strip, far, row, x, w, out);
    }
}

#[inline(always)]
fn gram_rows<const N: usize, L: Lanes, S: Simd>(
    s: S,
    strip: Strip,
    far: bool,
    row: usize,
    x: &[f64],
    w: &[f64],
    out: &mut [f64],
) {
    let mut sums = [L::zero(s); N];
    let of_rows = x.chunks_exact(strip.columns).zip(w.chunks_exact(strip.columns));
    let far = far && strip.at + row == 0;
    for (x, w) in of_rows {
        if far {
            prefetch_ahead(x);
            prefetch_ahead(w);
        }
        let (x, w) = (&x[row..row + N], L::load(s, &w[strip.at..strip.at + L::COUNT]));
        for p in 0..N {
            sums[p] = L::madd(s, x[p], w, sums[p]);
        }
    }
    for p in 0..N {
        L::store(s, sums[p], &mut out[strip.of_row(row + p)..]);
    }
}

/// `W = own + sum_i basis[i] coef[i]`.
pub(super) fn update(
    columns: usize,
    own: Own,
    basis: &[&[f64]],
    coef: &[f64],
    w: &mut [f64],
    parallel: bool,
) {
    let (chunk, small, far) = (chunk(columns), columns * columns, from_memory(w.len()));
    assert_eq!(coef.len(), basis.len() * small);
    let add = |x: &[f64], c: &[f64], w: &mut [f64]| {
        for (strip, width) in strips(columns) {
            with_lanes!(width, add(strip, far, x, c, w));
        }
    };
    let in_place = matches!(columns, 1 | 2 | 4 | 8);
    let part = |at: usize, w: &mut [f64]| {
        let len = w.len();
        let x = |i: usize| &basis[i][at * chunk..][..len];
        let mut added = 0;
        match own {
            Own::Kept => {}
            Own::Zero => w.fill(0.0),
            Own::Times(c) if in_place && !basis.is_empty() => {
                with_lanes!(columns, times_and_add(far, c, x(0), &coef[..small], w));
                added = 1;
            }
            Own::Times(c) => {
                let mut kept = [0.0; CHUNK];
                let kept = &mut kept[..w.len()];
                kept.copy_from_slice(w);
                w.fill(0.0);
                add(kept, c, w);
            }
        }
        for (i, c) in coef.chunks_exact(small).enumerate().skip(added) {
            add(x(i), c, w);
        }
    };
    Threads::when(parallel).chunks(w, chunk, CHUNKS_PER_TASK, part);
}

multiversion! { fn times_and_add[L: Lanes](lanes: L, far: bool, own: &[f64], x: &[f64], c: &[f64], w: &mut [f64]) = times_and_add_body }

/// `W own + X C` where a strip has all columns: both small matrices stay in registers.
#[inline(always)]
fn times_and_add_body<L: Lanes, S: Simd>(
    s: S,
    _: L,
    far: bool,
    own: &[f64],
    x: &[f64],
    c: &[f64],
    w: &mut [f64],
) {
    let columns = L::COUNT;
    let rows = |c: &[f64]| -> [L::Of<S>; 8] {
        std::array::from_fn(
            |p| if p < columns { L::load(s, &c[p * columns..]) } else { L::zero(s) },
        )
    };
    let (own, coef) = (rows(own), rows(c));
    let some = ROWS * columns;
    let at = w.len() / some * some;
    let ((w, w_rest), (x, x_rest)) = (w.split_at_mut(at), x.split_at(at));
    for (w, x) in w.chunks_exact_mut(some).zip(x.chunks_exact(some)) {
        if far {
            prefetch_ahead(x);
            prefetch_ahead(w);
        }
        let mut sums = [L::zero(s); ROWS];
        for (from, coef) in [(&*w, &own), (x, &coef)] {
            for p in 0..columns {
                for row in 0..ROWS {
                    sums[row] = L::madd(s, from[row * columns + p], coef[p], sums[row]);
                }
            }
        }
        for row in 0..ROWS {
            L::store(s, sums[row], &mut w[row * columns..]);
        }
    }
    for (w, x) in w_rest.chunks_exact_mut(columns).zip(x_rest.chunks_exact(columns)) {
        let sum = (0..columns).fold(L::zero(s), |sum, p| L::madd(s, w[p], own[p], sum));
        let sum = (0..columns).fold(sum, |sum, p| L::madd(s, x[p], coef[p], sum));
        L::store(s, sum, w);
    }
}

multiversion! { fn add[L: Lanes](lanes: L, strip: Strip, far: bool, x: &[f64], c: &[f64], w: &mut [f64]) = add_body }

/// The columns of the strip in `W + X C`.
#[inline(always)]
fn add_body<L: Lanes, S: Simd>(
    s: S,
    _: L,
    strip: Strip,
    far: bool,
    x: &[f64],
    c: &[f64],
    w: &mut [f64],
) {
    let mut first = 0;
    while first < strip.columns {
        first += match strip.columns - first {
            8.. => add_columns::<8, L, S>(s, strip, far, first, x, c, w),
            4.. => add_columns::<4, L, S>(s, strip, far, first, x, c, w),
            _ => add_columns::<1, L, S>(s, strip, far, first, x, c, w),
        };
    }
}

/// What `P` columns of X add, from the `first` on: their coefficients stay in registers.
#[inline(always)]
fn add_columns<const P: usize, L: Lanes, S: Simd>(
    s: S,
    strip: Strip,
    far: bool,
    first: usize,
    x: &[f64],
    c: &[f64],
    w: &mut [f64],
) -> usize {
    let load = |from: &[f64], row: usize| L::load(s, &from[strip.of_row(row)..][..L::COUNT]);
    let coef: [L::Of<S>; P] = std::array::from_fn(|p| load(c, first + p));
    let some = ROWS * strip.columns;
    let at = w.len() / some * some;
    let ((w, w_rest), (x, x_rest)) = (w.split_at_mut(at), x.split_at(at));
    let far = far && strip.at + first == 0;
    for (w, x) in w.chunks_exact_mut(some).zip(x.chunks_exact(some)) {
        if far {
            prefetch_ahead(x);
            prefetch_ahead(w);
        }
        let mut sums: [L::Of<S>; ROWS] = std::array::from_fn(|row| load(w, row));
        let x: [&[f64]; ROWS] = std::array::from_fn(|row| &x[row * strip.columns + first..][..P]);
        for p in 0..P {
            for row in 0..ROWS {
                sums[row] = L::madd(s, x[row][p], coef[p], sums[row]);
            }
        }
        for row in 0..ROWS {
            L::store(s, sums[row], &mut w[strip.of_row(row)..][..L::COUNT]);
        }
    }
    let rest = w_rest.chunks_exact_mut(strip.columns).zip(x_rest.chunks_exact(strip.columns));
    for (w, x) in rest {
        let sum = (0..P).fold(load(w, 0), |sum, p| L::madd(s, x[first + p], coef[p], sum));
        L::store(s, sum, &mut w[strip.at..][..L::COUNT]);
    }
    P
}
