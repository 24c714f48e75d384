//! Linear systems: generators, files and the SuiteSparse catalogue, right-hand sides.

mod blockpoisson3d;
mod bubbly;
pub mod catalogue;
mod channel3d;
mod convdiff3d;
mod diffusion;
pub mod download;
mod fem_p1;
mod field;
pub(crate) mod file;
mod folders;
pub mod generator;
pub mod generators;
pub mod info;
mod layered;
mod obstacle;
mod permeability;
mod poisson3d;
mod reservoir;
pub(crate) mod rhs;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod sequence;
pub(crate) mod several;
mod source;
mod splitmix;
mod stencil;

use std::sync::Arc;

use crate::base::choices::ReadAs;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::cache::Cache;
use crate::symbolic::ordering::{Ordering, reordered};

pub(crate) use file::stem;
pub(crate) use file::{located, located_rhs};
pub use folders::Folders;
pub use rhs::{right_hand_side, right_hand_sides};
pub use source::Source;

/// A linear system `A x = b` as a source yields it.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Short name for tables (`poisson3d:60`, `nornebox_b3`).
    pub name: String,
    /// The matrix, square.
    pub matrix: Arc<Csr>,
    /// Grid dimensions, x fastest, when the source knows them.
    pub grid: Option<[usize; 3]>,
    /// Right-hand side that came with the matrix.
    pub own_rhs: Option<Vec<f64>>,
    /// Remarks a reader of the results needs (a twin used, duplicates summed, ...).
    pub remarks: Vec<String>,
}

impl Problem {
    /// The old number of each unknown in another order ([`Ordering::order`]).
    ///
    /// # Errors
    /// When the system has no such order.
    pub fn order(&self, ordering: Ordering, block_size: usize) -> Result<Vec<u32>> {
        ordering.order(&self.matrix.in_blocks(block_size), self.grid)
    }

    /// The same system with its unknowns in another `order` (see [`Ordering::order`]); its own
    /// right-hand side likewise. The grid is lost.
    ///
    /// # Panics
    /// If `order` is no permutation of the unknowns.
    #[must_use]
    pub(crate) fn reordered(&self, order: &[u32]) -> Self {
        Self {
            name: self.name.clone(),
            matrix: self.matrix.permuted_on(Threads::Pool, order).into(),
            grid: None,
            own_rhs: self.own_rhs.as_ref().map(|b| reordered(b, order)),
            remarks: self.remarks.clone(),
        }
    }

    /// The same system without the entries that are stored although they are zero.
    #[must_use]
    pub fn without_zeros(mut self) -> Self {
        let dropped = self.matrix.values().iter().filter(|&&v| v == 0.0).count();
        if dropped > 0 {
            self.matrix = Arc::new(self.matrix.without_zeros());
        }
        self.remarks.extend(self::dropped(dropped));
        self
    }
}

/// The remark on entries that were stored although they are zero.
pub(crate) fn dropped(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{count} stored zeros dropped"))
}

/// Loads or generates the system that `spec` names.
///
/// `spec` is a generator with its size (`poisson3d:60`, `poisson3d:60x50x40`), a catalogue name
/// (`parabolic_fem`), a path (`a.mtx`, `a.mtx.gz`, `a.npz`) or `-` for standard input. With [`ReadAs::AsStored`] the matrix is the
/// lower triangle of a symmetric one.
///
/// # Errors
/// When there is no such source, it is broken, not square, or [`ReadAs::AsStored`] is asked of a
/// source without symmetry.
pub fn load(spec: &str, read_as: ReadAs) -> Result<Problem> {
    let folders = Folders::from_env();
    Source::find(spec, &folders)?.load(read_as, &Cache::from_env())
}
