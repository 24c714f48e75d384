//! Phase times of a run, and medians with their intervals.

use serde::{Deserialize, Serialize};

use crate::base::measure::{Median, Spread};
use crate::methods::precond::Kept;
use crate::record::columns::{Cell, part};

part! {
    /// Phase times in seconds. Phases that a method does not have are empty.
    pub struct Times {
        /// computing the permutation and applying it to the system, over ranks with bringing rows to their owners;
        /// excluded from all phases, seconds (on one process the median of up to six within 0.1 s)
        pub ordering_s: Option<f64>,
        /// scaling of rows and columns, excluded from all phases, seconds
        #[serde(default)]
        pub scaling_s: Option<f64>,
        /// run-time compilation and loading of GPU kernels, excluded from all phases, seconds
        pub compile_s: Option<f64>,
        /// trial runs that choose the algorithm of the triangular solves, excluded from all phases, seconds
        pub trial_s: Option<f64>,
        /// conversion of the matrix to the format of the product, and transfer to a GPU, seconds (median)
        pub matrix_s: Option<f64>,
        /// symbolic phase, seconds; cases that share its result report the same time
        pub symbolic_s: Option<f64>,
        /// level schedule, storage and upload, seconds
        pub analysis_s: Option<f64>,
        /// numeric phase: transfer of the values, factorisation, storage of the factors for the solves, seconds
        pub numeric_s: Option<f64>,
        /// factorisation on the device, part of numeric-s, seconds
        pub numeric_kernel_s: Option<f64>,
        /// deflation vectors, A Z, coarse matrix and its inverse, seconds
        pub deflation_s: Option<f64>,
        /// sum of symbolic-s, analysis-s, numeric-s and deflation-s; matrix-s is not included
        pub setup_s: Option<f64>,
        /// median solve, seconds
        pub solve_s: Option<f64>,
        /// lower end of solve-interval, seconds
        pub solve_low_s: Option<f64>,
        /// upper end of solve-interval, seconds
        pub solve_high_s: Option<f64>,
        /// 95%: confidence interval of the median solve; range: minimum and maximum, for fewer than six solves;
        /// 95%-of-rounds, range-of-rounds: the same of the medians of the rounds; empty: a single solve, or a file of
        /// an earlier version
        pub solve_interval: Option<SampleInterval>,
        /// timed solves, or samples of the product for kind spmv; number of rounds where solve-interval refers to
        /// rounds
        pub repetitions: usize,
        /// reference computation of fixed work on the threads of the solves, before the first and after the last, in no
        /// other time, seconds: divided by the share of their time for which the threads had processors during the
        /// solves, so that it tells the speed of the machine; of a peer on one thread, before it starts and after it
        /// ends; empty on GPUs
        #[serde(default)]
        pub reference_s: Option<f64>,
        /// time to solution: sum of ordering-s, scaling-s, matrix-s, setup-s and solve-s; in files of earlier versions setup-s
        /// and solve-s only
        pub total_s: Option<f64>,
        /// solve-s divided by rhs-count; empty for one right-hand side
        #[serde(default)]
        pub solve_s_per_rhs: Option<f64>,
        /// solve-s divided by iterations, milliseconds
        pub ms_per_iteration: Option<f64>,
        /// preconditioner for new values on the same pattern, seconds (median): the numeric phase alone, or the setup of
        /// a method that has none
        pub renumeric_s: Option<f64>,
        /// update of the stored matrix and its copy on a GPU with new values, seconds (median)
        pub rematrix_s: Option<f64>,
    }
}

/// Kind of interval of a median time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampleInterval {
    /// The 95 % confidence interval of the median.
    #[serde(rename = "95%")]
    Confidence,
    /// Minimum and maximum of samples that are too few for a confidence interval.
    #[serde(rename = "range")]
    Range,
    /// As [`Confidence`](Self::Confidence), but of the medians of rounds.
    #[serde(rename = "95%-of-rounds")]
    ConfidenceOfRounds,
    /// As [`Range`](Self::Range), but of the medians of rounds.
    #[serde(rename = "range-of-rounds")]
    RangeOfRounds,
}

impl Cell for SampleInterval {}

impl SampleInterval {
    /// The kind of the interval of `median`; of the medians of rounds if `of_rounds`.
    pub(super) fn of(median: &Median, of_rounds: bool) -> Option<Self> {
        match (median.spread, of_rounds) {
            (Spread::None, _) => None,
            (Spread::Range { .. }, false) => Some(Self::Range),
            (Spread::Range { .. }, true) => Some(Self::RangeOfRounds),
            (Spread::Interval { .. }, false) => Some(Self::Confidence),
            (Spread::Interval { .. }, true) => Some(Self::ConfidenceOfRounds),
        }
    }

