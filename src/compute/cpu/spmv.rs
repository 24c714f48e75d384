//! Products with matrices in CSR (blocks of one) and BSR.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use rayon::prelude::*;

use super::block::{BlockSize, with_block_size};
use super::multiversion::multiversion;
use super::simd::Simd;
use crate::matrix::{Bsr, Csr};

/// Block rows that one task works on.
const ROWS_PER_TASK: usize = 2048;

/// A matrix by (block) rows; CSR has blocks of one.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    block_size: usize,
    columns: usize,
    row_ptr: &'a [u32],
    col_ind: &'a [u32],
    values: &'a [f64],
}

impl<'a> From<&'a Csr> for Rows<'a> {
    fn from(a: &'a Csr) -> Self {
        let (row_ptr, col_ind, values) = (a.row_ptr(), a.col_ind(), a.values());
        Self { block_size: 1, columns: a.cols(), row_ptr, col_ind, values }
    }
}

impl<'a> From<&'a Bsr> for Rows<'a> {
    fn from(a: &'a Bsr) -> Self {
        let (row_ptr, col_ind, values) = (a.row_ptr(), a.col_ind(), a.values());
        let columns = a.block_rows();
        Self { block_size: a.block_size(), columns, row_ptr, col_ind, values }
    }
}

/// `y = A x`, or `y = b - A x` when `b` is given.
pub(super) fn product(a: Rows, x: &[f64], b: Option<&[f64]>, y: &mut [f64], parallel: bool) {
    with_block_size!(a.block_size, sized(a, x, b, y, parallel));
}

fn sized<K: BlockSize>(
    size: K,
    a: Rows,
    x: &[f64],
    b: Option<&[f64]>,
    y: &mut [f64],
    parallel: bool,
) {
    assert_eq!(y.len(), (a.row_ptr.len() - 1) * size.b());
    assert_eq!(x.len(), a.columns * size.b());
    let rows = |first: usize, y: &mut [f64]| match b {
        Some(b) => minus_rows(size, a, x, b, first, y),
        None => plus_rows(size, a, x, &[], first, y),
    };
    if parallel {
        let task = ROWS_PER_TASK * size.b();
        y.par_chunks_mut(task).enumerate().for_each(|(t, y)| rows(t * ROWS_PER_TASK, y));
    } else {
        rows(0, y);
    }
}

multiversion! { fn plus_rows[K: BlockSize](size: K, a: Rows, x: &[f64], b: &[f64], first: usize, y: &mut [f64]) = plus_body }
multiversion! { fn minus_rows[K: BlockSize](size: K, a: Rows, x: &[f64], b: &[f64], first: usize, y: &mut [f64]) = minus_body }

#[inline(always)]
fn plus_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    a: Rows,
    x: &[f64],
    _b: &[f64],
    first: usize,
    y: &mut [f64],
) {
    for (i, y) in y.chunks_exact_mut(size.b()).enumerate() {
        let add = |acc, block: &[f64], x: &[f64]| size.gemv_add(s, block, x, acc);
        let sum = fold_row(size, a, x, first + i, size.zero(s), add);
        size.store(s, sum, y);
    }
}

#[inline(always)]
fn minus_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    a: Rows,
    x: &[f64],
    b: &[f64],
    first: usize,
    y: &mut [f64],
) {
    let n = size.b();
    for (i, y) in y.chunks_exact_mut(n).enumerate() {
        let start = size.load(s, &b[(first + i) * n..]);
        let sub = |acc, block: &[f64], x: &[f64]| size.gemv_sub(s, block, x, acc);
        let rest = fold_row(size, a, x, first + i, start, sub);
        size.store(s, rest, y);
    }
}

/// Folds `f(acc, block, segment of x)` over the blocks of row `i`.
#[inline(always)]
fn fold_row<K: BlockSize, A>(
    size: K,
    a: Rows,
    x: &[f64],
    i: usize,
    mut acc: A,
    f: impl Fn(A, &[f64], &[f64]) -> A,
) -> A {
    let b = size.b();
    let (start, end) = (a.row_ptr[i] as usize, a.row_ptr[i + 1] as usize);
    let blocks = a.values[start * b * b..end * b * b].chunks_exact(b * b);
    for (&j, block) in a.col_ind[start..end].iter().zip(blocks) {
        // SAFETY: columns are below `a.columns`, by the invariant of the matrix, and `x` has
        // that many segments.
        acc = f(acc, block, unsafe { x.get_unchecked(j as usize * b..(j as usize + 1) * b) });
    }
    acc
}
