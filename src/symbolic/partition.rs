//! Division of the block rows of a matrix among subdomains.

pub(crate) mod bisection;
mod graph;

use bisection::{Bisection, Run};

use crate::base::choices::{LevelRule, Partition};
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::base::units::plural;
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, TooLarge, block_pattern_on, permuted};
use crate::symbolic::grid::box_of_blocks;
use crate::symbolic::interfaces::{Elimination, FillLevels, Sides, subdomains};
use crate::symbolic::stencil::coordinates;
use crate::symbolic::{iluk_on, symmetrised};

/// Block rows in the order of their subdomains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divided {
    /// The old block row at each place; `None` where the order stays.
    pub order: Option<Vec<u32>>,
    /// First place of each subdomain, and their end.
    pub starts: Vec<usize>,
}

impl Divided {
    /// The old number of each unknown; `None` where the order stays.
    pub fn unknowns(&self, block_size: usize) -> Option<Vec<u32>> {
        let b = block_size as u32;
        let order = self.order.as_ref()?;
        Some(order.iter().flat_map(|&block| block * b..(block + 1) * b).collect())
    }

    /// Block rows by the subdomain of each, in their order within it.
    fn by_subdomain(of: &[u32], count: usize) -> Self {
        let mut starts = vec![0; count + 1];
        for &s in of {
            starts[s as usize + 1] += 1;
        }
        for s in 0..count {
            starts[s + 1] += starts[s];
        }
        let mut order: Vec<u32> = (0..of.len() as u32).collect();
        order.sort_by_key(|&row| of[row as usize]);
        Self { order: (!of.is_sorted()).then_some(order), starts }
    }

    /// Old block rows of a subdomain.
    pub fn rows(&self, subdomain: usize) -> impl Iterator<Item = usize> {
        let old = |at: usize| self.order.as_ref().map_or(at, |order| order[at] as usize);
        (self.starts[subdomain]..self.starts[subdomain + 1]).map(old)
    }

    /// The subdomain of each old block row.
    pub fn subdomains(&self) -> Vec<u32> {
        let count = self.starts.len() - 1;
        let mut of = vec![0; self.starts[count]];
        for s in 0..count {
            self.rows(s).for_each(|row| of[row] = s as u32);
        }
        of
    }

    /// Moves interiors before interfaces and finds the order of elimination ([`Elimination::interfaces`]).
    fn eliminate(&mut self, a: &Csr, of: Sides, fill: FillLevels) -> Elimination {
        let graph = symmetrised(Threads::Pool, &block_pattern_on(Threads::Pool, a)).into_owned();
        let graph = match &self.order {
            Some(order) => permuted(Threads::Pool, &graph, order),
            None => graph,
        };
        let (found, inner) = Elimination::interfaces(&graph, &self.starts, of, fill);
        let old = |&new: &u32| self.order.as_ref().map_or(new, |order| order[new as usize]);
        self.order = Some(inner.iter().map(old).collect());
        found
    }

    /// Sorts the block rows of each subdomain by stages in which ILU(k) of A eliminates them in the given order
    /// ([`Elimination::natural`]). `limit` bounds the entries of the factors.
    ///
    /// # Errors
    /// [`TooLarge`] when it is passed.
    pub fn pipeline(
        &mut self,
        threads: Threads,
        a: &Csr,
        k: usize,
        limit: usize,
    ) -> std::result::Result<Elimination, TooLarge> {
        self.pipeline_of(threads, block_pattern_on(threads, a), k, limit)
    }

    /// The same of a matrix with the blocks `point`.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn pipeline_of(
        &mut self,
        threads: Threads,
        point: Pattern,
        k: usize,
        limit: usize,
    ) -> std::result::Result<Elimination, TooLarge> {
        let graph = match k {
            0 => point,
            _ => iluk_on(threads, &point, k, LevelRule::Min, limit)?.whole(),
        };
        let mut subdomain = subdomains(&self.starts);
        if let Some(order) = &self.order {
            let of_place = subdomain.clone();
            order.iter().zip(of_place).for_each(|(&old, s)| subdomain[old as usize] = s);
        }
        let (found, order) = Elimination::natural(&symmetrised(threads, &graph), &subdomain);
        self.order = Some(order);
        Ok(found)
    }
}

