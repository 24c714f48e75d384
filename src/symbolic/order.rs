//! Orders made of sets, and of blocks.

use super::Schedule;

/// The scalar rows of block rows in their order.
pub(crate) fn scalar_order(order: &[u32], b: usize) -> Vec<u32> {
    let b = b as u32;
    order.iter().flat_map(|&i| i * b..(i + 1) * b).collect()
}

/// Rows set by set: those of set 0 first, in each set in their order.
pub(crate) fn by_set(set: &[u32]) -> Vec<u32> {
    Schedule::from_levels(set).rows
}
