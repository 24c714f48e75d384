//! Fill levels of a narrow band, where a word holds a row: entry (i, j) is the bit at j - i + [`BAND`]. Fill stays within
//! the band, and a pivot adds a row by a shift and an "or" for each level.

use super::fill_pattern::FillPattern;
use super::ordered_set::bits;
use crate::matrix::pattern::rows::{Growing, sample};
use crate::matrix::pattern::{Pattern, TooLarge};

/// Widest band, on each side of the diagonal.
const BAND: usize = 63;
const DIAGONAL: u128 = 1 << BAND;
/// Bits left of the diagonal.
const LOWER: u128 = DIAGONAL - 1;
/// Rows that are kept: those that may be pivots and one more, for a power of two.
const ROWS: usize = BAND + 1;
/// Rows that tell whether rows repeat.
const SAMPLES: usize = 16;

/// Whether all entries lie in the band.
fn is_narrow(a: &Pattern) -> bool {
    (0..a.rows()).all(|i| {
        let row = a.row(i);
        let far = |j: Option<&u32>| j.is_some_and(|&j| i.abs_diff(j as usize) > BAND);
        !far(row.first()) && !far(row.last())
    })
}

/// Whether most rows repeat the row before them, by a sample: other ways copy such rows.
fn is_regular(a: &Pattern) -> bool {
    let repeats = |&i: &usize| a.view().repeating(i..i + 1) > 0;
    2 * sample(a.rows(), SAMPLES).filter(repeats).count() > SAMPLES
}

/// Pattern of ILU(k) by the rule `min`, k at least 1; `None` where the band is not narrow or most rows are alike.
pub(super) fn fill(a: &Pattern, k: usize, limit: usize) -> Option<Result<FillPattern, TooLarge>> {
    (is_narrow(a) && !is_regular(a)).then(|| row_by_row(a, k, limit))
}

fn row_by_row(a: &Pattern, k: usize, limit: usize) -> Result<FillPattern, TooLarge> {
    let mut out = Growing::new(a.rows(), [a.entries(); 2], 0, limit);
    let mut no_diagonal = Vec::new();
    // entries right of the diagonal up to each level below k, of the last rows
    let mut uppers = vec![0u128; ROWS * k];
    // entries of the row up to each level
    let mut row = vec![0u128; k + 1];
    for i in 0..a.rows() {
        let bit = |j: u32| 1 << (j as usize + BAND - i);
        row.fill(a.row(i).iter().fold(0, |row, &j| row | bit(j)));
        let mut left = row[k] & LOWER;
        while left != 0 {
            // the next pivot, which those before it have given its level
            let at = left.trailing_zeros() as usize;
            let distance = BAND - at;
            let level = row.iter().position(|row| row >> at & 1 != 0).unwrap_or(k);
            let pivot = &uppers[(i - distance) % ROWS * k..][..k - level];
            for (row, pivot) in row[level + 1..].iter_mut().zip(pivot) {
                *row |= pivot >> distance;
            }
            left = row[k] & LOWER & !((2 << at) - 1);
        }
        let all = row[k];
        for (upper, row) in uppers[i % ROWS * k..][..k].iter_mut().zip(&row) {
            *upper = row & !(DIAGONAL | LOWER);
        }
        let [lower, upper] = &mut out.columns;
        lower.extend(bits((all & LOWER) as u64).map(|at| (i + at - BAND) as u32));
        upper.extend(bits((all >> ROWS) as u64).map(|at| (i + at + 1) as u32));
        if all & DIAGONAL == 0 {
            no_diagonal.push(i as u32);
        }
        out.end_row()?;
    }
    let [lower, upper] = out.finish(a.block_size());
    Ok(FillPattern::new(lower, upper, no_diagonal))
}

#[cfg(test)]
mod tests {
    use super::super::{elimination, fill::tests::random};
    use super::*;
    use proptest::prelude::*;

    /// The entries of a random pattern that are in a band.
    fn banded(n: usize, below: usize, above: usize, per_row: usize, seed: u64) -> Pattern<'static> {
        let whole = random(n, per_row, false, seed);
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for i in 0..n {
            let within = |j: &u32| (*j as usize) + below >= i && *j as usize <= i + above;
            col_ind.extend(whole.row(i).iter().copied().filter(within));
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn words_have_the_fill_of_elimination(
            n in 1usize..200, below in 0usize..=BAND, above in 0usize..=BAND, per_row in 0usize..60, k in 1usize..8,
            seed in any::<u64>(),
        ) {
            let a = banded(n, below, above, per_row, seed);
            let expected = elimination::fill::<false>(&a, k, usize::MAX).expect("small");
            let found = row_by_row(&a, k, usize::MAX).expect("small");
            prop_assert_eq!(&found, &expected);
            prop_assert!(is_narrow(&a));
            let limit = found.lower.entries() + found.upper.entries();
            let found = row_by_row(&a, k, limit);
            prop_assert_eq!(found.as_ref(), Ok(&expected));
            if limit > 0 {
                let (found, expected) = (row_by_row(&a, k, limit - 1), elimination::fill::<false>(&a, k, limit - 1));
                prop_assert_eq!(found.unwrap_err(), expected.unwrap_err());
            }
        }
    }

    #[test]
    fn rows_that_repeat_are_left_to_others() {
        let irregular = banded(500, 20, 20, 90, 1);
        assert!(fill(&irregular, 2, usize::MAX).is_some());
        let three = |i: u32| i.saturating_sub(1)..=(i + 1).min(499);
        let col_ind: Vec<u32> = (0..500).flat_map(three).collect();
        let ends = (0..499).map(|i| 3 * i + 2);
        let row_ptr: Vec<u32> = std::iter::once(0).chain(ends).chain([1498]).collect();
        let line = Pattern::new(row_ptr, col_ind);
        assert!(is_narrow(&line) && fill(&line, 2, usize::MAX).is_none());
        assert_eq!(
            row_by_row(&line, 2, usize::MAX),
            elimination::fill::<false>(&line, 2, usize::MAX)
        );
    }

    #[test]
    fn a_band_ends_where_a_word_does() {
        let of = |columns: [u32; 2]| {
            let mut row_ptr = vec![0; 65];
            row_ptr.extend([1, 2]);
            Pattern::new(row_ptr, columns.to_vec())
        };
        // rows 64 and 65 have an entry each
        assert!(is_narrow(&of([1, 2])) && !is_narrow(&of([0, 2])) && !is_narrow(&of([1, 1])));
        assert!(is_narrow(&Pattern::new(vec![0, 1], vec![63])));
        assert!(!is_narrow(&Pattern::new(vec![0, 1], vec![64])));
    }
}
