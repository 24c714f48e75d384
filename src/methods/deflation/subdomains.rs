//! The coarse space of a system over ranks: deflation by the constants of each subdomain (Nicolaides 1987), or of
//! each of several pieces of it, and of each component of a block.
//!
//! A rank has the rows of Z and `A Z` that are its own, and all of E, which is small: every rank factors it and
//! solves with it, so that an application is one exchange, of a number for each vector.

use std::cell::RefCell;
use std::sync::Arc;

use super::coarse::{self, Coarse};
use super::vectors::{self, NONE, Vectors};
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::Bytes;
use crate::compute::distributed::halo::Halo;
use crate::compute::distributed::matrix::Rows;
use crate::compute::distributed::part::Part;
use crate::compute::distributed::{Constants, Coupling, Distributed, Layout, Local};
use crate::compute::krylov::Projection;
use crate::compute::preconditioner::SetupFailure;
use crate::matrix::Csr;

/// Deflation by the subdomains of a system over ranks.
pub struct SubdomainDeflation<K: Local> {
    /// Vectors of each rank.
    counts: Vec<usize>,
    used: usize,
    dependent: usize,
    singular: bool,
    coarse: Coarse<K>,
    /// This rank's rows of Z, and of `A Z`.
    z: K::Constants,
    az: Applied<K>,
    scratch: RefCell<Scratch<K>>,
}

/// A share of the rows, one in so many, up to which `A Z` is kept by the rows that have entries.
const FEW: usize = 4;

/// `A Z` of this rank.
enum Applied<K: Local> {
    /// The rows with entries, which are those at faces where rows of A add up to 0 elsewhere, and their bytes.
    Few(K::Coupled, usize),
    /// All rows, and a vector of this rank.
    All(K::Matrix, RefCell<K::Vector>),
}

/// Two vectors with a number for each deflation vector.
struct Scratch<K: Local> {
    sums: K::Vector,
    y: K::Vector,
}

/// Ranges of a subdomain's block rows with as many in each as in the others but for one.
struct Pieces {
    block_size: usize,
    /// First block row of each subdomain, and their end.
    starts: Vec<usize>,
    /// First piece of each subdomain, and their end.
    first: Vec<usize>,
    /// First unknown of each piece of this rank, and their end, counted in this rank.
    own: Vec<usize>,
    /// Vectors of each rank.
    counts: Vec<usize>,
}

impl Pieces {
    /// `most` of each subdomain, or as many as it has block rows.
    fn new(layout: &Layout, rank: usize, block_size: usize, most: usize) -> Self {
        let (ranks, b) = (layout.ranks(), block_size);
        let starts: Vec<usize> = (0..ranks)
            .flat_map(|rank| {
                let last = layout.subdomains(rank).len();
                layout.subdomain_starts(rank).into_iter().take(last)
            })
            .chain([layout.unknowns(ranks - 1).end])
            .map(|unknown| unknown / b)
            .collect();
        let mut first = vec![0];
        for w in starts.windows(2) {
            first.push(first[first.len() - 1] + most.min(w[1] - w[0]));
        }
        let of_rank = layout.subdomains(rank);
        let origin = starts[of_rank.start];
        let mut own = Vec::new();
        for s in of_rank.clone() {
            let (rows, count) = (starts[s + 1] - starts[s], first[s + 1] - first[s]);
            own.extend((0..count).map(|j| (starts[s] - origin + j * rows / count) * b));
        }
        own.push((starts[of_rank.end] - origin) * b);
        let vectors = |rank: usize| {
            let of = layout.subdomains(rank);
            (first[of.end] - first[of.start]) * b
        };
        let counts = (0..ranks).map(vectors).collect();
        Self { block_size, starts, first, own, counts }
    }

