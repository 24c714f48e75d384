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
    runs: Vec<Range<usize>>,
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
        let Space { runs, least } = space;
        runs.clear();
        runs.extend(self.pattern.runs(rows));
        if self.sweep == Sweep::Backward {
            runs.reverse();
        }
        // SAFETY: as the caller promises; runs come in the order of the sweep
        runs.drain(..).for_each(|run| unsafe { self.find_run(least, run) });
    }

    /// Those of rows with the columns of the first of them, each moved by one from row to row.
    ///
    /// # Safety
    /// As [`find`](Self::find).
    unsafe fn find_run(self, least: &mut Vec<u32>, mut rows: Range<usize>) {
        let first = rows.start;
        let (far, neighbour) = self.sweep.split(self.pattern.row(first), first);
        let nearest = match self.sweep {
            Sweep::Forward => far.last(),
            Sweep::Backward => far.first(),
        };
        // so many rows need none of each other but their neighbours
        let most = nearest.map_or(rows.len(), |&j| first.abs_diff(j as usize));
        while !rows.is_empty() {
            let count = rows.len().min(most);
            let (at, before) = match self.sweep {
                Sweep::Forward => (rows.start, rows.start.wrapping_sub(1)),
                Sweep::Backward => (rows.end - count, rows.end),
            };
            // SAFETY: columns lie before these rows in the sweep, and the rows are the caller's
            unsafe {
                self.least(least, far, at - first, count);
                let mut next =
                    if neighbour { self.level.read(before..before + 1)[0] + 1 } else { 0 };
                let levels = self.level.write(at..at + count);
                for step in 0..count {
                    let i = self.sweep.row(step, count);
                    levels[i] = least[i].max(next);
                    next = if neighbour { levels[i] + 1 } else { 0 };
                }
            }
            match self.sweep {
                Sweep::Forward => rows.start += count,
                Sweep::Backward => rows.end = at,
            }
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
