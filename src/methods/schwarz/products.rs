//! Preconditioners of the whole matrix on ranks that consist of products with sparse matrices. Each rank makes its rows
//! of these matrices from its rows of A and those near them: they are those of one device.

use std::sync::Arc;

use super::{Renewed, principal, with_overlap};
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::compute::Bytes;
use crate::compute::distributed::matrix::{Matrix, Rows};
use crate::compute::distributed::part::{Builder, Part};
use crate::compute::distributed::{Distributed, Local};
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::matrix::Csr;
use crate::methods::precond::products::{Make, Operator, Stored, inverse_diagonal};
use crate::methods::precond::{self, Kept, Phase, Phases, Ready, Settings, Setup};
use crate::symbolic::scalar_order;

/// A preconditioner of products of a rank.
pub struct OfProducts<K: Local> {
    m: Box<dyn Preconditioner<Distributed<K>>>,
    /// Of each block row of the part its number in the given order, where that is another.
    given: Option<Arc<[u64]>>,
}

/// The rows that tell those of a rank, in the given order.
struct Near {
    a: Arc<Csr>,
    /// Of each block row its place in the part.
    places: Vec<u32>,
}

impl Near {
    /// Those at most `reach` couplings away.
    fn new(part: &Part, reach: usize, given: Option<&[u64]>) -> Result<Self> {
        let (mine, b) = (part.places(), part.block_size());
        let own = mine.start as u32..mine.end as u32;
        let mut inside = vec![false; part.blocks()];
        let mut places = with_overlap(part.matrix(), own.clone(), reach, &mut inside);
        let mut a = principal(part.matrix(), &places, own)?;
        if let Some(given) = given {
            let mut order: Vec<u32> = (0..places.len() as u32).collect();
            order.sort_unstable_by_key(|&at| given[places[at as usize] as usize]);
            a = a.permuted(&scalar_order(&order, b)).in_blocks(b);
            places = order.into_iter().map(|at| places[at as usize]).collect();
        }
        Ok(Self { a: Arc::new(a), places })
    }

    /// The rows of this rank of a matrix that has the rows and columns of A.
    fn own(&self, m: &Csr, part: &Part) -> Result<Part> {
        let (mine, b) = (part.places(), part.block_size());
        let number =
            |at: usize| part.number(self.places[at / b] as usize) * b as u64 + (at % b) as u64;
        let mut rows = Builder::new(part.own(), b);
        let own = |at: &usize| mine.contains(&(self.places[*at] as usize));
        for row in (0..self.places.len()).filter(own).flat_map(|at| at * b..(at + 1) * b) {
            let (columns, values) = m.row(row);
            let columns = columns.iter().map(|&column| number(column as usize));
            rows.push(number(row), columns.zip(values.iter().copied()));
        }
        rows.finish(u64::MAX)
    }
}

/// `D^-1` of a rank.
struct Diagonal<K: Local>(Box<dyn Preconditioner<K>>);

impl<K: Local> Preconditioner<Distributed<K>> for Diagonal<K> {
    fn apply(&self, k: &Distributed<K>, r: &K::Vector, z: &mut K::Vector) {
        self.0.apply(k.local(), r, z);
    }

    fn bytes(&self, k: &Distributed<K>) -> Bytes {
        k.bytes_of_all(self.0.bytes(k.local()))
    }
}

/// What a rank has made of its rows.
struct OfRank<K: Local> {
    matrices: Vec<Rows>,
    mirrored: bool,
    diagonal: Option<Diagonal<K>>,
    largest: f64,
}

impl<K: Local + 'static> OfProducts<K> {
    /// Sets up what `settings` name, which consists of products, for `part` with as many layers of rows around its own
    /// as `precond::reach` says. `given` are the numbers of all block rows of the part in the given order,
    /// where that is another. Whether A is symmetric is not asked. Collective.
    ///
    /// # Errors
    /// When there is no such preconditioner; the other ranks do not hear of it.
    pub fn new(
        k: &Distributed<K>,
        part: &Part,
        given: Option<&Arc<[u64]>>,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Self, SetupFailure> {
        let m = set_up(k, part, given.map(|given| &**given), settings, phases)?;
        Ok(Self { m, given: given.cloned() })
    }
}

