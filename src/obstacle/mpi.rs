//! Nodes as MPI ranks, each with a core or a GPU, after section 4 of the paper: nonblocking halo exchange,
//! `MPI_Waitall` in synchronous mode, `MPI_Test` and the latest values in asynchronous mode, and a token that
//! circulates among the ranks to detect global convergence.
//!
//! A rank that ends without the others ends the job: `mpirun` reports it, and records are on disk by then.

#![allow(unsafe_code, reason = "calls of MPI")]

mod transfer;
mod transport;

use std::ffi::c_int;
use std::ptr;
use std::sync::OnceLock;

use mpi::ffi;

use super::case::{Case, Split, Transport};
use super::field::Extent;
use super::node::Node;
use super::part::Face;
use super::solve::{Exchange, Limits, Relaxation, judge, solve};
use super::threads::Ran;
use crate::base::error::Result;
use crate::base::measure::timed;
use crate::compute::cpu::bandwidth::copy_bandwidth_beside;
pub use crate::compute::distributed::world::{OfHost, World, agree, started, world};
pub(crate) use crate::compute::distributed::world::{abort, all_or_none, give_up};
use crate::compute::distributed::world::{everyone, reduce, word};
pub use transfer::Message;
use transfer::{Request, Transfer};
pub use transport::Direct;
use transport::Transports;

/// Copy bandwidth of all ranks' cores at the same time, in GB/s; measured once.
pub(crate) fn copy_bandwidth(world: World) -> Option<f64> {
    static SUM: OnceLock<Option<f64>> = OnceLock::new();
    *SUM.get_or_init(|| world.together(|| copy_bandwidth_beside(world.of_host().size)))
}

/// What a message is.
const DATED: c_int = 1;
const LATEST: c_int = 2;
const TOKEN: c_int = 3;
const COUNT: c_int = 4;

/// A node for a rank; its message buffers are where its device reads and writes them.
pub trait Ranked: Relaxation {
    /// Buffer of a message.
    type Message: Message;
    /// A buffer of `len` values.
    fn message(&self, len: usize) -> Self::Message;
    /// The node as one that may store its halo directly into the neighbours' memory.
    fn direct(&mut self) -> Option<&mut dyn Direct> {
        None
    }
    /// Enqueues a signal to neighbours with direct stores that the work so far is complete.
    fn signal_neighbours(&mut self) {}
    /// Makes later work wait until the neighbours have signalled as often.
    fn await_signals(&mut self) {}
}

impl Ranked for Node<'_> {
    type Message = Box<[f64]>;

    fn message(&self, len: usize) -> Self::Message {
        vec![0.0; len].into()
    }
}

/// The connection to a neighbour.
struct Link<M> {
    face: Face,
    peer: usize,
    dated: [Transfer<M>; 2],
    undated: [Transfer<M>; 2],
    /// The latest values received, and whether they are newer than the ghost values.
    latest: M,
    fresh: bool,
    /// Whether the node is copying a face for an undated message.
    reading: bool,
    /// Undated messages sent and received.
    sent: u64,
    received: u64,
}

impl<M: Message> Link<M> {
    /// Receives undated messages; the last one counts.
    fn drain(&mut self) {
        while self.undated[1].request.test() {
            std::mem::swap(&mut self.latest, &mut self.undated[1].numbers);
            self.fresh = true;
            self.received += 1;
            self.undated[1].receive(self.peer, LATEST);
        }
    }

    /// Sends the requested face once the node has copied it.
    fn send_if_read(&mut self, node: &mut impl Ranked) {
        if self.reading && node.has_read(false) {
            self.reading = false;
            self.undated[0].send(self.peer, LATEST);
            self.sent += 1;
        }
    }
}

/// Communication of a rank with the others.
struct Rank<M> {
    world: World,
    links: Vec<Link<M>>,
    /// Whether the first rank has started the token.
    started: bool,
    /// Whether undated receives are posted.
    listening: bool,
    /// Whether dated halos remain to be sent.
    unsent: bool,
}

impl<M: Message> Rank<M> {
    fn new(
        world: World,
        split: Split,
        transports: &Transports,
        node: &impl Ranked<Message = M>,
    ) -> Self {
        let link = |face: Face| {
            if transports.direct.contains(&face) {
                return None;
            }
            let peer = face.neighbour(split, world.rank())?;
            let len = face.len(node.layout());
            let transfers = || [(); 2].map(|()| Transfer::new(node.message(len)));
            Some(Link {
                face,
                peer,
                dated: transfers(),
                undated: transfers(),
                latest: node.message(len),
                fresh: false,
                reading: false,
                sent: 0,
                received: 0,
            })
        };
        let links = Face::ALL.into_iter().filter_map(link).collect();
        Self { world, links, started: false, listening: false, unsent: false }
    }

