//! Block ILU(k) of the whole matrix on ranks, stage by stage of an [`Elimination`]. It is the factorisation of one
//! device in that order, bit for bit.
//!
//! A rank holds the rows of its subdomains. Their columns of other ranks, the ghosts, are rows of their own in its
//! factors, which it neither makes nor solves: values come from their owners after each stage.

use std::cell::RefCell;
use std::sync::Arc;

use super::order::layers;
use super::rows::{Rows, needed, pattern, values};
use super::{Renewed, with_overlap};
use crate::base::error::Result;
use crate::base::measure::spans::span;
use crate::base::measure::{now, seconds_since};
use crate::base::threads::Threads;
use crate::compute::distributed::communicator::{Communicator, Exchange, Message};
use crate::compute::distributed::halo::{Asked, ask, messages};
use crate::compute::distributed::part::{Part, numbered, numbers};
use crate::compute::distributed::{
    Distributed, FactorBlocks, Local, Route, StagePart, StagedSolves,
};
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::compute::{Breakdown, Bytes, FactorInfo, Trisolve};
use crate::matrix::Csr;
use crate::methods::precond::{Kept, Phase, Phases, Settings, bilu};
use crate::symbolic::interfaces::Elimination;
use crate::symbolic::{FillPattern, Schedule, iluk_on, iluk_raised};

/// Factors of a rank.
pub struct Exact<K: Local> {
    ilu: K::StagedIlu,
    /// Values for others after each stage: for later stages after the forward solve, for earlier ones after the
    /// backward solve.
    passes: Passes<K>,
    /// Own blocks of the factors.
    blocks: usize,
    /// Solutions with the triangles, ghosts among them.
    v: RefCell<K::Vector>,
    /// What new values take: the rows of the factors, and blocks from rank to rank after each stage.
    rows: Rows,
    shares: Vec<Blocks>,
    /// Found when values first change.
    source: Option<Source>,
}

/// The matrix of a rank's factors, filled with values again and again.
struct Source {
    a: Csr,
    /// Of each entry its place among those of the part.
    from: Vec<u32>,
}

impl Source {
    fn new(rows: &Rows, part: &Part) -> Self {
        let named = part.with_all_values(numbered(part.matrix().nnz()));
        let a = values(Threads::One, rows, &named);
        let from = numbers(a.values());
        Self { a, from }
    }

    fn fill(&mut self, part: &Part) {
        let values = part.matrix().values();
        let pairs = self.a.values_mut().iter_mut().zip(&self.from);
        pairs.for_each(|(to, &at)| *to = values[at as usize]);
    }
}

/// Values of solves from rank to rank, after a stage.
struct Pass<K: Local> {
    transfer: RefCell<K::Transfer>,
    /// Unknowns that are received.
    received: K::Places,
    /// Nothing is sent or received.
    empty: bool,
}

impl<K: Local> Pass<K> {
    /// Those of all shares; collective, also where it fails.
    fn all(k: &Distributed<K>, shares: Vec<Share>, block_size: usize) -> Result<Vec<Self>> {
        let b = block_size as u32;
        let unknowns =
            |rows: Vec<u32>| rows.into_iter().flat_map(|row| row * b..(row + 1) * b).collect();
        let empty: Vec<bool> = shares.iter().map(Share::is_empty).collect();
        let mut received: Vec<Vec<u32>> = Vec::new();
        let route = |share: Share| {
            received.push(unknowns(share.received));
            let [to, from] = share.messages;
            Route { sent: unknowns(share.sent), to, from, own: Vec::new() }
        };
        let routes: Vec<Route> = shares.into_iter().map(route).collect();
        let local = k.local();
        let transfers = local.transfers(&**k.communicator(), routes)?;
        let each = transfers.into_iter().zip(received).zip(empty);
        each.map(|((transfer, received), empty)| {
            let received = local.places(received)?;
            Ok(Self { transfer: RefCell::new(transfer), received, empty })
        })
        .collect()
    }

    /// Values of v, or of z where that is given, for others; theirs come to v.
    fn pass(&self, k: &Distributed<K>, v: &mut K::Vector, z: Option<&K::Vector>) {
        if self.empty {
            return;
        }
        let (local, waited, mut transfer) = (k.local(), now(), self.transfer.borrow_mut());
        local.send(&mut transfer, z.unwrap_or(&*v));
        local.scatter(local.receive(&mut transfer), &self.received, v);
        k.waited(seconds_since(waited));
    }
}

