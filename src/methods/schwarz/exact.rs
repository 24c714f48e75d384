//! Block ILU(k) of the whole matrix on ranks: interiors of the subdomains first, then interfaces colour by colour
//! (Hysom and Pothen 1999, 2001). It is the factorisation of one device in that order, bit for bit.
//!
//! A rank holds the rows of its subdomains. Their columns of other ranks, the ghosts, are rows of their own in its
//! factors, which it neither makes nor solves: values come from their owners after each stage.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::rows::{Columns, Rows, needed, pattern, values};
use super::{own_blocks, with_overlap};
use crate::base::choices::{LevelRule, Partition};
use crate::base::error::Error;
use crate::base::threads::Threads;
use crate::compute::distributed::communicator::Exchange;
use crate::compute::distributed::halo::{Asked, Halo, ask, messages};
use crate::compute::distributed::{Distributed, Local};
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::compute::{Breakdown, Bytes, FactorInfo, Trisolve};
use crate::matrix::Csr;
use crate::methods::precond::{Phase, Phases, Settings, bilu};
use crate::symbolic::interfaces::{Elimination, Sides};
use crate::symbolic::{FillPattern, Schedule, iluk_on};

/// Layers of block rows around those of a rank that tell its rows of ILU(k), and of the rows that these subtract
/// what they need: both have columns over paths of k + 1 couplings at most, the last of which tells nothing more.
pub fn layers(k: usize) -> usize {
    2 * k + 1
}

/// Couplings within which subdomains have different colours: fill of level k goes as far as that.
pub fn reach(k: usize) -> usize {
    k + 1
}

/// Which rows are at interfaces: chosen by iterations on grids and reservoirs (`docs/notes/ranks.md`).
pub fn sides(how: Partition, count: usize) -> Sides {
    match how {
        Partition::Rows if count > 2 => Sides::Lower,
        _ => Sides::Both,
    }
}

/// Factors of a rank.
pub struct Exact<K: Local> {
    ilu: K::BlockIlu,
    stages: Vec<Stage>,
    /// Own blocks of the factors.
    blocks: usize,
    /// Solution of both triangles, ghosts among it.
    z: RefCell<K::Vector>,
}

/// Rows that are solved at one time, and what follows.
struct Stage {
    parts: Vec<Part>,
    /// Values for rows of later stages, after the forward solve.
    forward: Pass,
    /// Values for rows of earlier stages, after the backward solve.
    backward: Pass,
}

/// Consecutive rows, in the factors and in the vectors of the rank.
struct Part {
    rows: Range<usize>,
    /// First unknown.
    at: usize,
}

/// Values from rank to rank.
struct Pass {
    halo: Halo,
    /// Unknowns of the ghosts, in the order in which they come.
    places: Vec<u32>,
}

impl Pass {
    /// Collective. Block row `ghosts[i]`, ascending, is row `at[i]` of the factors; `own` finds those of this rank.
    fn new<K: Local>(
        k: &Distributed<K>,
        block_size: usize,
        (ghosts, at): (&[u64], &[u32]),
        own: impl Fn(u32) -> u32,
    ) -> Self {
        let b = block_size as u32;
        let starts = k.layout().rank_starts();
        let (halo, _) = Halo::new(&**k.communicator(), starts, ghosts, block_size);
        let places = at.iter().flat_map(|&row| row * b..(row + 1) * b).collect();
        Self { halo: halo.at(|i| own(i / b) * b + i % b), places }
    }

    fn pass<K: Local>(&self, k: &Distributed<K>, z: &mut K::Vector) {
        let (local, waited) = (k.local(), k.local().mark());
        self.halo.start(local, z);
        self.halo.finish(|ghosts| local.scatter(ghosts, &self.places, z));
        k.waited(local.seconds(&waited, &local.mark()));
    }
}

