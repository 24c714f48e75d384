//! At which distances from the rows of each colour their columns are, where all rows of a colour have the
//! same.

use crate::base::threads::Threads;
use crate::matrix::inverse_on;
use crate::matrix::pattern::PatternView;
use crate::symbolic::{FillPattern, box_extents};

/// Distance between two cells, or a cell.
pub(super) type Cell = [i32; 3];

/// Most distances of a colour in a triangle, and of all.
const MOST: usize = 64;

/// Most places of all lists over entries, as a fraction: rows at faces lack some.
const FILLED_UP: [usize; 2] = [4, 3];

/// Rows that a task looks at.
const TASK: usize = 1 << 12;

/// A factor's rows as cells of a box, with a list of distances for each colour.
pub(super) struct Lists {
    /// Cells along x, y and z.
    pub(super) extents: Cell,
    /// Colour of each cell.
    pub(super) colour: Vec<u8>,
    /// Row of the factors of each cell.
    pub(super) row: Vec<u32>,
    /// For L and for U', for each colour: distances from a row to its columns, in the order of the solves.
    pub(super) of: [Vec<Vec<Cell>>; 2],
}

/// A distance that has occurred: between numbers of cells, between cells, and the least colour it leads to.
#[derive(Clone, Copy)]
struct Seen {
    far: i64,
    offset: Cell,
    colour: u8,
}

impl Lists {
    /// Of factors whose row i is cell `order[i]`, and is of colour c from `ends[c]` on. `None` where the cells are
    /// not those of a box, or rows of a colour have too little in common.
    pub(super) fn new(pattern: &FillPattern, ends: &[u32], order: &[u32]) -> Option<Self> {
        let row = inverse_on(Threads::Pool, order);
        let (lower, upper) = (pattern.lower.view(), pattern.upper.view());
        let coupled = |i: usize, j: usize| {
            let (i, j) = (row[i], row[j]);
            lower.row(i as usize).contains(&j) || upper.row(i as usize).contains(&j)
        };
        let extents = box_extents(order.len(), coupled)?.map(|n| n as i32);
        let colours = ends.len() - 1;
        let of_row = |i: u32| (ends.partition_point(|&end| end <= i) - 1) as u8;
        let colour: Vec<u8> = Threads::Pool.map(row.len(), TASK, |i| of_row(row[i]));
        let found = Self { extents, colour, row, of: [Vec::new(), Vec::new()] };
        let lists = |t: PatternView| -> Option<Vec<Vec<Cell>>> {
            (0..colours).map(|c| found.list(t, ends, order, c)).collect()
        };
        let of = [lists(lower)?, lists(upper)?];
        let places = |lists: &[Vec<Cell>]| -> usize {
            lists.iter().zip(ends.windows(2)).map(|(l, w)| l.len() * (w[1] - w[0]) as usize).sum()
        };
        let (there, all) = (pattern.blocks() - order.len(), places(&of[0]) + places(&of[1]));
        let found = Self { of, ..found };
        let dense = all * FILLED_UP[1] <= there * FILLED_UP[0];
        (dense && [lower, upper].into_iter().enumerate().all(|(t, p)| found.in_turn(t, p, order)))
            .then_some(found)
    }

    /// Whether cells at the distances of a triangle's lists are of earlier colours (L) or later ones (U') also
    /// where a row lacks the entry: others wait for them all the same.
    fn in_turn(&self, upper: usize, t: PatternView, order: &[u32]) -> bool {
        let row = |i: usize| {
            let colour = self.colour[order[i] as usize];
            let list = &self.of[upper][colour as usize];
            let from = self.cell(order[i]);
            t.row(i).len() == list.len()
                || list.iter().map(|o| std::array::from_fn(|k| from[k] + o[k])).all(|to| {
                    !self.has(to) || {
                        let other = self.colour[self.number(to) as usize];
                        if upper == 0 { other < colour } else { other > colour }
                    }
                })
        };
        Threads::Pool.all(order.len(), TASK, row)
    }

