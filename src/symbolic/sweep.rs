//! The given order of a grid in stages, by formulas: the sweep of Koch, Baker and Alcouffe (1992) over boxes that are
//! subdomains, where one axis is not cut. Factors without fill, on stencils that fit.

use super::interfaces::{Elimination, Work};
use super::partition::Boxes;
use super::pipeline::parts_of;
use super::stencil::coordinates;
use crate::base::choices::Partition;
use crate::base::memory;
use crate::matrix::pattern::Pattern;

/// Stages in which boxes of a grid work one behind the other. An axis that is not cut is divided among the stages: all
/// of a box that is in one part of it is one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Points of the grid.
    size: [usize; 3],
    /// Where the boxes begin along each axis, and the end.
    cuts: [Vec<usize>; 3],
    /// The axis that is divided among the stages, and where its parts begin, and the end.
    axis: usize,
    parts: Vec<usize>,
    /// First place of each subdomain, and their end.
    starts: Vec<usize>,
}

/// Where a point is.
struct Place {
    subdomain: usize,
    stage: usize,
    /// Its number in the order of the stages.
    number: usize,
}

impl Sweep {
    /// That of the subdomains of a division, which begin at the places `starts`, of a graph with so many entries.
    pub(crate) fn of(
        size: [usize; 3],
        how: Partition,
        starts: &[usize],
        entries: usize,
    ) -> Option<Self> {
        match how {
            Partition::Rows => Self::of_rows(size, starts, entries),
            Partition::Boxes => Self::of_boxes(&Boxes::new(size, starts.len() - 1).ok()?, entries),
            Partition::Graph => None,
        }
    }

    /// That of ranges of whole planes, which begin at the block rows `starts`, of a graph with so many entries.
    fn of_rows(size: [usize; 3], starts: &[usize], entries: usize) -> Option<Self> {
        let axis = (0..3).rev().find(|&axis| size[axis] > 1)?;
        let plane = size[..axis].iter().product::<usize>();
        let planes = starts.iter().all(|start| start.is_multiple_of(plane));
        let mut cuts = [0, 1, 2].map(|axis| vec![0, size[axis]]);
        cuts[axis] = starts.iter().map(|start| start / plane).collect();
        Self::new(size, cuts, starts, entries).filter(|_| planes)
    }

    /// That of boxes, of a graph with so many entries.
    fn of_boxes(boxes: &Boxes, entries: usize) -> Option<Self> {
        Self::new(boxes.size(), boxes.begins(), boxes.starts(), entries)
    }

    fn new(
        size: [usize; 3],
        cuts: [Vec<usize>; 3],
        starts: &[usize],
        entries: usize,
    ) -> Option<Self> {
        // lines along x stay whole where they can
        let axis = [1, 2, 0].into_iter().find(|&axis| cuts[axis].len() == 2 && size[axis] > 1)?;
        let behind: usize = cuts.iter().map(|of| of.len() - 2).sum();
        if behind == 0 {
            return None;
        }
        let work = entries as f64 / (starts.len() - 1) as f64;
        let count = (parts_of(behind as f64, work) as usize).min(size[axis]);
        let parts = (0..=count).map(|part| part * size[axis] / count).collect();
        Some(Self { size, cuts, axis, parts, starts: starts.to_vec() })
    }

    /// The points of a subdomain, along each axis.
    fn sides(&self, subdomain: usize) -> [usize; 3] {
        let of = coordinates(self.boxes(), subdomain);
        [0, 1, 2].map(|axis| self.cuts[axis][of[axis] + 1] - self.cuts[axis][of[axis]])
    }

