//! Triangular solves with block ILU factors (Yang et al., Algorithms 6 and 7).

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use std::ops::Range;

use super::block::{BlockSize, with_block_size};
use super::ilu::{BlockIlu, Supernodes};
use super::multiversion::multiversion;
use super::shared::Shared;
use super::simd::Simd;
use super::values::{Blocks, Entry, Values};
use crate::matrix::pattern::PatternView;

/// `z = (L D U')^-1 r`: `L y = r`, then `U' z = D^-1 y`, y and z in the same place. On the threads of the
/// plan, where there is one, or on the calling thread `alone`.
pub(super) fn apply(ilu: &BlockIlu, r: &[f64], z: &mut [f64], alone: bool) {
    match &ilu.values {
        Values::Double(blocks) => {
            with_block_size!(ilu.pattern.block_size(), sized(ilu, blocks, r, z, alone));
        }
        Values::Single(blocks) => {
            with_block_size!(ilu.pattern.block_size(), sized(ilu, blocks, r, z, alone));
        }
    }
}

/// Factors as plain slices.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a, T> {
    pub(super) lower_pattern: PatternView<'a>,
    pub(super) upper_pattern: PatternView<'a>,
    pub(super) lower: &'a [T],
    pub(super) inverse_diagonal: &'a [T],
    pub(super) upper: &'a [T],
    supernodes: Option<&'a Supernodes>,
}

impl<'a, T: Entry> Factors<'a, T> {
    pub(super) fn new(ilu: &'a BlockIlu, blocks: &'a Blocks<T>) -> Self {
        Self {
            lower_pattern: ilu.pattern.lower.view(),
            upper_pattern: ilu.pattern.upper.view(),
            lower: &blocks.lower,
            inverse_diagonal: &blocks.inverse_diagonal,
            upper: &blocks.upper,
            supernodes: ilu.supernodes.as_ref(),
        }
    }

    fn rows(self) -> usize {
        self.lower_pattern.row_ptr.len() - 1
    }
}

/// `L z = r` in some rows; `r` begins with the first of them.
pub(super) fn forward_part(ilu: &BlockIlu, rows: Range<usize>, r: &[f64], z: &mut [f64]) {
    let b = ilu.pattern.block_size();
    match &ilu.values {
        Values::Double(blocks) => {
            with_block_size!(b, forward(Factors::new(ilu, blocks), rows, r, z));
        }
        Values::Single(blocks) => {
            with_block_size!(b, forward(Factors::new(ilu, blocks), rows, r, z));
        }
    }
}

/// `U' z = D^-1 z` in some rows.
pub(super) fn backward_part(ilu: &BlockIlu, rows: Range<usize>, z: &mut [f64]) {
    let b = ilu.pattern.block_size();
    match &ilu.values {
        Values::Double(blocks) => {
            with_block_size!(b, backward(Factors::new(ilu, blocks), rows, z));
        }
        Values::Single(blocks) => {
            with_block_size!(b, backward(Factors::new(ilu, blocks), rows, z));
        }
    }
}

fn sized<K: BlockSize, T: Entry>(
    size: K,
    ilu: &BlockIlu,
    blocks: &Blocks<T>,
    r: &[f64],
    z: &mut [f64],
    alone: bool,
) {
    let n = ilu.pattern.rows() * size.b();
    assert!(r.len() == n && z.len() == n);
    let f = Factors::new(ilu, blocks);
    // either way a row has the same operations in the same order
    let Some(plan) = ilu.plan.as_ref().filter(|_| !alone) else {
        forward(size, f, 0..f.rows(), r, z);
        backward(size, f, 0..f.rows(), z);
        return;
    };
    let z = Shared::new(z);
    plan.lower.run_with(|_| (), |(), rows| forward_rows(size, f, r, z, rows), |()| ());
    plan.upper.run_with(|_| (), |(), rows| backward_rows(size, f, z, rows), |()| ());
}

multiversion! { fn forward[K: BlockSize, T: Entry](size: K, f: Factors<T>, rows: Range<usize>, r: &[f64], z: &mut [f64]) = forward_body }
multiversion! { fn backward[K: BlockSize, T: Entry](size: K, f: Factors<T>, rows: Range<usize>, z: &mut [f64]) = backward_body }
multiversion! { fn forward_rows[K: BlockSize, T: Entry](size: K, f: Factors<T>, r: &[f64], z: Shared, rows: &[u32]) = forward_rows_body }
multiversion! { fn backward_rows[K: BlockSize, T: Entry](size: K, f: Factors<T>, z: Shared, rows: &[u32]) = backward_rows_body }