    /// Vectors of all ranks.
    fn vectors(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The first vector of the piece of a block row.
    fn vector(&self, block_row: usize) -> u32 {
        let s = self.starts.partition_point(|&start| start <= block_row) - 1;
        let (rows, count) =
            (self.starts[s + 1] - self.starts[s], self.first[s + 1] - self.first[s]);
        // the last piece j that begins at j rows / count or before
        let piece = ((block_row - self.starts[s] + 1) * count - 1) / rows;
        ((self.first[s] + piece) * self.block_size) as u32
    }
}

impl<K: Local> SubdomainDeflation<K> {
    /// For `part`, in the order of the layout, with vectors for `pieces` pieces of each subdomain, or as many as it
    /// has block rows; rows of other ranks are not read. Block rows that nothing is coupled to belong to no
    /// vector, and if A has the constants in its null space the last vector is left out, as in [`Vectors::new`].
    /// Collective.
    ///
    /// # Errors
    /// When memory is short, or E cannot be factored; if that is another rank's error,
    /// [`SetupFailure::Elsewhere`].
    pub fn new(k: &Distributed<K>, part: &Part, pieces: usize) -> Result<Self, SetupFailure> {
        let (rank, b) = (k.communicator().rank(), part.block_size());
        let pieces = Pieces::new(k.layout(), rank, b, pieces);
        let rows = k.together(Rows::of(part, k.layout(), rank).map_err(SetupFailure::from))?;
        let (a, own) = (part.matrix(), part.unknowns());
        let n = own.len();
        let mut z = of_unknowns(k, part, &rows, &pieces)?;
        let first_row = part.own().start as usize;
        let without = z.of[..n].iter().step_by(b).enumerate();
        let without = without.filter(|(_, v)| **v == NONE).map(|(row, _)| row as u32).collect();
        let vanish = k.local().on_host(|threads| vectors::constants_vanish(threads, a, own));
        let singular = !k.communicator().any(!vanish);
        if singular {
            let last = z.count as u32 - 1;
            z.of.iter_mut().filter(|v| **v == last).for_each(|v| *v = NONE);
        }
        let made = k.local().on_host(|threads| {
            let az = vectors::applied(threads, &with_ghosts(&rows)?, &z)?;
            z.of.truncate(n);
            let e = coarse::matrix(threads, &az, &z)?;
            Ok::<_, crate::Error>((az, e))
        });
        drop(rows);
        let (az, e) = k.together(made.map_err(SetupFailure::from))?;
        let first = pieces.vector(first_row) as usize;
        let (e, used) = gathered(k, &e, first, &pieces.counts)?;
        let count = z.count;
        let unit = || {
            Csr::by_rows(
                Threads::One,
                [count; 2],
                || (),
                |(), i, to| {
                    to.push(i as u32, 1.0);
                    Ok::<_, crate::Error>(())
                },
            )
        };
        let local = k.local();
        let constants = Constants {
            block_size: b,
            starts: pieces.own,
            without,
            vectors: [first, count],
            left_out: singular.then(|| count - 1),
        };
        // the same on all ranks, so that their number changes no bit
        let with_entries = az.row_ptr().windows(2).filter(|ends| ends[0] < ends[1]).count();
        let few = k.sum(with_entries as f64) * FEW as f64 <= k.sum(n as f64);
        let made = || {
            let (coarse, dependent) = Coarse::new(local, &e, unit()?)?;
            let scratch = Scratch { sums: local.vector(count)?, y: local.vector(count)? };
            let az = if few {
                let entries = coupled(&az);
                let bytes = entries.bytes();
                Applied::Few(local.coupled(entries)?, bytes)
            } else {
                let az = local.matrix(&Arc::new(az), Format::Csr)?;
                Applied::All(az, RefCell::new(local.vector(n)?))
            };
            Ok::<_, crate::Error>((coarse, dependent, local.constants(constants)?, az, scratch))
        };
        let (coarse, dependent, z, az, scratch) = k.together(made().map_err(SetupFailure::from))?;
        let scratch = RefCell::new(scratch);
        Ok(Self { counts: pieces.counts, used, dependent, singular, coarse, z, az, scratch })
    }

