//! Triangular solves with block ILU factors: each column has the operations of `trsv`, in their order.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use std::ops::Range;

use super::super::entry::Entry;
use super::super::ilu::{BlockIlu, Plan};
use super::super::multiversion::multiversion;
use super::super::parts::Blocks;
use super::super::row_sums::{SUMS, far_in_four_sums};
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead, prefetch_before};
use super::super::trsv;
use super::super::values::Values;
use super::factors::Factors;
use super::lanes::{Lanes, Strip, joined};
use super::{gather, runs, scatter};

/// Calls `$f(lanes, ilu, blocks, strip, args)` for each strip.
macro_rules! by_strips {
    ($ilu:expr, $columns:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        for (strip, width) in $crate::compute::cpu::multi::lanes::strips($columns) {
            use $crate::compute::cpu::multi::lanes::with_lanes;
            use $crate::compute::cpu::values::Values;
            match &$ilu.values {
                Values::Double(blocks) => with_lanes!(width, $f($ilu, blocks, strip, $($arg),*)),
                Values::Single(blocks) => with_lanes!(width, $f($ilu, blocks, strip, $($arg),*)),
                _ => unreachable!("no strips"),
            }
        }
    };
}

pub(super) use by_strips;

/// `Z = (L D U')^-1 R`, on the threads of the plan, where there is one, or on the calling thread `alone`; `half` is
/// called with `L^-1 R`, and whether it may use all threads, where there are strips.
pub(super) fn apply(
    ilu: &BlockIlu,
    columns: usize,
    r: &[f64],
    z: &mut [f64],
    alone: bool,
    half: &mut dyn FnMut(&[f64], bool),
) {
    let n = ilu.pattern.rows() * ilu.pattern.block_size() * columns;
    assert!(r.len() == n && z.len() == n);
    if !have_strips(ilu) {
        return one_by_one(ilu, columns, r, z, alone);
    }
    let rows = 0..ilu.pattern.rows() as u32;
    match ilu.plan.as_ref().filter(|_| !alone) {
        None => {
            forward_rows(ilu, columns, r, Shared::new(z), rows.clone());
            half(z, !alone);
            backward_rows(ilu, columns, Shared::new(z), rows);
        }
        Some(plan) => {
            let shared = Shared::new(z);
            by_strips!(ilu, columns, planned_ahead(r, shared, plan));
            half(z, true);
            let shared = Shared::new(z);
            by_strips!(ilu, columns, planned_back(shared, plan));
        }
    }
}

