//! One run of the obstacle problem: all its settings.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::parse::as_text;

/// Most grid points in a direction: offsets in a field of them fit an address.
pub(crate) const MAX_POINTS: usize = 4096;

/// Most parts in which a direction is split.
pub(crate) const MAX_PARTS: usize = 64;

/// Most sweeps that one pass through memory makes.
pub(crate) const MAX_SWEEPS_PER_PASS: usize = 4;

/// How the new values of a sweep are made from the old ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Projected Richardson with gamma = 1/Center: every new value is made of old ones (Jacobi).
    #[default]
    Jacobi,
    /// Lines of even y, then those of odd y with the new values of the even ones; slice z uses the
    /// new values of slice z - 1 (section 6 of the paper).
    RedBlackY,
    /// Points of even x + y + z, then the others with the new values of the first.
    RedBlack,
}

/// What a node does when values of its neighbours have not arrived yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It waits for those of the previous sweep.
    #[default]
    Sync,
    /// It continues with the latest values received.
    Async,
}

/// Stopping criterion: the quantity that must fall below epsilon for a time step to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StopOn {
    /// `||U^(p+1) - U^p||_2` over each part of `norm-split`, the largest of them (the paper's).
    #[default]
    StepNorm,
    /// `max |min(A U - G, U - Phi)|` of the iterate. A Jacobi sweep computes it for its old values; the sweep
    /// that finds it below epsilon is neither counted nor kept. With colours a pass that stores nothing
    /// computes it after the sweep; asynchronous sweeps look at each point just before its relaxation, and a
    /// synchronous sweep tells whether all are done.
    Complementarity,
}

/// Halo exchange between ranks that have a GPU each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Direct stores into the neighbour's memory where both are on the same host and it permits that, else messages.
    #[default]
    Auto,
    /// Messages through host memory.
    Messages,
}

/// Parts in y and in z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Split {
    /// Parts in y.
    pub y: usize,
    /// Parts in z.
    pub z: usize,
}

impl Split {
    /// One part.
    pub const WHOLE: Self = Self { y: 1, z: 1 };

    /// Parts in all.
    pub fn count(self) -> usize {
        self.y * self.z
    }

    /// The split of `parts` with the smallest faces: as near to a square as the divisors allow, with
    /// no fewer parts in z than in y.
    pub(crate) fn near_square(parts: usize) -> Self {
        let fits = |y: &usize| parts.is_multiple_of(*y) && y * y <= parts;
        let y = (1..=parts).rfind(fits).unwrap_or(1);
        Self { y, z: parts / y }
    }

    /// Where part `number` of `parts` lies in `0..m`: lengths differ by at most one.
    pub fn range(m: usize, parts: usize, number: usize) -> std::ops::Range<usize> {
        m * number / parts..m * (number + 1) / parts
    }

    /// The part of `0..m` in which `at` lies.
    pub fn part(m: usize, parts: usize, at: usize) -> usize {
        // the last part that begins at or before `at`
        ((at + 1) * parts - 1) / m
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.y, self.z)
    }
}

impl FromStr for Split {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::input(format!("`{text}` is no split"))
                .hint(format!("parts in y and in z, each 1 to {MAX_PARTS}: `3x4`"))
        };
        let (y, z) = text.trim().split_once('x').ok_or_else(bad)?;
        let part =
            |word: &str| word.parse().ok().filter(|p| (1..=MAX_PARTS).contains(p)).ok_or_else(bad);
        Ok(Self { y: part(y)?, z: part(z)? })
    }
}

as_text!(Split);

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Case {
    /// Grid points in each direction, `h = 1/(m + 1)`.
    pub m: usize,
    /// The obstacle, see [`Obstacle`](super::Obstacle).
    pub obstacle: String,
    /// Convection `b1:b2:b3`, removed by a change of variables; `0:0:0` is none.
    pub convection: String,
    /// Diffusion.
    pub eta: f64,
    /// Reaction.
    pub c: f64,
    /// Length of a time step.
    pub time_step: f64,
    /// Time steps.
    pub steps: usize,
    /// Relaxation method of a sweep.
    pub method: Method,
    /// Synchronous or asynchronous.
    pub mode: Mode,
    /// Sweeps per pass through memory.
    pub sweeps_per_pass: usize,
    /// Stopping criterion of a time step.
    pub stop: StopOn,
    /// Tolerance of the stopping criterion.
    pub epsilon: f64,
    /// Subdomains over which the norm of an update is taken, of which the largest counts; the paper's nodes.
    pub norm_split: Split,
    /// Sweeps between tests of the stopping criterion.
    pub check_every: usize,
    /// Limit of relaxations per node and time step.
    pub max_relaxations: usize,
    /// Nodes: threads, GPUs or ranks, each with a part of the grid; `None` leaves the choice to the backend.
    pub split: Option<Split>,
    /// Halo exchange between ranks that have a GPU each.
    #[serde(default)]
    pub transport: Transport,
    /// Where it runs, a name in [`BACKENDS`](super::BACKENDS).
    pub backend: String,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            m: 64,
            obstacle: "zero".into(),
            convection: "0:0:0".into(),
            eta: 0.2,
            c: 1.1,
            time_step: 0.0066,
            steps: 3,
            method: Method::default(),
            mode: Mode::default(),
            sweeps_per_pass: 1,
            stop: StopOn::default(),
            epsilon: 1e-4,
            norm_split: Split::WHOLE,
            check_every: 1,
            max_relaxations: 1_000_000,
            split: None,
            transport: Transport::default(),
            backend: "cpu".into(),
        }
    }
}

