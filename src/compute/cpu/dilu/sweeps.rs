//! Sweeps with the triangles of A: solves, and products that cost little on the way (Eisenstat 1981).

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use std::ops::Range;

use super::super::block::{BlockSize, with_block_size};
use super::super::multiversion::multiversion;
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead};
use super::Dilu;
use crate::base::choices::MAX_BLOCK_SIZE;
use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;

/// Rows of a task of the product with L, which wait for no others.
const ROWS_PER_TASK: u32 = 2048;

/// The factors as plain slices.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    lower_pattern: PatternView<'a>,
    upper_pattern: PatternView<'a>,
    lower: &'a [f64],
    diagonal: &'a [f64],
    upper: &'a [f64],
    own: &'a [f64],
}

impl<'a> Blocks<'a> {
    fn new(f: &'a Dilu) -> Self {
        Self {
            lower_pattern: f.pattern.lower.view(),
            upper_pattern: f.pattern.upper.view(),
            lower: &f.lower,
            diagonal: &f.diagonal,
            upper: &f.upper,
            own: &f.own,
        }
    }
}

/// A vector of the order of the factors.
fn whole<'a>(f: &Dilu, v: &'a mut [f64]) -> Shared<'a> {
    assert_eq!(v.len(), f.pattern.rows() * f.pattern.block_size());
    Shared::new(v)
}

/// `z = M^-1 r`, on the threads of the plan, where there is one, or on the calling thread `alone`, as all of these.
pub(super) fn apply(f: &Dilu, r: &[f64], z: &mut [f64], alone: bool) {
    let z = whole(f, z);
    with_block_size!(f.pattern.block_size(), solve_lower(f, r, z, None, alone));
    with_block_size!(f.pattern.block_size(), solve_upper(f, None, z, None, alone));
}

/// `z = M^-1 r`, `az = A z`: U z comes from the backward solve.
pub(super) fn apply_then_multiply(f: &Dilu, r: &[f64], z: &mut [f64], az: &mut [f64], alone: bool) {
    let (z, az) = (whole(f, z), whole(f, az));
    with_block_size!(f.pattern.block_size(), solve_lower(f, r, z, None, alone));
    with_block_size!(f.pattern.block_size(), solve_upper(f, None, z, Some(az), alone));
    multiply_lower(f, z, az, alone);
}

/// `y = (D + L)^-1 r`, `dy = D y`.
pub(super) fn forward_solve(f: &Dilu, r: &[f64], [y, dy]: [&mut [f64]; 2], alone: bool) {
    let (y, dy) = (whole(f, y), whole(f, dy));
    with_block_size!(f.pattern.block_size(), solve_lower(f, r, y, Some(dy), alone));
}

/// `t = (I + D^-1 U)^-1 p`, `at = A t`, `y = (D + L)^-1 at`, `dy = D y`: L is read once for product and solve.
pub(super) fn through(
    f: &Dilu,
    p: &[f64],
    [t, at]: [&mut [f64]; 2],
    [y, dy]: [&mut [f64]; 2],
    alone: bool,
) {
    let [t, at, y, dy] = [t, at, y, dy].map(|v| whole(f, v));
    with_block_size!(f.pattern.block_size(), solve_upper(f, Some(p), t, Some(at), alone));
    with_block_size!(f.pattern.block_size(), multiply_and_solve_lower(f, t, at, [y, dy], alone));
}

/// `z = (D + L)^-1 r`, and `dz = D z` where it is wanted.
fn solve_lower<K: BlockSize>(
    size: K,
    f: &Dilu,
    r: &[f64],
    z: Shared,
    dz: Option<Shared>,
    alone: bool,
) {
    assert_eq!(r.len(), f.pattern.rows() * size.b());
    let blocks = Blocks::new(f);
    match f.plan.as_ref().filter(|_| !alone) {
        None => forward(size, blocks, r, z, dz, 0..f.pattern.rows() as u32),
        Some(plan) => {
            plan.forward.run(&|rows| forward(size, blocks, r, z, dz, rows.iter().copied()));
        }
    }
}

