//! Fill levels by the textbook rule, level by level, all rows at once.
//!
//! An entry of level s is caused by a pair with `level(i,p) + level(p,j) = s - 1`, so both are of
//! lower levels. Once every row knows its entries below level s, each finds its own of level s
//! without waiting for another, and the first level at which an entry is found is its smallest. The
//! pairs are those of the elimination row by row, each looked at once. (A search for fill paths,
//! Hysom and Pothen 2001, makes rows independent as well, but walks pairs again and again: about
//! 90 steps per row of ILU(2) on a seven-point stencil, against 27 pairs here.)
//!
//! Levels above k may be kept in part: where a row or a column is at or behind a given one.

use std::ops::Range;

use super::fill_pattern::FillPattern;
use super::ordered_set::OrderedSet;
use super::repeats::Repeats;
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::repeats::{repeating, repeats};
use crate::matrix::pattern::rows::{Columns, Task, find_runs};
use crate::matrix::pattern::{Pattern, TooLarge};

/// Entries of one level in all rows, left and right of the diagonal.
#[derive(Clone, Copy)]
struct Level<'a> {
    lower: Groups<'a>,
    upper: Groups<'a>,
}

impl<'a> Level<'a> {
    /// Both halves of row i.
    #[inline]
    fn row(&self, i: usize) -> [&'a [u32]; 2] {
        [self.lower.row(i), self.upper.row(i)]
    }
}

/// A group of columns in each row.
#[derive(Clone, Copy)]
struct Groups<'a> {
    begin: &'a [u32],
    end: &'a [u32],
    columns: &'a [u32],
}

impl<'a> Groups<'a> {
    fn of(p: &'a Pattern) -> Self {
        Self { begin: &p.row_ptr, end: &p.row_ptr[1..], columns: &p.col_ind }
    }

    #[inline]
    fn row(&self, i: usize) -> &'a [u32] {
        &self.columns[self.begin[i] as usize..self.end[i] as usize]
    }
}

/// Where the diagonal cuts the rows of A.
struct Cut {
    lower_end: Vec<u32>,
    upper_begin: Vec<u32>,
    /// Rows of A without a diagonal.
    no_diagonal: Vec<u32>,
}

/// Length of the lower part of row i, and of that with the diagonal.
fn cut(row: &[u32], i: usize) -> [usize; 2] {
    let lower = row.iter().take_while(|&&j| (j as usize) < i).count();
    [lower, lower + usize::from(row.get(lower).is_some_and(|&j| j as usize == i))]
}

impl Cut {
    /// The cut, and which rows repeat the row before them.
    fn new(threads: Threads, a: &Pattern) -> (Self, Repeats) {
        /// Rows of a task.
        const PART: usize = 1 << 13;
        let (n, view) = (a.rows(), a.view());
        let mut lower_end = memory::zeroed::<u32>(n);
        let mut upper_begin = memory::zeroed::<u32>(n);
        let mut seen = Repeats::new(n);
        let parts = lower_end.chunks_mut(PART).zip(upper_begin.chunks_mut(PART));
        let tasks = parts.zip(seen.parts(PART)).enumerate().collect();
        let no_diagonal = threads.each(tasks, |(part, ((ends, begins), mut seen))| {
            let mut no_diagonal = Vec::new();
            let (first, count) = (part * PART, ends.len());
            let (mut at, mut before) = (0, [0; 2]);
            while at < count {
                let i = first + at;
                // the first row of a part has no cut to repeat
                let same = if at > 0 { repeating(view, i..first + count) } else { 0 };
                let row = view.row(i);
                let cut = if same > 0 { before } else { cut(row, i) };
                let (upper, old) = (&row[cut[1]..], i.checked_sub(1).map(|i| view.row(i)));
                let upper = at > 0 && old.is_some_and(|old| repeats(upper, &old[before[1]..], 1));
                let rows = at..at + same.max(1);
                seen.set(rows.clone(), [same > 0, upper]);
                if cut[0] == cut[1] {
                    no_diagonal.extend(rows.clone().map(|at| (first + at) as u32));
                }
                for at in rows {
                    let start = view.row_ptr[first + at];
                    (ends[at], begins[at]) = (start + cut[0] as u32, start + cut[1] as u32);
                }
                (at, before) = (at + same.max(1), cut);
            }
            no_diagonal
        });
        (Self { lower_end, upper_begin, no_diagonal: no_diagonal.concat() }, seen)
    }

