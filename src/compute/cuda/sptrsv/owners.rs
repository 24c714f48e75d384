//! Who solves which rows of a triangular factor.

use rayon::prelude::*;

use crate::compute::cuda::lattice::{Lattice, Outline};
use crate::matrix::pattern::PatternView;

/// The triangle as a solve goes through it: place p is row p, or row n - 1 - p backward.
#[derive(Clone, Copy)]
pub(super) struct Triangle<'a> {
    pub(super) pattern: PatternView<'a>,
    rows: usize,
    pub(super) backward: bool,
}

impl<'a> Triangle<'a> {
    pub(super) fn new(pattern: PatternView<'a>, backward: bool) -> Self {
        Self { pattern, rows: pattern.row_ptr.len() - 1, backward }
    }

    /// Row at a place, or place of a row.
    fn turned(self, i: usize) -> usize {
        if self.backward { self.rows - 1 - i } else { i }
    }

    pub(super) fn entries(self, row: u32) -> usize {
        self.pattern.range(row as usize).len()
    }

    /// Cuts the places into ranges of about equal work: entries and rows.
    fn cut(self, parts: usize) -> Vec<usize> {
        let work = self.pattern.entries() + self.rows;
        // entries and rows before a place
        let before = |place: usize| {
            let entries = if self.backward {
                self.pattern.entries() - self.pattern.row_ptr[self.rows - place] as usize
            } else {
                self.pattern.row_ptr[place] as usize
            };
            entries + place
        };
        let mut bounds = vec![0];
        for part in 1..parts {
            let wanted = (work as u128 * part as u128 / parts as u128) as usize;
            let (mut low, mut high) = (bounds[part - 1], self.rows);
            while low < high {
                let middle = usize::midpoint(low, high);
                if before(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            bounds.push(low);
        }
        bounds.push(self.rows);
        bounds
    }

    /// When each row can be done, in steps: one after a row of its own part, `crossing` after one of
    /// another.
    pub(super) fn times(self, owners: &Owners, crossing: u32) -> Vec<u32> {
        let mut time = vec![0u32; self.rows];
        for place in 0..self.rows {
            let row = self.turned(place);
            let own = owners.part(row as u32);
            let mut at = 0;
            for &j in self.pattern.row(row) {
                let step = if owners.part(j) == own { 1 } else { crossing };
                at = at.max(time[j as usize].saturating_add(step));
            }
            time[row] = at;
        }
        time
    }
}

/// Who solves which rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owners {
    /// Rows of each part, increasing.
    pub(super) parts: Vec<Vec<u32>>,
    /// Part of each row, and its place among the rows of the part.
    pub(super) of_row: Vec<(u32, u32)>,
}

impl Owners {
    /// `of_row` is the part of each row, of so many.
    pub(super) fn new(parts: usize, of_row: impl IntoIterator<Item = u32>) -> Self {
        let mut rows = vec![Vec::new(); parts];
        let of_row = of_row.into_iter().enumerate().map(|(row, part)| {
            let own: &mut Vec<u32> = &mut rows[part as usize];
            own.push(row as u32);
            (part, own.len() as u32 - 1)
        });
        let of_row = of_row.collect();
        Self { parts: rows, of_row }
    }

    /// Ranges of about equal work, the first at the end where a solve begins: each needs values of
    /// those before it only.
    pub(super) fn ranges(pattern: PatternView, backward: bool, parts: usize) -> Self {
        let triangle = Triangle::new(pattern, backward);
        let bounds = triangle.cut(parts);
        let mut part = 0;
        let by_place = (0..triangle.rows).map(|place| {
            while place >= bounds[part + 1] {
                part += 1;
            }
            part as u32
        });
        let mut of_row: Vec<u32> = by_place.collect();
        if backward {
            of_row.reverse();
        }
        Self::new(parts, of_row)
    }

    pub(super) fn part(&self, row: u32) -> u32 {
        self.of_row[row as usize].0
    }
}

/// What a solve in parts depends on beside its outline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Rows of a slice.
    pub(super) slice_rows: f64,
    /// Bytes of the values of a row.
    pub(super) row_bytes: f64,
}

