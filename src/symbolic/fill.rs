//! Symbolic phase of ILU(k): the filled pattern P' (Yang et al., Algorithm 3).

use std::borrow::Cow;

use super::Pattern;
use super::ordered_set::OrderedSet;
use crate::case::{LevelRule, MAX_FILL};
use crate::memory;

/// The pattern of the factors: strictly lower and strictly upper part; a diagonal is stored for
/// every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillPattern {
    /// Pattern of L without its unit diagonal.
    pub lower: Pattern<'static>,
    /// Pattern of U without the diagonal.
    pub upper: Pattern<'static>,
    /// Rows whose diagonal is neither an entry of A nor fill: their pivot is zero.
    pub no_diagonal: Vec<u32>,
}

impl FillPattern {
    /// Number of (block) rows.
    pub fn rows(&self) -> usize {
        self.lower.rows()
    }

    /// Entries of L, D and U together.
    pub fn blocks(&self) -> usize {
        self.lower.entries() + self.rows() + self.upper.entries()
    }

    /// Bytes held by the pattern.
    pub fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes()
    }

    /// The pattern of a diagonal matrix: what block Jacobi keeps.
    pub fn diagonal(rows: usize) -> Self {
        let empty =
            || Pattern { row_ptr: Cow::Owned(vec![0; rows + 1]), col_ind: Cow::Owned(Vec::new()) };
        Self { lower: empty(), upper: empty(), no_diagonal: Vec::new() }
    }
}

/// The filled pattern would hold more entries than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Row that was reached.
    pub row: usize,
    /// Entries of L and U up to that row.
    pub entries: usize,
}

/// Level of a column that is not in the current row.
const ABSENT: u8 = u8::MAX;

/// Pattern of ILU(k) (Yang et al., Algorithm 3), row by row.
///
/// Row i starts with the entries of A at level 0. For each column p < i of the row, in increasing
/// order, and each j > p of row p, `l = level(i,p) + level(p,j) + 1`; entries with `l <= k` enter
/// the row. How a level already there is updated is the `rule`'s matter. `limit` bounds the entries
/// of L and U together.
///
/// Only entries of row p with `level(p,j) < k - level(i,p)` can matter, so rows are kept grouped
/// by level while the phase runs, and the others are never looked at.
///
/// # Errors
/// [`TooLarge`] when `limit` is passed.
///
/// # Panics
/// If `k` is above [`MAX_FILL`].
pub fn iluk(a: &Pattern, k: usize, rule: LevelRule, limit: usize) -> Result<FillPattern, TooLarge> {
    assert!(k <= MAX_FILL, "fill level {k} is above {MAX_FILL}");
    if k == 0 {
        return split(a, limit);
    }
    match rule {
        LevelRule::Min => fill::<false>(a, k, limit),
        LevelRule::Overwrite => fill::<true>(a, k, limit),
    }
}

/// ILU(0): the pattern of A, cut at the diagonal.
fn split(a: &Pattern, limit: usize) -> Result<FillPattern, TooLarge> {
    let n = a.rows();
    let mut out = Split::with_capacity(n, a.entries() / 2);
    for i in 0..n {
        let row = a.row(i);
        let lower = row.partition_point(|&j| (j as usize) < i);
        let diagonal = row.get(lower).is_some_and(|&j| j as usize == i);
        if !diagonal {
            out.no_diagonal.push(i as u32);
        }
        let upper = lower + usize::from(diagonal);
        out.lower.extend_from_slice(&row[..lower]);
        out.upper.extend_from_slice(&row[upper..]);
        out.end_row(i, limit)?;
    }
    Ok(out.finish())
}

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

    fn finish(mut self) -> FillPattern {
        self.lower.shrink_to_fit();
        self.upper.shrink_to_fit();
        FillPattern {
            lower: Pattern { row_ptr: self.lower_ptr.into(), col_ind: self.lower.into() },
            upper: Pattern { row_ptr: self.upper_ptr.into(), col_ind: self.upper.into() },
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

fn fill<const OVERWRITE: bool>(
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
    Ok(out.finish())
}
