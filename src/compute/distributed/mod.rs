//! One system on many ranks: block rows are divided among subdomains, and these among ranks. What is computed
//! depends on the subdomains alone, not on the ranks that hold them.

pub mod communicator;
mod constants;
pub mod halo;
pub mod launch;
mod local;
pub mod matrix;
pub mod moves;
#[cfg(feature = "mpi")]
mod mpi;
pub mod part;
mod rows;
mod vectors;
#[cfg(feature = "mpi")]
pub mod world;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::base::error::{Error, Result};
use crate::base::measure::{now, seconds_since};
use crate::base::threads::Threads;
use crate::base::units::plural;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Bytes, Clock, Executions, Platform, SLOTS};
use communicator::Communicator;
pub use constants::Constants;
pub use local::{Coupling, FactorBlocks, Local, Route, StagePart, StagedSolves};
use vectors::{Pending, Started};

/// Which subdomains a rank holds, and where they begin. Block rows are numbered subdomain by subdomain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    block_size: usize,
    /// First block row of each subdomain, and their end.
    starts: Vec<u64>,
    /// First subdomain of each rank, and their end.
    of_rank: Vec<usize>,
    /// First block row of each rank, and their end.
    rank_starts: Vec<u64>,
}

impl Layout {
    /// Divides subdomains that begin at the block rows `starts` among ranks, as many to each as to the others but
    /// for one.
    ///
    /// # Errors
    /// When there are fewer of them than ranks.
    pub fn new(starts: &[usize], block_size: usize, ranks: usize) -> Result<Self> {
        let count = starts.len() - 1;
        if count < ranks {
            return Err(Error::input(format!(
                "{} on {}",
                plural(count, "subdomain"),
                plural(ranks, "rank")
            ))
            .hint("every rank needs one: give --subdomains a multiple of the ranks"));
        }
        let of_rank: Vec<usize> = (0..=ranks).map(|rank| rank * count / ranks).collect();
        let rank_starts = of_rank.iter().map(|&first| starts[first] as u64).collect();
        let starts = starts.iter().map(|&start| start as u64).collect();
        Ok(Self { block_size, starts, of_rank, rank_starts })
    }

    /// First block row of each subdomain, and their end.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// First block row of each rank, and their end.
    pub(crate) fn rank_starts(&self) -> &[u64] {
        &self.rank_starts
    }

    /// Subdomains of a rank.
    pub fn subdomains(&self, rank: usize) -> Range<usize> {
        self.of_rank[rank]..self.of_rank[rank + 1]
    }

    /// First unknown of each subdomain of a rank, and their end, among all unknowns.
    pub(crate) fn subdomain_starts(&self, rank: usize) -> Vec<usize> {
        let Range { start, end } = self.subdomains(rank);
        self.starts[start..=end].iter().map(|&s| s as usize * self.block_size).collect()
    }

    /// Unknowns of a rank.
    pub fn unknowns(&self, rank: usize) -> Range<usize> {
        let at = |rank: usize| self.rank_starts[rank] as usize * self.block_size;
        at(rank)..at(rank + 1)
    }

    /// The rows of a rank, of a matrix whose rows are numbered from the first of the layout on.
    #[cfg(test)]
    pub(crate) fn part_of(&self, a: &crate::matrix::Csr, rank: usize) -> part::Part {
        let first = self.rank_starts[0] * self.block_size as u64;
        let own = self.rank_starts[rank]..self.rank_starts[rank + 1];
        let mut rows = part::Builder::new(own, self.block_size);
        for row in self.unknowns(rank) {
            let (columns, values) = a.row(row - first as usize);
            let columns = columns.iter().map(|&column| first + u64::from(column));
            rows.push(row as u64, columns.zip(values.iter().copied()));
        }
        rows.finish(u64::MAX).unwrap()
    }

    /// Subdomains.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.of_rank.len() - 1
    }
}

/// Computes with the part of a system that a rank holds, and with the other ranks.
pub struct Distributed<K: Local> {
    local: K,
    communicator: Rc<dyn Communicator>,
    layout: Layout,
    /// First unknown of each subdomain of this rank, and their end, counted in this rank.
    starts: Vec<usize>,
    pending: RefCell<Vec<Pending>>,
    partials: RefCell<K::Partials>,
    slots: RefCell<Vec<f64>>,
    started: RefCell<Option<Started>>,
    /// Whether this rank wants to stop, and whether any has wanted to at a reduction.
    asked: Cell<bool>,
    stopped: Cell<bool>,
    reductions: Cell<usize>,
    /// Seconds in reductions, and of waiting for values of others.
    seconds: [Cell<f64>; 2],
}

impl<K: Local> Distributed<K> {
    /// The part of this rank.
    pub fn new(local: K, communicator: Rc<dyn Communicator>, layout: Layout) -> Self {
        let mut starts = layout.subdomain_starts(communicator.rank());
        let first = starts[0];
        for start in &mut starts {
            *start -= first;
        }
        Self {
            local,
            communicator,
            layout,
            starts,
            pending: RefCell::default(),
            partials: RefCell::default(),
            slots: RefCell::new(vec![0.0; SLOTS]),
            started: RefCell::default(),
            asked: Cell::default(),
            stopped: Cell::default(),
            reductions: Cell::default(),
            seconds: Default::default(),
        }
    }

