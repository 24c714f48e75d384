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

/// What other ranks want of this one.
pub struct Asked {
    /// How many numbers each rank has sent.
    pub counts: Vec<usize>,
    /// The numbers that name what they want, rank by rank.
    pub numbers: Vec<f64>,
}

/// Sends `wanted[r]` numbers to each rank r, which name what this one wants of it; collective. Integers are
/// exact below 2^53.
pub fn ask(
    communicator: &dyn Communicator,
    wanted: &[usize],
    numbers: impl Iterator<Item = f64>,
) -> Asked {
    let (me, size) = (communicator.rank(), communicator.size());
    // row r: what rank r wants of each
    let own: Vec<f64> = wanted.iter().map(|&count| count as f64).collect();
    let table = communicator.all_gather(&own, &vec![size; size]);
    let counts: Vec<usize> = (0..size).map(|rank| table[rank * size + me] as usize).collect();
    let mut requests = communicator.exchange(messages(wanted, 1), messages(&counts, 1));
    requests.outgoing().iter_mut().zip(numbers).for_each(|(to, number)| *to = number);
    requests.start();
    let numbers = requests.finish().to_vec();
    Asked { counts, numbers }
}

/// Messages of so many blocks to or from each rank; none where there are none.
pub fn messages(counts: &[usize], block: usize) -> Vec<Message> {
    let all = counts.iter().enumerate().map(|(rank, count)| Message { rank, len: count * block });
    all.filter(|message| message.len > 0).collect()
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
        let remote = ghosts.iter().filter(|&&block| !(starts[me]..starts[me + 1]).contains(&block));
        let Asked { counts: asked, numbers } =
            ask(communicator, &wanted, remote.map(|&block| block as f64));
        let unknowns = |block: u64| {
            let first = (block - starts[me]) as usize * block_size;
            (first..first + block_size).map(|i| i as u32)
        };
        let sent: Vec<u32> = numbers.iter().flat_map(|&block| unknowns(block as u64)).collect();
        let own: Vec<u32> = own_blocks.iter().flat_map(|&block| unknowns(block)).collect();
        let outgoing = messages(&asked, block_size);
        let neighbours = outgoing.len();
        let exchange = communicator.exchange(outgoing, messages(&wanted, block_size));
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