    /// Vectors of all ranks that have unknowns.
    pub fn count(&self) -> usize {
        self.used
    }

    /// Vectors that depend on others and play no part.
    pub fn dependent(&self) -> usize {
        self.dependent
    }

    /// What a reader of the results needs to know.
    pub fn remark(&self) -> Option<&'static str> {
        self.singular.then_some(vectors::SINGULAR)
    }

    /// `y = E^-1 Z' v`; collective.
    fn solve(&self, k: &Distributed<K>, v: &K::Vector) {
        let Scratch { sums, y, .. } = &mut *self.scratch.borrow_mut();
        let local = k.local();
        let own = local.sums_of_constants(&self.z, v);
        local.upload(&k.gathered(&own, &self.counts), sums);
        self.coarse.apply(local, sums, y);
    }
}

/// The rows of `A Z` that have entries.
fn coupled(az: &Csr) -> Coupling {
    let mut of = Coupling { row_ptr: vec![0], ..Coupling::default() };
    for i in 0..az.rows() {
        let (columns, values) = az.row(i);
        if !columns.is_empty() {
            of.rows.push(i as u32);
            of.columns.extend_from_slice(columns);
            of.values.extend_from_slice(values);
            of.row_ptr.push(of.columns.len() as u32);
        }
    }
    of
}

/// The vector of each unknown of this rank and of its ghosts; collective.
fn of_unknowns<K: Local>(
    k: &Distributed<K>,
    part: &Part,
    rows: &Rows,
    pieces: &Pieces,
) -> Result<Vectors, SetupFailure> {
    let (local, b) = (k.local(), part.block_size());
    let (own, places) = (part.own(), part.places());
    let coupled = local.on_host(|threads| vectors::coupled(threads, part.matrix(), places));
    let flags: Vec<f64> =
        coupled.iter().flat_map(|&is| std::iter::repeat_n(f64::from(u8::from(is)), b)).collect();
    // both are collective
    let halo = Halo::new(k, &rows.ghosts, b, |i| i);
    let made = halo.and_then(|halo| Ok((halo, local.vector(flags.len())?)));
    let ((halo, places), mut flagged) = k.together(made.map_err(SetupFailure::from))?;
    local.upload(&flags, &mut flagged);
    halo.start(local, &flagged);
    let of_block = |(row, coupled): (usize, bool)| {
        let first = pieces.vector(row);
        (0..b as u32).map(move |c| if coupled { first + c } else { NONE })
    };
    let blocks = own.start as usize..own.end as usize;
    let mut of: Vec<u32> = blocks.zip(coupled).flat_map(of_block).collect();
    let mut ghosts = vec![0.0; rows.ghosts.len() * b];
    halo.finish(local, |values| local.download(values, &mut ghosts));
    let coupled = |g: usize| ghosts[places[g] as usize * b] > 0.0;
    let all = rows.ghosts.iter().enumerate().map(|(g, &row)| (row as usize, coupled(g)));
    of.extend(all.flat_map(of_block));
    Ok(Vectors { of, count: pieces.vectors(), remarks: Vec::new() })
}

/// The rows of a rank, with the ghosts as columns behind its own.
fn with_ghosts(rows: &Rows) -> Result<Csr> {
    let (own, coupling) = (&rows.own, &rows.coupling);
    let n = own.rows();
    let (mut row_ptr, mut col_ind, mut values) = (vec![0_u32], Vec::new(), Vec::new());
    let mut next = 0;
    for i in 0..n {
        let (columns, entries) = own.row(i);
        col_ind.extend_from_slice(columns);
        values.extend_from_slice(entries);
        if coupling.rows.get(next) == Some(&(i as u32)) {
            let of = coupling.row_ptr[next] as usize..coupling.row_ptr[next + 1] as usize;
            col_ind.extend(coupling.columns[of.clone()].iter().map(|&g| n as u32 + g));
            values.extend_from_slice(&coupling.values[of]);
            next += 1;
        }
        row_ptr.push(col_ind.len() as u32);
    }
    let columns = n + rows.ghosts.len() * own.block_size();
    Csr::new(n, columns, row_ptr, col_ind, values)
}