impl Case {
    /// Whether a sweep of both colours is one pass through memory: on a GPU, where one is a slice behind
    /// the other.
    pub(crate) fn colours_in_one_pass(&self) -> bool {
        self.backend == "cuda"
            && self.method == Method::RedBlack
            && self.mode == Mode::Sync
            && self.stop == StopOn::StepNorm
    }

    /// Whether the stopping test applies to the old values of a sweep, which are kept until after it.
    pub(crate) fn looks_before_sweep(&self) -> bool {
        self.stop == StopOn::Complementarity && self.method == Method::Jacobi
    }

    /// Whether the stopping test takes a pass of its own after a sweep, which has no old values of all points.
    pub(crate) fn looks_after_sweep(&self) -> bool {
        self.stop == StopOn::Complementarity && self.method != Method::Jacobi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_cover_every_point_once_and_know_the_part_of_each() {
        for (m, parts) in [(256, 3), (7, 7), (800, 12), (5, 1), (10, 4)] {
            let mut next = 0;
            for number in 0..parts {
                let range = Split::range(m, parts, number);
                assert_eq!(range.start, next);
                assert!((m / parts..=m.div_ceil(parts)).contains(&range.len()));
                assert!(range.clone().all(|at| Split::part(m, parts, at) == number), "{m} {parts}");
                next = range.end;
            }
            assert_eq!(next, m);
        }
    }

    #[test]
    fn parts_are_nearly_square() {
        let texts = [1, 2, 4, 6, 12, 24, 7].map(|n| Split::near_square(n).to_string());
        assert_eq!(texts, ["1x1", "1x2", "2x2", "2x3", "3x4", "4x6", "1x7"]);
    }

    #[test]
    fn splits_are_read_and_refused() {
        assert_eq!("3x4".parse::<Split>().unwrap(), Split { y: 3, z: 4 });
        for text in ["", "3", "0x1", "3x", "65x1", "-1x2", "1x2x3"] {
            let error = text.parse::<Split>().unwrap_err();
            assert_eq!(error.to_string(), format!("`{text}` is no split"));
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn what_cannot_be_together_is_named() {
        let message = |case: Case| case.check().unwrap_err().to_string();
        let case = Case { m: 3, norm_split: Split { y: 1, z: 4 }, ..Case::default() };
        assert_eq!(
            message(case),
            "norm-split 1x4 has more parts than the 3 grid points of a direction"
        );
        let case = Case { sweeps_per_pass: 2, check_every: 3, ..Case::default() };
        assert_eq!(message(case), "check-every 3 is no multiple of sweeps-per-pass 2");
        let case = Case { sweeps_per_pass: 2, check_every: 2, ..Case::default() };
        assert_eq!(message(case), "sweeps-per-pass 2 cannot be had on backend `cpu`");
        let case = Case { split: Some(Split { y: 1, z: 2 }), ..Case::default() };
        assert_eq!(message(case), "split 1x2 on backend `cpu`, which is one thread");
        let case =
            Case { split: Some(Split { y: 2, z: 1 }), backend: "cuda".into(), ..Case::default() };
        assert_eq!(message(case), "split 2x1 on several GPUs: they share z alone");
        let case = Case { method: Method::RedBlack, backend: "mpi-cuda".into(), ..Case::default() };
        assert_eq!(message(case), "several GPUs run the Jacobi method alone");
        let case =
            Case { transport: Transport::Messages, backend: "cuda".into(), ..Case::default() };
        assert_eq!(message(case), "transport `messages` on backend `cuda`, which has no ranks");
        assert_eq!(Case::default().check(), Ok(()));
    }
}