impl Costs {
    /// Microseconds that a chain of dependencies takes to another part, as they decide how many parts there are.
    const CROSSING: f64 = 1.2;
    /// The same in steps of a part, as [`Self::solve`] has them.
    const CROSSING_STEPS: u32 = 6;

    /// The same of all rows in one part.
    fn work(&self, rows: usize) -> f64 {
        (0.1 / self.slice_rows + 0.1e-3 * self.row_bytes) * rows as f64
    }

    /// Microseconds of a solve, fitted to an H200 (`docs/notes/triangular-solve.md`): a part is at work while the front of what
    /// can be done passes through it, so that its work counts as often as such times follow each other, and where the
    /// rows of slices look for values of another part, a level takes the longer the more parts look.
    fn solve(&self, rows: usize, o: &Outline) -> f64 {
        let row = 0.05 / self.slice_rows + 0.04e-3 * self.row_bytes;
        let work = row * rows as f64 * o.share * (o.levels / o.window).max(1.0);
        let looking = 0.003 * o.far * o.parts * self.slice_rows / 32.0;
        0.5 * o.crossings + work + (0.09 + looking) * o.levels
    }
}

/// Tiles are taken where the model gives them at most so much of the time of ranges: it is off by a sixth.
const WORTH: f64 = 0.9;

/// The longest chain of tiles is at most so much longer than that of ranges: 1.04 times with the holes of a reservoir,
/// where tiles are faster, 1.2 to 1.4 times where they are slower.
const LONGER_CHAIN: f64 = 1.1;

/// Tiles of the lines of a grid.
pub(super) struct Tiles {
    lattice: Lattice,
    tiling: [usize; 2],
    /// Microseconds of a solve, and of one in ranges.
    time: f64,
    of_ranges: f64,
}

impl Tiles {
    /// At most so many tiles of the grid that `lower` is, if it is one, beside so many ranges.
    pub(super) fn of(lower: PatternView, most: usize, ranges: usize, costs: Costs) -> Option<Self> {
        let rows = lower.row_ptr.len() - 1;
        let mut tiles = Self::on(Lattice::of(lower)?, rows, most, ranges, costs)?;
        if !tiles.lattice.is_exact() && tiles.pay() {
            tiles.heed_the_rest(lower, ranges);
        }
        Some(tiles)
    }

    /// The same of a lattice, without a look at couplings that it does not tell of.
    pub(super) fn on(
        lattice: Lattice,
        rows: usize,
        most: usize,
        ranges: usize,
        costs: Costs,
    ) -> Option<Self> {
        let rough = |&tiling: &[usize; 2]| {
            let o = lattice.outline(tiling);
            Costs::CROSSING * o.crossings + costs.work(rows) * o.share
        };
        let tiling = lattice.tilings(most).min_by(|a, b| rough(a).total_cmp(&rough(b)))?;
        let time = costs.solve(rows, &lattice.outline(tiling));
        let of_ranges = costs.solve(rows, &lattice.outline_of_ranges(ranges));
        Some(Self { lattice, tiling, time, of_ranges })
    }

    /// The outline leaves couplings out of account that lead back to tiles before. Where they make the longest chain
    /// much longer than in ranges, its time means nothing: a few in every line, as fill by the rule `overwrite` has
    /// them, make it up to nine times as long, those of holes and wells cost little.
    fn heed_the_rest(&mut self, lower: PatternView, ranges: usize) {
        let triangle = Triangle::new(lower, false);
        let chain = |owners: &Owners| {
            triangle.times(owners, Costs::CROSSING_STEPS).into_iter().max().unwrap_or(0)
        };
        let (of_tiles, of_ranges) =
            rayon::join(|| chain(&self.owners()), || chain(&Owners::ranges(lower, false, ranges)));
        if f64::from(of_tiles) > LONGER_CHAIN * f64::from(of_ranges) {
            self.time = f64::INFINITY;
        }
    }

    /// Whether a solve is faster than in ranges.
    pub(super) fn pay(&self) -> bool {
        self.time <= WORTH * self.of_ranges
    }

    /// Microseconds of a solve in the better of both.
    pub(super) fn best_time(&self) -> f64 {
        if self.pay() { self.time } else { self.of_ranges }
    }

