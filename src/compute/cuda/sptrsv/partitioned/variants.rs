//! What the kernels of solves in parts are compiled for.

use super::{ABOUT, LARGEST_BLOCK};
use crate::compute::cuda::analysis;
use crate::compute::cuda::sources::Variant;
use crate::symbolic::FillPattern;

/// Threads of a block of a kernel that stays for a whole method: as many as there are registers for.
pub(in crate::compute::cuda) const RESIDENT_THREADS: u32 = 512;

/// Threads of a block: many small rows hide each other's way to memory, large ones need registers.
pub(super) fn threads_of(block_size: usize) -> usize {
    if block_size <= 5 { 512 } else { 256 }
}

/// Most blocks of a row that a lane has registers for: 4 for each and 2 for each of its numbers.
fn most_ahead(block_size: usize) -> usize {
    let registers = (65536 / threads_of(block_size)).min(255);
    (registers - 40 - registers / 6) / (4 + 2 * block_size)
}

/// Lanes that share a row of `typical` blocks, so that all of them are under way at once.
fn split(block_size: usize, typical: usize) -> usize {
    let most = 32 / block_size;
    let wanted = typical.div_ceil(most_ahead(block_size)).next_power_of_two();
    wanted.min(1 << most.ilog2())
}

/// Blocks that a lane has under way for rows of up to `longest`: few different ones, so that few
/// kernels are compiled.
fn ahead_for(block_size: usize, split: usize, longest: usize) -> usize {
    const STEPS: [usize; 8] = [1, 2, 3, 4, 5, 6, 8, 11];
    let length = longest.div_ceil(split);
    let ahead = STEPS.iter().copied().find(|&step| step >= length).unwrap_or(length);
    ahead.min(most_ahead(block_size))
}

