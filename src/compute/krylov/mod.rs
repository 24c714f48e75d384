//! What a Krylov solver is given and what it leaves behind: the interface between methods that are written
//! over a backend's operations and those that a backend runs as one kernel.

pub mod stop;

use super::{Bytes, Operations};
use crate::base::choices::{Orthogonalisation, Side};
use crate::compute::preconditioner::Preconditioner;
pub use stop::{Monitor, SolveEnd, Stop};

/// A linear system on a backend, and where its preconditioner acts.
pub struct System<'a, K: Operations> {
    /// The matrix.
    pub a: &'a K::Matrix,
    /// The preconditioner.
    pub m: &'a dyn Preconditioner<K>,
    /// The right-hand side, of padded length; a multivector where there are several.
    pub b: &'a K::Vector,
    /// A' and M', where the solver asks for them.
    pub transposed: Option<Transposed<'a, K>>,
    /// Deflation, which conjugate gradients make part of the method.
    pub deflation: Option<&'a dyn Projection<K>>,
}

/// The transposed matrix and preconditioner: matrices and factors of their own, so that a product or
/// a solve with them is as fast as with A and M, and a backend needs no further operation.
pub struct Transposed<'a, K: Operations> {
    /// A'.
    pub a: &'a K::Matrix,
    /// M'.
    pub m: &'a dyn Preconditioner<K>,
}

/// The projection `P = I - A Z E^-1 Z'` of deflation with vectors Z and `E = Z' A Z`.
pub trait Projection<K: Operations> {
    /// `v = P v`.
    fn project(&self, k: &K, v: &mut K::Vector);
    /// `x = x + Z E^-1 Z' r`.
    fn correct(&self, k: &K, r: &K::Vector, x: &mut K::Vector);
    /// The same for the v that was projected last, as it was before.
    fn correct_projected(&self, k: &K, x: &mut K::Vector);
    /// Bytes held, and moved at least by one projection.
    fn bytes(&self, k: &K) -> Bytes;
}

/// What decides how a method runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Side of the preconditioner, where the method lets one choose.
    pub side: Side,
    /// Basis vectors of GMRES between restarts.
    pub restart: usize,
    /// Orthogonalisation of GMRES.
    pub orthogonalisation: Orthogonalisation,
    /// Part of a residual that a correction of iterative refinement may leave.
    pub inner_rtol: f64,
    /// Right-hand sides that are solved for at once: b and x have as many columns.
    pub columns: usize,
    /// When to stop.
    pub stop: Stop,
}

impl Settings {
    /// Basis vectors of GMRES unless a case says otherwise.
    pub(crate) const RESTART: usize = 20;
    /// What corrections leave unless a case says otherwise.
    pub(crate) const INNER_RTOL: f64 = 1e-3;

    /// The defaults, for one right-hand side.
    pub fn new(stop: Stop) -> Self {
        Self {
            side: Side::default(),
            restart: Self::RESTART,
            orthogonalisation: Orthogonalisation::default(),
            inner_rtol: Self::INNER_RTOL,
            columns: 1,
            stop,
        }
    }
}

/// A method of which a GPU has a kernel for a whole solve, `kernels/krylov/NAME.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Persistent {
    /// Its name, and the kernel's.
    pub name: &'static str,
    /// Vectors of a thread block's rows beside x.
    pub range_vectors: usize,
    /// Vectors that products read.
    pub product_vectors: usize,
    /// What ends its recurrence, as the kernel numbers it from 1.
    pub breakdowns: &'static [&'static str],
    /// Whether the method begins anew after a breakdown.
    pub restarts: bool,
    /// Whether it solves with triangular factors, not only with diagonal blocks.
    pub factors: bool,
    /// Threads of a block where products of long rows need more numbers on their way, if not as many as usual.
    pub long_row_threads: Option<u32>,
}

/// How a solve went.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Why it ended.
    pub end: SolveEnd,
    /// Iterations done.
    pub iterations: usize,
    /// Last monitored residual, relative to the initial one.
    pub residual: f64,
    /// What else there is to say, in a line.
    pub remark: Option<String>,
}

/// A method, set up for systems of one size on one backend.
///
/// `solve` starts from zero and leaves the solution in `x`. `monitor` is shown every iteration.
pub trait Solver<K: Operations> {
    /// Solves once.
    fn solve(
        &mut self,
        k: &K,
        system: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome;
}
