//! Orders by the colours of lattices and the patterns of factors in them, where a matrix is a whole stencil on a
//! box: what a row has depends on the faces near it and on its place in the lattices alone. So it is found once
//! for each combination of these, and written down for all rows that have it.

use std::collections::BTreeMap;

use super::colour::sure;
use super::lattice::{Cell, MOST_DISTANCES};
use super::stencil::cell;
use super::{Colouring, Eliminated, FillPattern, Lattice, Rest, Schedule, Stencil};
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::Pattern;
use crate::matrix::pattern::rows::{Lengths, laid};

/// Most combinations of faces and phases.
const MOST_COMBINATIONS: usize = 1 << 16;

/// No cell.
const NONE: u32 = u32::MAX;

/// An order in which no row is coupled with another of its set, and the factors' pattern in it.
pub(super) type Ordered = (Schedule, FillPattern);

/// ILU(p) in the order of the colours of a lattice for `|A|^q`, p below q: that of
/// [`colours_of_power`](super::colours_of_power) and [`iluk`](super::iluk). `None` where `a`, with all diagonals,
/// is no whole stencil on a box, where first fit may have fewer colours, or where the factors have more than
/// `limit` entries.
pub fn coloured(
    threads: Threads,
    a: &Pattern,
    [p, q]: [usize; 2],
    how: Colouring,
    limit: usize,
) -> Option<Ordered> {
    if how == Colouring::FirstFit || p >= q {
        return None;
    }
    let grid = Grid::of(threads, a)?;
    let (lattice, couplings) = Lattice::of_stencil(&grid.stencil, q)?;
    if !sure(&lattice, q, couplings) {
        return None;
    }
    let phases = Phases { count: lattice.colours, period: lattice.period() };
    let phase = |c: Cell| lattice.colour(c);
    let survey = grid.survey(threads, &phases, p + 1, phase)?;
    let set = survey.numbered(phases.count, |phase| phase);
    let level = |c: Cell| set[phase(c)];
    grid.laid(threads, &survey, &set, &level, limit, |from| grid.filled(from, p, &level))
}

/// [`multi_elimination`](super::multi_elimination) with one level. `None` as for [`coloured`], and where the first
/// set is more than one of two colours.
pub fn eliminated(threads: Threads, a: &Pattern, rest: Rest, limit: usize) -> Option<Eliminated> {
    let grid = Grid::of(threads, a)?;
    let (two, _) = Lattice::of_stencil(&grid.stencil, 1)?;
    if two.colours != 2 {
        return None;
    }
    let phases = Phases { count: 2, period: two.period() };
    let survey = grid.survey(threads, &phases, 2, |c| two.colour(c))?;
    let left = || survey.there(2).filter(|(phase, ..)| *phase == 1);
    // the set takes rows in their order: it is the first colour if all others have a neighbour before them
    let earlier = |from: Cell| grid.around(from).any(|c| grid.number(c) < grid.number(from));
    if !left().all(|(_, from, _)| earlier(grid.cell(from))) {
        return None;
    }
    let size = survey.rows() - left().map(|(.., rows)| rows).sum::<usize>();
    let Rest::Coloured(how) = rest else {
        let set = survey.numbered(2, |phase| phase);
        let level = |c: Cell| set[two.colour(c)];
        let couplings = |from: Cell| grid.around(from).collect();
        let found = grid.laid(threads, &survey, &set, &level, limit, couplings)?;
        return Some(with_set(found, size));
    };
    if how == Colouring::FirstFit {
        return None;
    }
    let lattice = grid.lattice_of_left(left(), survey.rows() - size, limit)?;
    // rows of the set are told apart by the colours of their neighbours, of which one tells the others
    let (colours, first) = (lattice.colours, grid.offsets[0]);
    let phase = |c: Cell| match two.colour(c) {
        0 => lattice.colour(plus(c, first)),
        _ => colours + lattice.colour(c),
    };
    let phases = Phases { count: 2 * colours, period: two.period() * lattice.period() };
    let survey = grid.survey(threads, &phases, 2, phase)?;
    let set = survey.numbered(phases.count, |phase| if phase < colours { 0 } else { phase });
    let level = |c: Cell| set[phase(c)];
    let couplings = |from: Cell| {
        let more = if level(from) == 0 { Vec::new() } else { grid.reached(from) };
        grid.around(from).chain(more.into_iter().filter(|c| *c != from)).collect()
    };
    let found = grid.laid(threads, &survey, &set, &level, limit, couplings)?;
    Some(with_set(found, size))
}

