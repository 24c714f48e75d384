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
mod file;
pub mod generator;
mod layered;
mod obstacle;
mod permeability;
mod poisson3d;
mod reservoir;
mod rhs;
mod source;
mod splitmix;
mod stencil;

use std::sync::Arc;

use crate::case::ReadAs;
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::cache::Cache;

pub(crate) use file::stem;
pub use file::{Folders, own_rhs_path};
pub(crate) use file::{located, located_rhs};
pub(crate) use rhs::RANDOM_SEED;
pub use rhs::right_hand_side;
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
    /// The same system without the entries that are stored although they are zero.
    #[must_use]
    pub fn without_zeros(mut self) -> Self {
        let dropped = self.matrix.values().iter().filter(|&&v| v == 0.0).count();
        if dropped > 0 {
            self.matrix = Arc::new(self.matrix.without_zeros());
            self.remarks.push(format!("{dropped} stored zeros dropped"));
        }
        self
    }
}

/// Loads or generates the system that `spec` names.
///
/// `spec` is a generator with its size (`poisson3d:60`, `poisson3d:60x50x40`), a catalogue name
/// (`parabolic_fem`), a path (`a.mtx`, `a.mtx.gz`) or `-` for standard input. With [`ReadAs::AsStored`] the matrix is the
/// lower triangle of a symmetric one.
///
/// # Errors
/// When there is no such source, it is broken, not square, or [`ReadAs::AsStored`] is asked of a
/// source without symmetry.
pub fn load(spec: &str, read_as: ReadAs) -> Result<Problem> {
    let folders = Folders::from_env();
    Source::find(spec, &folders)?.load(read_as, &Cache::from_env())
}
