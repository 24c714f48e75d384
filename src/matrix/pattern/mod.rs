//! Patterns of matrices: entries without values.
//!
//! Block matrices are abstracted to their point pattern (Yang et al., section 2.3): one entry per
//! nonzero block.

mod lazy;
mod permuted;
pub(crate) mod repeats;
pub(crate) mod rows;

use std::borrow::Cow;
use std::ops::Range;

use super::{Csr, CsrPattern};
use crate::base::threads::Threads;
pub use lazy::Lazy;
pub(crate) use permuted::inverse_on;
pub use permuted::{inverse, permuted};

/// The filled pattern would hold more entries than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Row that was reached, at the fill level that was being found.
    pub row: usize,
    /// Entries of L and U found until then.
    pub entries: usize,
}

/// A square sparsity pattern by block rows; columns increase within a row.
#[derive(Clone, Debug)]
pub struct Pattern<'a> {
    /// Start of each row in `col_ind`; one more entry than rows.
    pub row_ptr: Cow<'a, [u32]>,
    /// Column of each entry.
    pub col_ind: Cow<'a, [u32]>,
    block_size: usize,
    /// 1 for each row that is known to repeat the row before it; empty where nothing is known.
    repeats: Vec<u8>,
}

impl PartialEq for Pattern<'_> {
    fn eq(&self, other: &Self) -> bool {
        // what is known of the rows follows from them
        (&self.row_ptr, &self.col_ind, self.block_size)
            == (&other.row_ptr, &other.col_ind, other.block_size)
    }
}

impl Eq for Pattern<'_> {}

/// A pattern as plain slices, for loops that cannot afford to look through an owner.
#[derive(Clone, Copy, Debug)]
pub struct PatternView<'a> {
    /// Start of each row in `col_ind`; one more entry than rows.
    pub row_ptr: &'a [u32],
    /// Column of each entry.
    pub col_ind: &'a [u32],
    /// As [`Pattern`] has them.
    repeats: &'a [u8],
}

impl<'a> PatternView<'a> {
    /// The start of each row, and one past the end, and the columns.
    pub const fn new(row_ptr: &'a [u32], col_ind: &'a [u32]) -> Self {
        Self { row_ptr, col_ind, repeats: &[] }
    }

    /// How many of `rows`, from their first on, repeat the row before them: those that are known to, or where nothing
    /// is known those that are seen to.
    #[inline]
    pub(crate) fn repeating(self, rows: std::ops::Range<usize>) -> usize {
        if self.repeats.is_empty() {
            return repeats::repeating(self, rows);
        }
        self.repeats.get(rows).map_or(0, |known| repeats::run(known, 1))
    }

    /// `rows` in runs: rows that repeat the first of them, each moved by one column from row to row.
    pub(crate) fn runs(
        self,
        rows: std::ops::Range<usize>,
    ) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut next = rows.start;
        std::iter::from_fn(move || {
            let first = next;
            (first < rows.end).then(|| {
                next += 1 + self.repeating(first + 1..rows.end);
                first..next
            })
        })
    }

    /// Entries of row `i`.
    #[inline]
    pub fn range(self, i: usize) -> std::ops::Range<usize> {
        self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize
    }

    /// Columns of row `i`.
    #[inline]
    pub fn row(self, i: usize) -> &'a [u32] {
        &self.col_ind[self.range(i)]
    }

    /// Number of entries.
    #[inline]
    pub fn entries(self) -> usize {
        self.col_ind.len()
    }
}

impl<'a> Pattern<'a> {
    /// A pattern of single unknowns: the start of each row, and one past the end, and the columns.
    pub fn new(row_ptr: impl Into<Cow<'a, [u32]>>, col_ind: impl Into<Cow<'a, [u32]>>) -> Self {
        let (row_ptr, col_ind) = (row_ptr.into(), col_ind.into());
        Self { row_ptr, col_ind, block_size: 1, repeats: Vec::new() }
    }

    /// The same rows and columns, of blocks of `block_size` unknowns.
    #[must_use]
    pub fn in_blocks(self, block_size: usize) -> Self {
        Self { block_size, ..self }
    }

