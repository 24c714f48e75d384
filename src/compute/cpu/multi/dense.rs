//! Inner products and updates of multivectors.
//!
//! They run over fixed chunks whose sums are added in order, so that one thread and many give the same bits.

use super::super::entry::Entry;
use super::super::multiversion::multiversion;
use super::super::simd::{Simd, prefetch_away};
use super::lanes::{Lanes, Strip, from_memory, strips, with_lanes};
use crate::base::threads::Threads;
use crate::compute::multivectors::Own;

/// Numbers of a chunk: it stays in the first-level cache while others stream by.
const CHUNK: usize = 1024;

/// Rows of an update side by side: none waits for the sums of another.
const ROWS: usize = 4;

/// Chunks that one task works on.
pub(super) const CHUNKS_PER_TASK: usize = 16;

/// Numbers of a chunk of whole rows.
pub(super) fn chunk(columns: usize) -> usize {
    (CHUNK / columns).max(1) * columns
}

/// Bytes by which what is read later is asked for: two pages, as each row of a pass is of several vectors.
const FAR: isize = 8192;

/// How far from what it reads a pass asks for what it reads later, in bytes; not at all where that is zero.
pub(super) fn distance(numbers: usize) -> isize {
    if from_memory(numbers) { FAR } else { 0 }
}

