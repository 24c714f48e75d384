//! Nodes that are threads of one process: faces go through memory.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};

use super::case::{Case, Split};
use super::field::{Extent, Layout};
use super::node::Node;
use super::part::Face;
use super::problem::Problem;
use super::solve::{Exchange, Limits, Outcome, judge, solve};
use crate::base::cores;
use crate::base::error::{Error, Result};
use crate::base::measure::timed;

/// Values that one thread writes and others read, each accessed atomically.
type Shared = Vec<AtomicU64>;

fn shared(len: usize) -> Shared {
    (0..len).map(|_| AtomicU64::new(0)).collect()
}

/// Mailboxes of a face: two for alternating synchronous exchanges, so that one barrier is enough, and one for
/// asynchronous values.
const BOXES: usize = 3;
const UNDATED: usize = 2;

/// State shared by the threads.
struct Team {
    split: Split,
    /// Whether all threads could be started, and whether memory of a node was exhausted.
    started: OnceLock<bool>,
    failed: AtomicBool,
    barrier: Barrier,
    /// For each node, face and box.
    mail: Vec<[[Shared; BOXES]; 4]>,
    /// For each node, two in turn.
    numbers: Vec<[Shared; 2]>,
    /// The node that holds the token, the token, and the number of successful rounds.
    holder: AtomicUsize,
    token: AtomicBool,
    rounds: AtomicUsize,
}

impl Team {
    fn new(case: &Case, split: Split) -> Self {
        let nodes = 0..split.count();
        let mail = nodes.clone().map(|number| {
            let layout = Layout::of(&Extent::of_node(case.m, split, number));
            Face::ALL.map(|face| {
                let len = face.neighbour(split, number).map_or(0, |_| face.len(layout));
                std::array::from_fn(|_| shared(len))
            })
        });
        let most = case.norm_split.count() + 4;
        Self {
            split,
            started: OnceLock::new(),
            failed: AtomicBool::new(false),
            barrier: Barrier::new(split.count()),
            mail: mail.collect(),
            numbers: nodes.map(|_| [shared(most), shared(most)]).collect(),
            holder: AtomicUsize::new(0),
            token: AtomicBool::new(false),
            rounds: AtomicUsize::new(0),
        }
    }
}

/// Communication of a thread with the others.
struct Member<'a> {
    team: &'a Team,
    number: usize,
    /// Exchanges and reductions so far.
    exchanges: usize,
    reductions: usize,
    /// Rounds of the token seen, and whether one is in progress (first node only).
    rounds: usize,
    started: bool,
}

impl Member<'_> {
    fn put(&self, node: &Node<'_>, mailbox: usize) {
        for face in Face::ALL {
            if face.neighbour(self.team.split, self.number).is_some() {
                let mail = &self.team.mail[self.number][face as usize][mailbox];
                node.each_line(face, |at, line| {
                    for (to, from) in mail[at..].iter().zip(line) {
                        to.store(from.to_bits(), Ordering::Relaxed);
                    }
                });
            }
        }
    }

    fn take(&self, node: &mut Node<'_>, mailbox: usize) {
        for face in Face::ALL {
            if let Some(other) = face.neighbour(self.team.split, self.number) {
                let mail = &self.team.mail[other][face.opposite() as usize][mailbox];
                node.each_ghost(face, |at, line| {
                    for (to, from) in line.iter_mut().zip(&mail[at..]) {
                        *to = f64::from_bits(from.load(Ordering::Relaxed));
                    }
                });
            }
        }
    }

    /// Every node's numbers, in the order of the nodes.
    fn gather(&mut self, own: impl Iterator<Item = u64>, mut each: impl FnMut(usize, u64)) {
        let turn = self.reductions % 2;
        self.reductions += 1;
        let mut len = 0;
        for (to, from) in self.team.numbers[self.number][turn].iter().zip(own) {
            to.store(from, Ordering::Relaxed);
            len += 1;
        }
        self.team.barrier.wait();
        for numbers in &self.team.numbers {
            for (i, number) in numbers[turn][..len].iter().enumerate() {
                each(i, number.load(Ordering::Relaxed));
            }
        }
    }
}

