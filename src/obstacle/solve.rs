//! The time steps of a node, synchronous and asynchronous, over any way to its neighbours.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::case::{Case, Method, Mode, StopOn};
use super::field::Field;
use super::node::{Node, Region};
use crate::measure::now;
use crate::result::Status;

/// The way from a node to the others.
pub trait Exchange {
    /// Sends the outermost values of the iterate and asks for those of the neighbours.
    fn begin(&mut self, node: &Node<'_>);
    /// Waits for the neighbours' values of the same call and puts them around the iterate.
    fn finish(&mut self, node: &mut Node<'_>);
    /// Makes the outermost values available, without waiting for anybody.
    fn publish(&mut self, node: &Node<'_>);
    /// Puts the latest values of the neighbours that are here around the iterate.
    fn refresh(&mut self, node: &mut Node<'_>);
    /// A look at the token that goes round the nodes: it returns to the first node as true when every
    /// node called with `converged` as it passed. `true` once on every node after such a round.
    fn ring(&mut self, converged: bool) -> bool;
    /// Adds up `sums` and takes the largest of each of `largest` over all nodes. Every node gets the
    /// same bits.
    fn reduce(&mut self, sums: &mut [f64], largest: &mut [f64]);
    /// Adds up over all nodes, modulo 2^64.
    fn count(&mut self, number: u64) -> u64;
    /// Nodes in all.
    fn nodes(&self) -> usize;
}

/// What may end a run early.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The user's requests to stop.
    pub interrupts: &'a AtomicUsize,
    /// When the time is over.
    pub deadline: Option<Instant>,
}

/// Why a time step ends before it has converged; the later ones count more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stopped {
    /// All relaxations are made that are allowed.
    Exhausted = 1,
    /// The time is over.
    Late = 2,
    /// The user asked for it.
    Cancelled = 3,
}

impl Stopped {
    /// How such a run ends; `None` when nobody is interested any more.
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Exhausted => Some(Status::NotConverged),
            Self::Late => Some(Status::TimeLimit),
            Self::Cancelled => None,
        }
    }

    /// As a number that the nodes can take the largest of; 0 is none.
    fn number(stopped: Option<Self>) -> f64 {
        stopped.map_or(0.0, |stopped| f64::from(stopped as u8))
    }

    fn of(number: f64) -> Option<Self> {
        [Self::Exhausted, Self::Late, Self::Cancelled]
            .into_iter()
            .find(|s| Self::number(Some(*s)) == number)
    }
}

