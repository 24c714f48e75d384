//! The record of one run: one row of every table and file.

use serde::{Deserialize, Serialize};

use crate::base::measure::{Median, Spread};
use crate::base::status::Status;
use crate::case::Case;
use crate::compute::preconditioner::FactorSize;

/// Sizes of the system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SystemSize {
    /// Scalar unknowns of the matrix, without padding; 0, and empty in files, where the case ended before
    /// the matrix was there.
    #[serde(with = "known")]
    pub n: usize,
    /// Stored entries of the matrix, explicit zeros included; as `n`.
    #[serde(with = "known")]
    pub nnz: usize,
    /// Identity rows added because the block size does not divide n.
    pub padding: usize,
    /// Block rows, padding included.
    pub block_rows: usize,
    /// Nonzero blocks of the matrix.
    pub matrix_blocks: usize,
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

/// What the system was made of, as it was solved: with `read-as` and `zeros` applied, before padding and
/// before its unknowns were renumbered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SystemHash {
    /// Of order, pattern and values of the matrix, 16 hexadecimal digits; empty where there was no matrix
    /// and in records of before.
    #[serde(default)]
    pub matrix_hash: Option<String>,
    /// Of the values of the right-hand side, likewise.
    #[serde(default)]
    pub rhs_hash: Option<String>,
}

/// Phase times in seconds. Phases that a method does not have are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Times {
    /// Finding the order and renumbering matrix and right-hand side, once for all cases that share it;
    /// in no phase, and empty in natural order.
    #[serde(default)]
    pub ordering_s: Option<f64>,
    /// Run-time compilation and loading of the device's kernels, in no phase; empty on a CPU.
    pub compile_s: Option<f64>,
    /// Trying ways of triangular solves against each other, in no phase, over all setups of the case;
    /// empty where there is no choice.
    pub trial_s: Option<f64>,
    /// Conversion of the matrix to the format of the product and its transfer to the backend (median).
    /// Not part of the setup.
    pub matrix_s: Option<f64>,
    /// Symbolic phase: fill pattern from the pattern of A.
    pub symbolic_s: Option<f64>,
    /// Analysis: level schedule, storage and upload.
    pub analysis_s: Option<f64>,
    /// Numeric factorisation.
    pub numeric_s: Option<f64>,
    /// The factorisation on the device alone, a part of the numeric phase: without the values' way
    /// to a GPU. On a CPU the phase is nothing else.
    pub numeric_kernel_s: Option<f64>,
    /// Deflation: vectors, A Z, the coarse matrix and its inverse.
    #[serde(default)]
    pub deflation_s: Option<f64>,
    /// The three phases and deflation together.
    pub setup_s: Option<f64>,
    /// Median solve time over the repetitions.
    pub solve_s: Option<f64>,
    /// Lower end of what [`solve_interval`](Self::solve_interval) says.
    pub solve_low_s: Option<f64>,
    /// Upper end of it.
    pub solve_high_s: Option<f64>,
    /// What the two ends are; empty for a single solve.
    #[serde(default)]
    pub solve_interval: Option<SampleInterval>,
    /// Repetitions of the solve that were timed, samples of the product where it runs alone; the rounds
    /// where the interval is of rounds.
    pub repetitions: usize,
    /// Time to solution, [`to_solution`](Self::to_solution) with one solve.
    pub total_s: Option<f64>,
    /// Median solve time over iterations, in milliseconds.
    pub ms_per_iteration: Option<f64>,
    /// Median numeric phase on new values of the same pattern: symbolic phase and analysis reused.
    pub renumeric_s: Option<f64>,
    /// Median time in which the stored matrix takes over new values of the same pattern.
    pub rematrix_s: Option<f64>,
}

/// What the two ends beside a median time are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampleInterval {
    /// The 95 % confidence interval of the median.
    #[serde(rename = "95%")]
    Confidence,
    /// Least and largest of samples too few for an interval.
    #[serde(rename = "range")]
    Range,
    /// As [`Confidence`](Self::Confidence), of the medians of rounds.
    #[serde(rename = "95%-of-rounds")]
    ConfidenceOfRounds,
    /// As [`Range`](Self::Range), of the medians of rounds.
    #[serde(rename = "range-of-rounds")]
    RangeOfRounds,
}

