//! Products with matrices in CSR (blocks of one) and BSR.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

pub(super) mod runs;

use std::ops::Range;

use super::block::{BlockSize, with_block_size};
use super::groups::Groups;
use super::multiversion::multiversion;
use super::row_sums::{four_sums, in_four_sums};
use super::runs::{Run, Runs};
use super::simd::{Simd, prefetch_ahead};
use super::vector::Lane;
use crate::base::choices::MAX_BLOCK_SIZE;
use crate::base::threads::Threads;
use crate::matrix::{Bsr, Csr};

/// Block rows that one task works on, at most.
const ROWS_PER_TASK: usize = 2048;
/// Entries of a task, about, where rows are long.
const ENTRIES_PER_TASK: usize = 1 << 14;

/// A matrix by (block) rows; CSR has blocks of one.
#[derive(Clone, Copy)]
pub struct Rows<'a, T = f64> {
    pub(super) block_size: usize,
    pub(super) columns: usize,
    pub(super) row_ptr: &'a [u32],
    pub(super) col_ind: &'a [u32],
    pub(super) values: &'a [T],
    /// Rows with the same columns.
    pub(super) groups: Option<&'a Groups>,
    /// Rows with columns at the same distances.
    pub(super) runs: Option<&'a Runs>,
}

impl<'a, T> Rows<'a, T> {
    /// Of blocks of a size, with so many block columns.
    pub(super) fn new(
        (block_size, columns): (usize, usize),
        (row_ptr, col_ind): (&'a [u32], &'a [u32]),
        values: &'a [T],
    ) -> Self {
        Self { block_size, columns, row_ptr, col_ind, values, groups: None, runs: None }
    }

    /// The same, with rows in groups, where there are any.
    pub(super) fn in_groups(self, groups: Option<&'a Groups>) -> Self {
        Self { groups, ..self }
    }

    /// The same, with rows in runs, where there are any.
    pub(super) fn in_runs(self, runs: Option<&'a Runs>) -> Self {
        Self { runs, ..self }
    }
}

impl<T> Rows<'_, T> {
    /// Block rows that one task works on: a matrix with few long rows has work for all threads, too.
    pub(super) fn per_task(&self) -> usize {
        let rows = self.row_ptr.len() - 1;
        let entries = (self.col_ind.len() * self.block_size * self.block_size).max(1);
        (ENTRIES_PER_TASK * rows / entries).clamp(1, ROWS_PER_TASK)
    }

    /// The last block column of some block rows.
    pub(super) fn last_column(&self, rows: Range<usize>) -> Option<usize> {
        let of_row = |i: usize| {
            let of = self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize;
            self.col_ind[of].last().map(|&j| j as usize)
        };
        match self.runs {
            Some(runs) => {
                let last = |run: Run| {
                    let distance = *run.distances.last()?;
                    (run.rows.end - 1).checked_add_signed(distance as isize)
                };
                runs.ahead(rows).filter_map(last).max()
            }
            None => rows.filter_map(of_row).max(),
        }
    }
}

impl<'a> From<&'a Csr> for Rows<'a> {
    fn from(a: &'a Csr) -> Self {
        Self::new((1, a.cols()), (a.row_ptr(), a.col_ind()), a.values())
    }
}

impl<'a> From<&'a Bsr> for Rows<'a> {
    fn from(a: &'a Bsr) -> Self {
        let size = (a.block_size(), a.block_rows());
        Self::new(size, (a.row_ptr(), a.col_ind()), a.values())
    }
}

/// `y = A x`, or `y = b - A x` when `b` is given.
pub(super) fn product<T: Lane>(a: Rows<T>, x: &[T], b: Option<&[T]>, y: &mut [T], parallel: bool) {
    assert_eq!(y.len(), (a.row_ptr.len() - 1) * a.block_size);
    assert_eq!(x.len(), a.columns * a.block_size);
    if parallel {
        let rows = a.per_task();
        let task = |task, y: &mut [T]| some_rows(a, x, b, task * rows, y);
        Threads::Pool.chunks(y, rows * a.block_size, 1, task);
    } else {
        some_rows(a, x, b, 0, y);
    }
}

