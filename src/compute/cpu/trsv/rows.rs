//! Rows of triangular solves, for each way in which factors are stored.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use bytemuck::cast_slice;

use super::super::adaptive::{Adaptive, Kind, scales_first};
use super::super::block::BlockSize;
use super::super::entry::Entry;
use super::super::narrow::Float16;
use super::super::row_sums::{far_in_four_sums, four_sums};
use super::super::shared::Shared;
use super::super::simd::{Simd, prefetch_ahead};
use super::supernodes;
use super::uniform::Uniform;
use crate::matrix::pattern::PatternView;

/// What solves read of the numbers of factors, row by row.
pub(super) trait Numbers: Copy + Send + Sync {
    /// Whether all rows are stored alike, so that several can be taken together.
    const ALIKE: bool;
    /// `D_i^-1 r_i`, r being `r_i`.
    fn inverse_times<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        i: usize,
        r: &[f64],
    ) -> K::Segment<S>;
    /// Row i of the forward solve, L having the pattern `lower`; r is `r_i`. Rows that have
    /// [four sums](far_in_four_sums) need `LONG`.
    fn forward<const LONG: bool, K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        lower: PatternView,
        r: &[f64],
        z: Shared,
        i: usize,
    );
    /// Row i of the backward solve, U' having the pattern `upper`.
    fn backward<const LONG: bool, K: BlockSize, S: Simd>(
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

impl<T: Entry> Uniform<'_, T> {
    /// The inverse diagonal block of row i, and its scales.
    #[inline(always)]
    fn inverse(&self, b: usize, i: usize) -> (&[T], &[u16]) {
        let block = &self.inverse_diagonal[i * b * b..(i + 1) * b * b];
        (block, scales_of::<T>(self.inverse_scales, b, i))
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
    fn inverse_times<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        i: usize,
        r: &[f64],
    ) -> K::Segment<S> {
        times(s, size, self.inverse(size.b(), i), r)
    }

    #[inline(always)]
    fn forward<const LONG: bool, K: BlockSize, S: Simd>(
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
        let columns = &lower.col_ind[range];
        forward_row::<LONG, K, _, S>(s, size, Row { columns, blocks, scales }, r, z, i);
    }

    #[inline(always)]
    fn backward<const LONG: bool, K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        upper: PatternView,
        z: Shared,
        i: usize,
    ) {
        let (b, bb) = (size.b(), size.b() * size.b());
        let (range, entries) = (upper.range(i), upper.entries());
        let inverse = self.inverse(b, i);
        let blocks = &self.upper[(entries - range.end) * bb..(entries - range.start) * bb];
        let scales = scales_of::<T>(self.upper_scales, b, i);
        let columns = &upper.col_ind[range];
        backward_row::<LONG, K, _, S>(s, size, Row { columns, blocks, scales }, inverse, z, i);
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
        supernodes::forward::<M, T, S>(s, self, lower, r, z, i);
    }

    #[inline(always)]
    fn backward_together<const M: usize, S: Simd>(
        self,
        s: S,
        upper: PatternView,
        z: Shared,
        i: usize,
    ) {
        supernodes::backward::<M, T, S>(s, self, upper, z, i);
    }
}

impl Numbers for &Adaptive {
    const ALIKE: bool = false;

    #[inline(always)]
    fn inverse_times<K: BlockSize, S: Simd>(
        self,
        s: S,
        size: K,
        i: usize,
        r: &[f64],
    ) -> K::Segment<S> {
        let (kind, words) = self.upper.row(i);
        let (b, bb) = (size.b(), size.b() * size.b());
        match kind {
            Kind::Half => {
                let (scales, of) = scales_first::<Float16>(words, 2 * b);
                times(s, size, (&of[..bb], &scales[..b]), r)
            }
            Kind::Single => times(s, size, (&cast_slice::<u64, f32>(words)[..bb], &[]), r),
            Kind::Double => times(s, size, (&cast_slice::<u64, f64>(words)[..bb], &[]), r),
        }
    }

    #[inline(always)]
    fn forward<const LONG: bool, K: BlockSize, S: Simd>(
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
        match kind {
            Kind::Half => {
                let (scales, of) = scales_first::<Float16>(words, size.b());
                let blocks = &of[..numbers];
                forward_row::<LONG, K, _, S>(s, size, Row { columns, blocks, scales }, r, z, i);
            }
            Kind::Single => {
                let blocks = &cast_slice::<u64, f32>(words)[..numbers];
                forward_row::<LONG, K, _, S>(
                    s,
                    size,
                    Row { columns, blocks, scales: &[] },
                    r,
                    z,
                    i,
                );
            }
            Kind::Double => {
                let blocks = &cast_slice::<u64, f64>(words)[..numbers];
                forward_row::<LONG, K, _, S>(
                    s,
                    size,
                    Row { columns, blocks, scales: &[] },
                    r,
                    z,
                    i,
                );
            }
        }
    }