fn with_set((sets, pattern): Ordered, size: usize) -> Eliminated {
    Eliminated { sets, pattern, sizes: vec![size] }
}

fn plus(a: Cell, b: Cell) -> Cell {
    std::array::from_fn(|k| a[k] + b[k])
}

fn less(a: Cell, b: Cell) -> Cell {
    std::array::from_fn(|k| a[k] - b[k])
}

/// What tells cells apart besides the faces near them.
struct Phases {
    count: usize,
    /// Steps along x after which phases come again.
    period: usize,
}

/// A box with a whole stencil, which has the cell itself and is the same to both sides.
struct Grid {
    stencil: Stencil,
    block_size: usize,
    /// Without the cell itself.
    offsets: Vec<Cell>,
}

impl Grid {
    fn of(threads: Threads, a: &Pattern) -> Option<Self> {
        let stencil = Stencil::complete(threads, a.view())?;
        let (all, itself) = (&stencil.offsets, [0; 3]);
        let mirrored = |o: &Cell| all.contains(&less(itself, *o));
        if !all.contains(&itself) || !all.iter().all(mirrored) {
            return None;
        }
        let offsets: Vec<Cell> = all.iter().copied().filter(|o| *o != itself).collect();
        (!offsets.is_empty()).then_some(Self { stencil, block_size: a.block_size(), offsets })
    }

    fn cell(&self, row: u32) -> Cell {
        cell(self.stencil.extents, row)
    }

    fn number(&self, [x, y, z]: Cell) -> i32 {
        let [nx, ny, _] = self.stencil.extents.map(|n| n as i32);
        (z * ny + y) * nx + x
    }

    fn inside(&self, c: Cell) -> bool {
        (0..3).all(|k| (0..self.stencil.extents[k] as i32).contains(&c[k]))
    }

    /// Neighbours of a cell.
    fn around(&self, from: Cell) -> impl Iterator<Item = Cell> {
        self.offsets.iter().map(move |o| plus(from, *o)).filter(|c| self.inside(*c))
    }

    /// What two steps lead to: where the first one leads to a row that is gone, what that couples.
    fn reached(&self, from: Cell) -> Vec<Cell> {
        let mut reached: Vec<Cell> = self.around(from).flat_map(|c| self.around(c)).collect();
        reached.sort_unstable();
        reached.dedup();
        reached
    }

    /// The lattice whose colours `rows` rows have that are `left`, if it has surely fewer than first fit.
    fn lattice_of_left(
        &self,
        left: impl Iterator<Item = (usize, u32, usize)>,
        rows: usize,
        limit: usize,
    ) -> Option<Lattice> {
        let (mut distances, mut entries) = (Vec::new(), 0);
        for (_, from, rows) in left {
            let from = self.cell(from);
            let reached = self.reached(from);
            entries += rows * reached.len();
            distances.extend(reached.into_iter().map(|c| less(c, from)));
            distances.sort_unstable();
            distances.dedup();
        }
        if entries > limit || distances.len() > MOST_DISTANCES {
            return None;
        }
        let lattice = Lattice::new(self.stencil.extents, &distances)?;
        let then = |a: &Cell| self.offsets.iter().map(|b| plus(*a, *b)).collect::<Vec<_>>();
        let all: Vec<Cell> = self.offsets.iter().flat_map(then).collect();
        (2 * lattice.colours * rows <= entries && lattice.is_of(&all)).then_some(lattice)
    }

    /// How far `steps` lead along an axis.
    fn reach(&self, axis: usize, steps: usize) -> usize {
        let far = self.offsets.iter().map(|o| o[axis].unsigned_abs() as usize).max();
        far.unwrap_or(0) * steps
    }

