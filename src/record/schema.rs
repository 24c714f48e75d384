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

/// Hashes of the system: after `read-as` and `zeros` are applied, before padding and before the
/// permutation of the unknowns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SystemHash {
    /// Of order, pattern and values of the matrix, 16 hexadecimal digits; empty where there was no matrix
    /// and in records of earlier versions.
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
    /// Computing the permutation and applying it to matrix and right-hand side, once for all cases that
    /// share it; excluded from all phases, and empty for the natural ordering.
    #[serde(default)]
    pub ordering_s: Option<f64>,
    /// Run-time compilation and loading of the device's kernels, excluded from all phases; empty on a CPU.
    pub compile_s: Option<f64>,
    /// Trial runs that choose the algorithm of the triangular solves, over all setups of the case; excluded
    /// from all phases, and empty where there is no choice.
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
    /// Factorisation on the device, part of the numeric phase: without the transfer of the values to a
    /// GPU. On a CPU it is the whole phase.
    pub numeric_kernel_s: Option<f64>,
    /// Deflation: vectors, A Z, the coarse matrix and its inverse.
    #[serde(default)]
    pub deflation_s: Option<f64>,
    /// Sum of the three phases and deflation.
    pub setup_s: Option<f64>,
    /// Median solve time over the repetitions.
    pub solve_s: Option<f64>,
    /// Lower end of the [`solve_interval`](Self::solve_interval).
    pub solve_low_s: Option<f64>,
    /// Upper end of it.
    pub solve_high_s: Option<f64>,
    /// Kind of interval; empty for a single solve.
    #[serde(default)]
    pub solve_interval: Option<SampleInterval>,
    /// Timed solves, or samples of the product where it runs alone; number of rounds where the interval
    /// refers to rounds.
    pub repetitions: usize,
    /// Time to solution, [`to_solution`](Self::to_solution) with one solve.
    pub total_s: Option<f64>,
    /// Median solve time over iterations, in milliseconds.
    pub ms_per_iteration: Option<f64>,
    /// Median numeric phase on new values of the same pattern: symbolic phase and analysis reused.
    pub renumeric_s: Option<f64>,
    /// Median time to update the stored matrix with new values of the same pattern.
    pub rematrix_s: Option<f64>,
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
    pub fn of_rounds(self) -> bool {
        matches!(self, Self::ConfidenceOfRounds | Self::RangeOfRounds)
    }
}

/// Fewest repetitions for which files without the column hold a 95 % interval.
const ENOUGH: usize = 6;

impl Times {
    /// Seconds from the matrix in memory to the last of `solves` solutions: ordering, conversion of the
    /// matrix, setup and solves. Unknown times other than setup and solve count as zero.
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

    /// The median solve with its interval or range. Files of earlier versions do not state which, and hold
    /// the range for fewer than six repetitions.
    pub fn solve(&self) -> Option<Median> {
        let ends = self.solve_low_s.zip(self.solve_high_s);
        Some(median(self.solve_s?, ends, self.solve_interval, self.repetitions))
    }

    /// Sets the median solve and its interval or range; of the medians of rounds if `of_rounds`.
    pub fn set_solve(&mut self, solve: &Median, of_rounds: bool) {
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
    /// Norms of the monitored residual: before the first iteration, then after each, up to the number
    /// requested.
    #[serde(default)]
    pub residual_history: Vec<f64>,
}

/// Memory traffic and operation times, measured once per case outside the timed solve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Traffic {
    /// Memory of matrix and factors on the backend, in bytes.
    pub memory_bytes: Option<usize>,
    /// Seconds of one preconditioner application (median).
    pub apply_s: Option<f64>,
    /// Least memory traffic of one preconditioner application, in bytes.
    pub apply_bytes: Option<usize>,
    /// `apply_bytes / apply_s` in GB/s (1e9).
    pub apply_gbps: Option<f64>,
    /// Seconds of one product `y = A x` (median).
    pub spmv_s: Option<f64>,
    /// Lower end of the [`spmv_interval`](Self::spmv_interval).
    #[serde(default)]
    pub spmv_low_s: Option<f64>,
    /// Upper end of it.
    #[serde(default)]
    pub spmv_high_s: Option<f64>,
    /// Kind of interval; empty for a single sample.
    #[serde(default)]
    pub spmv_interval: Option<SampleInterval>,
    /// Samples of the product; number of rounds where the interval refers to rounds.
    #[serde(default)]
    pub spmv_samples: Option<usize>,
    /// Least memory traffic of one product, in bytes.
    pub spmv_bytes: Option<usize>,
    /// `spmv_bytes / spmv_s` in GB/s (1e9).
    pub spmv_gbps: Option<f64>,
    /// Two operations per stored entry divided by `spmv_s`, 1e9 per second.
    pub spmv_gflops: Option<f64>,
    /// `spmv_gbps` as a percentage of the copy bandwidth.
    pub spmv_percent_of_bandwidth: Option<f64>,
    /// Seconds of one residual `r = b - A x` of the iterative correction (median).
    #[serde(default)]
    pub residual_s: Option<f64>,
    /// Seconds of one orthogonalisation of GMRES against the full basis (median).
    pub orthogonalisation_s: Option<f64>,
    /// Its least memory traffic, two passes over the basis, divided by its time, in GB/s (1e9).
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
    /// Measured CTA-to-CTA latency: microseconds for a value to reach another thread block.
    pub handover_us: Option<f64>,
    /// Time of the traffic at copy bandwidth, as a percentage of the application's time.
    pub percent_of_bandwidth: Option<f64>,
    /// Levels times CTA-to-CTA latency, as a percentage of the application's time.
    pub percent_of_latency: Option<f64>,
    /// The larger of both: how close the application is to the roofline.
    pub percent_of_roof: Option<f64>,
    /// Least memory traffic of the factorisation, in bytes.
    pub numeric_bytes: Option<usize>,
    /// `numeric_bytes / numeric_kernel_s` in GB/s (1e9).
    pub numeric_gbps: Option<f64>,
    /// Microseconds per level of the factorisation.
    pub numeric_us_per_level: Option<f64>,
    /// Time of the traffic at copy bandwidth, as a percentage of the factorisation's time.
    pub numeric_percent_of_bandwidth: Option<f64>,
    /// Levels times CTA-to-CTA latency, as a percentage of the factorisation's time.
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

    /// Sets the median product and its interval or range; of the medians of rounds if `of_rounds`.
    pub fn set_spmv(&mut self, product: &Median, of_rounds: bool) {
        let (low, high) = product.ends();
        self.spmv_s = Some(product.value);
        (self.spmv_low_s, self.spmv_high_s) = (Some(low), Some(high));
        self.spmv_interval = SampleInterval::of(product, of_rounds);
        self.spmv_samples = Some(product.count);
    }
}

/// Machine and program of a measurement.
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
    /// of earlier versions.
    #[serde(default)]
    pub schema: Option<usize>,
    /// Start of the run, UTC, RFC 3339. It comes last: a line with a complete date is not truncated.
    pub date: String,
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