/// Whether a pass over the factors serves the columns of a strip.
pub(super) fn have_strips(ilu: &BlockIlu) -> bool {
    matches!(ilu.values, Values::Double(_) | Values::Single(_))
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

/// Some block rows of the forward solve on the calling thread, which comes from the rows before.
pub(super) fn forward_rows(ilu: &BlockIlu, columns: usize, r: &[f64], z: Shared, rows: Range<u32>) {
    by_strips!(ilu, columns, ahead(r, z, rows.clone()));
}

/// Some block rows of the backward solve on the calling thread, which comes from the rows behind.
pub(super) fn backward_rows(ilu: &BlockIlu, columns: usize, z: Shared, rows: Range<u32>) {
    by_strips!(ilu, columns, back(z, rows.clone()));
}

fn ahead<L: Lanes, T: Entry>(
    lanes: L,
    ilu: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    r: &[f64],
    z: Shared,
    rows: Range<u32>,
) {
    let f = Factors::new(ilu, blocks, strip);
    let alone = |rows| forward(lanes, f, ilu.pattern.block_size(), strip, r, z, rows);
    let Some([lower, _]) = &ilu.runs else { return alone(rows) };
    runs::forward(lanes, lower, f, strip, r, z, rows.start as usize..rows.end as usize, &alone);
}

fn back<L: Lanes, T: Entry>(
    lanes: L,
    ilu: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    z: Shared,
    rows: Range<u32>,
) {
    let f = Factors::new(ilu, blocks, strip);
    let size = ilu.pattern.block_size();
    let alone = |rows: Range<u32>| backward(lanes, f, size, strip, z, rows.rev());
    let Some([_, upper]) = &ilu.runs else { return alone(rows) };
    runs::backward(lanes, upper, f, strip, z, rows.start as usize..rows.end as usize, &alone);
}

fn planned_ahead<L: Lanes, T: Entry>(
    lanes: L,
    ilu: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    r: &[f64],
    z: Shared,
    plan: &Plan,
) {
    let (f, size) = (Factors::new(ilu, blocks, strip), ilu.pattern.block_size());
    let ahead = |rows: &[u32]| forward(lanes, f, size, strip, r, z, rows.iter().copied());
    plan.lower.run_with(|_| (), |(), rows| ahead(rows), |()| ());
}

fn planned_back<L: Lanes, T: Entry>(
    lanes: L,
    ilu: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    z: Shared,
    plan: &Plan,
) {
    let (f, size) = (Factors::new(ilu, blocks, strip), ilu.pattern.block_size());
    let back = |rows: &[u32]| backward(lanes, f, size, strip, z, rows.iter().copied());
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
    let strip = strip.known::<L>();
    let mut last = (usize::MAX, L::zero(s));
    if size == 1 {
        for i in rows {
            forward_row::<true, L, T, S>(s, f, 1, strip, r, z, i as usize, &mut last);
        }
    } else {
        for i in rows {
            forward_row::<false, L, T, S>(s, f, size, strip, r, z, i as usize, &mut last);
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
    let strip = strip.known::<L>();
    let mut last = (usize::MAX, L::zero(s));
    if size == 1 {
        let mut own = [0.0; 8];
        for i in rows {
            backward_row::<true, L, T, S>(s, f, 1, strip, z, i as usize, &mut own, &mut last);
        }
    } else {
        let mut own = vec![0.0; size * L::COUNT];
        for i in rows {
            backward_row::<false, L, T, S>(s, f, size, strip, z, i as usize, &mut own, &mut last);
        }
    }
}

/// The row that was solved last, where rows have one number for each column, and these numbers: the next row need not
/// wait until they are in memory.
type Last<V> = (usize, V);

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

/// The same where row j may be the last one.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn minus_last<L: Lanes, T: Entry, S: Simd>(
    s: S,
    block: &[T],
    size: usize,
    strip: Strip,
    z: Shared,
    [r, j]: [usize; 2],
    sum: L::Of<S>,
    last: Last<L::Of<S>>,
) -> L::Of<S> {
    if j == last.0 {
        return L::madd(s, -block[0].wide(), last.1, sum);
    }
    minus::<L, T, S>(s, block, size, strip, z, [r, j], sum)
}

/// Row `row` of `sum - sum_j B_j z_j`, from the far end to the near one, where the nearest may be the last row.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn minus_row<'a, const SCALAR: bool, L: Lanes, T: Entry, S: Simd>(
    s: S,
    mut entries: impl DoubleEndedIterator<Item = (&'a u32, &'a [T])> + ExactSizeIterator,
    size: usize,
    strip: Strip,
    z: Shared,
    row: usize,
    mut sum: L::Of<S>,
    last: Last<L::Of<S>>,
) -> L::Of<S> {
    let far = if SCALAR { far_in_four_sums(entries.len()) } else { 0 };
    let nearest = entries.next_back();
    // no closures: they would be compiled without the caller's instruction set
    if far > 0 {
        let mut sums = [L::zero(s); SUMS];
        for _ in 0..far / SUMS {
            for of_sum in &mut sums {
                let Some((&j, block)) = entries.next() else { break };
                *of_sum = minus::<L, T, S>(s, block, size, strip, z, [row, j as usize], *of_sum);
            }
        }
        sum = joined::<L, S>(s, sum, sums);
    }
    for (&j, block) in entries {
        sum = minus::<L, T, S>(s, block, size, strip, z, [row, j as usize], sum);
    }
    match nearest {
        Some((&j, block)) => {
            minus_last::<L, T, S>(s, block, size, strip, z, [row, j as usize], sum, last)
        }
        None => sum,
    }
}

/// `y_i = r_i - sum_{j < i} L_ij y_j`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn forward_row<const SCALAR: bool, L: Lanes, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    size: usize,
    strip: Strip,
    r: &[f64],
    z: Shared,
    i: usize,
    last: &mut Last<L::Of<S>>,
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
        let entries = columns.iter().zip(blocks.chunks_exact(size * size));
        sum = minus_row::<SCALAR, L, T, S>(s, entries, size, strip, z, row, sum, *last);
        // SAFETY: this call alone writes row i, and nobody reads it before the task ends.
        L::store(s, sum, unsafe { z.write(at..at + L::COUNT) });
        if SCALAR {
            *last = (i, sum);
        }
    }
}

/// `z_i = D_i^-1 y_i - sum_{j > i} U'_ij z_j`, from the far end of the row to the near one; `own` is for `y_i`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn backward_row<const SCALAR: bool, L: Lanes, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    size: usize,
    strip: Strip,
    z: Shared,
    i: usize,
    own: &mut [f64],
    last: &mut Last<L::Of<S>>,
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
        let entries = columns.iter().rev().zip(blocks.chunks_exact(bb));
        sum = minus_row::<SCALAR, L, T, S>(s, entries, size, strip, z, row, sum, *last);
        let at = strip.of_row(i * size + row);
        // SAFETY: as above.
        L::store(s, sum, unsafe { z.write(at..at + L::COUNT) });
        if SCALAR {
            *last = (i, sum);
        }
    }
}
