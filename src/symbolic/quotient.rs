//! Unknowns that elimination cannot tell apart.
//!
//! Consecutive unknowns with the same neighbours, as those of a cell or a node have, have the same levels towards
//! all others: of a shortest path between two unknowns none is in the group of an end, since the end itself has
//! its neighbours, and of another group any will do. So ILU(k) with the rule `min` is found on the graph whose
//! vertices are the groups, and expanded.

use super::{FillPattern, by_level};
use crate::base::threads::Threads;
use crate::matrix::pattern::Pattern;
use crate::matrix::pattern::rows::{Lengths, laid, sample};

/// The graph of the groups.
struct Quotient {
    pattern: Pattern<'static>,
    /// First row of each group, and the number of rows.
    first: Vec<u32>,
}

impl Quotient {
    /// That of `a`; `None` where the groups are more than half as many as the rows, or a row has no diagonal.
    fn of(a: &Pattern) -> Option<Self> {
        let n = a.rows();
        if !Self::is_likely(a) {
            return None;
        }
        let mut first: Vec<u32> = vec![0];
        for i in 1..n {
            if a.row(i) != a.row(i - 1) {
                first.push(i as u32);
                if 2 * first.len() > n {
                    return None;
                }
            }
        }
        first.push(n as u32);
        first = Self::whole(a, &first)?;
        let group = groups(&first);
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::with_capacity(a.entries() / 4));
        for &i in &first[..first.len() - 1] {
            let columns = a.row(i as usize).iter().map(|&j| (j, group[j as usize]));
            col_ind.extend(columns.filter(|&(j, g)| first[g as usize] == j).map(|(_, g)| g));
            row_ptr.push(col_ind.len() as u32);
        }
        Some(Self { pattern: Pattern::new(row_ptr, col_ind), first })
    }

    /// Whether as many rows as groups need are equal to the row before them, as far as a sample tells.
    fn is_likely(a: &Pattern) -> bool {
        /// Rows of the sample.
        const SAMPLES: usize = 1024;
        let n = a.rows();
        let equal = |i: &usize| *i > 0 && a.row(*i) == a.row(i - 1);
        // all are looked at where there are few, since a part of few rows tells nothing
        n <= 8 * SAMPLES || {
            let equal = sample(n, SAMPLES).filter(equal).count();
            // half of them are, in a matrix that has groups; a quarter of a sample is far below that
            4 * equal > SAMPLES
        }
    }

    /// The groups without those of which some row has a part alone, or which do not have themselves.
    fn whole(a: &Pattern, first: &[u32]) -> Option<Vec<u32>> {
        let group = groups(first);
        let size = |g: usize| (first[g + 1] - first[g]) as usize;
        let mut broken = vec![false; first.len() - 1];
        for (g, &i) in first[..first.len() - 1].iter().enumerate() {
            let columns = a.row(i as usize);
            let (mut at, mut diagonal) = (0, false);
            while at < columns.len() {
                let of = group[columns[at] as usize] as usize;
                let last = columns.get(at + size(of) - 1);
                if columns[at] == first[of] && last == Some(&(first[of + 1] - 1)) {
                    at += size(of);
                } else {
                    broken[of] = true;
                    at += 1;
                }
                diagonal |= of == g;
            }
            broken[g] |= !diagonal;
        }
        let mut left = Vec::with_capacity(first.len());
        for (g, rows) in first.windows(2).enumerate() {
            left.extend(rows[0]..if broken[g] { rows[1] } else { rows[0] + 1 });
        }
        left.push(a.rows() as u32);
        (2 * left.len() <= a.rows()
            && (0..a.rows()).all(|i| a.row(i).binary_search(&(i as u32)).is_ok()))
        .then_some(left)
    }
}

/// The group of each row.
fn groups(first: &[u32]) -> Vec<u32> {
    let mut group = vec![0; first[first.len() - 1] as usize];
    for (g, rows) in first.windows(2).enumerate() {
        group[rows[0] as usize..rows[1] as usize].fill(g as u32);
    }
    group
}

