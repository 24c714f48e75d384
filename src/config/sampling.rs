//! How long and how often a case is measured.

/// Measuring options, resolved.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Measure {
    /// Least number of timed solves, even beyond the budget.
    pub min_repetitions: usize,
    /// Samples that every measurement takes, setups and products included, where limits allow them: the
    /// fewest of which there is a 95 % confidence interval.
    pub samples: usize,
    /// Seconds of samples that every measurement takes at least, where limits allow them.
    pub min_time_s: f64,
    /// Number of timed solves after which a wide interval no longer causes another one.
    pub enough: usize,
    /// Largest number of timed solves, and of samples of everything else.
    pub max_repetitions: usize,
    /// Stop repeating after this many seconds of timed solves (the minimum is kept). A first solve
    /// that takes longer than this counts as a measurement instead of a warm-up.
    pub time_budget_s: f64,
    /// Matrices with new values on the same pattern for which the numeric phase is timed again.
    pub repeat_values: usize,
    /// Iterations whose residuals are kept, with the initial one; 0 keeps none.
    pub history: usize,
    /// A single solve is stopped after this many seconds.
    pub time_limit_s: Option<f64>,
    /// A case over ranks that takes longer than these seconds is recorded, and the job ends.
    pub case_limit_s: Option<f64>,
    /// One setup and one solve, both timed, and nothing else: no bandwidths.
    pub once: bool,
    /// Rounds over all cases, among which the samples of a case are divided.
    pub rounds: usize,
    /// The only round to run.
    pub round: Option<usize>,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            min_repetitions: 1,
            samples: 6,
            min_time_s: 0.1,
            enough: 10,
            max_repetitions: 1000,
            time_budget_s: 5.0,
            repeat_values: 0,
            history: 0,
            time_limit_s: None,
            case_limit_s: None,
            once: false,
            rounds: 1,
            round: None,
        }
    }
}

/// Solves are repeated until the half width of the interval is at most this share of the median.
const PRECISE: f64 = 0.02;

/// Samples of a round at least, where limits allow them: the first one follows another program, and may pay
/// for memory that the host took back meanwhile; the median of three is not that one.
const OF_ROUND: usize = 3;

impl Measure {
    /// What is left to one of the rounds.
    #[must_use]
    pub(crate) fn of_round(&self) -> Self {
        let share = |count: usize| count.div_ceil(self.rounds);
        let seconds = |s: f64| s / self.rounds as f64;
        Self {
            min_repetitions: share(self.min_repetitions),
            samples: share(self.samples).max(OF_ROUND.min(self.samples)),
            min_time_s: seconds(self.min_time_s),
            enough: share(self.enough),
            max_repetitions: share(self.max_repetitions),
            time_budget_s: seconds(self.time_budget_s),
            repeat_values: share(self.repeat_values),
            rounds: 1,
            ..self.clone()
        }
    }

    /// The rounds to run, by their numbers; `None` is one without a number.
    pub(crate) fn round_numbers(&self) -> Vec<Option<usize>> {
        match (self.round, self.rounds) {
            (Some(only), _) => vec![Some(only)],
            (None, 1) => vec![None],
            (None, rounds) => (1..=rounds).map(Some).collect(),
        }
    }

    /// Whether to solve again after solves of these seconds, `spent` together.
    pub(crate) fn another_solve(&self, samples: &[f64], spent: f64) -> bool {
        let count = samples.len();
        if self.once || count < self.min_repetitions.max(1) {
            return count < self.min_repetitions.max(1);
        }
        // sorting after each of many would take longer than the solves
        let precise = || {
            count.is_multiple_of(1 + count / 64)
                && crate::base::measure::median(samples)
                    .is_some_and(|m| m.count > 2 && m.relative_error() < PRECISE)
        };
        self.another(count, spent)
            || (self.within(count, spent) && count < self.enough && !precise())
    }

    /// Whether to take another sample of anything but solves, after `count` of them in `spent` seconds.
    pub(crate) fn another(&self, count: usize, spent: f64) -> bool {
        let few = count < self.samples || spent < self.min_time_s;
        count == 0 || (few && self.within(count, spent))
    }

    fn within(&self, count: usize, spent: f64) -> bool {
        !self.once && count < self.max_repetitions && spent < self.time_budget_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Solves of `seconds` that are made, each longer than the one before by the share `drift`.
    fn solves(measure: &Measure, seconds: f64, drift: f64) -> usize {
        let mut samples = Vec::new();
        while measure.another_solve(&samples, samples.iter().sum()) {
            samples.push(seconds * (1.0 + drift * samples.len() as f64));
        }
        samples.len()
    }

    #[test]
    fn six_samples_and_100_ms_unless_limits_say_otherwise() {
        let m = Measure::default();
        assert_eq!(solves(&m, 0.02, 0.0), 6);
        // a quarter of a millisecond is exact in binary
        assert_eq!(solves(&m, 1.0 / 4096.0, 0.0), 410);
        // the cap
        assert_eq!(solves(&m, 1e-6, 0.0), 1000);
        // too wide an interval: ten, as many as 100 ms take where that is more
        assert_eq!((solves(&m, 0.02, 0.1), solves(&m, 1.0 / 512.0, 0.01)), (10, 43));
        // what fits in the budget of five seconds
        assert_eq!((solves(&m, 2.0, 0.0), solves(&m, 7.0, 0.0)), (3, 1));
        let limited = Measure { max_repetitions: 3, ..Measure::default() };
        assert_eq!(solves(&limited, 0.001, 0.0), 3);
        let asked = Measure { min_repetitions: 8, ..Measure::default() };
        assert_eq!(solves(&asked, 2.0, 0.0), 8);
        let once = Measure { once: true, ..Measure::default() };
        assert_eq!((solves(&once, 0.001, 0.0), once.another(1, 0.0)), (1, false));
    }

    #[test]
    fn rounds_share_the_samples() {
        let m = Measure { rounds: 5, ..Measure::default() }.of_round();
        assert_eq!((m.samples, m.enough, m.max_repetitions, m.rounds), (3, 2, 200, 1));
        assert_eq!((m.min_time_s, m.time_budget_s), (0.02, 1.0));
        assert_eq!((solves(&m, 0.02, 0.0), solves(&m, 1.0 / 1024.0, 0.0)), (3, 21));
        assert_eq!(solves(&m, 2.0, 0.0), 1);
        let single = Measure { max_repetitions: 1, rounds: 3, ..Measure::default() }.of_round();
        assert_eq!(solves(&single, 0.001, 0.0), 1);
        // fewer where fewer are asked for, more where more are left
        let of =
            |samples, rounds| Measure { samples, rounds, ..Measure::default() }.of_round().samples;
        assert_eq!([of(1, 6), of(2, 6), of(6, 6), of(6, 1)], [1, 2, 3, 6]);
    }

    #[test]
    fn setups_are_repeated_like_solves() {
        let m = Measure::default();
        assert!(m.another(0, 9.0) && m.another(5, 1.0) && m.another(60, 0.09));
        assert!(!m.another(6, 0.1) && !m.another(1, 5.0) && !m.another(1000, 0.001));
    }
}
