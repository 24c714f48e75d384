//! The record of one run: one row of every table and file.

use serde::{Deserialize, Serialize};

use crate::base::measure::Median;
use crate::base::status::Status;
use crate::case::Case;
use crate::compute::preconditioner::{FactorQuality, FactorSize};
use crate::record::columns::part;
pub use crate::record::step::SetupDone;
use crate::record::times::median;
pub use crate::record::times::{SampleInterval, Times};

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
        /// one application of the preconditioner, to all columns with several right-hand sides, seconds (median)
        pub apply_s: Option<f64>,
        /// least memory traffic of one application, bytes
        pub apply_bytes: Option<usize>,
        /// apply-bytes divided by apply-s, 1e9 bytes per second
        pub apply_gbps: Option<f64>,
        /// one product y = A x, of all columns with several right-hand sides, seconds (median)
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
        /// two operations per stored entry and column divided by spmv-s, 1e9 per second
        pub spmv_gflops: Option<f64>,
        /// spmv-gbps as a percentage of copy-gbps
        pub spmv_percent_of_bandwidth: Option<f64>,
        /// correction: one residual r = b - A x, seconds (median)
        pub residual_s: Option<f64>,
        /// GMRES: orthogonalisation of one vector against the full basis, seconds (median)
        pub orthogonalisation_s: Option<f64>,
        /// its least memory traffic divided by its time, 1e9 bytes per second
        pub orthogonalisation_gbps: Option<f64>,
        /// one inner product of a solver that has a fixed number of them, seconds (median)
        pub dot_s: Option<f64>,
        /// one vector update of such a solver, seconds (median)
        pub axpy_s: Option<f64>,
        /// memory traffic of one iteration, of its products, applications, inner products and updates, bytes; GMRES in the mean, with restarts
        pub iteration_bytes: Option<usize>,
        /// time of iteration-bytes at copy bandwidth, as a percentage of ms-per-iteration
        pub iteration_percent_of_bandwidth: Option<f64>,
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
        /// way of halos between GPUs of ranks: `direct` or pinned memory
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
    /// The true residual over the tolerance, where a solve converged and this is above 1: the monitored residual has
    /// met the tolerance, the recomputed one has not.
    pub fn above_tolerance(&self) -> Option<f64> {
        let converged = self.status == Status::Converged && self.case.rtol > 0.0;
        let times = self.convergence.true_residual? / self.case.rtol;
        (converged && times > 1.0).then_some(times)
    }

    /// Appends `remark` to [`reason`](Self::reason).
    pub(crate) fn remark(&mut self, remark: String) {
        self.reason = Some(match self.reason.take() {
            Some(before) => format!("{before}; {remark}"),
            None => remark,
        });
    }
}