/// Blocks of factors from rank to rank, after a stage.
struct Share {
    exchange: Box<dyn Exchange>,
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl Share {
    /// Everything that this rank's rows subtract of ghosts of stage `stage`; collective.
    fn new<K: Local>(k: &Distributed<K>, rows: &Rows, pattern: &FillPattern, stage: usize) -> Self {
        let communicator = &**k.communicator();
        let starts = k.layout().rank_starts();
        let n = pattern.rows();
        let mut subtracted = vec![false; n];
        pattern.lower.col_ind.iter().for_each(|&j| subtracted[j as usize] = true);
        let mut ghosts: Vec<usize> = (0..n)
            .filter(|&i| subtracted[i] && !rows.is_own(i) && rows.key(rows.numbers[i]).0 == stage)
            .collect();
        // by owner: rows of a stage ascend
        ghosts.sort_unstable_by_key(|&i| rows.numbers[i]);
        let (mut wanted, mut received) = (vec![0; communicator.size()], Vec::new());
        let mut numbers = Vec::new();
        for i in ghosts {
            let row = rows.numbers[i];
            let owner = starts.partition_point(|&start| start <= row) - 1;
            received.push(i as u32);
            numbers.extend([row as f64, row as f64]);
            let first = pattern.upper.row_ptr[i] as usize;
            for (e, &j) in pattern.upper.row(i).iter().enumerate() {
                received.push((n + first + e) as u32);
                numbers.extend([row as f64, rows.numbers[j as usize] as f64]);
            }
            wanted[owner] += 2 * (1 + pattern.upper.row(i).len());
        }
        let Asked { counts, numbers } = ask(communicator, &wanted, numbers.into_iter());
        let place = |pair: &[f64]| {
            let [i, j] = [pair[0] as u64, pair[1] as u64]
                .map(|row| rows.place(row).expect("a row of this rank"));
            if i == j {
                return i;
            }
            let row = pattern.upper.row(i as usize);
            let e = row.binary_search(&j).expect("an entry of this rank");
            (n + pattern.upper.row_ptr[i as usize] as usize + e) as u32
        };
        let sent = numbers.chunks_exact(2).map(place).collect();
        let b = pattern.block_size();
        let pairs = |counts: &[usize]| -> Vec<usize> { counts.iter().map(|c| c / 2).collect() };
        let (out, into) = (messages(&pairs(&counts), b * b), messages(&pairs(&wanted), b * b));
        Self { exchange: communicator.exchange(out, into), sent, received }
    }
}

impl<K: Local> Exact<K> {
    /// Sets up ILU(k) of `a` as [`Schwarz::new`](super::Schwarz::new) does, rows in the order of the layout, of
    /// which those within [`layers`] couplings of this rank are read. Collective.
    ///
    /// # Errors
    /// When there are no factors; the other ranks do not hear of it.
    pub fn new(
        k: &Distributed<K>,
        a: &Csr,
        order: &Elimination,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Self, SetupFailure> {
        phases.begin(Phase::Symbolic);
        // what follows is collective
        let (rows, pattern, a) = k.together(Self::symbolic(k, a, order, settings))?;
        phases.begin(Phase::Analysis);
        let b = pattern.block_size();
        let ilu = k.local().ilu_analyse(&pattern, Trisolve::AUTO, settings.factor_precision);
        let ilu = k.together(ilu.map_err(SetupFailure::from))?;
        let stages = stages(k, &rows, &pattern);
        let is_own = |i: &usize| rows.is_own(*i);
        let entries = |i: usize| 1 + pattern.lower.row(i).len() + pattern.upper.row(i).len();
        let blocks = (0..pattern.rows()).filter(is_own).map(entries).sum();
        let z = k.local().vector(pattern.rows() * b).map_err(SetupFailure::from);
        let mut made = Self { ilu, stages, blocks, z: RefCell::new(k.together(z)?) };
        let mut shares: Vec<Share> =
            (0..order.stages()).map(|stage| Share::new(k, &rows, &pattern, stage)).collect();
        phases.begin(Phase::Numeric);
        made.factorise(k, &rows, &a, settings.shift, &mut shares)?;
        Ok(made)
    }

    /// Rows, pattern and values of this rank's factors.
    fn symbolic<'a>(
        k: &Distributed<K>,
        a: &Csr,
        order: &'a Elimination,
        settings: &Settings,
    ) -> Result<(Rows<'a>, Arc<FillPattern>, Csr), SetupFailure> {
        if settings.level_rule != LevelRule::Min {
            return Err(Error::input("`exact:interface` has the level rule `min` alone").into());
        }
        let own = own_blocks(k.layout(), k.communicator().rank());
        let near = own.start as u32..own.end as u32;
        let mut inside = vec![false; a.rows() / a.block_size()];
        let known = with_overlap(a, near.clone(), layers(settings.fill), &mut inside);
        drop(inside);
        let stages: Vec<u32> = known.iter().map(|&row| order.stage(row as usize) as u32).collect();
        // stable: rows of a stage ascend
        let sorted = Schedule::from_levels(&stages).rows;
        let mut places = vec![u32::MAX; known.len()];
        sorted.iter().enumerate().for_each(|(place, &at)| places[at as usize] = place as u32);
        let numbers = sorted.iter().map(|&at| u64::from(known[at as usize])).collect();
        let all = Rows { order, own, numbers };
        let [limit, each, free] = bilu::room(k.local(), a);
        let found = {
            let couplings = pattern(a, &all, &Columns::new(&known, near.clone(), places));
            iluk_on(Threads::One, &couplings, settings.fill, settings.level_rule, limit)
        };
        let found =
            found.map_err(|at| SetupFailure::TooLarge { at, needed: at.entries * each, free })?;
        let (pattern, kept) = needed(&found, |i| all.is_own(i));
        drop(found);
        let mut places = vec![u32::MAX; known.len()];
        for (place, &at) in kept.iter().enumerate() {
            places[sorted[at as usize] as usize] = place as u32;
        }
        let numbers = kept.iter().map(|&at| all.numbers[at as usize]).collect();
        let rows = Rows { numbers, ..all };
        let needed = 8 * pattern.numbers();
        if needed > free {
            return Err(SetupFailure::OutOfMemory { needed, free });
        }
        let a = values(a, &rows, &Columns::new(&known, near, places))?;
        Ok((rows, Arc::new(pattern), a))
    }

