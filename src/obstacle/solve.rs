//! The time steps of a node, synchronous and asynchronous, over any kind of exchange with its neighbours.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::case::{Case, Method, Mode, StopOn};
use super::field::{Field, Layout};
use super::part::{Face, Region};
use crate::base::measure::now;
use crate::base::status::Status;
use crate::compute::krylov::SolveEnd;

/// The quantity that a sweep computes besides the new values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Monitored {
    /// None.
    #[default]
    Nothing,
    /// The norm of the update.
    Change,
    /// The norm of the update, and the complementarity residual of the old values.
    Complementarity,
}

/// A node: its part of the grid, on whatever device, and the sweeps over it.
pub trait Relaxation {
    /// Begins a time step: computes the right-hand side from the current iterate.
    fn begin_step(&mut self);
    /// Passes of a sweep; the halo is exchanged before each.
    fn passes(&self) -> usize;
    /// Begins a sweep and resets the monitored quantities.
    fn begin_sweep(&mut self, monitored: Monitored);
    /// Does, or begins, a region of a Jacobi sweep; after both, [`swap`](Self::swap) makes the new values
    /// the iterate.
    fn jacobi(&mut self, region: Region);
    /// Makes the values of a Jacobi sweep the iterate. A second call reverts that: the old values are kept.
    fn swap(&mut self);
    /// Does pass `colour` of a red-black sweep, in place.
    fn colour(&mut self, colour: usize);
    /// A Jacobi sweep that need not wait for anything.
    fn jacobi_at_will(&mut self) {
        self.jacobi(Region::Inner);
        self.jacobi(Region::Rim);
        self.swap();
    }
    /// Computes the monitored quantities of a Jacobi sweep that it does not make. The halo must be current.
    fn look(&mut self);
    /// Whether neighbours' values stay where they are in [`jacobi_at_will`](Self::jacobi_at_will).
    fn keeps_ghosts(&self) -> bool {
        false
    }
    /// Whether a sweep in step is one of all nodes or of none, because they write each other's memory.
    fn all_in_step(&self) -> bool {
        false
    }
    /// Waits for the monitored quantities of the last sweep.
    fn conclude(&mut self) {}
    /// Squared norms of the last monitored update, for each subdomain of `norm-split`.
    fn squared(&self) -> &[f64];
    /// Its largest complementarity residual.
    fn complementarity(&self) -> f64;
    /// Largest `|min(A u - g, u - phi)|` of the iterate, points on the obstacle, and the node's part of the
    /// [`fingerprint`]. The halo must be current.
    fn verify(&mut self) -> (f64, u64, u64);
    /// Memory layout of its values.
    fn layout(&self) -> Layout;
    /// Begins to copy the boundary values of a face to `to`, which is valid once
    /// [`has_read`](Self::has_read) returns true.
    fn read_face(&mut self, face: Face, to: &mut [f64]);
    /// Whether all copies of [`read_face`](Self::read_face) are complete; waits for them on request.
    fn has_read(&mut self, _wait: bool) -> bool {
        true
    }
    /// Writes the ghost values behind a face.
    fn write_ghost(&mut self, face: Face, from: &[f64]);
}

/// Communication of a node with the others.
pub trait Exchange<N> {
    /// Begins a halo exchange: sends the boundary values, and posts receives of those of the neighbours.
    fn begin(&mut self, node: &mut N);
    /// Completes the halo exchange of the same call: waits, and writes the ghost values.
    fn finish(&mut self, node: &mut N);
    /// Makes the boundary values available to the neighbours without waiting.
    fn publish(&mut self, node: &mut N);
    /// Writes the latest received values of the neighbours to the ghost values.
    fn refresh(&mut self, node: &mut N);
    /// Polls the token that circulates among the nodes. It returns to the first node as true when every node
    /// was `converged` as it passed. Returns `true` once on every node after such a round.
    fn ring(&mut self, converged: bool) -> bool;
    /// Sums `sums` and takes the maxima of `largest` over all nodes; bitwise equal results on every node.
    fn reduce(&mut self, sums: &mut [f64], largest: &mut [f64]);
    /// Sum over all nodes, modulo 2^64.
    fn count(&mut self, number: u64) -> u64;
    /// Number of nodes.
    fn nodes(&self) -> usize;
}

/// What may end a run early.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Number of Ctrl-C interrupts.
    pub interrupts: &'a AtomicUsize,
    /// Time limit.
    pub deadline: Option<Instant>,
}

/// Ends of a time step that has not converged; later ones take precedence.
const EARLY: [SolveEnd; 3] = [SolveEnd::IterationLimit, SolveEnd::TimeLimit, SolveEnd::Cancelled];

/// An early end as a number for a maximum over the nodes; 0 for `None`.
fn precedence(early: Option<SolveEnd>) -> f64 {
    let at = EARLY.iter().position(|end| Some(*end) == early);
    at.map_or(0.0, |at| (at + 1) as f64)
}

