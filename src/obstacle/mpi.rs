//! Nodes that are ranks of MPI, after section 4 of the paper: nonblocking exchange of the sides,
//! `MPI_Waitall` where nodes wait for each other, `MPI_Test` and the latest values where they do not, and
//! a token that goes round the ranks to find out whether all are done.
//!
//! A rank that ends without the others ends the job: `mpirun` says so, and records are on disk by then.

#![allow(unsafe_code, reason = "calls of MPI")]

mod transfer;

use std::ffi::c_int;
use std::ptr;
use std::sync::OnceLock;

use mpi::ffi;

use super::case::{Case, Split};
use super::field::Extent;
use super::node::{Face, Node};
use super::problem::Problem;
use super::solve::{Exchange, Limits, judge, solve};
use super::threads::Ran;
use crate::error::{Error, Result};
use crate::measure::{copy_bandwidth, timed};
use transfer::{Request, Transfer};

/// What a message is.
const DATED: c_int = 1;
const LATEST: c_int = 2;
const TOKEN: c_int = 3;
const COUNT: c_int = 4;

/// All ranks of the job.
#[derive(Clone, Copy, Debug)]
pub struct World {
    rank: usize,
    size: usize,
}

static WORLD: OnceLock<World> = OnceLock::new();

/// The ranks; starts MPI at the first call.
///
/// # Errors
/// When MPI was ended before.
pub fn world() -> Result<World> {
    if let Some(world) = WORLD.get() {
        return Ok(*world);
    }
    let universe = mpi::initialize().ok_or_else(|| Error::run("MPI cannot be started again"))?;
    // ended below, when the process ends
    std::mem::forget(universe);
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI has been started, both are valid for the write of an integer
    unsafe {
        ffi::MPI_Comm_rank(everyone(), &raw mut rank);
        ffi::MPI_Comm_size(everyone(), &raw mut size);
        libc::atexit(end);
    }
    Ok(*WORLD.get_or_init(|| World { rank: rank as usize, size: size as usize }))
}

extern "C" fn end() {
    // SAFETY: MPI was started when this was registered
    unsafe { ffi::MPI_Finalize() };
}

/// Whether MPI has been started.
pub fn started() -> bool {
    WORLD.get().is_some()
}

/// Ends all ranks.
pub fn abort() {
    if started() {
        // SAFETY: MPI has been started
        unsafe { ffi::MPI_Abort(everyone(), 1) };
    }
}

fn everyone() -> ffi::MPI_Comm {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_COMM_WORLD }
}

fn double() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_DOUBLE }
}

fn word() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_UINT64_T }
}

impl World {
    /// Number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Ranks in all.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Copy bandwidth of all ranks at the same time, in GB/s; measured once.
    pub fn copy_bandwidth(&self) -> Option<f64> {
        static SUM: OnceLock<f64> = OnceLock::new();
        let sum = *SUM.get_or_init(|| {
            reduce(&mut [], &mut []);
            let mut sum = [copy_bandwidth(1)];
            reduce(&mut sum, &mut []);
            sum[0]
        });
        sum.is_finite().then_some(sum)
    }
}

/// The answer of the first rank.
pub fn agree(answer: bool) -> bool {
    let mut number = c_int::from(answer);
    // SAFETY: one integer each
    unsafe {
        ffi::MPI_Bcast((&raw mut number).cast(), 1, ffi::RSMPI_INT32_T, 0, everyone());
    }
    number != 0
}

/// An error when any rank has one: its own, or that another has.
///
/// # Errors
/// As said.
pub fn all_or_none<T>(own: Result<T>) -> Result<T> {
    let mut failed = [f64::from(u8::from(own.is_err()))];
    reduce(&mut failed, &mut []);
    match own {
        Ok(_) if failed[0] > 0.0 => Err(Error::run("another rank cannot run this case")),
        other => other,
    }
}

