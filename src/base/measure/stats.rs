//! Medians and how sure they are, by order statistics alone: nothing is assumed of the distribution.

/// Probability that is left on each side of a 95 % interval.
const TAIL: f64 = 0.025;

/// Where the samples of a median lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// One sample.
    None,
    /// Least and largest of samples that are too few for an interval.
    Range {
        /// The least.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// The interval that holds the true median with a probability of at least 95 %.
    Interval {
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
}

/// A median with the spread of its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// Interval or range.
    pub spread: Spread,
    /// Number of samples.
    pub count: usize,
}

impl Median {
    /// What was measured once.
    pub fn single(value: f64) -> Self {
        Self { value, spread: Spread::None, count: 1 }
    }

    /// Lower and upper end of interval or range; the value itself where it is the only sample.
    pub fn ends(&self) -> (f64, f64) {
        match self.spread {
            Spread::None => (self.value, self.value),
            Spread::Range { low, high } | Spread::Interval { low, high } => (low, high),
        }
    }

    /// The 95 % confidence interval, where there are samples enough for one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        match self.spread {
            Spread::Interval { low, high } => Some((low, high)),
            Spread::None | Spread::Range { .. } => None,
        }
    }

    /// Half the width of interval or range over the median.
    pub(crate) fn relative_error(&self) -> f64 {
        let (low, high) = self.ends();
        0.5 * (high - low) / self.value
    }
}

/// Median of the samples; `None` without samples.
///
/// Of n sorted samples those of the ranks r and n + 1 - r (see `rank`) enclose the true median with a
/// probability of at least 95 %. Below six samples no ranks do, and the spread is the range.
pub fn median(samples: &[f64]) -> Option<Median> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let middle = n.checked_sub(1)? / 2;
    let value =
        if n % 2 == 1 { sorted[middle] } else { 0.5 * (sorted[middle] + sorted[middle + 1]) };
    let spread = match rank(n) {
        _ if n == 1 => Spread::None,
        None => Spread::Range { low: sorted[0], high: sorted[n - 1] },
        // the first rank is 1, the first index 0
        Some(rank) => Spread::Interval { low: sorted[rank - 1], high: sorted[n - rank] },
    };
    Some(Median { value, spread, count: n })
}

/// The largest rank r, from 1, with P(X < r) <= 2.5 % for X of the binomial distribution of n and 1/2: the
/// samples below the true median are that many. `None` below six samples.
fn rank(n: usize) -> Option<usize> {
    // P(X = 0) leaves the range of numbers for large n, its logarithm does not
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let (mut below, mut rank) = (0.0, 0);
    while rank <= n {
        below += log_term.exp();
        if below > TAIL {
            break;
        }
        log_term += ((n - rank) as f64 / (rank + 1) as f64).ln();
        rank += 1;
    }
    (rank > 0 && n > 0).then_some(rank)
}

/// By how much the samples of `new` lie above those of `old`: the Hodges-Lehmann estimate, the median of
/// all differences, and its 95 % confidence interval from the Mann-Whitney test, which assumes two
/// distributions of one shape and nothing else. `None` where both sides together are too few: 3 and 5, 4
/// and 4 are enough.
pub fn shift(old: &[f64], new: &[f64]) -> Option<Median> {
    let rank = shift_rank(old.len(), new.len())?;
    let mut differences: Vec<f64> =
        new.iter().flat_map(|new| old.iter().map(move |old| new - old)).collect();
    differences.sort_unstable_by(f64::total_cmp);
    let value = median(&differences)?.value;
    let (low, high) = (differences[rank - 1], differences[differences.len() - rank]);
    let count = old.len().min(new.len());
    Some(Median { value, spread: Spread::Interval { low, high }, count })
}

/// Sizes up to which the distribution of the Mann-Whitney statistic is counted out.
const COUNTED: usize = 40;

/// The largest rank r, from 1, with P(U < r) <= 2.5 % for the Mann-Whitney statistic U of `m` and `n`
/// samples.
fn shift_rank(m: usize, n: usize) -> Option<usize> {
    if m == 0 || n == 0 {
        return None;
    }
    if m.max(n) > COUNTED {
        // normal, with the correction for whole numbers
        let (m, n) = (m as f64, n as f64);
        let half = 1.959_964 * (m * n * (m + n + 1.0) / 12.0).sqrt();
        let rank = (m * n / 2.0 - half + 0.5).floor();
        return (rank >= 1.0).then_some(rank as usize);
    }
    let ways = arrangements(m, n);
    let all: f64 = ways.iter().sum();
    let mut below = 0.0;
    let rank = ways
        .iter()
        .take_while(|ways| {
            below += *ways / all;
            below <= TAIL
        })
        .count();
    (rank > 0).then_some(rank)
}

