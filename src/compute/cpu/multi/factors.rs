//! The factors that solves with multivectors read.

use super::super::entry::Entry;
use super::super::ilu::BlockIlu;
use super::super::parts::Blocks;
use super::lanes::{Strip, from_memory};
use crate::matrix::pattern::PatternView;

/// Factors as plain slices.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a, T> {
    pub(super) lower_pattern: PatternView<'a>,
    pub(super) upper_pattern: PatternView<'a>,
    pub(super) lower: &'a [T],
    pub(super) inverse_diagonal: &'a [T],
    pub(super) upper: &'a [T],
    /// Whether this strip is the first that asks for all of this and of the vectors, which are in memory.
    pub(super) far: bool,
}

impl<'a, T: Entry> Factors<'a, T> {
    pub(super) fn new(ilu: &'a BlockIlu, blocks: &'a Blocks<T>, strip: Strip) -> Self {
        let numbers = ilu.pattern.rows() * ilu.pattern.block_size() * strip.columns;
        Self {
            lower_pattern: ilu.pattern.lower.view(),
            upper_pattern: ilu.pattern.upper.view(),
            lower: &blocks.lower,
            inverse_diagonal: &blocks.inverse_diagonal,
            upper: &blocks.upper,
            far: strip.at == 0 && from_memory(numbers),
        }
    }
}
