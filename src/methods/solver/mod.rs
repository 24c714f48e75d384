//! Krylov methods and the stationary correction, written once over the [`Operations`] trait.

pub(crate) mod bicgstab;
mod block;
mod block_cg;
mod block_gmres;
mod block_least_squares;
mod cg;
mod correction;
mod delayed;
pub(crate) mod gmres;
mod gmres_ir;
mod gram;
mod idr;
mod least_squares;
mod orthogonality;
mod pipelined_bicgstab;
mod pipelined_cg;
mod projections;
pub(crate) mod qmr;
mod replacement;

use crate::base::choices::{Execution, Orthogonalisation, Side};
use crate::base::error::Result;
use crate::base::external::external;
use crate::base::setting::Setting;
use crate::compute::krylov::{Persistent, Settings, Solver, System};
use crate::compute::{Operations, Slot, no_execution};
use crate::methods::precond::{Shape, bilu};
pub(crate) use gmres::MAX_RESTART;

/// What a solver is: what it is called, what it needs, what it can do and which settings it uses.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// A line about it.
    summary: &'static str,
    /// Settings that change something; the case has others that do not.
    uses: &'static [Setting],
    /// Whether matrix and preconditioner must be symmetric.
    symmetric: bool,
    /// Whether it needs [`System::transposed`](crate::compute::krylov::System::transposed).
    transposed: bool,
    /// Whether it solves for several right-hand sides at once.
    several: bool,
    /// Whether deflation is a part of the method; to others both levels are one preconditioner.
    deflates: bool,
    /// Whether it monitors M^-1 (b - A x) where the preconditioner is on the left, not b - A x.
    monitors_preconditioned: bool,
    /// Whether each iteration computes b - A x anew: the time of that is recorded.
    recomputes_residual: bool,
    /// Whether it begins anew where its recurrence has broken down.
    begins_anew: bool,
    /// Whether its iterations are replayed (see [`Executions::replay`](crate::compute::Executions::replay)).
    replays: bool,
    /// Its kernel for a whole solve, where a GPU has one.
    persistent: Option<&'static Persistent>,
    /// Steps of an iteration, where it is always the same.
    steps: Option<Steps>,
    /// What an iteration moves where that depends on the restart, by the settings `restart` and `orthogonalisation`
    /// and by the iterations made.
    moves: fn(usize, Orthogonalisation, usize) -> Option<Moves>,
    /// Most vectors that it and its system hold, by the setting `restart`.
    vectors: fn(usize) -> usize,
    advised: Advised,
    /// Preconditioners, block sizes and fill levels with which its numbers of iterations on a backend are
    /// compared with those of one CPU thread; the first alone in a quick comparison.
    compared: &'static [Compared],
}

