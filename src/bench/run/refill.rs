//! Rows of a system that the first rank has as a whole, with their owners. Where each value goes is found once for a
//! pattern: new values follow the same ways.

use super::divided::{Arranged, Divided, Exactly, Places};
use crate::base::error::Result;
use crate::case::Case;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::part::{Part, numbers};
use crate::matrix::Csr;

/// What a rank keeps of how a system was arranged.
pub(super) struct Kept {
    /// Its rows, with values of before.
    part: Part,
    moves: bool,
    inner: Option<Vec<u32>>,
    exactly: Option<Exactly>,
    /// Of each rank the entries and the unknowns of the source that it has; on the first.
    sources: Vec<[Vec<u32>; 2]>,
}

/// The values of a system in the order of the source, which the first rank has.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) a: &'a Csr,
    pub(super) b: &'a [f64],
    pub(super) guess: Option<&'a [f64]>,
}

impl Kept {
    /// Of a system whose entries and right-hand side name themselves, as [`numbered`](crate::compute::distributed::part::numbered)
    /// ones do; collective.
    pub(super) fn new(communicator: &dyn Communicator, arranged: Arranged) -> Self {
        let Arranged { part, rhs, places: Places { moves, inner, .. }, exactly, .. } = arranged;
        let own = [numbers(part.matrix().values()), numbers(&rhs)];
        let of_rank = |rank| {
            [0, 1].map(|which| {
                let make = &mut || bytemuck::cast_slice(&own[which]).to_vec();
                bytemuck::pod_collect_to_vec(&communicator.collect(rank, make))
            })
        };
        let sources = (0..communicator.size()).map(of_rank).collect();
        Self { part, moves, inner, exactly, sources }
    }

    /// The system with the values of `source`, which the first rank has, of one pattern with those of before;
    /// collective.
    ///
    /// # Errors
    /// Where a rank would have no rows.
    pub(super) fn filled<'a>(
        &self,
        communicator: &dyn Communicator,
        divided: &'a Divided,
        case: &Case,
        source: Option<Source>,
    ) -> Result<Arranged<'a>> {
        let layout = Layout::new(&divided.starts, case.block_size, communicator.size())?;
        let mut values = communicator.scatter_numbers(&mut |rank| {
            let Source { a, b, guess } = source.expect("the first rank has it");
            let [entries, unknowns] = &self.sources[rank];
            let mut values = Vec::with_capacity(entries.len() + 2 * unknowns.len());
            values.extend(entries.iter().map(|&at| a.values()[at as usize]));
            for vector in [Some(b), guess].into_iter().flatten() {
                values.extend(unknowns.iter().map(|&at| vector[at as usize]));
            }
            values
        });
        let mut rhs = values.split_off(self.part.matrix().nnz());
        let guess = rhs.split_off(self.part.unknowns().len());
        Ok(Arranged {
            layout,
            part: self.part.with_all_values(values),
            rhs,
            guess: Some(guess).filter(|guess| !guess.is_empty()),
            places: Places { divided, moves: self.moves, inner: self.inner.clone() },
            exactly: self.exactly.clone(),
        })
    }
}
