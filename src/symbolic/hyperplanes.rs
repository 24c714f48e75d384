//! Wavefront ordering of the points of a structured grid (Luo et al. 2015, Algorithm 1).

use std::sync::Arc;

use super::{FillPattern, Schedule};
use crate::matrix::pattern::Pattern;
use crate::symbolic::stencil::coordinates;

/// A seven-point pattern on a box of I x J x K points, i fastest, and its points by hyperplanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridPattern {
    /// Points in i, j and k.
    pub extents: [usize; 3],
    /// The couplings: the pattern of ILU(0).
    pub factors: Arc<FillPattern>,
    /// The points of a constant sum of subscripts form a level: they do not depend on each other.
    pub hyperplanes: Schedule,
}

/// Why a pattern is no grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGrid {
    /// The distances from the diagonal are not those of a box.
    NoBox,
    /// Entries that are not between neighbours on a box of these extents.
    Others {
        /// Points in i, j and k.
        extents: [usize; 3],
        /// How many there are.
        entries: usize,
    },
}

impl GridPattern {
    /// The grid of a square pattern.
    ///
    /// # Errors
    /// When its entries are not all between neighbours on one box.
    pub fn of(point: &Pattern, factors: FillPattern) -> Result<Self, NoGrid> {
        let extents = extents(point).ok_or(NoGrid::NoBox)?;
        match others(point, extents) {
            0 => {
                Ok(Self { extents, factors: Arc::new(factors), hyperplanes: hyperplanes(extents) })
            }
            entries => Err(NoGrid::Others { extents, entries }),
        }
    }

    /// Subscripts (i, j, k) of a row, from 1.
    pub(crate) fn subscripts(&self, row: usize) -> [usize; 3] {
        coordinates(self.extents, row).map(|s| s + 1)
    }
}

/// Points sorted by i + j + k: the mapping W of Algorithm 1, whose loop over i is the outermost.
pub fn hyperplanes([ni, nj, nk]: [usize; 3]) -> Schedule {
    let points = ni * nj * nk;
    let mut level_ptr = vec![0u32; if points == 0 { 1 } else { ni + nj + nk - 1 }];
    for i in 0..ni {
        for j in 0..nj {
            for k in 0..nk {
                level_ptr[i + j + k + 1] += 1;
            }
        }
    }
    for p in 1..level_ptr.len() {
        level_ptr[p] += level_ptr[p - 1];
    }
    let (mut next, mut rows) = (level_ptr.clone(), vec![0u32; points]);
    for i in 0..ni {
        for j in 0..nj {
            for k in 0..nk {
                let at = &mut next[i + j + k];
                rows[*at as usize] = (i + ni * (j + nj * k)) as u32;
                *at += 1;
            }
        }
    }
    Schedule { rows, level_ptr }
}

/// The box whose distances from the diagonal are those of all entries.
fn extents(point: &Pattern) -> Option<[usize; 3]> {
    let n = point.rows();
    let mut distances: Vec<usize> = Vec::new();
    for i in 0..n {
        for &j in point.row(i).iter().filter(|&&j| j as usize > i) {
            let distance = j as usize - i;
            if !distances.contains(&distance) {
                distances.push(distance);
                if distances.len() > 3 {
                    return None;
                }
            }
        }
    }
    distances.sort_unstable();
    box_of(&distances, n)
}

/// The box of `points` points, i fastest, whose neighbours are these distances apart: 1, I and I J,
/// increasing, as far as there are any. A plane of one point is not told from fewer dimensions.
pub(crate) fn box_of(distances: &[usize], points: usize) -> Option<[usize; 3]> {
    let (ni, plane) = match *distances {
        [1] => (points, points),
        [1, ni] => (ni, points),
        [1, ni, plane] => (ni, plane),
        _ => return None,
    };
    let whole = plane.is_multiple_of(ni) && points.is_multiple_of(plane);
    whole.then(|| [ni, plane / ni, points / plane])
}

/// Entries beside the diagonal that are not between neighbours on a box.
pub fn others(point: &Pattern, extents: [usize; 3]) -> usize {
    let mut others = 0;
    for i in 0..point.rows() {
        for &j in point.row(i).iter().filter(|&&j| j as usize != i) {
            others += usize::from(!are_neighbours([i, j as usize], extents));
        }
    }
    others
}

/// Whether two points of a box are one step apart.
pub(crate) fn are_neighbours(points: [usize; 2], extents: [usize; 3]) -> bool {
    let [from, to] = points.map(|point| coordinates(extents, point));
    (0..3).map(|d| from[d].abs_diff(to[d])).sum::<usize>() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::iluk;

    fn grid(spec: &str, b: usize) -> Result<GridPattern, NoGrid> {
        let a = problem::load(spec, ReadAs::Expanded).expect("generator").matrix;
        let a = a.in_blocks(b);
        let point = block_pattern(&a);
        let factors = iluk(&point, 0, LevelRule::Min, usize::MAX).expect("small");
        GridPattern::of(&point, factors)
    }

    #[test]
    fn hyperplanes_of_the_published_box() {
        // Luo et al., Figure 5: N_5 = 6 and N_12 = 25 on 10 x 5 x 5, p from 3
        let planes = hyperplanes([10, 5, 5]);
        assert_eq!(planes.levels(), 18);
        assert_eq!((planes.level(5 - 3).len(), planes.level(12 - 3).len()), (6, 25));
        // W(p = 5) in the order of Algorithm 1: (1,1,3) (1,2,2) (1,3,1) (2,1,2) (2,2,1) (3,1,1)
        assert_eq!(planes.level(2), [100, 60, 20, 51, 11, 2]);
    }

    #[test]
    fn hyperplanes_are_the_levels_of_the_solves() {
        for (spec, b) in [("channel3d:4x5x3", 6), ("poisson3d:7x6x1", 1), ("poisson3d:9x1x1", 1)] {
            let grid = grid(spec, b).expect("a box");
            let levels = Schedule::lower(&grid.factors);
            assert_eq!(grid.hyperplanes.level_ptr, levels.level_ptr, "{spec}");
            for p in 0..levels.levels() {
                let mut rows = grid.hyperplanes.level(p).to_vec();
                rows.sort_unstable();
                assert_eq!(rows, levels.level(p), "{spec}");
            }
        }
        assert_eq!(grid("channel3d:4x5x3", 6).unwrap().subscripts(4 + 3), [4, 2, 1]);
    }

    #[test]
    fn other_patterns_are_told() {
        assert_eq!(grid("fem-p1:6x5", 1), Err(NoGrid::NoBox));
        // blocks of two pairs of points along x are a grid again, those of three are not
        assert_eq!(grid("poisson3d:6x4x4", 2).map(|g| g.extents), Ok([3, 4, 4]));
        assert!(grid("poisson3d:7x4x4", 7).is_ok_and(|g| g.extents == [4, 4, 1]));
        assert_eq!(grid("poisson3d:5x4x4", 4), Err(NoGrid::NoBox));
        // the ends of lines coupled with the next ones
        let (mut ptr, mut all) = (vec![0u32], Vec::new());
        for i in 0..12_u32 {
            all.extend([i + 1, i + 4].into_iter().filter(|&j| j < 12));
            ptr.push(all.len() as u32);
        }
        let point = Pattern::new(ptr, all);
        let factors = FillPattern::diagonal(12, 1);
        let found = GridPattern::of(&point, factors);
        assert_eq!(found, Err(NoGrid::Others { extents: [4, 3, 1], entries: 2 }));
    }
}