impl Limits<'_> {
    /// Why to stop now.
    pub fn stopped(&self) -> Option<Stopped> {
        if self.interrupts.load(Ordering::Relaxed) > 0 {
            return Some(Stopped::Cancelled);
        }
        self.deadline.filter(|end| now() >= *end).map(|_| Stopped::Late)
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
pub fn line_fingerprint(first: u64, line: &[f64]) -> u64 {
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
pub fn solve(
    case: &Case,
    node: &mut Node<'_>,
    exchange: &mut impl Exchange,
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

/// Complementarity, contact and fingerprint of what [`solve`] left.
pub fn judge(node: &mut Node<'_>, exchange: &mut impl Exchange, outcome: &mut Outcome) {
    exchange.begin(node);
    exchange.finish(node);
    let (worst, contact) = node.verify();
    let mut largest = [worst];
    exchange.reduce(&mut [], &mut largest);
    outcome.complementarity = largest[0];
    outcome.contact = exchange.count(contact as u64);
    outcome.fingerprint = exchange.count(fingerprint(node.extent(), node.iterate()));
}

/// The sweeps of a time step, and why it ended without converging.
struct Step {
    sweeps: usize,
    stopped: Option<Stopped>,
}

/// One sweep with the neighbours' values of the sweep before.
fn sweep(case: &Case, node: &mut Node<'_>, exchange: &mut impl Exchange, look: bool) {
    node.begin_sweep();
    if case.method == Method::Jacobi {
        // what needs no neighbour hides the way of what does
        exchange.begin(node);
        node.jacobi(Region::Inner, look);
        exchange.finish(node);
        node.jacobi(Region::Rim, look);
        node.swap();
        return;
    }
    for colour in 0..node.passes() {
        exchange.begin(node);
        exchange.finish(node);
        node.colour(colour, look);
    }
}

/// Whether the last sweep met the bound, and what counts most of the nodes' reasons to stop.
fn converged(
    case: &Case,
    node: &Node<'_>,
    exchange: &mut impl Exchange,
    stopped: Option<Stopped>,
    outcome: &mut Outcome,
) -> (bool, Option<Stopped>) {
    let mut sums = node.squared().to_vec();
    let mut largest = [node.complementarity(), Stopped::number(stopped)];
    exchange.reduce(&mut sums, &mut largest);
    outcome.step_norm = sums.iter().fold(0.0, |a: f64, b| a.max(b.sqrt()));
    let value = match case.stop {
        StopOn::StepNorm => outcome.step_norm,
        StopOn::Complementarity => largest[0],
    };
    let done = value < case.epsilon;
    (done, Stopped::of(largest[1]).filter(|_| !done))
}

fn synchronous(
    case: &Case,
    node: &mut Node<'_>,
    exchange: &mut impl Exchange,
    limits: Limits<'_>,
    outcome: &mut Outcome,
) -> Step {
    let mut sweeps = 0;
    loop {
        let next = sweeps + 1;
        let last = next >= case.max_relaxations;
        let check = next % case.check_every == 0 || last;
        sweep(case, node, exchange, check && case.stop == StopOn::Complementarity);
        sweeps = next;
        if check {
            let stopped = limits.stopped().or(last.then_some(Stopped::Exhausted));
            let (done, stopped) = converged(case, node, exchange, stopped, outcome);
            if done || stopped.is_some() {
                return Step { sweeps, stopped };
            }
        }
    }
}

/// How much the local bound shrinks when the nodes were wrong together.
const STRICTER: f64 = 0.8;

fn asynchronous(
    case: &Case,
    node: &mut Node<'_>,
    exchange: &mut impl Exchange,
    limits: Limits<'_>,
    outcome: &mut Outcome,
) -> Step {
    let look = case.stop == StopOn::Complementarity;
    let (mut sweeps, mut bound) = (0, case.epsilon);
    // nobody may see values of the time step before
    exchange.begin(node);
    exchange.finish(node);
    exchange.publish(node);
    exchange.reduce(&mut [], &mut []);
    loop {
        let exhausted = sweeps >= case.max_relaxations;
        let stopped = limits.stopped().or(exhausted.then_some(Stopped::Exhausted));
        let mut own = true;
        if stopped.is_none() {
            node.begin_sweep();
            if case.method == Method::Jacobi {
                exchange.refresh(node);
                node.jacobi(Region::Inner, look);
                node.jacobi(Region::Rim, look);
                node.swap();
            } else {
                for colour in 0..node.passes() {
                    exchange.refresh(node);
                    node.colour(colour, look);
                }
            }
            exchange.publish(node);
            sweeps += 1;
            own = match case.stop {
                StopOn::StepNorm => node.squared().iter().sum::<f64>().sqrt() < bound,
                StopOn::Complementarity => node.complementarity() < bound,
            };
        } else {
            std::thread::yield_now();
        }
        if exchange.ring(own) {
            // every node was done for itself, with values of others that may have been old: a sweep
            // with those of all tells
            if stopped.is_none() {
                sweep(case, node, exchange, look);
                sweeps += 1;
            } else {
                // the others wait for the values
                for _ in 0..node.passes() {
                    exchange.begin(node);
                    exchange.finish(node);
                }
            }
            let (done, stopped) = converged(case, node, exchange, stopped, outcome);
            if done || stopped.is_some() {
                return Step { sweeps, stopped };
            }
            outcome.false_alarms += 1;
            bound *= STRICTER;
            exchange.publish(node);
        }
    }
}
