//! Products with matrices in CSR and BSR.

#![allow(
    unsafe_code,
    reason = "columns that the matrix vouches for, instruction sets chosen at run time"
)]

use super::super::multiversion::multiversion;
use super::super::row_sums::{SUMS, in_four_sums};
use super::super::runs::Runs;
use super::super::simd::{Simd, prefetch_ahead};
use super::super::spmv::Rows;
use super::super::stream;
use super::lanes::{Lanes, Strip, from_memory, joined, strips, with_lanes};
use super::{runs, updates};
use crate::base::threads::Threads;

/// Bytes from which on a result is stored past the caches, which would read it first and not keep it.
const STREAMED: usize = 32 << 20;

/// `Y = A X`, or `Y = B - A X` when B is given.
pub(in crate::compute::cpu) fn product(
    a: Rows,
    columns: usize,
    x: &[f64],
    b: Option<&[f64]>,
    y: &mut [f64],
    parallel: bool,
) {
    let of_row = checked(a, columns, x, y);
    assert!(b.is_none_or(|b| b.len() == y.len()));
    let (all, piece) = (y.len(), updates::chunk(columns) * a.block_size);
    let rows = if parallel { a.per_task() } else { 0 };
    let task = |task: usize, y: &mut [f64]| {
        let mut stored = Stored::new(all, piece);
        for (at, y) in y.chunks_mut(piece).enumerate() {
            let from = task * rows * of_row + at * piece;
            let b = b.map(|b| &b[from..][..y.len()]);
            stored.make(y, |y| some_rows(a, columns, x, b, from / of_row, y));
        }
    };
    if parallel {
        Threads::Pool.chunks(y, rows * of_row, 1, task);
    } else {
        task(0, y);
    }
}

/// The numbers of a block row, where the sizes fit each other.
pub(super) fn checked(a: Rows, columns: usize, x: &[f64], y: &[f64]) -> usize {
    let of_row = a.block_size * columns;
    assert_eq!(y.len(), (a.row_ptr.len() - 1) * of_row);
    assert_eq!(x.len(), a.columns * of_row);
    of_row
}

/// Where the pieces of a result are made: in place, or beside it to be stored past the caches.
struct Stored {
    beside: Vec<f64>,
}

impl Stored {
    /// For pieces of a result of so many numbers.
    fn new(all: usize, piece: usize) -> Self {
        let streams = all * size_of::<f64>() >= STREAMED;
        Self { beside: vec![0.0; if streams { piece } else { 0 }] }
    }

    /// `make(y)`, of which a piece beside it has no numbers yet.
    fn make(&mut self, y: &mut [f64], make: impl FnOnce(&mut [f64])) {
        if self.beside.is_empty() {
            return make(y);
        }
        let beside = &mut self.beside[..y.len()];
        make(beside);
        stream::copy(bytemuck::cast_slice(beside), bytemuck::cast_slice_mut(y));
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if !self.beside.is_empty() {
            stream::fence();
        }
    }
}

/// Block rows from `first` on of `A X` or `B - A X`, of which `y` and `b` begin with the first.
pub(super) fn some_rows(
    a: Rows,
    columns: usize,
    x: &[f64],
    b: Option<&[f64]>,
    first: usize,
    y: &mut [f64],
) {
    assert_eq!(x.len(), a.columns * a.block_size * columns);
    for (strip, width) in strips(columns) {
        match (a.runs, b) {
            (Some(of), None) => with_lanes!(width, in_runs(of, a, strip, x, first, y)),
            _ => with_lanes!(width, of_strip(a, strip, x, b, first, y)),
        }
    }
}

fn in_runs<L: Lanes>(
    lanes: L,
    of: &Runs,
    a: Rows,
    strip: Strip,
    x: &[f64],
    first: usize,
    y: &mut [f64],
) {
    let others = |at: usize, y: &mut [f64]| of_strip(lanes, a, strip, x, None, at, y);
    runs::product(lanes, of, a, strip, x, first, y, &others);
}

multiversion! { fn of_strip[L: Lanes](lanes: L, a: Rows, strip: Strip, x: &[f64], b: Option<&[f64]>, first: usize, y: &mut [f64]) = of_strip_body }

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn of_strip_body<L: Lanes, S: Simd>(
    s: S,
    _: L,
    a: Rows,
    strip: Strip,
    x: &[f64],
    b: Option<&[f64]>,
    first: usize,
    y: &mut [f64],
) {
    match (a.block_size, b) {
        (1, None) => sized::<true, false, L, S>(s, a, strip, x, &[], first, y),
        (1, Some(b)) => sized::<true, true, L, S>(s, a, strip, x, b, first, y),
        (_, None) => sized::<false, false, L, S>(s, a, strip, x, &[], first, y),
        (_, Some(b)) => sized::<false, true, L, S>(s, a, strip, x, b, first, y),
    }
}

#[inline(always)]
fn sized<const SCALAR: bool, const MINUS: bool, L: Lanes, S: Simd>(
    s: S,
    a: Rows,
    strip: Strip,
    x: &[f64],
    b: &[f64],
    first: usize,
    y: &mut [f64],
) {
    let strip = strip.known::<L>();
    let size = if SCALAR { 1 } else { a.block_size };
    let rows = y.len() / (size * strip.columns);
    let far = strip.at == 0 && from_memory(x.len());
    for i in 0..rows {
        let entries = a.row_ptr[first + i] as usize..a.row_ptr[first + i + 1] as usize;
        let columns = &a.col_ind[entries.clone()];
        let values = &a.values[entries.start * size * size..entries.end * size * size];
        if far {
            prefetch_ahead(columns);
            prefetch_ahead(values);
            prefetch_ahead(&y[strip.rows(i * size, size)]);
        }
        for r in 0..size {
            let at = strip.of_row(i * size + r);
            let mut sum = if MINUS { L::load(s, &b[at..]) } else { L::zero(s) };
            // no closures: they would be compiled without the caller's instruction set
            let in_four = if SCALAR { in_four_sums(columns.len()) } else { 0 };
            if in_four > 0 {
                let mut sums = [L::zero(s); SUMS];
                for (columns, values) in
                    columns[..in_four].chunks_exact(SUMS).zip(values.chunks_exact(SUMS))
                {
                    for lane in 0..SUMS {
                        let block = &values[lane..=lane];
                        sums[lane] = plus_block::<MINUS, L, S>(
                            s,
                            block,
                            [1, 0],
                            strip,
                            x,
                            columns[lane],
                            sums[lane],
                        );
                    }
                }
                sum = joined::<L, S>(s, sum, sums);
            }
            let rest =
                columns[in_four..].iter().zip(values.chunks_exact(size * size).skip(in_four));
            for (&j, block) in rest {
                sum = plus_block::<MINUS, L, S>(s, block, [size, r], strip, x, j, sum);
            }
            L::store(s, sum, &mut y[at..]);
        }
    }
}

/// `sum` with row r of `block x_j` of the size added or subtracted.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn plus_block<const MINUS: bool, L: Lanes, S: Simd>(
    s: S,
    block: &[f64],
    [size, r]: [usize; 2],
    strip: Strip,
    x: &[f64],
    j: u32,
    mut sum: L::Of<S>,
) -> L::Of<S> {
    for c in 0..size {
        let from = strip.of_row(j as usize * size + c);
        // SAFETY: columns are below `a.columns`, by the invariant of the matrix, and `x` has as many rows.
        let x = L::load(s, unsafe { x.get_unchecked(from..from + L::COUNT) });
        let v = block[c * size + r];
        sum = L::madd(s, if MINUS { -v } else { v }, x, sum);
    }
    sum
}