/// Sums and maxima over all ranks.
fn reduce(sums: &mut [f64], largest: &mut [f64]) {
    // SAFETY: constants of the library
    let operations = unsafe { [ffi::RSMPI_SUM, ffi::RSMPI_MAX] };
    let nothing = sums.is_empty() && largest.is_empty();
    for (numbers, operation) in [sums, largest].into_iter().zip(operations) {
        if numbers.is_empty() {
            continue;
        }
        let mut all = vec![0.0; numbers.len()];
        // SAFETY: both buffers hold as many numbers as are named
        unsafe {
            ffi::MPI_Allreduce(
                numbers.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                numbers.len() as c_int,
                double(),
                operation,
                everyone(),
            );
        }
        numbers.copy_from_slice(&all);
    }
    if nothing {
        // it still waits for all
        // SAFETY: MPI has been started
        unsafe {
            ffi::MPI_Barrier(everyone());
        }
    }
}

/// The way to a neighbour.
struct Link {
    face: Face,
    peer: usize,
    dated: [Transfer; 2],
    undated: [Transfer; 2],
    /// The latest values that are here.
    latest: Vec<f64>,
    /// Undated messages sent and received.
    sent: u64,
    received: u64,
}

impl Link {
    fn read(face: Face, node: &Node<'_>, to: &mut [f64]) {
        node.read_face(face, |at, line| to[at..at + line.len()].copy_from_slice(line));
    }

    /// Takes what has arrived without a date; the last counts.
    fn drain(&mut self) {
        while self.undated[1].request.test() {
            self.latest.copy_from_slice(&self.undated[1].numbers);
            self.received += 1;
            self.undated[1].receive(self.peer, LATEST);
        }
    }
}

/// A rank's way to the others.
struct Rank {
    world: World,
    links: Vec<Link>,
    /// Whether the first rank has sent the token off.
    started: bool,
    /// Whether receipts without a date are under way.
    listening: bool,
}

impl Rank {
    fn new(world: World, split: Split, node: &Node<'_>) -> Self {
        let link = |face: Face| {
            let peer = face.neighbour(split, world.rank)?;
            let len = face.len(node.layout());
            Some(Link {
                face,
                peer,
                dated: [Transfer::new(len), Transfer::new(len)],
                undated: [Transfer::new(len), Transfer::new(len)],
                latest: vec![0.0; len],
                sent: 0,
                received: 0,
            })
        };
        let links = Face::ALL.into_iter().filter_map(link).collect();
        Self { world, links, started: false, listening: false }
    }

    fn send_token(&self, value: c_int) {
        let to = (self.world.rank + 1) % self.world.size;
        // SAFETY: one integer, which the library has copied when the call returns
        unsafe {
            ffi::MPI_Send(
                (&raw const value).cast(),
                1,
                ffi::RSMPI_INT32_T,
                to as c_int,
                TOKEN,
                everyone(),
            );
        }
    }

    /// The token, when it is here.
    fn take_token(&self) -> Option<c_int> {
        let from = ((self.world.rank + self.world.size - 1) % self.world.size) as c_int;
        let (mut flag, mut value) = (0, 0);
        // SAFETY: one integer each; the message has arrived when it is received
        unsafe {
            ffi::MPI_Iprobe(from, TOKEN, everyone(), &raw mut flag, ffi::RSMPI_STATUS_IGNORE);
            if flag != 0 {
                ffi::MPI_Recv(
                    (&raw mut value).cast(),
                    1,
                    ffi::RSMPI_INT32_T,
                    from,
                    TOKEN,
                    everyone(),
                    ffi::RSMPI_STATUS_IGNORE,
                );
            }
        }
        (flag != 0).then_some(value)
    }

    /// Receives everything that was sent, so that no message is left for the next run.
    fn close(&mut self) {
        if !self.listening {
            return;
        }
        for link in &mut self.links {
            let (own, mut other) = (link.sent, 0_u64);
            let peer = link.peer as c_int;
            // SAFETY: one number each way
            unsafe {
                ffi::MPI_Sendrecv(
                    (&raw const own).cast(),
                    1,
                    word(),
                    peer,
                    COUNT,
                    (&raw mut other).cast(),
                    1,
                    word(),
                    peer,
                    COUNT,
                    everyone(),
                    ffi::RSMPI_STATUS_IGNORE,
                );
            }
            link.sent = other;
        }
        let open = |link: &mut Link| {
            link.drain();
            link.received < link.sent || !link.undated[0].request.test()
        };
        while self.links.iter_mut().map(open).fold(false, |a, b| a | b) {}
        for link in &mut self.links {
            link.undated[1].request.cancel();
        }
        self.listening = false;
    }
}

