//! Fill levels row by row, in the order of elimination.

use super::fill_pattern::FillPattern;
use super::ordered_set::OrderedSet;
use crate::base::memory;
use crate::matrix::pattern::repeats::{repeating, repeats, run};
use crate::matrix::pattern::rows::Growing;
use crate::matrix::pattern::{Pattern, TooLarge};

/// Level of a column that is not in the current row.
const ABSENT: u8 = u8::MAX;

/// Most rows that are copied at a time: so many may be found beyond a limit.
const RUN: usize = 512;

/// Upper parts of finished rows, grouped by level 0, 1, ..., k-1 within a row.
pub(super) struct ByLevel {
    k: usize,
    /// 1 for each row whose groups repeat those of the row before it.
    repeats: Vec<u8>,
    /// Start of each (row, level) group in `cols`; k groups per row, one closing entry.
    start: Vec<u32>,
    cols: Vec<u32>,
}

impl ByLevel {
    fn new(n: usize, k: usize, entries: usize) -> Self {
        let mut start = memory::with_capacity(n * k + 1);
        start.push(0);
        let repeats = memory::with_capacity(n);
        Self { k, repeats, start, cols: memory::with_capacity(entries) }
    }

    /// Appends a row's upper part; level k cannot cause fill and is left out.
    fn push_row(&mut self, upper: &[u32], level: &[u8]) {
        for l in 0..self.k as u8 {
            self.cols.extend(upper.iter().filter(|&&j| level[j as usize] == l));
            self.start.push(self.cols.len() as u32);
        }
        let row = self.repeats.len();
        let same =
            row > 0 && (0..self.k).all(|l| repeats(self.group(row, l), self.group(row - 1, l), 1));
        self.repeats.push(u8::from(same));
    }

    /// Appends `count` rows that repeat the last one.
    fn repeat_row(&mut self, count: usize) {
        let last = (self.repeats.len() - 1) * self.k;
        let start = self.start[last] as usize;
        let length = self.cols.len() - start;
        memory::reserve(&mut self.cols, count * length);
        for row in 1..=count {
            self.cols.extend_from_within(start..start + length);
            let new = self.cols.len() - length;
            self.cols[new..].iter_mut().for_each(|j| *j += row as u32);
            for l in 1..=self.k {
                self.start.push(self.start[last + l] + (row * length) as u32);
            }
        }
        self.repeats.resize(self.repeats.len() + count, 1);
    }

    /// Of `count` rows from p on those at the start whose groups repeat those before them; rows that are not
    /// finished are taken to do so.
    fn run(&self, p: usize, count: usize) -> usize {
        let finished = self.repeats.len().min(p + count) - p;
        let found = run(&self.repeats[p..p + finished], 1);
        if found < finished { found } else { count }
    }

    /// Columns of row p with exactly level l.
    #[inline]
    pub(super) fn group(&self, p: usize, l: usize) -> &[u32] {
        let at = p * self.k + l;
        &self.cols[self.start[at] as usize..self.start[at + 1] as usize]
    }
}

/// Pattern of ILU(k) where the last update of a level wins, or the smallest.
pub(super) fn fill<const OVERWRITE: bool>(
    a: &Pattern,
    k: usize,
    limit: usize,
) -> Result<FillPattern, TooLarge> {
    levelled::<OVERWRITE>(a, k, limit).map(|(pattern, _)| pattern)
}

/// The same with the levels of U below k.
///
/// Only entries of row p with `level(p,j) < k - level(i,p)` can matter, so rows are kept grouped
/// by level while the phase runs, and the others are never looked at.
pub(super) fn levelled<const OVERWRITE: bool>(
    a: &Pattern,
    k: usize,
    limit: usize,
) -> Result<(FillPattern, ByLevel), TooLarge> {
    let n = a.rows();
    let mut out = Growing::new(n, [a.entries(); 2], 0, limit);
    let mut no_diagonal = Vec::new();
    let mut done = ByLevel::new(n, k, a.entries());
    let mut level = vec![ABSENT; n];
    let mut members = OrderedSet::new(n);
    let mut row: Vec<u32> = Vec::new();
    // columns of the lower part of the last row whose levels are below k
    let mut sources: Vec<u32> = Vec::new();
    let mut i = 0;
    while i < n {
        if i > 0 {
            let end = n.min(i + RUN);
            let mut count = repeating(a.view(), i..end);
            for &p in &sources {
                if count > 0 {
                    count = done.run(p as usize + 1, count);
                }
            }
            if count > 0 {
                out.repeat(count)?;
                done.repeat_row(count);
                if no_diagonal.last() == Some(&(i as u32 - 1)) {
                    no_diagonal.extend((i..i + count).map(|i| i as u32));
                }
                for p in &mut sources {
                    *p += count as u32;
                }
                i += count;
                continue;
            }
        }
        for &j in a.row(i) {
            level[j as usize] = 0;
            members.insert(j);
        }
        row.clear();
        let mut at = members.next(0);
        sources.clear();
        // lower part: fill may add columns between p and i while it is walked
        while let Some(p) = at.filter(|&p| (p as usize) < i) {
            row.push(p);
            let level_p = level[p as usize] as usize;
            if level_p < k {
                sources.push(p);
            }
            for l in 0..k.saturating_sub(level_p) {
                let new = (level_p + l + 1) as u8;
                for &j in done.group(p as usize, l) {
                    let old = level[j as usize];
                    if old == ABSENT {
                        members.insert(j);
                        level[j as usize] = new;
                    } else if OVERWRITE {
                        if j as usize != i {
                            level[j as usize] = new;
                        }
                    } else if new < old {
                        level[j as usize] = new;
                    }
                }
            }
            at = members.next(p + 1);
        }
        let lower = row.len();
        if at == Some(i as u32) {
            row.push(i as u32);
            at = members.next(i as u32 + 1);
        } else {
            no_diagonal.push(i as u32);
        }
        let diagonal = row.len();
        while let Some(j) = at {
            row.push(j);
            at = members.next(j + 1);
        }
        let halves = [&row[..lower], &row[diagonal..]];
        out.columns.iter_mut().zip(halves).for_each(|(out, half)| out.extend_from_slice(half));
        out.end_row()?;
        done.push_row(halves[1], &level);
        members.clear(&row);
        for &j in &row {
            level[j as usize] = ABSENT;
        }
        i += 1;
    }
    let [lower, upper] = out.finish(a.block_size());
    Ok((FillPattern::new(lower, upper, no_diagonal), done))
}
