//! The symbolic phase against a literal, dense reading of its definition.

use bilu_bench::case::LevelRule;
use bilu_bench::matrix::Csr;
use bilu_bench::matrix::pattern::{TooLarge, block_pattern};
use bilu_bench::symbolic::{FillPattern, Schedule, iluk, schedule};
use proptest::prelude::*;

use crate::common;

/// Fill levels by Algorithm 3 as printed, on a dense array; `None` is infinity.
fn reference(a: &Csr, k: usize, rule: LevelRule) -> Vec<Vec<bool>> {
    let n = a.rows();
    let mut level: Vec<Vec<Option<usize>>> = (0..n)
        .map(|i| (0..n).map(|j| (i == j || a.get(i, j).is_some()).then_some(0)).collect())
        .collect();
    for i in 1..n {
        for p in 0..i {
            let Some(ip) = level[i][p].filter(|&l| l <= k) else { continue };
            for j in p + 1..n {
                let Some(pj) = level[p][j] else { continue };
                let new = ip + pj + 1;
                if new > k {
                    continue;
                }
                let better = level[i][j].is_none_or(|old| new < old);
                if better || (rule == LevelRule::Overwrite && i != j) {
                    level[i][j] = Some(new);
                }
            }
        }
    }
    level.iter().map(|row| row.iter().map(Option::is_some).collect()).collect()
}

fn as_dense(p: &FillPattern) -> Vec<Vec<bool>> {
    let n = p.rows();
    let mut out = vec![vec![false; n]; n];
    for i in 0..n {
        out[i][i] = true;
        for &j in p.lower.row(i) {
            assert!((j as usize) < i);
            out[i][j as usize] = true;
        }
        for &j in p.upper.row(i) {
            assert!((j as usize) > i);
            out[i][j as usize] = true;
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn pattern_is_that_of_the_dense_algorithm(
        n in 1usize..40, per_row in 1usize..5, k in 0usize..6, seed in 0u64..10_000,
    ) {
        let a = common::random_csr(n, per_row, 0.0, seed);
        for rule in [LevelRule::Min, LevelRule::Overwrite] {
            let p = iluk(&block_pattern(&a), k, rule, usize::MAX).unwrap();
            prop_assert_eq!(as_dense(&p), reference(&a, k, rule), "rule {:?}", rule);
            let total: usize = as_dense(&p).iter().flatten().filter(|&&x| x).count();
            prop_assert_eq!(p.blocks(), total);
        }
    }

    #[test]
    fn schedules_respect_every_dependency(n in 1usize..60, per_row in 1usize..5, seed in 0u64..10_000) {
        let a = common::random_csr(n, per_row, 0.0, seed);
        let p = iluk(&block_pattern(&a), 1, LevelRule::Min, usize::MAX).unwrap();
        for (s, half) in [(Schedule::lower(&p), &p.lower), (Schedule::upper(&p), &p.upper)] {
            let mut level = vec![usize::MAX; n];
            for l in 0..s.levels() {
                prop_assert!(!s.level(l).is_empty());
                for &i in s.level(l) {
                    level[i as usize] = l;
                }
            }
            for i in 0..n {
                // as early as possible: one level after the latest dependency
                let after = half.row(i).iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0);
                prop_assert_eq!(level[i], after);
            }
        }
        prop_assert_eq!(schedule::levels_lower(&p), Schedule::lower(&p).levels());
        prop_assert_eq!(schedule::levels_upper(&p), Schedule::upper(&p).levels());
    }
}

#[test]
fn a_limit_stops_the_phase_and_names_the_row() {
    let a = common::random_csr(200, 4, 0.0, 7);
    let TooLarge { row, entries } = iluk(&block_pattern(&a), 3, LevelRule::Min, 500).unwrap_err();
    assert!(row < 200 && entries > 500, "row {row}, entries {entries}");
}

#[test]
fn a_missing_diagonal_is_named_unless_fill_provides_it() {
    // [0 1; 1 0]: elimination reaches (2,2) at level 1
    let a = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0; 2]).unwrap();
    for (k, missing) in [(0, vec![0, 1]), (1, vec![0])] {
        let p = iluk(&block_pattern(&a), k, LevelRule::Min, usize::MAX).unwrap();
        assert_eq!((p.blocks(), &p.no_diagonal), (4, &missing), "k {k}");
    }
}