/// Which rows are at interfaces: chosen by iterations on grids and reservoirs (`docs/notes/ranks.md`).
pub(crate) fn sides(how: Partition, count: usize) -> Sides {
    match how {
        Partition::Rows if count <= 2 => Sides::Both,
        Partition::Boxes => Sides::Both,
        Partition::Rows | Partition::Graph => Sides::Lower,
    }
}

/// Divides the block rows of A as [`divide`] does for ILU(k) of the whole matrix with interfaces last, and finds the
/// order of its elimination. Fill of level k goes over paths of k + 1 couplings: subdomains within these have
/// different colours.
///
/// # Errors
/// As [`divide`].
pub(crate) fn divide_exactly(
    a: &Csr,
    how: Partition,
    grid: Option<[usize; 3]>,
    count: usize,
    fill: FillLevels,
) -> Result<(Divided, Elimination)> {
    let mut divided = divide(a, how, grid, count, true)?;
    let elimination = divided.eliminate(a, sides(how, count), fill);
    Ok((divided, elimination))
}

/// Divides the block rows of A into `count` subdomains; `grid` has the extents of the box whose points they are, where
/// the source knows them. The second of two ranges, or of two boxes along an axis, may `face` the first: both are
/// numbered towards the cut.
///
/// # Errors
/// When there are fewer block rows, no grid that can be cut into as many boxes, or no memory for a graph.
pub fn divide(
    a: &Csr,
    how: Partition,
    grid: Option<[usize; 3]>,
    count: usize,
    face: bool,
) -> Result<Divided> {
    let rows = a.rows().div_ceil(a.block_size());
    check_count(count, rows)?;
    match how {
        Partition::Rows => {
            let starts = ranges(a, count);
            let order = (face && count == 2).then(|| {
                let [first, second] = [0..starts[1] as u32, starts[1] as u32..rows as u32];
                first.chain(second.rev()).collect()
            });
            Ok(Divided { order, starts })
        }
        Partition::Boxes => {
            let size = box_of_blocks(a, grid).ok_or_else(no_grid)?;
            let boxes = Boxes::new(size, count)?;
            Ok(boxes.divided(face))
        }
        Partition::Graph => divide_graph(&block_pattern_on(Threads::Pool, a), count),
    }
}

/// The rows of a pattern in `count` parts of its graph.
///
/// # Errors
/// Without memory for the graph.
pub(crate) fn divide_graph(pattern: &Pattern, count: usize) -> Result<Divided> {
    divide_graph_by(pattern, count, &mut |all| all.iter().map(Bisection::run).collect())
}

/// The same, of which `run` makes the bisections.
///
/// # Errors
/// Those of `run`.
pub(crate) fn divide_graph_by<E>(
    pattern: &Pattern,
    count: usize,
    run: Run<E>,
) -> std::result::Result<Divided, E> {
    let weights: Vec<u32> = pattern.row_ptr.windows(2).map(|w| w[1] - w[0]).collect();
    let graph = symmetrised(Threads::Pool, pattern);
    Ok(Divided::by_subdomain(&graph::subdomains(&graph, &weights, count, run)?, count))
}

/// The error of boxes without a grid.
pub(crate) fn no_grid() -> Error {
    Error::input("no grid is known for partition `boxes`")
        .hint("use `--partition graph`, or a matrix whose block rows are the points of a grid")
}

/// Refuses more subdomains than block rows.
///
/// # Errors
/// When they are more.
pub(crate) fn check_count(count: usize, rows: usize) -> Result<()> {
    if count <= rows {
        return Ok(());
    }
    let text = format!("{} of {}", plural(count, "subdomain"), plural(rows, "block row"));
    Err(Error::input(text)
        .hint("give --subdomains at most the number of block rows, or start fewer ranks"))
}

/// Entries that are due before the first row of each of `count` ranges but the first, of `entries` in all.
pub(crate) fn due(entries: u64, count: usize) -> impl Iterator<Item = u64> {
    (1..count).map(move |part| (u128::from(entries) * part as u128 / count as u128) as u64)
}

/// First of `rows` block rows of each of `count` ranges, and their end. `found` are the first rows before which there
/// are as many entries as are [`due`]; no range is empty.
pub(crate) fn range_starts(found: &[usize], count: usize, rows: usize) -> Vec<usize> {
    let mut starts = vec![0];
    for (part, &row) in (1..count).zip(found) {
        starts.push(row.clamp(starts[part - 1] + 1, rows - (count - part)));
    }
    starts.push(rows);
    starts
}

