//! Decides which finalists are the best, as far as their rounds can distinguish them.

use crate::base::measure::Median;
use crate::case::Case;
use crate::record::Record;

/// Fewest rounds for a 95 % confidence interval of a median (by ranks).
pub(crate) const ROUNDS: usize = 6;
/// Intervals are separate only if they remain so after scaling by this factor: another memory placement in the next
/// run of the program costs as much.
const APART: f64 = 1.02;

/// Single trials tell nothing below this factor, however quiet the rounds were: the search takes longer than they do,
/// and the machine changes meanwhile.
const LEAST_NOISE: f64 = 1.25;

/// The factor by which a single trial may differ from another of the same here: the most that any round took over
/// the median of its finalist.
pub(crate) fn noise(finalists: &[Finalist]) -> f64 {
    finalists.iter().map(|f| f.disturbed).fold(LEAST_NOISE, f64::max)
}

/// A combination of settings, and its time.
#[derive(Clone, Debug)]
pub struct Finalist {
    pub case: Case,
    /// Seconds of fixed costs and all solves.
    pub seconds: Median,
    /// Seconds of the fixed costs in the rounds whose seconds are the median; the others are the solves'.
    pub fixed: f64,
    /// What its slowest round took over the median.
    pub disturbed: f64,
    /// Iterations, memory and the rest, of such a round.
    pub record: Record,
}

/// Whether one took less time than the other, beyond what their rounds scatter.
pub(super) fn is_faster(one: &Median, other: &Median) -> bool {
    one.count.min(other.count) >= ROUNDS && APART * one.ends().1 < other.ends().0
}

/// The finalists that cannot be distinguished from the first, the one with the smallest median, which is among them.
pub(crate) fn equals(finalists: &[Finalist]) -> Vec<&Finalist> {
    let Some(first) = finalists.first() else { return Vec::new() };
    finalists.iter().filter(|f| !is_faster(&first.seconds, &f.seconds)).collect()
}

/// Ratio of the times of two finalists, if they can be distinguished.
pub(crate) fn ratio(one: &Median, over: &Median) -> Option<f64> {
    (is_faster(one, over) || is_faster(over, one)).then(|| one.value / over.value)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;
    use crate::base::measure::median;
    use crate::case::Case;
    use crate::record::Record;

    /// Finalists of these seconds in so many rounds, each disturbed by up to a share of it.
    fn finalists(seconds: &[f64], rounds: usize, noise: f64, seed: u64) -> Vec<Finalist> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut samples = vec![Vec::new(); seconds.len()];
        for _ in 0..rounds {
            for (all, seconds) in samples.iter_mut().zip(seconds) {
                all.push(seconds * (1.0 + noise * random.random::<f64>()));
            }
        }
        let mut all: Vec<Finalist> = samples
            .iter()
            .enumerate()
            .map(|(fill, samples)| Finalist {
                case: Case { fill, ..Case::default() },
                seconds: median(samples).unwrap(),
                fixed: 0.0,
                disturbed: samples.iter().copied().fold(0.0, f64::max)
                    / median(samples).unwrap().value,
                record: Record::default(),
            })
            .collect();
        all.sort_by(|a, b| a.seconds.value.total_cmp(&b.seconds.value));
        all
    }

    fn fills(found: &[&Finalist]) -> Vec<usize> {
        let mut fills: Vec<usize> = found.iter().map(|f| f.case.fill).collect();
        fills.sort_unstable();
        fills
    }

    #[test]
    fn few_rounds_tell_nothing_apart() {
        for rounds in 1..ROUNDS {
            let all = finalists(&[1.0, 2.0], rounds, 0.01, 1);
            assert_eq!(fills(&equals(&all)), [0, 1], "{rounds} rounds");
            assert_eq!(ratio(&all[1].seconds, &all[0].seconds), None);
        }
        let all = finalists(&[1.0, 2.0], ROUNDS, 0.0, 1);
        assert_eq!(fills(&equals(&all)), [0]);
        assert_eq!(ratio(&all[1].seconds, &all[0].seconds), Some(2.0));
        assert!(equals(&[]).is_empty());
    }

    #[test]
    fn single_trials_scatter_as_the_rounds_did() {
        assert_eq!(noise(&[]), LEAST_NOISE);
        assert_eq!(noise(&finalists(&[1.0, 2.0], ROUNDS, 0.0, 1)), LEAST_NOISE);
        let mut all = finalists(&[1.0, 2.0], ROUNDS, 0.0, 1);
        all[1].disturbed = 1.75;
        assert_eq!(noise(&all), 1.75);
    }

    #[test]
    fn what_is_equal_but_for_noise_is_called_so_in_every_run() {
        for seed in 0..200 {
            // two that differ by 1 %, beside one that takes half as long again
            let all = finalists(&[1.0, 1.01, 1.5], 9, 0.05, seed);
            assert_eq!(fills(&equals(&all)), [0, 1], "seed {seed}");
        }
    }

    #[test]
    fn three_runs_name_the_same_winner_or_say_that_they_are_equal() {
        for seed in 0..200 {
            let runs = [0, 1, 2].map(|run| {
                let all = finalists(&[1.0, 1.04, 1.08, 1.3], 9, 0.3, 3 * seed + run);
                fills(&equals(&all))
            });
            let shared = |fill: &&usize| runs[1..].iter().all(|run| run.contains(fill));
            assert!(runs[0].iter().find(shared).is_some(), "seed {seed}: {runs:?}");
        }
    }
}
