//! Halo exchange by a plan of indices: values of unknowns outside a rank's subdomains.

use std::cell::RefCell;

use super::Distributed;
use super::communicator::{Communicator, Message};
use super::local::{Local, Route};
use crate::base::error::Result;

/// Which values of others this rank needs, and which of its own others need.
pub struct Halo<K: Local> {
    transfer: RefCell<K::Transfer>,
    /// Unknowns of this rank that are sent.
    sent: usize,
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
    let fill = |to: &mut [f64]| to.iter_mut().zip(numbers).for_each(|(to, number)| *to = number);
    asked(communicator, wanted, fill)
}

/// The same of the numbers for each rank.
pub fn ask_each(communicator: &dyn Communicator, numbers: &[Vec<f64>]) -> Asked {
    let counts: Vec<usize> = numbers.iter().map(Vec::len).collect();
    asked(communicator, &counts, |mut to| {
        for numbers in numbers {
            let (own, behind) = to.split_at_mut(numbers.len());
            own.copy_from_slice(numbers);
            to = behind;
        }
    })
}

fn asked(
    communicator: &dyn Communicator,
    wanted: &[usize],
    fill: impl FnOnce(&mut [f64]),
) -> Asked {
    let (me, size) = (communicator.rank(), communicator.size());
    // row r: what rank r wants of each
    let own: Vec<f64> = wanted.iter().map(|&count| count as f64).collect();
    let table = communicator.all_gather(&own, &vec![size; size]);
    let counts: Vec<usize> = (0..size).map(|rank| table[rank * size + me] as usize).collect();
    let mut requests = communicator.exchange(messages(wanted, 1), messages(&counts, 1));
    fill(requests.outgoing());
    requests.start();
    let numbers = requests.finish().to_vec();
    Asked { counts, numbers }
}

/// Messages of so many blocks to or from each rank; none where there are none.
pub fn messages(counts: &[usize], block: usize) -> Vec<Message> {
    let all = counts.iter().enumerate().map(|(rank, count)| Message { rank, len: count * block });
    all.filter(|message| message.len > 0).collect()
}

impl<K: Local> Halo<K> {
    /// The exchange that brings `ghosts`, block columns in ascending order, to this rank, whose vectors have its
    /// unknown i at `at(i)`. Also returns the place of each ghost block among the ghost values. Collective, also
    /// where it fails.
    ///
    /// # Errors
    /// Without memory for its buffers.
    pub fn new(
        k: &Distributed<K>,
        ghosts: &[u64],
        block_size: usize,
        at: impl Fn(u32) -> u32,
    ) -> Result<(Self, Vec<u32>)> {
        let communicator = &**k.communicator();
        let starts = k.layout().rank_starts();
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
            (first..first + block_size).map(|i| at(i as u32))
        };
        let sent: Vec<u32> = numbers.iter().flat_map(|&block| unknowns(block as u64)).collect();
        let own: Vec<u32> = own_blocks.iter().flat_map(|&block| unknowns(block)).collect();
        let [to, from] = [&asked, &wanted].map(|counts| messages(counts, block_size));
        let neighbours = to.len();
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
        let count = sent.len();
        let mut transfers =
            k.local().transfers(communicator, vec![Route { sent, to, from, own }])?;
        let transfer = RefCell::new(transfers.pop().expect("one for the route"));
        Ok((Self { transfer, sent: count, neighbours }, places))
    }

    /// Begins to send the values of x that others need.
    pub fn start(&self, k: &K, x: &K::Vector) {
        k.send(&mut self.transfer.borrow_mut(), x);
    }

    /// Waits for the values of others and hands all ghost values to `work`.
    pub fn finish<R>(&self, k: &K, work: impl FnOnce(&K::Vector) -> R) -> R {
        let mut transfer = self.transfer.borrow_mut();
        work(k.receive(&mut transfer))
    }

    /// Bytes that this rank sends in an exchange.
    pub fn bytes(&self) -> usize {
        8 * self.sent
    }

    /// How values get from one device to another, where that is worth a word.
    pub fn transport(&self) -> Option<&'static str> {
        K::transport(&self.transfer.borrow())
    }

    /// Messages that it sends.
    pub fn messages(&self) -> usize {
        self.neighbours
    }
}