    /// Sends the faces that the node has copied.
    fn send(&mut self) {
        for link in &mut self.links {
            link.dated[0].send(link.peer, DATED);
        }
    }

    fn send_token(&self, value: c_int) {
        let to = (self.world.rank() + 1) % self.world.size();
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

    /// The token, if this rank holds it.
    fn take_token(&self) -> Option<c_int> {
        let from = ((self.world.rank() + self.world.size() - 1) % self.world.size()) as c_int;
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

    /// Receives all outstanding messages, so that none is left for the next run.
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
        let open = |link: &mut Link<M>| {
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

/// Values of the token.
const NOT_ALL: c_int = 0;
const ALL: c_int = 1;
const TOGETHER: c_int = 2;

impl<N: Ranked> Exchange<N> for Rank<N::Message> {
    fn begin(&mut self, node: &mut N) {
        node.signal_neighbours();
        for link in &mut self.links {
            link.dated[1].receive(link.peer, DATED);
            node.read_face(link.face, &mut link.dated[0].numbers);
        }
        self.unsent = !node.has_read(false);
        if !self.unsent {
            self.send();
        }
    }

    fn finish(&mut self, node: &mut N) {
        node.await_signals();
        if std::mem::take(&mut self.unsent) {
            node.has_read(true);
            self.send();
        }
        Request::wait(self.links.iter_mut().flat_map(|l| &mut l.dated).map(|t| &mut t.request));
        for link in &mut self.links {
            node.write_ghost(link.face, &link.dated[1].numbers);
            std::mem::swap(&mut link.latest, &mut link.dated[1].numbers);
            link.fresh = true;
        }
    }

    fn publish(&mut self, node: &mut N) {
        if !self.listening {
            self.listening = true;
            for link in &mut self.links {
                (link.sent, link.received) = (0, 0);
                link.undated[1].receive(link.peer, LATEST);
            }
        }
        for link in &mut self.links {
            // what a device was asked for in an earlier call may only be here now
            link.send_if_read(node);
            // what is still under way is not overtaken
            if !link.reading && link.undated[0].request.test() {
                node.read_face(link.face, &mut link.undated[0].numbers);
                link.reading = true;
                link.send_if_read(node);
            }
        }
    }

    fn refresh(&mut self, node: &mut N) {
        let again = !node.keeps_ghosts();
        for link in &mut self.links {
            link.drain();
            if again || link.fresh {
                node.write_ghost(link.face, &link.latest);
                link.fresh = false;
            }
        }
    }

    fn ring(&mut self, converged: bool) -> bool {
        if self.world.size() == 1 {
            return converged;
        }
        let own = if converged { ALL } else { NOT_ALL };
        if self.world.rank() > 0 {
            let Some(token) = self.take_token() else { return false };
            if token != TOGETHER {
                self.send_token(token.min(own));
            } else if self.world.rank() + 1 < self.world.size() {
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
        self.world.size()
    }
}

/// Runs a case on all ranks, each with the `node` of its part of `split`. No rank keeps the solution. Also
/// returns the column `transport-used`.
///
/// # Errors
/// When MPI cannot be started, or a rank cannot have its node.
pub fn run<N: Ranked>(
    case: &Case,
    split: Split,
    limits: Limits<'_>,
    node: impl FnOnce(Extent) -> Result<N>,
) -> Result<(Ran, Option<&'static str>)> {
    let world = world()?;
    let extent = Extent::of_node(case.m, split, world.rank());
    let (node, setup) = timed(|| all_or_none(node(extent)));
    let mut node = node?;
    let transports = match node.direct() {
        Some(direct) if case.transport == Transport::Auto => {
            Transports::find(world, split, case.m, direct)
        }
        _ => Transports::messages(world),
    };
    let mut exchange = Rank::new(world, split, &transports, &node);
    reduce(&mut [], &mut []);
    let (mut outcome, seconds) = timed(|| solve(case, &mut node, &mut exchange, limits));
    exchange.close();
    judge(&mut node, &mut exchange, &mut outcome);
    if let Some(direct) = node.direct() {
        // before any of the memory is given back, which the ranks do after they have met below
        transports.direct.iter().for_each(|&face| direct.close(face));
    }
    let mut slowest = [setup, seconds];
    reduce(&mut [], &mut slowest);
    Ok((Ran { outcome, seconds: slowest, solution: None }, transports.used))
}