/// Pattern of ILU(k) by the rule `min`; `None` where there are few groups, or more than `limit` entries.
pub(super) fn fill(a: &Pattern, k: usize, limit: usize, threads: Threads) -> Option<FillPattern> {
    let Quotient { pattern, first } = Quotient::of(a)?;
    let filled = by_level::fill(&pattern, k, limit, threads).ok()?;
    let size = |g: u32| (first[g as usize + 1] - first[g as usize]) as usize;
    let halves = [&filled.lower, &filled.upper];
    let beside = |half: &Pattern, g: usize| half.row(g).iter().map(|&g| size(g)).sum::<usize>();
    let sums: Vec<[usize; 2]> =
        (0..pattern.rows()).map(|g| halves.map(|half| beside(half, g))).collect();
    let entries: usize = (0..).zip(&sums).map(|(g, [l, u])| size(g) * (l + u + size(g) - 1)).sum();
    if entries > limit.min(u32::MAX as usize) {
        return None;
    }
    let group = groups(&first);
    let own = |i: usize| {
        let g = group[i] as usize;
        (g, first[g], first[g + 1])
    };
    let of = |i: usize| {
        let (g, begin, end) = own(i);
        [sums[g][0] + i - begin as usize, sums[g][1] + end as usize - 1 - i]
    };
    let lengths = Lengths { rows: a.rows(), block_size: a.block_size(), of };
    let [lower, upper] = laid(threads, &lengths, |i, [left, right]| {
        let (g, begin, end) = own(i);
        let expanded = |half: &Pattern, to: &mut [u32]| {
            let mut at = 0;
            for &g in half.row(g) {
                for j in first[g as usize]..first[g as usize + 1] {
                    to[at] = j;
                    at += 1;
                }
            }
            at
        };
        let written = expanded(&filled.lower, left);
        left[written..].iter_mut().zip(begin..).for_each(|(to, j)| *to = j);
        let before = (end as usize - 1) - i;
        right[..before].iter_mut().zip(i as u32 + 1..).for_each(|(to, j)| *to = j);
        expanded(&filled.upper, &mut right[before..]);
    });
    Some(FillPattern::new(lower, upper, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::super::elimination;
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use std::collections::BTreeSet;

    /// Groups of up to six rows, of which one in `defects` rows lacks an entry.
    fn grouped(groups: usize, per_row: usize, defects: u32, seed: u64) -> Pattern<'static> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut first = vec![0];
        for g in 0..groups {
            first.push(first[g] + rng.random_range(1..7));
        }
        let mut rows: Vec<BTreeSet<u32>> = Vec::new();
        for g in 0..groups {
            let mut of: BTreeSet<usize> =
                (0..per_row).map(|_| rng.random_range(0..groups)).collect();
            of.insert(g);
            let columns: BTreeSet<u32> = of.iter().flat_map(|&g| first[g]..first[g + 1]).collect();
            rows.extend((first[g]..first[g + 1]).map(|_| columns.clone()));
        }
        for i in 0..rows.len() {
            if rng.random_range(0..defects) == 0 {
                let any = *rows[i].iter().nth(rng.random_range(0..rows[i].len())).unwrap();
                // sometimes the diagonal
                rows[i].remove(&any);
            }
        }
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for row in rows {
            col_ind.extend(row);
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn groups_are_filled_as_their_rows(
            groups in 1usize..40, per_row in 0usize..4, k in 1usize..6, defects in 3u32..300,
            seed in any::<u64>(),
        ) {
            let a = grouped(groups, per_row, defects, seed);
            let expected = elimination::fill::<false>(&a, k, usize::MAX).expect("small");
            if let Some(found) = fill(&a, k, usize::MAX, Threads::One) {
                prop_assert_eq!(&found, &expected);
                let entries = found.lower.entries() + found.upper.entries();
                prop_assert!(fill(&a, k, entries, Threads::Pool).is_some_and(|f| f == expected));
                prop_assert!(entries == 0 || fill(&a, k, entries - 1, Threads::One).is_none());
            }
        }
    }

    #[test]
    fn groups_are_found_but_for_those_that_are_not_whole() {
        let whole = grouped(30, 3, u32::MAX, 7);
        assert!(fill(&whole, 2, usize::MAX, Threads::One).is_some());
        let Quotient { first, .. } = Quotient::of(&whole).expect("groups");
        // one row without the last column of a group of more than one
        let g = first.windows(2).position(|rows| rows[1] - rows[0] > 2).expect("a group of three");
        let lost = first[g + 1] - 1;
        let i =
            (0..whole.rows()).find(|&i| i as u32 != lost && whole.row(i).contains(&lost)).unwrap();
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for row in 0..whole.rows() {
            col_ind.extend(whole.row(row).iter().filter(|&&j| row != i || j != lost));
            row_ptr.push(col_ind.len() as u32);
        }
        let a = Pattern::new(row_ptr, col_ind);
        let less = Quotient::of(&a).expect("other groups");
        assert!(less.first.len() > first.len());
        assert!((first[g]..first[g + 1]).all(|row| less.first.contains(&row)));
        let expected = elimination::fill::<false>(&a, 2, usize::MAX).unwrap();
        assert_eq!(fill(&a, 2, usize::MAX, Threads::One).unwrap(), expected);
        // a grid has none
        let line = Pattern::new(vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2]);
        assert!(Quotient::of(&line).is_none());
    }
}