/// In how many of the orders of `m` and `n` samples the Mann-Whitney statistic is 0, 1, ...: the
/// coefficients of the Gaussian binomial.
fn arrangements(m: usize, n: usize) -> Vec<f64> {
    let most = m * n;
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for i in 1..=m {
        // times 1 - q^(n+i), over 1 - q^i
        for u in (n + i..=most).rev() {
            ways[u] -= ways[u - n - i];
        }
        for u in i..=most {
            ways[u] += ways[u - i];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_samples() {
        assert_eq!(median(&[]), None);
        let m = median(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((m.value, m.count), (2.0, 3));
        assert_eq!(m.spread, Spread::Range { low: 1.0, high: 3.0 });
        assert_eq!((m.interval(), m.ends()), (None, (1.0, 3.0)));
        assert_eq!(median(&[4.0, 1.0]).unwrap().value, 2.5);
        assert_eq!(median(&[4.0]), Some(Median::single(4.0)));
        assert_eq!(Median::single(4.0).relative_error(), 0.0);
    }

    #[test]
    fn ranks_are_those_of_the_tables() {
        assert_eq!((1..6).find_map(rank), None);
        let ranks = [6, 8, 9, 10, 12, 15, 20, 25, 50, 100].map(|n| rank(n).unwrap());
        assert_eq!(ranks, [1, 1, 2, 2, 3, 4, 6, 8, 18, 40]);
        // far beyond what a power of 1/2 can hold; half of n less 0.98 roots of it
        assert_eq!(rank(100_000), Some(49_690));
    }

    #[test]
    fn intervals_hold_the_median_with_95_percent_and_no_narrower_one_does() {
        for n in 6..=200_usize {
            // exact: the terms of Pascal's triangle up to 2^200 over 2^n, each rounded once
            let mut row = vec![1.0_f64];
            for i in 1..=n {
                let inner = (1..i).map(|k| row[k - 1] + row[k]);
                row = std::iter::once(1.0).chain(inner).chain([1.0]).collect();
            }
            let coverage = |r: usize| row[r..=n - r].iter().sum::<f64>() / 2f64.powi(n as i32);
            let r = rank(n).unwrap();
            assert!(coverage(r) >= 0.95, "{n}: {}", coverage(r));
            assert!(2 * (r + 1) > n || coverage(r + 1) < 0.95, "{n}");
            let samples: Vec<f64> = (1..=n).rev().map(|i| i as f64).collect();
            let ends = median(&samples).unwrap().interval().unwrap();
            assert_eq!(ends, (r as f64, (n + 1 - r) as f64));
        }
    }

    #[test]
    fn shifts_have_the_ranks_of_the_mann_whitney_table() {
        // critical values of U at 2.5 % on each side: 0, 2, 5, 8, 13, 23 for 4, 5, 6, 7, 8, 10 of each
        let ranks = [4, 5, 6, 7, 8, 10].map(|n| shift_rank(n, n).unwrap());
        assert_eq!(ranks, [1, 3, 6, 9, 14, 24]);
        assert_eq!(
            (shift_rank(3, 3), shift_rank(3, 5), shift_rank(2, 8)),
            (None, Some(1), Some(1))
        );
        assert_eq!((shift_rank(0, 5), shift_rank(1, 30)), (None, None));
        // where counting ends, the normal distribution goes on
        let counted = arrangements(41, 41);
        let all: f64 = counted.iter().sum();
        let below: f64 = counted[..shift_rank(41, 41).unwrap()].iter().sum::<f64>() / all;
        assert!((0.0235..=0.0255).contains(&below), "{below}");
    }

    #[test]
    fn a_shift_is_the_median_of_all_differences() {
        let old = [1.0, 2.0, 3.0, 4.0, 5.0];
        let new = old.map(|x| x + 10.0);
        let found = shift(&old, &new).unwrap();
        // 25 differences from 6 to 14; the third from either end
        assert_eq!((found.value, found.ends(), found.count), (10.0, (7.0, 13.0), 5));
        assert_eq!(shift(&old[..2], &new), None);
    }

    #[test]
    fn the_interval_of_a_shift_holds_it_in_95_of_100() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        // lopsided, as times are: a minimum and an exponential tail
        let mut sample = |by: f64| -> Vec<f64> {
            (0..5).map(|_| by - rng.random_range(f64::MIN_POSITIVE..1.0).ln()).collect()
        };
        let holds = |old: &[f64], new: &[f64]| {
            let (low, high) = shift(old, new).unwrap().ends();
            low <= 3.0 && 3.0 <= high
        };
        let held = (0..4000).filter(|_| holds(&sample(0.0), &sample(3.0))).count();
        // exact: 1 - 2 * 4 / 252 = 96.8 %
        assert!((3830..=3915).contains(&held), "{held}");
    }
}
