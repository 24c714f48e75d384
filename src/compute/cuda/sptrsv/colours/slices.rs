//! Rows colour by colour in slices, and how the columns of a slice are stored, as `kernels/sptrsv/colours/slices.cu` reads
//! them.

use std::ops::Range;

use rayon::prelude::*;

use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;
use crate::symbolic::{FillPattern, Schedule};

/// How a slice stores columns; mirrors `sptrsv/colours/slices.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Wide,
    Uniform,
    Near,
    Close,
}

/// The same of an entry that is not there.
const NONE: u32 = u32::MAX;
const NOT_NEAR: u16 = u16::MAX;
const NOT_CLOSE: u8 = u8::MAX;

/// Most places of a slice over its entries, as a fraction.
const FILLED_UP: [usize; 2] = [10, 9];

/// Of so many slices one is looked at before rows are sorted.
const SAMPLED: usize = 61;

/// Rows colour by colour, in slices.
pub(super) struct Plan {
    /// Row of the factors at each position.
    pub(super) rows: Vec<u32>,
    /// First position of each slice, and one past the last.
    pub(super) first: Vec<u32>,
    /// First slice of each colour, and one past the last.
    pub(super) colours: Vec<u32>,
    /// First position of each colour.
    starts: Vec<u32>,
    /// Whether rows are in their order, and their entries have places of their own.
    pub(super) aligned: bool,
}

impl Plan {
    /// Slices of `size` rows at most, in the order of the rows. Where vectors are by position,
    /// `align` is the order of the rows: they stay in it if those of a slice have their columns at like
    /// distances, as the colours of a lattice do. Else rows of like length in both triangles share a slice; equal ones stay in order.
    pub(super) fn new(
        schedule: &Schedule,
        pattern: &FillPattern,
        size: usize,
        align: Option<&[u32]>,
    ) -> Self {
        let (lower, upper) = (pattern.lower.view(), pattern.upper.view());
        let lengths = |&i: &u32| [lower, upper].map(|t| t.range(i as usize).len());
        let (mut first, mut colours) = (vec![0], vec![0]);
        for l in 0..schedule.levels() {
            let range = schedule.level_ptr[l]..schedule.level_ptr[l + 1];
            first.extend(range.clone().step_by(size).skip(1));
            first.push(range.end);
            colours.push(first.len() as u32 - 1);
        }
        let rows = Threads::Pool.map(schedule.rows.len(), 1 << 14, |i| schedule.rows[i]);
        let starts = schedule.level_ptr[..schedule.levels()].to_vec();
        let mut plan = Self { rows, first, colours, starts, aligned: false };
        plan.aligned = align.is_some_and(|order| plan.is_aligned([lower, upper], order));
        for l in 0..schedule.levels() {
            let range = schedule.level_ptr[l] as usize..schedule.level_ptr[l + 1] as usize;
            if !plan.aligned {
                sort_by_lengths(&mut plan.rows[range], lengths);
            }
        }
        plan
    }

    /// Whether most entries of rows in their order, which are their numbers, have places that those of their
    /// slices share: of slices here and there.
    fn is_aligned(&self, triangles: [PatternView; 2], order: &[u32]) -> bool {
        if !Threads::Pool.all(self.rows.len(), 1, |at| at == self.rows[at] as usize) {
            return false;
        }
        let count = |s: usize| {
            let rows = &self.rows[self.slice(s)];
            let of = |t: PatternView| -> [usize; 2] {
                let there = rows.iter().map(|&i| t.range(i as usize).len()).sum();
                [there, if self.places(rows, t, order).is_some() { there } else { 0 }]
            };
            let [lower, upper] = triangles.map(of);
            [lower[0] + upper[0], lower[1] + upper[1]]
        };
        let [there, aligned] = Threads::Pool
            .map(self.slices().div_ceil(SAMPLED), 1, |s| count(s * SAMPLED))
            .into_iter()
            .fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        2 * aligned > there
    }