    /// The same, of which is known that rows with a 1 repeat the row before them.
    #[must_use]
    pub(crate) fn repeating(self, repeats: Vec<u8>) -> Self {
        Self { repeats, ..self }
    }
}

impl Pattern<'_> {
    /// Unknowns per block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// How many of `rows`, from their first on, are known to have the columns of the row before them, each
    /// increased by 1.
    #[inline]
    pub(crate) fn repeated(&self, rows: std::ops::Range<usize>) -> usize {
        self.repeats.get(rows).map_or(0, |repeats| repeats::run(repeats, 1))
    }

    /// 1 for each row that is known to repeat the row before it; empty where nothing is known.
    pub(crate) fn repeats(&self) -> &[u8] {
        &self.repeats
    }

    /// The pattern as plain slices.
    pub fn view(&self) -> PatternView<'_> {
        let (row_ptr, col_ind) = (&*self.row_ptr, &*self.col_ind);
        PatternView { row_ptr, col_ind, repeats: &self.repeats }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_ptr.len() - 1
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.col_ind.len()
    }

    /// Columns of row `i`.
    pub fn row(&self, i: usize) -> &[u32] {
        self.view().row(i)
    }

    /// Row of entry `at`.
    pub(crate) fn row_of(&self, at: usize) -> usize {
        self.row_ptr.partition_point(|&start| start as usize <= at) - 1
    }

    /// The pattern of the transpose.
    #[must_use]
    pub fn transposed(&self) -> Pattern<'static> {
        let rows = self.rows();
        let mut row_ptr = vec![0_u32; rows + 1];
        for &j in &*self.col_ind {
            row_ptr[j as usize + 1] += 1;
        }
        for j in 0..rows {
            row_ptr[j + 1] += row_ptr[j];
        }
        let mut next = row_ptr.clone();
        let mut col_ind = vec![0; self.entries()];
        for i in 0..rows {
            for &j in self.row(i) {
                col_ind[next[j as usize] as usize] = i as u32;
                next[j as usize] += 1;
            }
        }
        Pattern::new(row_ptr, col_ind).in_blocks(self.block_size)
    }

    /// The same with arrays of its own.
    #[must_use]
    pub fn into_owned(self) -> Pattern<'static> {
        let (row_ptr, col_ind) = (self.row_ptr.into_owned(), self.col_ind.into_owned());
        Pattern::new(row_ptr, col_ind).in_blocks(self.block_size).repeating(self.repeats)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.row_ptr.len() + self.col_ind.len())
    }
}

/// Point pattern of the blocks of `a`: one entry per block that stores at least one scalar (Yang et
/// al., section 2.3). The matrix must be square. A last block that is not full is padded; padding rows
/// count as stored diagonals.
pub fn block_pattern(a: &Csr) -> Pattern<'_> {
    block_pattern_on(Threads::One, a)
}

/// The pattern of the entries of `a`, whatever its blocks.
pub(crate) fn scalar_pattern(a: &Csr) -> Pattern<'_> {
    Pattern::new(a.row_ptr(), a.col_ind())
}

/// [`block_pattern`] on one thread or on those of the current pool; `a` keeps it.
pub(crate) fn block_pattern_on(threads: Threads, a: &Csr) -> Pattern<'_> {
    let blocks = blocks_of(threads, a);
    Pattern::new(blocks.row_ptr(), blocks.col_ind()).in_blocks(a.block_size())
}

/// Where the blocks of `a` are, which keeps that.
pub(super) fn blocks_of(threads: Threads, a: &Csr) -> &CsrPattern {
    if a.block_size() == 1 {
        return a.pattern();
    }
    a.blocks(|| {
        let found = find_blocks(threads, a);
        CsrPattern::new(found.row_ptr.into_owned(), found.col_ind.into_owned())
    })
}

/// The pattern of the blocks, row by row.
fn find_blocks(threads: Threads, a: &Csr) -> Pattern<'static> {
    let b = a.block_size();
    let rows = a.rows().div_ceil(b);
    // an entry of A or of the padding in every block
    let task = rows::Task { rows, block_size: b, threads, before: 0, limit: a.nnz() + 1 };
    let found = rows::find(
        task,
        || vec![false; rows],
        |seen, i, [out]| {
            block_row(a, b, i, seen, out);
        },
    );
    let [pattern] = found.expect("at most as many blocks as entries and rows");
    pattern
}

