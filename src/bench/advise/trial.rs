//! One case run once, and given up as soon as it cannot be among the best any more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};

use crate::base::error::Result;
use crate::base::measure::{memory_free, now, seconds_since};
use crate::base::status::Status;
use crate::bench::engine::Permuted;
use crate::bench::run::{Reuse, Solved, Stage, contradicts, solve_case};
use crate::case::{Case, Ordering};
use crate::compute;
use crate::config::sampling::Measure;
use crate::problem::Problem;
use crate::record::Record;

/// How a trial ended.
#[derive(Clone, Debug)]
pub enum Trial {
    /// It converged.
    Solved {
        /// Seconds until there are factors: order, storage, setup.
        fixed: f64,
        /// Seconds of fixed costs and all solves.
        seconds: f64,
        record: Box<Record>,
    },
    /// It was given up.
    CutOff {
        /// Seconds of fixed costs, a lower bound where they were not over.
        fixed: f64,
    },
    /// It does not converge, or cannot run.
    Failed { reason: String },
}

impl Trial {
    /// Seconds of fixed costs and all solves, where it was solved.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match self {
            Self::Solved { seconds, .. } => Some(*seconds),
            _ => None,
        }
    }

    /// Seconds of the fixed costs, as far as they are known.
    pub(crate) fn fixed(&self) -> Option<f64> {
        match self {
            Self::Solved { fixed, .. } | Self::CutOff { fixed } => Some(*fixed),
            Self::Failed { .. } => None,
        }
    }
}

/// Runs trials, behind a trait so that the search is tested without solvers.
pub(crate) trait Tries {
    /// Runs a case until it needs more than `limit` seconds for its fixed costs and all solves; `None`
    /// when the user asked to stop.
    fn try_out(&mut self, case: &Case, limit: f64) -> Option<Trial>;
    /// Seconds since the search began.
    fn elapsed(&self) -> f64;
}

/// Trials by a function, so many seconds after the search began.
#[cfg(test)]
pub(super) struct At<F>(pub(super) f64, pub(super) F);

#[cfg(test)]
impl<F: FnMut(&Case, f64) -> Trial> Tries for At<F> {
    fn try_out(&mut self, case: &Case, limit: f64) -> Option<Trial> {
        Some((self.1)(case, limit))
    }
    fn elapsed(&self) -> f64 {
        self.0
    }
}

/// Wall-clock seconds beside what is measured (vectors, trials of the backend's own) that a trial may take
/// before it is given up, as long as nothing was solved.
const OVERHEAD: f64 = 0.03;
/// After that as many times the most that was seen, and at least so many seconds.
const OVERHEADS: f64 = 2.0;
const LEAST_OVERHEAD: f64 = 0.001;
/// A peer starts, reads the system and may set up twice, for its phases: so many seconds, and this many times what it
/// measures.
const START_OF_PEER: f64 = 10.0;
const SETUPS_OF_PEER: f64 = 2.0;
/// A trial that takes less than this many seconds is made again until its two least times agree, and the
/// least counts: others on the machine only ever add.
const SHORT: f64 = 0.05;
/// Runs of the same short trial differ where the machine is busy: the share by which a trial changes what is
/// known of that, and the most that is believed.
const NOISE_SHARE: f64 = 0.2;
const MOST_NOISE: f64 = 4.0;
/// A trial that was the first to use some kernel is made again when it took less than this many times its
/// limit.
const FIRST_USE: f64 = 2.0;
/// Agreement of two times.
const AGREE: f64 = 1.03;
/// How many times, and the seconds after which it is not made again.
const TURNS: usize = 8;
const ALL_TURNS: f64 = 0.15;
/// Above this share of its limit it is not among the best anyhow, and once is enough.
const WORTH_TURNS: f64 = 0.7;

/// Trials on this machine.
pub(crate) struct Trials<'a> {
    problem: &'a Problem,
    b: &'a [f64],
    solves: usize,
    interrupts: &'a AtomicUsize,
    start: std::time::Instant,
    /// Most seconds before a solve that no phase counts, by backend.
    overheads: HashMap<String, f64>,
    /// How many times as long as undisturbed a run of a short trial takes.
    noise: f64,
    reuse: Reuse,
    ordered: HashMap<(Ordering, usize), Result<Permuted>>,
}

impl<'a> Trials<'a> {
    /// Trials of one system for so many right-hand sides; `interrupts` counts requests to stop.
    pub(crate) fn new(
        problem: &'a Problem,
        b: &'a [f64],
        solves: usize,
        interrupts: &'a AtomicUsize,
    ) -> Self {
        let (reuse, ordered) = (Reuse::default(), HashMap::new());
        let (start, overheads) = (now(), HashMap::new());
        Self { problem, b, solves, interrupts, start, overheads, noise: 1.0, reuse, ordered }
    }

    /// Makes the system in the order of a case, unless it is there.
    fn order(&mut self, case: &Case) {
        let key = (case.ordering_for_fill(), case.block_size);
        if case.ordering.is_natural() || self.ordered.contains_key(&key) {
            return;
        }
        // several copies of the system stay; few where memory is short
        let each = self.problem.matrix.bytes() + 8 * self.b.len();
        if each.saturating_mul(self.ordered.len() + 1) > memory_free() / 8 {
            self.ordered.clear();
        }
        self.ordered.insert(key, Permuted::of(case, self.problem, self.b));
    }
}