    /// Places for the entries of `rows`, whose numbers are their positions: each for columns of one colour as
    /// far from the rows in `order`. In the order of the columns of each row. `None` where too many would be
    /// empty.
    fn places(&self, rows: &[u32], triangle: PatternView, order: &[u32]) -> Option<Vec<Place>> {
        let mut places: Vec<Place> = Vec::new();
        let mut there = 0;
        for (g, &i) in rows.iter().enumerate() {
            let mut at = 0;
            for &j in triangle.row(i as usize) {
                let colour = self.starts.partition_point(|&start| start <= j);
                let far = i64::from(order[j as usize]) - i64::from(order[i as usize]);
                // most rows have the places of the row before
                if places.get(at).is_none_or(|p| p.of != (colour, far)) {
                    at += places[at..].partition_point(|p| p.of < (colour, far));
                    if places.get(at).is_none_or(|p| p.of != (colour, far)) {
                        places.insert(at, Place { of: (colour, far), columns: [NONE; 32] });
                    }
                }
                places[at].columns[g] = j;
                (at, there) = (at + 1, there + 1);
            }
            // a row or two may be of their own
            if places.len() * (g + 1) * FILLED_UP[1] > (there + 8 * rows.len()) * FILLED_UP[0] {
                return None;
            }
        }
        Some(places)
    }

    pub(super) fn slices(&self) -> usize {
        self.first.len() - 1
    }

    /// Positions of a slice.
    pub(super) fn slice(&self, s: usize) -> Range<usize> {
        self.first[s] as usize..self.first[s + 1] as usize
    }
}

/// Sorts rows by their lengths in both triangles; equal ones stay in order.
fn sort_by_lengths(rows: &mut [u32], lengths: impl Fn(&u32) -> [usize; 2] + Sync) {
    /// Rows of a task.
    const TASK: usize = 1 << 14;
    /// Kinds of rows that are counted: more are compared.
    const MOST: usize = 1 << 10;
    let known: Vec<[usize; 2]> = Threads::Pool.map(rows.len(), TASK, |i| lengths(&rows[i]));
    if Threads::Pool.all(known.len().saturating_sub(1), TASK, |i| known[i] <= known[i + 1]) {
        return;
    }
    let larger = |a: [usize; 2], b: [usize; 2]| [a[0].max(b[0]), a[1].max(b[1])];
    let with = |a, i: usize| larger(a, known[i]);
    let [lower, upper] = Threads::Pool.fold(known.len(), TASK, || [0; 2], with, larger);
    let kinds = (lower + 1).saturating_mul(upper + 1);
    if kinds > MOST {
        rows.par_sort_by_key(lengths);
        return;
    }
    let kind = |row: usize| (known[row][0] * (upper + 1) + known[row][1]) as u32;
    let (order, _) = Schedule::sorted(Threads::Pool, [rows.len(), kinds], kind);
    let at = |place: usize| rows[order.rows[place] as usize];
    let sorted: Vec<u32> = Threads::Pool.map(rows.len(), TASK, at);
    Threads::Pool.chunks(rows, TASK, 1, |task, to| {
        to.copy_from_slice(&sorted[task * TASK..][..to.len()]);
    });
}

/// Where a triangle's blocks and columns lie: as in `sptrsv/colours/slices.cu`.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) start: Vec<u32>,
    pub(super) shape: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) index: Vec<u32>,
    /// Stored blocks, those that fill up short rows included.
    pub(super) blocks: usize,
}