#[inline(always)]
fn forward_body<K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    f: Factors<T>,
    rows: Range<usize>,
    r: &[f64],
    z: &mut [f64],
) {
    let (z, b, first) = (Shared::new(z), size.b(), rows.start);
    let Some(nodes) = f.supernodes.filter(|_| b == 1) else {
        for i in rows {
            let at = (i - first) * b;
            forward_row_body(s, size, f, &r[at..at + b], z, i);
        }
        return;
    };
    let mut i = rows.start;
    while i < rows.end {
        let (count, r) = (nodes.ahead(i..rows.end), &r[i - first..]);
        match count {
            1 => forward_row_body(s, size, f, &r[..1], z, i),
            2 => forward_supernode::<2, T, S>(s, f, r, z, i),
            3 => forward_supernode::<3, T, S>(s, f, r, z, i),
            _ => forward_supernode::<4, T, S>(s, f, r, z, i),
        }
        i += count;
    }
}

#[inline(always)]
fn backward_body<K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    f: Factors<T>,
    rows: Range<usize>,
    z: &mut [f64],
) {
    let z = Shared::new(z);
    let Some(nodes) = f.supernodes.filter(|_| size.b() == 1) else {
        for i in rows.rev() {
            backward_row_body(s, size, f, z, i);
        }
        return;
    };
    let mut end = rows.end;
    while end > rows.start {
        let count = nodes.behind(rows.start..end);
        end -= count;
        match count {
            1 => backward_row_body(s, size, f, z, end),
            2 => backward_supernode::<2, T, S>(s, f, z, end),
            3 => backward_supernode::<3, T, S>(s, f, z, end),
            _ => backward_supernode::<4, T, S>(s, f, z, end),
        }
    }
}

/// Rows of one task.
#[inline(always)]
fn forward_rows_body<K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    f: Factors<T>,
    r: &[f64],
    z: Shared,
    rows: &[u32],
) {
    for &i in rows {
        let (i, b) = (i as usize, size.b());
        forward_row_body(s, size, f, &r[i * b..(i + 1) * b], z, i);
    }
}

/// As `forward_rows_body`, for the backward solve.
#[inline(always)]
fn backward_rows_body<K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    f: Factors<T>,
    z: Shared,
    rows: &[u32],
) {
    for &i in rows {
        backward_row_body(s, size, f, z, i as usize);
    }
}

/// `y_i = r_i - sum_{j < i} L_ij y_j`, r being `r_i`. The nearest unknown, which is the last to be ready, has the
/// highest column and is used last.
#[inline(always)]
fn forward_row_body<K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    f: Factors<T>,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let range = f.lower_pattern.range(i);
    let mut acc = size.load(s, r);
    let blocks = f.lower[range.start * bb..range.end * bb].chunks_exact(bb);
    for (&j, block) in f.lower_pattern.col_ind[range].iter().zip(blocks) {
        let j = j as usize;
        // SAFETY: j < i is solved: earlier in the loop, or in a task that was waited for.
        acc = size.gemv_sub(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
    }
    // SAFETY: this call alone writes segment i, and nobody reads it before the task ends.
    size.store(s, acc, unsafe { z.write(i * b..(i + 1) * b) });
}

/// `z_i = D_i^-1 y_i - sum_{j > i} U'_ij z_j`, from the far end of the row to the near one.
#[inline(always)]
fn backward_row_body<K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    f: Factors<T>,
    z: Shared,
    i: usize,
) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let (range, entries) = (f.upper_pattern.range(i), f.upper_pattern.entries());
    // SAFETY: this call alone touches segment i.
    let y = unsafe { z.write(i * b..(i + 1) * b) };
    let inverse = &f.inverse_diagonal[i * bb..(i + 1) * bb];
    let mut acc = size.gemv_add(s, inverse, y, size.zero(s));
    let stored = (entries - range.end) * bb..(entries - range.start) * bb;
    let blocks = f.upper[stored].chunks_exact(bb);
    for (&j, block) in f.upper_pattern.col_ind[range].iter().rev().zip(blocks) {
        let j = j as usize;
        // SAFETY: j > i is solved: earlier in the loop, or in a task that was waited for.
        acc = size.gemv_sub(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
    }
    size.store(s, acc, y);
}

