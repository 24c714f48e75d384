//! The axes of a box by their length, the longest fastest: of ILU(k) on a seven-point grid, the last
//! axis adds the most levels per point, `k^2 + k + 1`, the first only one.

use super::{Advised, Method, Task};
use crate::base::error::{Error, Result};

pub(super) const METHOD: Method = Method {
    name: "shortest-axis-last",
    summary: "axes of a box grid by length, the longest fastest",
    make: order,
    keeps_grids: true,
    advised: Some(Advised { instead_of: None }),
    ..Method::PLAIN
};

fn order(task: &Task) -> Result<Vec<u32>> {
    match task.grid() {
        Some(extents) => Ok(by_length(extents)),
        None => Err(Error::input(format!(
            "ordering `shortest-axis-last`: blocks of {} show no box grid",
            task.matrix.block_size()
        ))
        .hint("it takes generated grids and seven-point patterns, with few entries elsewhere")),
    }
}

/// Points of the box, old numbers in the new order.
fn by_length(extents: [usize; 3]) -> Vec<u32> {
    let strides = [1, extents[0], extents[0] * extents[1]];
    let mut axes = [0, 1, 2];
    // stable: equal axes keep their order
    axes.sort_by_key(|&axis| std::cmp::Reverse(extents[axis]));
    let [fast, middle, slow] = axes;
    let mut order = Vec::with_capacity(extents.iter().product());
    for k in 0..extents[slow] {
        for j in 0..extents[middle] {
            let line = k * strides[slow] + j * strides[middle];
            order.extend((0..extents[fast]).map(|i| (line + i * strides[fast]) as u32));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::threads::Threads;
    use crate::matrix::pattern::permuted;
    use crate::symbolic::ordering::tests::pattern;

    #[test]
    fn a_box_is_turned_and_a_cube_is_not() {
        let turned = permuted(Threads::One, &pattern("poisson3d:3x4x5"), &by_length([3, 4, 5]));
        assert_eq!(turned, pattern("poisson3d:5x4x3"));
        assert!(by_length([4; 3]).into_iter().eq(0..64));
        assert_eq!(by_length([1, 1, 3]), [0, 1, 2]);
    }
}