impl SampleInterval {
    /// What the ends of `median` are, of the medians of rounds where `of_rounds`.
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
    pub fn of_rounds(self) -> bool {
        matches!(self, Self::ConfidenceOfRounds | Self::RangeOfRounds)
    }
}

/// Repetitions from which on files that do not say so hold a 95 % interval.
const ENOUGH: usize = 6;

impl Times {
    /// Seconds from the matrix in memory to the last of `solves` solutions: ordering, conversion of the
    /// matrix, setup and solves. What is not known beside setup and solve counts as nothing.
    pub fn to_solution(&self, solves: usize) -> Option<f64> {
        Some(self.before_solves()? + solves as f64 * self.solve_s?)
    }

    /// The part of [`to_solution`](Self::to_solution) before the first solve, in seconds.
    pub fn before_solves(&self) -> Option<f64> {
        Some(self.ordering_s.unwrap_or(0.0) + self.matrix_s.unwrap_or(0.0) + self.setup_s?)
    }

    /// The same for a new matrix of a known pattern and one solve: conversion, numeric phase and solve.
    pub fn to_solution_of_known_pattern(&self) -> Option<f64> {
        Some(self.matrix_s.unwrap_or(0.0) + self.numeric_s? + self.solve_s?)
    }

    /// The median solve with its interval or range. Files of former versions do not say which, and hold
    /// the range for fewer than six repetitions.
    pub fn solve(&self) -> Option<Median> {
        let ends = self.solve_low_s.zip(self.solve_high_s);
        Some(median(self.solve_s?, ends, self.solve_interval, self.repetitions))
    }

    /// Sets the median solve and its interval or range, of the medians of rounds where `of_rounds`.
    pub fn set_solve(&mut self, solve: &Median, of_rounds: bool) {
        let (low, high) = solve.ends();
        self.solve_s = Some(solve.value);
        (self.solve_low_s, self.solve_high_s) = (Some(low), Some(high));
        self.solve_interval = SampleInterval::of(solve, of_rounds);
        self.repetitions = solve.count;
    }
}

/// A median of `count` samples as it was written: see [`Times::solve`].
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

/// Convergence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Convergence {
    /// Iterations: applications of the preconditioned operator (full steps of BiCGStab, corrections).
    pub iterations: usize,
    /// Residual the solver monitored, relative to its initial value.
    pub monitored_residual: Option<f64>,
    /// `|b - A x| / |b|`, recomputed in float64 after the solve.
    pub true_residual: Option<f64>,
    /// Norms of the monitored residual: before the first iteration, then after each, as many as were
    /// asked for.
    #[serde(default)]
    pub residual_history: Vec<f64>,
}

/// Bytes moved and what they cost: measured once per case, outside the timed solve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Traffic {
    /// Bytes the matrix and the factors occupy on the backend.
    pub memory_bytes: Option<usize>,
    /// Seconds of one preconditioner application (median).
    pub apply_s: Option<f64>,
    /// Bytes one preconditioner application must move at least.
    pub apply_bytes: Option<usize>,
    /// `apply_bytes / apply_s` in GB/s (1e9).
    pub apply_gbps: Option<f64>,
    /// Seconds of one product `y = A x` (median).
    pub spmv_s: Option<f64>,
    /// Lower end of what [`spmv_interval`](Self::spmv_interval) says.
    #[serde(default)]
    pub spmv_low_s: Option<f64>,
    /// Upper end of it.
    #[serde(default)]
    pub spmv_high_s: Option<f64>,
    /// What the two ends are; empty for a single sample.
    #[serde(default)]
    pub spmv_interval: Option<SampleInterval>,
    /// Samples of the product; the rounds where the interval is of rounds.
    #[serde(default)]
    pub spmv_samples: Option<usize>,
    /// Bytes one product must move at least.
    pub spmv_bytes: Option<usize>,
    /// `spmv_bytes / spmv_s` in GB/s (1e9).
    pub spmv_gbps: Option<f64>,
    /// Two operations for each stored entry of the matrix over `spmv_s`, 1e9 per second.
    pub spmv_gflops: Option<f64>,
    /// `spmv_gbps` in percent of the copy bandwidth.
    pub spmv_percent_of_bandwidth: Option<f64>,
    /// Seconds of one residual `r = b - A x` of the iterative correction (median).
    #[serde(default)]
    pub residual_s: Option<f64>,
    /// Seconds of one orthogonalisation of GMRES against a whole restart's basis (median).
    pub orthogonalisation_s: Option<f64>,
    /// Bytes that moves at least, both passes over the basis, in GB/s (1e9).
    pub orthogonalisation_gbps: Option<f64>,
    /// Seconds of one inner product, where BiCGStab or QMR runs step by step (median).
    #[serde(default)]
    pub dot_s: Option<f64>,
    /// Seconds of one vector update `y = a x + b y` there (median).
    #[serde(default)]
    pub axpy_s: Option<f64>,
    /// Measured copy bandwidth of the backend in GB/s: the roof.
    pub copy_gbps: Option<f64>,
    /// Microseconds per level of the preconditioner application.
    pub us_per_level: Option<f64>,
    /// Measured seconds, in microseconds, in which a value goes from one thread block to another.
    pub handover_us: Option<f64>,
    /// Bytes over copy bandwidth, in percent of the application's time.
    pub percent_of_bandwidth: Option<f64>,
    /// Levels times hand-over latency, in percent of the application's time.
    pub percent_of_latency: Option<f64>,
    /// The larger of both: how near the application is to what the device allows.
    pub percent_of_roof: Option<f64>,
    /// Bytes the factorisation must move at least.
    pub numeric_bytes: Option<usize>,
    /// `numeric_bytes / numeric_kernel_s` in GB/s (1e9).
    pub numeric_gbps: Option<f64>,
    /// Microseconds per level of the factorisation.
    pub numeric_us_per_level: Option<f64>,
    /// Bytes over copy bandwidth, in percent of the factorisation's time.
    pub numeric_percent_of_bandwidth: Option<f64>,
    /// Levels times hand-over latency, in percent of the factorisation's time.
    pub numeric_percent_of_latency: Option<f64>,
    /// The larger of both.
    pub numeric_percent_of_roof: Option<f64>,
}

