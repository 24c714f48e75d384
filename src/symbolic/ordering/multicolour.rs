//! Colour by colour, first fit: rows of a colour do not depend on each other, so the factors of
//! ILU(0) have one level per colour.

use super::{Advised, Method, Task};
use crate::base::threads::Threads;
use crate::symbolic::{by_set, colours};

pub(super) const METHOD: Method = Method {
    name: "multicolour",
    summary: "colour by colour, first fit: few levels",
    make: |task| Ok(order(task)),
    advised: Some(Advised { instead_of: None }),
    ..Method::PLAIN
};

fn order(task: &Task) -> Vec<u32> {
    by_set(&colours(Threads::Pool, &task.graph()))
}