impl Layout {
    /// `number` is that of each row of the factors in the vector that is multiplied, `order` the one by which
    /// the plan was made.
    pub(super) fn new(
        plan: &Plan,
        triangle: PatternView,
        number: &[u32],
        order: &[u32],
    ) -> Result<Self> {
        /// Slices that a task lays out.
        const TASK: usize = 512;
        let tasks = plan.slices().div_ceil(TASK);
        let parts: Vec<(Vec<u32>, Vec<u32>, Vec<u32>)> = Threads::Pool.map(tasks, 1, |task| {
            let (mut shape, mut ends, mut index) = (Vec::new(), Vec::new(), Vec::new());
            for s in task * TASK..((task + 1) * TASK).min(plan.slices()) {
                let rows = &plan.rows[plan.slice(s)];
                let places = plan.aligned.then(|| plan.places(rows, triangle, order)).flatten();
                let (length, kind) = match places {
                    Some(places) => store_places(rows, &places, &mut index),
                    None => store(rows, triangle, number, &mut index),
                };
                shape.push(4 * length + kind as u32);
                ends.push(index.len() as u32);
            }
            (shape, ends, index)
        });
        let mut all = Self::default();
        let too_many = |_| Error::memory("a factor has more than 2^32 blocks");
        for (shape, ends, index) in parts {
            let base = u32::try_from(all.index.len()).map_err(too_many)?;
            all.columns.push(base);
            all.columns.extend(ends[..ends.len() - 1].iter().map(|end| base + end));
            for shape in shape {
                let s = all.shape.len();
                all.start.push(u32::try_from(all.blocks).map_err(too_many)?);
                all.shape.push(shape);
                all.blocks += plan.slice(s).len() * (shape / 4) as usize;
            }
            all.index.extend(index);
        }
        Ok(all)
    }
}

/// An entry of each row of a slice.
struct Place {
    /// Colour of the columns, and how far they are from the rows.
    of: (usize, i64),
    /// Of each row, or [`NONE`].
    columns: [u32; 32],
}

/// Puts the columns of the `rows` of a slice behind `index`; blocks of the longest row, and how the columns
/// are stored.
fn store(rows: &[u32], triangle: PatternView, number: &[u32], index: &mut Vec<u32>) -> (u32, Kind) {
    let Some((&head, rest)) = rows.split_first() else { return (0, Kind::Uniform) };
    let (first, own) = (triangle.row(head as usize), number[head as usize]);
    let alike = |&i: &u32| {
        let (row, apart) = (triangle.row(i as usize), number[i as usize].wrapping_sub(own));
        let same =
            |(&j, &k): (&u32, &u32)| number[j as usize].wrapping_sub(number[k as usize]) == apart;
        row.len() == first.len() && row.iter().zip(first).all(same)
    };
    if rest.iter().all(alike) {
        index.extend(first.iter().map(|&j| number[j as usize].wrapping_sub(own)));
        return (first.len() as u32, Kind::Uniform);
    }
    let length = rows.iter().map(|&i| triangle.range(i as usize).len()).max().unwrap_or(0);
    let column = |i: u32, e: usize| triangle.row(i as usize).get(e).map(|&j| number[j as usize]);
    let at = |e: usize, g: usize| column(rows[g], e);
    (length as u32, store_each(rows.len(), length, at, index))
}

/// The same of columns with gaps.
fn store_places(rows: &[u32], places: &[Place], index: &mut Vec<u32>) -> (u32, Kind) {
    let count = rows.len();
    let at = |e: usize, g: usize| Some(places[e].columns[g]).filter(|&j| j != NONE);
    let distance = |e: usize, g: usize| at(e, g).map(|j| i64::from(j) - i64::from(rows[g]));
    let of = |e: usize| (0..count).filter_map(move |g| distance(e, g));
    let least: Vec<i64> = (0..places.len()).map(|e| of(e).min().unwrap_or(0)).collect();
    let (length, most) = (places.len() as u32, i64::from(NOT_CLOSE));
    if (0..places.len()).any(|e| of(e).any(|far| far - least[e] >= most)) {
        return (length, store_each(count, places.len(), at, index));
    }
    index.extend(least.iter().map(|&far| far as u32));
    let close = (0..places.len()).flat_map(|e| {
        let least = least[e];
        (0..count).map(move |g| distance(e, g).map_or(NOT_CLOSE, |far| (far - least) as u8))
    });
    let close: Vec<u8> = close.collect();
    let four = |four: &[u8]| four.iter().rev().fold(0, |word, &b| word << 8 | u32::from(b));
    index.extend(close.chunks(4).map(four));
    (length, Kind::Close)
}

