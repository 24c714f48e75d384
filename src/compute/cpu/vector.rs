//! Vector operations on slices.
//!
//! Sums run over fixed chunks whose partial sums are added in order, so that one thread and many
//! give the same bits.

use super::entry::Entry;
use super::multiversion::multiversion;
use super::simd::Simd;
use crate::base::threads::Threads;

/// A number of vectors; sums are in float64.
pub(super) trait Lane: Entry {
    /// `x`, rounded.
    fn of(x: f64) -> Self;
    /// First `N` of `v` to `to`.
    fn store8<S: Simd, const N: usize>(s: S, v: S::F8, to: &mut [Self]);
    /// The head of `x` in float64: in `space`, where it is not.
    fn widened<'a>(x: &'a [Self], space: &'a mut [f64]) -> &'a [f64];
}

impl Lane for f64 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn store8<S: Simd, const N: usize>(s: S, v: S::F8, to: &mut [Self]) {
        s.store8::<N>(v, to);
    }
    #[inline(always)]
    fn widened<'a>(x: &'a [Self], _: &'a mut [f64]) -> &'a [f64] {
        x
    }
}

impl Lane for f32 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as Self
    }
    #[inline(always)]
    fn store8<S: Simd, const N: usize>(s: S, v: S::F8, to: &mut [Self]) {
        to[..N].copy_from_slice(&s.narrowed8(v)[..N]);
    }
    #[inline(always)]
    fn widened<'a>(x: &'a [Self], space: &'a mut [f64]) -> &'a [f64] {
        space.iter_mut().zip(x).for_each(|(to, v)| *to = f64::from(*v));
        space
    }
}

/// Entries per chunk: the chunk of `w` stays in the first-level cache while the basis streams by.
pub(super) const CHUNK: usize = 2048;

/// Chunks that one task of the parallel versions works on.
const CHUNKS_PER_TASK: usize = 8;

/// Length of a task's segment.
pub(super) const SEGMENT: usize = CHUNK * CHUNKS_PER_TASK;

/// Lanes of a wide vector.
const LANES: usize = 8;

#[inline(always)]
fn dot_body<T: Lane, S: Simd>(s: S, x: &[T], y: &[T]) -> f64 {
    let (xs, xr) = x.as_chunks::<{ 4 * LANES }>();
    let (ys, yr) = y.as_chunks::<{ 4 * LANES }>();
    let mut acc = [s.splat8(0.0); 4];
    for (x, y) in xs.iter().zip(ys) {
        for (v, acc) in acc.iter_mut().enumerate() {
            let at = v * LANES;
            *acc =
                s.madd8(T::load8::<S, LANES>(s, &x[at..]), T::load8::<S, LANES>(s, &y[at..]), *acc);
        }
    }
    let mut sum = acc.into_iter().map(|a| s.sum8(a)).sum();
    for (x, y) in xr.iter().zip(yr) {
        sum = s.madd(x.wide(), y.wide(), sum);
    }
    sum
}

