//! Elimination that drops what is small (Saad, *ILUT: a dual threshold incomplete LU factorization*, 1994; *Iterative
//! Methods*, 2nd ed., section 10.4), by blocks in the Frobenius norm, on the host.
//!
//! What comes of it is a pattern and a matrix whose static factorisation on that pattern has the factors that were
//! found: on a pattern `L D U'` is unique. Where only the tolerance drops, that matrix is A. An entry of L that the count
//! `most` drops has changed its row before: what it did to entries that stay is subtracted from A. So every backend
//! makes and stores these factors as it does those of any other pattern.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::base::threads::Threads;
use crate::compute::cpu::block::{BlockSize, with_small_block_size};
use crate::compute::cpu::invert_block;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Backend, Breakdown, SingularBlock};
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, TooLarge};
use crate::symbolic::FillPattern;

/// What is dropped from a row. The diagonal block always stays.
#[derive(Clone, Copy)]
pub(super) struct Dropping<'a> {
    /// Blocks below this part of the norm of their row of A. An entry of L is looked at before it is divided by the pivot,
    /// so that the scale of a row makes no difference.
    pub(super) tau: f64,
    /// Blocks of L, and of U, that stay at most: the largest.
    pub(super) most: usize,
    /// Blocks outside of this pattern.
    pub(super) within: Option<&'a FillPattern>,
}

/// A pattern, and the matrix to factorise on it where that is not A with its shift.
pub(super) struct Thresholded {
    pub(super) pattern: FillPattern,
    pub(super) matrix: Option<Csr>,
}

/// A row in the making: the blocks of some columns, in the order in which they came, each column by column.
struct Row<K> {
    size: K,
    /// Place of each column, plus one; 0 where it has none.
    places: Vec<u32>,
    columns: Vec<u32>,
    blocks: Vec<f64>,
}

impl<K: BlockSize> Row<K> {
    fn new(count: usize, size: K) -> Self {
        Self { size, places: vec![0; count], columns: Vec::new(), blocks: Vec::new() }
    }

    #[inline(always)]
    fn range(&self, place: u32) -> Range<usize> {
        let bb = self.size.b() * self.size.b();
        (place as usize - 1) * bb..place as usize * bb
    }

    #[inline(always)]
    fn has(&self, column: u32) -> bool {
        self.places[column as usize] != 0
    }

    #[inline(always)]
    fn block(&self, column: u32) -> &[f64] {
        &self.blocks[self.range(self.places[column as usize])]
    }

    /// The block of a column, zeros if it is new; and whether it is.
    #[inline(always)]
    fn entry(&mut self, column: u32) -> (&mut [f64], bool) {
        let new = !self.has(column);
        if new {
            self.columns.push(column);
            self.places[column as usize] = self.columns.len() as u32;
            self.blocks.resize(self.blocks.len() + self.size.b() * self.size.b(), 0.0);
        }
        let range = self.range(self.places[column as usize]);
        (&mut self.blocks[range], new)
    }

    /// The blocks of block row i of `a`.
    fn load(&mut self, a: &Csr, i: usize) {
        let b = self.size.b();
        for r in 0..b {
            let (cols, values) = a.row(i * b + r);
            for (&j, &v) in cols.iter().zip(values) {
                let (block, c) = (j / b as u32, j as usize % b);
                self.entry(block).0[c * b + r] = v;
            }
        }
    }

    fn clear(&mut self) {
        self.columns.iter().for_each(|&j| self.places[j as usize] = 0);
        self.columns.clear();
        self.blocks.clear();
    }
}

