//! Products with Bdia (Al-Mouhamed and Khan 2017, section 6): no index is read for a block.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

use super::block::{BlockSize, with_block_size};
use super::multiversion::multiversion;
use super::simd::Simd;
use crate::base::choices::MAX_BLOCK_SIZE;
use crate::matrix::Bdia;

/// `y = A x` for the rows from `first` on, which begin a cell or lie behind the cells.
pub(super) fn rows(a: &Bdia, x: &[f64], first: usize, y: &mut [f64]) {
    let (hepta, wells) = (a.hepta(), a.wells());
    let scalars = hepta.cells * hepta.block_size;
    let of_cells = scalars.saturating_sub(first).min(y.len());
    let (cells, behind) = y.split_at_mut(of_cells);
    with_block_size!(hepta.block_size, of_size(a, x, first / hepta.block_size, cells));
    for w in wells.in_rows(first..first + of_cells) {
        let run = wells.run(w);
        let column = &wells.column(w)[first.saturating_sub(run.start)..];
        let to = &mut cells[run.start.saturating_sub(first)..];
        to.iter_mut().zip(column).for_each(|(y, v)| *y += v * x[scalars + w]);
    }
    for (y, w) in behind.iter_mut().zip((first + of_cells).saturating_sub(scalars)..) {
        let row = wells.row(w).iter().zip(&x[wells.run(w)]);
        *y = wells.diagonal()[w] * x[scalars + w] + row.map(|(v, x)| v * x).sum::<f64>();
    }
}

fn of_size<K: BlockSize>(size: K, a: &Bdia, x: &[f64], first: usize, y: &mut [f64]) {
    let hepta = a.hepta();
    let end = first + y.len() / size.b();
    // cells all of whose blocks lie in H
    let reach = hepta.offsets.last().map_or(0, |&o| o as usize);
    let last = hepta.cells.saturating_sub(reach + usize::from(hepta.half_shift));
    let from = reach.clamp(first, end);
    let to = last.clamp(from, end);
    for (cell, y) in (first..end).zip(y.chunks_exact_mut(size.b())) {
        if !(from..to).contains(&cell) {
            edge(size, a, x, cell, y);
        }
    }
    if from < to {
        let y = &mut y[(from - first) * size.b()..(to - first) * size.b()];
        inner(size, a, x, from, y);
    }
}

multiversion! { fn inner[K: BlockSize](size: K, a: &Bdia, x: &[f64], first: usize, y: &mut [f64]) = inner_body }
multiversion! { fn edge[K: BlockSize](size: K, a: &Bdia, x: &[f64], cell: usize, y: &mut [f64]) = edge_body }

/// Cells with seven blocks are unrolled; those of lines and planes have three and five.
#[inline(always)]
fn inner_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    a: &Bdia,
    x: &[f64],
    first: usize,
    y: &mut [f64],
) {
    match a.hepta().offsets.len() {
        7 => inner_of::<7, K, S>(s, size, a, x, first, y),
        5 => inner_of::<5, K, S>(s, size, a, x, first, y),
        3 => inner_of::<3, K, S>(s, size, a, x, first, y),
        _ => inner_of::<1, K, S>(s, size, a, x, first, y),
    }
}

#[inline(always)]
fn inner_of<const N: usize, K: BlockSize, S: Simd>(
    s: S,
    size: K,
    a: &Bdia,
    x: &[f64],
    first: usize,
    y: &mut [f64],
) {
    let (b, bb, hepta) = (size.b(), size.b() * size.b(), a.hepta());
    let offsets: [isize; N] = std::array::from_fn(|at| hepta.offsets[at] as isize * b as isize);
    let blocks = a.values()[first * N * bb..].chunks_exact(N * bb);
    for ((cell, blocks), y) in (first..).zip(blocks).zip(y.chunks_exact_mut(b)) {
        let shift = if hepta.is_shifted(cell) { b / 2 } else { 0 };
        let mut sum = size.zero(s);
        for at in 0..N {
            let column = (cell * b + shift).wrapping_add_signed(offsets[at]);
            // SAFETY: an inner cell's blocks lie in H, as its caller chose it, and x is as long.
            let x = unsafe { x.get_unchecked(column..column + b) };
            sum = size.gemv_add(s, &blocks[at * bb..(at + 1) * bb], x, sum);
        }
        size.store(s, sum, y);
    }
}

/// A cell whose blocks may lie outside H, where they are zero.
#[inline(always)]
fn edge_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    a: &Bdia,
    x: &[f64],
    cell: usize,
    y: &mut [f64],
) {
    let (b, bb, hepta) = (size.b(), size.b() * size.b(), a.hepta());
    let (n, scalars) = (hepta.offsets.len(), (hepta.cells * b) as i64);
    let mut sum = size.zero(s);
    for at in 0..n {
        let column = hepta.column(cell, at);
        if column <= -(b as i64) || column >= scalars {
            continue;
        }
        let mut segment = [0.0; MAX_BLOCK_SIZE];
        for (c, v) in segment[..b].iter_mut().enumerate() {
            let j = column + c as i64;
            if (0..scalars).contains(&j) {
                *v = x[j as usize];
            }
        }
        let block = &a.values()[(cell * n + at) * bb..(cell * n + at + 1) * bb];
        sum = size.gemv_add(s, block, &segment[..b], sum);
    }
    size.store(s, sum, y);
}