    /// What ILU(p) couples a cell with: cells that at most p + 1 steps lead to, over cells of lower levels than
    /// both ends (Hysom and Pothen 2001).
    fn filled(&self, from: Cell, p: usize, level: &impl Fn(Cell) -> u32) -> Vec<Cell> {
        // the least there is of the highest level on the way
        let mut highest: BTreeMap<Cell, u32> = self.around(from).map(|c| (c, 0)).collect();
        let mut last = highest.clone();
        for _ in 0..p {
            let mut next = BTreeMap::new();
            for (&over, &before) in &last {
                let way = before.max(level(over) + 1);
                for c in self.around(over).filter(|c| way <= level(from) && *c != from) {
                    if highest.get(&c).is_none_or(|known| way < *known) {
                        highest.insert(c, way);
                        next.insert(c, way);
                    }
                }
            }
            last = next;
        }
        let coupled = |(c, way): (Cell, u32)| (way <= level(c)).then_some(c);
        highest.into_iter().filter_map(coupled).collect()
    }

    /// Goes through all cells, of which those that `steps` lead to differ by faces and phases alone.
    fn survey(
        &self,
        threads: Threads,
        phases: &Phases,
        steps: usize,
        phase: impl Fn(Cell) -> usize + Sync,
    ) -> Option<Survey> {
        /// Lines of a task.
        const LINES: usize = 64;
        let [nx, ny, nz] = self.stencil.extents;
        let faces: [Faces; 3] =
            std::array::from_fn(|k| Faces::new(self.stencil.extents[k], self.reach(k, steps)));
        let all = faces.iter().map(|f| f.count).product::<usize>() * phases.count;
        if all > MOST_COMBINATIONS {
            return None;
        }
        let mut of_cell = memory::zeroed::<u16>(nx * ny * nz);
        let task = |(number, part): (usize, &mut [u16])| {
            let (mut first, mut rows) = (vec![NONE; all], vec![0_u32; all]);
            let mut along = vec![0; phases.period.min(nx)];
            for (at, line) in part.chunks_mut(nx).enumerate() {
                let (y, z) = ((number * LINES + at) % ny, (number * LINES + at) / ny);
                let start = faces[2].of[z] * faces[1].count + faces[1].of[y];
                for (x, of) in along.iter_mut().enumerate() {
                    *of = phase([x, y, z].map(|c| c as i32));
                }
                let again = along.iter().cycle();
                for (x, ((of_cell, near), phase)) in
                    line.iter_mut().zip(&faces[0].of).zip(again).enumerate()
                {
                    let of = (start * faces[0].count + near) * phases.count + phase;
                    *of_cell = of as u16;
                    if rows[of] == 0 {
                        first[of] = ((number * LINES + at) * nx + x) as u32;
                    }
                    rows[of] += 1;
                }
            }
            (first, rows)
        };
        let tasks = of_cell.chunks_mut(nx * LINES).enumerate().collect();
        let (mut first, mut rows) = (vec![NONE; all], vec![0_u32; all]);
        for (of_first, of_rows) in threads.each(tasks, task) {
            first.iter_mut().zip(of_first).for_each(|(all, part)| *all = part.min(*all));
            rows.iter_mut().zip(of_rows).for_each(|(all, part)| *all += part);
        }
        Some(Survey { of_cell, first, rows, phases: phases.count })
    }

    /// Cells by the sets of their phases, and in that order the triangles of what `couplings` says of one cell
    /// of each combination.
    fn laid(
        &self,
        threads: Threads,
        survey: &Survey,
        set: &[u32],
        level: &(impl Fn(Cell) -> u32 + Sync),
        limit: usize,
        couplings: impl Fn(Cell) -> Vec<Cell> + Sync,
    ) -> Option<Ordered> {
        // distances to the couplings, in the order of the sets and of their rows: the same for all
        let row = |of: usize| -> [Vec<i32>; 2] {
            if survey.rows[of] == 0 {
                return [Vec::new(), Vec::new()];
            }
            let from = self.cell(survey.first[of]);
            let own = (level(from), self.number(from));
            let coupled = couplings(from).into_iter().map(|c| (level(c), self.number(c)));
            let mut coupled: Vec<(u32, i32)> = coupled.collect();
            coupled.sort_unstable();
            let (before, behind) = coupled.split_at(coupled.partition_point(|c| *c < own));
            [before, behind].map(|part| part.iter().map(|(_, to)| to - own.1).collect())
        };
        let templates = threads.map(survey.rows.len(), 1, row);
        let entries = templates.iter().zip(&survey.rows);
        let entries: usize =
            entries.map(|([l, u], &rows)| (l.len() + u.len()) * rows as usize).sum();
        if entries > limit.min(u32::MAX as usize) {
            return None;
        }
        let (sets, place) = survey.sorted(threads, set);
        let of = |i: usize| &templates[usize::from(survey.of_cell[sets.rows[i] as usize])];
        let lengths = Lengths {
            rows: place.len(),
            block_size: self.block_size,
            of: |i: usize| of(i).each_ref().map(Vec::len),
        };
        let [lower, upper] = laid(threads, &lengths, |i, to: [&mut [u32]; 2]| {
            let from = sets.rows[i] as i32;
            for (to, distances) in to.into_iter().zip(of(i)) {
                for (to, far) in to.iter_mut().zip(distances) {
                    *to = place[(from + far) as usize];
                }
            }
        });
        let pattern = FillPattern::new(lower, upper, Vec::new());
        Some((sets, pattern))
    }
}

