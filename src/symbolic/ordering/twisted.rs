//! From the ends inwards (van der Vorst 1987): the chains of exact factors are about half as long. A box is
//! eliminated from its corners, along each axis from both ends; other systems from the first and the last row.

use super::{Method, Parameter, Task};
use crate::base::error::{Error, Result};

pub(super) const METHOD: Method = Method {
    name: "twisted",
    summary: "from all corners of a box inwards, else from both ends; `twisted:ends` from both ends alone",
    make: |task| Ok(order(task)),
    parameter: Some(parse),
    ..Method::PLAIN
};

fn parse(text: Option<&str>) -> Result<Parameter> {
    match text {
        None => Ok(Parameter::None),
        Some("ends") => Ok(Parameter::Ends),
        Some(other) => Err(Error::unknown("parameter", other, &["ends"])),
    }
}

fn order(task: &Task) -> Vec<u32> {
    let full = task.full_blocks();
    let extents = match task.grid() {
        Some(extents) if task.parameter == Parameter::None => extents,
        // a plane after the other
        Some([nx, ny, nz]) if nz > 1 => [1, nx * ny, nz],
        Some([nx, ny, _]) if ny > 1 => [1, nx, ny],
        _ => [1, 1, full],
    };
    let mut order = inwards(extents, task.parameter == Parameter::None);
    // an incomplete last block stays where it is
    order.extend(full as u32..task.blocks() as u32);
    order
}

/// Points of a box, x fastest, corner by corner; of the last axis alone both ends unless `all` have.
fn inwards(extents: [usize; 3], all: bool) -> Vec<u32> {
    let [nx, ny, nz] = extents;
    // both halves of an axis, each from its end inwards
    let halves = |n: usize, both: bool| {
        let middle = if both { n.div_ceil(2) } else { n };
        [(0..middle).collect::<Vec<_>>(), (middle..n).rev().collect()]
    };
    let [xs, ys, zs] = [halves(nx, all), halves(ny, all), halves(nz, true)];
    let mut order = Vec::with_capacity(nx * ny * nz);
    for zs in &zs {
        for ys in &ys {
            for xs in &xs {
                for z in zs {
                    for y in ys {
                        order.extend(xs.iter().map(|x| ((z * ny + y) * nx + x) as u32));
                    }
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::LevelRule;
    use crate::base::threads::Threads;
    use crate::matrix::pattern::permuted;
    use crate::symbolic::ordering::tests::pattern;
    use crate::symbolic::{Schedule, iluk};

    #[test]
    fn points_are_taken_from_the_corners_inwards() {
        assert_eq!(inwards([5, 1, 1], true), [0, 1, 2, 4, 3]);
        assert_eq!(inwards([2, 3, 1], true), [0, 2, 1, 3, 4, 5]);
        assert_eq!(inwards([1, 2, 3], false), [0, 1, 2, 3, 4, 5]);
        assert_eq!(inwards([1, 2, 4], false), [0, 1, 2, 3, 6, 7, 4, 5]);
    }

    #[test]
    fn chains_are_half_as_long() {
        let grid = pattern("poisson3d:16x12x10");
        let levels = |order: &[u32], k: usize| {
            let turned = permuted(Threads::One, &grid, order);
            let factors = iluk(&turned, k, LevelRule::Min, usize::MAX).unwrap();
            [Schedule::lower(&factors).levels(), Schedule::upper(&factors).levels()]
        };
        let natural: Vec<u32> = (0..16 * 12 * 10).collect();
        assert_eq!(levels(&natural, 0), [36, 36]);
        // 8 + 6 + 5 - 2 and a step across each middle plane
        assert_eq!(levels(&inwards([16, 12, 10], true), 0), [20, 20]);
        assert_eq!(levels(&inwards([1, 16 * 12, 10], false), 0), [32, 32]);
        // 1 + 15 + 2 * 11 + 3 * 9
        assert_eq!(levels(&natural, 1), [65, 65]);
        assert_eq!(levels(&inwards([16, 12, 10], true), 1), [45, 45]);
    }
}
