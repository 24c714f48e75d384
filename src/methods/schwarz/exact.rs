//! Block ILU(k) of the whole matrix on ranks: interiors of the subdomains first, then interfaces colour by colour
//! (Hysom and Pothen 1999, 2001). It is the factorisation of one device in that order, bit for bit.
//!
//! A rank holds the rows of its subdomains. Their columns of other ranks, the ghosts, are rows of their own in its
//! factors, which it neither makes nor solves: values come from their owners after each stage.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::{own_blocks, with_overlap};
use crate::base::choices::LevelRule;
use crate::base::error::Error;
use crate::base::threads::Threads;
use crate::compute::distributed::communicator::Exchange;
use crate::compute::distributed::halo::{Asked, Halo, ask, messages};
use crate::compute::distributed::{Distributed, Local};
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::compute::{Breakdown, Bytes, FactorInfo, Trisolve};
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;
use crate::methods::precond::{Phase, Phases, Settings, bilu};
use crate::symbolic::interfaces::Elimination;
use crate::symbolic::{FillPattern, iluk_on};

/// Layers of block rows around those of a rank that tell its rows of ILU(k): these have columns up to k + 1
/// couplings away, and a pair of such columns is joined by a path of k + 1 couplings at most.
pub fn layers(k: usize) -> usize {
    k + 1 + k.div_ceil(2)
}

/// Couplings within which subdomains have different colours: fill of level k goes as far as that.
pub fn reach(k: usize) -> usize {
    k + 1
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

/// Block rows that a rank's factors have, in the order of their elimination.
struct Rows<'a> {
    order: &'a Elimination,
    /// Block rows of this rank.
    own: Range<u64>,
    /// Numbers of all.
    rows: Vec<u64>,
}

impl Rows<'_> {
    fn key(&self, row: u64) -> (usize, u64) {
        (self.order.stage(row as usize), row)
    }

    /// Where a row is.
    fn place(&self, row: u64) -> Option<u32> {
        let key = self.key(row);
        self.rows.binary_search_by_key(&key, |&other| self.key(other)).ok().map(|at| at as u32)
    }

    fn is_own(&self, at: usize) -> bool {
        self.own.contains(&self.rows[at])
    }

    /// Where each of the rows `known` is, ascending, those of this rank in one piece.
    fn places(&self, known: &[u32]) -> Vec<u32> {
        let mut places = vec![u32::MAX; known.len()];
        for (at, &row) in self.rows.iter().enumerate() {
            let place = known.binary_search(&(row as u32)).expect("a known row");
            places[place] = at as u32;
        }
        places
    }
}

/// Finds block columns among known rows.
struct Columns<'a> {
    known: &'a [u32],
    /// Those of this rank, which are consecutive in `known` from `first` on.
    own: Range<u32>,
    first: usize,
    places: Vec<u32>,
}

impl<'a> Columns<'a> {
    fn new(rows: &Rows, known: &'a [u32]) -> Self {
        let own = rows.own.start as u32..rows.own.end as u32;
        let first = known.partition_point(|&row| row < own.start);
        Self { known, own, first, places: rows.places(known) }
    }

    fn place(&self, column: u32) -> Option<u32> {
        let at = if self.own.contains(&column) {
            self.first + (column - self.own.start) as usize
        } else {
            self.known.binary_search(&column).ok()?
        };
        Some(self.places[at]).filter(|&place| place != u32::MAX)
    }
}

/// Couplings between rows, in their order.
fn pattern(a: &Csr, rows: &Rows, columns: &Columns) -> Pattern<'static> {
    let b = a.block_size();
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for &row in &rows.rows {
        let first = col_ind.len();
        for i in row as usize * b..(row as usize + 1) * b {
            let mut last = u32::MAX;
            for block in a.row(i).0.iter().map(|column| column / b as u32) {
                if block != last {
                    col_ind.extend(columns.place(block));
                    last = block;
                }
            }
        }
        col_ind[first..].sort_unstable();
        let mut end = first;
        for at in first..col_ind.len() {
            if at == first || col_ind[at] != col_ind[end - 1] {
                col_ind[end] = col_ind[at];
                end += 1;
            }
        }
        col_ind.truncate(end);
        row_ptr.push(end as u32);
    }
    Pattern::new(row_ptr, col_ind).in_blocks(b)
}