/// A preconditioner, a block size and a fill level.
pub(crate) type Compared = (&'static str, usize, usize);

/// Place among the solvers that `advise` tries, from 0, for systems that may be definite, others that are
/// symmetric, and all others.
struct Advised {
    definite: Option<u8>,
    symmetric: Option<u8>,
    general: Option<u8>,
}

impl Method {
    /// What most are.
    const PLAIN: Self = Self {
        name: "",
        summary: "",
        uses: &[],
        symmetric: false,
        transposed: false,
        several: false,
        deflates: false,
        monitors_preconditioned: false,
        recomputes_residual: false,
        begins_anew: false,
        replays: false,
        persistent: None,
        steps: None,
        moves: |_, _, _| None,
        vectors: |_| 10,
        advised: Advised { definite: None, symmetric: None, general: None },
        compared: &[(bilu::METHOD.name, 1, 0)],
    };
}

/// The solver called `name`.
fn method(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Whether the solver called `name` says that it uses a setting; `None` where it is unknown. One of a peer uses
/// none of ours.
pub fn uses(name: &str, setting: Setting) -> Option<bool> {
    if external(name).is_some() {
        return Some(false);
    }
    method(name).map(|method| method.uses.contains(&setting))
}

/// Whether the solver called `name` needs a symmetric matrix and a symmetric preconditioner.
pub(crate) fn needs_symmetric(name: &str) -> bool {
    method(name).is_some_and(|method| method.symmetric)
}

/// Whether the solver called `name` needs [`System::transposed`](crate::compute::krylov::System::transposed).
pub(crate) fn needs_transposed(name: &str) -> bool {
    method(name).is_some_and(|method| method.transposed)
}

/// Whether the solver called `name` solves for several right-hand sides at once.
pub fn several(name: &str) -> bool {
    method(name).is_some_and(|method| method.several)
}

/// The solvers that do.
pub(crate) fn of_several() -> impl Iterator<Item = &'static str> {
    METHODS.iter().filter(|method| method.several).map(|method| method.name)
}

/// Whether the solver called `name` has its iterations replayed (see [`Executions::replay`](crate::compute::Executions::replay)).
pub fn replays(name: &str) -> bool {
    method(name).is_some_and(|method| method.replays)
}

/// Most vectors that the solver called `name` and its system hold.
pub fn vectors(name: &str, restart: usize) -> usize {
    method(name).map_or(0, |method| (method.vectors)(restart))
}

/// Whether the solver called `name` makes deflation a part of itself.
pub fn deflates(name: &str) -> bool {
    method(name).is_some_and(|method| method.deflates)
}

/// Whether the solver called `name` monitors M^-1 (b - A x) with the preconditioner on that side.
pub(crate) fn monitors_preconditioned(name: &str, side: Side) -> bool {
    side == Side::Left && method(name).is_some_and(|method| method.monitors_preconditioned)
}

/// Whether each iteration of the solver called `name` computes b - A x anew.
pub(crate) fn recomputes_residual(name: &str) -> bool {
    method(name).is_some_and(|method| method.recomputes_residual)
}

/// Whether the solver called `name` begins anew where its recurrence has broken down.
pub(crate) fn begins_anew(name: &str) -> bool {
    method(name).is_some_and(|method| method.begins_anew)
}

/// Whether the solver called `name` runs as one kernel of a GPU with a preconditioner of that shape.
pub(crate) fn is_persistent(name: &str, shape: Shape) -> bool {
    let persistent = method(name).and_then(|method| method.persistent);
    persistent.is_some_and(|kernel| match shape {
        Shape::Identity | Shape::Diagonal => true,
        Shape::Triangles => kernel.factors,
        Shape::Other => false,
    })
}

/// The solvers that a GPU has as one kernel.
pub fn persistent() -> impl Iterator<Item = &'static Persistent> {
    METHODS.iter().filter_map(|method| method.persistent)
}

/// The solver called `name` as one kernel; see [`Executions::in_kernel`](crate::compute::Executions::in_kernel).
///
/// # Errors
/// When there is none for the solver, the preconditioner or the format.
pub fn in_kernel<K: Operations>(
    name: &str,
    k: &K,
    settings: &Settings,
    system: &System<K>,
) -> Result<Box<dyn Solver<K>>> {
    let Some(kernel) = persistent().find(|kernel| kernel.name == name) else {
        let names: Vec<String> = persistent().map(|kernel| format!("`{}`", kernel.name)).collect();
        return Err(no_execution(
            Execution::Persistent,
            &format!("it has {}", names.join(" and ")),
        ));
    };
    k.in_kernel(kernel, settings, system)
}

/// Solvers that `advise` tries for systems that may be definite, or are symmetric or not, in that order.
pub fn advised(maybe_definite: bool, symmetric: bool) -> Vec<&'static str> {
    let place = |Advised { definite, symmetric: indefinite, general }: &Advised| {
        if maybe_definite {
            *definite
        } else if symmetric {
            *indefinite
        } else {
            *general
        }
    };
    let tried = METHODS.iter().filter_map(|method| Some((place(&method.advised)?, method.name)));
    let mut tried: Vec<(u8, &str)> = tried.collect();
    tried.sort_by_key(|(place, _)| *place);
    tried.into_iter().map(|(_, name)| name).collect()
}