/// The column `at` entry e of each of so many rows, in 16 bits beyond the least where that is enough.
fn store_each(
    rows: usize,
    length: usize,
    at: impl Fn(usize, usize) -> Option<u32>,
    index: &mut Vec<u32>,
) -> Kind {
    let of = |e: usize| (0..rows).filter_map(|g| at(e, g)).collect::<Vec<_>>();
    let least: Vec<u32> = (0..length).map(|e| of(e).into_iter().min().unwrap_or(0)).collect();
    if (0..length).all(|e| of(e).into_iter().all(|j| j - least[e] < u32::from(NOT_NEAR))) {
        let beyond = |e: usize, g: usize| at(e, g).map_or(NOT_NEAR, |j| (j - least[e]) as u16);
        let mut near = Vec::with_capacity(length * rows);
        (0..length).for_each(|e| near.extend((0..rows).map(|g| beyond(e, g))));
        index.extend(least);
        let two = |two: &[u16]| u32::from(two[0]) | u32::from(*two.get(1).unwrap_or(&0)) << 16;
        index.extend(near.chunks(2).map(two));
        return Kind::Near;
    }
    (0..length).for_each(|e| index.extend((0..rows).map(|g| at(e, g).unwrap_or(NONE))));
    Kind::Wide
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::base::threads::Threads;
    use crate::matrix::inverse;
    use crate::matrix::pattern::{Pattern, block_pattern};
    use crate::problem::load;
    use crate::symbolic::{Colouring, Rest, colours_of_power, iluk, multi_elimination};

    /// Pattern of ILU(p) in the order of the colours of `|A|^(p + 1)`, and these.
    pub(in super::super) fn coloured(spec: &str, p: usize) -> (FillPattern, Schedule) {
        coloured_by(spec, p, Colouring::FirstFit)
    }

    pub(in super::super) fn coloured_by(
        spec: &str,
        p: usize,
        how: Colouring,
    ) -> (FillPattern, Schedule) {
        let a = load(spec, ReadAs::Expanded).unwrap().matrix;
        let point = block_pattern(&a);
        let found = colours_of_power(Threads::One, &point, p + 1, how, usize::MAX);
        let sets = Schedule::from_levels(&found.unwrap());
        let arranged = a.permuted(&sets.rows);
        (iluk(&block_pattern(&arranged), p, LevelRule::Min, usize::MAX).unwrap(), sets)
    }

    /// Columns of row `g` of slice `s` as the kernels read them.
    fn read(plan: &Plan, layout: &Layout, number: &[u32], s: usize, g: usize) -> Vec<u32> {
        let (length, rows) = ((layout.shape[s] / 4) as usize, plan.slice(s).len());
        let index = &layout.index[layout.columns[s] as usize..];
        let own = number[plan.rows[plan.slice(s)][g] as usize];
        let near = |at: usize| (index[length + at / 2] >> (16 * (at % 2))) as u16;
        let close = |at: usize| (index[length + at / 4] >> (8 * (at % 4))) as u8;
        let column = |e: usize| match layout.shape[s] % 4 {
            0 => index[e * rows + g],
            1 => own.wrapping_add(index[e]),
            3 if close(e * rows + g) == NOT_CLOSE => NONE,
            3 => own.wrapping_add(index[e]).wrapping_add(close(e * rows + g).into()),
            _ if near(e * rows + g) == NOT_NEAR => NONE,
            _ => index[e] + u32::from(near(e * rows + g)),
        };
        (0..length).map(column).filter(|&j| j != NONE).collect()
    }

    #[test]
    fn slices_hold_what_the_pattern_does() {
        let systems = [("bubbly:24x23x22", 0), ("bubbly:24x23x22", 1), ("fem-p1:61x57", 0)];
        for ((spec, p), size) in systems.into_iter().flat_map(|s| [(s, 32), (s, 10)]) {
            let (pattern, sets) = coloured(spec, p);
            let plan = Plan::new(&sets.in_place(), &pattern, size, None);
            assert_eq!(plan.colours.len(), sets.level_ptr.len());
            for (number, in_place) in [(sets.rows.clone(), true), (inverse(&plan.rows), false)] {
                for t in [&pattern.lower, &pattern.upper] {
                    let layout = Layout::new(&plan, t.view(), &number, &sets.rows).unwrap();
                    let mut kinds = [0; 3];
                    for s in 0..plan.slices() {
                        for (g, &i) in plan.rows[plan.slice(s)].iter().enumerate() {
                            let want: Vec<u32> =
                                t.row(i as usize).iter().map(|&j| number[j as usize]).collect();
                            assert_eq!(read(&plan, &layout, &number, s, g), want);
                        }
                        kinds[(layout.shape[s] % 4) as usize] += plan.slice(s).len();
                    }
                    // two colours of a grid in its own order need hardly an index, others few bits
                    let (rows, words) = (plan.rows.len(), layout.index.len());
                    assert!(kinds[0] * 10 <= rows, "{spec}, p {p}: {kinds:?}");
                    if in_place && spec.starts_with("bubbly") && p == 0 && size == 32 {
                        assert!(words * 6 < t.entries(), "{words} words of {}", t.entries());
                    }
                    let (stored, there) = (layout.blocks, t.entries());
                    assert!(stored * 8 <= there * 9, "{spec}, p {p}, {size}: {stored} for {there}");
                    let (last, blocks) = (plan.slices() - 1, layout.blocks);
                    let rows = plan.slice(last).len() * (layout.shape[last] / 4) as usize;
                    assert_eq!(layout.start[last] as usize + rows, blocks);
                }
            }
        }
    }

    #[test]
    fn rows_of_a_lattice_share_places() {
        let (spec, size) = ("bubbly:45x23x22", 32);
        let by_colours = coloured_by(spec, 1, Colouring::Lattice);
        let a = load(spec, ReadAs::Expanded).unwrap().matrix;
        let rest = Rest::Coloured(Colouring::Lattice);
        let point = block_pattern(&a);
        let by_sets = multi_elimination(Threads::One, &point, 1, rest, usize::MAX).unwrap();
        // bytes of an index for each entry: places of 32 bits and 8 for each row; the set's are of all colours
        for ((pattern, sets), bytes) in [(by_colours, 1.7), ((by_sets.pattern, by_sets.sets), 2.6)]
        {
            let order = &sets.rows;
            let plan = Plan::new(&sets.in_place(), &pattern, size, Some(order));
            assert!(plan.aligned && plan.rows.iter().copied().eq(0..a.rows() as u32));
            let mut words = 0;
            for t in [&pattern.lower, &pattern.upper] {
                let layout = Layout::new(&plan, t.view(), &plan.rows, order).unwrap();
                for s in 0..plan.slices() {
                    for (g, &i) in plan.rows[plan.slice(s)].iter().enumerate() {
                        assert_eq!(read(&plan, &layout, &plan.rows, s, g), t.row(i as usize));
                    }
                }
                words += layout.index.len();
                assert!(layout.blocks * 8 <= t.entries() * 9, "{} blocks", layout.blocks);
            }
            let entries = pattern.lower.entries() + pattern.upper.entries();
            let each = 4.0 * words as f64 / entries as f64;
            assert!(each < bytes, "{each} bytes");
        }
    }

    #[test]
    fn far_columns_are_stored_as_they_are() {
        let t = Pattern::new(vec![0, 0, 2, 3], vec![0, 1, 0]);
        let number = [70_000, 3, 9];
        let mut index = Vec::new();
        assert_eq!(store(&[1, 2], t.view(), &number, &mut index), (2, Kind::Near));
        assert_eq!(index, [70_000, 3, 0, 0xffff_0000]);
        let (number, mut index) = ([0, 70_000, 9], Vec::new());
        let far = Pattern::new(vec![0, 0, 1, 2], vec![0, 1]);
        assert_eq!(store(&[1, 2], far.view(), &number, &mut index), (1, Kind::Wide));
        assert_eq!(index, [0, 70_000]);
        assert_eq!(store(&[0], t.view(), &number, &mut Vec::new()), (0, Kind::Uniform));
    }
}