/// What the token says.
const NOT_ALL: c_int = 0;
const ALL: c_int = 1;
const TOGETHER: c_int = 2;

impl Exchange for Rank {
    fn begin(&mut self, node: &Node<'_>) {
        for link in &mut self.links {
            link.dated[1].receive(link.peer, DATED);
        }
        for link in &mut self.links {
            Link::read(link.face, node, &mut link.dated[0].numbers);
            link.dated[0].send(link.peer, DATED);
        }
    }

    fn finish(&mut self, node: &mut Node<'_>) {
        Request::wait(self.links.iter_mut().flat_map(|l| &mut l.dated).map(|t| &mut t.request));
        for link in &mut self.links {
            let numbers = &link.dated[1].numbers;
            link.latest.copy_from_slice(numbers);
            node.write_ghost(link.face, |at, line| {
                line.copy_from_slice(&numbers[at..at + line.len()]);
            });
        }
    }

    fn publish(&mut self, node: &Node<'_>) {
        if !self.listening {
            self.listening = true;
            for link in &mut self.links {
                (link.sent, link.received) = (0, 0);
                link.undated[1].receive(link.peer, LATEST);
            }
        }
        for link in &mut self.links {
            // what is still under way is not overtaken
            if link.undated[0].request.test() {
                Link::read(link.face, node, &mut link.undated[0].numbers);
                link.undated[0].send(link.peer, LATEST);
                link.sent += 1;
            }
        }
    }

    fn refresh(&mut self, node: &mut Node<'_>) {
        for link in &mut self.links {
            link.drain();
            let latest = &link.latest;
            node.write_ghost(link.face, |at, line| {
                line.copy_from_slice(&latest[at..at + line.len()]);
            });
        }
    }

    fn ring(&mut self, converged: bool) -> bool {
        if self.world.size == 1 {
            return converged;
        }
        let own = if converged { ALL } else { NOT_ALL };
        if self.world.rank > 0 {
            let Some(token) = self.take_token() else { return false };
            if token != TOGETHER {
                self.send_token(token.min(own));
            } else if self.world.rank + 1 < self.world.size {
                self.send_token(TOGETHER);
            }
            return token == TOGETHER;
        }
        if !self.started {
            self.started = true;
            self.send_token(own);
            return false;
        }
        match self.take_token() {
            Some(ALL) => {
                self.started = false;
                self.send_token(TOGETHER);
                true
            }
            Some(_) => {
                self.send_token(own);
                false
            }
            None => false,
        }
    }

    fn reduce(&mut self, sums: &mut [f64], largest: &mut [f64]) {
        reduce(sums, largest);
    }

    fn count(&mut self, number: u64) -> u64 {
        let mut sum = 0_u64;
        // SAFETY: one number each
        unsafe {
            ffi::MPI_Allreduce(
                ptr::from_ref(&number).cast(),
                (&raw mut sum).cast(),
                1,
                word(),
                ffi::RSMPI_SUM,
                everyone(),
            );
        }
        sum
    }

    fn nodes(&self) -> usize {
        self.world.size
    }
}

/// Runs a case on all ranks, each with its part of `split`. No rank keeps the solution.
///
/// # Errors
/// When MPI cannot be started.
pub fn run(case: &Case, problem: &Problem, split: Split, limits: Limits<'_>) -> Result<Ran> {
    let world = world()?;
    let extent = Extent::of_node(case.m, split, world.rank);
    let (mut node, setup) = timed(|| Node::new(case, problem, extent));
    let mut way = Rank::new(world, split, &node);
    way.reduce(&mut [], &mut []);
    let (mut outcome, seconds) = timed(|| solve(case, &mut node, &mut way, limits));
    way.close();
    judge(&mut node, &mut way, &mut outcome);
    let mut slowest = [setup, seconds];
    reduce(&mut [], &mut slowest);
    Ok(Ran { outcome, seconds: slowest, solution: None })
}