    /// Who has which rows.
    pub(super) fn owners(&self) -> Owners {
        let [across, along] = self.tiling;
        Owners::filled(across * along, self.lattice.tiles(self.tiling))
    }
}

impl Owners {
    /// At most so many parts whose thread blocks are all there at once: tiles of a grid without fill, else ranges.
    pub(super) fn resident(lower: PatternView, most: usize, costs: Costs) -> Self {
        let rows = lower.row_ptr.len() - 1;
        // a chain crosses each bound, the work is shared
        let ranges = (costs.work(rows) / Costs::CROSSING).sqrt().round() as usize;
        let ranges = ranges.clamp(1, most.min(rows.max(1)));
        match Tiles::of(lower, most, ranges, costs).filter(|tiles| tiles.lattice.is_square()) {
            Some(tiles) => tiles.owners(),
            None => Self::ranges(lower, false, ranges),
        }
    }

    /// As [`Self::new`], without parts that have no rows.
    fn filled(parts: usize, of_row: impl Iterator<Item = u32>) -> Self {
        let of_row: Vec<u32> = of_row.collect();
        let mut number = vec![u32::MAX; parts];
        for &part in &of_row {
            number[part as usize] = 0;
        }
        let there = number.iter_mut().filter(|n| **n == 0);
        let count = there.zip(0..).map(|(n, at)| *n = at).count();
        Self::new(count, of_row.into_iter().map(|part| number[part as usize]))
    }
}

