//! The record of one run: one row of every table and file.

use serde::{Deserialize, Serialize};

use crate::base::measure::{Median, Spread};
use crate::base::status::Status;
use crate::case::Case;
use crate::compute::preconditioner::{FactorQuality, FactorSize};
use crate::methods::precond::Kept;
use crate::record::columns::{Cell, part};
pub use crate::record::step::SetupDone;

part! {
    /// Sizes of the system.
    pub struct SystemSize {
        /// scalar unknowns, without padding
        #[serde(with = "known")]
        pub n: usize,
        /// stored entries of the matrix
        #[serde(with = "known")]
        pub nnz: usize,
        /// identity rows appended so that the block size divides n
        pub padding: usize,
        /// block rows, padding included
        pub block_rows: usize,
        /// nonzero blocks of the matrix
        pub matrix_blocks: usize,
        /// right-hand sides that are solved for at once; empty for one
        #[serde(default)]
        pub rhs_count: Option<usize>,
    }
}

/// Numbers that are 0 as long as nobody knows them, as nothing in files.
mod known {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
    pub(super) fn serialize<S: Serializer>(number: &usize, to: S) -> Result<S::Ok, S::Error> {
        (*number > 0).then_some(*number).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<usize, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(0))
    }
}

part! {
    /// Hashes of the system: after `read-as` and `zeros` are applied, before padding and before the
    /// permutation of the unknowns.
    pub struct SystemHash {
        /// XXH3 of n, pattern and values of the matrix, before `ordering` permutes it
        pub matrix_hash: Option<String>,
        /// XXH3 of the right-hand side, before `ordering` permutes it
        pub rhs_hash: Option<String>,
    }
}