/// Rows of blocks, one after the other.
#[derive(Default)]
struct Blocks {
    row_ptr: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Blocks {
    fn new() -> Self {
        Self { row_ptr: vec![0], ..Self::default() }
    }

    fn push(&mut self, column: u32, block: &[f64]) {
        self.columns.push(column);
        self.values.extend_from_slice(block);
    }

    fn end_row(&mut self) {
        self.row_ptr.push(self.columns.len() as u32);
    }

    fn row(&self, i: usize) -> Range<usize> {
        self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize
    }
}

#[inline(always)]
fn norm(block: &[f64]) -> f64 {
    block.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// `C -= A B`, blocks of b column by column.
#[inline(always)]
fn subtract_product(b: usize, a: &[f64], with: &[f64], c: &mut [f64]) {
    for (column, to) in with.chunks_exact(b).zip(c.chunks_exact_mut(b)) {
        for (&v, of_a) in column.iter().zip(a.chunks_exact(b)) {
            to.iter_mut().zip(of_a).for_each(|(to, a)| *to -= a * v);
        }
    }
}

/// Rows of blocks found so far.
struct Found {
    /// Columns of L.
    lower: Blocks,
    /// U'.
    upper: Blocks,
    /// Blocks of L times their pivots that were used and then dropped.
    dropped: Blocks,
}

/// Why elimination ended early.
enum Stopped {
    Singular(SingularBlock),
    TooLarge(TooLarge),
}

/// The rows of the factors, one after the other.
fn rows<K: BlockSize>(
    size: K,
    dropping: Dropping,
    a: &Csr,
    shift: f64,
    limit: usize,
) -> Result<Found, Stopped> {
    let b = size.b();
    let mut row = Row::new(a.rows() / b, size);
    let [lower, upper, dropped] = [(); 3].map(|()| Blocks::new());
    let mut found = Found { lower, upper, dropped };
    for i in 0..a.rows() / b {
        row.load(a, i);
        let tolerance = dropping.tau * norm(&row.blocks);
        let absent = !row.has(i as u32) && shift == 0.0;
        let (diagonal, _) = row.entry(i as u32);
        (0..b).for_each(|r| diagonal[r * b + r] += shift);
        let mut left = dropping.eliminate_row(i, tolerance, &mut row, &found.upper);
        for &(_, p) in &largest(&mut left, dropping.most) {
            found.dropped.push(p, row.block(p));
        }
        found.dropped.end_row();
        let mut inverse = row.block(i as u32).to_vec();
        if let Err((within, pivot)) = invert_block(&mut inverse, b) {
            return Err(Stopped::Singular(SingularBlock { row: i, within, pivot, absent }));
        }
        let right = row.columns.iter().filter(|&&j| j as usize > i);
        let right = right.map(|&j| (norm(row.block(j)), j));
        let stays = |(size, _): &(f64, u32)| size.is_nan() || *size >= tolerance;
        let mut right: Vec<_> = right.filter(stays).collect();
        largest(&mut right, dropping.most);
        found.lower.columns.extend(left.iter().map(|(_, p)| *p));
        found.lower.end_row();
        let mut product = vec![0.0; b * b];
        for &(_, j) in &right {
            product.fill(0.0);
            subtract_product(b, &inverse, row.block(j), &mut product);
            for v in &mut product {
                *v = -*v;
            }
            found.upper.push(j, &product);
        }
        found.upper.end_row();
        let entries = found.lower.columns.len() + found.upper.columns.len();
        if entries > limit {
            return Err(Stopped::TooLarge(TooLarge { row: i, entries }));
        }
        row.clear();
    }
    Ok(found)
}

impl Dropping<'_> {
    /// Eliminates in `a`, to whose diagonal `shift` is added; last, the most blocks that there is room for, the bytes of
    /// each and those free.
    ///
    /// # Errors
    /// A diagonal block that cannot be inverted, or too many blocks for the memory.
    pub(super) fn eliminate<K: Backend>(
        self,
        k: &K,
        a: &Csr,
        shift: f64,
        [limit, each, free]: [usize; 3],
    ) -> Result<Thresholded, SetupFailure> {
        let b = a.block_size();
        let found = k.on_host(|_| with_small_block_size!(b, rows(self, a, shift, limit)));
        let found = found.map_err(|why| match why {
            Stopped::Singular(block) => SetupFailure::Breakdown(Breakdown::from(block)),
            Stopped::TooLarge(at) => SetupFailure::TooLarge { at, needed: at.entries * each, free },
        })?;
        let pattern =
            |of: &Blocks| Pattern::new(of.row_ptr.clone(), of.columns.clone()).in_blocks(b);
        // a row without a diagonal block has no pivot, and would have ended this
        let no_diagonal = Vec::new();
        let [lower, upper] = [&found.lower, &found.upper].map(pattern);
        let pattern = FillPattern::new(lower, upper, no_diagonal);
        let matrix = if found.dropped.columns.is_empty() {
            None
        } else {
            let on_host =
                |threads| with_small_block_size!(b, matrix(&found, threads, a, shift, &pattern));
            Some(k.on_host(on_host)?)
        };
        Ok(Thresholded { pattern, matrix })
    }

    /// Subtracts what the rows above bring into row i; the blocks of L that did, with their norms, before they are
    /// divided by their pivots.
    fn eliminate_row<K: BlockSize>(
        self,
        i: usize,
        tolerance: f64,
        row: &mut Row<K>,
        upper: &Blocks,
    ) -> Vec<(f64, u32)> {
        let (b, bb) = (row.size.b(), row.size.b() * row.size.b());
        let left = row.columns.iter().filter(|&&j| (j as usize) < i);
        let mut next: BinaryHeap<Reverse<u32>> = left.map(|&j| Reverse(j)).collect();
        let (mut used, mut multiplier) = (Vec::new(), vec![0.0; bb]);
        while let Some(Reverse(p)) = next.pop() {
            multiplier.copy_from_slice(row.block(p));
            let size = norm(&multiplier);
            if size < tolerance {
                continue;
            }
            used.push((size, p));
            for at in upper.row(p as usize) {
                let j = upper.columns[at];
                if !row.has(j) && !self.admits(i, j) {
                    continue;
                }
                let (target, new) = row.entry(j);
                subtract_product(b, &multiplier, &upper.values[at * bb..(at + 1) * bb], target);
                if new && (j as usize) < i {
                    next.push(Reverse(j));
                }
            }
        }
        used
    }

    /// Whether block (i, j) may be filled.
    fn admits(self, i: usize, j: u32) -> bool {
        let Some(pattern) = self.within else { return true };
        let of = if (j as usize) < i { pattern.lower.row(i) } else { pattern.upper.row(i) };
        of.binary_search(&j).is_ok()
    }
}

/// Leaves the `most` largest of a row, ascending by columns, and returns the others, the largest first.
fn largest(row: &mut Vec<(f64, u32)>, most: usize) -> Vec<(f64, u32)> {
    let by_size = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let mut others = Vec::new();
    if row.len() > most {
        row.select_nth_unstable_by(most, by_size);
        others = row.split_off(most);
        others.sort_unstable_by(by_size);
    }
    row.sort_unstable_by_key(|(_, j)| *j);
    others
}

/// The matrix on the pattern that has these factors: A and the shift, less what dropped blocks of L did to what
/// stays.
fn matrix<K: BlockSize>(
    size: K,
    found: &Found,
    threads: Threads,
    a: &Csr,
    shift: f64,
    pattern: &FillPattern,
) -> Result<Csr, SetupFailure> {
    // the row that is held, and two of blocks
    let row = || Row::new(pattern.rows(), size);
    let blocks = || (usize::MAX, [row(), row()]);
    a.by_rows_like(threads, blocks, |(held, [row, of_a]), at, to| {
        let (b, bb) = (size.b(), size.b() * size.b());
        let (i, r) = (at / b, at % b);
        let stays = pattern.lower.row(i).iter().copied();
        let stays = stays.chain([i as u32]).chain(pattern.upper.row(i).iter().copied());
        if std::mem::replace(held, i) != i {
            row.clear();
            of_a.clear();
            of_a.load(a, i);
            for j in stays.clone() {
                let (block, _) = row.entry(j);
                if of_a.has(j) {
                    block.copy_from_slice(of_a.block(j));
                }
            }
            let (diagonal, _) = row.entry(i as u32);
            (0..b).for_each(|r| diagonal[r * b + r] += shift);
            for p in found.dropped.row(i) {
                let multiplier = &found.dropped.values[p * bb..(p + 1) * bb];
                for at in found.upper.row(found.dropped.columns[p] as usize) {
                    let j = found.upper.columns[at];
                    if row.has(j) {
                        let with = &found.upper.values[at * bb..(at + 1) * bb];
                        subtract_product(b, multiplier, with, row.entry(j).0);
                    }
                }
            }
        }
        for j in stays {
            let block = row.block(j);
            (0..b).for_each(|c| to.push(j * b as u32 + c as u32, block[c * b + r]));
        }
        Ok(())
    })
}