/// The variant of `sptrsv/partitioned.cu` for rows of up to `longest` blocks.
pub(super) fn variant(block_size: usize, split: usize, longest: usize) -> Variant {
    let ahead = ahead_for(block_size, split, longest);
    let whole = usize::from(longest.div_ceil(split) <= ahead);
    let threads = threads_of(block_size);
    let defines = vec![("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads), ("WHOLE", whole)];
    Variant { defines, ..block_size.into() }
}

/// Lanes of a warp that can share a row at most.
fn most_lanes(block_size: usize) -> usize {
    1 << (32 / block_size).ilog2()
}

/// Lengths of the rows of both triangles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) longest: usize,
    /// Of all but one in fifty.
    most: usize,
}

impl Lengths {
    /// With where the rows of L and of U begin.
    pub(super) fn of(starts: [&[u32]; 2]) -> Self {
        let (n, rows) = (starts[0].len() - 1, 2 * (starts[0].len() - 1));
        let length = |i: usize| {
            let (starts, row) = if i < n { (starts[0], i) } else { (starts[1], i - n) };
            (starts[row + 1] - starts[row]) as usize
        };
        let [most, longest] = analysis::lengths(rows, length, rows - rows / 50);
        Self { longest, most }
    }
}

/// Most blocks of a lane where rows are shared unevenly, which takes registers of its own.
const MOST_UNEVEN: usize = 8;

/// Blocks that a lane has under way where a few rows, as those of wells, are so much longer than most that more lanes share
/// each of them: all lanes would go through windows as long as theirs.
pub(super) fn uneven_each(block_size: usize, split: usize, lengths: Lengths) -> Option<usize> {
    let each = ahead_for(block_size, split, lengths.most.max(1)).min(MOST_UNEVEN);
    let longer = 2 * lengths.longest >= 3 * each * split;
    (longer && most_lanes(block_size) > split).then_some(each)
}

/// The variant of `sptrsv/partitioned.cu` for rows that different numbers of lanes share, up to `longest` blocks.
pub(super) fn uneven_variant(
    block_size: usize,
    split: usize,
    each: usize,
    longest: usize,
) -> Variant {
    let whole = usize::from(longest <= each * most_lanes(block_size));
    let threads = threads_of(block_size);
    let sizes = [("AHEAD", each), ("SPLIT", split), ("THREADS", threads), ("WHOLE", whole)];
    let defines = [&sizes[..], &[("UNEVEN", 1)]].concat();
    Variant { defines, ..block_size.into() }
}

/// The variant of `sptrsv/partitioned.cu` for solves within another kernel.
pub fn resident_variant(block_size: usize) -> Option<Variant> {
    (block_size <= ABOUT.resident_block).then(|| resident(block_size))
}

/// The variants of `sptrsv/partitioned.cu` that need the most registers; none for blocks that are too large.
pub fn largest_variants(block_size: usize) -> Vec<Variant> {
    if block_size > LARGEST_BLOCK {
        return Vec::new();
    }
    let most = most_lanes(block_size);
    let ahead = most_ahead(block_size);
    // whole rows, and longer ones, by one lane and by as many as can be
    let mut variants = vec![
        variant(block_size, 1, ahead),
        variant(block_size, 1, ahead + 1),
        variant(block_size, most, most * ahead + 1),
        uneven_variant(block_size, 1, ahead.min(MOST_UNEVEN), most * ahead + 1),
    ];
    variants.dedup();
    variants
}

pub(super) fn resident(block_size: usize) -> Variant {
    let ((split, ahead), threads) = (in_kernel_row(block_size), RESIDENT_THREADS as usize);
    let sizes = [("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads)];
    Variant { defines: [&sizes[..], &[("WHOLE", 0), ("UNEVEN", 1)]].concat(), ..block_size.into() }
}

/// Lanes that share a row at least, and blocks that a lane has under way, of solves within another
/// kernel; mirrors `krylov/in_kernel.cuh`.
pub(super) fn in_kernel_row(block_size: usize) -> (usize, usize) {
    if block_size <= 4 { (1, 4) } else { (2, 2) }
}

/// Lanes that share a row of a triangle of `p`: few rows are much longer than a quarter above the
/// mean.
pub(super) fn split_for(p: &FillPattern, block_size: usize) -> usize {
    let entries = p.lower.entries().max(p.upper.entries());
    split(block_size, (entries * 5).div_ceil(p.rows().max(1) * 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_so_that_all_their_blocks_are_under_way() {
        assert_eq!([1, 3, 5, 8, 25, 32].map(most_ahead), [11, 6, 4, 8, 3, 2]);
        assert_eq!([3, 11, 12, 25, 500].map(|typical| split(1, typical)), [1, 1, 2, 4, 32]);
        assert_eq!([split(3, 23), split(3, 500), split(25, 500)], [4, 8, 1]);
    }

    #[test]
    fn variants_are_whole_while_rows_fit_their_lanes() {
        let defines = |b, split, longest| variant(b, split, longest).defines;
        let expected = |ahead, split, threads, whole| {
            vec![("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads), ("WHOLE", whole)]
        };
        assert_eq!(defines(1, 1, 3), expected(3, 1, 512, 1));
        assert_eq!(defines(3, 4, 25), expected(6, 4, 512, 0));
        assert_eq!(defines(8, 4, 28), expected(8, 4, 256, 1));
    }

    #[test]
    fn rows_of_wells_are_shared_by_more_lanes() {
        let each = |b, split, most, longest| uneven_each(b, split, Lengths { longest, most });
        // those of `reservoir:41,k=2,wells=50`, `nornebox_b3` and `spe9cp_b3`
        assert_eq!([each(2, 1, 3, 82), each(3, 1, 3, 9), each(3, 2, 6, 24)], [Some(3); 3]);
        assert_eq!([each(3, 1, 3, 6), each(3, 2, 6, 9)], [Some(3); 2]);
        // a grid, blocks that fill a warp, and rows that only end the last window
        assert_eq!([each(1, 1, 3, 3), each(25, 1, 3, 82), each(1, 1, 8, 11)], [None; 3]);
        let defines = uneven_variant(2, 1, 3, 82).defines;
        assert_eq!(defines[..2], [("AHEAD", 3), ("SPLIT", 1)]);
        assert_eq!(defines[2..], [("THREADS", 512), ("WHOLE", 0), ("UNEVEN", 1)]);
    }
}
