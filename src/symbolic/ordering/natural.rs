//! The order of the source.

use super::{Method, Task};

pub(super) const METHOD: Method = Method {
    name: "natural",
    summary: "the order of the source",
    make: |task| Ok(order(task)),
    alias: Some("none"),
    keeps_grids: true,
    ..Method::PLAIN
};

pub(super) fn order(task: &Task) -> Vec<u32> {
    (0..task.blocks() as u32).collect()
}
