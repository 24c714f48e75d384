//! Symbolic phase of ILU(k): the filled pattern P' (Yang et al., Algorithm 3).

use super::fill_pattern::FillPattern;
use super::stencil::Stencil;
use super::{BoxFill, banded, by_level, elimination, quotient};
use crate::base::choices::{LevelRule, MAX_FILL};
use crate::base::measure::spans::span;
use crate::base::threads::Threads;
use crate::matrix::pattern::{Pattern, TooLarge};

/// Pattern of ILU(k) (Yang et al., Algorithm 3) on one thread.
///
/// The entries of A have level 0. For each column p < i of row i, in increasing order, and each
/// j > p of row p, `l = level(i,p) + level(p,j) + 1`; entries with `l <= k` enter the row. How a
/// level already there is updated is the `rule`'s matter. `limit` bounds the entries of L and U
/// together.
///
/// # Errors
/// [`TooLarge`] when `limit` is passed.
///
/// # Panics
/// If `k` is above [`MAX_FILL`].
pub fn iluk(a: &Pattern, k: usize, rule: LevelRule, limit: usize) -> Result<FillPattern, TooLarge> {
    iluk_on(Threads::One, a, k, rule, limit)
}

/// [`iluk`] on one thread or on those of the current pool, with the same result. With the rule
/// `overwrite` a level depends on the order of all updates before it, so that its rows are found one
/// after the other on any number of threads, but for those of a stencil on a box.
///
/// # Errors
/// As [`iluk`].
///
/// # Panics
/// As [`iluk`].
pub(crate) fn iluk_on(
    threads: Threads,
    a: &Pattern,
    k: usize,
    rule: LevelRule,
    limit: usize,
) -> Result<FillPattern, TooLarge> {
    assert!(k <= MAX_FILL, "fill level {k} is above {MAX_FILL}");
    let told = || {
        let stencil = span("stencil", || Stencil::complete(threads, a.view()))?;
        BoxFill::of(threads, &stencil, k, rule)
    };
    if k > 0
        && let Some(told) = told()
        && told.entries.iter().sum::<usize>() <= limit
    {
        return Ok(told.pattern(threads, a.block_size()));
    }
    match rule {
        // without fill there is no level to update
        LevelRule::Overwrite if k > 0 => elimination::fill::<true>(a, k, limit),
        _ if k == 0 => by_level::fill(a, k, limit, threads),
        _ => banded::fill(a, k, limit)
            .or_else(|| quotient::fill(a, k, limit, threads).map(Ok))
            .unwrap_or_else(|| by_level::fill(a, k, limit, threads)),
    }
}

