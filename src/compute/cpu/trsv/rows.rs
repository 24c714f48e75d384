//! Rows of triangular solves, for each way in which factors are stored.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use bytemuck::cast_slice;

use super::super::adaptive::{Adaptive, Kind, scales_first};
use super::super::block::BlockSize;
use super::super::entry::{Entry, scale};
use super::super::narrow::Float16;
use super::super::parts::Blocks;
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead};
use super::super::values::Scaled;
use crate::matrix::pattern::PatternView;

/// What solves read of the numbers of factors, row by row.
pub(super) trait Numbers: Copy + Send + Sync {
    /// Whether all rows are stored alike, so that several can be taken together.
    const ALIKE: bool;
    /// Row i of the forward solve, L having the pattern `lower`; r is `r_i`.
    fn forward<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        lower: PatternView,
        r: &[f64],
        z: Shared,
        i: usize,
    );
    /// Row i of the backward solve, U' having the pattern `upper`.
    fn backward<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        upper: PatternView,
        z: Shared,
        i: usize,
    );
    /// `M` rows of a supernode from row i on, where they are stored alike; r begins with `r_i`.
    fn forward_together<const M: usize, S: Simd>(
        self,
        _s: S,
        _lower: PatternView,
        _r: &[f64],
        _z: Shared,
        _i: usize,
    ) {
        unreachable!("rows are not alike");
    }
    /// The same of the backward solve.
    fn backward_together<const M: usize, S: Simd>(
        self,
        _s: S,
        _upper: PatternView,
        _z: Shared,
        _i: usize,
    ) {
        unreachable!("rows are not alike");
    }
}

/// Factors in one precision; without scales where they have none.
#[derive(Clone, Copy)]
pub(super) struct Uniform<'a, T> {
    pub(super) lower: &'a [T],
    pub(super) inverse_diagonal: &'a [T],
    pub(super) upper: &'a [T],
    pub(super) lower_scales: &'a [u16],
    pub(super) inverse_scales: &'a [u16],
    pub(super) upper_scales: &'a [u16],
}

impl<'a, T: Entry> Uniform<'a, T> {
    pub(super) fn plain(blocks: &'a Blocks<T>) -> Self {
        Self {
            lower: &blocks.lower,
            inverse_diagonal: &blocks.inverse_diagonal,
            upper: &blocks.upper,
            lower_scales: &[],
            inverse_scales: &[],
            upper_scales: &[],
        }
    }

    pub(super) fn scaled(of: &'a Scaled<T>) -> Self {
        Self {
            lower_scales: &of.scales.lower,
            inverse_scales: &of.scales.inverse_diagonal,
            upper_scales: &of.scales.upper,
            ..Self::plain(&of.blocks)
        }
    }
}

/// The scales of block row i, where entries have any.
#[inline(always)]
fn scales_of<T: Entry>(all: &[u16], b: usize, i: usize) -> &[u16] {
    if T::SCALED { &all[i * b..(i + 1) * b] } else { &[] }
}

impl<T: Entry> Numbers for Uniform<'_, T> {
    const ALIKE: bool = true;

    #[inline(always)]
    fn forward<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        lower: PatternView,
        r: &[f64],
        z: Shared,
        i: usize,
    ) {
        let (b, bb, range) = (size.b(), size.b() * size.b(), lower.range(i));
        let blocks = &self.lower[range.start * bb..range.end * bb];
        let scales = scales_of::<T>(self.lower_scales, b, i);
        let columns = lower.col_ind[range].iter();
        forward_row(s, size, Row { columns, blocks, scales }, r, z, i);
    }

    #[inline(always)]
    fn backward<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        upper: PatternView,
        z: Shared,
        i: usize,
    ) {
        let (b, bb) = (size.b(), size.b() * size.b());
        let (range, entries) = (upper.range(i), upper.entries());
        let inverse = &self.inverse_diagonal[i * bb..(i + 1) * bb];
        let inverse = (inverse, scales_of::<T>(self.inverse_scales, b, i));
        let blocks = &self.upper[(entries - range.end) * bb..(entries - range.start) * bb];
        let scales = scales_of::<T>(self.upper_scales, b, i);
        let columns = upper.col_ind[range].iter().rev();
        backward_row(s, size, Row { columns, blocks, scales }, inverse, z, i);
    }

    #[inline(always)]
    fn forward_together<const M: usize, S: Simd>(
        self,
        s: S,
        lower: PatternView,
        r: &[f64],
        z: Shared,
        i: usize,
    ) {
        forward_supernode::<M, T, S>(s, self, lower, r, z, i);
    }

    #[inline(always)]
    fn backward_together<const M: usize, S: Simd>(
        self,
        s: S,
        upper: PatternView,
        z: Shared,
        i: usize,
    ) {
        backward_supernode::<M, T, S>(s, self, upper, z, i);
    }
}

