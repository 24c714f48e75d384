//! Products with matrices in CSR (blocks of one) and BSR.

use rayon::prelude::*;

use super::block::{BlockSize, with_block_size};
use super::simd::multiversion;
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
fn plus_body<K: BlockSize, const FMA: bool>(
    size: K,
    a: Rows,
    x: &[f64],
    _b: &[f64],
    first: usize,
    y: &mut [f64],
) {
    const ZERO: [f64; super::block::MAX_BLOCK_SIZE] = [0.0; super::block::MAX_BLOCK_SIZE];
    let n = size.b();
    for (i, y) in y.chunks_exact_mut(n).enumerate() {
        let mut acc = size.segment(&ZERO);
        for_row(size, a, x, first + i, |block, x| {
            size.gemv_add::<FMA>(block, x, acc.as_mut());
        });
        y.copy_from_slice(&acc.as_mut()[..n]);
    }
}

#[inline(always)]
fn minus_body<K: BlockSize, const FMA: bool>(
    size: K,
    a: Rows,
    x: &[f64],
    b: &[f64],
    first: usize,
    y: &mut [f64],
) {
    let n = size.b();
    for (i, y) in y.chunks_exact_mut(n).enumerate() {
        let mut acc = size.segment(&b[(first + i) * n..]);
        for_row(size, a, x, first + i, |block, x| {
            size.gemv_sub::<FMA>(block, x, acc.as_mut());
        });
        y.copy_from_slice(&acc.as_mut()[..n]);
    }
}

/// Calls `f(block, segment of x)` for the blocks of row `i`.
#[inline(always)]
fn for_row<K: BlockSize>(size: K, a: Rows, x: &[f64], i: usize, mut f: impl FnMut(&[f64], &[f64])) {
    let b = size.b();
    let (start, end) = (a.row_ptr[i] as usize, a.row_ptr[i + 1] as usize);
    let blocks = a.values[start * b * b..end * b * b].chunks_exact(b * b);
    for (&j, block) in a.col_ind[start..end].iter().zip(blocks) {
        // SAFETY: columns are below `a.columns`, by the invariant of the matrix, and `x` has
        // that many segments.
        f(block, unsafe { x.get_unchecked(j as usize * b..(j as usize + 1) * b) });
    }
}
