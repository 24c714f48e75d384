//! Triangular solves with block ILU factors: each column has the operations of `trsv`, in their order.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use super::super::entry::Entry;
use super::super::ilu::BlockIlu;
use super::super::multiversion::multiversion;
use super::super::parts::Blocks;
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead, prefetch_before};
use super::super::trsv;
use super::super::values::Values;
use super::lanes::{Lanes, Strip, from_memory, strips, with_lanes};
use super::{gather, scatter};
use crate::matrix::pattern::PatternView;

/// `Z = (L D U')^-1 R`, on the threads of the plan, where there is one, or on the calling thread `alone`.
pub(super) fn apply(ilu: &BlockIlu, columns: usize, r: &[f64], z: &mut [f64], alone: bool) {
    let n = ilu.pattern.rows() * ilu.pattern.block_size() * columns;
    assert!(r.len() == n && z.len() == n);
    if !matches!(ilu.values, Values::Double(_) | Values::Single(_)) {
        return one_by_one(ilu, columns, r, z, alone);
    }
    let z = Shared::new(z);
    for (strip, width) in strips(columns) {
        match &ilu.values {
            Values::Double(blocks) => with_lanes!(width, of_strip(ilu, blocks, strip, r, z, alone)),
            Values::Single(blocks) => with_lanes!(width, of_strip(ilu, blocks, strip, r, z, alone)),
            _ => unreachable!("solved above"),
        }
    }
}

/// A pass over the factors for each column.
fn one_by_one(ilu: &BlockIlu, columns: usize, r: &[f64], z: &mut [f64], alone: bool) {
    let rows = r.len() / columns;
    let (mut of_r, mut of_z) = (vec![0.0; rows], vec![0.0; rows]);
    for j in 0..columns {
        gather(columns, j, r, &mut of_r);
        trsv::apply(ilu, &of_r, &mut of_z, alone);
        scatter(columns, j, &of_z, z);
    }
}

/// Factors as plain slices.
#[derive(Clone, Copy)]
struct Factors<'a, T> {
    lower_pattern: PatternView<'a>,
    upper_pattern: PatternView<'a>,
    lower: &'a [T],
    inverse_diagonal: &'a [T],
    upper: &'a [T],
    /// Whether this strip is the first that asks for all of this and of the vectors, which are in memory.
    far: bool,
}

impl<'a, T: Entry> Factors<'a, T> {
    fn new(ilu: &'a BlockIlu, blocks: &'a Blocks<T>, strip: Strip) -> Self {
        let numbers = ilu.pattern.rows() * ilu.pattern.block_size() * strip.columns;
        Self {
            lower_pattern: ilu.pattern.lower.view(),
            upper_pattern: ilu.pattern.upper.view(),
            lower: &blocks.lower,
            inverse_diagonal: &blocks.inverse_diagonal,
            upper: &blocks.upper,
            far: strip.at == 0 && from_memory(numbers),
        }
    }
}

fn of_strip<L: Lanes, T: Entry>(
    lanes: L,
    ilu: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    r: &[f64],
    z: Shared,
    alone: bool,
) {
    let (f, size) = (Factors::new(ilu, blocks, strip), ilu.pattern.block_size());
    let rows = ilu.pattern.rows() as u32;
    let Some(plan) = ilu.plan.as_ref().filter(|_| !alone) else {
        forward(lanes, f, size, strip, r, z, 0..rows);
        backward(lanes, f, size, strip, z, (0..rows).rev());
        return;
    };
    let ahead = |rows: &[u32]| forward(lanes, f, size, strip, r, z, rows.iter().copied());
    let back = |rows: &[u32]| backward(lanes, f, size, strip, z, rows.iter().copied());
    plan.lower.run_with(|_| (), |(), rows| ahead(rows), |()| ());
    plan.upper.run_with(|_| (), |(), rows| back(rows), |()| ());
}

/// Block rows, one after the other.
trait RowList: Iterator<Item = u32> {}

impl<I: Iterator<Item = u32>> RowList for I {}

multiversion! { fn forward[L: Lanes, T: Entry, I: RowList](lanes: L, f: Factors<T>, size: usize, strip: Strip, r: &[f64], z: Shared, rows: I) = forward_body }
multiversion! { fn backward[L: Lanes, T: Entry, I: RowList](lanes: L, f: Factors<T>, size: usize, strip: Strip, z: Shared, rows: I) = backward_body }

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn forward_body<L: Lanes, T: Entry, I: RowList, S: Simd>(
    s: S,
    _: L,
    f: Factors<T>,
    size: usize,
    strip: Strip,
    r: &[f64],
    z: Shared,
    rows: I,
) {
    if size == 1 {
        for i in rows {
            forward_row::<true, L, T, S>(s, f, 1, strip, r, z, i as usize);
        }
    } else {
        for i in rows {
            forward_row::<false, L, T, S>(s, f, size, strip, r, z, i as usize);
        }
    }
}