/// `z = (I + D^-1 U)^-1 y`, y being in the place of z if not given, and `w = (A - L) z` where it is wanted.
fn solve_upper<K: BlockSize>(
    size: K,
    f: &Dilu,
    y: Option<&[f64]>,
    z: Shared,
    w: Option<Shared>,
    alone: bool,
) {
    let blocks = Blocks::new(f);
    match f.plan.as_ref().filter(|_| !alone) {
        None => backward(size, blocks, y, z, w, (0..f.pattern.rows() as u32).rev()),
        Some(plan) => {
            plan.backward.run(&|rows| backward(size, blocks, y, z, w, rows.iter().copied()));
        }
    }
}

/// `w += L z`.
fn multiply_lower(f: &Dilu, z: Shared, w: Shared, alone: bool) {
    let (blocks, rows) = (Blocks::new(f), f.pattern.rows() as u32);
    let some =
        |rows: Range<u32>| with_block_size!(f.pattern.block_size(), add_lower(blocks, z, w, rows));
    if alone || f.plan.is_none() {
        some(0..rows);
        return;
    }
    Threads::Pool.for_each(rows.div_ceil(ROWS_PER_TASK) as usize, 1, |task| {
        let first = task as u32 * ROWS_PER_TASK;
        some(first..rows.min(first + ROWS_PER_TASK));
    });
}

/// `w += L t`, then `y = (D + L)^-1 w` and `dy = D y`.
fn multiply_and_solve_lower<K: BlockSize>(
    size: K,
    f: &Dilu,
    t: Shared,
    w: Shared,
    y: [Shared; 2],
    alone: bool,
) {
    let blocks = Blocks::new(f);
    match f.plan.as_ref().filter(|_| !alone) {
        None => both(size, blocks, t, w, y, 0..f.pattern.rows() as u32),
        Some(plan) => {
            plan.forward.run(&|rows| both(size, blocks, t, w, y, rows.iter().copied()));
        }
    }
}

multiversion! { fn forward[K: BlockSize, I: Iterator<Item = u32>](size: K, f: Blocks, r: &[f64], z: Shared, dz: Option<Shared>, rows: I) = forward_body }
multiversion! { fn backward[K: BlockSize, I: Iterator<Item = u32>](size: K, f: Blocks, y: Option<&[f64]>, z: Shared, w: Option<Shared>, rows: I) = backward_body }
multiversion! { fn add_lower[K: BlockSize](size: K, f: Blocks, z: Shared, w: Shared, rows: Range<u32>) = add_lower_body }
multiversion! { fn both[K: BlockSize, I: Iterator<Item = u32>](size: K, f: Blocks, t: Shared, w: Shared, y: [Shared; 2], rows: I) = both_body }