    /// Level 0: the entries of A.
    fn level<'a>(&'a self, a: &'a Pattern) -> Level<'a> {
        Level {
            lower: Groups { begin: &a.row_ptr, end: &self.lower_end, columns: &a.col_ind },
            upper: Groups { begin: &self.upper_begin, end: &a.row_ptr[1..], columns: &a.col_ind },
        }
    }
}

/// Pattern of ILU(k) by the rule `min`.
pub(super) fn fill(
    a: &Pattern,
    k: usize,
    limit: usize,
    threads: Threads,
) -> Result<FillPattern, TooLarge> {
    match k {
        0 => without_fill(a, limit, threads),
        _ => raised::<false>(a, [k, k], 0, limit, threads),
    }
}

/// The same, where `RAISED` with entries of levels up to `top`, at least 1, whose row or column is `from` or behind it.
pub(super) fn raised<const RAISED: bool>(
    a: &Pattern,
    [k, top]: [usize; 2],
    from: usize,
    limit: usize,
    threads: Threads,
) -> Result<FillPattern, TooLarge> {
    let n = a.rows();
    let (cut, mut seen) = Cut::new(threads, a);
    let mut task = Task::like(a, threads, limit);
    let mut higher = Vec::new();
    if top > 1 {
        task.before = a.entries() - (n - cut.no_diagonal.len());
    }
    // rows before the last ones of a level in part do not repeat each other where columns come behind `from`
    let known = |levels: &[Level], seen: &Repeats, rows: Range<usize>| {
        let whole = levels.len() <= k || rows.start > from;
        if whole { repeated(levels, seen, rows) } else { 0 }
    };
    let from_of = |s: usize| if s > k { from } else { 0 };
    for s in 1..top {
        let levels = levels(a, &cut, &higher);
        let new = find_runs(
            task,
            || Bits::new(n),
            |bits, rows, last, out| {
                let i = rows.start;
                let count = if last { known(&levels, &seen, rows) } else { 0 };
                if count == 0 {
                    of_level::<RAISED>(&levels, i, from_of(s), bits, out);
                }
                count
            },
        )?;
        task.before += new[0].entries() + new[1].entries();
        seen.add(threads, s, new.each_ref());
        higher.push(new);
    }
    let levels = levels(a, &cut, &higher);
    task.before = 0;
    let scratch = || (OrderedSet::new(n), Vec::new());
    let [lower, upper] = find_runs(task, scratch, |(set, row), rows, last, out| {
        let i = rows.start;
        let count = if last { known(&levels, &seen, rows) } else { 0 };
        if count == 0 {
            let halves = whole_row::<RAISED>(&levels, i, from_of(top), set, row);
            out.iter_mut().zip(halves).for_each(|(out, half)| out.extend_from_slice(half));
        }
        count
    })?;
    let filled = |i: usize| (1..=top).any(|s| i >= from_of(s) && diagonal_fills(&levels[..s], i));
    let no_diagonal = cut.no_diagonal.iter().copied().filter(|&i| !filled(i as usize)).collect();
    Ok(FillPattern::new(lower, upper, no_diagonal))
}

/// Pattern of ILU(0): the rows of A, cut at their diagonal.
fn without_fill(a: &Pattern, limit: usize, threads: Threads) -> Result<FillPattern, TooLarge> {
    let (n, view) = (a.rows(), a.view());
    let [lower, upper] = find_runs(
        Task::like(a, threads, limit),
        || (),
        |(), rows, last, out| {
            let i = rows.start;
            let count = if last { view.repeating(rows) } else { 0 };
            if count == 0 {
                let row = view.row(i);
                let [left, right] = cut(row, i);
                out[0].extend_from_slice(&row[..left]);
                out[1].extend_from_slice(&row[right..]);
            }
            count
        },
    )?;
    let whole = lower.entries() + upper.entries() + n == a.entries();
    let lacks = |&i: &u32| a.row(i as usize).binary_search(&i).is_err();
    let no_diagonal = if whole { Vec::new() } else { (0..n as u32).filter(lacks).collect() };
    Ok(FillPattern::new(lower, upper, no_diagonal))
}

