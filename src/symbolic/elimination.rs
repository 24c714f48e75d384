//! Fill levels row by row, in the order of elimination.

use super::fill_pattern::FillPattern;
use super::ordered_set::OrderedSet;
use crate::base::memory;
use crate::matrix::pattern::{Pattern, TooLarge};

/// Level of a column that is not in the current row.
const ABSENT: u8 = u8::MAX;

/// The two halves of a pattern while it grows.
struct Split {
    lower_ptr: Vec<u32>,
    lower: Vec<u32>,
    upper_ptr: Vec<u32>,
    upper: Vec<u32>,
    no_diagonal: Vec<u32>,
}

impl Split {
    fn with_capacity(rows: usize, half: usize) -> Self {
        let ptr = || {
            let mut p = memory::with_capacity(rows + 1);
            p.push(0);
            p
        };
        Self {
            lower_ptr: ptr(),
            lower: memory::with_capacity(half),
            upper_ptr: ptr(),
            upper: memory::with_capacity(half),
            no_diagonal: Vec::new(),
        }
    }

    fn end_row(&mut self, row: usize, limit: usize) -> Result<(), TooLarge> {
        let entries = self.lower.len() + self.upper.len();
        if entries > limit.min(u32::MAX as usize) {
            return Err(TooLarge { row, entries });
        }
        self.lower_ptr.push(self.lower.len() as u32);
        self.upper_ptr.push(self.upper.len() as u32);
        Ok(())
    }

    fn finish(mut self, block_size: usize) -> FillPattern {
        self.lower.shrink_to_fit();
        self.upper.shrink_to_fit();
        FillPattern {
            lower: Pattern::new(self.lower_ptr, self.lower).in_blocks(block_size),
            upper: Pattern::new(self.upper_ptr, self.upper).in_blocks(block_size),
            no_diagonal: self.no_diagonal,
        }
    }
}

/// Upper parts of finished rows, grouped by level 0, 1, ..., k-1 within a row.
struct ByLevel {
    k: usize,
    /// Start of each (row, level) group in `cols`; k groups per row, one closing entry.
    start: Vec<u32>,
    cols: Vec<u32>,
}

impl ByLevel {
    fn new(n: usize, k: usize, entries: usize) -> Self {
        let mut start = memory::with_capacity(n * k + 1);
        start.push(0);
        Self { k, start, cols: memory::with_capacity(entries) }
    }

    /// Appends a row's upper part; level k cannot cause fill and is left out.
    fn push_row(&mut self, upper: &[u32], level: &[u8]) {
        for l in 0..self.k as u8 {
            self.cols.extend(upper.iter().filter(|&&j| level[j as usize] == l));
            self.start.push(self.cols.len() as u32);
        }
    }

    /// Columns of row p with exactly level l.
    #[inline]
    fn group(&self, p: usize, l: usize) -> &[u32] {
        let at = p * self.k + l;
        &self.cols[self.start[at] as usize..self.start[at + 1] as usize]
    }
}

/// Pattern of ILU(k), k > 0, where the last update of a level wins, or the smallest.
///
/// Only entries of row p with `level(p,j) < k - level(i,p)` can matter, so rows are kept grouped
/// by level while the phase runs, and the others are never looked at.
pub(super) fn fill<const OVERWRITE: bool>(
    a: &Pattern,
    k: usize,
    limit: usize,
) -> Result<FillPattern, TooLarge> {
    let n = a.rows();
    let mut out = Split::with_capacity(n, a.entries());
    let mut done = ByLevel::new(n, k, a.entries());
    let mut level = vec![ABSENT; n];
    let mut members = OrderedSet::new(n);
    let mut row: Vec<u32> = Vec::new();
    for i in 0..n {
        for &j in a.row(i) {
            level[j as usize] = 0;
            members.insert(j);
        }
        row.clear();
        let mut at = members.next(0);
        // lower part: fill may add columns between p and i while it is walked
        while let Some(p) = at.filter(|&p| (p as usize) < i) {
            row.push(p);
            let level_p = level[p as usize] as usize;
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
            out.no_diagonal.push(i as u32);
        }
        let diagonal = row.len();
        while let Some(j) = at {
            row.push(j);
            at = members.next(j + 1);
        }
        out.lower.extend_from_slice(&row[..lower]);
        let upper = &row[diagonal..];
        out.upper.extend_from_slice(upper);
        out.end_row(i, limit)?;
        done.push_row(upper, &level);
        members.clear(&row);
        for &j in &row {
            level[j as usize] = ABSENT;
        }
    }
    Ok(out.finish(a.block_size()))
}