/// Pattern of ILU(k) by the rule `min` with entries of levels up to `top` whose row or column is `from` or behind it.
///
/// # Errors
/// As [`iluk`].
///
/// # Panics
/// If `top` is above [`MAX_FILL`], or below k.
pub(crate) fn iluk_raised(
    threads: Threads,
    a: &Pattern,
    [k, top]: [usize; 2],
    from: usize,
    limit: usize,
) -> Result<FillPattern, TooLarge> {
    assert!((k..=MAX_FILL).contains(&top), "fill levels {k} and {top}, at most {MAX_FILL}");
    if top == k {
        return iluk_on(threads, a, k, LevelRule::Min, limit);
    }
    by_level::raised::<true>(a, [k, top], from, limit, threads)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A pattern with about `per_row` entries in a row, diagonals missing here and there.
    pub(in crate::symbolic) fn random(
        n: usize,
        per_row: usize,
        symmetric: bool,
        seed: u64,
    ) -> Pattern<'static> {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut rows = vec![std::collections::BTreeSet::new(); n];
        for i in 0..n {
            if rng.random_range(0..8) > 0 {
                rows[i].insert(i as u32);
            }
            for _ in 0..rng.random_range(0..=per_row) {
                let j = rng.random_range(0..n);
                rows[i].insert(j as u32);
                if symmetric {
                    rows[j].insert(i as u32);
                }
            }
        }
        let mut row_ptr = vec![0];
        let mut col_ind = Vec::new();
        for row in rows {
            col_ind.extend(row);
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind)
    }

    /// Offsets that nearly all rows have, on lines of `line` points; about one entry in `defects` is missing.
    fn banded(n: usize, offsets: &[i64], line: i64, defects: u32, seed: u64) -> Pattern<'static> {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for i in 0..n as i64 {
            for j in offsets.iter().map(|o| i + o).filter(|j| (0..n as i64).contains(j)) {
                let within = (j - i).abs() >= line || i / line == j / line;
                if within && rng.random_range(0..defects) > 0 {
                    col_ind.push(j as u32);
                }
            }
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind)
    }

    /// Rows that are known to repeat the row before them; all of them do.
    fn known_to_repeat(p: &Pattern) -> usize {
        let known = |i: &usize| p.repeated(*i..i + 1) == 1;
        let all = |i: &usize| p.row(*i).iter().copied().eq(p.row(i - 1).iter().map(|j| j + 1));
        let rows: Vec<usize> = (0..p.rows()).filter(known).collect();
        assert!(rows.iter().all(all), "a row does not repeat");
        rows.len()
    }

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn level_by_level_is_elimination_row_by_row(
            n in 1usize..120, per_row in 0usize..5, k in 1usize..8,
            symmetric in any::<bool>(), seed in any::<u64>(),
        ) {
            let a = random(n, per_row, symmetric, seed);
            let expected = elimination::fill::<false>(&a, k, usize::MAX).expect("small");
            prop_assert_eq!(&iluk(&a, k, LevelRule::Min, usize::MAX).expect("small"), &expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn rows_that_repeat_are_found_as_all_others(
            n in 1usize..150, line in 3i64..40, k in 0usize..7, defects in 2u32..200, far in 4i64..50,
            seed in any::<u64>(),
        ) {
            let offsets = [-far, -3, -1, 0, 1, 2, far];
            let a = banded(n, &offsets, line, defects, seed);
            for rule in [LevelRule::Min, LevelRule::Overwrite] {
                let found = iluk(&a, k, rule, usize::MAX).expect("small");
                prop_assert_eq!(&found, &row_by_row(&a, k, rule), "{:?}", rule);
                known_to_repeat(&found.lower);
                known_to_repeat(&found.upper);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn raised_levels_are_those_of_elimination_row_by_row(
            n in 1usize..120, line in 3i64..40, k in 0usize..4, more in 0usize..3, from in 0usize..130,
            defects in 2u32..200, per_row in 0usize..5, seed in any::<u64>(),
        ) {
            let grid = banded(n, &[-20, -3, -1, 0, 1, 3, 20], line, defects, seed);
            for a in [random(n, per_row, false, seed), grid] {
                let expected = levelled(&a, LevelRule::Min, |i, j| {
                    if i.max(j) >= from { k + more } else { k }
                });
                for threads in [Threads::One, Threads::Pool] {
                    let found = iluk_raised(threads, &a, [k, k + more], from, usize::MAX);
                    prop_assert_eq!(&found.expect("small"), &expected);
                }
            }
        }
    }

    /// Elimination with an array of levels for each row, and nothing else.
    fn row_by_row(a: &Pattern, k: usize, rule: LevelRule) -> FillPattern {
        levelled(a, rule, |_, _| k)
    }

    /// The same with a highest level for each entry.
    fn levelled(
        a: &Pattern,
        rule: LevelRule,
        highest: impl Fn(usize, usize) -> usize,
    ) -> FillPattern {
        use std::collections::BTreeMap;
        let mut rows: Vec<BTreeMap<usize, usize>> = Vec::new();
        for i in 0..a.rows() {
            let mut row: BTreeMap<usize, usize> =
                a.row(i).iter().map(|&j| (j as usize, 0)).collect();
            let mut at = 0;
            while let Some((&p, &of_p)) = row.range(at..i).next() {
                let kept = |(j, l): &(&usize, &usize)| of_p + **l < highest(i, **j);
                for (&j, &of_j) in rows[p].range(p + 1..).filter(kept) {
                    let new = of_p + of_j + 1;
                    let entry = row.entry(j).or_insert(new);
                    if rule == LevelRule::Overwrite && j != i || new < *entry {
                        *entry = new;
                    }
                }
                at = p + 1;
            }
            rows.push(row);
        }
        let half = |of: fn(usize, usize) -> bool| {
            let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
            for (i, row) in rows.iter().enumerate() {
                col_ind.extend(row.keys().filter(|j| of(i, **j)).map(|&j| j as u32));
                row_ptr.push(col_ind.len() as u32);
            }
            Pattern::new(row_ptr, col_ind)
        };
        let no_diagonal = (0..rows.len()).filter(|i| !rows[*i].contains_key(i)).map(|i| i as u32);
        FillPattern::new(half(|i, j| j < i), half(|i, j| j > i), no_diagonal.collect())
    }

    #[test]
    fn nearly_all_rows_of_a_grid_are_known_to_repeat() {
        let (line, plane) = (40, 40 * 30);
        let a = banded(40 * 30 * 20, &[-plane, -line, -1, 0, 1, line, plane], line, u32::MAX, 1);
        for k in 0..4 {
            for rule in [LevelRule::Min, LevelRule::Overwrite] {
                let p = iluk(&a, k, rule, usize::MAX).expect("small");
                let known = [&p.lower, &p.upper].map(|p| known_to_repeat(p));
                assert!(known.iter().all(|&n| n > a.rows() * 4 / 5), "{rule:?}, {k}: {known:?}");
            }
        }
    }

    #[test]
    fn many_rows_are_the_same_on_any_number_of_threads() {
        let grid = banded(30_000, &[-900, -30, -1, 0, 1, 30, 900], 30, 1000, 3);
        let patterns = [random(20_000, 2, true, 11), random(30_011, 1, false, 11), grid];
        for a in patterns {
            for k in 1..4 {
                let expected = elimination::fill::<false>(&a, k, usize::MAX).expect("small");
                for threads in [1, 2, 3] {
                    let p = pool(threads)
                        .install(|| iluk_on(Threads::Pool, &a, k, LevelRule::Min, usize::MAX));
                    assert_eq!(p.expect("small"), expected, "k {k}, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn the_limit_is_passed_in_the_same_row_on_any_number_of_threads() {
        let a = random(20_000, 3, true, 5);
        for k in [0, 1, 2] {
            let whole = iluk(&a, k, LevelRule::Min, usize::MAX).expect("small");
            let entries = whole.lower.entries() + whole.upper.entries();
            for limit in [0, entries / 7, entries - 1] {
                let one = iluk(&a, k, LevelRule::Min, limit).expect_err("too large");
                assert!(one.entries > limit && one.entries <= entries, "{one:?}, {limit}");
                if k < 2 {
                    // no level before the last: the row is that of the whole pattern
                    let through = |i: usize| whole.lower.row_ptr[i] + whole.upper.row_ptr[i];
                    assert!(through(one.row) as usize <= limit);
                    assert_eq!(through(one.row + 1) as usize, one.entries);
                }
                let several =
                    pool(3).install(|| iluk_on(Threads::Pool, &a, k, LevelRule::Min, limit));
                assert_eq!(several.expect_err("too large"), one);
            }
            let exact = pool(3).install(|| iluk_on(Threads::Pool, &a, k, LevelRule::Min, entries));
            assert_eq!(exact.expect("fits"), whole);
        }
    }
}
