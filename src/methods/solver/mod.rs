//! Krylov methods and the stationary correction, written once over the [`Backend`] trait.

mod bicgstab;
mod cg;
mod correction;
mod gmres;
mod orthogonality;
mod projections;
mod qmr;

use crate::base::error::Result;
use crate::base::setting::Setting;
use crate::compute::Backend;
use crate::compute::krylov::{Settings, Solver};
pub use gmres::MAX_RESTART;

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
