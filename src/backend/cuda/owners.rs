//! Who solves which rows of a triangular factor.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::symbolic::PatternView;

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

/// A box of cells, lines of `line` of them, planes of `plane`, that the first `count` rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cells {
    line: usize,
    plane: usize,
    count: usize,
}

impl Cells {
    /// The box of a 7-point stencil, by the distances at which most rows of `lower` have an entry. Rows
    /// behind the box may be anything.
    fn of(lower: PatternView) -> Option<Self> {
        let rows = lower.row_ptr.len() - 1;
        let mut counts: HashMap<usize, usize> = HashMap::new();
        let mut last = 0;
        for i in 0..rows {
            for &j in lower.row(i) {
                *counts.entry(i - j as usize).or_default() += 1;
            }
        }
        counts.retain(|_, count| *count > rows / 2);
        let mut distances: Vec<usize> = counts.into_keys().collect();
        distances.sort_unstable();
        let &[1, line, plane] = &distances[..] else { return None };
        for i in 0..rows {
            if lower.row(i).iter().any(|&j| i - j as usize == plane) {
                last = i;
            }
        }
        // the last cell is one of those that have a cell below
        let count = (last + 1).next_multiple_of(plane);
        let fits = plane.is_multiple_of(line) && count <= rows;
        fits.then_some(Self { line, plane, count })
    }
}

/// What the number of parts of a box is chosen by, in microseconds: from a value to the row that needs
/// it in another part, and the work of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) crossing: f64,
    pub(super) row: f64,
}

impl Owners {
    /// At most so many parts whose thread blocks are all there at once: of a box whole lines of cells, in
    /// tiles, so that a chain of dependencies crosses few bounds; else ranges. Rows behind the box, as
    /// those of wells are, belong to the part that has the first row that they need.
    pub(super) fn resident(lower: PatternView, most: usize, costs: Costs) -> Self {
        let rows = lower.row_ptr.len() - 1;
        let Some(Cells { line, plane, count: cells }) = Cells::of(lower) else {
            // a chain crosses each bound, the work is shared
            let wanted = (costs.row * rows as f64 / costs.crossing).sqrt().round() as usize;
            return Self::ranges(lower, false, wanted.clamp(1, most.min(rows.max(1))));
        };
        let (lines, planes) = (plane / line, cells / plane);
        let time = |across: usize, along: usize| {
            let own = lines.div_ceil(across) * planes.div_ceil(along) * line;
            costs.crossing * (across + along - 2) as f64 + costs.row * own as f64
        };
        let tilings = (1..=lines.min(most))
            .flat_map(|across| (1..=planes.min(most / across)).map(move |along| (across, along)));
        let (across, along) = tilings
            .min_by(|a, b| time(a.0, a.1).total_cmp(&time(b.0, b.1)))
            .expect("one tile is one");
        let mut of_row: Vec<u32> = Vec::with_capacity(rows);
        for i in 0..rows {
            of_row.push(if i < cells {
                let (in_line, in_plane) = (i % plane / line, i / plane);
                (in_plane * along / planes * across + in_line * across / lines) as u32
            } else {
                lower.row(i).first().map_or(0, |&j| of_row[j as usize])
            });
        }
        Self::new(across * along, of_row)
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
    use crate::case::ReadAs;
    use crate::problem;
    use crate::symbolic::{Pattern, block_pattern, iluk};

    const COSTS: Costs = Costs { crossing: 0.8, row: 0.02 };

    fn lower(matrix: &str, block_size: usize, fill: usize) -> Pattern<'static> {
        let a = problem::load(matrix, ReadAs::Expanded).unwrap().matrix;
        let a = crate::matrix::bsr::pad(&a, block_size).map_or(a, std::sync::Arc::new);
        let pattern = block_pattern(&a, block_size);
        iluk(&pattern, fill, crate::case::LevelRule::Min, usize::MAX).unwrap().lower
    }

    fn chain(n: usize) -> Pattern<'static> {
        let row_ptr: Vec<u32> = (0..=n as u32).map(|i| i.saturating_sub(1)).collect();
        let col_ind: Vec<u32> = (0..n as u32 - 1).collect();
        Pattern { row_ptr: row_ptr.into(), col_ind: col_ind.into() }
    }

    #[test]
    fn boxes_are_found_with_and_without_wells() {
        let found = |matrix, b, fill| Cells::of(lower(matrix, b, fill).view());
        let cells = |line, plane, count| Some(Cells { line, plane, count });
        assert_eq!(found("poisson3d:5x4x3", 1, 0), cells(5, 20, 60));
        assert_eq!(found("reservoir:7x6x8,k=2,wells=3", 2, 0), cells(7, 42, 336));
        assert_eq!(found("reservoir:9x10x11,k=1,wells=4", 1, 0), cells(9, 90, 990));
        // filled, and of two dimensions
        assert_eq!(found("poisson3d:5x4x3", 1, 1), None);
        assert_eq!(found("poisson3d:9x8x1", 1, 0), None);
        assert_eq!(found("poisson3d:1x1x1", 1, 0), None);
    }

    #[test]
    fn lines_of_cells_stay_whole_and_wells_go_with_their_first_cell() {
        let p = lower("reservoir:7x6x8,k=2,wells=3", 2, 0);
        let owners = Owners::resident(p.view(), 13, COSTS);
        assert!((2..=13).contains(&owners.parts.len()), "{}", owners.parts.len());
        assert!(owners.parts.iter().all(|part| !part.is_empty()));
        let part = |i: usize| owners.part(i as u32);
        assert!((0..336).all(|i| part(i) == part(i / 7 * 7)));
        for well in 336..p.rows() {
            assert_eq!(part(well), part(p.row(well)[0] as usize));
        }
        let places = owners.of_row.iter().enumerate();
        for (i, &(part, place)) in places {
            assert_eq!(owners.parts[part as usize][place as usize] as usize, i);
        }
    }

    #[test]
    fn tiles_are_as_many_as_pay() {
        let p = lower("poisson3d:20", 1, 0);
        let count =
            |most, row| Owners::resident(p.view(), most, Costs { crossing: 0.8, row }).parts.len();
        assert_eq!([count(132, 1e-6), count(132, 0.02), count(132, 1.0)], [1, 25, 100]);
        assert_eq!([count(1, 1.0), count(2, 1.0), count(7, 1.0)], [1, 2, 7]);
    }

    #[test]
    fn other_patterns_are_cut_into_ranges() {
        let owners = Owners::resident(chain(100).view(), 132, Costs { crossing: 1.0, row: 0.16 });
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
        let p = PatternView { row_ptr: &row_ptr, col_ind: &vec![0; 2994] };
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
