//! Fill levels by the textbook rule, level by level, all rows at once.
//!
//! An entry of level s is caused by a pair with `level(i,p) + level(p,j) = s - 1`, so both are of
//! lower levels. Once every row knows its entries below level s, each finds its own of level s
//! without waiting for another, and the first level at which an entry is found is its smallest. The
//! pairs are those of the elimination row by row, each looked at once. (A search for fill paths,
//! Hysom and Pothen 2001, makes rows independent as well, but walks pairs again and again: about
//! 90 steps per row of ILU(2) on a seven-point stencil, against 27 pairs here.)

use rayon::prelude::*;

use super::fill_pattern::FillPattern;
use super::ordered_set::OrderedSet;
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::rows::{Columns, Task, find};
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
}

impl Cut {
    fn new(threads: Threads, a: &Pattern) -> Self {
        let (n, view) = (a.rows(), a.view());
        let of_row = |i: usize| {
            let row = view.row(i);
            let lower = row.iter().take_while(|&&j| (j as usize) < i).count();
            let diagonal = row.get(lower).is_some_and(|&j| j as usize == i);
            let end = view.row_ptr[i] + lower as u32;
            (end, end + u32::from(diagonal))
        };
        let (mut lower_end, mut upper_begin) = (memory::with_capacity(n), memory::with_capacity(n));
        match threads {
            Threads::One => {
                for (end, begin) in (0..n).map(of_row) {
                    lower_end.push(end);
                    upper_begin.push(begin);
                }
            }
            Threads::Pool => (0..n)
                .into_par_iter()
                .with_min_len(4096)
                .map(of_row)
                .unzip_into_vecs(&mut lower_end, &mut upper_begin),
        }
        Self { lower_end, upper_begin }
    }

    /// Level 0: the entries of A.
    fn level<'a>(&'a self, a: &'a Pattern) -> Level<'a> {
        Level {
            lower: Groups { begin: &a.row_ptr, end: &self.lower_end, columns: &a.col_ind },
            upper: Groups { begin: &self.upper_begin, end: &a.row_ptr[1..], columns: &a.col_ind },
        }
    }

    /// Rows of A without a diagonal.
    fn no_diagonal(&self) -> impl Iterator<Item = usize> {
        let ends = self.lower_end.iter().zip(&self.upper_begin).enumerate();
        ends.filter(|(_, (end, begin))| end == begin).map(|(i, _)| i)
    }
}

/// Pattern of ILU(k) by the rule `min`.
pub(super) fn fill(
    a: &Pattern,
    k: usize,
    limit: usize,
    threads: Threads,
) -> Result<FillPattern, TooLarge> {
    let n = a.rows();
    let cut = Cut::new(threads, a);
    let mut task = Task::like(a, threads, limit);
    let mut higher = Vec::new();
    if k > 1 {
        task.before = a.entries() - (n - cut.no_diagonal().count());
    }
    for _ in 1..k {
        let levels = levels(a, &cut, &higher);
        let new = find(task, || Bits::new(n), |bits, i, out| of_level(&levels, i, bits, out))?;
        task.before += new[0].entries() + new[1].entries();
        higher.push(new);
    }
    let levels = levels(a, &cut, &higher);
    task.before = 0;
    let [lower, upper] = if k == 0 {
        find(
            task,
            || (),
            |(), i, out: &mut Columns<2>| {
                let row = levels[0].row(i);
                out.iter_mut().zip(row).for_each(|(out, row)| out.extend_from_slice(row));
            },
        )?
    } else {
        let scratch = || (OrderedSet::new(n), Vec::new());
        find(task, scratch, |(set, row), i, out| whole_row(&levels, i, set, row, out))?
    };
    let filled = |i: usize| (1..=k).any(|s| diagonal_fills(&levels[..s], i));
    let no_diagonal = cut.no_diagonal().filter(|&i| !filled(i)).map(|i| i as u32).collect();
    Ok(FillPattern { lower, upper, no_diagonal })
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

/// Appends the entries of row i at the level above `levels`, in no order and without the diagonal.
fn of_level(levels: &[Level], i: usize, known: &mut Bits, out: &mut Columns<2>) {
    for level in levels {
        level.row(i).into_iter().flatten().for_each(|&j| known.insert(j));
    }
    known.insert(i as u32);
    let [lower, upper] = out;
    let (old_lower, old_upper) = (lower.len(), upper.len());
    for_each_source(levels, i, |columns| {
        for &j in columns {
            if !known.contains(j) {
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

/// Appends all entries of row i but the diagonal, in increasing order.
fn whole_row(
    levels: &[Level],
    i: usize,
    set: &mut OrderedSet,
    row: &mut Vec<u32>,
    out: &mut Columns<2>,
) {
    for level in levels {
        for columns in level.row(i) {
            for &j in columns {
                set.insert(j);
            }
        }
    }
    set.insert(i as u32);
    for_each_source(levels, i, |columns| columns.iter().for_each(|&j| set.insert(j)));
    row.clear();
    set.drain(row);
    let diagonal = row.partition_point(|&j| (j as usize) < i);
    out[0].extend_from_slice(&row[..diagonal]);
    out[1].extend_from_slice(&row[diagonal + 1..]);
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
