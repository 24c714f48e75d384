//! Vector operations on slices.
//!
//! Sums run over fixed chunks whose partial sums are added in order, so that one thread and many
//! give the same bits.

use rayon::prelude::*;

use super::simd::{madd, multiversion};

/// Entries per chunk: the chunk of `w` stays in the first-level cache while the basis streams by.
pub(super) const CHUNK: usize = 2048;

/// Chunks that one task of the parallel versions works on.
const CHUNKS_PER_TASK: usize = 8;

/// Length of a task's segment.
pub(super) const SEGMENT: usize = CHUNK * CHUNKS_PER_TASK;

#[inline(always)]
fn dot_body<const FMA: bool>(x: &[f64], y: &[f64]) -> f64 {
    const LANES: usize = 32;
    let mut acc = [0.0f64; LANES];
    let (xs, xr) = x.as_chunks::<LANES>();
    let (ys, yr) = y.as_chunks::<LANES>();
    for (a, b) in xs.iter().zip(ys) {
        for l in 0..LANES {
            acc[l] = madd::<FMA>(a[l], b[l], acc[l]);
        }
    }
    let mut sum = 0.0;
    for l in (0..LANES).step_by(4) {
        sum += (acc[l] + acc[l + 1]) + (acc[l + 2] + acc[l + 3]);
    }
    for (a, b) in xr.iter().zip(yr) {
        sum = madd::<FMA>(*a, *b, sum);
    }
    sum
}

#[inline(always)]
fn axpby_body<const FMA: bool>(a: f64, x: &[f64], b: f64, y: &mut [f64]) {
    if b == 0.0 {
        for (y, x) in y.iter_mut().zip(x) {
            *y = a * x;
        }
    } else if b == 1.0 {
        for (y, x) in y.iter_mut().zip(x) {
            *y = madd::<FMA>(a, *x, *y);
        }
    } else {
        for (y, x) in y.iter_mut().zip(x) {
            *y = madd::<FMA>(a, *x, b * *y);
        }
    }
}

/// `y -= c0 x0 + c1 x1 + c2 x2 + c3 x3`, four vectors at a time.
#[inline(always)]
fn axpy4_body<const FMA: bool>(c: &[f64], x: &[&[f64]], y: &mut [f64]) {
    let n = y.len();
    let mut at = 0;
    while at + 4 <= x.len() {
        let (x0, x1, x2, x3) = (&x[at][..n], &x[at + 1][..n], &x[at + 2][..n], &x[at + 3][..n]);
        let (c0, c1, c2, c3) = (-c[at], -c[at + 1], -c[at + 2], -c[at + 3]);
        for i in 0..n {
            let low = madd::<FMA>(c0, x0[i], madd::<FMA>(c1, x1[i], y[i]));
            y[i] = madd::<FMA>(c2, x2[i], madd::<FMA>(c3, x3[i], low));
        }
        at += 4;
    }
    for (c, x) in c[at..].iter().zip(&x[at..]) {
        axpby_body::<FMA>(-c, &x[..n], 1.0, y);
    }
}

multiversion! { fn dot_chunk[](x: &[f64], y: &[f64]) -> f64 = dot_body }
multiversion! {
    /// `y = a x + b y` on a segment; `b = 0` does not read `y`.
    pub(super) fn axpby[](a: f64, x: &[f64], b: f64, y: &mut [f64]) = axpby_body
}
multiversion! { fn axpy_many[](c: &[f64], x: &[&[f64]], y: &mut [f64]) = axpy4_body }

/// `x . y`.
pub(super) fn dot(x: &[f64], y: &[f64], parallel: bool) -> f64 {
    let chunk = |(x, y): (&[f64], &[f64])| dot_chunk(x, y);
    if parallel {
        let parts: Vec<f64> = x
            .par_chunks(CHUNK)
            .with_min_len(CHUNKS_PER_TASK)
            .zip(y.par_chunks(CHUNK))
            .map(chunk)
            .collect();
        parts.iter().sum()
    } else {
        x.chunks(CHUNK).zip(y.chunks(CHUNK)).map(chunk).sum()
    }
}

/// `out[j] = basis[j] . w`; the basis is read once, `w` once.
pub(super) fn multi_dot(basis: &[&[f64]], w: &[f64], parallel: bool, out: &mut [f64]) {
    let segment = |start: usize, w: &[f64], out: &mut [f64]| {
        for (at, w) in w.chunks(CHUNK).enumerate() {
            let from = start + at * CHUNK;
            for (v, out) in basis.iter().zip(&mut *out) {
                *out += dot_chunk(&v[from..from + w.len()], w);
            }
        }
    };
    out.fill(0.0);
    let m = out.len();
    if m == 0 {
        return;
    }
    // one chunk per partial sum: the order of additions does not depend on the threads
    if parallel {
        let chunks = w.len().div_ceil(CHUNK);
        let mut parts = vec![0.0; chunks * m];
        parts
            .par_chunks_mut(m)
            .with_min_len(CHUNKS_PER_TASK)
            .zip(w.par_chunks(CHUNK))
            .enumerate()
            .for_each(|(at, (part, w))| segment(at * CHUNK, w, part));
        for part in parts.chunks(m) {
            for (out, p) in out.iter_mut().zip(part) {
                *out += p;
            }
        }
    } else {
        segment(0, w, out);
    }
}

/// `w -= sum_j coef[j] basis[j]`, then `|w|^2`; every vector is read once.
pub(super) fn multi_axpy_norm2(
    basis: &[&[f64]],
    coef: &[f64],
    w: &mut [f64],
    parallel: bool,
) -> f64 {
    let chunk = |at: usize, w: &mut [f64]| {
        let from = at * CHUNK;
        with_segments(basis, from, w.len(), |x| axpy_many(coef, x, w));
        dot_chunk(w, w)
    };
    if parallel {
        let parts: Vec<f64> = w
            .par_chunks_mut(CHUNK)
            .with_min_len(CHUNKS_PER_TASK)
            .enumerate()
            .map(|(at, w)| chunk(at, w))
            .collect();
        parts.iter().sum()
    } else {
        w.chunks_mut(CHUNK).enumerate().map(|(at, w)| chunk(at, w)).sum()
    }
}

/// `x = sum_j coef[j] basis[j]`.
pub(super) fn combine(basis: &[&[f64]], coef: &[f64], x: &mut [f64], parallel: bool) {
    let minus: Vec<f64> = coef.iter().map(|c| -c).collect();
    let chunk = |(at, x): (usize, &mut [f64])| {
        x.fill(0.0);
        with_segments(basis, at * CHUNK, x.len(), |v| axpy_many(&minus, v, x));
    };
    if parallel {
        x.par_chunks_mut(CHUNK).with_min_len(CHUNKS_PER_TASK).enumerate().for_each(chunk);
    } else {
        x.chunks_mut(CHUNK).enumerate().for_each(chunk);
    }
}

/// Hands the segments `from..from + len` of the vectors to `f`, without an allocation for up to
/// 64 vectors.
fn with_segments<R>(
    basis: &[&[f64]],
    from: usize,
    len: usize,
    f: impl FnOnce(&[&[f64]]) -> R,
) -> R {
    const FEW: usize = 64;
    if basis.len() <= FEW {
        let mut few: [&[f64]; FEW] = [&[]; FEW];
        for (to, v) in few.iter_mut().zip(basis) {
            *to = &v[from..from + len];
        }
        f(&few[..basis.len()])
    } else {
        let many: Vec<&[f64]> = basis.iter().map(|v| &v[from..from + len]).collect();
        f(&many)
    }
}