/// `y -= A x` for a matrix of blocks of one whose other rows than `filled` are empty.
pub(super) fn subtract(a: Rows, filled: &[u32], x: &[f64], y: &mut [f64], parallel: bool) {
    assert_eq!((y.len(), x.len()), (a.row_ptr.len() - 1, a.columns));
    let task = |task, y: &mut [f64]| {
        let first = task * ROWS_PER_TASK;
        let from = filled.partition_point(|&i| (i as usize) < first);
        let count = filled[from..].partition_point(|&i| (i as usize) < first + y.len());
        filled_rows(a, &filled[from..from + count], x, first, y);
    };
    Threads::when(parallel).chunks(y, ROWS_PER_TASK, 1, task);
}

multiversion! { fn filled_rows[](a: Rows, filled: &[u32], x: &[f64], first: usize, y: &mut [f64]) = filled_body }

/// Those of `filled`, the operations and their order being those of all rows.
#[inline(always)]
fn filled_body<S: Simd>(s: S, a: Rows, filled: &[u32], x: &[f64], first: usize, y: &mut [f64]) {
    for &i in filled {
        let y = &mut y[i as usize - first..][..1];
        together::<1, true, f64, S>(s, a, x, &[y[0]], i as usize, y);
    }
}

/// Block rows from `first` on, of which `y` begins with the first.
fn some_rows<T: Lane>(a: Rows<T>, x: &[T], b: Option<&[T]>, first: usize, y: &mut [T]) {
    match b {
        Some(b) => with_block_size!(a.block_size, minus_rows(a, x, b, first, y)),
        None => with_block_size!(a.block_size, plus_rows(a, x, &[], first, y)),
    }
}

multiversion! { fn plus_rows[K: BlockSize, T: Lane](size: K, a: Rows<T>, x: &[T], b: &[T], first: usize, y: &mut [T]) = plus_body }
multiversion! { fn minus_rows[K: BlockSize, T: Lane](size: K, a: Rows<T>, x: &[T], b: &[T], first: usize, y: &mut [T]) = minus_body }

#[inline(always)]
fn plus_body<K: BlockSize, T: Lane, S: Simd>(
    s: S,
    size: K,
    a: Rows<T>,
    x: &[T],
    _b: &[T],
    first: usize,
    y: &mut [T],
) {
    if size.b() == 1 {
        return rows_by_columns::<false, T, S>(s, a, x, &[], first, y);
    }
    for (i, y) in y.chunks_exact_mut(size.b()).enumerate() {
        let add = |acc, block: &[T], x: &[f64]| size.gemv_add(s, block, x, acc);
        let sum = fold_row(size, a, x, first + i, size.zero(s), add);
        stored(s, size, sum, y);
    }
}

#[inline(always)]
fn minus_body<K: BlockSize, T: Lane, S: Simd>(
    s: S,
    size: K,
    a: Rows<T>,
    x: &[T],
    b: &[T],
    first: usize,
    y: &mut [T],
) {
    let n = size.b();
    if n == 1 {
        return rows_by_columns::<true, T, S>(s, a, x, &b[first..], first, y);
    }
    for (i, y) in y.chunks_exact_mut(n).enumerate() {
        let mut space = [0.0; MAX_BLOCK_SIZE];
        let b = &b[(first + i) * n..][..n];
        let start = size.load(s, T::widened(b, &mut space[..n]));
        let sub = |acc, block: &[T], x: &[f64]| size.gemv_sub(s, block, x, acc);
        let rest = fold_row(size, a, x, first + i, start, sub);
        stored(s, size, rest, y);
    }
}