/// E, of which each rank has the rows of its `counts` vectors, this one from `first` on; a vector without
/// unknowns has a row of the identity. Second, how many have some. Collective.
fn gathered<K: Local>(
    k: &Distributed<K>,
    own: &Csr,
    first: usize,
    counts: &[usize],
) -> Result<(Csr, usize), SetupFailure> {
    let communicator = k.communicator();
    let rank = communicator.rank();
    let mine = first..first + counts[rank];
    let lengths: Vec<f64> = mine.clone().map(|i| own.row(i).0.len() as f64).collect();
    let lengths = communicator.all_gather(&lengths, counts);
    let mut at = 0;
    let entries: Vec<usize> = counts
        .iter()
        .map(|&count| {
            at += count;
            lengths[at - count..at].iter().map(|&length| 2 * length as usize).sum()
        })
        .collect();
    let numbers = mine.flat_map(|i| {
        let (columns, values) = own.row(i);
        columns.iter().zip(values).flat_map(|(&j, &v)| [f64::from(j), v])
    });
    let all = communicator.all_gather(&numbers.collect::<Vec<_>>(), &entries);
    let (mut row_ptr, mut col_ind, mut values) = (vec![0_u32], Vec::new(), Vec::new());
    let (mut rest, mut used) = (&all[..], 0);
    for (i, &length) in lengths.iter().enumerate() {
        let (row, others) = rest.split_at(2 * length as usize);
        rest = others;
        if row.is_empty() {
            col_ind.push(i as u32);
            values.push(1.0);
        } else {
            used += 1;
            col_ind.extend(row.chunks_exact(2).map(|pair| pair[0] as u32));
            values.extend(row.chunks_exact(2).map(|pair| pair[1]));
        }
        row_ptr.push(col_ind.len() as u32);
    }
    let count = lengths.len();
    let e = Csr::new(count, count, row_ptr, col_ind, values).map_err(SetupFailure::from);
    Ok((k.together(e)?, used))
}

impl<K: Local> Projection<Distributed<K>> for SubdomainDeflation<K> {
    fn project(&self, k: &Distributed<K>, v: &mut K::Vector) {
        self.solve(k, v);
        let y = &self.scratch.borrow().y;
        match &self.az {
            Applied::Few(rows, _) => k.local().add_coupling(rows, -1.0, y, v),
            Applied::All(az, other) => {
                let other = &mut *other.borrow_mut();
                k.local().residual(az, y, v, other);
                std::mem::swap(v, other);
            }
        }
    }

    fn correct(&self, k: &Distributed<K>, r: &K::Vector, x: &mut K::Vector) {
        self.solve(k, r);
        self.correct_projected(k, x);
    }

    fn correct_projected(&self, k: &Distributed<K>, x: &mut K::Vector) {
        k.local().add_constants(&self.z, &self.scratch.borrow().y, x);
    }

    fn bytes(&self, k: &Distributed<K>) -> Bytes {
        let (local, z) = (k.local(), k.local().constants_bytes(&self.z));
        let az = match &self.az {
            Applied::Few(_, bytes) => Bytes { held: *bytes, moved: *bytes },
            Applied::All(az, _) => local.matrix_bytes(az),
        };
        k.bytes_of_all(Bytes {
            held: az.held + z.held,
            moved: z.moved + self.coarse.moved(local) + az.moved,
        })
    }
}

#[cfg(test)]
#[path = "subdomains_tests.rs"]
mod tests;