#[inline(always)]
fn backward_body<L: Lanes, T: Entry, I: RowList, S: Simd>(
    s: S,
    _: L,
    f: Factors<T>,
    size: usize,
    strip: Strip,
    z: Shared,
    rows: I,
) {
    if size == 1 {
        let mut own = [0.0; 8];
        for i in rows {
            backward_row::<true, L, T, S>(s, f, 1, strip, z, i as usize, &mut own);
        }
    } else {
        let mut own = vec![0.0; size * L::COUNT];
        for i in rows {
            backward_row::<false, L, T, S>(s, f, size, strip, z, i as usize, &mut own);
        }
    }
}

/// Row r of `sum - block z_j`.
#[inline(always)]
fn minus<L: Lanes, T: Entry, S: Simd>(
    s: S,
    block: &[T],
    size: usize,
    strip: Strip,
    z: Shared,
    [r, j]: [usize; 2],
    mut sum: L::Of<S>,
) -> L::Of<S> {
    for c in 0..size {
        let from = strip.of_row(j * size + c);
        // SAFETY: row j is solved: earlier in the loop, or in a task that was waited for.
        let x = L::load(s, unsafe { z.read(from..from + L::COUNT) });
        sum = L::madd(s, -block[c * size + r].wide(), x, sum);
    }
    sum
}

/// `y_i = r_i - sum_{j < i} L_ij y_j`.
#[inline(always)]
fn forward_row<const SCALAR: bool, L: Lanes, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    size: usize,
    strip: Strip,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    let size = if SCALAR { 1 } else { size };
    let range = f.lower_pattern.range(i);
    let blocks = &f.lower[range.start * size * size..range.end * size * size];
    let columns = &f.lower_pattern.col_ind[range];
    if f.far {
        prefetch_ahead(blocks);
        prefetch_ahead(columns);
        prefetch_ahead(&r[strip.rows(i * size, size)]);
        // SAFETY: this call alone touches row i.
        prefetch_ahead(unsafe { z.read(strip.rows(i * size, size)) });
    }
    for row in 0..size {
        let at = strip.of_row(i * size + row);
        let mut sum = L::load(s, &r[at..]);
        for (&j, block) in columns.iter().zip(blocks.chunks_exact(size * size)) {
            sum = minus::<L, T, S>(s, block, size, strip, z, [row, j as usize], sum);
        }
        // SAFETY: this call alone writes row i, and nobody reads it before the task ends.
        L::store(s, sum, unsafe { z.write(at..at + L::COUNT) });
    }
}

/// `z_i = D_i^-1 y_i - sum_{j > i} U'_ij z_j`, from the far end of the row to the near one; `own` is for `y_i`.
#[inline(always)]
fn backward_row<const SCALAR: bool, L: Lanes, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    size: usize,
    strip: Strip,
    z: Shared,
    i: usize,
    own: &mut [f64],
) {
    let size = if SCALAR { 1 } else { size };
    let (range, entries, bb) = (f.upper_pattern.range(i), f.upper_pattern.entries(), size * size);
    let blocks = &f.upper[(entries - range.end) * bb..(entries - range.start) * bb];
    let columns = &f.upper_pattern.col_ind[range];
    let inverse = &f.inverse_diagonal[i * bb..(i + 1) * bb];
    if f.far {
        prefetch_ahead(blocks);
        prefetch_before(columns);
        prefetch_before(inverse);
        // SAFETY: this call alone touches row i.
        prefetch_before(unsafe { z.read(strip.rows(i * size, size)) });
    }
    for (c, own) in own.chunks_exact_mut(L::COUNT).take(size).enumerate() {
        let at = strip.of_row(i * size + c);
        // SAFETY: this call alone touches row i.
        L::store(s, L::load(s, unsafe { z.read(at..at + L::COUNT) }), own);
    }
    for row in 0..size {
        let mut sum = L::zero(s);
        for (c, own) in own.chunks_exact(L::COUNT).take(size).enumerate() {
            sum = L::madd(s, inverse[c * size + row].wide(), L::load(s, own), sum);
        }
        for (&j, block) in columns.iter().rev().zip(blocks.chunks_exact(bb)) {
            sum = minus::<L, T, S>(s, block, size, strip, z, [row, j as usize], sum);
        }
        let at = strip.of_row(i * size + row);
        // SAFETY: as above.
        L::store(s, sum, unsafe { z.write(at..at + L::COUNT) });
    }
}
