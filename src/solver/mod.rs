//! Krylov methods and the stationary correction, written once over the [`Backend`] trait.

mod bicgstab;
mod cg;
mod correction;
mod gmres;
mod orthogonality;
mod projections;
mod qmr;
pub mod stop;

use crate::backend::Backend;
use crate::case::{Orthogonalisation, Side};
use crate::deflation::Deflation;
use crate::error::Result;
use crate::precond::Preconditioner;
#[cfg(feature = "cuda")]
pub(crate) use bicgstab::BREAKDOWNS as BICGSTAB_BREAKDOWNS;
#[cfg(feature = "cuda")]
pub(crate) use cg::CYCLE;
pub use gmres::MAX_RESTART;
#[cfg(feature = "cuda")]
pub(crate) use qmr::BREAKDOWNS as QMR_BREAKDOWNS;
pub use stop::{End, Monitor, Stop};

/// A linear system on a backend, and where its preconditioner acts.
pub struct System<'a, K: Backend> {
    /// The matrix.
    pub a: &'a K::Matrix,
    /// The preconditioner.
    pub m: &'a dyn Preconditioner<K>,
    /// The right-hand side, of padded length.
    pub b: &'a K::Vector,
    /// A' and M', where the solver asks for them (see [`needs_transposed`]).
    pub transposed: Option<Transposed<'a, K>>,
    /// Deflation, which conjugate gradients make part of the method.
    pub deflation: Option<&'a Deflation<K>>,
}

/// The transposed matrix and preconditioner: matrices and factors of their own, so that a product or
/// a solve with them is as fast as with A and M, and a backend needs no further operation.
pub struct Transposed<'a, K: Backend> {
    /// A'.
    pub a: &'a K::Matrix,
    /// M'.
    pub m: &'a dyn Preconditioner<K>,
}

/// Whether the solver called `name` needs [`System::transposed`].
pub fn needs_transposed(name: &str) -> bool {
    name == "qmr"
}

/// Whether the solver called `name` lets one choose the side of the preconditioner.
pub fn has_sides(name: &str) -> bool {
    matches!(name, "gmres" | "qmr")
}

/// Whether the solver called `name` has its iterations replayed (see [`Backend::replay`]).
pub fn replays(name: &str) -> bool {
    matches!(name, "bicgstab" | "qmr")
}

/// Steps of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Products with A or A'.
    pub products: usize,
    /// Applications of the preconditioner or its transpose.
    pub applications: usize,
    /// Inner products and norms.
    pub dots: usize,
    /// Vector updates and scalings.
    pub updates: usize,
}

/// Steps of an iteration of the solver called `name`, where it is always the same.
pub fn steps(name: &str) -> Option<Steps> {
    let new = |products, applications, dots, updates| {
        Some(Steps { products, applications, dots, updates })
    };
    match name {
        "bicgstab" => new(2, 2, 5, 6),
        "qmr" => new(2, 2, 5, 10),
        _ => None,
    }
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
    /// When to stop.
    pub stop: Stop,
}

/// How a solve went.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
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
pub trait Solver<K: Backend> {
    /// Solves once.
    fn solve(
        &mut self,
        k: &K,
        system: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome;
}

/// Makes a solver's work vectors for order n.
type Build<K> = fn(&K, &Settings, usize) -> Result<Box<dyn Solver<K>>>;

macro_rules! registry {
    ($($name:literal, $module:ident :: $type:ident, $summary:literal;)*) => {
        /// Solvers by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($name, $summary)),*];

        /// The constructor of the solver called `name`.
        pub fn lookup<K: Backend + 'static>(name: &str) -> Option<Build<K>> {
            match name {
                $($name => Some(|k, s, n| Ok(Box::new($module::$type::new(k, s, n)?))),)*
                _ => None,
            }
        }
    };
}

registry! {
    "gmres", gmres::Gmres, "restarted GMRES(m), left or right preconditioned";
    "bicgstab", bicgstab::BiCgStab, "BiCGStab, right preconditioned";
    "cg", cg::Cg, "preconditioned conjugate gradients, deflated or not, for symmetric positive definite systems";
    "qmr", qmr::Qmr, "quasi-minimal residuals, left or right preconditioned; uses A' and M' too";
    "correction", correction::Correction, "iterative correction x += M^-1 (b - A x), any preconditioner";
}