impl<'a> Exchange<Node<'a>> for Member<'_> {
    fn begin(&mut self, node: &mut Node<'a>) {
        self.put(node, self.exchanges % 2);
    }

    fn finish(&mut self, node: &mut Node<'a>) {
        if self.team.split != Split::WHOLE {
            self.team.barrier.wait();
            self.take(node, self.exchanges % 2);
        }
        self.exchanges += 1;
    }

    fn publish(&mut self, node: &mut Node<'a>) {
        self.put(node, UNDATED);
    }

    fn refresh(&mut self, node: &mut Node<'a>) {
        self.take(node, UNDATED);
    }

    fn ring(&mut self, converged: bool) -> bool {
        let team = self.team;
        if team.holder.load(Ordering::Acquire) == self.number {
            let token = team.token.load(Ordering::Relaxed);
            if self.number == 0 {
                if self.started && token {
                    self.started = false;
                    team.rounds.fetch_add(1, Ordering::Release);
                } else {
                    self.started = true;
                    team.token.store(converged, Ordering::Relaxed);
                    team.holder.store(1 % self.nodes(), Ordering::Release);
                }
            } else {
                team.token.store(token && converged, Ordering::Relaxed);
                team.holder.store((self.number + 1) % self.nodes(), Ordering::Release);
            }
        }
        let ended = team.rounds.load(Ordering::Acquire) > self.rounds;
        self.rounds += usize::from(ended);
        ended
    }

    fn reduce(&mut self, sums: &mut [f64], largest: &mut [f64]) {
        let own: Vec<u64> = sums.iter().chain(largest.iter()).map(|v| v.to_bits()).collect();
        sums.fill(0.0);
        largest.fill(f64::NEG_INFINITY);
        self.gather(own.into_iter(), |i, bits| {
            let value = f64::from_bits(bits);
            match i.checked_sub(sums.len()) {
                None => sums[i] += value,
                Some(i) => largest[i] = largest[i].max(value),
            }
        });
    }

    fn count(&mut self, number: u64) -> u64 {
        let mut sum = 0_u64;
        self.gather(std::iter::once(number), |_, other| sum = sum.wrapping_add(other));
        sum
    }

    fn nodes(&self) -> usize {
        self.team.split.count()
    }
}

/// Result of a run on threads.
pub struct Ran {
    /// The outcome.
    pub outcome: Outcome,
    /// Seconds of the setup and of the time steps.
    pub seconds: [f64; 2],
    /// The solution, x fastest, if requested.
    pub solution: Option<Vec<f64>>,
}

/// Results of all threads, or the error of one; threads that this error stopped have no result.
fn all<T>(threads: Vec<Result<Option<T>>>) -> Result<Vec<T>> {
    let results = threads.into_iter().collect::<Result<Vec<_>>>()?;
    let all = results.into_iter().collect::<Option<Vec<_>>>();
    all.ok_or_else(|| Error::run("the solver stopped before it began"))
}

/// Runs a case on a thread per node.
///
/// # Errors
/// When a thread cannot be started, or there is no memory for a node.
pub fn run(
    case: &Case,
    problem: &Problem,
    split: Split,
    limits: Limits<'_>,
    keep: bool,
) -> Result<Ran> {
    let team = Team::new(case, split);
    let cores = cores::in_order();
    let pinned = split.count() > 1 && split.count() <= cores.len();
    // nothing where another thread stopped the run before it began
    let member = |number: usize| {
        if !*team.started.wait() {
            return Ok(None);
        }
        if pinned {
            core_affinity::set_for_current(cores[number]);
        }
        // a node's memory is first touched by its thread
        let (node, setup) =
            timed(|| Node::new(case, problem, Extent::of_node(case.m, split, number)));
        if node.is_err() {
            team.failed.store(true, Ordering::SeqCst);
        }
        let mut exchange =
            Member { team: &team, number, exchanges: 0, reductions: 0, rounds: 0, started: false };
        exchange.reduce(&mut [], &mut []);
        let mut node = node?;
        if team.failed.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let (mut outcome, seconds) = timed(|| solve(case, &mut node, &mut exchange, limits));
        judge(&mut node, &mut exchange, &mut outcome);
        let values = keep.then(|| (node.extent().clone(), node.iterate().values()));
        Ok(Some((outcome, [setup, seconds], values)))
    };
    let results = std::thread::scope(|scope| {
        let threads = (0..split.count())
            .map(|number| {
                let member = &member;
                let name = format!("node {number}");
                std::thread::Builder::new().name(name).spawn_scoped(scope, move || member(number))
            })
            .collect::<std::io::Result<Vec<_>>>();
        // those that wait for the others go home where one is missing
        _ = team.started.set(threads.is_ok());
        let threads = threads.map_err(|e| Error::run(format!("cannot start a thread: {e}")))?;
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<_>>| {
            thread.join().unwrap_or_else(|_| Err(Error::run("a thread of the solver stopped")))
        };
        all(threads.into_iter().map(join).collect())
    })?;
    let seconds = [0, 1].map(|i| results.iter().map(|r| r.1[i]).fold(0.0, f64::max));
    let outcome = results[0].0.clone();
    let solution = keep.then(|| {
        let mut all = vec![0.0; case.m.pow(3)];
        for (extent, values) in results.into_iter().filter_map(|r| r.2) {
            let mut lines = values.chunks_exact(case.m);
            for z in extent.z.clone() {
                for y in extent.y.clone() {
                    let at = (z * case.m + y) * case.m;
                    all[at..at + case.m].copy_from_slice(lines.next().expect("a line"));
                }
            }
        }
        all
    });
    Ok(Ran { outcome, seconds, solution })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_any_thread_is_that_of_all() {
        let stopped = || Ok(None);
        let failed = || Err(Error::memory("no room"));
        assert_eq!(all(vec![Ok(Some(1)), Ok(Some(2))]), Ok(vec![1, 2]));
        for threads in [[stopped(), failed()], [failed(), stopped()], [failed(), Ok(Some(1))]] {
            assert_eq!(all(threads.to_vec()), Err(Error::memory("no room")));
        }
    }
}