/// The early end of a [`precedence`].
fn early_end(precedence: f64) -> Option<SolveEnd> {
    EARLY.get((precedence as usize).checked_sub(1)?).copied()
}

impl Limits<'_> {
    /// Why to stop now.
    pub fn stopped(&self) -> Option<SolveEnd> {
        if self.interrupts.load(Ordering::Relaxed) > 0 {
            return Some(SolveEnd::Cancelled);
        }
        self.deadline.filter(|end| now() >= *end).map(|_| SolveEnd::TimeLimit)
    }
}

/// What a run yields, the same on every node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How it ended; `None` when the user stopped it.
    pub status: Option<Status>,
    /// Sweeps of each time step, the mean over the nodes.
    pub sweeps: Vec<f64>,
    /// Sweeps of all nodes together: the paper's relaxations.
    pub relaxations: u64,
    /// The norm of the last step: the largest over the parts of `norm-split`.
    pub step_norm: f64,
    /// Largest `|min(A u - g, u - phi)|` of the solution.
    pub complementarity: f64,
    /// Points on the obstacle.
    pub contact: u64,
    /// What tells one solution from another, see [`fingerprint`].
    pub fingerprint: u64,
    /// Times that nodes thought to be done and were not: asynchronous only.
    pub false_alarms: usize,
}

/// A number made of all bits of a solution and their places: solutions that are the same bit for bit
/// have the same. Parts of a grid are added up, modulo 2^64.
pub fn fingerprint(extent: &super::field::Extent, u: &Field) -> u64 {
    let layout = u.layout;
    let mut sum = 0_u64;
    for (k, z) in extent.z.clone().enumerate() {
        for (j, y) in extent.y.clone().enumerate() {
            let at = layout.line(j + 1, k + 1);
            let first = ((z * extent.m + y) * extent.m) as u64;
            sum = sum.wrapping_add(line_fingerprint(first, &u.data[at..at + layout.nx]));
        }
    }
    sum
}