/// Consecutive block rows with about equal numbers of entries; none is empty.
fn ranges(a: &Csr, count: usize) -> Vec<usize> {
    let (b, rows) = (a.block_size(), a.rows().div_ceil(a.block_size()));
    let before: Vec<u32> = a.row_ptr().iter().step_by(b).copied().collect();
    let first = |due: u64| before.partition_point(|&entries| u64::from(entries) < due);
    let found: Vec<usize> = due(a.nnz() as u64, count).map(first).collect();
    range_starts(&found, count, rows)
}

/// The boxes of a grid that are subdomains: x fastest within each and among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    size: [usize; 3],
    cuts: [usize; 3],
    /// First place of each, and their end.
    starts: Vec<usize>,
}

impl Boxes {
    /// As many boxes of a grid of this size.
    ///
    /// # Errors
    /// When it cannot be cut into as many.
    pub fn new(size: [usize; 3], count: usize) -> Result<Self> {
        let cuts = cuts(size, count).ok_or_else(|| {
            let [x, y, z] = size;
            Error::input(format!("{count} boxes of a grid of {x} x {y} x {z}"))
                .hint("give --subdomains a number with factors up to these sizes")
        })?;
        let mut made = Self { size, cuts, starts: vec![0] };
        for part in 0..count {
            let points = made.sides(part).map(|side| side.len()).iter().product::<usize>();
            made.starts.push(made.starts[part] + points);
        }
        Ok(made)
    }

    /// Points of the grid.
    pub(crate) fn size(&self) -> [usize; 3] {
        self.size
    }

    /// Where the boxes begin along each axis, and the end.
    pub(crate) fn begins(&self) -> [Vec<usize>; 3] {
        [0, 1, 2].map(|axis| (0..=self.cuts[axis]).map(|part| self.begin(axis, part)).collect())
    }

    /// Where a part of an axis begins.
    fn begin(&self, axis: usize, part: usize) -> usize {
        part * self.size[axis] / self.cuts[axis]
    }

    /// First place of each box, and their end.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Place of a point of the grid; boxes [face](divide) each other or do not.
    pub fn place(&self, point: u64, face: bool) -> u64 {
        let (size, cuts) = (self.size, self.cuts);
        let at = coordinates(size, point as usize);
        // the last part that begins there or before
        let [p, q, r] = [0, 1, 2].map(|axis| ((at[axis] + 1) * cuts[axis] - 1) / size[axis]);
        let part = p + cuts[0] * (q + cuts[1] * r);
        let sides = self.sides(part);
        let [x, y, z] = [0, 1, 2].map(|axis| {
            let side = &sides[axis];
            if face && self.is_mirrored(axis, side) {
                side.end - 1 - at[axis]
            } else {
                at[axis] - side.start
            }
        });
        (self.starts[part] + x + sides[0].len() * (y + sides[1].len() * z)) as u64
    }

    /// The extents of a box.
    fn sides(&self, part: usize) -> [std::ops::Range<usize>; 3] {
        let of = coordinates(self.cuts, part);
        [0, 1, 2].map(|axis| self.begin(axis, of[axis])..self.begin(axis, of[axis] + 1))
    }

    /// Whether a side of a box that faces another one is numbered backwards.
    fn is_mirrored(&self, axis: usize, side: &std::ops::Range<usize>) -> bool {
        self.cuts[axis] == 2 && side.start > 0
    }

    /// The points box by box; the second of two boxes along an axis may `face` the first.
    pub(crate) fn divided(&self, face: bool) -> Divided {
        let size = self.size;
        let mut order = Vec::with_capacity(size.iter().product());
        for part in 0..self.starts.len() - 1 {
            let sides = self.sides(part);
            let side = |axis: usize| {
                let mirrored = face && self.is_mirrored(axis, &sides[axis]);
                let sum = sides[axis].start + sides[axis].end - 1;
                sides[axis].clone().map(move |at| if mirrored { sum - at } else { at })
            };
            for z in side(2) {
                for y in side(1) {
                    order.extend(side(0).map(|x| (x + size[0] * (y + size[1] * z)) as u32));
                }
            }
        }
        let natural = order.iter().enumerate().all(|(new, &old)| new == old as usize);
        Divided { order: (!natural).then_some(order), starts: self.starts.clone() }
    }
}

