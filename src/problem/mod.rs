//! Linear systems: generators, files and the SuiteSparse catalogue, right-hand sides.

use std::sync::Arc;

use crate::case::ReadAs;
use crate::error::Result;
use crate::matrix::Csr;

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

/// Loads or generates the system that `spec` names.
///
/// `spec` is a generator with its size (`poisson3d:60`, `poisson3d:60x50x40`), a catalogue name
/// (`parabolic_fem`) or a path (`a.mtx`, `a.mtx.gz`).
pub fn load(spec: &str, read_as: ReadAs) -> Result<Problem> {
    let _ = (spec, read_as);
    todo!("written by the matrix part")
}

/// The right-hand side that `spec` names (see [`crate::case::Case::rhs`]), of length n.
pub fn right_hand_side(problem: &Problem, spec: &str) -> Result<Vec<f64>> {
    let _ = (problem, spec);
    todo!("written by the matrix part")
}