    /// Gives up the part and returns the device.
    pub(crate) fn into_local(self) -> K {
        self.local
    }

    /// The device of this rank.
    pub fn local(&self) -> &K {
        &self.local
    }

    /// The ranks.
    pub(crate) fn communicator(&self) -> &Rc<dyn Communicator> {
        &self.communicator
    }

    /// Who holds what.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// First unknown of each subdomain of this rank, and their end, counted in this rank.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Sum of a number over the ranks, in their order.
    pub fn sum(&self, own: f64) -> f64 {
        let all = self.communicator.all_gather(&[own], &vec![1; self.layout.ranks()]);
        all.into_iter().sum()
    }

    /// Those of all ranks.
    pub(crate) fn bytes_of_all(&self, own: Bytes) -> Bytes {
        let all = |bytes: usize| self.sum(bytes as f64) as usize;
        Bytes { held: all(own.held), moved: all(own.moved) }
    }

    /// Reductions so far.
    pub fn reductions(&self) -> usize {
        self.reductions.get()
    }

    /// Seconds of this rank in reductions, and of waiting for values of others, so far.
    pub(crate) fn communication_seconds(&self) -> [f64; 2] {
        [self.seconds[0].get(), self.seconds[1].get()]
    }

    /// The numbers of every rank, `counts[r]` of rank r: a reduction, which is counted.
    pub fn gathered(&self, own: &[f64], counts: &[usize]) -> Vec<f64> {
        let start = now();
        let all = self.communicator.all_gather(own, counts);
        self.reductions.set(self.reductions.get() + 1);
        self.seconds[0].set(self.seconds[0].get() + seconds_since(start));
        all
    }

    /// What this rank has made, where all have made theirs; collective.
    ///
    /// # Errors
    /// This rank's failure, or [`SetupFailure::Elsewhere`].
    pub fn together<T>(&self, made: Result<T, SetupFailure>) -> Result<T, SetupFailure> {
        if self.communicator.any(made.is_err()) {
            return Err(made.err().unwrap_or(SetupFailure::Elsewhere));
        }
        made
    }

    /// Counts seconds of waiting for values of others.
    pub fn waited(&self, seconds: f64) {
        self.seconds[1].set(self.seconds[1].get() + seconds);
    }

    fn parts_of_ranks(&self) -> impl Iterator<Item = usize> {
        (0..self.layout.ranks()).map(|rank| self.layout.subdomains(rank).len())
    }
}

impl<K: Local> Platform for Distributed<K> {
    fn device(&self) -> String {
        let ranks = plural(self.layout.ranks(), "rank");
        let each = if self.local.threads() > 1 { " each" } else { "" };
        format!("{ranks}, {}{each}", self.local.device())
    }

    fn threads(&self) -> usize {
        self.local.threads()
    }

    fn placement(&self) -> Option<String> {
        self.local.placement()
    }

    fn on_cores(&self) -> bool {
        self.local.on_cores()
    }

    fn memory_free(&self) -> usize {
        self.local.memory_free()
    }

    fn copy_bandwidth(&self) -> f64 {
        self.sum(self.local.copy_bandwidth())
    }

    /// Ranks may share caches or not.
    fn cache_bytes(&self) -> Option<usize> {
        None
    }

    /// The same on all ranks: the error of the first that has one.
    fn check(&self) -> Result<()> {
        let own = self.local.check();
        match self.failure(own.as_ref().err().map(Error::to_string)) {
            None => Ok(()),
            Some(said) => Err(own.err().unwrap_or_else(|| Error::run(said))),
        }
    }

    fn on_host<R: Send>(&self, work: impl FnOnce(Threads) -> R + Send) -> R {
        self.local.on_host(work)
    }
}

impl<K: Local> Clock for Distributed<K> {
    type Mark = K::Mark;

    fn uncounted(&self) -> f64 {
        self.local.uncounted()
    }

    fn compile_seconds(&self) -> Option<f64> {
        self.local.compile_seconds()
    }

    fn trial_seconds(&self) -> Option<f64> {
        self.local.trial_seconds()
    }

    fn mark(&self) -> K::Mark {
        self.local.mark()
    }

    fn seconds(&self, from: &K::Mark, to: &K::Mark) -> f64 {
        self.of_all(self.local.seconds(from, to))
    }

    fn synchronise(&self) {
        self.local.synchronise();
    }

    fn of_all(&self, seconds: f64) -> f64 {
        self.communicator.largest(seconds)
    }

    fn agree(&self, stop: bool) -> bool {
        self.asked.set(self.asked.get() || stop);
        self.stopped.get()
    }

    fn go_on(&self) {
        self.asked.set(false);
        self.stopped.set(false);
    }

    fn failure(&self, own: Option<String>) -> Option<String> {
        self.communicator.failure(own)
    }
}

impl<K: Local> Executions for Distributed<K> {
    type Recording = ();
    type BlockIlu = K::BlockIlu;
}