/// Which faces are near, along one axis.
struct Faces {
    /// The number of what is near, for each coordinate.
    of: Vec<usize>,
    count: usize,
}

impl Faces {
    /// In a row of `n` cells, those at most `reach` away.
    fn new(n: usize, reach: usize) -> Self {
        let near = |c: usize| [c.min(reach), (n - 1 - c).min(reach)];
        let mut known: Vec<[usize; 2]> = Vec::new();
        let of = (0..n).map(|c| {
            known.iter().position(|k| *k == near(c)).unwrap_or_else(|| {
                known.push(near(c));
                known.len() - 1
            })
        });
        let of = of.collect();
        Self { of, count: known.len() }
    }
}

/// Which combination of faces and phase each cell has.
struct Survey {
    of_cell: Vec<u16>,
    /// The first cell of each combination.
    first: Vec<u32>,
    /// How many there are.
    rows: Vec<u32>,
    phases: usize,
}

impl Survey {
    fn rows(&self) -> usize {
        self.of_cell.len()
    }

    /// Phase, first cell and number of cells of the combinations that there are, of so many phases.
    fn there(&self, phases: usize) -> impl Iterator<Item = (usize, u32, usize)> {
        let all = self.first.iter().zip(&self.rows).enumerate();
        all.filter(|(_, (_, rows))| **rows > 0)
            .map(move |(of, (&first, &rows))| (of % phases, first, rows as usize))
    }

    /// The set of each phase, in the order in which `of` names them, numbered without gaps.
    fn numbered(&self, phases: usize, of: impl Fn(usize) -> usize) -> Vec<u32> {
        let mut used: Vec<usize> = self.there(phases).map(|(phase, ..)| of(phase)).collect();
        used.sort_unstable();
        used.dedup();
        (0..phases).map(|phase| used.partition_point(|u| *u < of(phase)) as u32).collect()
    }

    /// Cells by sets, and the place of each.
    fn sorted(&self, threads: Threads, set: &[u32]) -> (Schedule, Vec<u32>) {
        let sets = set.iter().max().map_or(0, |&most| most as usize + 1);
        let of: Vec<u32> = (0..self.rows.len()).map(|of| set[of % self.phases]).collect();
        Schedule::sorted(threads, [self.rows(), sets], |row| of[usize::from(self.of_cell[row])])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::{colours_of_power, iluk_on, multi_elimination, symmetrised};

    const LATTICE: Colouring = Colouring::Lattice;

    fn pattern(spec: &str, b: usize) -> Pattern<'static> {
        let a = load(spec, ReadAs::Expanded).unwrap().matrix;
        block_pattern(&a.in_blocks(b)).into_owned()
    }

    /// What rows are found to have one by one.
    fn by_rows(a: &Pattern, [p, q]: [usize; 2]) -> Ordered {
        let of = colours_of_power(Threads::One, a, q, LATTICE, usize::MAX).unwrap();
        let sets = Schedule::from_levels(&of);
        let arranged = crate::matrix::pattern::permuted(Threads::One, a, &sets.rows);
        let pattern = iluk_on(Threads::One, &arranged, p, LevelRule::Min, usize::MAX);
        (sets, pattern.unwrap())
    }