part! {
    /// Phase times in seconds. Phases that a method does not have are empty.
    pub struct Times {
        /// computing the permutation and applying it to the system, excluded from all phases, seconds
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
        /// solves, so that it tells the speed of the machine; empty on GPUs
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
    fn of(median: &Median, of_rounds: bool) -> Option<Self> {
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
fn median(
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

part! {
    /// Convergence.
    pub struct Convergence {
        /// applications of the preconditioned operator (full steps of BiCGStab)
        pub iterations: usize,
        /// final residual monitored by the solver, relative to its initial value
        pub monitored_residual: Option<f64>,
        /// |b - A x| / |b|, recomputed in float64; of the worst column with several right-hand sides
        pub true_residual: Option<f64>,
        /// norms of the monitored residual: initially, then after each iteration
        #[serde(default)]
        pub residual_history: Vec<f64>,
    }
}

part! {
    /// Memory traffic and operation times, measured once per case outside the timed solve.
    pub struct Traffic {
        /// memory of matrix and factors on the backend, bytes
        pub memory_bytes: Option<usize>,
        /// one application of the preconditioner, seconds (median)
        pub apply_s: Option<f64>,
        /// least memory traffic of one application, bytes
        pub apply_bytes: Option<usize>,
        /// apply-bytes divided by apply-s, 1e9 bytes per second
        pub apply_gbps: Option<f64>,
        /// one product y = A x, seconds (median)
        pub spmv_s: Option<f64>,
        /// lower end of spmv-interval, seconds
        pub spmv_low_s: Option<f64>,
        /// upper end of spmv-interval, seconds
        pub spmv_high_s: Option<f64>,
        /// kind of interval of spmv-s, with the values of solve-interval
        pub spmv_interval: Option<SampleInterval>,
        /// timed samples of the product; number of rounds where spmv-interval refers to rounds
        pub spmv_samples: Option<usize>,
        /// least memory traffic of one product, bytes
        pub spmv_bytes: Option<usize>,
        /// spmv-bytes divided by spmv-s, 1e9 bytes per second
        pub spmv_gbps: Option<f64>,
        /// two operations per stored entry divided by spmv-s, 1e9 per second
        pub spmv_gflops: Option<f64>,
        /// spmv-gbps as a percentage of copy-gbps
        pub spmv_percent_of_bandwidth: Option<f64>,
        /// correction: one residual r = b - A x, seconds (median)
        pub residual_s: Option<f64>,
        /// GMRES: orthogonalisation of one vector against the full basis, seconds (median)
        pub orthogonalisation_s: Option<f64>,
        /// its least memory traffic divided by its time, 1e9 bytes per second
        pub orthogonalisation_gbps: Option<f64>,
        /// one inner product of bicgstab or qmr, seconds (median)
        pub dot_s: Option<f64>,
        /// one vector update of bicgstab or qmr, seconds (median)
        pub axpy_s: Option<f64>,
        /// measured copy bandwidth of the backend, 1e9 bytes per second
        pub copy_gbps: Option<f64>,
        /// last-level cache of the backend, bytes: an operation of fewer may exceed copy-gbps
        pub cache_bytes: Option<usize>,
        /// microseconds per level of the preconditioner's application
        pub us_per_level: Option<f64>,
        /// measured CTA-to-CTA latency: time for a value to reach another thread block, us
        pub handover_us: Option<f64>,
        /// time of apply-bytes at copy bandwidth, as a percentage of apply-s
        pub percent_of_bandwidth: Option<f64>,
        /// least memory traffic of the factorisation, bytes
        pub numeric_bytes: Option<usize>,
        /// numeric-bytes divided by numeric-kernel-s, 1e9 bytes per second
        pub numeric_gbps: Option<f64>,
        /// microseconds of the factorisation per level of L
        pub numeric_us_per_level: Option<f64>,
        /// time of numeric-bytes at copy bandwidth, as a percentage of numeric-kernel-s
        pub numeric_percent_of_bandwidth: Option<f64>,
    }
}

impl Traffic {
    /// Whether the cache has room for what an operation moves, which therefore may exceed the copy bandwidth.
    pub fn in_cache(&self, bytes: Option<usize>) -> bool {
        bytes.zip(self.cache_bytes).is_some_and(|(bytes, cache)| bytes <= cache)
    }

    /// The median product with its interval or range.
    pub fn spmv(&self) -> Option<Median> {
        let ends = self.spmv_low_s.zip(self.spmv_high_s);
        Some(median(self.spmv_s?, ends, self.spmv_interval, self.spmv_samples.unwrap_or(1)))
    }

    /// Sets the median product and its interval or range; of the medians of rounds if `of_rounds`.
    pub(crate) fn set_spmv(&mut self, product: &Median, of_rounds: bool) {
        let (low, high) = product.ends();
        self.spmv_s = Some(product.value);
        (self.spmv_low_s, self.spmv_high_s) = (Some(low), Some(high));
        self.spmv_interval = SampleInterval::of(product, of_rounds);
        self.spmv_samples = Some(product.count);
    }
}

part! {
    /// Division among ranks; empty on one device.
    pub struct Division {
        /// ranks
        pub ranks: Option<usize>,
        /// subdomains used
        pub subdomains_used: Option<usize>,
        /// what the choice `exact` of schwarz became; other choices stay
        pub schwarz_used: Option<String>,
        /// stages of a solve with exact factors
        pub stages: Option<usize>,
        /// matrix entries of a subdomain divided by those of the longest chain of stages, entries of the factors for
        /// exact:natural
        pub stage_efficiency: Option<f64>,
        /// matrix entries of the fullest rank divided by the mean
        pub imbalance: Option<f64>,
        /// most ranks to which one sends in a product
        pub neighbours: Option<usize>,
        /// messages of a product, all ranks
        pub halo_messages: Option<usize>,
        /// bytes of these
        pub halo_bytes: Option<usize>,
        /// reductions of a solve divided by iterations
        pub reductions_per_iteration: Option<f64>,
        /// part of solve-s in reductions, largest of a rank, seconds
        pub reduction_s: Option<f64>,
        /// the same waiting for halos of products, seconds
        pub halo_s: Option<f64>,
        /// largest peak memory of a rank, bytes
        pub rank_memory_bytes: Option<usize>,
        /// way of halos between GPUs of ranks: pinned memory
        pub transport_used: Option<String>,
    }
}

part! {
    /// Machine and program of a measurement.
    pub struct Environment {
        /// device of the backend, or library of a peer
        pub device: String,
        /// threads of the backend
        pub threads: usize,
        /// processors to which they are pinned, of the first rank where there are several; empty where they are not
        pub placement: Option<String>,
        /// host processor
        pub cpu: String,
        /// operating system and architecture
        pub os: String,
        /// compiler that built the program
        pub compiler: String,
        /// program version and source revision
        pub revision: String,
        /// version of these columns, 2; empty in records of earlier versions
        pub schema: Option<usize>,
        // comes last: a line with a complete date is not cut off
        /// start of the run, UTC
        pub date: String,
    }
}

/// One finished run. The leaf names are unique: they are the columns of the CSV file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// What was run.
    #[serde(flatten)]
    pub case: Case,
    /// Format that `auto` chose, or the one requested.
    pub format_used: Option<String>,
    /// Tuned parameters of the product's kernel; empty for the default ones.
    #[serde(default)]
    pub tuned: Option<String>,
    /// Number of its round, from 1; empty without rounds.
    #[serde(default)]
    pub round: Option<usize>,
    /// Number of the step, from 1; empty without a sequence.
    #[serde(default)]
    pub step: Option<usize>,
    /// What was made of the preconditioner in this step; empty without a sequence.
    #[serde(default)]
    pub setup_done: Option<SetupDone>,
    /// How it ended.
    pub status: Status,
    /// Why, when it did not converge; remarks otherwise.
    pub reason: Option<String>,
    /// Sizes.
    #[serde(flatten)]
    pub size: SystemSize,
    /// Contents of the system.
    #[serde(flatten)]
    pub hash: SystemHash,
    /// Factor sizes.
    #[serde(flatten)]
    pub factor: FactorSize,
    /// Whether the factors are fit for use.
    #[serde(flatten)]
    pub quality: FactorQuality,
    /// Phase times.
    #[serde(flatten)]
    pub times: Times,
    /// Convergence.
    #[serde(flatten)]
    pub convergence: Convergence,
    /// Bytes and bandwidth.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Ranks.
    #[serde(flatten)]
    pub division: Division,
    /// Where.
    #[serde(flatten)]
    pub environment: Environment,
}

impl Record {
    /// Appends `remark` to [`reason`](Self::reason).
    pub(crate) fn remark(&mut self, remark: String) {
        self.reason = Some(match self.reason.take() {
            Some(before) => format!("{before}; {remark}"),
            None => remark,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::measure::median;

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