fn set_up<K: Local + 'static>(
    k: &Distributed<K>,
    part: &Part,
    given: Option<&[u64]>,
    settings: &Settings,
    phases: &mut dyn Phases,
) -> Ready<Distributed<K>> {
    let spec = &settings.precond;
    let (make, apply) = precond::of_products(spec).expect("one of products");
    let options = settings.options()?;
    let of_rank = of_rank(k, part, (make, given), settings, phases);
    // what follows is collective
    let OfRank { mut matrices, mirrored, diagonal, largest } = k.together(of_rank)?;
    let last = matrices.last().filter(|_| mirrored);
    matrices.extend(last.map(|rows| rows.transposed(&**k.communicator(), k.layout())));
    let stored: Vec<Result<_>> = matrices.iter().map(|rows| stored(k, rows)).collect();
    let stored = Stored {
        operators: stored.into_iter().collect::<Result<_>>()?,
        diagonal: diagonal.map(|diagonal| Box::new(diagonal) as _),
        largest: k.communicator().largest(largest),
        unknowns: part.unknowns().len(),
        options,
    };
    apply(k, stored)
}

/// A matrix of which this rank has rows, as it is multiplied by; collective, also where it fails.
fn stored<K: Local>(k: &Distributed<K>, rows: &Rows) -> Result<Operator<Distributed<K>>> {
    let entries = k.sum((rows.own.nnz() + rows.coupling.values.len()) as f64) as usize;
    Ok(Operator::of(Matrix::new(k, rows, Format::Auto)?, entries))
}

/// The rows of this rank of the matrices.
fn of_rank<K: Local + 'static>(
    k: &Distributed<K>,
    part: &Part,
    (make, given): (Make<K>, Option<&[u64]>),
    settings: &Settings,
    phases: &mut dyn Phases,
) -> Result<OfRank<K>, SetupFailure> {
    let (local, rank) = (k.local(), k.communicator().rank());
    let reach = precond::reach(&settings.precond).expect("one of products");
    let near = Near::new(part, reach, given)?;
    let number = |place: usize| given.map_or_else(|| part.number(place), |given| given[place]);
    // that of all rows is known: a row that is cut may have no large entry left
    let settings = &Settings { symmetry_tolerance: f64::INFINITY, ..settings.clone() };
    let mut setup = Setup { k: local, a: &near.a, settings, phases };
    let made = make(&mut setup)
        .map_err(|why| renumbered(why, k, |at| number(near.places[at] as usize)))?;
    phases.begin(Phase::Analysis);
    let rows = |m: &K::Sparse| -> Result<Rows, SetupFailure> {
        SetupFailure::check_memory(12 * local.entries(m), local.memory_free())?;
        let own = near.own(&local.to_host(m)?, part)?;
        Ok(Rows::of(&own, k.layout(), rank)?)
    };
    let matrices = made.matrices.iter().map(rows).collect::<Result<_, _>>()?;
    let mine = part.places();
    let diagonal = made.diagonal.then(|| {
        let own = mine.start as u32..mine.end as u32;
        let a = principal(part.matrix(), &own.clone().collect::<Vec<u32>>(), own)?;
        inverse_diagonal(local, &a).map_err(|why| renumbered(why, k, |at| number(mine.start + at)))
    });
    let diagonal = diagonal.transpose()?.map(Diagonal);
    Ok(OfRank { matrices, mirrored: made.mirrored, diagonal, largest: made.largest })
}

/// With the number that the row of a breakdown has in the given order.
fn renumbered<K: Local>(
    why: SetupFailure,
    k: &Distributed<K>,
    number: impl Fn(usize) -> u64,
) -> SetupFailure {
    match why {
        SetupFailure::Breakdown(what) => what.renumbered(|row| number(row) as usize).into(),
        SetupFailure::Broken(what) if k.layout().ranks() > 1 => {
            let rank = k.communicator().rank();
            SetupFailure::Broken(format!("{what}, counted in the rows that rank {rank} knows"))
        }
        other => other,
    }
}

impl<K: Local + 'static> Renewed<K> for OfProducts<K> {
    fn renew(
        &mut self,
        k: &Distributed<K>,
        part: &Part,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Kept, SetupFailure> {
        self.m = set_up(k, part, self.given.as_deref(), settings, phases)?;
        Ok(Kept::Nothing)
    }
}

impl<K: Local> Preconditioner<Distributed<K>> for OfProducts<K> {
    fn apply(&self, k: &Distributed<K>, r: &K::Vector, z: &mut K::Vector) {
        self.m.apply(k, r, z);
    }

    fn bytes(&self, k: &Distributed<K>) -> Bytes {
        self.m.bytes(k)
    }

    fn size(&self, k: &Distributed<K>) -> FactorSize {
        self.m.size(k)
    }
}

#[cfg(test)]
#[path = "products_tests.rs"]
mod tests;