/// `y = d^-1 (r - L y)` in some rows.
#[inline(always)]
fn forward_body<K: BlockSize, I: Iterator<Item = u32>, S: Simd>(
    s: S,
    size: K,
    f: Blocks,
    r: &[f64],
    z: Shared,
    dz: Option<Shared>,
    rows: I,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let mut rest = [0.0; MAX_BLOCK_SIZE];
    for i in rows {
        let i = i as usize;
        let range = f.lower_pattern.range(i);
        let mut acc = size.load(s, &r[i * b..(i + 1) * b]);
        let blocks = &f.lower[range.start * bb..range.end * bb];
        prefetch_ahead(blocks);
        for (&j, block) in f.lower_pattern.col_ind[range].iter().zip(blocks.chunks_exact(bb)) {
            let j = j as usize;
            // SAFETY: j < i is solved: earlier in the loop, or in a task that was waited for.
            acc = size.gemv_sub(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
        }
        size.store(s, acc, &mut rest);
        let d = &f.diagonal[i * bb..(i + 1) * bb];
        let y = size.gemv_add(s, d, &rest, size.zero(s));
        // SAFETY: this call alone writes segment i, and nobody reads it before the task ends.
        size.store(s, y, unsafe { z.write(i * b..(i + 1) * b) });
        if let Some(dz) = dz {
            // SAFETY: as above.
            size.store(s, acc, unsafe { dz.write(i * b..(i + 1) * b) });
        }
    }
}

/// `z = y - d^-1 U z` in some rows, y and z in the same place where no other is given; `w = U z + d_A z`.
#[inline(always)]
fn backward_body<K: BlockSize, I: Iterator<Item = u32>, S: Simd>(
    s: S,
    size: K,
    f: Blocks,
    y: Option<&[f64]>,
    z: Shared,
    w: Option<Shared>,
    rows: I,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let mut sum = [0.0; MAX_BLOCK_SIZE];
    for i in rows {
        let i = i as usize;
        let (range, entries) = (f.upper_pattern.range(i), f.upper_pattern.entries());
        let mut acc = size.zero(s);
        let stored = (entries - range.end) * bb..(entries - range.start) * bb;
        let blocks = &f.upper[stored];
        prefetch_ahead(blocks);
        for (&j, block) in f.upper_pattern.col_ind[range].iter().rev().zip(blocks.chunks_exact(bb))
        {
            let j = j as usize;
            // SAFETY: j > i is solved: earlier in the loop, or in a task that was waited for.
            acc = size.gemv_add(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
        }
        size.store(s, acc, &mut sum);
        // SAFETY: this call alone touches segment i.
        let x = unsafe { z.write(i * b..(i + 1) * b) };
        let start = match y {
            Some(y) => size.load(s, &y[i * b..(i + 1) * b]),
            None => size.load(s, x),
        };
        let d = &f.diagonal[i * bb..(i + 1) * bb];
        size.store(s, size.gemv_sub(s, d, &sum, start), x);
        if let Some(w) = w {
            let own = size.gemv_add(s, &f.own[i * bb..(i + 1) * bb], x, acc);
            // SAFETY: as above.
            size.store(s, own, unsafe { w.write(i * b..(i + 1) * b) });
        }
    }
}

/// `w += L z` in some rows.
#[inline(always)]
fn add_lower_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    f: Blocks,
    z: Shared,
    w: Shared,
    rows: Range<u32>,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    for i in rows {
        let i = i as usize;
        let range = f.lower_pattern.range(i);
        // SAFETY: this call alone touches segment i of w, and z is not written any more.
        let w = unsafe { w.write(i * b..(i + 1) * b) };
        let mut acc = size.load(s, w);
        let blocks = &f.lower[range.start * bb..range.end * bb];
        prefetch_ahead(blocks);
        for (&j, block) in f.lower_pattern.col_ind[range].iter().zip(blocks.chunks_exact(bb)) {
            let j = j as usize;
            // SAFETY: as above.
            acc = size.gemv_add(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
        }
        size.store(s, acc, w);
    }
}

/// `w += L t` and `y = d^-1 (w - L y)` in some rows, with `dy = w - L y`.
#[inline(always)]
fn both_body<K: BlockSize, I: Iterator<Item = u32>, S: Simd>(
    s: S,
    size: K,
    f: Blocks,
    t: Shared,
    w: Shared,
    [y, dy]: [Shared; 2],
    rows: I,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let mut solved = [0.0; MAX_BLOCK_SIZE];
    for i in rows {
        let i = i as usize;
        let range = f.lower_pattern.range(i);
        // SAFETY: this call alone touches segments i of w, y and dy, and nobody reads them before the task ends.
        let [w, own, rest] = unsafe { [w, y, dy].map(|v| v.write(i * b..(i + 1) * b)) };
        let (mut product, mut known) = (size.load(s, w), size.zero(s));
        let blocks = &f.lower[range.start * bb..range.end * bb];
        prefetch_ahead(blocks);
        for (&j, block) in f.lower_pattern.col_ind[range].iter().zip(blocks.chunks_exact(bb)) {
            let j = j as usize;
            // SAFETY: t is not written any more; j < i is solved: earlier in the loop, or in a task that was
            // waited for.
            let [t, y] = unsafe { [t, y].map(|v| v.read(j * b..(j + 1) * b)) };
            product = size.gemv_add(s, block, t, product);
            known = size.gemv_add(s, block, y, known);
        }
        size.store(s, product, w);
        size.store(s, known, &mut solved);
        for ((rest, w), known) in rest.iter_mut().zip(&*w).zip(&solved) {
            *rest = w - known;
        }
        let d = &f.diagonal[i * bb..(i + 1) * bb];
        size.store(s, size.gemv_add(s, d, rest, size.zero(s)), own);
    }
}