impl Tries for Trials<'_> {
    fn try_out(&mut self, case: &Case, limit: f64) -> Option<Trial> {
        self.order(case);
        let start = now();
        let compiled = compute::compile_seconds(&case.backend);
        let patience = if limit < SHORT { self.noise * limit } else { limit };
        let mut best = self.once(case, patience)?;
        let compiled = compute::compile_seconds(&case.backend) - compiled;
        let took = seconds_since(start) - compiled;
        let short = took < SHORT;
        // the first use of kernels and memory of a GPU may cost more than the trial
        let worth = if compiled > 0.0 { took < FIRST_USE * limit } else { short };
        let cut_off = matches!(best, Trial::CutOff { .. });
        if compute::on_gpu(&case.backend) && worth && (compiled > 0.0 || cut_off) {
            let again = self.once(case, patience)?;
            if best.seconds().is_none_or(|first| again.seconds().is_some_and(|s| s < first)) {
                best = again;
            }
        }
        let mut second = f64::INFINITY;
        let mut all: Vec<f64> = best.seconds().into_iter().collect();
        for _ in 1..TURNS {
            let Some(first) = best.seconds() else { break };
            let worth = SHORT.min(WORTH_TURNS * patience);
            let long = seconds_since(start) > ALL_TURNS || first > worth;
            if long || second < AGREE * first {
                break;
            }
            let again = self.once(case, patience)?;
            let Some(seconds) = again.seconds() else { continue };
            all.push(seconds);
            second = second.min(seconds.max(first));
            if seconds < first {
                best = again;
            }
        }
        if let Some(least) = best.seconds().filter(|_| all.len() > 1) {
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            self.noise += NOISE_SHARE * ((mean / least).min(MOST_NOISE) - self.noise);
        }
        Some(match best {
            Trial::Solved { fixed, seconds, .. } if seconds > limit => Trial::CutOff { fixed },
            other => other,
        })
    }

    fn elapsed(&self) -> f64 {
        seconds_since(self.start)
    }
}

impl Trials<'_> {
    /// One run of a case whose system is there in its order.
    fn once(&mut self, case: &Case, limit: f64) -> Option<Trial> {
        let key = (case.ordering_for_fill(), case.block_size);
        let (problem, b, ordering_s) = match self.ordered.get(&key) {
            _ if case.ordering.is_natural() => (self.problem, self.b, None),
            Some(Ok(other)) => (&other.problem, &other.rhs.1[..], Some(other.seconds)),
            Some(Err(why)) => return Some(Trial::Failed { reason: why.to_string() }),
            None => unreachable!("ordered above"),
        };
        let measure = Measure { once: true, ..Measure::default() };
        let solves = self.solves as f64;
        let name = &case.backend;
        let ordering = ordering_s.unwrap_or(0.0);
        let mut begun = None;
        // from the first stage on: what is done before counts for no phase. Kernels are compiled once, and
        // their time is none of a case
        let mut clock = || {
            let (start, compiled) =
                *begun.get_or_insert_with(|| (now(), compute::compile_seconds(name)));
            ordering + seconds_since(start) - (compute::compile_seconds(name) - compiled)
        };
        let (mut solving, mut stopped) = (None, false);
        let seen = self.overheads.get(name);
        let (first, least, scale) = if case.peer().is_some() {
            (START_OF_PEER, START_OF_PEER, SETUPS_OF_PEER)
        } else {
            (OVERHEAD, LEAST_OVERHEAD, 1.0)
        };
        let overhead = seen.map_or(first, |seen| (OVERHEADS * seen).max(least));
        let patience = scale * limit + overhead;
        let mut progress = |stage: Stage| {
            if self.interrupts.load(Atomic::SeqCst) > 0 {
                stopped = true;
                return false;
            }
            let spent = clock();
            if stage == Stage::WarmUp && solving.is_none() {
                solving = Some(spent);
            }
            solving.map_or(spent, |fixed| fixed + solves * (spent - fixed)) <= patience
        };
        let solved = solve_case(case, problem, b, &measure, &mut progress, &mut self.reuse);
        if stopped {
            return None;
        }
        let Some(Solved { mut record, .. }) = solved else {
            return Some(Trial::CutOff { fixed: solving.unwrap_or_else(clock) });
        };
        record.times.ordering_s = ordering_s;
        record.times.total_s = record.times.to_solution(1);
        let times = &record.times;
        let ends = times.before_solves().zip(times.to_solution(self.solves));
        let Some((fixed, seconds)) = ends else {
            return Some(Trial::Failed { reason: failure(&record) });
        };
        if !record.status.succeeded() {
            return Some(Trial::Failed { reason: failure(&record) });
        }
        if let Some(reason) = inaccurate(&record) {
            return Some(Trial::Failed { reason });
        }
        if let Some(wall) = solving {
            let most = self.overheads.entry(name.clone()).or_default();
            *most = most.max(wall - fixed);
        }
        Some(Trial::Solved { fixed, seconds, record: Box::new(record) })
    }
}

/// Why a solution does not count beside others: what monitors a preconditioned residual may end long
/// before the true one is where the tolerance asks for it.
fn inaccurate(record: &Record) -> Option<String> {
    let rtol = record.case.rtol;
    let residual = record.convergence.true_residual.unwrap_or(f64::NAN);
    let far = record.status == Status::Converged && contradicts(rtol, residual);
    far.then(|| format!("true residual {residual:.1e}, far above the tolerance of {rtol:.1e}"))
}

fn failure(record: &Record) -> String {
    let reason = record.reason.clone().unwrap_or_default();
    format!("{}: {reason}", record.status.name())
}
