//! Factors in one precision.

use super::super::entry::Entry;
use super::super::parts::Blocks;
use super::super::values::Scaled;

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