impl Traffic {
    /// The median product with its interval or range.
    pub fn spmv(&self) -> Option<Median> {
        let ends = self.spmv_low_s.zip(self.spmv_high_s);
        Some(median(self.spmv_s?, ends, self.spmv_interval, self.spmv_samples.unwrap_or(1)))
    }

    /// Sets the median product and its interval or range, of the medians of rounds where `of_rounds`.
    pub fn set_spmv(&mut self, product: &Median, of_rounds: bool) {
        let (low, high) = product.ends();
        self.spmv_s = Some(product.value);
        (self.spmv_low_s, self.spmv_high_s) = (Some(low), Some(high));
        self.spmv_interval = SampleInterval::of(product, of_rounds);
        self.spmv_samples = Some(product.count);
    }
}

/// Where a record was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Environment {
    /// Device the backend ran on.
    pub device: String,
    /// Threads of the backend.
    pub threads: usize,
    /// Host processor.
    pub cpu: String,
    /// Operating system and architecture.
    pub os: String,
    /// Rust compiler that built the program.
    pub compiler: String,
    /// Program version and source revision.
    pub revision: String,
    /// Version of the columns, [`SCHEMA_VERSION`](crate::record::columns::SCHEMA_VERSION); none in records
    /// of before.
    #[serde(default)]
    pub schema: Option<usize>,
    /// Start of the run, UTC, RFC 3339. It comes last: a line whose date is whole was not cut off.
    pub date: String,
}

/// One finished run. The leaf names are unique: they are the columns of the CSV file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// What was run.
    #[serde(flatten)]
    pub case: Case,
    /// Format that `auto` chose, or the one asked for.
    pub format_used: Option<String>,
    /// What tuning chose for the product's kernel; empty where the usual choices are in use.
    #[serde(default)]
    pub tuned: Option<String>,
    /// The round it was measured in, from 1; empty without rounds.
    #[serde(default)]
    pub round: Option<usize>,
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
    /// Phase times.
    #[serde(flatten)]
    pub times: Times,
    /// Convergence.
    #[serde(flatten)]
    pub convergence: Convergence,
    /// Bytes and bandwidth.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Where.
    #[serde(flatten)]
    pub environment: Environment,
}

impl Record {
    /// Puts `remark` behind what [`reason`](Self::reason) says already.
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
        assert_eq!(times.to_solution_of_known_pattern(), None);
        times.numeric_s = Some(0.125);
        assert_eq!(times.to_solution_of_known_pattern(), Some(1.625));
        times.solve_s = None;
        assert_eq!(times.to_solution(1), None);
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