/// Views of the levels that are known.
fn levels<'a>(a: &'a Pattern, cut: &'a Cut, higher: &'a [[Pattern<'static>; 2]]) -> Vec<Level<'a>> {
    let higher = higher.iter().map(|[l, u]| Level { lower: Groups::of(l), upper: Groups::of(u) });
    std::iter::once(cut.level(a)).chain(higher).collect()
}

/// Calls `f` with every group of columns that elimination adds to row i at the level above `levels`.
#[inline(always)]
fn for_each_source(levels: &[Level], i: usize, mut f: impl FnMut(&[u32])) {
    for (of_i, of_p) in levels.iter().zip(levels.iter().rev()) {
        for &p in of_i.lower.row(i) {
            f(of_p.upper.row(p as usize));
        }
    }
}

/// Whether elimination fills the diagonal of row i at the level above `levels`.
fn diagonal_fills(levels: &[Level], i: usize) -> bool {
    let mut fills = false;
    for_each_source(levels, i, |columns| fills |= columns.contains(&(i as u32)));
    fills
}

/// Appends the entries of row i at the level above `levels`, in no order and without the diagonal; where `RAISED`
/// those whose row or column is `from` or behind it.
fn of_level<const RAISED: bool>(
    levels: &[Level],
    i: usize,
    from: usize,
    known: &mut Bits,
    out: &mut Columns<2>,
) {
    for level in levels {
        level.row(i).into_iter().flatten().for_each(|&j| known.insert(j));
    }
    known.insert(i as u32);
    let [lower, upper] = out;
    let (old_lower, old_upper) = (lower.len(), upper.len());
    for_each_source(levels, i, |columns| {
        for &j in columns {
            if !known.contains(j) && (!RAISED || i.max(j as usize) >= from) {
                known.insert(j);
                if (j as usize) < i { lower.push(j) } else { upper.push(j) }
            }
        }
    });
    for level in levels {
        level.row(i).into_iter().flatten().for_each(|&j| known.clear(j));
    }
    known.clear(i as u32);
    lower[old_lower..].iter().chain(&upper[old_upper..]).for_each(|&j| known.clear(j));
}

/// The first of `rows` that repeat the row before them at the level above `levels`, as far as that is known
/// without looking for their entries.
#[inline]
fn repeated(levels: &[Level], seen: &Repeats, rows: Range<usize>) -> usize {
    let i = rows.start;
    let mut count = seen.run(rows, levels.len());
    // pairs of levels as in `for_each_source`; the lower parts repeat as the rows do
    for (t, level) in levels.iter().enumerate() {
        for &p in level.lower.row(i) {
            if count == 0 {
                return 0;
            }
            count = seen.run_of_uppers(p, count, levels.len() - t);
        }
    }
    count
}

/// All entries of row i left and right of the diagonal, in increasing order; `from` as for [`of_level`].
fn whole_row<'a, const RAISED: bool>(
    levels: &[Level],
    i: usize,
    from: usize,
    set: &mut OrderedSet,
    row: &'a mut Vec<u32>,
) -> [&'a [u32]; 2] {
    for level in levels {
        for columns in level.row(i) {
            for &j in columns {
                set.insert(j);
            }
        }
    }
    set.insert(i as u32);
    for_each_source(levels, i, |columns| {
        let kept = |j: &&u32| !RAISED || i.max(**j as usize) >= from;
        columns.iter().filter(kept).for_each(|&j| set.insert(j));
    });
    row.clear();
    set.drain(row);
    let diagonal = row.partition_point(|&j| (j as usize) < i);
    [&row[..diagonal], &row[diagonal + 1..]]
}

/// A set of columns that is asked for members and never walked.
struct Bits(Vec<u64>);

impl Bits {
    fn new(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)])
    }

    #[inline]
    fn contains(&self, j: u32) -> bool {
        self.0[j as usize >> 6] >> (j & 63) & 1 != 0
    }

    #[inline]
    fn insert(&mut self, j: u32) {
        self.0[j as usize >> 6] |= 1 << (j & 63);
    }

    /// Removes j and its neighbours; to be called with all members.
    #[inline]
    fn clear(&mut self, j: u32) {
        self.0[j as usize >> 6] = 0;
    }
}
