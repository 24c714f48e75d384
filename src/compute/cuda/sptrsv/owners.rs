//! Who solves which rows of a triangular factor.

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

    /// When each row can be done, in steps: one after a row of its own part, `crossing` after one of
    /// another.
    pub(super) fn times(self, owners: &Owners, crossing: u32) -> Vec<u32> {
        let part = owners.of_rows();
        let mut time = vec![0u32; self.rows];
        for place in 0..self.rows {
            let row = self.turned(place);
            let mut at = 0;
            for &j in self.pattern.row(row) {
                let step = if part[j as usize] == part[row] { 1 } else { crossing };
                at = at.max(time[j as usize].saturating_add(step));
            }
            time[row] = at;
        }
        time
    }
}

/// Who solves which rows: each part has runs of consecutive rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owners {
    /// How many parts there are.
    pub(super) parts: usize,
    /// First rows of the runs, and one past the last row.
    pub(super) starts: Vec<u32>,
    /// The part of each run.
    pub(super) of_run: Vec<u32>,
}

impl Owners {
    /// Ranges of about equal work of a triangle with rows that begin at `row_ptr`, the first at the end where a solve
    /// begins: each needs values of those before it only.
    pub(super) fn ranges(row_ptr: &[u32], backward: bool, parts: usize) -> Self {
        let mut starts = cut(row_ptr, backward, parts);
        let mut of_run: Vec<u32> = (0..parts as u32).collect();
        if backward {
            let rows = row_ptr.len() - 1;
            starts = starts.into_iter().rev().map(|place| rows as u32 - place).collect();
            of_run.reverse();
        }
        Self { parts, starts, of_run }
    }

    /// Those of runs, of which the parts that have none are left out.
    fn filled(parts: usize, starts: &[u32], of_run: &[u32]) -> Self {
        let mut number = vec![u32::MAX; parts];
        for &part in of_run {
            number[part as usize] = 0;
        }
        let there = number.iter_mut().filter(|n| **n == 0);
        let parts = there.zip(0..).map(|(n, at)| *n = at).count();
        let of_run = of_run.iter().map(|&part| number[part as usize]).collect();
        Self { parts, starts: starts.to_vec(), of_run }
    }

    /// The part of each row.
    pub(super) fn of_rows(&self) -> Vec<u32> {
        let runs = self.starts.windows(2).zip(&self.of_run);
        runs.flat_map(|(ends, &part)| (ends[0]..ends[1]).map(move |_| part)).collect()
    }

    /// Rows of the largest part.
    pub(super) fn largest(&self) -> usize {
        let mut rows = vec![0; self.parts];
        for (ends, &part) in self.starts.windows(2).zip(&self.of_run) {
            rows[part as usize] += (ends[1] - ends[0]) as usize;
        }
        rows.into_iter().max().unwrap_or(0)
    }
}

