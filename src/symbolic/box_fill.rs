//! ILU(k) of a matrix that is one stencil on a box, told by a smaller box.
//!
//! What elimination makes of a row depends on the row and on those above it that it meets. Far from the faces rows
//! become alike, each one or, by the rule `overwrite`, every second one along an axis. Where all planes in the middle of
//! a box are those two before them, as far as rows reach, two more planes of that kind may be put between them: each row
//! then meets what its like in the smaller box meets, so that it becomes the same. So a small box, which is eliminated
//! row by row, tells all rows of a large one.

mod rows;

use std::collections::HashMap;

use super::elimination::{self, ByLevel};
use super::fill_pattern::FillPattern;
use super::stencil::{Lines, Stencil, cell};
use crate::base::choices::LevelRule;
use crate::base::measure::spans::span;
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, PatternView, scalar_pattern};

/// Cells of the small box at most.
const MOST_CELLS: usize = 1 << 15;
/// The small box has at most this part of the cells.
const LEAST_GAIN: usize = 4;
/// How often a larger small box is tried.
const TRIES: usize = 4;

/// L and U of such a matrix. The stencil of U is turned around: cell i of its box is row n - 1 - i.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxFill {
    /// The stencil of the matrix.
    pub of: Stencil,
    /// Stencils of L and U: all offsets that occur; `None` for an empty one, or where most would be stored in vain.
    pub stencils: [Option<Stencil>; 2],
    /// In which lines there are entries at each offset, where lines tell that; see [`Stencil::lines`].
    pub lines: Option<[Vec<Lines>; 2]>,
    /// Entries of L and U.
    pub entries: [usize; 2],
    /// Factors of the small box.
    pub small: FillPattern,
    /// Of L and U of the small box what their rows are in the large one.
    pub halves: [Alike; 2],
    extents: [usize; 3],
    small_extents: [usize; 3],
    /// For each coordinate along an axis that of the small box whose rows are alike.
    like: [Vec<usize>; 3],
}

/// What a line of rows has of an earlier one: steps to it along y and z, and entries.
pub(crate) type LineCoupling = ([i32; 2], u32);

/// Rows of a triangle of the small box as they are in the large one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// For each entry its column less its row.
    pub apart: Vec<i32>,
    /// Equal numbers for cells with equal rows.
    kind: Vec<u16>,
}

/// A triangle of the factors as its small box tells it.
struct Half {
    alike: Alike,
    entries: usize,
    /// All offsets that occur.
    stencil: Stencil,
    lines: Option<Vec<Lines>>,
}

impl Half {
    /// Of the triangle `half` of the `small` box with these `cells`, which `like` continues to a box of `extents`.
    fn new(
        half: &Pattern,
        upper: bool,
        cells: &[[i32; 3]],
        (small, like): ([usize; 3], &[Vec<usize>; 3]),
        extents: [usize; 3],
    ) -> Option<Self> {
        let entries = entries(half, small, like);
        if entries >= i32::MAX as usize {
            return None;
        }
        let of_small = Stencil::of_box(half.view(), small, upper)?;
        let lines = of_small.lines(half.view(), upper);
        let stencil = of_small.in_box(extents);
        let lines = lines.filter(|lines| stencil.entries(lines, upper) == entries);
        Some(Self { alike: Alike::new(half, cells, extents), entries, stencil, lines })
    }

    /// The stencil, unless the triangle is empty or most would be stored in vain.
    fn worth(&self) -> Option<Stencil> {
        let gains = self.entries > 0 && self.stencil.is_worth_it(self.entries);
        gains.then(|| self.stencil.clone())
    }
}

impl BoxFill {
    /// The factors of `a` in its blocks, if its unknowns are such a stencil.
    pub fn of_matrix(threads: Threads, a: &Csr, fill: usize, rule: LevelRule) -> Option<Self> {
        let point = span("stencil", || Stencil::complete(threads, scalar_pattern(a).view()))?;
        Self::of(threads, &point.in_blocks(a.block_size())?, fill, rule)
    }

    /// The factors of ILU(`fill`) of a matrix that has all entries of the stencil `a` which lead into the box. `None` where
    /// it has no diagonal, where rows are not so simple, or a smaller box would be no gain.
    pub fn of(threads: Threads, a: &Stencil, fill: usize, rule: LevelRule) -> Option<Self> {
        if !a.offsets.contains(&[0; 3]) {
            return None;
        }
        let reach = [0, 1, 2].map(|axis| {
            a.offsets.iter().map(|o| o[axis].unsigned_abs() as usize).max().unwrap_or(0)
        });
        // as far as faces matter, and entries reach, on either side
        let mut room = reach.map(|reach| 4 * (fill + 1) * reach.max(1));
        for _ in 0..TRIES {
            let small = [0, 1, 2].map(|axis| {
                let whole = a.extents[axis];
                // an even number of planes less
                if whole <= room[axis] + 1 { whole } else { room[axis] + (whole - room[axis]) % 2 }
            });
            let cells = small.iter().product::<usize>();
            if cells > MOST_CELLS || LEAST_GAIN * cells > a.extents.iter().product() {
                return None;
            }
            if let Some(found) = span("small box", || Self::told(threads, a, small, fill, rule)) {
                return Some(found);
            }
            room = [0, 1, 2].map(|axis| room[axis] + 2 * reach[axis]);
        }
        None
    }