/// Those of each stage, after the forward and the backward solve.
type Passes<K> = Vec<[Pass<K>; 2]>;

/// Rows or blocks of factors from rank to rank, after a stage.
struct Share {
    /// To and from other ranks.
    messages: [Vec<Message>; 2],
    /// Places in what this rank has: message by message.
    sent: Vec<u32>,
    received: Vec<u32>,
}

/// Blocks of factors from rank to rank, after a stage.
struct Blocks {
    share: Share,
    exchange: RefCell<Box<dyn Exchange>>,
}

/// Something that this rank wants of another after a stage: a block row, or the entry of its column in U'.
struct Wanted {
    row: u64,
    column: u64,
    /// Where it is here.
    place: u32,
}

impl Share {
    /// That of each stage; collective. Each thing wanted has `len` numbers, and `place` finds it on its rank.
    fn new<K: Local>(
        k: &Distributed<K>,
        order: &Elimination,
        mut wanted: Vec<Wanted>,
        len: usize,
        place: impl Fn(u64, u64) -> u32,
    ) -> Vec<Self> {
        let communicator = &**k.communicator();
        let (size, stages) = (communicator.size(), order.stages());
        let starts = k.layout().rank_starts();
        let owner = |row: u64| starts.partition_point(|&start| start <= row) - 1;
        wanted.sort_by_cached_key(|w| (owner(w.row), order.stage(w.row as usize), w.row));
        let side = || vec![(vec![0_usize; size], Vec::<u32>::new()); stages];
        let (mut sent, mut received) = (side(), side());
        let mut counts = vec![0; size];
        for w in &wanted {
            let (rank, (of_stage, places)) =
                (owner(w.row), &mut received[order.stage(w.row as usize)]);
            of_stage[rank] += 1;
            places.push(w.place);
            counts[rank] += 2;
        }
        let numbers = wanted.iter().flat_map(|w| [w.row as f64, w.column as f64]);
        let Asked { counts, numbers } = ask(communicator, &counts, numbers);
        let mut pairs = numbers.chunks_exact(2).map(|pair| [pair[0] as u64, pair[1] as u64]);
        for (rank, count) in counts.into_iter().enumerate() {
            for [row, column] in pairs.by_ref().take(count / 2) {
                let (of_stage, places) = &mut sent[order.stage(row as usize)];
                of_stage[rank] += 1;
                places.push(place(row, column));
            }
        }
        let pass = |((to, sent), (from, received)): ((Vec<usize>, _), (Vec<usize>, _))| Self {
            messages: [messages(&to, len), messages(&from, len)],
            sent,
            received,
        };
        sent.into_iter().zip(received).map(pass).collect()
    }

    fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.received.is_empty()
    }
}

impl Blocks {
    fn new(communicator: &dyn Communicator, share: Share) -> Self {
        let [to, from] = share.messages.clone();
        Self { exchange: RefCell::new(communicator.exchange(to, from)), share }
    }

    fn pass(&self, of: &mut dyn FactorBlocks) {
        if self.share.is_empty() {
            return;
        }
        let mut exchange = self.exchange.borrow_mut();
        of.read(&self.share.sent, exchange.outgoing());
        exchange.start();
        of.write(&self.share.received, exchange.finish());
    }
}

