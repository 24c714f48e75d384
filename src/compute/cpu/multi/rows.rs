//! Products with matrices in CSR and BSR.

#![allow(
    unsafe_code,
    reason = "columns that the matrix vouches for, instruction sets chosen at run time"
)]

use super::super::multiversion::multiversion;
use super::super::simd::prefetch_ahead;
use super::super::spmv::{ROWS_PER_TASK, Rows};
use super::super::stream::{LANES, Stream, fence};
use super::lanes::{Lanes, Strip, from_memory, strips, with_lanes};
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
    let of_row = a.block_size * columns;
    assert_eq!(y.len(), (a.row_ptr.len() - 1) * of_row);
    assert_eq!(x.len(), a.columns * of_row);
    assert!(b.is_none_or(|b| b.len() == y.len()));
    for (strip, width) in strips(columns) {
        let rows = |first: usize, y: &mut [f64]| {
            let b = b.map(|b| &b[first * of_row..][..y.len()]);
            with_lanes!(width, some_rows(a, strip, x, b, first, y));
        };
        if parallel {
            let task = |task, y: &mut [f64]| rows(task * ROWS_PER_TASK, y);
            Threads::Pool.chunks(y, ROWS_PER_TASK * of_row, 1, task);
        } else {
            rows(0, y);
        }
    }
}

multiversion! { fn some_rows[L: Lanes](lanes: L, a: Rows, strip: Strip, x: &[f64], b: Option<&[f64]>, first: usize, y: &mut [f64]) = some_rows_body }

/// Block rows from `first` on, of which `y` and `b` begin with the first.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn some_rows_body<L: Lanes, S: Stream>(
    s: S,
    _: L,
    a: Rows,
    strip: Strip,
    x: &[f64],
    b: Option<&[f64]>,
    first: usize,
    y: &mut [f64],
) {
    let streams = L::COUNT == LANES
        && strip.columns == LANES
        && (a.row_ptr.len() - 1) * LANES * size_of::<f64>() >= STREAMED
        && y.as_ptr().addr().is_multiple_of(LANES * size_of::<f64>());
    match (a.block_size, b, streams) {
        (1, None, true) => sized::<true, false, true, L, S>(s, a, strip, x, &[], first, y),
        (1, None, false) => sized::<true, false, false, L, S>(s, a, strip, x, &[], first, y),
        (1, Some(b), _) => sized::<true, true, false, L, S>(s, a, strip, x, b, first, y),
        (_, None, _) => sized::<false, false, false, L, S>(s, a, strip, x, &[], first, y),
        (_, Some(b), _) => sized::<false, true, false, L, S>(s, a, strip, x, b, first, y),
    }
}

#[inline(always)]
fn sized<const SCALAR: bool, const MINUS: bool, const STREAM: bool, L: Lanes, S: Stream>(
    s: S,
    a: Rows,
    strip: Strip,
    x: &[f64],
    b: &[f64],
    first: usize,
    y: &mut [f64],
) {
    let strip = if STREAM { Strip { at: 0, columns: LANES } } else { strip };
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
            if !STREAM {
                prefetch_ahead(&y[strip.rows(i * size, size)]);
            }
        }
        for r in 0..size {
            let at = strip.of_row(i * size + r);
            let mut sum = if MINUS { L::load(s, &b[at..]) } else { L::zero(s) };
            for (&j, block) in columns.iter().zip(values.chunks_exact(size * size)) {
                for c in 0..size {
                    let from = strip.of_row(j as usize * size + c);
                    // SAFETY: columns are below `a.columns`, by the invariant of the matrix, and `x` has as many
                    // rows.
                    let x = L::load(s, unsafe { x.get_unchecked(from..from + L::COUNT) });
                    let v = block[c * size + r];
                    sum = L::madd(s, if MINUS { -v } else { v }, x, sum);
                }
            }
            if STREAM {
                let mut line = [0.0; LANES];
                L::store(s, sum, &mut line);
                s.stream(&line, y[at..].first_chunk_mut().expect("a row of the strip"));
            } else {
                L::store(s, sum, &mut y[at..]);
            }
        }
    }
    if STREAM {
        fence();
    }
}