    /// The same, by a box of `small` cells; `None` where its planes in the middle are not alike.
    fn told(
        threads: Threads,
        a: &Stencil,
        small: [usize; 3],
        fill: usize,
        rule: LevelRule,
    ) -> Option<Self> {
        let cut = Stencil::uniform(small, a.offsets.clone());
        let levelled = match rule {
            LevelRule::Min => elimination::levelled::<false>,
            LevelRule::Overwrite => elimination::levelled::<true>,
        };
        let (pattern, levels) =
            span("elimination", || levelled(&cut.pattern(), fill, usize::MAX)).ok()?;
        let eliminated = Eliminated { small, pattern: &pattern, levels: &levels, fill };
        let cells: Vec<[i32; 3]> = (0..pattern.rows() as u32).map(|i| cell(small, i)).collect();
        let farthest = eliminated.farthest(&cells);
        let found =
            threads.map(3, 1, |axis| eliminated.like(axis, a.extents[axis], farthest[axis]));
        let mut like: [Vec<usize>; 3] = Default::default();
        for (like, found) in like.iter_mut().zip(found) {
            *like = found?;
        }
        let half = |at: usize| {
            Half::new(
                [&pattern.lower, &pattern.upper][at],
                at == 1,
                &cells,
                (small, &like),
                a.extents,
            )
        };
        let mut found = threads.map(2, 1, half).into_iter();
        let [lower, upper] = [found.next()??, found.next()??];
        Some(Self {
            of: a.clone(),
            stencils: [lower.worth(), upper.worth()],
            lines: lower.lines.zip(upper.lines).map(<[_; 2]>::from),
            entries: [lower.entries, upper.entries],
            small: pattern,
            halves: [lower.alike, upper.alike],
            extents: a.extents,
            small_extents: small,
            like,
        })
    }

    /// Number of (block) rows.
    pub fn rows(&self) -> usize {
        self.extents.iter().product()
    }

    /// Cells along each axis.
    pub(crate) fn extents(&self) -> [usize; 3] {
        self.extents
    }

    /// The line of the small box that is like line y, z.
    pub(crate) fn line_like(&self, y: usize, z: usize) -> usize {
        self.like[2][z] * self.small_extents[1] + self.like[1][y]
    }

    /// Whether rows need the one before in their line, in L, and the one behind in U.
    pub(crate) fn has_lines(&self) -> bool {
        let [nx, _, _] = self.small_extents;
        let needs = |half: &Pattern, i: usize, j: usize| half.row(i).contains(&(j as u32));
        (0..self.small.rows())
            .filter(|i| i % nx > 0)
            .all(|i| needs(&self.small.lower, i, i - 1) && needs(&self.small.upper, i - 1, i))
    }

    /// Entries of L that lines have in others, for each line of the small box. `None` where rows are in no
    /// [lines](Self::has_lines), or reach from face to face.
    pub(crate) fn couplings(&self) -> Option<Vec<Vec<LineCoupling>>> {
        if !self.has_lines() {
            return None;
        }
        let [nx, ny, nz] = self.small_extents;
        let mut times = vec![0; nx];
        self.like[0].iter().for_each(|&x| times[x] += 1);
        let of_line = |line: usize| {
            let mut found: Vec<LineCoupling> = Vec::new();
            for (i, &times) in (line * nx..).zip(&times) {
                let from = cell(self.small_extents, i as u32);
                for &j in self.small.lower.row(i) {
                    let to = cell(self.small_extents, j);
                    let before = [to[1] - from[1], to[2] - from[2]];
                    if from[0].abs_diff(to[0]) as usize + 1 >= self.extents[0] {
                        return None;
                    }
                    match found.iter_mut().find(|(there, _)| *there == before) {
                        _ if before == [0; 2] => {}
                        Some((_, entries)) => *entries += times,
                        None => found.push((before, times)),
                    }
                }
            }
            Some(found)
        };
        (0..ny * nz).map(of_line).collect()
    }

    /// For each row the cell of the small box whose row is alike.
    pub fn cells(&self, threads: Threads) -> Vec<u16> {
        let [nx, ny, _] = self.extents;
        let mut cells = memory::zeroed::<u16>(self.rows());
        let planes = cells.chunks_mut(nx * ny).zip(&self.like[2]).collect();
        threads.each(planes, |(plane, z)| {
            for (line, y) in plane.chunks_mut(nx).zip(&self.like[1]) {
                let first = (z * self.small_extents[1] + y) * self.small_extents[0];
                for (cell, x) in line.iter_mut().zip(&self.like[0]) {
                    *cell = (first + x) as u16;
                }
            }
        });
        cells
    }