impl Numbers for &Adaptive {
    const ALIKE: bool = false;

    #[inline(always)]
    fn forward<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        lower: PatternView,
        r: &[f64],
        z: Shared,
        i: usize,
    ) {
        let (columns, (kind, words)) = (lower.row(i), self.lower.row(i));
        let numbers = columns.len() * size.b() * size.b();
        let columns = columns.iter();
        match kind {
            Kind::Half => {
                let (scales, of) = scales_first::<Float16>(words, size.b());
                let blocks = &of[..numbers];
                forward_row(s, size, Row { columns, blocks, scales }, r, z, i);
            }
            Kind::Single => {
                let blocks = &cast_slice::<u64, f32>(words)[..numbers];
                forward_row(s, size, Row { columns, blocks, scales: &[] }, r, z, i);
            }
            Kind::Double => {
                let blocks = &cast_slice::<u64, f64>(words)[..numbers];
                forward_row(s, size, Row { columns, blocks, scales: &[] }, r, z, i);
            }
        }
    }

    #[inline(always)]
    fn backward<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        upper: PatternView,
        z: Shared,
        i: usize,
    ) {
        let (columns, (kind, words)) = (upper.row(i), self.upper.row(i));
        let (b, bb) = (size.b(), size.b() * size.b());
        let numbers = (1 + columns.len()) * bb;
        let columns = columns.iter().rev();
        match kind {
            Kind::Half => {
                let (scales, of) = scales_first::<Float16>(words, 2 * b);
                let (inverse, blocks) = of[..numbers].split_at(bb);
                let (of_inverse, scales) = scales.split_at(b);
                let row = Row { columns, blocks, scales };
                backward_row(s, size, row, (inverse, of_inverse), z, i);
            }
            Kind::Single => {
                let (inverse, blocks) = cast_slice::<u64, f32>(words)[..numbers].split_at(bb);
                let row = Row { columns, blocks, scales: &[] };
                backward_row(s, size, row, (inverse, &[]), z, i);
            }
            Kind::Double => {
                let (inverse, blocks) = cast_slice::<u64, f64>(words)[..numbers].split_at(bb);
                let row = Row { columns, blocks, scales: &[] };
                backward_row(s, size, row, (inverse, &[]), z, i);
            }
        }
    }
}

/// Columns of a block row in the order in which a solve takes them, and what multiplies their unknowns: blocks, and
/// the scales of the scalar rows where entries are [scaled](Entry::SCALED).
struct Row<'a, C, T> {
    columns: C,
    blocks: &'a [T],
    scales: &'a [u16],
}

/// `y_i = r_i - sum_{j < i} L_ij y_j`, r being `r_i`. The nearest unknown, which is the last to be ready, has the
/// highest column and is used last.
#[inline(always)]
fn forward_row<'a, K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    row: Row<impl Iterator<Item = &'a u32>, T>,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    let y = subtracted(s, size, row, z, size.load(s, r));
    // SAFETY: this call alone writes segment i, and nobody reads it before the task ends.
    size.store(s, y, unsafe { z.write(i * size.b()..(i + 1) * size.b()) });
}

/// `z_i = D_i^-1 y_i - sum_{j > i} U'_ij z_j`, from the far end of the row to the near one.
#[inline(always)]
fn backward_row<'a, K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    row: Row<impl Iterator<Item = &'a u32>, T>,
    (inverse, scales): (&[T], &[u16]),
    z: Shared,
    i: usize,
) {
    // SAFETY: this call alone touches segment i.
    let y = unsafe { z.write(i * size.b()..(i + 1) * size.b()) };
    let mut start = size.gemv_add(s, inverse, y, size.zero(s));
    if T::SCALED {
        start = size.scale_add(s, scales, start, size.zero(s));
    }
    size.store(s, subtracted(s, size, row, z, start), y);
}