/// Cuts the places of a triangle with rows that begin at `row_ptr` into ranges of about equal work: entries and rows.
fn cut(row_ptr: &[u32], backward: bool, parts: usize) -> Vec<u32> {
    let rows = row_ptr.len() - 1;
    let entries = row_ptr[rows] as usize;
    // entries and rows before a place
    let before = |place: usize| {
        let start = |row: usize| row_ptr[row] as usize;
        place + if backward { entries - start(rows - place) } else { start(place) }
    };
    let mut bounds = vec![0];
    for part in 1..parts {
        let wanted = ((entries + rows) as u128 * part as u128 / parts as u128) as usize;
        let (mut low, mut high) = (bounds[part - 1], rows);
        while low < high {
            let middle = usize::midpoint(low, high);
            if before(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        bounds.push(low);
    }
    bounds.push(rows);
    bounds.into_iter().map(|place| place as u32).collect()
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
    pub(super) const CROSSING_STEPS: u32 = 6;

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
pub(super) struct Tiles<'a> {
    lattice: &'a Lattice,
    tiling: [usize; 2],
    /// Microseconds of a solve, and of one in ranges.
    time: f64,
    of_ranges: f64,
}

impl<'a> Tiles<'a> {
    /// At most so many tiles of a grid with so many rows, beside so many ranges.
    pub(super) fn of(
        lattice: &'a Lattice,
        rows: usize,
        (most, ranges): (usize, usize),
        costs: Costs,
        chain: &Chain,
    ) -> Option<Self> {
        let rough = |&tiling: &[usize; 2]| {
            let o = lattice.outline(tiling);
            Costs::CROSSING * o.crossings + costs.work(rows) * o.share
        };
        let tiling = lattice.tilings(most).min_by(|a, b| rough(a).total_cmp(&rough(b)))?;
        let time = costs.solve(rows, &lattice.outline(tiling));
        let of_ranges = costs.solve(rows, &lattice.outline_of_ranges(ranges));
        let mut tiles = Self { lattice, tiling, time, of_ranges };
        if !lattice.is_exact() && tiles.pay() && tiles.lead_back(ranges, chain) {
            tiles.time = f64::INFINITY;
        }
        Some(tiles)
    }

    /// The outline leaves couplings out of account that lead back to tiles before. Where they make the longest chain
    /// much longer than in ranges, its time means nothing: a few in every line, as fill by the rule `overwrite` has
    /// them, make it up to nine times as long, those of holes and wells cost little.
    fn lead_back(&self, ranges: usize, chain: &Chain) -> bool {
        let both = chain(&Parts::Owned(self.owners())).zip(chain(&Parts::Ranges(ranges)));
        both.is_none_or(|(tiles, ranges)| f64::from(tiles) > LONGER_CHAIN * f64::from(ranges))
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
        let of_line = self.lattice.tiles(self.tiling);
        Owners::filled(across * along, self.lattice.starts(), &of_line)
    }
}

/// Tells the steps of the longest chain of dependencies in parts of L, [`Costs::CROSSING_STEPS`] from one part to
/// another; `None` where it cannot.
pub(super) type Chain<'a> = dyn Fn(&Parts) -> Option<u32> + 'a;

/// Parts of a triangle.
pub(super) enum Parts {
    Owned(Owners),
    /// So many ranges of rows.
    Ranges(usize),
}

impl Parts {
    /// At most so many whose thread blocks are all there at once: tiles of a grid without fill, else ranges.
    pub(super) fn resident(
        lattice: Option<&Lattice>,
        rows: usize,
        most: usize,
        costs: Costs,
        chain: &Chain,
    ) -> Self {
        // a chain crosses each bound, the work is shared
        let ranges = (costs.work(rows) / Costs::CROSSING).sqrt().round() as usize;
        let ranges = ranges.clamp(1, most.min(rows.max(1)));
        let square = lattice.filter(|lattice| lattice.is_square());
        match square.and_then(|of| Tiles::of(of, rows, (most, ranges), costs, chain)) {
            Some(tiles) => Self::Owned(tiles.owners()),
            None => Self::Ranges(ranges),
        }
    }

    /// Who has which rows of a triangle with rows that begin at `row_ptr`.
    pub(super) fn owners(self, row_ptr: &[u32], backward: bool) -> Owners {
        match self {
            Self::Owned(owners) => owners,
            Self::Ranges(parts) => Owners::ranges(row_ptr, backward, parts),
        }
    }
}

/// Steps of the longest chain of dependencies in parts of L, found on the host.
#[cfg(test)]
pub(super) fn chain_of(lower: PatternView, parts: &Parts) -> u32 {
    let ranges;
    let owners = match parts {
        Parts::Owned(owners) => owners,
        Parts::Ranges(count) => {
            ranges = Owners::ranges(lower.row_ptr, false, *count);
            &ranges
        }
    };
    let times = Triangle::new(lower, false).times(owners, Costs::CROSSING_STEPS);
    times.into_iter().max().unwrap_or(0)
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
            let lattice = Lattice::of(p.view()).expect("a grid");
            let chain = |parts: &Parts| Some(chain_of(p.view(), parts));
            let tiles = Tiles::of(&lattice, p.rows(), (132, ranges), costs, &chain);
            let tiles = tiles.expect("a grid");
            (lattice.is_exact(), tiles.pay(), tiles.best_time(), tiles.of_ranges)
        };
        // 1,214 steps for 875, and the outline alone has 177 us for 207
        let back = of("poisson3d:64", 2, 3, LevelRule::Overwrite, 56);
        assert_eq!((back.0, back.1, back.2), (false, false, back.3));
        // wells lead back, too, but there are few
        let wells = of("reservoir:41,k=2,wells=50", 2, 0, LevelRule::Min, 28);
        assert!(wells.1 && wells.2 < wells.3);
        let exact = of("poisson3d:64", 1, 0, LevelRule::Min, 40);
        assert!(exact.0 && exact.1);
    }

    /// [`Parts::resident`] of L.
    fn resident(p: &Pattern, most: usize, costs: Costs) -> Owners {
        let (lattice, chain) =
            (Lattice::of(p.view()), |parts: &Parts| Some(chain_of(p.view(), parts)));
        let parts = Parts::resident(lattice.as_ref(), p.rows(), most, costs, &chain);
        parts.owners(&p.row_ptr, false)
    }

    fn chain(n: usize) -> Pattern<'static> {
        let row_ptr: Vec<u32> = (0..=n as u32).map(|i| i.saturating_sub(1)).collect();
        let col_ind: Vec<u32> = (0..n as u32 - 1).collect();
        Pattern::new(row_ptr, col_ind)
    }

    #[test]
    fn lines_of_cells_stay_whole_and_wells_go_with_their_last_cells() {
        let p = lower("reservoir:7x6x8,k=2,wells=3", 2, 0);
        let owners = resident(&p, 13, COSTS);
        assert!((2..=13).contains(&owners.parts), "{}", owners.parts);
        let of_rows = owners.of_rows();
        assert!((0..owners.parts as u32).all(|part| of_rows.contains(&part)));
        let part = |i: usize| of_rows[i];
        assert!((0..336).all(|i| part(i) == part(i / 7 * 7)));
        for well in 336..p.rows() {
            assert!(p.row(well).iter().any(|&j| part(j as usize) == part(well)), "{well}");
        }
    }

    #[test]
    fn tiles_are_as_many_as_pay() {
        let p = lower("poisson3d:20", 1, 0);
        let count = |most, row_bytes| {
            let costs = Costs { row_bytes, ..COSTS };
            resident(&p, most, costs).parts
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
            let lattice = Lattice::of(p.view()).expect("a grid");
            let chain = |parts: &Parts| Some(chain_of(p.view(), parts));
            let tiles = Tiles::of(&lattice, p.rows(), (132, ranges), costs, &chain);
            let tiles = tiles.expect("a grid");
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
        let owners = resident(&chain(100), 132, costs);
        assert_eq!(owners, Owners::ranges(&chain(100).row_ptr, false, 4));
        let one = Owners { parts: 1, starts: vec![0, 1], of_run: vec![0] };
        assert_eq!(resident(&chain(1), 132, COSTS), one);
    }

    #[test]
    fn ranges_begin_where_a_solve_does() {
        let parts = |backward| Owners::ranges(&chain(4).row_ptr, backward, 2).of_rows();
        assert_eq!([parts(false), parts(true)], [[0, 0, 1, 1], [1, 1, 0, 0]]);
        assert_eq!(Owners::ranges(&chain(4).row_ptr, true, 1).largest(), 4);
    }

    #[test]
    fn parts_have_like_work() {
        let row_ptr: Vec<u32> =
            (0..=1000_u32).map(|i| if i < 3 { i / 2 } else { 3 * i - 6 }).collect();
        assert_eq!(cut(&row_ptr, false, 4), [0, 251, 501, 751, 1000]);
    }

    #[test]
    fn what_crosses_parts_is_expected_later() {
        let chain = chain(4);
        let triangle = Triangle::new(chain.view(), false);
        let owners = Owners::ranges(&chain.row_ptr, false, 2);
        assert_eq!(triangle.times(&owners, 12), [0, 1, 13, 14]);
    }
}
