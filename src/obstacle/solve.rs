//! The time steps of a node, synchronous and asynchronous, over any way to its neighbours.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::case::{Case, Method, Mode, StopOn};
use super::field::{Field, Layout};
use super::part::{Face, Region};
use crate::base::measure::now;
use crate::base::status::Status;

/// What is asked of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// New values alone.
    #[default]
    Nowhere,
    /// Its change.
    Change,
    /// Its change, and the complementarity of the values it began with.
    Complementarity,
}

/// A node: its part of the grid, on whatever device, and the sweeps over it.
pub trait Relaxation {
    /// Begins a time step: the right-hand side of the iterate as it is.
    fn begin_step(&mut self);
    /// Passes of a sweep, between which neighbours' values are wanted again.
    fn passes(&self) -> usize;
    /// Forgets the change of the sweep before.
    fn begin_sweep(&mut self, look: Look);
    /// Does, or begins, a region of a Jacobi sweep; after both, [`swap`](Self::swap) makes the new values
    /// the iterate.
    fn jacobi(&mut self, region: Region);
    /// Makes the values of a Jacobi sweep the iterate. A second call takes it back: what is swept from
    /// stays as it is.
    fn swap(&mut self);
    /// Does pass `colour` of a red-black sweep, in place.
    fn colour(&mut self, colour: usize);
    /// A Jacobi sweep that need not wait for anything.
    fn jacobi_at_will(&mut self) {
        self.jacobi(Region::Inner);
        self.jacobi(Region::Rim);
        self.swap();
    }
    /// Whether neighbours' values stay where they are in [`jacobi_at_will`](Self::jacobi_at_will).
    fn keeps_ghosts(&self) -> bool {
        false
    }
    /// Whether a sweep in step is one of all nodes or of none, because they write each other's memory.
    fn all_in_step(&self) -> bool {
        false
    }
    /// Waits for what the last sweep was asked.
    fn conclude(&mut self) {}
    /// Squared changes of the last sweep that was asked for its own, for each part of `norm-split`.
    fn squared(&self) -> &[f64];
    /// Largest complementarity residual that it saw.
    fn complementarity(&self) -> f64;
    /// Largest `|min(A u - g, u - phi)|` of the iterate, points on the obstacle, and the node's part of the
    /// [`fingerprint`]. Neighbours' values have to be there.
    fn verify(&mut self) -> (f64, u64, u64);
    /// How its values lie.
    fn layout(&self) -> Layout;
    /// Begins to copy the outermost values of a side; `to` is left alone until [`has_read`](Self::has_read)
    /// says that they are there.
    fn read_face(&mut self, face: Face, to: &mut [f64]);
    /// Whether all that [`read_face`](Self::read_face) began is there; waits for it if told to.
    fn has_read(&mut self, _wait: bool) -> bool {
        true
    }
    /// Writes the values behind a side.
    fn write_ghost(&mut self, face: Face, from: &[f64]);
}

/// The way from a node to the others.
pub trait Exchange<N> {
    /// Sends the outermost values of the iterate and asks for those of the neighbours.
    fn begin(&mut self, node: &mut N);
    /// Waits for the neighbours' values of the same call and puts them around the iterate.
    fn finish(&mut self, node: &mut N);
    /// Makes the outermost values available, without waiting for anybody.
    fn publish(&mut self, node: &mut N);
    /// Puts the latest values of the neighbours that are here around the iterate.
    fn refresh(&mut self, node: &mut N);
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

/// Complementarity, contact and fingerprint of what [`solve`] left.
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
    stopped: Option<Stopped>,
}

/// What a sweep is asked that decides whether the time step has ended.
fn deciding(case: &Case) -> Look {
    match case.stop {
        StopOn::StepNorm => Look::Change,
        StopOn::Complementarity => Look::Complementarity,
    }
}

/// One sweep with the neighbours' values of the sweep before.
fn sweep<N: Relaxation>(case: &Case, node: &mut N, exchange: &mut impl Exchange<N>, look: Look) {
    node.begin_sweep(look);
    if case.method == Method::Jacobi {
        // what needs no neighbour hides the way of what does
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
}

/// Whether the last sweep met the bound, and what counts most of the nodes' reasons to stop.
fn converged<N: Relaxation>(
    case: &Case,
    node: &mut N,
    exchange: &mut impl Exchange<N>,
    stopped: Option<Stopped>,
    outcome: &mut Outcome,
) -> (bool, Option<Stopped>) {
    node.conclude();
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
        sweep(case, node, exchange, if check { deciding(case) } else { Look::Nowhere });
        sweeps = next;
        if check {
            let stopped = limits.stopped().or(last.then_some(Stopped::Exhausted));
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
    let look = deciding(case);
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
        let stopped = limits.stopped().or(exhausted.then_some(Stopped::Exhausted));
        if stopped.is_none() {
            sweeps += 1;
            let check = sweeps % case.check_every == 0 || sweeps >= case.max_relaxations;
            node.begin_sweep(if check { look } else { Look::Nowhere });
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
