//! Halo exchange by a plan of indices: values of unknowns outside a rank's subdomains.

use std::cell::RefCell;

use super::communicator::{Communicator, Exchange, Message};
use super::local::Local;

/// Which values of others this rank needs, and which of its own others need.
pub struct Halo {
    exchange: RefCell<Box<dyn Exchange>>,
    /// Unknowns of this rank that are sent, message by message.
    sent: Vec<u32>,
    /// Unknowns of this rank that are ghosts of another of its subdomains.
    own: Vec<u32>,
    /// Received values, then those of `own`.
    ghosts: RefCell<Vec<f64>>,
    /// Ranks to which something is sent.
    neighbours: usize,
}

impl Halo {
    /// The exchange that brings `ghosts`, block columns in ascending order, to this rank. Rank r owns the blocks
    /// `starts[r]..starts[r + 1]`. Also returns the place of each ghost block among the ghost values; collective.
    pub fn new(
        communicator: &dyn Communicator,
        starts: &[u64],
        ghosts: &[u64],
        block_size: usize,
    ) -> (Self, Vec<u32>) {
        let (me, size) = (communicator.rank(), communicator.size());
        let owned = |rank: usize| {
            let at = |start: u64| ghosts.partition_point(|&block| block < start);
            at(starts[rank])..at(starts[rank + 1])
        };
        let mut wanted: Vec<usize> = (0..size).map(|rank| owned(rank).len()).collect();
        let own_blocks = &ghosts[owned(me)];
        wanted[me] = 0;
        // row r: what rank r wants of each
        let numbers: Vec<f64> = wanted.iter().map(|&count| count as f64).collect();
        let table = communicator.all_gather(&numbers, &vec![size; size]);
        let messages = |len: &dyn Fn(usize) -> usize| -> Vec<Message> {
            let all = (0..size).map(|rank| Message { rank, len: len(rank) });
            all.filter(|message| message.len > 0).collect()
        };
        let asked = |rank: usize| table[rank * size + me] as usize;
        // the numbers of the blocks go to their owners; they are exact below 2^53
        let mut requests = communicator.exchange(messages(&|r| wanted[r]), messages(&asked));
        let remote = ghosts.iter().filter(|&&block| !(starts[me]..starts[me + 1]).contains(&block));
        requests.outgoing().iter_mut().zip(remote).for_each(|(to, &block)| *to = block as f64);
        requests.start();
        let unknowns = |block: u64| {
            let first = (block - starts[me]) as usize * block_size;
            (first..first + block_size).map(|i| i as u32)
        };
        let sent: Vec<u32> =
            requests.finish().iter().flat_map(|&block| unknowns(block as u64)).collect();
        let own: Vec<u32> = own_blocks.iter().flat_map(|&block| unknowns(block)).collect();
        let numbers = |messages: Vec<Message>| -> Vec<Message> {
            messages.into_iter().map(|m| Message { len: m.len * block_size, ..m }).collect()
        };
        let outgoing = numbers(messages(&asked));
        let neighbours = outgoing.len();
        let exchange = communicator.exchange(outgoing, numbers(messages(&|r| wanted[r])));
        let received: usize = wanted.iter().sum();
        let own_range = owned(me);
        let place = |at: usize| {
            if own_range.contains(&at) {
                received + at - own_range.start
            } else if at < own_range.start {
                at
            } else {
                at - own_range.len()
            }
        };
        let places = (0..ghosts.len()).map(|at| place(at) as u32).collect();
        let values = vec![0.0; ghosts.len() * block_size];
        let exchange = RefCell::new(exchange);
        (Self { exchange, sent, own, ghosts: RefCell::new(values), neighbours }, places)
    }

    /// Sends the values of x that others need.
    pub fn start<K: Local>(&self, k: &K, x: &K::Vector) {
        let mut exchange = self.exchange.borrow_mut();
        k.gather(x, &self.sent, exchange.outgoing());
        exchange.start();
        let mut ghosts = self.ghosts.borrow_mut();
        let remote = ghosts.len() - self.own.len();
        k.gather(x, &self.own, &mut ghosts[remote..]);
    }

    /// Waits for the values of others and hands all ghost values to `work`.
    pub fn finish<R>(&self, work: impl FnOnce(&[f64]) -> R) -> R {
        let mut exchange = self.exchange.borrow_mut();
        let received = exchange.finish();
        let mut ghosts = self.ghosts.borrow_mut();
        ghosts[..received.len()].copy_from_slice(received);
        work(&ghosts)
    }

    /// Bytes that this rank sends in an exchange.
    pub fn bytes(&self) -> usize {
        8 * self.sent.len()
    }

    /// Messages that it sends.
    pub fn messages(&self) -> usize {
        self.neighbours
    }
}