/// Into how many parts each direction is cut so that as few neighbours as possible are parted; the slowest
/// direction first where that is the same.
fn cuts(size: [usize; 3], count: usize) -> Option<[usize; 3]> {
    let parted = |[p, q, r]: [usize; 3]| {
        (p - 1) * size[1] * size[2] + (q - 1) * size[0] * size[2] + (r - 1) * size[0] * size[1]
    };
    let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    divisors(count)
        .flat_map(|p| divisors(count / p).map(move |q| [p, q, count / p / q]))
        .filter(|cuts| cuts.iter().zip(size).all(|(cuts, size)| *cuts <= size))
        .min_by_key(|&cuts| (parted(cuts), cuts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::problem::load;

    #[test]
    fn ranges_have_equal_numbers_of_entries_and_none_is_empty() {
        let a = load("poisson3d:8", ReadAs::Expanded).unwrap().matrix;
        let starts = divide(&a, Partition::Rows, None, 3, false).unwrap().starts;
        let entries = |w: &[usize]| a.row_ptr()[w[1]] - a.row_ptr()[w[0]];
        assert!(
            starts.windows(2).all(|w| entries(w).abs_diff(a.nnz() as u32 / 3) < 8),
            "{starts:?}"
        );
        let facing = divide(&a, Partition::Rows, None, 2, true).unwrap();
        let middle = facing.starts[1] as u32;
        assert_eq!(
            facing.order.unwrap(),
            (0..middle).chain((middle..512).rev()).collect::<Vec<_>>()
        );
        let all = divide(&a, Partition::Rows, None, 512, false).unwrap().starts;
        assert_eq!(all, (0..=512).collect::<Vec<_>>());
        let error = divide(&a, Partition::Rows, None, 513, false).unwrap_err();
        assert_eq!(error.to_string(), "513 subdomains of 512 block rows");
    }

    #[test]
    fn boxes_part_few_neighbours() {
        assert_eq!(cuts([64; 3], 8), Some([2, 2, 2]));
        assert_eq!(cuts([64; 3], 2), Some([1, 1, 2]));
        assert_eq!(cuts([100, 10, 10], 4), Some([4, 1, 1]));
        assert_eq!((cuts([4, 4, 1], 32), cuts([4, 4, 1], 16)), (None, Some([4, 4, 1])));
        let a = load("poisson3d:3x2x2", ReadAs::Expanded).unwrap();
        let divided = divide(&a.matrix, Partition::Boxes, a.grid, 2, false).unwrap();
        assert_eq!(
            divided,
            Divided {
                order: Some(vec![0, 3, 6, 9, 1, 2, 4, 5, 7, 8, 10, 11]),
                starts: vec![0, 4, 12]
            }
        );
        let slices = divide(&a.matrix, Partition::Boxes, Some([2, 2, 3]), 3, false).unwrap();
        assert_eq!(slices, Divided { order: None, starts: vec![0, 4, 8, 12] });
        for (size, count) in [([7, 5, 6], 12), ([4, 3, 1], 3), ([5, 1, 9], 10)] {
            let boxes = Boxes::new(size, count).unwrap();
            for face in [false, true] {
                let order = boxes
                    .divided(face)
                    .order
                    .unwrap_or_else(|| (0..size.iter().product::<usize>() as u32).collect());
                let place = |point: u32| boxes.place(u64::from(point), face);
                assert!((0..).zip(order).all(|(at, point)| place(point) == at));
            }
        }
        let facing = divide(&a.matrix, Partition::Boxes, Some([4, 3, 1]), 2, true).unwrap();
        let order = vec![0, 1, 4, 5, 8, 9, 3, 2, 7, 6, 11, 10];
        assert_eq!(facing, Divided { order: Some(order), starts: vec![0, 6, 12] });
        let found = divide(&a.matrix, Partition::Boxes, None, 2, false).unwrap();
        assert_eq!(found, divided);
        let mesh = load("fem-p1:6x5", ReadAs::Expanded).unwrap().matrix;
        let error = divide(&mesh, Partition::Boxes, None, 2, false).unwrap_err();
        assert_eq!(error.to_string(), "no grid is known for partition `boxes`");
    }
}