/// `y = A x` in rows from `first` on, or `y = b - A x`. Long rows of a group share indices and unknowns; each has the
/// operations and the order of a row alone. The products of a short row hide the latency of another.
#[inline(always)]
fn rows_by_columns<const MINUS: bool, T: Lane, S: Simd>(
    s: S,
    a: Rows<T>,
    x: &[T],
    b: &[T],
    first: usize,
    y: &mut [T],
) {
    let mut done = 0;
    while done < y.len() {
        let (i, left) = (first + done, y.len() - done);
        let long = in_four_sums((a.row_ptr[i + 1] - a.row_ptr[i]) as usize) > 0;
        let count = match a.groups {
            Some(groups) if long => groups.ahead(i..i + left),
            _ => 1,
        };
        let (y, b) = (&mut y[done..done + count], if MINUS { &b[done..done + count] } else { b });
        match count {
            1 => together::<1, MINUS, T, S>(s, a, x, b, i, y),
            2 => together::<2, MINUS, T, S>(s, a, x, b, i, y),
            3 => together::<3, MINUS, T, S>(s, a, x, b, i, y),
            _ => together::<4, MINUS, T, S>(s, a, x, b, i, y),
        }
        done += count;
    }
}

/// `N` rows with the same columns.
#[inline(always)]
fn together<const N: usize, const MINUS: bool, T: Lane, S: Simd>(
    s: S,
    a: Rows<T>,
    x: &[T],
    b: &[T],
    i: usize,
    y: &mut [T],
) {
    let (start, end) = (a.row_ptr[i] as usize, a.row_ptr[i + 1] as usize);
    let count = end - start;
    let mut rows = [&a.values[start..end]; N];
    for row in 1..N {
        rows[row] = &a.values[start + row * count..][..count];
    }
    let columns = &a.col_ind[start..end];
    prefetch_ahead(columns);
    for row in rows {
        prefetch_ahead(row);
    }
    let mut sums = [0.0; N];
    if MINUS {
        sums.iter_mut().zip(b).for_each(|(sum, b)| *sum = b.wide());
    }
    let add = |sums: &mut [f64; N], at: usize| {
        // SAFETY: columns are below `a.columns`, by the invariant of the matrix, and `x` is that long.
        let x = unsafe { *x.get_unchecked(*columns.get_unchecked(at) as usize) }.wide();
        for row in 0..N {
            // SAFETY: all rows have `count` entries, as many as there are columns.
            let v = unsafe { *rows[row].get_unchecked(at) }.wide();
            sums[row] = s.madd(if MINUS { -v } else { v }, x, sums[row]);
        }
    };
    let in_four = in_four_sums(count);
    if in_four > 0 {
        // SAFETY: as in `add`.
        let of_four = unsafe {
            four_sums::<N, MINUS, T, S>(s, rows, [in_four; N], |at| {
                x.get_unchecked(*columns.get_unchecked(at) as usize).wide()
            })
        };
        sums.iter_mut().zip(of_four).for_each(|(sum, of_four)| *sum += of_four);
    }
    (in_four..count).for_each(|at| add(&mut sums, at));
    y.iter_mut().zip(sums).for_each(|(y, sum)| *y = T::of(sum));
}

/// Writes a segment to `y`.
#[inline(always)]
fn stored<K: BlockSize, T: Lane, S: Simd>(s: S, size: K, v: K::Segment<S>, y: &mut [T]) {
    let mut wide = [0.0; MAX_BLOCK_SIZE];
    size.store(s, v, &mut wide);
    y.iter_mut().zip(wide).for_each(|(y, v)| *y = T::of(v));
}

/// Folds `f(acc, block, segment of x)` over the blocks of row `i`.
#[inline(always)]
fn fold_row<K: BlockSize, T: Lane, A>(
    size: K,
    a: Rows<T>,
    x: &[T],
    i: usize,
    mut acc: A,
    f: impl Fn(A, &[T], &[f64]) -> A,
) -> A {
    let b = size.b();
    let (start, end) = (a.row_ptr[i] as usize, a.row_ptr[i + 1] as usize);
    let blocks = &a.values[start * b * b..end * b * b];
    prefetch_ahead(blocks);
    let blocks = blocks.chunks_exact(b * b);
    let mut space = [0.0; MAX_BLOCK_SIZE];
    for (&j, block) in a.col_ind[start..end].iter().zip(blocks) {
        // SAFETY: columns are below `a.columns`, by the invariant of the matrix, and `x` has
        // that many segments.
        let x = unsafe { x.get_unchecked(j as usize * b..(j as usize + 1) * b) };
        acc = f(acc, block, T::widened(x, &mut space[..b]));
    }
    acc
}