    /// Boxes along each axis.
    fn boxes(&self) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.cuts[axis].len() - 1)
    }

    fn place(&self, row: usize) -> Place {
        let (mut at, axis) = (coordinates(self.size, row), self.axis);
        let of = [0, 1, 2].map(|axis| self.cuts[axis].partition_point(|&cut| cut <= at[axis]) - 1);
        let part = self.parts.partition_point(|&part| part <= at[axis]) - 1;
        let boxes = self.boxes();
        let subdomain = of[0] + boxes[0] * (of[1] + boxes[1] * of[2]);
        let mut sides = self.sides(subdomain);
        let plane = sides.iter().product::<usize>() / sides[axis];
        let first = self.starts[subdomain] + plane * self.parts[part];
        sides[axis] = self.parts[part + 1] - self.parts[part];
        for axis in 0..3 {
            at[axis] -= self.cuts[axis][of[axis]];
        }
        at[axis] -= self.parts[part];
        let number = first + at[0] + sides[0] * (at[1] + sides[1] * at[2]);
        Place { subdomain, stage: of.iter().sum::<usize>() + part, number }
    }

    /// Number of a block row in the order of the stages.
    pub(crate) fn number(&self, row: u64) -> u64 {
        self.place(row as usize).number as u64
    }

    /// The block row of each number.
    pub(crate) fn order(&self) -> Vec<u32> {
        let rows = self.size.iter().product();
        let mut order = memory::zeroed::<u32>(rows);
        (0..rows).for_each(|row| order[self.place(row).number] = row as u32);
        order
    }

    /// Whether no row depends on a later stage, or on another subdomain in its own. `pattern` has rows by ascending
    /// places, `number` is the block row at one.
    pub(crate) fn fits(&self, pattern: &Pattern, number: impl Fn(usize) -> u64) -> bool {
        let place = |at: usize| {
            let Place { subdomain, stage, .. } = self.place(number(at) as usize);
            (stage as u32, subdomain as u32)
        };
        let places: Vec<(u32, u32)> = (0..pattern.rows()).map(place).collect();
        (0..pattern.rows()).all(|i| {
            pattern.row(i).iter().map(|&j| j as usize).all(|j| {
                let (first, then) = (places[i.min(j)], places[i.max(j)]);
                first.0 + u32::from(first.1 != then.1) <= then.0
            })
        })
    }

    /// The stages, without the numbers of the rows in the given order.
    pub(crate) fn elimination(&self) -> Elimination {
        let (boxes, axis) = (self.boxes(), self.axis);
        let (mut first, mut stages, mut work) = (Vec::new(), Vec::new(), Work::default());
        for subdomain in 0..self.starts.len() - 1 {
            let (of, sides) = (coordinates(boxes, subdomain), self.sides(subdomain));
            let plane = sides.iter().product::<usize>() / sides[axis];
            let behind = |axis: usize| {
                let stride = boxes[..axis].iter().product::<usize>();
                (of[axis] + 1 < boxes[axis]).then_some((subdomain + stride) as u32)
            };
            for (part, ends) in self.parts.windows(2).enumerate() {
                let stage = (of.iter().sum::<usize>() + part) as u32;
                first.push(self.starts[subdomain] + plane * ends[0]);
                stages.push(stage);
                work.add([stage, subdomain as u32], plane * (ends[1] - ends[0]));
                (0..3).filter_map(behind).for_each(|other| {
                    work.send([stage, subdomain as u32], other);
                });
            }
        }
        first.extend(self.starts.last());
        Elimination::of_parts(&first, &stages, 0, work.efficiency(self.starts.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;

    /// What must hold of the stages of a seven-point grid.
    fn check(size: [usize; 3], sweep: &Sweep) {
        let [x, y, z] = size;
        let a = load(&format!("poisson3d:{x}x{y}x{z}"), ReadAs::Expanded).unwrap().matrix;
        let pattern = block_pattern(&a);
        assert!(sweep.fits(&pattern, |row| row as u64), "{sweep:?}");
        let (found, order) = (sweep.elimination(), sweep.order());
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..a.rows() as u32), "{sweep:?}");
        let count = sweep.starts.len() - 1;
        for s in 0..count {
            for (stage, rows) in found.parts(sweep.starts[s]..sweep.starts[s + 1]) {
                assert!(order[rows.clone()].is_sorted(), "{sweep:?}");
                for at in rows {
                    let row = order[at] as usize;
                    let place = sweep.place(row);
                    let all = (place.subdomain, place.stage, place.number);
                    assert_eq!(all, (s, stage, at), "{sweep:?}");
                    assert_eq!(found.stage(at), stage);
                }
            }
        }
    }

    #[test]
    fn planes_and_pencils_are_swept() {
        let size = [7, 16, 12];
        let rows = Sweep::of_rows(size, &[0, 336, 672, 1008, 1344], 9000).unwrap();
        assert_eq!((rows.axis, rows.parts.len()), (1, 9));
        check(size, &rows);
        // eight stages of work behind three others
        assert_eq!((rows.elimination().stages(), rows.elimination().efficiency), (11, 8.0 / 11.0));
        // a plane between others, of a sheet
        let sheet = Sweep::of_rows([30, 20, 1], &[0, 300, 600], 3000).unwrap();
        assert_eq!(sheet.axis, 0);
        check([30, 20, 1], &sheet);
        for (size, count) in [([9, 10, 11], 2), ([5, 8, 9], 4), ([6, 9, 10], 6)] {
            let sweep = Sweep::of_boxes(&Boxes::new(size, count).unwrap(), 6000).unwrap();
            check(size, &sweep);
        }
    }

    #[test]
    fn what_no_formula_covers_is_refused() {
        let size = [8, 8, 8];
        // within a plane, one subdomain, and boxes that cut all axes
        assert_eq!(Sweep::of_rows(size, &[0, 200, 512], 3000), None);
        assert_eq!(Sweep::of_rows(size, &[0, 512], 3000), None);
        assert_eq!(Sweep::of_boxes(&Boxes::new(size, 8).unwrap(), 3000), None);
        // a row depends on one of the next line in the plane below
        let sweep = Sweep::of_rows(size, &[0, 256, 512], 3000).unwrap();
        let diagonal = |row: u32| (row >= 56).then(|| row - 56);
        let mut row_ptr = vec![0];
        let mut col_ind = Vec::new();
        for row in 0..512 {
            col_ind.extend(diagonal(row));
            col_ind.push(row);
            row_ptr.push(col_ind.len() as u32);
        }
        assert!(!sweep.fits(&Pattern::new(row_ptr, col_ind), |row| row as u64));
    }
}