/// The entries of this rank's rows; those of others are empty.
fn values(a: &Csr, rows: &Rows, columns: &Columns) -> crate::base::error::Result<Csr> {
    let b = a.block_size();
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut sorted: Vec<(u32, f64)> = Vec::new();
    for (at, &row) in rows.rows.iter().enumerate() {
        for i in row as usize * b..(row as usize + 1) * b {
            if rows.is_own(at) {
                let (cols, entries) = a.row(i);
                sorted.clear();
                for (&column, &value) in cols.iter().zip(entries) {
                    let (block, within) = (column / b as u32, column % b as u32);
                    sorted.extend(columns.place(block).map(|j| (j * b as u32 + within, value)));
                }
                sorted.sort_unstable_by_key(|entry| entry.0);
                col_ind.extend(sorted.iter().map(|entry| entry.0));
                values.extend(sorted.iter().map(|entry| entry.1));
            }
            row_ptr.push(col_ind.len() as u32);
        }
    }
    let n = row_ptr.len() - 1;
    Ok(Csr::new(n, n, row_ptr, col_ind, values)?.in_blocks(b))
}

/// Of a pattern of rows around those of this rank the part that its factors need: its rows, their columns, and of
/// those below the diagonal the entries of U' that are subtracted. Also returns these rows, as they are numbered.
fn needed(all: &FillPattern, is_own: impl Fn(usize) -> bool) -> (FillPattern, Vec<u32>) {
    let n = all.rows();
    let (mut kept, mut below) = (vec![false; n], vec![false; n]);
    for i in (0..n).filter(|&i| is_own(i)) {
        kept[i] = true;
        for &j in all.lower.row(i) {
            (kept[j as usize], below[j as usize]) = (true, true);
        }
        all.upper.row(i).iter().for_each(|&j| kept[j as usize] = true);
    }
    let rows: Vec<u32> = (0..n as u32).filter(|&i| kept[i as usize]).collect();
    let mut number = vec![u32::MAX; n];
    rows.iter().enumerate().for_each(|(new, &old)| number[old as usize] = new as u32);
    let part = |of: &Pattern, has: &dyn Fn(usize) -> bool| {
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for &i in &rows {
            if has(i as usize) {
                let columns = of.row(i as usize).iter().map(|&j| number[j as usize]);
                col_ind.extend(columns.filter(|&j| j != u32::MAX));
            }
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind).in_blocks(of.block_size())
    };
    let lower = part(&all.lower, &is_own);
    let upper = part(&all.upper, &|i| is_own(i) || below[i]);
    let own = all.no_diagonal.iter().filter(|&&i| is_own(i as usize));
    let no_diagonal = own.map(|&i| number[i as usize]).collect();
    (FillPattern { lower, upper, no_diagonal }, rows)
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
            .filter(|&i| subtracted[i] && !rows.is_own(i) && rows.key(rows.rows[i]).0 == stage)
            .collect();
        // by owner: rows of a stage ascend
        ghosts.sort_unstable_by_key(|&i| rows.rows[i]);
        let (mut wanted, mut received) = (vec![0; communicator.size()], Vec::new());
        let mut numbers = Vec::new();
        for i in ghosts {
            let row = rows.rows[i];
            let owner = starts.partition_point(|&start| start <= row) - 1;
            received.push(i as u32);
            numbers.extend([row as f64, row as f64]);
            let first = pattern.upper.row_ptr[i] as usize;
            for (e, &j) in pattern.upper.row(i).iter().enumerate() {
                received.push((n + first + e) as u32);
                numbers.extend([row as f64, rows.rows[j as usize] as f64]);
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
        let found = Self::symbolic(k, a, order, settings);
        // what follows is collective
        if k.communicator().any(found.is_err()) {
            let other = || SetupFailure::Broken("another rank has no factors".to_owned());
            return Err(found.err().unwrap_or_else(other));
        }
        let (rows, pattern, a) = found?;
        phases.begin(Phase::Analysis);
        let b = pattern.block_size();
        let ilu = k.local().ilu_analyse(&pattern, Trisolve::AUTO, settings.factor_precision);
        if k.communicator().any(ilu.is_err()) {
            let other = || Error::run("another rank has no room for its factors");
            return Err(ilu.err().unwrap_or_else(other).into());
        }
        let stages = stages(k, &rows, &pattern);
        let is_own = |i: &usize| rows.is_own(*i);
        let entries = |i: usize| 1 + pattern.lower.row(i).len() + pattern.upper.row(i).len();
        let blocks = (0..pattern.rows()).filter(is_own).map(entries).sum();
        let z = RefCell::new(k.local().vector(pattern.rows() * b)?);
        let mut made = Self { ilu: ilu?, stages, blocks, z };
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
        let b = a.block_size();
        let known = {
            let mut inside = vec![false; a.rows() / b];
            let own = own.start as u32..own.end as u32;
            with_overlap(a, own, layers(settings.fill), &mut inside)
        };
        let mut all = Rows { order, own, rows: known.iter().map(|&row| u64::from(row)).collect() };
        let mut sorted = std::mem::take(&mut all.rows);
        sorted.sort_by_cached_key(|&row| all.key(row));
        all.rows = sorted;
        let [limit, each, free] = bilu::room(k.local(), a);
        let found = {
            let couplings = pattern(a, &all, &Columns::new(&all, &known));
            iluk_on(Threads::One, &couplings, settings.fill, settings.level_rule, limit)
        };
        let found =
            found.map_err(|at| SetupFailure::TooLarge { at, needed: at.entries * each, free })?;
        let (pattern, kept) = needed(&found, |i| all.is_own(i));
        drop(found);
        let rows = kept.iter().map(|&at| all.rows[at as usize]).collect();
        let rows = Rows { rows, ..all };
        let needed = 8 * pattern.numbers();
        if needed > free {
            return Err(SetupFailure::OutOfMemory { needed, free });
        }
        let a = values(a, &rows, &Columns::new(&rows, &known))?;
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
            let (stage, row) = rows.key(rows.rows[row]);
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
    let number = |row: usize| rows.rows[row] as usize;
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
        let (stage, row) = rows.key(rows.rows[at]);
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
                let at = rows.place(first as u64).expect("an own row") as usize;
                let rows = at..at + of.len();
                parts[stage].push(Part { rows, at: (first - own_first(k)) * b });
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

/// First block row of this rank.
fn own_first<K: Local>(k: &Distributed<K>) -> usize {
    own_blocks(k.layout(), k.communicator().rank()).start as usize
}

impl<K: Local> Preconditioner<Distributed<K>> for Exact<K> {
    fn apply(&self, k: &Distributed<K>, r: &K::Vector, z: &mut K::Vector) {
        let (local, b) = (k.local(), self.ilu.pattern().block_size());
        let v = &mut *self.z.borrow_mut();
        for Stage { parts, forward, .. } in &self.stages {
            parts.iter().for_each(|p| local.ilu_forward(&self.ilu, p.rows.clone(), r, p.at, v));
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

    /// Blocks of all ranks, and the largest number of levels that a rank goes through.
    fn size(&self, k: &Distributed<K>) -> FactorSize {
        let blocks = k.sum(self.blocks as f64) as usize;
        let block = self.ilu.pattern().block_size().pow(2);
        let [lower, upper] =
            self.ilu.levels().map(|own| k.communicator().largest(own as f64) as usize);
        FactorSize {
            factor_blocks: Some(blocks),
            factor_entries: Some(blocks * block),
            levels_lower: Some(lower),
            levels_upper: Some(upper),
            ..FactorSize::default()
        }
    }
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
