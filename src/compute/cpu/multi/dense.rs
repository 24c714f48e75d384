//! Inner products and updates of multivectors.
//!
//! They run over fixed chunks whose sums are added in order, so that one thread and many give the same bits.

use rayon::prelude::*;

use super::super::multiversion::multiversion;
use super::super::simd::Simd;
use super::lanes::{Lanes, Strip, strips, with_lanes};
use crate::compute::multivectors::{MOST_COLUMNS, Own};

/// Numbers of a chunk: it stays in the first-level cache while others stream by.
const CHUNK: usize = 1024;

/// Chunks that one task works on.
const CHUNKS_PER_TASK: usize = 16;

/// Numbers of a chunk of whole rows.
fn chunk(columns: usize) -> usize {
    (CHUNK / columns).max(1) * columns
}

/// `out[i] = basis[i]' W`.
pub(super) fn grams(columns: usize, basis: &[&[f64]], w: &[f64], parallel: bool, out: &mut [f64]) {
    let (chunk, small) = (chunk(columns), columns * columns);
    assert_eq!(out.len(), basis.len() * small);
    let part = |at: usize, w: &[f64], out: &mut [f64]| {
        for (x, out) in basis.iter().zip(out.chunks_exact_mut(small)) {
            let x = &x[at * chunk..][..w.len()];
            for (strip, width) in strips(columns) {
                with_lanes!(width, gram(strip, x, w, out));
            }
        }
    };
    out.fill(0.0);
    let add = |out: &mut [f64], part: &[f64]| out.iter_mut().zip(part).for_each(|(o, p)| *o += p);
    let size = out.len();
    if parallel {
        let mut parts = vec![0.0; w.len().div_ceil(chunk) * size];
        let tasks = parts.par_chunks_mut(size).with_min_len(CHUNKS_PER_TASK);
        tasks.zip(w.par_chunks(chunk)).enumerate().for_each(|(at, (out, w))| part(at, w, out));
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

multiversion! { fn gram[L: Lanes](lanes: L, strip: Strip, x: &[f64], w: &[f64], out: &mut [f64]) = gram_body }

/// The columns of the strip in `X' W`, four rows at a time.
#[inline(always)]
fn gram_body<L: Lanes, S: Simd>(s: S, _: L, strip: Strip, x: &[f64], w: &[f64], out: &mut [f64]) {
    let mut row = 0;
    while row + 4 <= strip.columns {
        gram_rows::<4, L, S>(s, strip, row, x, w, out);
        row += 4;
    }
    for row in row..strip.columns {
        gram_rows::<1, L, S>(s, strip, row, x, w, out);
    }
}

#[inline(always)]
fn gram_rows<const N: usize, L: Lanes, S: Simd>(
    s: S,
    strip: Strip,
    row: usize,
    x: &[f64],
    w: &[f64],
    out: &mut [f64],
) {
    let mut sums = [L::zero(s); N];
    let of_rows = x.chunks_exact(strip.columns).zip(w.chunks_exact(strip.columns));
    for (x, w) in of_rows {
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
    let (chunk, small) = (chunk(columns), columns * columns);
    assert_eq!(coef.len(), basis.len() * small);
    let part = |(at, w): (usize, &mut [f64])| {
        match own {
            Own::Kept => {}
            Own::Zero => w.fill(0.0),
            Own::Times(c) => times(columns, c, w),
        }
        for (x, c) in basis.iter().zip(coef.chunks_exact(small)) {
            let x = &x[at * chunk..][..w.len()];
            for (strip, width) in strips(columns) {
                with_lanes!(width, add(strip, x, c, w));
            }
        }
    };
    if parallel {
        w.par_chunks_mut(chunk).with_min_len(CHUNKS_PER_TASK).enumerate().for_each(part);
    } else {
        w.chunks_mut(chunk).enumerate().for_each(part);
    }
}

multiversion! { fn add[L: Lanes](lanes: L, strip: Strip, x: &[f64], c: &[f64], w: &mut [f64]) = add_body }
multiversion! { fn times[](columns: usize, c: &[f64], w: &mut [f64]) = times_body }

/// The columns of the strip in `W + X C`.
#[inline(always)]
fn add_body<L: Lanes, S: Simd>(s: S, _: L, strip: Strip, x: &[f64], c: &[f64], w: &mut [f64]) {
    let of_rows = w.chunks_exact_mut(strip.columns).zip(x.chunks_exact(strip.columns));
    for (w, x) in of_rows {
        row_times::<L, S>(s, strip, x, c, w, true);
    }
}

/// `W C` in place.
#[inline(always)]
fn times_body<S: Simd>(s: S, columns: usize, c: &[f64], w: &mut [f64]) {
    use super::lanes::{Eight, Four, One, Two};
    let mut kept = [0.0; MOST_COLUMNS];
    let kept = &mut kept[..columns];
    for w in w.chunks_exact_mut(columns) {
        kept.copy_from_slice(w);
        for (strip, width) in strips(columns) {
            match width {
                1 => row_times::<One, S>(s, strip, kept, c, w, false),
                2 => row_times::<Two, S>(s, strip, kept, c, w, false),
                4 => row_times::<Four, S>(s, strip, kept, c, w, false),
                _ => row_times::<Eight, S>(s, strip, kept, c, w, false),
            }
        }
    }
}

/// The columns of the strip in `x C`, or in `w + x C`, of one row.
#[inline(always)]
fn row_times<L: Lanes, S: Simd>(
    s: S,
    strip: Strip,
    x: &[f64],
    c: &[f64],
    w: &mut [f64],
    added: bool,
) {
    let own = strip.at..strip.at + L::COUNT;
    let mut sum = if added { L::load(s, &w[own.clone()]) } else { L::zero(s) };
    for (x, c) in x.iter().zip(c.chunks_exact(strip.columns)) {
        sum = L::madd(s, *x, L::load(s, &c[own.clone()]), sum);
    }
    L::store(s, sum, &mut w[own]);
}
