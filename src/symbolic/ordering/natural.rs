//! The order of the source.

use super::Task;

pub(super) fn order(task: &Task) -> Vec<u32> {
    (0..task.blocks() as u32).collect()
}