/// `out = X' W` of a chunk.
pub(super) fn gram_of_chunk(columns: usize, far: isize, x: &[f64], w: &[f64], out: &mut [f64]) {
    for (strip, width) in strips(columns) {
        with_lanes!(width, gram_of_strip(strip, far, x, w, Plain, out));
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
pub(super) fn grams(columns: usize, basis: &[&[f64]], w: &[f64], parallel: bool, out: &mut [f64]) {
    let (chunk, small, far) = (chunk(columns), columns * columns, distance(w.len()));
    assert_eq!(out.len(), basis.len() * small);
    let part = |at: usize, w: &[f64], out: &mut [f64]| {
        for (x, out) in basis.iter().zip(out.chunks_exact_mut(small)) {
            gram_of_chunk(columns, far, &x[at * chunk..][..w.len()], w, out);
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

multiversion! { pub(super) fn gram_of_strip[L: Lanes, D: Weights](lanes: L, strip: Strip, far: isize, x: &[f64], w: &[f64], d: D, out: &mut [f64]) = gram_body }

/// The columns of the strip in `X' D W`, as many rows at a time as registers hold.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn gram_body<L: Lanes, D: Weights, S: Simd>(
    s: S,
    _: L,
    strip: Strip,
    far: isize,
    x: &[f64],
    w: &[f64],
    d: D,
    out: &mut [f64],
) {
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

/// `W = own + sum_i basis[i] coef[i]`.
pub(super) fn update(
    columns: usize,
    own: Own,
    basis: &[&[f64]],
    coef: &[f64],
    w: &mut [f64],
    parallel: bool,
) {
    let (chunk, far) = (chunk(columns), distance(w.len()));
    assert_eq!(coef.len(), basis.len() * columns * columns);
    let part = |at: usize, w: &mut [f64]| {
        let len = w.len();
        let basis = basis.iter().map(|x| &x[at * chunk..][..len]);
        update_chunk(columns, far, own, basis, coef, w);
    };
    Threads::when(parallel).chunks(w, chunk, CHUNKS_PER_TASK, part);
}

/// `W = own + sum_i basis[i] coef[i]` of a chunk.
pub(super) fn update_chunk<'a>(
    columns: usize,
    far: isize,
    own: Own,
    basis: impl ExactSizeIterator<Item = &'a [f64]>,
    coef: &[f64],
    w: &mut [f64],
) {
    let mut others = basis.zip(coef.chunks_exact(columns * columns));
    let add = |own: Own, x: &[f64], c: &[f64], w: &mut [f64]| {
        for (strip, width) in strips(columns) {
            if width.takes(columns) {
                with_lanes!(width, whole(far, own, x, c, w));
            } else {
                with_lanes!(width, add(strip, far, x, c, w));
            }
        }
    };
    let alone = strips(columns).all(|(_, width)| width.takes(columns));
    match own {
        Own::Kept => {}
        Own::Zero | Own::Times(_) if alone && others.len() > 0 => {
            let (x, c) = others.next().expect("there are some");
            add(own, x, c, w);
        }
        Own::Zero => w.fill(0.0),
        Own::Times(own) => {
            let mut kept = [0.0; CHUNK];
            let kept = &mut kept[..w.len()];
            kept.copy_from_slice(w);
            w.fill(0.0);
            add(Own::Kept, kept, own, w);
        }
    }
    for (x, c) in others {
        add(Own::Kept, x, c, w);
    }
}

multiversion! { fn whole[L: Lanes](lanes: L, far: isize, own: Own, x: &[f64], c: &[f64], w: &mut [f64]) = whole_body }

const KEPT: usize = 0;
const ZERO: usize = 1;
const TIMES: usize = 2;

/// `own + X C` where a strip has all columns: the small matrices stay in registers.
#[inline(always)]
fn whole_body<L: Lanes, S: Simd>(
    s: S,
    _: L,
    far: isize,
    own: Own,
    x: &[f64],
    c: &[f64],
    w: &mut [f64],
) {
    match own {
        Own::Kept => whole_chunk::<KEPT, L, S>(s, far, &[], x, c, w),
        Own::Zero => whole_chunk::<ZERO, L, S>(s, far, &[], x, c, w),
        Own::Times(own) => whole_chunk::<TIMES, L, S>(s, far, own, x, c, w),
    }
}

#[inline(always)]
fn whole_chunk<const OWN: usize, L: Lanes, S: Simd>(
    s: S,
    far: isize,
    own: &[f64],
    x: &[f64],
    c: &[f64],
    w: &mut [f64],
) {
    let rows = |c: &[f64]| -> [L::Of<S>; 8] {
        let row = |p| if p < L::COUNT { L::load(s, &c[p * L::COUNT..]) } else { L::zero(s) };
        std::array::from_fn(row)
    };
    let (own, coef) = (if OWN == TIMES { rows(own) } else { [L::zero(s); 8] }, rows(c));
    let some = ROWS * L::COUNT;
    let at = w.len() / some * some;
    let ((w, w_rest), (x, x_rest)) = (w.split_at_mut(at), x.split_at(at));
    for (w, x) in w.chunks_exact_mut(some).zip(x.chunks_exact(some)) {
        if far != 0 {
            prefetch_away(x, far);
            prefetch_away(w, far);
        }
        whole_rows::<OWN, ROWS, L, S>(s, &own, x, &coef, w);
    }
    for (w, x) in w_rest.chunks_exact_mut(L::COUNT).zip(x_rest.chunks_exact(L::COUNT)) {
        whole_rows::<OWN, 1, L, S>(s, &own, x, &coef, w);
    }
}

/// R rows side by side.
#[inline(always)]
fn whole_rows<const OWN: usize, const R: usize, L: Lanes, S: Simd>(
    s: S,
    own: &[L::Of<S>; 8],
    x: &[f64],
    coef: &[L::Of<S>; 8],
    w: &mut [f64],
) {
    let count = R * L::COUNT;
    let (x, w) = (&x[..count], &mut w[..count]);
    let mut sums = [L::zero(s); R];
    if OWN == KEPT {
        sums = std::array::from_fn(|row| L::load(s, &w[row * L::COUNT..]));
    }
    if OWN == TIMES {
        for p in 0..L::COUNT {
            for row in 0..R {
                sums[row] = L::madd(s, w[row * L::COUNT + p], own[p], sums[row]);
            }
        }
    }
    for p in 0..L::COUNT {
        for row in 0..R {
            sums[row] = L::madd(s, x[row * L::COUNT + p], coef[p], sums[row]);
        }
    }
    for row in 0..R {
        L::store(s, sums[row], &mut w[row * L::COUNT..]);
    }
}

multiversion! { fn add[L: Lanes](lanes: L, strip: Strip, far: isize, x: &[f64], c: &[f64], w: &mut [f64]) = add_body }

/// The columns of the strip in `W + X C`.
#[inline(always)]
fn add_body<L: Lanes, S: Simd>(
    s: S,
    _: L,
    strip: Strip,
    far: isize,
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
    far: isize,
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
    let asks = far != 0 && strip.at + first == 0;
    for (w, x) in w.chunks_exact_mut(some).zip(x.chunks_exact(some)) {
        if asks {
            prefetch_away(x, far);
            prefetch_away(w, far);
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
