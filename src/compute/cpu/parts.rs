//! The parts of block ILU factors.

use std::ops::Range;

use bytemuck::Pod;

use crate::base::memory::Buffer;
use crate::symbolic::FillPattern;

/// Blocks of L, of D^-1 and of U', which is in the opposite order.
pub(super) struct Blocks<T> {
    pub(super) lower: Buffer<T>,
    pub(super) inverse_diagonal: Buffer<T>,
    pub(super) upper: Buffer<T>,
}

impl<T: Pod> Blocks<T> {
    /// Zeros for all blocks of `pattern`.
    pub(super) fn zeros(pattern: &FillPattern) -> Self {
        let bb = pattern.block_size() * pattern.block_size();
        Self {
            lower: Buffer::zeros(pattern.lower.entries() * bb),
            inverse_diagonal: Buffer::zeros(pattern.rows() * bb),
            upper: Buffer::zeros(pattern.upper.entries() * bb),
        }
    }

    /// Bytes of the numbers.
    pub(super) fn bytes(&self) -> usize {
        size_of::<T>() * (self.lower.len() + self.inverse_diagonal.len() + self.upper.len())
    }
}

/// Where the numbers of block row `row` are in each part.
pub(super) fn places(pattern: &FillPattern, row: usize) -> [Range<usize>; 3] {
    let bb = pattern.block_size() * pattern.block_size();
    let (lower, upper) = (pattern.lower.view().range(row), pattern.upper.view());
    let (of_upper, entries) = (upper.range(row), upper.entries());
    [
        lower.start * bb..lower.end * bb,
        row * bb..(row + 1) * bb,
        (entries - of_upper.end) * bb..(entries - of_upper.start) * bb,
    ]
}