/// `N` rows of a supernode, from row i on: an index and an unknown are read once for all of them. Each row has
/// the operations of [`forward_row_body`], in their order.
#[inline(always)]
fn forward_supernode<const N: usize, T: Entry, S: Simd>(
    s: S,
    f: Factors<T>,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    let range = f.lower_pattern.range(i);
    let common = range.len();
    let rows: [_; N] =
        std::array::from_fn(|row| f.lower[f.lower_pattern.range(i + row)].split_at(common));
    let mut acc: [f64; N] = std::array::from_fn(|row| r[row]);
    for (at, &j) in f.lower_pattern.col_ind[range].iter().enumerate() {
        let j = j as usize;
        // SAFETY: j < i is solved: earlier in the loop, or in a task that was waited for.
        let x = unsafe { z.read(j..j + 1)[0] };
        for row in 0..N {
            // SAFETY: all first parts have `common` entries, as many as there are columns.
            let v = unsafe { rows[row].0.get_unchecked(at) }.wide();
            acc[row] = s.madd(-v, x, acc[row]);
        }
    }
    for row in 1..N {
        for before in 0..row {
            acc[row] = s.madd(-rows[row].1[before].wide(), acc[before], acc[row]);
        }
    }
    // SAFETY: this call alone writes these, and nobody reads them before it ends.
    unsafe { z.write(i..i + N) }.copy_from_slice(&acc);
}

/// As [`forward_supernode`], with the operations of [`backward_row_body`].
#[inline(always)]
fn backward_supernode<const N: usize, T: Entry, S: Simd>(s: S, f: Factors<T>, z: Shared, i: usize) {
    let (range, entries) = (f.upper_pattern.range(i + N - 1), f.upper_pattern.entries());
    let common = range.len();
    let rows: [_; N] = std::array::from_fn(|row| {
        let range = f.upper_pattern.range(i + row);
        f.upper[entries - range.end..entries - range.start].split_at(common)
    });
    // SAFETY: this call alone touches these.
    let y = unsafe { z.write(i..i + N) };
    let mut acc = [0.0; N];
    for row in 0..N {
        acc[row] = s.madd(f.inverse_diagonal[i + row].wide(), y[row], 0.0);
    }
    let columns = &f.upper_pattern.col_ind[range];
    for (at, &j) in columns.iter().rev().enumerate() {
        let j = j as usize;
        // SAFETY: j > i is solved: earlier in the loop, or in a task that was waited for.
        let x = unsafe { z.read(j..j + 1)[0] };
        for row in 0..N {
            // SAFETY: all first parts have `common` entries, as many as there are columns.
            let v = unsafe { rows[row].0.get_unchecked(at) }.wide();
            acc[row] = s.madd(-v, x, acc[row]);
        }
    }
    for row in (0..N - 1).rev() {
        for (at, behind) in (row + 1..N).rev().enumerate() {
            acc[row] = s.madd(-rows[row].1[at].wide(), acc[behind], acc[row]);
        }
    }
    y.copy_from_slice(&acc);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{FactorPrecision, LevelRule, ReadAs, Trisolve};
    use crate::compute::Factors as _;
    use crate::compute::cpu::Cpu;
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::iluk;

    #[test]
    fn one_thread_and_all_of_them_solve_to_the_same_bits() {
        let k = Cpu::parallel(Some(3)).unwrap();
        let a = problem::load("blockpoisson3d:24,b=2", ReadAs::Expanded).unwrap().matrix;
        for (b, precision) in [
            (1, FactorPrecision::Float64),
            (2, FactorPrecision::Float64),
            (2, FactorPrecision::Float32),
        ] {
            let pattern = iluk(&block_pattern(&a.in_blocks(b)), 0, LevelRule::Min, usize::MAX)
                .unwrap()
                .into();
            let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, precision).unwrap();
            k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
            assert!(ilu.plan.is_some());
            let r: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 1000) as f64 - 499.5).collect();
            let (mut together, mut alone) = (vec![0.0; a.rows()], vec![0.0; a.rows()]);
            k.pooled(|| apply(&ilu, &r, &mut together, false));
            apply(&ilu, &r, &mut alone, true);
            assert!(together.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{b}");
            assert!(alone.iter().all(|z| z.is_finite() && *z != 0.0));
            // so do factors that one thread made
            ilu.factor(&a, 0.0, true).unwrap();
            apply(&ilu, &r, &mut together, true);
            assert!(together.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{b}");
        }
    }
}