/// `out[j] += x[j] . w`, four vectors at a time: more streams in flight, and `w` is read once for
/// four.
#[inline(always)]
fn dot_many_body<T: Lane, S: Simd>(s: S, x: &[&[T]], w: &[T], out: &mut [f64]) {
    let n = w.len();
    let (wide, rest) = w.as_chunks::<LANES>();
    let mut at = 0;
    while at + 4 <= x.len() {
        let [x0, x1, x2, x3] = std::array::from_fn(|v| x[at + v][..n].as_chunks::<LANES>());
        let mut acc = [s.splat8(0.0); 4];
        for ((((w, x0), x1), x2), x3) in wide.iter().zip(x0.0).zip(x1.0).zip(x2.0).zip(x3.0) {
            let w = T::load8::<S, LANES>(s, w);
            acc[0] = s.madd8(T::load8::<S, LANES>(s, x0), w, acc[0]);
            acc[1] = s.madd8(T::load8::<S, LANES>(s, x1), w, acc[1]);
            acc[2] = s.madd8(T::load8::<S, LANES>(s, x2), w, acc[2]);
            acc[3] = s.madd8(T::load8::<S, LANES>(s, x3), w, acc[3]);
        }
        for ((acc, x), out) in acc.into_iter().zip([x0.1, x1.1, x2.1, x3.1]).zip(&mut out[at..]) {
            let mut sum = s.sum8(acc);
            for (x, w) in x.iter().zip(rest) {
                sum = s.madd(x.wide(), w.wide(), sum);
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
fn axpby_body<T: Lane, S: Simd>(s: S, a: f64, x: &[T], b: f64, y: &mut [T]) {
    let (va, vb) = (s.splat8(a), s.splat8(b));
    let (xs, xr) = x.as_chunks::<LANES>();
    let (ys, yr) = y.as_chunks_mut::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        // y is not read for b = 0: it may hold anything
        let scaled = if b == 0.0 {
            s.splat8(0.0)
        } else {
            s.madd8(vb, T::load8::<S, LANES>(s, y), s.splat8(0.0))
        };
        T::store8::<S, LANES>(s, s.madd8(va, T::load8::<S, LANES>(s, x), scaled), y);
    }
    for (x, y) in xr.iter().zip(yr) {
        *y = T::of(s.madd(a, x.wide(), if b == 0.0 { 0.0 } else { b * y.wide() }));
    }
}

/// `y -= sum_j c[j] x[j]`, four vectors at a time.
#[inline(always)]
fn axpy_many_body<T: Lane, S: Simd>(s: S, c: &[f64], x: &[&[T]], y: &mut [T]) {
    let n = y.len();
    let mut at = 0;
    while at + 4 <= x.len() {
        let [x0, x1, x2, x3] = std::array::from_fn(|v| x[at + v][..n].as_chunks::<LANES>());
        let c: [f64; 4] = std::array::from_fn(|v| c[at + v]);
        let wide = c.map(|c| s.splat8(c));
        let (ys, yr) = y.as_chunks_mut::<LANES>();
        for ((((y, x0), x1), x2), x3) in ys.iter_mut().zip(x0.0).zip(x1.0).zip(x2.0).zip(x3.0) {
            let mut v = T::load8::<S, LANES>(s, y);
            v = s.msub8(T::load8::<S, LANES>(s, x0), wide[0], v);
            v = s.msub8(T::load8::<S, LANES>(s, x1), wide[1], v);
            v = s.msub8(T::load8::<S, LANES>(s, x2), wide[2], v);
            v = s.msub8(T::load8::<S, LANES>(s, x3), wide[3], v);
            T::store8::<S, LANES>(s, v, y);
        }
        for (i, y) in yr.iter_mut().enumerate() {
            let mut sum = y.wide();
            for (c, x) in c.iter().zip([x0.1, x1.1, x2.1, x3.1]) {
                sum = s.madd(-c, x[i].wide(), sum);
            }
            *y = T::of(sum);
        }
        at += 4;
    }
    for (c, x) in c[at..].iter().zip(&x[at..]) {
        axpby_body(s, -c, &x[..n], 1.0, y);
    }
}

multiversion! { fn dot_many[T: Lane](x: &[&[T]], w: &[T], out: &mut [f64]) = dot_many_body }
multiversion! { fn dot_chunk[T: Lane](x: &[T], y: &[T]) -> f64 = dot_body }
multiversion! {
    /// `y = a x + b y` on a segment; `b = 0` does not read `y`.
    pub(super) fn axpby[T: Lane](a: f64, x: &[T], b: f64, y: &mut [T]) = axpby_body
}
multiversion! { fn axpy_many[T: Lane](c: &[f64], x: &[&[T]], y: &mut [T]) = axpy_many_body }

/// `x . y`.
pub(super) fn dot<T: Lane>(x: &[T], y: &[T], parallel: bool) -> f64 {
    let chunk = |(x, y): (&[T], &[T])| dot_chunk(x, y);
    if parallel {
        let part = |at: usize| {
            let part = at * CHUNK..x.len().min((at + 1) * CHUNK);
            dot_chunk(&x[part.clone()], &y[part])
        };
        Threads::Pool.map(x.len().div_ceil(CHUNK), CHUNKS_PER_TASK, part).iter().sum()
    } else {
        x.chunks(CHUNK).zip(y.chunks(CHUNK)).map(chunk).sum()
    }
}

/// `out[j] = basis[j] . w`; the basis is read once, `w` once.
pub(super) fn multi_dot<T: Lane>(basis: &[&[T]], w: &[T], parallel: bool, out: &mut [f64]) {
    let segment = |start: usize, w: &[T], out: &mut [f64]| {
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
        Threads::Pool.chunks(&mut parts, m, CHUNKS_PER_TASK, |at, part| {
            let from = at * CHUNK;
            segment(from, &w[from..w.len().min(from + CHUNK)], part);
        });
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
pub(super) fn multi_axpy_norm2<T: Lane>(
    basis: &[&[T]],
    coef: &[f64],
    w: &mut [T],
    parallel: bool,
) -> f64 {
    let chunk = |at: usize, w: &mut [T]| {
        let from = at * CHUNK;
        with_segments(basis, from, w.len(), |x| axpy_many(coef, x, w));
        dot_chunk(w, w)
    };
    if parallel {
        Threads::Pool.chunks(w, CHUNK, CHUNKS_PER_TASK, chunk).iter().sum()
    } else {
        w.chunks_mut(CHUNK).enumerate().map(|(at, w)| chunk(at, w)).sum()
    }
}

/// `x = sum_j coef[j] basis[j]`.
pub(super) fn combine<T: Lane>(basis: &[&[T]], coef: &[f64], x: &mut [T], parallel: bool) {
    let minus: Vec<f64> = coef.iter().map(|c| -c).collect();
    let chunk = |at: usize, x: &mut [T]| {
        x.fill(T::of(0.0));
        with_segments(basis, at * CHUNK, x.len(), |v| axpy_many(&minus, v, x));
    };
    Threads::when(parallel).chunks(x, CHUNK, CHUNKS_PER_TASK, chunk);
}

/// Hands the segments `from..from + len` of the vectors to `f`, without an allocation for up to
/// 64 vectors.
fn with_segments<T, R>(basis: &[&[T]], from: usize, len: usize, f: impl FnOnce(&[&[T]]) -> R) -> R {
    const FEW: usize = 64;
    if basis.len() <= FEW {
        let mut few: [&[T]; FEW] = [&[]; FEW];
        for (to, v) in few.iter_mut().zip(basis) {
            *to = &v[from..from + len];
        }
        f(&few[..basis.len()])
    } else {
        let many: Vec<&[T]> = basis.iter().map(|v| &v[from..from + len]).collect();
        f(&many)
    }
}