    /// The cell with a number.
    pub(super) fn cell(&self, i: u32) -> Cell {
        let [nx, ny, _] = self.extents.map(|n| n as u32);
        [i % nx, i / nx % ny, i / nx / ny].map(|c| c as i32)
    }

    /// Whether there is such a cell.
    pub(super) fn has(&self, cell: Cell) -> bool {
        (0..3).all(|axis| (0..self.extents[axis]).contains(&cell[axis]))
    }

    /// The number of a cell.
    pub(super) fn number(&self, [x, y, z]: Cell) -> u32 {
        let [nx, ny, _] = self.extents;
        ((z * ny + y) * nx + x) as u32
    }

    /// All distances of rows of colour `c` in a triangle, sorted by the colour they lead to: the order of
    /// columns, if each leads to one.
    fn list(&self, t: PatternView, ends: &[u32], order: &[u32], c: usize) -> Option<Vec<Cell>> {
        let add = |seen: &mut Vec<Seen>, i: usize| -> Option<()> {
            let from = self.cell(order[i]);
            for (at, &j) in t.row(i).iter().enumerate() {
                let (to, far) =
                    (order[j as usize], i64::from(order[j as usize]) - i64::from(order[i]));
                // most rows have what the rows before had, in its order
                let known = match seen.get(at) {
                    Some(s) if s.far == far => Some(s),
                    _ => seen.iter().find(|s| s.far == far),
                };
                if let Some(s) = known {
                    // equal numbers can be far in another way: round a face
                    if !self.has(std::array::from_fn(|k| from[k] + s.offset[k])) {
                        return None;
                    }
                } else if seen.len() < MOST {
                    let cell = self.cell(to);
                    let offset = std::array::from_fn(|k| cell[k] - from[k]);
                    seen.push(Seen { far, offset, colour: self.colour[to as usize] });
                } else {
                    return None;
                }
            }
            Some(())
        };
        // of equal tasks, whatever threads there are: they tell the least colour
        let (first, end) = (ends[c] as usize, ends[c + 1] as usize);
        let task = |task: usize| -> Option<Vec<Seen>> {
            let (mut seen, from) = (Vec::new(), first + task * TASK);
            (from..end.min(from + TASK)).try_for_each(|i| add(&mut seen, i)).map(|()| seen)
        };
        let merge = |mut a: Vec<Seen>, b: Vec<Seen>| -> Option<Vec<Seen>> {
            for b in b {
                match a.iter_mut().find(|a| a.far == b.far) {
                    Some(a) if a.offset != b.offset => return None,
                    Some(a) => a.colour = a.colour.min(b.colour),
                    None => a.push(b),
                }
            }
            (a.len() <= MOST).then_some(a)
        };
        let found = Threads::Pool.map((end - first).div_ceil(TASK), 1, task);
        let mut seen = found.into_iter().try_fold(Vec::new(), |all, seen| merge(all, seen?))?;
        seen.sort_unstable_by_key(|s| (s.colour, s.far));
        Some(seen.into_iter().map(|s| s.offset).collect())
    }

    /// Farthest distance along each axis.
    pub(super) fn reach(&self) -> Cell {
        let all = || self.of.iter().flatten().flatten();
        std::array::from_fn(|axis| all().map(|o| o[axis].abs()).max().unwrap_or(0))
    }

    /// Every distance once, and for L and U' which of them each colour has, a bit each. `None` for more
    /// than there are bits.
    pub(super) fn masks(&self) -> Option<(Vec<Cell>, [Vec<u64>; 2])> {
        let mut all: Vec<Cell> = self.of.iter().flatten().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        let bit = |o: &Cell| 1_u64 << all.binary_search(o).expect("one of all");
        let of = |lists: &Vec<Vec<Cell>>| lists.iter().map(|l| l.iter().map(bit).sum()).collect();
        let enough = all.len() <= MOST;
        enough.then(|| [of(&self.of[0]), of(&self.of[1])]).map(|masks| (all, masks))
    }
}
