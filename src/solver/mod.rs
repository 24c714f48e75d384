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
use crate::case::{Orthogonalisation, Setting, Side};
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

/// What a solver is: what it is called, what it needs and which settings it uses.
struct Method {
    name: &'static str,
    /// A line about it.
    summary: &'static str,
    /// Settings that change something; the case has others that do not.
    uses: &'static [Setting],
    /// Whether matrix and preconditioner must be symmetric.
    symmetric: bool,
    /// Whether it needs [`System::transposed`].
    transposed: bool,
    /// Whether its iterations are replayed (see [`Backend::replay`]).
    replays: bool,
    /// Steps of an iteration, where it is always the same.
    steps: Option<Steps>,
    /// Most vectors that it and its system hold, by the setting `restart`.
    vectors: fn(usize) -> usize,
}

/// The solver called `name`.
fn method(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Whether the solver called `name` says that it uses a setting; `None` where it is unknown.
pub fn uses(name: &str, setting: Setting) -> Option<bool> {
    method(name).map(|method| method.uses.contains(&setting))
}

/// Whether the solver called `name` needs a symmetric matrix and a symmetric preconditioner.
pub fn needs_symmetric(name: &str) -> bool {
    method(name).is_some_and(|method| method.symmetric)
}

/// Whether the solver called `name` needs [`System::transposed`].
pub fn needs_transposed(name: &str) -> bool {
    method(name).is_some_and(|method| method.transposed)
}

/// Whether the solver called `name` has its iterations replayed (see [`Backend::replay`]).
pub fn replays(name: &str) -> bool {
    method(name).is_some_and(|method| method.replays)
}

/// Most vectors that the solver called `name` and its system hold.
pub fn vectors(name: &str, restart: usize) -> usize {
    method(name).map_or(0, |method| (method.vectors)(restart))
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
    method(name)?.steps
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
    ($($module:ident :: $type:ident)*) => {
        const METHODS: &[Method] = &[$($module::METHOD),*];

        /// Solvers by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($module::METHOD.name, $module::METHOD.summary)),*];

        /// The constructor of the solver called `name`.
        pub fn lookup<K: Backend + 'static>(name: &str) -> Option<Build<K>> {
            $(if name == $module::METHOD.name {
                return Some(|k, s, n| Ok(Box::new($module::$type::new(k, s, n)?)));
            })*
            None
        }
    };
}

registry! {
    gmres::Gmres bicgstab::BiCgStab cg::Cg qmr::Qmr correction::Correction
}
