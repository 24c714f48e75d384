//! Level schedules of triangular solves (Yang et al., formula 4 and Algorithm 6).

use super::FillPattern;
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::Pattern;

/// Rows that a thread sorts.
const PART: usize = 1 << 14;

/// Rows grouped into levels: a row depends only on rows of earlier levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Rows, level by level, in increasing order within a level.
    pub rows: Vec<u32>,
    /// Start of each level in `rows`; one more entry than levels.
    pub level_ptr: Vec<u32>,
}

impl Schedule {
    /// Schedule of the forward solve with `L`.
    pub fn lower(p: &FillPattern) -> Self {
        Self::from_levels(&levels(&p.lower, 0..p.rows()))
    }

    /// Schedule of the backward solve with `U`.
    pub fn upper(p: &FillPattern) -> Self {
        Self::from_levels(&levels(&p.upper, (0..p.rows()).rev()))
    }

    /// Number of levels.
    pub fn levels(&self) -> usize {
        self.level_ptr.len() - 1
    }

    /// Rows of level `l`, counted from 0.
    pub fn level(&self, l: usize) -> &[u32] {
        &self.rows[self.level_ptr[l] as usize..self.level_ptr[l + 1] as usize]
    }

    /// The levels in the opposite order, for the backward solve of a symmetric pattern.
    #[must_use]
    pub(crate) fn reversed(&self) -> Self {
        let mut level_ptr = vec![0u32];
        let mut parts: Vec<&[u32]> = Vec::new();
        for l in (0..self.levels()).rev() {
            parts.extend(self.level(l).chunks(PART));
            level_ptr.push(level_ptr[level_ptr.len() - 1] + self.level(l).len() as u32);
        }
        Self { rows: memory::joined(&parts, true), level_ptr }
    }

    /// The same levels of rows that have the numbers of their places.
    #[must_use]
    pub(crate) fn in_place(&self) -> Self {
        let rows = Threads::Pool.map(self.rows.len(), PART, |i| i as u32);
        Self { rows, level_ptr: self.level_ptr.clone() }
    }

    /// [`Schedule::from_levels`] on one thread or all.
    pub(crate) fn from_levels_on(threads: Threads, level: &[u32]) -> Self {
        if threads == Threads::One {
            return Self::from_levels(level);
        }
        let more = |count: usize, i: usize| count.max(level[i] as usize + 1);
        let count = threads.fold(level.len(), PART, || 0, more, usize::max);
        // with many levels the threads would count more than they sort
        if count > PART / 16 {
            return Self::from_levels(level);
        }
        Self::sorted(threads, [level.len(), count], |row| level[row]).0
    }

    /// `rows` rows by their levels, of which there are `levels`, in order within one; and the place of each.
    pub(crate) fn sorted(
        threads: Threads,
        [rows, levels]: [usize; 2],
        level: impl Fn(usize) -> u32 + Sync + Send,
    ) -> (Self, Vec<u32>) {
        let own = |part: usize| part * PART..((part + 1) * PART).min(rows);
        let count = |part: usize| {
            let mut counts = vec![0_u32; levels];
            own(part).for_each(|row| counts[level(row) as usize] += 1);
            counts
        };
        let mut starts = threads.map(rows.div_ceil(PART), 1, count);
        let (mut level_ptr, mut at) = (vec![0], 0);
        for l in 0..levels {
            for part in &mut starts {
                at += std::mem::replace(&mut part[l], at);
            }
            level_ptr.push(at);
        }
        let (mut place, mut sorted) = (memory::zeroed::<u32>(rows), memory::zeroed::<u32>(rows));
        // what is left of each level, of which every part takes what it has
        let (mut left, mut rest) = (Vec::with_capacity(levels), &mut sorted[..]);
        for ends in level_ptr.windows(2) {
            let (here, behind) = rest.split_at_mut((ends[1] - ends[0]) as usize);
            left.push(here);
            rest = behind;
        }
        let mut tasks = Vec::with_capacity(starts.len());
        for (part, place) in place.chunks_mut(PART).enumerate() {
            let end = |l: usize| starts.get(part + 1).map_or(level_ptr[l + 1], |next| next[l]);
            let mut own = Vec::with_capacity(levels);
            for (l, left) in left.iter_mut().enumerate() {
                let count = (end(l) - starts[part][l]) as usize;
                let (here, behind) = std::mem::take(left).split_at_mut(count);
                own.push(here);
                *left = behind;
            }
            tasks.push((part, place, own));
        }
        threads.each(tasks, |(part, place, mut to)| {
            let mut next = vec![0_usize; levels];
            for (place, row) in place.iter_mut().zip(own(part)) {
                let l = level(row) as usize;
                *place = starts[part][l] + next[l] as u32;
                to[l][next[l]] = row as u32;
                next[l] += 1;
            }
        });
        (Self { rows: sorted, level_ptr }, place)
    }

    /// Stable counting sort of the rows by level.
    pub(crate) fn from_levels(level: &[u32]) -> Self {
        let count = level.iter().max().map_or(0, |&l| l as usize + 1);
        let mut level_ptr = vec![0u32; count + 1];
        for &l in level {
            level_ptr[l as usize + 1] += 1;
        }
        for l in 0..count {
            level_ptr[l + 1] += level_ptr[l];
        }
        let mut next = level_ptr.clone();
        let mut rows = memory::zeroed::<u32>(level.len());
        for (i, &l) in level.iter().enumerate() {
            rows[next[l as usize] as usize] = i as u32;
            next[l as usize] += 1;
        }
        Self { rows, level_ptr }
    }
}

/// Number of levels of the forward solve.
pub fn levels_lower(p: &FillPattern) -> usize {
    count(&levels(&p.lower, 0..p.rows()))
}

/// Number of levels of the backward solve.
pub fn levels_upper(p: &FillPattern) -> usize {
    count(&levels(&p.upper, (0..p.rows()).rev()))
}

fn count(level: &[u32]) -> usize {
    level.iter().max().map_or(0, |&l| l as usize + 1)
}

/// Level of each row, from 0: one more than the highest level it depends on.
fn levels(p: &Pattern, order: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut level = vec![0u32; p.rows()];
    for i in order {
        level[i] = p.row(i).iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0);
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_sort_as_one_does() {
        for (n, levels) in [(0, 1), (5, 2), (100_003, 1), (100_003, 7), (50_000, 5000)] {
            let level: Vec<u32> =
                (0..n).map(|i: u32| i.wrapping_mul(2_654_435_761) % levels).collect();
            let want = Schedule::from_levels(&level);
            for threads in [Threads::One, Threads::Pool] {
                assert_eq!(Schedule::from_levels_on(threads, &level), want, "{n}, {levels}");
            }
        }
    }
}
