//! Vector operations on slices.
//!
//! Sums run over fixed chunks whose partial sums are added in order, so that one thread and many
//! give the same bits.

use rayon::prelude::*;

use super::multiversion::multiversion;
use super::simd::Simd;

/// Entries per chunk: the chunk of `w` stays in the first-level cache while the basis streams by.
pub(super) const CHUNK: usize = 2048;

/// Chunks that one task of the parallel versions works on.
const CHUNKS_PER_TASK: usize = 8;

/// Length of a task's segment.
pub(super) const SEGMENT: usize = CHUNK * CHUNKS_PER_TASK;

/// Lanes of a wide vector.
const LANES: usize = 8;

#[inline(always)]
fn dot_body<S: Simd>(s: S, x: &[f64], y: &[f64]) -> f64 {
    let (xs, xr) = x.as_chunks::<{ 4 * LANES }>();
    let (ys, yr) = y.as_chunks::<{ 4 * LANES }>();
    let mut acc = [s.splat8(0.0); 4];
    for (x, y) in xs.iter().zip(ys) {
        for (v, acc) in acc.iter_mut().enumerate() {
            let at = v * LANES;
            *acc = s.madd8(s.load8::<LANES>(&x[at..]), s.load8::<LANES>(&y[at..]), *acc);
        }
    }
    let mut sum = acc.into_iter().map(|a| s.sum8(a)).sum();
    for (x, y) in xr.iter().zip(yr) {
        sum = s.madd(*x, *y, sum);
    }
    sum
}

/// `out[j] += x[j] . w`, four vectors at a time: more streams in flight, and `w` is read once for
/// four.
#[inline(always)]
fn dot_many_body<S: Simd>(s: S, x: &[&[f64]], w: &[f64], out: &mut [f64]) {
    let n = w.len();
    let (wide, rest) = w.as_chunks::<LANES>();
    let mut at = 0;
    while at + 4 <= x.len() {
        let [x0, x1, x2, x3] = std::array::from_fn(|v| x[at + v][..n].as_chunks::<LANES>());
        let mut acc = [s.splat8(0.0); 4];
        for ((((w, x0), x1), x2), x3) in wide.iter().zip(x0.0).zip(x1.0).zip(x2.0).zip(x3.0) {
            let w = s.load8::<LANES>(w);
            acc[0] = s.madd8(s.load8::<LANES>(x0), w, acc[0]);
            acc[1] = s.madd8(s.load8::<LANES>(x1), w, acc[1]);
            acc[2] = s.madd8(s.load8::<LANES>(x2), w, acc[2]);
            acc[3] = s.madd8(s.load8::<LANES>(x3), w, acc[3]);
        }
        for ((acc, x), out) in acc.into_iter().zip([x0.1, x1.1, x2.1, x3.1]).zip(&mut out[at..]) {
            let mut sum = s.sum8(acc);
            for (x, w) in x.iter().zip(rest) {
                sum = s.madd(*x, *w, sum);
            }
            *out += sum;
        }
        at += 4;
    }
    for (x, out) in x[at..].iter().zip(&mut out[at..]) {
        *out += dot_body(s, &x[..n], w);
    }
}

#[inline(always)]
fn axpby_body<S: Simd>(s: S, a: f64, x: &[f64], b: f64, y: &mut [f64]) {
    let (va, vb) = (s.splat8(a), s.splat8(b));
    let (xs, xr) = x.as_chunks::<LANES>();
    let (ys, yr) = y.as_chunks_mut::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        // y is not read for b = 0: it may hold anything
        let scaled =
            if b == 0.0 { s.splat8(0.0) } else { s.madd8(vb, s.load8::<LANES>(y), s.splat8(0.0)) };
        s.store8::<LANES>(s.madd8(va, s.load8::<LANES>(x), scaled), y);
    }
    for (x, y) in xr.iter().zip(yr) {
        *y = s.madd(a, *x, if b == 0.0 { 0.0 } else { b * *y });
    }
}

/// `y -= sum_j c[j] x[j]`, four vectors at a time.
#[inline(always)]
fn axpy_many_body<S: Simd>(s: S, c: &[f64], x: &[&[f64]], y: &mut [f64]) {
    let n = y.len();
    let mut at = 0;
    while at + 4 <= x.len() {
        let [x0, x1, x2, x3] = std::array::from_fn(|v| x[at + v][..n].as_chunks::<LANES>());
        let c: [f64; 4] = std::array::from_fn(|v| c[at + v]);
        let wide = c.map(|c| s.splat8(c));
        let (ys, yr) = y.as_chunks_mut::<LANES>();
        for ((((y, x0), x1), x2), x3) in ys.iter_mut().zip(x0.0).zip(x1.0).zip(x2.0).zip(x3.0) {
            let mut v = s.load8::<LANES>(y);
            v = s.msub8(s.load8::<LANES>(x0), wide[0], v);
            v = s.msub8(s.load8::<LANES>(x1), wide[1], v);
            v = s.msub8(s.load8::<LANES>(x2), wide[2], v);
            v = s.msub8(s.load8::<LANES>(x3), wide[3], v);
            s.store8::<LANES>(v, y);
        }
        for (i, y) in yr.iter_mut().enumerate() {
            for (c, x) in c.iter().zip([x0.1, x1.1, x2.1, x3.1]) {
                *y = s.madd(-c, x[i], *y);
            }
        }
        at += 4;
    }
    for (c, x) in c[at..].iter().zip(&x[at..]) {
        axpby_body(s, -c, &x[..n], 1.0, y);
    }
}

multiversion! { fn dot_many[](x: &[&[f64]], w: &[f64], out: &mut [f64]) = dot_many_body }
multiversion! { fn dot_chunk[](x: &[f64], y: &[f64]) -> f64 = dot_body }
multiversion! {
    /// `y = a x + b y` on a segment; `b = 0` does not read `y`.
    pub(super) fn axpby[](a: f64, x: &[f64], b: f64, y: &mut [f64]) = axpby_body
}
multiversion! { fn axpy_many[](c: &[f64], x: &[&[f64]], y: &mut [f64]) = axpy_many_body }

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
            with_segments(basis, from, w.len(), |x| dot_many(x, w, out));
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
