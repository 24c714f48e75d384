//! Updates of multivectors, over the chunks of [inner products](super::grams).

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
    // no closures: they would be compiled without the caller's instruction set
    let (mut of_own, mut coef) = ([L::zero(s); 8], [L::zero(s); 8]);
    for p in 0..L::COUNT {
        if OWN == TIMES {
            of_own[p] = L::load(s, &own[p * L::COUNT..]);
        }
        coef[p] = L::load(s, &c[p * L::COUNT..]);
    }
    let some = ROWS * L::COUNT;
    let at = w.len() / some * some;
    let ((w, w_rest), (x, x_rest)) = (w.split_at_mut(at), x.split_at(at));
    for (w, x) in w.chunks_exact_mut(some).zip(x.chunks_exact(some)) {
        if far != 0 {
            prefetch_away(x, far);
            prefetch_away(w, far);
        }
        whole_rows::<OWN, ROWS, L, S>(s, &of_own, x, &coef, w);
    }
    for (w, x) in w_rest.chunks_exact_mut(L::COUNT).zip(x_rest.chunks_exact(L::COUNT)) {
        whole_rows::<OWN, 1, L, S>(s, &of_own, x, &coef, w);
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
        for row in 0..R {
            sums[row] = L::load(s, &w[row * L::COUNT..]);
        }
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
    // no closures, as above
    let mut coef = [L::zero(s); P];
    for p in 0..P {
        coef[p] = L::load(s, &c[strip.of_row(first + p)..][..L::COUNT]);
    }
    let some = ROWS * strip.columns;
    let at = w.len() / some * some;
    let ((w, w_rest), (x, x_rest)) = (w.split_at_mut(at), x.split_at(at));
    let asks = far != 0 && strip.at + first == 0;
    for (w, x) in w.chunks_exact_mut(some).zip(x.chunks_exact(some)) {
        if asks {
            prefetch_away(x, far);
            prefetch_away(w, far);
        }
        let mut sums = [L::zero(s); ROWS];
        for row in 0..ROWS {
            sums[row] = L::load(s, &w[strip.of_row(row)..][..L::COUNT]);
        }
        for p in 0..P {
            for row in 0..ROWS {
                sums[row] = L::madd(s, x[row * strip.columns + first + p], coef[p], sums[row]);
            }
        }
        for row in 0..ROWS {
            L::store(s, sums[row], &mut w[strip.of_row(row)..][..L::COUNT]);
        }
    }
    let rest = w_rest.chunks_exact_mut(strip.columns).zip(x_rest.chunks_exact(strip.columns));
    for (w, x) in rest {
        let mut sum = L::load(s, &w[strip.at..][..L::COUNT]);
        for p in 0..P {
            sum = L::madd(s, x[first + p], coef[p], sum);
        }
        L::store(s, sum, &mut w[strip.at..][..L::COUNT]);
    }
    P
}