    #[test]
    fn colours_and_fill_are_those_found_row_by_row() {
        for (spec, b) in [
            ("poisson3d:13x11x7", 1),
            ("poisson3d:3x33x4", 1),
            ("poisson3d:40x33x1", 1),
            ("bubbly:9x8x7,bubbles=1,radius=0.2", 1),
            ("convdiff3d:9x8x5,px=0.4,py=-0.3", 1),
            ("blockpoisson3d:5x8x6,b=3", 3),
        ] {
            let a = pattern(spec, b);
            let stencil = Stencil::complete(Threads::Pool, a.view());
            assert!(stencil.is_some() && stencil == Stencil::of_lower(a.view()), "{spec}");
            for [p, q] in [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [3, 4]] {
                let want = by_rows(&a, [p, q]);
                for threads in [Threads::One, Threads::Pool] {
                    let found = coloured(threads, &a, [p, q], LATTICE, usize::MAX);
                    assert_eq!(found.as_ref(), Some(&want), "{spec}, p {p}, q {q}");
                }
                let entries = want.1.blocks() - a.rows();
                let within = |limit| coloured(Threads::One, &a, [p, q], LATTICE, limit);
                assert!(within(entries).is_some() && within(entries - 1).is_none());
            }
        }
    }

    #[test]
    fn elimination_is_that_found_row_by_row() {
        for spec in [
            "poisson3d:13x11x7",
            "poisson3d:3x33x4",
            "poisson3d:12x5x16",
            "poisson3d:40x33x1",
            "bubbly:9x8x7,bubbles=1,radius=0.2",
        ] {
            let a = pattern(spec, 1);
            for rest in [Rest::Diagonal, Rest::Coloured(LATTICE)] {
                let want = multi_elimination(Threads::One, &a, 1, rest, usize::MAX).unwrap();
                for threads in [Threads::One, Threads::Pool] {
                    let found = eliminated(threads, &a, rest, usize::MAX)
                        .unwrap_or_else(|| panic!("{spec}, {rest:?}"));
                    assert_eq!(found.sizes, want.sizes, "{spec}, {rest:?}");
                    assert_eq!(found.sets, want.sets, "{spec}, {rest:?}");
                    assert_eq!(found.pattern, want.pattern, "{spec}, {rest:?}");
                }
                let entries = want.pattern.blocks() - a.rows();
                assert!(eliminated(Threads::One, &a, rest, entries - 1).is_none());
            }
            let first_fit = Rest::Coloured(Colouring::FirstFit);
            assert!(eliminated(Threads::One, &a, first_fit, usize::MAX).is_none());
        }
    }

    #[test]
    fn other_patterns_are_left_to_the_rows() {
        let a = pattern("poisson3d:13x11x7", 1);
        let ask = |a: &Pattern, pq| coloured(Threads::One, a, pq, LATTICE, usize::MAX);
        assert!(ask(&a, [1, 1]).is_none(), "fill beyond the power");
        assert!(coloured(Threads::One, &a, [0, 1], Colouring::FirstFit, usize::MAX).is_none());
        // three colours of a triangle may be more than first fit takes, wells are no part of a stencil
        for (spec, b) in
            [("fem-p1:20x35", 1), ("reservoir:7x9x8,wells=2", 1), ("poisson3d:40x1x1", 1)]
        {
            let a = pattern(spec, b);
            let a = symmetrised(Threads::One, &a);
            assert!(ask(&a, [0, 1]).is_none(), "{spec}");
            assert!(eliminated(Threads::One, &a, Rest::Diagonal, usize::MAX).is_none(), "{spec}");
        }
        // one coupling less
        let row = 400;
        let at = a.row_ptr[row] as usize;
        let (mut row_ptr, mut col_ind) = (a.row_ptr.to_vec(), a.col_ind.to_vec());
        col_ind.remove(at);
        row_ptr[row + 1..].iter_mut().for_each(|end| *end -= 1);
        let lacking = Pattern::new(row_ptr, col_ind);
        assert!(Stencil::of_lower(lacking.view()).is_some());
        assert!(ask(&lacking, [0, 1]).is_none());
        assert!(ask(&a, [0, 1]).is_some());
    }
}