impl<K: Local> Exact<K> {
    /// Sets up ILU(k) of `part` as [`Schwarz::new`](super::Schwarz::new) does, rows in the order of the layout, of
    /// which those within [`layers`] couplings of this rank are read. `given` are the numbers of all block rows of the
    /// part in the order of elimination, where that is not stage by stage. Collective.
    ///
    /// # Errors
    /// When there are no factors; the other ranks do not hear of it.
    pub fn new(
        k: &Distributed<K>,
        part: &Part,
        (order, given): (&Arc<Elimination>, Option<&Arc<[u64]>>),
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Self, SetupFailure> {
        phases.begin(Phase::Symbolic);
        // what follows is collective
        let (rows, pattern, a) = k.together(Self::symbolic(k, part, (order, given), settings))?;
        phases.begin(Phase::Analysis);
        let local = k.local();
        let parts = parts(&rows, k.starts(), pattern.block_size());
        let solves = StagedSolves {
            trisolve: settings.trisolve,
            precision: settings.factor_precision,
            alone: k.layout().count() == 1,
        };
        let ilu = local.ilu_in_stages(&pattern, parts, solves);
        // without factors, anything: the other ranks want an answer
        let place = |row: usize| ilu.as_ref().map_or(row, |ilu| local.ilu_place(ilu, row));
        let (passes, shares) = passes(k, &rows, &pattern, &place);
        let prepared = ilu.and_then(|ilu| {
            let v = local.ilu_vector(&ilu)?;
            Ok((ilu, v, passes?))
        });
        let (ilu, v, passes) = k.together(prepared.map_err(SetupFailure::from))?;
        let is_own = |i: &usize| rows.is_own(*i);
        let entries = |i: usize| 1 + pattern.lower.row(i).len() + pattern.upper.row(i).len();
        let blocks = (0..pattern.rows()).filter(is_own).map(entries).sum();
        let mut made = Self { ilu, passes, blocks, v: RefCell::new(v), rows, shares, source: None };
        phases.begin(Phase::Numeric);
        made.factorise(k, part, &a, settings.shift.fixed())?;
        Ok(made)
    }

    /// Rows, pattern and values of this rank's factors.
    fn symbolic(
        k: &Distributed<K>,
        part: &Part,
        (order, given): (&Arc<Elimination>, Option<&Arc<[u64]>>),
        settings: &Settings,
    ) -> Result<(Rows, Arc<FillPattern>, Csr), SetupFailure> {
        let (a, mine) = (part.matrix(), part.places());
        let near = mine.start as u32..mine.end as u32;
        let mut inside = vec![false; part.blocks()];
        let fill = order.fill(settings.fill);
        let layers = layers(fill.highest());
        let known = span("rows around", || with_overlap(a, near, layers, &mut inside));
        drop(inside);
        let number = |place: u32| part.number(place as usize);
        let sorted = sorted(&known, order, given, number);
        let places: Vec<u32> = sorted.iter().map(|&at| known[at as usize]).collect();
        let numbers: Vec<u64> = places.iter().map(|&place| number(place)).collect();
        let interiors = numbers.partition_point(|&row| order.stage(row as usize) == 0);
        let (order, given) = (Arc::clone(order), given.cloned());
        let all = Rows { order, given, own: part.own(), numbers, places };
        let [limit, each, free] = bilu::room(k.local(), a);
        let found = k.local().on_host(|threads| {
            let couplings = span("couplings", || pattern(threads, &all, part));
            match fill.more {
                0 => iluk_on(threads, &couplings, fill.k, settings.level_rule, limit),
                _ => iluk_raised(threads, &couplings, [fill.k, fill.highest()], interiors, limit),
            }
        });
        let found =
            found.map_err(|at| SetupFailure::TooLarge { at, needed: at.entries * each, free })?;
        let (pattern, kept) = span("needed", || k.local().on_host(|t| needed(t, &found, &all)));
        drop(found);
        let numbers = kept.iter().map(|&at| all.numbers[at as usize]).collect();
        let places = kept.iter().map(|&at| all.places[at as usize]).collect();
        let rows = Rows { numbers, places, ..all };
        SetupFailure::check_memory(8 * pattern.numbers(), free)?;
        let a = span("values", || k.local().on_host(|threads| values(threads, &rows, part)));
        Ok((rows, Arc::new(pattern), a))
    }

    /// The values, stage by stage. The rank of the first row without a pivot alone reports it; what the others
    /// have is of no use.
    fn factorise(
        &mut self,
        k: &Distributed<K>,
        part: &Part,
        a: &Csr,
        shift: f64,
    ) -> Result<(), SetupFailure> {
        let shift = match shift {
            0.0 => 0.0,
            relative => relative * k.communicator().largest(a.largest_diagonal()),
        };
        let Self { ilu, rows, shares, .. } = self;
        let broken = k.local().ilu_factor_in_stages(ilu, a, shift, &mut |stage, blocks| {
            shares[stage].pass(blocks);
        });
        // rows without a pivot come before those out of range, which one device has last
        let key = |why: &Breakdown| {
            let (last, row) = match why {
                Breakdown::Singular(block) => (0.0, block.row),
                Breakdown::Range { row } => (1.0, *row),
            };
            let (stage, row) = rows.order.key(rows.numbers[row] as usize);
            [last, stage as f64, row as f64]
        };
        let compare = |a: &[f64], b: &[f64]| a.partial_cmp(b).expect("no NaN");
        let own = broken.into_iter().min_by(|a, b| compare(&key(a), &key(b)));
        let key = own.as_ref().map_or([f64::INFINITY; 3], key);
        let all = k.communicator().all_gather(&key, &vec![3; k.layout().ranks()]);
        let first = all.chunks_exact(3).min_by(|a, b| compare(a, b));
        match own {
            Some(why) if first == Some(&key[..]) => {
                Err(SetupFailure::Breakdown(renumbered(why, rows, part)))
            }
            _ => Ok(()),
        }
    }
}

/// Places of the rows `known`, which ascend, in the order of elimination. `number` is that of a row.
fn sorted(
    known: &[u32],
    order: &Elimination,
    given: Option<&Arc<[u64]>>,
    number: impl Fn(u32) -> u64,
) -> Vec<u32> {
    let Some(given) = given else {
        let stage = |&row: &u32| order.stage(number(row) as usize) as u32;
        let stages: Vec<u32> = known.iter().map(stage).collect();
        // stable: rows of a stage ascend
        return Schedule::from_levels(&stages).rows;
    };
    let mut keys: Vec<(u64, u32)> = known.iter().map(|&row| given[row as usize]).zip(0..).collect();
    // runs: rows of a part ascend, which a stable sort merges
    keys.sort_by_key(|&(key, _)| key);
    keys.into_iter().map(|(_, at)| at).collect()
}

/// With the number that the row has in the given order, or else in that of the subdomains.
fn renumbered(why: Breakdown, rows: &Rows, part: &Part) -> Breakdown {
    let number = |row: usize| {
        let row = rows.numbers[row];
        let given = rows.given.as_ref().zip(part.place(row));
        given.map_or(row, |(given, place)| given[place]) as usize
    };
    why.renumbered(number)
}

/// The rows of this rank, whose subdomains begin at the unknowns `starts`, in each stage.
fn parts(rows: &Rows, starts: &[usize], block_size: usize) -> Vec<Vec<StagePart>> {
    let mut parts: Vec<Vec<StagePart>> = (0..rows.order.stages()).map(|_| Vec::new()).collect();
    for (stage, of) in rows.order.parts(rows.own.start as usize..rows.own.end as usize) {
        let first = rows.place(of.start as u64).expect("an own row") as usize;
        let at = (of.start - rows.own.start as usize) * block_size;
        let subdomain = starts.partition_point(|&start| start <= at) - 1;
        parts[stage].push(StagePart { subdomain, rows: first..first + of.len(), at });
    }
    parts
}

/// What goes from rank to rank after each stage: values of solves, rows of which have their place in the vectors of
/// these, and blocks of the factorisation. Collective, also where it fails.
fn passes<K: Local>(
    k: &Distributed<K>,
    rows: &Rows,
    pattern: &FillPattern,
    in_solves: &dyn Fn(usize) -> usize,
) -> (Result<Passes<K>>, Vec<Blocks>) {
    let (b, n) = (pattern.block_size(), pattern.rows());
    // own rows alone have entries below the diagonal
    let ghosts = |columns: &mut dyn Iterator<Item = &u32>| {
        let mut needed = vec![false; n];
        columns.for_each(|&j| needed[j as usize] = true);
        (0..n).filter(|&i| needed[i] && !rows.is_own(i)).collect::<Vec<usize>>()
    };
    let forward = ghosts(&mut pattern.lower.col_ind.iter());
    let own = (0..n).filter(|&i| rows.is_own(i));
    let backward = ghosts(&mut own.flat_map(|i| pattern.upper.row(i)));
    let number = |at: usize| rows.numbers[at];
    let mut blocks = Vec::new();
    for &i in &forward {
        let row = number(i);
        blocks.push(Wanted { row, column: row, place: i as u32 });
        let entries = pattern.upper.view().range(i).zip(pattern.upper.row(i));
        blocks.extend(entries.map(|(e, &j)| {
            let column = number(j as usize);
            Wanted { row, column, place: (n + e) as u32 }
        }));
    }
    let mut of_own = vec![0; (rows.own.end - rows.own.start) as usize];
    for (at, &row) in (0..).zip(&rows.numbers).filter(|(_, row)| rows.own.contains(row)) {
        of_own[(row - rows.own.start) as usize] = at;
    }
    let place = |row: u64| {
        if rows.own.contains(&row) {
            of_own[(row - rows.own.start) as usize]
        } else {
            rows.place(row).expect("a row of this rank")
        }
    };
    let of_block = |row: u64, column: u64| {
        let i = place(row);
        if row == column {
            return i;
        }
        let j = place(column);
        let entry = pattern.upper.row(i as usize).iter().position(|&other| other == j);
        let first = pattern.upper.row_ptr[i as usize] as usize;
        (n + first + entry.expect("an entry of this rank")) as u32
    };
    let shares = Share::new(k, &rows.order, blocks, b * b, of_block);
    let values = |ghosts: Vec<usize>, sent: &dyn Fn(u64) -> u32| {
        let wanted =
            |i: usize| Wanted { row: number(i), column: number(i), place: in_solves(i) as u32 };
        let wanted = ghosts.into_iter().map(wanted).collect();
        Share::new(k, &rows.order, wanted, b, |row, _| sent(row))
    };
    let forward = values(forward, &|row| in_solves(place(row) as usize) as u32);
    // of z, which has own rows alone
    let backward = values(backward, &|row| (row - rows.own.start) as u32);
    let blocks = |share| Blocks::new(&**k.communicator(), share);
    let shares = shares.into_iter().map(blocks).collect();
    let both = forward.into_iter().zip(backward).flat_map(<[Share; 2]>::from).collect();
    let passes = Pass::all(k, both, b).map(|all| {
        let mut all = all.into_iter();
        std::iter::from_fn(|| Some([all.next()?, all.next()?])).collect()
    });
    (passes, shares)
}

impl<K: Local> Renewed<K> for Exact<K> {
    fn renew(
        &mut self,
        k: &Distributed<K>,
        part: &Part,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Kept, SetupFailure> {
        phases.begin(Phase::Numeric);
        let mut source = self.source.take().unwrap_or_else(|| Source::new(&self.rows, part));
        source.fill(part);
        let made = self.factorise(k, part, &source.a, settings.shift.fixed());
        self.source = Some(source);
        made.map(|()| Kept::Analysis)
    }
}

impl<K: Local> Preconditioner<Distributed<K>> for Exact<K> {
    fn apply(&self, k: &Distributed<K>, r: &K::Vector, z: &mut K::Vector) {
        let (local, v) = (k.local(), &mut *self.v.borrow_mut());
        for (stage, [forward, _]) in self.passes.iter().enumerate() {
            local.ilu_forward(&self.ilu, stage, r, v, z);
            forward.pass(k, v, None);
        }
        for (stage, [_, backward]) in self.passes.iter().enumerate().rev() {
            local.ilu_backward(&self.ilu, stage, v, z);
            backward.pass(k, v, Some(z));
        }
    }

    fn bytes(&self, k: &Distributed<K>) -> Bytes {
        let own = self.ilu.bytes();
        let vector = 8 * self.ilu.pattern().rows() * self.ilu.pattern().block_size();
        k.bytes_of_all(Bytes { held: own.held + vector, ..own })
    }

    fn numeric_bytes(&self, k: &Distributed<K>) -> usize {
        let pattern = self.ilu.pattern();
        k.sum((pattern.bytes() + 16 * pattern.numbers()) as f64) as usize
    }

    /// Blocks of all ranks; levels go through several of them and are not counted. Solves are those of this rank.
    fn size(&self, k: &Distributed<K>) -> FactorSize {
        let blocks = k.sum(self.blocks as f64) as usize;
        let block = self.ilu.pattern().block_size().pow(2);
        FactorSize {
            factor_blocks: Some(blocks),
            factor_entries: Some(blocks * block),
            trisolve_used: Some(self.ilu.trisolve()).filter(|way| *way != Trisolve::AUTO),
            ..FactorSize::default()
        }
    }
}

#[cfg(test)]
#[path = "exact_tests.rs"]
pub(super) mod tests;