    /// Whether samples are the medians of rounds.
    pub(crate) fn of_rounds(self) -> bool {
        matches!(self, Self::ConfidenceOfRounds | Self::RangeOfRounds)
    }
}

/// Fewest repetitions for which files without the column hold a 95 % interval.
const ENOUGH: usize = 6;

impl Times {
    /// Adds to the time of ordering what is known of it.
    pub(crate) fn add_ordering(&mut self, seconds: Option<f64>) {
        self.ordering_s = [self.ordering_s, seconds].into_iter().flatten().reduce(|a, b| a + b);
    }

    /// Seconds from the matrix in memory to the last of `solves` solutions: ordering, conversion of the
    /// matrix, setup and solves. Unknown times other than setup and solve count as zero.
    pub(crate) fn to_solution(&self, solves: usize) -> Option<f64> {
        Some(self.before_solves()? + solves as f64 * self.solve_s?)
    }

    /// The part of [`to_solution`](Self::to_solution) before the first solve, in seconds.
    pub(crate) fn before_solves(&self) -> Option<f64> {
        let before = [self.ordering_s, self.scaling_s, self.matrix_s].into_iter().flatten();
        Some(before.sum::<f64>() + self.setup_s?)
    }

    /// The same for a new matrix of a known pattern and one solve: conversion, what the setup does not keep, and
    /// solve.
    pub(crate) fn to_solution_of_known_pattern(&self, kept: Kept) -> Option<f64> {
        let made = self.symbolic_s.unwrap_or(0.0) + self.analysis_s.unwrap_or(0.0);
        let again = self.numeric_s? + made - self.of_pattern(kept);
        Some(self.matrix_s.unwrap_or(0.0) + again + self.solve_s?)
    }

    /// Seconds of the phases that new values leave as they are.
    fn of_pattern(&self, kept: Kept) -> f64 {
        let (symbolic, analysis) = (self.symbolic_s.unwrap_or(0.0), self.analysis_s.unwrap_or(0.0));
        match kept {
            Kept::Nothing => 0.0,
            Kept::Pattern => symbolic,
            Kept::Analysis => symbolic + analysis,
        }
    }

    /// Seconds from the first of `systems` matrices of one pattern in memory to the last solution: ordering,
    /// what is `kept` of the setup once, conversion, the rest of the setup and one solve for each. The median of
    /// updates is taken where they were measured, else what the first matrix cost.
    pub(crate) fn to_solutions_of_one_pattern(&self, systems: usize, kept: Kept) -> Option<f64> {
        let first_values = (self.setup_s? - self.of_pattern(kept)).max(0.0);
        let again = self.renumeric_s.map(|s| s + self.deflation_s.unwrap_or(0.0));
        let matrix = self.rematrix_s.or(self.matrix_s).unwrap_or(0.0);
        let each = matrix + again.unwrap_or(first_values) + self.solve_s?;
        Some(self.to_solution(1)? + systems.saturating_sub(1) as f64 * each)
    }

    /// The median solve with its interval or range. Files of earlier versions do not state which, and hold
    /// the range for fewer than six repetitions.
    pub fn solve(&self) -> Option<Median> {
        let ends = self.solve_low_s.zip(self.solve_high_s);
        Some(median(self.solve_s?, ends, self.solve_interval, self.repetitions))
    }

    /// The time of each of these iterations of the solve.
    pub(crate) fn set_iterations(&mut self, iterations: usize) {
        let each = |s: f64| 1e3 * s / iterations as f64;
        self.ms_per_iteration = self.solve_s.filter(|_| iterations > 0).map(each);
    }

    /// Sets the median solve and its interval or range; of the medians of rounds if `of_rounds`.
    pub(crate) fn set_solve(&mut self, solve: &Median, of_rounds: bool) {
        let (low, high) = solve.ends();
        self.solve_s = Some(solve.value);
        (self.solve_low_s, self.solve_high_s) = (Some(low), Some(high));
        self.solve_interval = SampleInterval::of(solve, of_rounds);
        self.repetitions = solve.count;
    }
}