    /// The values, stage by stage. The rank of the first row without a pivot alone reports it; what the others
    /// have is of no use.
    fn factorise(
        &mut self,
        k: &Distributed<K>,
        rows: &Rows,
        a: &Csr,
        shift: f64,
        shares: &mut [Share],
    ) -> Result<(), SetupFailure> {
        let shift = match shift {
            0.0 => 0.0,
            relative => relative * k.communicator().largest(a.largest_diagonal()),
        };
        let parts: Vec<Vec<Range<usize>>> =
            self.stages.iter().map(|s| s.parts.iter().map(|p| p.rows.clone()).collect()).collect();
        let ilu = &mut self.ilu;
        let made = k.local().ilu_factor_in_stages(ilu, a, shift, &parts, &mut |stage, blocks| {
            let Share { exchange, sent, received } = &mut shares[stage];
            blocks.read(sent, exchange.outgoing());
            exchange.start();
            blocks.write(received, exchange.finish());
        });
        let row = made.err().map(|why| match why {
            Breakdown::Singular(block) => block.row,
            Breakdown::Range { row } => row,
        });
        // place in the order of elimination
        let key = row.map_or([f64::INFINITY; 2], |row| {
            let (stage, row) = rows.key(rows.numbers[row]);
            [stage as f64, row as f64]
        });
        let ranks = k.layout().ranks();
        let all = k.communicator().all_gather(&key, &vec![2; ranks]);
        let first = all.chunks_exact(2).min_by(|a, b| a.partial_cmp(b).expect("no NaN"));
        match made {
            Err(why) if first == Some(&key[..]) => {
                Err(SetupFailure::Breakdown(renumbered(why, rows)))
            }
            _ => Ok(()),
        }
    }
}

/// With the number that the row has in the order of the subdomains.
fn renumbered(why: Breakdown, rows: &Rows) -> Breakdown {
    let number = |row: usize| rows.numbers[row] as usize;
    match why {
        Breakdown::Singular(mut block) => {
            block.row = number(block.row);
            block.into()
        }
        Breakdown::Range { row } => Breakdown::Range { row: number(row) },
    }
}

/// The rows of each stage, and what goes from rank to rank after it; collective.
fn stages<K: Local>(k: &Distributed<K>, rows: &Rows, pattern: &FillPattern) -> Vec<Stage> {
    let (b, n) = (pattern.block_size(), pattern.rows());
    let [mut forward, mut backward] = [vec![false; n], vec![false; n]];
    for i in (0..n).filter(|&i| rows.is_own(i)) {
        pattern.lower.row(i).iter().for_each(|&j| forward[j as usize] = true);
        pattern.upper.row(i).iter().for_each(|&j| backward[j as usize] = true);
    }
    let mut ghosts = vec![[Vec::new(), Vec::new()]; rows.order.stages()];
    for at in (0..n).filter(|&at| !rows.is_own(at)) {
        let (stage, row) = rows.key(rows.numbers[at]);
        for (of, needed) in ghosts[stage].iter_mut().zip([&forward, &backward]) {
            if needed[at] {
                of.push((row, at as u32));
            }
        }
    }
    let mut parts: Vec<Vec<Part>> = (0..rows.order.stages()).map(|_| Vec::new()).collect();
    for s in k.layout().subdomains(k.communicator().rank()) {
        for (stage, of) in rows.order.parts(s) {
            if let Some(first) = of.clone().next() {
                let place = rows.place(first as u64).expect("an own row") as usize;
                let at = (first - rows.own.start as usize) * b;
                parts[stage].push(Part { rows: place..place + of.len(), at });
            }
        }
    }
    let own = |i: u32| rows.place(rows.own.start + u64::from(i)).expect("an own row");
    let stage = |(parts, [forward, backward]): (Vec<Part>, [Vec<(u64, u32)>; 2])| {
        let pass = |ghosts: Vec<(u64, u32)>| {
            let (rows, at): (Vec<u64>, Vec<u32>) = ghosts.into_iter().unzip();
            Pass::new(k, b, (&rows, &at), own)
        };
        Stage { parts, forward: pass(forward), backward: pass(backward) }
    };
    parts.into_iter().zip(ghosts).map(stage).collect()
}

impl<K: Local> Preconditioner<Distributed<K>> for Exact<K> {
    fn apply(&self, k: &Distributed<K>, r: &K::Vector, z: &mut K::Vector) {
        let (local, b) = (k.local(), self.ilu.pattern().block_size());
        let v = &mut *self.z.borrow_mut();
        for Stage { parts, forward, .. } in &self.stages {
            for Part { rows, at } in parts {
                local.ilu_forward(&self.ilu, rows.clone(), r, *at, v);
            }
            forward.pass(k, v);
        }
        for Stage { parts, backward, .. } in self.stages.iter().rev() {
            for Part { rows, at } in parts {
                local.ilu_backward(&self.ilu, rows.clone(), v);
                local.copy_range(v, rows.start * b..rows.end * b, z, *at);
            }
            backward.pass(k, v);
        }
    }

    fn bytes(&self, k: &Distributed<K>) -> Bytes {
        let own = self.ilu.bytes();
        // the solution is copied from among the ghosts
        let vector = 8 * self.ilu.pattern().rows() * self.ilu.pattern().block_size();
        let all = |bytes: usize| k.sum(bytes as f64) as usize;
        Bytes { held: all(own.held + vector), moved: all(own.moved + 2 * vector) }
    }

    fn numeric_bytes(&self, k: &Distributed<K>) -> usize {
        let pattern = self.ilu.pattern();
        k.sum((pattern.bytes() + 16 * pattern.numbers()) as f64) as usize
    }

    /// Blocks of all ranks; levels go through several of them and are not counted.
    fn size(&self, k: &Distributed<K>) -> FactorSize {
        let blocks = k.sum(self.blocks as f64) as usize;
        let block = self.ilu.pattern().block_size().pow(2);
        FactorSize {
            factor_blocks: Some(blocks),
            factor_entries: Some(blocks * block),
            ..FactorSize::default()
        }
    }
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
