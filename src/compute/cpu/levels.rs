//! Levels of the rows of a triangle, on one thread or several.

#![allow(unsafe_code, reason = "threads that write disjoint parts")]

use std::ops::Range;

use super::chunks::Sweep;
use super::shared::Shared;
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;

/// Rows that are taken together, and by a thread.
const PART: usize = 4096;

/// Finds levels of consecutive rows.
pub(super) type Find<'a> = dyn Fn(&mut Space, Range<usize>) + Sync + 'a;

/// The level of each row: one more than the highest level of those that it needs, from 0 on. `in_order` takes all rows to
/// what it is given, each of them once, after those that it needs.
pub(super) fn levels(pattern: PatternView, sweep: Sweep, in_order: impl FnOnce(&Find)) -> Vec<u32> {
    let mut level = memory::zeroed::<u32>(pattern.row_ptr.len() - 1);
    let finder = Finder { pattern, sweep, level: Shared::new(&mut level) };
    // SAFETY: each row comes once, after the rows that it needs
    in_order(&|space, rows| unsafe { finder.find(space, rows) });
    level
}

/// The same on one thread.
pub(super) fn levels_in_turn(pattern: PatternView, sweep: Sweep) -> Vec<u32> {
    let rows = pattern.row_ptr.len() - 1;
    levels(pattern, sweep, |find| {
        let mut space = Space::default();
        for step in (0..rows).step_by(PART) {
            find(&mut space, sweep.rows(step..(step + PART).min(rows), rows));
        }
    })
}

/// Rows of each level.
pub(super) fn sizes(level: &[u32]) -> Vec<usize> {
    let most = |most: usize, i: usize| most.max(level[i] as usize + 1);
    let count = Threads::Pool.fold(level.len(), PART, || 0, most, usize::max);
    // with many levels the sums would be longer than what they are of
    let threads = Threads::when(count < PART);
    let add = |mut sizes: Vec<usize>, i: usize| {
        sizes[level[i] as usize] += 1;
        sizes
    };
    let join = |mut sizes: Vec<usize>, others: Vec<usize>| {
        sizes.iter_mut().zip(others).for_each(|(size, other)| *size += other);
        sizes
    };
    threads.fold(level.len(), PART, || vec![0; count], add, join)
}

/// Scratch of a thread.
#[derive(Default)]
pub(super) struct Space {
    /// Rows that do not repeat the one before them.
    heads: Vec<usize>,
    /// Levels that rows have by all columns but that of their neighbour.
    least: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Finder<'a> {
    pattern: PatternView<'a>,
    sweep: Sweep,
    level: Shared<'a, u32>,
}

impl Finder<'_> {
    /// The levels of consecutive rows.
    ///
    /// # Safety
    /// Rows that these need, and are not among them, are finished, and nobody else reads or writes these.
    unsafe fn find(self, space: &mut Space, rows: Range<usize>) {
        space.heads.clear();
        let mut next = rows.start;
        while next < rows.end {
            space.heads.push(next);
            next += 1 + self.pattern.repeating(next + 1..rows.end);
        }
        let (heads, least) = (&space.heads, &mut space.least);
        let end = |at: usize| heads.get(at + 1).copied().unwrap_or(rows.end);
        // SAFETY: as the caller promises; heads come in the order of the sweep
        unsafe {
            match self.sweep {
                Sweep::Forward => {
                    (0..heads.len()).for_each(|at| self.ahead(least, heads[at]..end(at)));
                }
                Sweep::Backward => {
                    (0..heads.len()).rev().for_each(|at| self.behind(least, heads[at]..end(at)));
                }
            }
        }
    }

    /// Rows with the columns of the first of them, each moved by one from row to row, upwards.
    ///
    /// # Safety
    /// As [`find`](Self::find).
    unsafe fn ahead(self, least: &mut Vec<u32>, mut rows: Range<usize>) {
        let (first, columns) = (rows.start, self.pattern.row(rows.start));
        let (far, neighbour) = match columns.split_last() {
            Some((&j, far)) if j as usize + 1 == first => (far, true),
            _ => (columns, false),
        };
        // so many rows need none of each other but their neighbours
        let most = far.last().map_or(rows.len(), |&j| first - j as usize);
        while !rows.is_empty() {
            let (at, count) = (rows.start, rows.len().min(most));
            // SAFETY: columns lie before `at`, and these rows are the caller's
            unsafe {
                self.least(least, far, at - first, count);
                let mut before = if neighbour { self.level.read(at - 1..at)[0] } else { 0 };
                for (to, &least) in self.level.write(at..at + count).iter_mut().zip(&*least) {
                    *to = if neighbour { least.max(before + 1) } else { least };
                    before = *to;
                }
            }
            rows.start += count;
        }
    }

    /// The same downwards.
    ///
    /// # Safety
    /// As [`find`](Self::find).
    unsafe fn behind(self, least: &mut Vec<u32>, mut rows: Range<usize>) {
        let (first, columns) = (rows.start, self.pattern.row(rows.start));
        let (far, neighbour) = match columns.split_first() {
            Some((&j, far)) if j as usize == first + 1 => (far, true),
            _ => (columns, false),
        };
        let most = far.first().map_or(rows.len(), |&j| j as usize - first);
        while !rows.is_empty() {
            let count = rows.len().min(most);
            let at = rows.end - count;
            // SAFETY: columns lie behind the rows, which are the caller's
            unsafe {
                self.least(least, far, at - first, count);
                let next = rows.end..rows.end + usize::from(neighbour);
                let mut before = self.level.read(next).first().copied().unwrap_or(0);
                let of_rows = self.level.write(at..at + count).iter_mut().zip(&*least);
                for (to, &least) in of_rows.rev() {
                    *to = if neighbour { least.max(before + 1) } else { least };
                    before = *to;
                }
            }
            rows.end = at;
        }
    }

    /// What the columns `far`, moved by `by` and then by one from row to row, ask of `count` rows.
    ///
    /// # Safety
    /// The rows that are needed are finished.
    unsafe fn least(self, least: &mut Vec<u32>, far: &[u32], by: usize, count: usize) {
        least.clear();
        least.resize(count, 0);
        for &j in far {
            let start = j as usize + by;
            // SAFETY: the columns of rows
            let levels = unsafe { self.level.read(start..start + count) };
            least
                .iter_mut()
                .zip(levels)
                .for_each(|(least, level)| *least = (*least).max(level + 1));
        }
    }
}