/// A median of `count` samples, as read from a file: see [`Times::solve`].
pub(super) fn median(
    value: f64,
    ends: Option<(f64, f64)>,
    interval: Option<SampleInterval>,
    count: usize,
) -> Median {
    let ends = ends.filter(|(low, high)| *low > 0.0 && high >= low);
    let spread = match (ends, interval) {
        (None, _) => Spread::None,
        (Some(_), None) if count < 2 => Spread::None,
        (Some((low, high)), Some(SampleInterval::Range | SampleInterval::RangeOfRounds)) => {
            Spread::Range { low, high }
        }
        (Some((low, high)), None) if count < ENOUGH => Spread::Range { low, high },
        (Some((low, high)), _) => Spread::Interval { low, high },
    };
    Median { value, spread, count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::measure::median;
    use crate::record::schema::Traffic;

    #[test]
    fn the_time_to_solution_is_everything_from_the_matrix_in_memory_on() {
        let mut times = Times { setup_s: Some(2.0), solve_s: Some(1.0), ..Times::default() };
        assert_eq!((times.to_solution(1), times.to_solution(3)), (Some(3.0), Some(5.0)));
        times.matrix_s = Some(0.5);
        times.ordering_s = Some(0.25);
        assert_eq!((times.before_solves(), times.to_solution(4)), (Some(2.75), Some(6.75)));
        // the order and the symbolic phase are those of the pattern
        assert_eq!(times.to_solution_of_known_pattern(Kept::Analysis), None);
        times.numeric_s = Some(0.125);
        assert_eq!(times.to_solution_of_known_pattern(Kept::Analysis), Some(1.625));
        times.solve_s = None;
        assert_eq!(times.to_solution(1), None);
    }

    #[test]
    fn systems_of_one_pattern_share_what_depends_on_the_pattern() {
        let mut times = Times {
            ordering_s: Some(8.0),
            matrix_s: Some(0.5),
            symbolic_s: Some(4.0),
            analysis_s: Some(2.0),
            numeric_s: Some(1.0),
            deflation_s: Some(0.25),
            setup_s: Some(7.25),
            solve_s: Some(3.0),
            ..Times::default()
        };
        assert_eq!(times.to_solutions_of_one_pattern(1, Kept::Analysis), times.to_solution(1));
        // 8 + 0.5 + 7.25 + 3, and 0.5 + 1 + 0.25 + 3 for each of the others
        assert_eq!(times.to_solutions_of_one_pattern(10, Kept::Analysis), Some(18.75 + 9.0 * 4.75));
        // a method without a numeric phase alone pays for more
        assert_eq!(times.to_solutions_of_one_pattern(10, Kept::Pattern), Some(18.75 + 9.0 * 6.75));
        assert_eq!(times.to_solutions_of_one_pattern(10, Kept::Nothing), Some(18.75 + 9.0 * 10.75));
        (times.renumeric_s, times.rematrix_s) = (Some(0.5), Some(0.125));
        assert_eq!(
            times.to_solutions_of_one_pattern(10, Kept::Analysis),
            Some(18.75 + 9.0 * 3.875)
        );
        assert_eq!(times.to_solution(1000), Some(15.75 + 3000.0));
        times.setup_s = None;
        assert_eq!(times.to_solutions_of_one_pattern(10, Kept::Analysis), None);
    }

    #[test]
    fn a_solve_comes_back_as_it_was_set() {
        for (count, of_rounds, interval) in [
            (1, false, None),
            (3, false, Some(SampleInterval::Range)),
            (5, true, Some(SampleInterval::RangeOfRounds)),
            (6, false, Some(SampleInterval::Confidence)),
            (9, true, Some(SampleInterval::ConfidenceOfRounds)),
        ] {
            let samples: Vec<f64> = (1..=count).map(f64::from).collect();
            let solve = median(&samples).unwrap();
            let mut times = Times::default();
            times.set_solve(&solve, of_rounds);
            assert_eq!((times.solve(), times.solve_interval), (Some(solve), interval));
            assert_eq!(times.repetitions, count as usize);
            let mut traffic = Traffic::default();
            traffic.set_spmv(&solve, of_rounds);
            assert_eq!((traffic.spmv(), traffic.spmv_interval), (Some(solve), interval));
        }
    }

    #[test]
    fn files_of_former_versions_held_ranges_below_six_repetitions() {
        let spread = |repetitions| {
            let times = Times {
                solve_s: Some(2.0),
                solve_low_s: Some(1.0),
                solve_high_s: Some(3.0),
                repetitions,
                ..Times::default()
            };
            times.solve().unwrap().spread
        };
        let (low, high) = (1.0, 3.0);
        assert_eq!(spread(1), Spread::None);
        assert_eq!(spread(5), Spread::Range { low, high });
        assert_eq!(spread(6), Spread::Interval { low, high });
    }
}