    /// L (0) or U (1) of the small box.
    pub(crate) fn small_half(&self, at: usize) -> PatternView<'_> {
        [&self.small.lower, &self.small.upper][at].view()
    }

    /// All rows of L and U.
    pub fn pattern(&self, threads: Threads, block_size: usize) -> FillPattern {
        let [lower, upper] = span("rows", || self.rows_of(threads, [0, 1], block_size));
        FillPattern::new(lower, upper, Vec::new())
    }
}

/// Entries of the rows of the large box.
fn entries(half: &Pattern, small: [usize; 3], like: &[Vec<usize>; 3]) -> usize {
    let times = [0, 1, 2].map(|axis| {
        let mut times = vec![0; small[axis]];
        like[axis].iter().for_each(|&at| times[at] += 1);
        times
    });
    let [x, y, z] = &times;
    let lines = z.iter().flat_map(|z| y.iter().map(move |y| z * y));
    let of_line = |(line, times): (usize, usize)| -> usize {
        let cells = (line * small[0]..).zip(x);
        times * cells.map(|(cell, times)| times * half.row(cell).len()).sum::<usize>()
    };
    lines.enumerate().map(of_line).sum()
}

/// The small box after its elimination.
struct Eliminated<'a> {
    small: [usize; 3],
    pattern: &'a FillPattern,
    levels: &'a ByLevel,
    fill: usize,
}

impl Eliminated<'_> {
    /// How far entries reach along each axis, with the coordinates of the cells.
    fn farthest(&self, cells: &[[i32; 3]]) -> [usize; 3] {
        let mut farthest = [0; 3];
        for (i, from) in cells.iter().enumerate() {
            for &j in self.pattern.lower.row(i).iter().chain(self.pattern.upper.row(i)) {
                let to = cells[j as usize];
                for axis in 0..3 {
                    farthest[axis] = farthest[axis].max(from[axis].abs_diff(to[axis]) as usize);
                }
            }
        }
        farthest
    }

    /// Whether row j is row i, in all that other rows may meet, `j - i` columns to the right.
    fn alike(&self, i: usize, j: usize) -> bool {
        let by = (j - i) as u32;
        let same =
            |a: &[u32], b: &[u32]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a + by == *b);
        let FillPattern { lower, upper, .. } = self.pattern;
        same(lower.row(i), lower.row(j))
            && same(upper.row(i), upper.row(j))
            && (0..self.fill).all(|l| same(self.levels.group(i, l), self.levels.group(j, l)))
    }

    /// For each of `whole` planes across an axis the plane of the small box that is alike, where entries reach
    /// as far as `farthest`.
    fn like(&self, axis: usize, whole: usize, farthest: usize) -> Option<Vec<usize>> {
        let planes = self.small[axis];
        if planes == whole {
            return Some((0..whole).collect());
        }
        let step: usize = self.small[..axis].iter().product();
        let mut next = vec![true; planes - 2];
        for i in 0..self.pattern.rows() {
            let at = cell(self.small, i as u32)[axis] as usize;
            if at + 2 < planes && next[at] && !self.alike(i, i + 2 * step) {
                next[at] = false;
            }
        }
        // two planes that reach planes alike alone, on both sides
        let alike = 2 * farthest + 1;
        let first = next.windows(alike).position(|next| next.iter().all(|&next| next))?;
        let middle = first + farthest;
        let last = whole - planes;
        let of = |at: usize| match at {
            at if at < middle => at,
            at if at >= middle + last => at - last,
            at => middle + (at - middle) % 2,
        };
        Some((0..whole).map(of).collect())
    }
}

impl Alike {
    fn new(half: &Pattern, cells: &[[i32; 3]], extents: [usize; 3]) -> Self {
        let [wide, high, _] = extents.map(|n| n as i32);
        let mut apart = Vec::with_capacity(half.entries());
        for (i, [x, y, z]) in cells.iter().enumerate() {
            apart.extend(half.row(i).iter().map(|&j| {
                let to = cells[j as usize];
                to[0] - x + wide * (to[1] - y + high * (to[2] - z))
            }));
        }
        let mut known: HashMap<&[i32], u16> = HashMap::new();
        let mut kind: Vec<u16> = Vec::with_capacity(half.rows());
        let row = |i: usize| &apart[half.view().range(i)];
        for i in 0..half.rows() {
            let next = known.len() as u16;
            kind.push(match kind.last() {
                Some(&last) if row(i) == row(i - 1) => last,
                _ => *known.entry(row(i)).or_insert(next),
            });
        }
        Self { apart, kind }
    }
}

#[cfg(test)]
#[path = "box_fill_tests.rs"]
mod tests;
