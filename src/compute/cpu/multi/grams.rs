//! Inner products of multivectors, over fixed chunks whose sums are added in order, so that one thread and many give the
//! same bits.

use super::super::entry::Entry;
use super::super::multiversion::multiversion;
use super::super::simd::{Simd, prefetch_away};
use super::lanes::{Four, Lanes, Strip, strips, with_lanes};
use super::updates::{CHUNKS_PER_TASK, chunk, distance};
use crate::base::threads::Threads;

/// What is known of `X' W`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Any,
    /// It is symmetric up to rounding: one half may be that of the other.
    Symmetric,
}

/// `out = X' W` of a chunk.
pub(super) fn gram_of_chunk(
    columns: usize,
    kind: Kind,
    far: isize,
    x: &[f64],
    w: &[f64],
    out: &mut [f64],
) {
    for (strip, width) in strips(columns) {
        with_lanes!(width, gram_of_strip(strip, kind, far, x, w, Plain, out));
    }
}

/// What rows are multiplied by before they are added up.
pub(super) trait Weights: Copy {
    /// Row `i`, multiplied.
    fn times<L: Lanes, S: Simd>(self, s: S, i: usize, row: L::Of<S>) -> L::Of<S>;
}

/// Ones.
#[derive(Clone, Copy)]
struct Plain;

impl Weights for Plain {
    #[inline(always)]
    fn times<L: Lanes, S: Simd>(self, _: S, _: usize, row: L::Of<S>) -> L::Of<S> {
        row
    }
}

impl<T: Entry> Weights for &[T] {
    #[inline(always)]
    fn times<L: Lanes, S: Simd>(self, s: S, i: usize, row: L::Of<S>) -> L::Of<S> {
        L::madd(s, self[i].wide(), row, L::zero(s))
    }
}

/// `sums += part`.
pub(super) fn add_up(sums: &mut [f64], part: &[f64]) {
    sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

/// `out[i] = basis[i]' W`.
pub(super) fn grams(
    columns: usize,
    kind: Kind,
    basis: &[&[f64]],
    w: &[f64],
    parallel: bool,
    out: &mut [f64],
) {
    let (chunk, small, far) = (chunk(columns), columns * columns, distance(w.len()));
    assert_eq!(out.len(), basis.len() * small);
    let part = |at: usize, w: &[f64], out: &mut [f64]| {
        for (x, out) in basis.iter().zip(out.chunks_exact_mut(small)) {
            gram_of_chunk(columns, kind, far, &x[at * chunk..][..w.len()], w, out);
        }
    };
    out.fill(0.0);
    let size = out.len();
    if parallel {
        let mut parts = vec![0.0; w.len().div_ceil(chunk) * size];
        Threads::Pool.chunks(&mut parts, size, CHUNKS_PER_TASK, |at, out| {
            let from = at * chunk;
            part(at, &w[from..w.len().min(from + chunk)], out);
        });
        parts.chunks_exact(size).for_each(|part| add_up(out, part));
    } else {
        let mut sums = vec![0.0; size];
        for (at, w) in w.chunks(chunk).enumerate() {
            sums.fill(0.0);
            part(at, w, &mut sums);
            add_up(out, &sums);
        }
    }
}

multiversion! { pub(super) fn gram_of_strip[L: Lanes, D: Weights](lanes: L, strip: Strip, kind: Kind, far: isize, x: &[f64], w: &[f64], d: D, out: &mut [f64]) = gram_body }

/// The columns of the strip in `X' D W`, as many rows at a time as registers hold.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn gram_body<L: Lanes, D: Weights, S: Simd>(
    s: S,
    _: L,
    strip: Strip,
    kind: Kind,
    far: isize,
    x: &[f64],
    w: &[f64],
    d: D,
    out: &mut [f64],
) {
    if S::EIGHTS == 8 && L::ALONE && kind == Kind::Symmetric {
        return symmetric_rows(s, far, [x, w], d, out);
    }
    let mut row = 0;
    while S::EIGHTS > 16 && row + 8 <= strip.columns {
        gram_rows::<8, L, D, S>(s, strip, far, row, [x, w], d, out);
        row += 8;
    }
    while row + 4 <= strip.columns {
        gram_rows::<4, L, D, S>(s, strip, far, row, [x, w], d, out);
        row += 4;
    }
    for row in row..strip.columns {
        gram_rows::<1, L, D, S>(s, strip, far, row, [x, w], d, out);
    }
}