/// What every solver is compared with.
pub(crate) fn compared() -> impl Iterator<Item = (&'static str, &'static [Compared])> {
    METHODS.iter().map(|method| (method.name, method.compared))
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
    /// Vectors that inner products and updates read and write.
    pub vectors: usize,
}

/// What an iteration moves, in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moves {
    /// Products with A or A'.
    pub products: f64,
    /// Applications of the preconditioner or its transpose.
    pub applications: f64,
    /// Vectors that are read and written beside these.
    pub vectors: f64,
}

/// Steps of an iteration of the solver called `name`, where it is always the same.
pub fn steps(name: &str) -> Option<Steps> {
    method(name)?.steps
}

/// What an iteration of the solver called `name` moves, by the settings `restart` and `orthogonalisation` and by the
/// iterations made; `None` where that is not known.
pub fn moves(name: &str, restart: usize, by: Orthogonalisation, made: usize) -> Option<Moves> {
    let method = method(name)?;
    let of_steps = |steps: Steps| Moves {
        products: steps.products as f64,
        applications: steps.applications as f64,
        vectors: steps.vectors as f64,
    };
    method.steps.map(of_steps).or_else(|| (method.moves)(restart, by, made))
}

/// The norm of a vector, read from `slot`.
fn norm<K: Operations>(k: &K, x: &K::Vector, slot: Slot) -> f64 {
    let mut found = [0.0];
    k.norm(x, slot);
    k.read(slot, &mut found);
    found[0]
}

/// Reads slots from `first` on. Where the host need not wait for that, `work` of the next iteration is begun meanwhile if it
/// is `wanted`; whether it was.
fn read_meanwhile<K: Operations>(
    k: &K,
    first: Slot,
    out: &mut [f64],
    wanted: bool,
    work: impl FnOnce(),
) -> bool {
    let begins = wanted && k.reads_meanwhile();
    if begins {
        k.begin_read(first, out.len());
        work();
        k.end_read(first, out);
    } else {
        k.read(first, out);
    }
    begins
}

/// So many vectors of `n` numbers.
fn vectors_of<K: Operations, const N: usize>(k: &K, n: usize) -> Result<[K::Vector; N]> {
    let made = (0..N).map(|_| k.vector(n)).collect::<Result<Vec<_>>>()?;
    Ok(made.try_into().unwrap_or_else(|_| unreachable!("as many as asked for")))
}

/// Sets x to zero and r to its residual; the norm of r.
fn from_zero<K: Operations>(
    k: &K,
    s: &System<K>,
    x: &mut K::Vector,
    r: &mut K::Vector,
    slot: Slot,
) -> f64 {
    k.fill(x, 0.0);
    k.copy(s.b, r);
    norm(k, r, slot)
}

/// Makes a solver for systems of so many unknowns.
pub(crate) type Build<K> = fn(&K, &Settings, usize) -> Result<Box<dyn Solver<K>>>;

macro_rules! registry {
    ($($module:ident :: $type:ident)*) => {
        const METHODS: &[Method] = &[$($module::METHOD),*];

        /// Solvers by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($module::METHOD.name, $module::METHOD.summary)),*];

        /// The constructor of the solver called `name`.
        pub fn lookup<K: Operations + 'static>(name: &str) -> Option<Build<K>> {
            $(if name == $module::METHOD.name {
                return Some(|k, s, n| Ok(Box::new($module::$type::new(k, s, n)?)));
            })*
            None
        }
    };
}

registry! {
    gmres::Gmres bicgstab::BiCgStab cg::Cg idr::Idr qmr::Qmr correction::Correction
    pipelined_cg::PipelinedCg pipelined_bicgstab::PipelinedBiCgStab gmres_ir::GmresIr
    block_cg::BlockCg block_gmres::BlockGmres
}

#[cfg(test)]
mod block_tests;
#[cfg(test)]
mod meanwhile_tests;