/// Operands that rows find in other parts when the triangle is cut into so many.
pub(super) fn far_operands(pattern: PatternView, backward: bool, parts: usize) -> usize {
    let triangle = Triangle::new(pattern, backward);
    let far = |part: &[usize]| {
        let rows = (part[0]..part[1]).map(|place| triangle.turned(place));
        let operands = rows.flat_map(|row| pattern.row(row));
        operands.filter(|&&j| triangle.turned(j as usize) < part[0]).count()
    };
    triangle.cut(parts).par_windows(2).map(far).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::{Pattern, block_pattern};
    use crate::problem;
    use crate::symbolic::iluk;

    const COSTS: Costs = Costs { slice_rows: 16.0, row_bytes: 96.0 };

    fn lower(matrix: &str, block_size: usize, fill: usize) -> Pattern<'static> {
        by_rule(matrix, block_size, fill, LevelRule::Min)
    }

    fn by_rule(matrix: &str, b: usize, fill: usize, rule: LevelRule) -> Pattern<'static> {
        let a = problem::load(matrix, ReadAs::Expanded).unwrap().matrix;
        let a = crate::matrix::bsr::pad(&a, b);
        iluk(&block_pattern(&a.in_blocks(b)), fill, rule, usize::MAX).unwrap().lower.into()
    }

    #[test]
    fn tiles_that_are_needed_back_and_forth_do_not_pay() {
        let of = |matrix: &str, b: usize, fill: usize, rule, ranges| {
            let p = by_rule(matrix, b, fill, rule);
            let row_bytes = (8 * b * b * p.entries() / p.rows()) as f64;
            let costs = Costs { slice_rows: 16.0, row_bytes };
            Tiles::of(p.view(), 132, ranges, costs).expect("a grid")
        };
        // 1,214 steps for 875, and the outline alone has 177 us for 207
        let back = of("poisson3d:64", 2, 3, LevelRule::Overwrite, 56);
        assert!(!back.lattice.is_exact() && !back.pay());
        assert_eq!(back.best_time(), back.of_ranges);
        // wells lead back, too, but there are few
        let wells = of("reservoir:41,k=2,wells=50", 2, 0, LevelRule::Min, 28);
        assert!(wells.pay() && wells.best_time() < wells.of_ranges);
        let exact = of("poisson3d:64", 1, 0, LevelRule::Min, 40);
        assert!(exact.lattice.is_exact() && exact.pay());
    }

    fn chain(n: usize) -> Pattern<'static> {
        let row_ptr: Vec<u32> = (0..=n as u32).map(|i| i.saturating_sub(1)).collect();
        let col_ind: Vec<u32> = (0..n as u32 - 1).collect();
        Pattern::new(row_ptr, col_ind)
    }

    #[test]
    fn lines_of_cells_stay_whole_and_wells_go_with_their_last_cells() {
        let p = lower("reservoir:7x6x8,k=2,wells=3", 2, 0);
        let owners = Owners::resident(p.view(), 13, COSTS);
        assert!((2..=13).contains(&owners.parts.len()), "{}", owners.parts.len());
        assert!(owners.parts.iter().all(|part| !part.is_empty()));
        let part = |i: usize| owners.part(i as u32);
        assert!((0..336).all(|i| part(i) == part(i / 7 * 7)));
        for well in 336..p.rows() {
            assert!(p.row(well).iter().any(|&j| part(j as usize) == part(well)), "{well}");
        }
        let places = owners.of_row.iter().enumerate();
        for (i, &(part, place)) in places {
            assert_eq!(owners.parts[part as usize][place as usize] as usize, i);
        }
    }

    #[test]
    fn tiles_are_as_many_as_pay() {
        let p = lower("poisson3d:20", 1, 0);
        let count = |most, row_bytes| {
            let costs = Costs { row_bytes, ..COSTS };
            Owners::resident(p.view(), most, costs).parts.len()
        };
        assert_eq!([count(132, 0.0), count(132, 137.5), count(132, 1e4)], [16, 25, 100]);
        assert_eq!([count(1, 1e4), count(2, 1e4), count(7, 1e4)], [1, 2, 7]);
    }

    #[test]
    fn tiles_are_taken_where_they_were_faster() {
        // tiles and ranges in microseconds as measured on an H200, both triangles
        for (matrix, b, fill, ranges, split, measured) in [
            ("poisson3d:64", 1, 0, 37, 1, [82.4, 128.9]),
            ("poisson3d:64", 1, 3, 88, 4, [957.9, 692.0]),
            ("blockpoisson3d:64,b=4", 4, 0, 124, 1, [243.1, 366.9]),
            ("blockpoisson3d:64,b=4", 4, 1, 175, 2, [725.7, 604.1]),
            ("reservoir:41,k=2,wells=50", 2, 0, 34, 1, [80.4, 108.9]),
        ] {
            let p = lower(matrix, b, fill);
            let costs = Costs {
                slice_rows: (32 / (b * split)) as f64,
                row_bytes: (8 * b * b * p.view().entries()) as f64 / p.rows() as f64,
            };
            let tiles = Tiles::of(p.view(), 132, ranges, costs).expect("a grid");
            assert_eq!(tiles.pay(), measured[0] < measured[1], "{matrix}, k = {fill}");
            for (found, us) in [tiles.time, tiles.of_ranges].into_iter().zip(measured) {
                let ratio = 2.0 * found / us;
                assert!((0.6..5.0 / 3.0).contains(&ratio), "{matrix}, k = {fill}: {found}");
            }
        }
    }

    #[test]
    fn other_patterns_are_cut_into_ranges() {
        let costs = Costs { slice_rows: 0.5208, row_bytes: 0.0 };
        let owners = Owners::resident(chain(100).view(), 132, costs);
        assert_eq!(owners, Owners::ranges(chain(100).view(), false, 4));
        assert_eq!(Owners::resident(chain(1).view(), 132, COSTS).parts, [[0]]);
    }

    #[test]
    fn ranges_begin_where_a_solve_does() {
        let parts = |backward| Owners::ranges(chain(4).view(), backward, 2).parts;
        assert_eq!(parts(false), [[0, 1], [2, 3]]);
        assert_eq!(parts(true), [[2, 3], [0, 1]]);
    }

    #[test]
    fn parts_have_like_work() {
        let row_ptr: Vec<u32> =
            (0..=1000_u32).map(|i| if i < 3 { i / 2 } else { 3 * i - 6 }).collect();
        let columns = vec![0; 2994];
        let p = PatternView::new(&row_ptr, &columns);
        assert_eq!(Triangle::new(p, false).cut(4), [0, 251, 501, 751, 1000]);
    }

    #[test]
    fn what_crosses_parts_is_expected_later() {
        let chain = chain(4);
        let triangle = Triangle::new(chain.view(), false);
        let owners = Owners::ranges(chain.view(), false, 2);
        assert_eq!(triangle.times(&owners, 12), [0, 1, 13, 14]);
    }
}