/// Sums of even and odd rows, where there are registers for both: none waits for the one before.
#[inline(always)]
fn gram_rows<const N: usize, L: Lanes, D: Weights, S: Simd>(
    s: S,
    strip: Strip,
    far: isize,
    row: usize,
    [x, w]: [&[f64]; 2],
    d: D,
    out: &mut [f64],
) {
    let strip = strip.known::<L>();
    let far = if strip.at + row == 0 { far } else { 0 };
    let (mut even, mut odd) = ([L::zero(s); N], [L::zero(s); N]);
    let two = if S::EIGHTS > 16 { 2 * strip.columns } else { strip.columns };
    let (pairs, of_w) = (x.chunks_exact(two), w.chunks_exact(two));
    let rest = (pairs.remainder(), of_w.remainder());
    let mut i = 0;
    for (x, w) in pairs.zip(of_w) {
        add_row::<N, L, D, S>(s, strip, far, row, [x, w], (d, i), &mut even);
        i += 1;
        if S::EIGHTS > 16 {
            let (x, w) = (&x[strip.columns..], &w[strip.columns..]);
            add_row::<N, L, D, S>(s, strip, far, row, [x, w], (d, i), &mut odd);
            i += 1;
        }
    }
    if !rest.0.is_empty() {
        add_row::<N, L, D, S>(s, strip, far, row, [rest.0, rest.1], (d, i), &mut even);
    }
    for p in 0..N {
        let sum = L::madd(s, 1.0, odd[p], even[p]);
        L::store(s, sum, &mut out[strip.of_row(row + p)..]);
    }
}

#[inline(always)]
fn add_row<const N: usize, L: Lanes, D: Weights, S: Simd>(
    s: S,
    strip: Strip,
    far: isize,
    row: usize,
    [x, w]: [&[f64]; 2],
    (d, i): (D, usize),
    sums: &mut [L::Of<S>; N],
) {
    if far != 0 {
        prefetch_away(&x[..strip.columns], far);
        prefetch_away(&w[..strip.columns], far);
    }
    let (x, w) = (&x[row..row + N], L::load(s, &w[strip.at..strip.at + L::COUNT]));
    let w = d.times::<L, S>(s, i, w);
    for p in 0..N {
        sums[p] = L::madd(s, x[p], w, sums[p]);
    }
}

/// Eight columns of `X' D W` that is symmetric, with 10 products of four numbers for 16, whose sums registers hold:
/// column j times column j + t, modulo four, for t = 0, 1, 2 in each half, and all t between the halves. Each sum has the
/// operations of [`gram_rows`], in their order.
#[inline(always)]
fn symmetric_rows<D: Weights, S: Simd>(
    s: S,
    far: isize,
    [x, w]: [&[f64]; 2],
    d: D,
    out: &mut [f64],
) {
    let mut low = [s.splat4(0.0); 3];
    let mut high = [s.splat4(0.0); 3];
    let mut between = [s.splat4(0.0); 4];
    for (i, (x, w)) in x.chunks_exact(8).zip(w.chunks_exact(8)).enumerate() {
        if far != 0 {
            prefetch_away(x, far);
            prefetch_away(w, far);
        }
        let (x, of_x) = (s.load4::<4>(x), s.load4::<4>(&x[4..]));
        let mut of_low = d.times::<Four, S>(s, i, s.load4::<4>(w));
        let mut of_high = d.times::<Four, S>(s, i, s.load4::<4>(&w[4..]));
        for t in 0..3 {
            low[t] = s.madd4(x, of_low, low[t]);
            high[t] = s.madd4(of_x, of_high, high[t]);
            between[t] = s.madd4(x, of_high, between[t]);
            of_low = s.turned4(of_low);
            of_high = s.turned4(of_high);
        }
        between[3] = s.madd4(x, of_high, between[3]);
    }
    let mut put = |[row, column]: [usize; 2], sum: f64| {
        out[row * 8 + column] = sum;
        out[column * 8 + row] = sum;
    };
    let mut sums = [0.0; 4];
    for t in 0..4 {
        s.store4::<4>(between[t], &mut sums);
        (0..4).for_each(|j| put([j, 4 + (j + t) % 4], sums[j]));
        if t < 3 {
            s.store4::<4>(low[t], &mut sums);
            (0..4).for_each(|j| put([j, (j + t) % 4], sums[j]));
            s.store4::<4>(high[t], &mut sums);
            (0..4).for_each(|j| put([4 + j, 4 + (j + t) % 4], sums[j]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::block::tests::random;
    use super::super::super::simd::Baseline;
    use super::super::lanes::Alone;
    use super::*;

    /// Sums of all pairs of columns, and those of a half of them.
    #[test]
    fn symmetric_products_are_those_of_all_pairs() {
        let (s, strip) = (Baseline, Strip { at: 0, columns: 8 });
        for rows in [0, 1, 7, 128] {
            let (x, d) = (random(8 * rows, 1), random(rows, 2));
            let (mut all, mut half) = ([1.0; 64], [1.0; 64]);
            gram_body(s, Alone, strip, Kind::Any, 0, &x, &x, Plain, &mut all);
            symmetric_rows(s, 0, [&x, &x], Plain, &mut half);
            assert!(all.iter().zip(&half).all(|(a, b)| a.to_bits() == b.to_bits()), "{rows}");
            gram_body(s, Alone, strip, Kind::Any, 0, &x, &x, &d[..], &mut all);
            symmetric_rows(s, 0, [&x, &x], &d[..], &mut half);
            assert!(all.iter().zip(&half).all(|(a, b)| (a - b).abs() < 1e-13), "{rows}");
            assert!((0..64).all(|at| half[at] == half[at % 8 * 8 + at / 8]));
        }
    }
}