/// Entries of [`block_pattern`], which need not be listed for that.
pub(crate) fn count_blocks(threads: Threads, a: &Csr) -> usize {
    /// Block rows of a task: the marks of each cost a pass over as many blocks as there are rows.
    const LEAST: usize = 1 << 14;
    let b = a.block_size();
    let (rows, divisor) = (a.rows().div_ceil(b), b as u32);
    let of_part = |part: Range<usize>| {
        // the last block row, from 1, that has a block in the column
        let mut seen = vec![0_u32; rows.max(a.cols().div_ceil(b))];
        let mut count = 0;
        for i in part {
            let mark = i as u32 + 1;
            let mut see = |block: usize| {
                count += usize::from(seen[block] != mark);
                seen[block] = mark;
            };
            for r in i * b..((i + 1) * b).min(a.rows()) {
                a.row(r).0.iter().for_each(|&j| see((j / divisor) as usize));
            }
            if (i + 1) * b > a.rows() {
                see(i);
            }
        }
        count
    };
    match threads {
        Threads::One => of_part(0..rows),
        Threads::Pool => {
            let each = rows.div_ceil(rayon::current_num_threads()).max(LEAST);
            let part = |part: usize| of_part(part * each..((part + 1) * each).min(rows));
            threads.map(rows.div_ceil(each), 1, part).into_iter().sum()
        }
    }
}

/// Appends the block columns of block row i; `seen` is false everywhere before and after.
fn block_row(a: &Csr, b: usize, i: usize, seen: &mut [bool], out: &mut Vec<u32>) {
    if let Some((columns, _)) = a.whole_blocks(i, b) {
        out.extend(columns.chunks_exact(b).map(|block| block[0] / b as u32));
        return;
    }
    let start = out.len();
    let mut add = |block: usize| {
        if !std::mem::replace(&mut seen[block], true) {
            out.push(block as u32);
        }
    };
    for r in i * b..((i + 1) * b).min(a.rows()) {
        // division of 32 bits is faster
        a.row(r).0.iter().for_each(|&j| add((j / b as u32) as usize));
    }
    if (i + 1) * b > a.rows() {
        add(i);
    }
    let row = &mut out[start..];
    for &block in &*row {
        seen[block as usize] = false;
    }
    row.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;

    #[test]
    fn blocks_are_abstracted_and_padded() {
        // 5 x 5: entries (0,4), (1,1), (3,0), (4,4)
        let a =
            Csr::new(5, 5, vec![0, 1, 2, 2, 3, 4], vec![4, 1, 0, 4], vec![1.0; 4]).expect("valid");
        let pairs = a.in_blocks(2);
        let p = block_pattern(&pairs);
        assert_eq!(p.rows(), 3);
        assert_eq!((p.row(0), p.row(1), p.row(2)), (&[0, 2][..], &[0][..], &[2][..]));
        let whole = a.in_blocks(5);
        let p = block_pattern(&whole);
        assert_eq!((p.rows(), p.row(0)), (1, &[0][..]));
    }

    #[test]
    fn blocks_are_counted_as_they_are_listed() {
        let a = crate::problem::load("reservoir:41x30x29,k=2,wells=3", ReadAs::Expanded);
        let a = a.expect("a generator").matrix;
        for b in [1, 2, 3, 5, 7] {
            let a = a.in_blocks(b);
            let blocks = block_pattern(&a).entries();
            for threads in [Threads::One, Threads::Pool] {
                assert_eq!(count_blocks(threads, &a), blocks, "{b}");
            }
        }
        // one that is wider than high, as transfers between levels are
        let wide = Csr::new(2, 6, vec![0, 2, 4], vec![4, 5, 4, 5], vec![1.0; 4]).expect("valid");
        assert_eq!(count_blocks(Threads::One, &wide.in_blocks(2)), 1);
    }
}