/// `start - sum_j B_j z_j`. Scaled sums are multiplied by their scales once, at the end.
#[inline(always)]
fn subtracted<'a, K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    row: Row<impl Iterator<Item = &'a u32>, T>,
    z: Shared,
    start: K::Segment<S>,
) -> K::Segment<S> {
    let (b, bb) = (size.b(), size.b() * size.b());
    prefetch_ahead(row.blocks);
    let mut acc = if T::SCALED { size.zero(s) } else { start };
    for (&j, block) in row.columns.zip(row.blocks.chunks_exact(bb)) {
        let j = j as usize;
        // SAFETY: j is solved: earlier in the loop over rows, or in a task that was waited for.
        acc = size.gemv_sub(s, block, unsafe { z.read(j * b..(j + 1) * b) }, acc);
    }
    if T::SCALED { size.scale_add(s, row.scales, acc, start) } else { acc }
}

/// `N` rows of a supernode, from row i on: an index and an unknown are read once for all of them. Each row has
/// the operations of [`forward_row`], in their order.
#[inline(always)]
fn forward_supernode<const N: usize, T: Entry, S: Simd>(
    s: S,
    f: Uniform<T>,
    lower: PatternView,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    let range = lower.range(i);
    let common = range.len();
    let rows: [_; N] = std::array::from_fn(|row| f.lower[lower.range(i + row)].split_at(common));
    for (row, _) in rows {
        prefetch_ahead(row);
    }
    let mut acc: [f64; N] = std::array::from_fn(|row| if T::SCALED { 0.0 } else { r[row] });
    for (at, &j) in lower.col_ind[range].iter().enumerate() {
        let j = j as usize;
        // SAFETY: j < i is solved: earlier in the loop, or in a task that was waited for.
        let x = unsafe { z.read(j..j + 1)[0] };
        for row in 0..N {
            // SAFETY: all first parts have `common` entries, as many as there are columns.
            let v = unsafe { rows[row].0.get_unchecked(at) }.wide();
            acc[row] = s.madd(-v, x, acc[row]);
        }
    }
    for row in 0..N {
        for before in 0..row {
            acc[row] = s.madd(-rows[row].1[before].wide(), acc[before], acc[row]);
        }
        if T::SCALED {
            acc[row] = s.madd(scale(f.lower_scales[i + row]), acc[row], r[row]);
        }
    }
    // SAFETY: this call alone writes these, and nobody reads them before it ends.
    unsafe { z.write(i..i + N) }.copy_from_slice(&acc);
}

/// As [`forward_supernode`], with the operations of [`backward_row`].
#[inline(always)]
fn backward_supernode<const N: usize, T: Entry, S: Simd>(
    s: S,
    f: Uniform<T>,
    upper: PatternView,
    z: Shared,
    i: usize,
) {
    let (range, entries) = (upper.range(i + N - 1), upper.entries());
    let common = range.len();
    let rows: [_; N] = std::array::from_fn(|row| {
        let range = upper.range(i + row);
        f.upper[entries - range.end..entries - range.start].split_at(common)
    });
    for (row, _) in rows {
        prefetch_ahead(row);
    }
    // SAFETY: this call alone touches these.
    let y = unsafe { z.write(i..i + N) };
    let mut start = [0.0; N];
    for row in 0..N {
        start[row] = s.madd(f.inverse_diagonal[i + row].wide(), y[row], 0.0);
        if T::SCALED {
            start[row] = s.madd(scale(f.inverse_scales[i + row]), start[row], 0.0);
        }
    }
    let mut acc = if T::SCALED { [0.0; N] } else { start };
    let columns = &upper.col_ind[range];
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
    for row in (0..N).rev() {
        for (at, behind) in (row + 1..N).rev().enumerate() {
            acc[row] = s.madd(-rows[row].1[at].wide(), acc[behind], acc[row]);
        }
        if T::SCALED {
            acc[row] = s.madd(scale(f.upper_scales[i + row]), acc[row], start[row]);
        }
    }
    y.copy_from_slice(&acc);
}