/// The part of a line whose first point has number `first` in the grid.
pub(crate) fn line_fingerprint(first: u64, line: &[f64]) -> u64 {
    let mix = |v: u64| {
        let v = (v ^ (v >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (v ^ (v >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    // 0.0 and -0.0 are one value
    let terms =
        line.iter().enumerate().map(|(x, v)| mix((v + 0.0).to_bits() ^ mix(first + x as u64 + 1)));
    terms.fold(0, u64::wrapping_add)
}

/// All time steps of a node.
pub fn solve<N: Relaxation>(
    case: &Case,
    node: &mut N,
    exchange: &mut impl Exchange<N>,
    limits: Limits<'_>,
) -> Outcome {
    let mut outcome = Outcome { status: Some(Status::Converged), ..Outcome::default() };
    let mut own = 0;
    for _ in 0..case.steps {
        node.begin_step();
        let step = match case.mode {
            Mode::Sync => synchronous(case, node, exchange, limits, &mut outcome),
            Mode::Async => asynchronous(case, node, exchange, limits, &mut outcome),
        };
        own += step.sweeps as u64;
        let mut sums = [step.sweeps as f64];
        exchange.reduce(&mut sums, &mut []);
        outcome.sweeps.push(sums[0] / exchange.nodes() as f64);
        if let Some(stopped) = step.stopped {
            outcome.status = stopped.status();
            break;
        }
    }
    outcome.relaxations = exchange.count(own);
    outcome
}

/// Complementarity residual, contact points and fingerprint of the solution of [`solve`].
pub fn judge<N: Relaxation>(node: &mut N, exchange: &mut impl Exchange<N>, outcome: &mut Outcome) {
    exchange.begin(node);
    exchange.finish(node);
    let (worst, contact, fingerprint) = node.verify();
    let mut largest = [worst];
    exchange.reduce(&mut [], &mut largest);
    outcome.complementarity = largest[0];
    outcome.contact = exchange.count(contact);
    outcome.fingerprint = exchange.count(fingerprint);
}

/// The sweeps of a time step, and why it ended without converging.
struct Step {
    sweeps: usize,
    stopped: Option<SolveEnd>,
}

/// Which quantity the stopping test needs from a sweep.
fn deciding(case: &Case) -> Monitored {
    match case.stop {
        StopOn::StepNorm => Monitored::Change,
        StopOn::Complementarity => Monitored::Complementarity,
    }
}

/// One sweep with the neighbours' values of the sweep before.
fn sweep<N: Relaxation>(
    case: &Case,
    node: &mut N,
    exchange: &mut impl Exchange<N>,
    monitored: Monitored,
) {
    let after = case.looks_after_sweep() && monitored == Monitored::Complementarity;
    node.begin_sweep(if after { Monitored::Nothing } else { monitored });
    if case.method == Method::Jacobi {
        // the inner region overlaps with the halo exchange
        exchange.begin(node);
        node.jacobi(Region::Inner);
        exchange.finish(node);
        node.jacobi(Region::Rim);
        node.swap();
        return;
    }
    for colour in 0..node.passes() {
        exchange.begin(node);
        exchange.finish(node);
        node.colour(colour);
    }
    if after {
        exchange.begin(node);
        exchange.finish(node);
        node.look();
    }
}

/// Whether the last sweep met the bound, and what counts most of the nodes' reasons to stop.
fn converged<N: Relaxation>(
    case: &Case,
    node: &mut N,
    exchange: &mut impl Exchange<N>,
    stopped: Option<SolveEnd>,
    outcome: &mut Outcome,
) -> (bool, Option<SolveEnd>) {
    node.conclude();
    let mut sums = node.squared().to_vec();
    let mut largest = [node.complementarity(), precedence(stopped)];
    exchange.reduce(&mut sums, &mut largest);
    outcome.step_norm = sums.iter().fold(0.0, |a: f64, b| a.max(b.sqrt()));
    let value = match case.stop {
        StopOn::StepNorm => outcome.step_norm,
        StopOn::Complementarity => largest[0],
    };
    let done = value < case.epsilon;
    (done, early_end(largest[1]).filter(|_| !done))
}

/// Takes the last sweep back where it has shown that the values it began with meet the bound; how many
/// sweeps that are.
fn take_back<N: Relaxation>(case: &Case, node: &mut N) -> usize {
    let back = case.looks_before_sweep();
    if back {
        node.swap();
    }
    usize::from(back)
}

fn synchronous<N: Relaxation>(
    case: &Case,
    node: &mut N,
    exchange: &mut impl Exchange<N>,
    limits: Limits<'_>,
    outcome: &mut Outcome,
) -> Step {
    let mut sweeps = 0;
    loop {
        let next = sweeps + 1;
        let last = next >= case.max_relaxations;
        let check = next % case.check_every == 0 || last;
        sweep(case, node, exchange, if check { deciding(case) } else { Monitored::Nothing });
        sweeps = next;
        if check {
            let stopped = limits.stopped().or(last.then_some(SolveEnd::IterationLimit));
            let (done, stopped) = converged(case, node, exchange, stopped, outcome);
            if done {
                sweeps -= take_back(case, node);
            }
            if done || stopped.is_some() {
                return Step { sweeps, stopped };
            }
        }
    }
}

/// How much the local bound shrinks when the nodes were wrong together.
const STRICTER: f64 = 0.8;

fn asynchronous<N: Relaxation>(
    case: &Case,
    node: &mut N,
    exchange: &mut impl Exchange<N>,
    limits: Limits<'_>,
    outcome: &mut Outcome,
) -> Step {
    let monitored = deciding(case);
    let (mut sweeps, mut bound) = (0, case.epsilon);
    // nobody may see values of the time step before
    exchange.begin(node);
    exchange.finish(node);
    exchange.publish(node);
    exchange.reduce(&mut [], &mut []);
    // whether the last sweep that was asked was below the bound
    let mut below = false;
    loop {
        let exhausted = sweeps >= case.max_relaxations;
        let stopped = limits.stopped().or(exhausted.then_some(SolveEnd::IterationLimit));
        if stopped.is_none() {
            sweeps += 1;
            let check = sweeps % case.check_every == 0 || sweeps >= case.max_relaxations;
            node.begin_sweep(if check { monitored } else { Monitored::Nothing });
            if case.method == Method::Jacobi {
                exchange.refresh(node);
                node.jacobi_at_will();
            } else {
                for colour in 0..node.passes() {
                    exchange.refresh(node);
                    node.colour(colour);
                }
            }
            exchange.publish(node);
            if check {
                node.conclude();
                below = match case.stop {
                    StopOn::StepNorm => node.squared().iter().sum::<f64>().sqrt() < bound,
                    StopOn::Complementarity => node.complementarity() < bound,
                };
            }
        } else {
            std::thread::yield_now();
        }
        if exchange.ring(below || stopped.is_some()) {
            // every node was done for itself, with values of others that may have been old: a sweep
            // with those of all tells
            let swept = stopped.is_none() || node.all_in_step();
            if swept {
                sweep(case, node, exchange, monitored);
                sweeps += 1;
            } else {
                // the others wait for the values
                for _ in 0..node.passes() + usize::from(case.looks_after_sweep()) {
                    exchange.begin(node);
                    exchange.finish(node);
                }
            }
            let (done, stopped) = converged(case, node, exchange, stopped, outcome);
            if done && swept {
                sweeps -= take_back(case, node);
            }
            if done || stopped.is_some() {
                return Step { sweeps, stopped };
            }
            outcome.false_alarms += 1;
            bound *= STRICTER;
            below = false;
            exchange.publish(node);
        }
    }
}