    #[inline(always)]
    fn backward<const LONG: bool, K: BlockSize, S: Simd>(
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
        match kind {
            Kind::Half => {
                let (scales, of) = scales_first::<Float16>(words, 2 * b);
                let (inverse, blocks) = of[..numbers].split_at(bb);
                let (of_inverse, scales) = scales.split_at(b);
                let row = Row { columns, blocks, scales };
                backward_row::<LONG, K, _, S>(s, size, row, (inverse, of_inverse), z, i);
            }
            Kind::Single => {
                let (inverse, blocks) = cast_slice::<u64, f32>(words)[..numbers].split_at(bb);
                let row = Row { columns, blocks, scales: &[] };
                backward_row::<LONG, K, _, S>(s, size, row, (inverse, &[]), z, i);
            }
            Kind::Double => {
                let (inverse, blocks) = cast_slice::<u64, f64>(words)[..numbers].split_at(bb);
                let row = Row { columns, blocks, scales: &[] };
                backward_row::<LONG, K, _, S>(s, size, row, (inverse, &[]), z, i);
            }
        }
    }
}

/// Columns of a block row, ascending, and what multiplies their unknowns, in the order in which a solve takes them:
/// blocks, and the scales of the scalar rows where entries are [scaled](Entry::SCALED).
#[derive(Clone, Copy)]
struct Row<'a, T> {
    columns: &'a [u32],
    blocks: &'a [T],
    scales: &'a [u16],
}

/// `y_i = r_i - sum_{j < i} L_ij y_j`, r being `r_i`. The nearest unknown, which is the last to be ready, has the
/// highest column and is used last.
#[inline(always)]
fn forward_row<const LONG: bool, K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    row: Row<T>,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    let y = subtracted::<LONG, false, K, T, S>(s, size, row, z, size.load(s, r));
    // SAFETY: this call alone writes segment i, and nobody reads it before the task ends.
    size.store(s, y, unsafe { z.write(i * size.b()..(i + 1) * size.b()) });
}

/// `z_i = D_i^-1 y_i - sum_{j > i} U'_ij z_j`, from the far end of the row to the near one.
#[inline(always)]
fn backward_row<const LONG: bool, K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    row: Row<T>,
    inverse: (&[T], &[u16]),
    z: Shared,
    i: usize,
) {
    // SAFETY: this call alone touches segment i.
    let y = unsafe { z.write(i * size.b()..(i + 1) * size.b()) };
    let start = times(s, size, inverse, y);
    size.store(s, subtracted::<LONG, true, K, T, S>(s, size, row, z, start), y);
}

/// The product of a block, with the scales of its rows where its entries have any, and a segment.
#[inline(always)]
fn times<K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    (block, scales): (&[T], &[u16]),
    x: &[f64],
) -> K::Segment<S> {
    let product = size.gemv_add(s, block, x, size.zero(s));
    if T::SCALED { size.scale_add(s, scales, product, size.zero(s)) } else { product }
}

/// `start - sum_j B_j z_j`, of which a backward solve takes the columns from the last to the first. Scaled sums are
/// multiplied by their scales once, at the end.
#[inline(always)]
fn subtracted<const LONG: bool, const BACKWARD: bool, K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    row: Row<T>,
    z: Shared,
    start: K::Segment<S>,
) -> K::Segment<S> {
    prefetch_ahead(row.blocks);
    let acc = if T::SCALED { size.zero(s) } else { start };
    let far = if LONG { far_of(size.b(), row.columns.len()) } else { 0 };
    debug_assert_eq!(far, far_of(size.b(), row.columns.len()));
    let acc = if far == 0 {
        in_one_sum::<BACKWARD, K, T, S>(s, size, row.columns, row.blocks, z, acc)
    } else {
        let (columns, rest) = if BACKWARD {
            let (rest, columns) = row.columns.split_at(row.columns.len() - far);
            (columns, rest)
        } else {
            row.columns.split_at(far)
        };
        let x = |at: usize| {
            // SAFETY: asked for places below `far`. The column is solved, as below.
            unsafe {
                let j = *columns.get_unchecked(if BACKWARD { far - 1 - at } else { at }) as usize;
                z.read(j..j + 1)[0]
            }
        };
        let mut sum = [0.0];
        size.store(s, acc, &mut sum);
        // SAFETY: there is an entry for each column.
        let [of_far] = unsafe { four_sums::<1, true, T, S>(s, [row.blocks], [far], x) };
        let acc = size.load(s, &[sum[0] + of_far]);
        in_one_sum::<BACKWARD, K, T, S>(s, size, rest, &row.blocks[far..], z, acc)
    };
    if T::SCALED { size.scale_add(s, row.scales, acc, start) } else { acc }
}

/// Entries of a row of so many blocks that have four sums: none of larger blocks, whose rows are added several at once.
#[inline(always)]
pub(super) fn far_of(block_size: usize, blocks: usize) -> usize {
    if block_size == 1 { far_in_four_sums(blocks) } else { 0 }
}

/// `acc - sum_j B_j z_j` in one sum.
#[inline(always)]
fn in_one_sum<const BACKWARD: bool, K: BlockSize, T: Entry, S: Simd>(
    s: S,
    size: K,
    columns: &[u32],
    blocks: &[T],
    z: Shared,
    mut acc: K::Segment<S>,
) -> K::Segment<S> {
    let (b, blocks) = (size.b(), blocks.chunks_exact(size.b() * size.b()));
    // SAFETY: these are solved: earlier in the loop over rows, or in a task that was waited for.
    let read = |j: u32| unsafe { z.read(j as usize * b..(j as usize + 1) * b) };
    if BACKWARD {
        for (&j, block) in columns.iter().rev().zip(blocks) {
            acc = size.gemv_sub(s, block, read(j), acc);
        }
    } else {
        for (&j, block) in columns.iter().zip(blocks) {
            acc = size.gemv_sub(s, block, read(j), acc);
        }
    }
    acc
}
