//! Preconditioners, written once over the [`Backend`] trait.

mod approximate;
mod bilu;
mod chebyshev;
mod diagonal;
mod fgbilu;
mod fsai;
mod ic;
mod isai;
mod jacobi;
mod mcilu;
mod mcsgs;
mod meilu;
mod none;
pub mod options;
mod ordered;
mod scratch;
mod spai;
mod sweeps;
mod tns;
mod work;

use std::sync::Arc;

use crate::backend::{Backend, Breakdown, Bytes, SingularBlock};
use crate::case::{Case, Setting};
use crate::error::{Error, Result};
use crate::matrix::{Asymmetry, Csr};
use crate::result::record::FactorSize;
use crate::symbolic::{FillPattern, TooLarge};
use options::{Options, Parameter};
use work::Phased;
pub use work::{Work, work};

/// A set-up preconditioner: `z = M^-1 r`.
pub trait Preconditioner<K: Backend> {
    /// Applies it.
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector);

    /// Takes over the values of `a`, which has the pattern of the matrix of the setup: the numeric
    /// phase alone, with `shift` as in [`Backend::ilu_factor`].
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted, or the factors cannot be stored; then there are none
    /// to apply.
    fn refactor(&mut self, _k: &K, _a: &Arc<Csr>, _shift: f64) -> Result<(), Breakdown> {
        Ok(())
    }

    /// `r = b - A x`, with the product of `a` or with one of the preconditioner's own.
    fn residual(&self, k: &K, a: &K::Matrix, x: &K::Vector, b: &K::Vector, r: &mut K::Vector) {
        k.residual(a, x, b, r);
    }

    /// What it is to a backend that applies it within a kernel of its own.
    fn form(&self) -> Form<'_, K> {
        Form::Other
    }

    /// Bytes held, and moved by one application.
    fn bytes(&self, _k: &K) -> Bytes {
        Bytes::default()
    }

    /// Bytes that the numeric phase must move at least; 0 without one.
    fn numeric_bytes(&self, _k: &K) -> usize {
        0
    }

    /// Seconds of the factorisation on the device alone; `None` where the numeric phase is nothing
    /// else.
    fn numeric_kernel_seconds(&self, _k: &K) -> Option<f64> {
        None
    }

    /// Sizes for the record.
    fn size(&self, _k: &K, _matrix_blocks: usize) -> FactorSize {
        FactorSize::default()
    }
}

/// What a preconditioner is made of.
pub enum Form<'a, K: Backend> {
    /// M = I.
    Identity,
    /// Block ILU factors, of a diagonal pattern for block Jacobi.
    Factors(&'a K::BlockIlu),
    /// Something else.
    Other,
}

/// Why a preconditioner could not be set up.
#[derive(Debug)]
pub enum Failure {
    /// There are no factors of these values.
    Breakdown(Breakdown),
    /// A diagonal block of a grid has no pivot where elimination does not exchange rows.
    NoPivot {
        /// The block.
        block: SingularBlock,
        /// Subscripts (i, j, k) of its point, from 1.
        subscripts: [usize; 3],
    },
    /// The factors would need more memory than there is.
    TooLarge {
        /// Where that was seen.
        at: TooLarge,
        /// Bytes needed up to there.
        needed: usize,
        /// Bytes free.
        free: usize,
    },
    /// Bytes asked for and bytes there are.
    OutOfMemory {
        /// Bytes needed.
        needed: usize,
        /// Bytes free.
        free: usize,
    },
    /// There is no such preconditioner of these values, for the reason given.
    Broken(String),
    /// The backend failed.
    Backend(Error),
}

impl From<Breakdown> for Failure {
    fn from(why: Breakdown) -> Self {
        Self::Breakdown(why)
    }
}

impl From<Asymmetry> for Failure {
    fn from(found: Asymmetry) -> Self {
        Self::Backend(Error::input(found.to_string()))
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Backend(e)
    }
}

/// What a setup works on and where it reports its phases.
pub struct Setup<'a, K: Backend> {
    /// The backend.
    pub k: &'a K,
    /// The matrix, padded to a multiple of the block size.
    pub a: &'a Arc<Csr>,
    /// Parameters.
    pub case: &'a Case,
    /// Clock of the phases; also tells the user what is being done.
    pub phases: &'a mut dyn Phases,
}

impl<K: Backend> Setup<'_, K> {
    /// The parameters of the case's preconditioner.
    fn options(&self) -> Result<Options> {
        let (_, options) = read(&self.case.precond)?;
        Ok(options)
    }
}

/// A phase of the setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Pattern of the factors; values are not touched.
    Symbolic,
    /// Schedules and storage.
    Analysis,
    /// Values of the factors.
    Numeric,
}

/// Told when a phase begins; a phase lasts until the next begins or the setup returns.
pub trait Phases {
    /// The phase begins now, all earlier work of the backend being done.
    fn begin(&mut self, phase: Phase);

    /// The pattern of the factors, where an earlier case has worked it out; the running phase is
    /// charged with the time that took.
    fn known_pattern(&mut self) -> Option<Arc<FillPattern>> {
        None
    }

    /// The running phase has worked out the pattern of the factors: later cases may have it.
    fn found_pattern(&mut self, _pattern: &Arc<FillPattern>) {}
}

/// Told to nobody.
impl Phases for () {
    fn begin(&mut self, _: Phase) {}
}

/// Result of a setup.
pub type Ready<K> = Result<Box<dyn Preconditioner<K>>, Failure>;

/// What a preconditioner is: what it is called, what it can do and which settings it uses.
struct Method {
    name: &'static str,
    /// A line about it.
    summary: &'static str,
    parameters: &'static [Parameter],
    /// Settings that change something; the case has others that do not.
    uses: &'static [Setting],
    takes: Takes,
    /// Whether it is a symmetric operator where A is.
    symmetric: fn(&Options) -> bool,
    /// Whether, set up on A', it is the transpose of the one set up on A: not the least squares of the
    /// columns of A, nor a polynomial whose interval comes from its rows.
    transposable: bool,
    work: Phased,
}

/// Matrices that a preconditioner takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Any.
    Any,
    /// Symmetric ones.
    Symmetric,
    /// Those of seven points on a box.
    Grid,
}

macro_rules! registry {
    ($($module:ident)*) => {
        const METHODS: &[Method] = &[$($module::METHOD),*];

        /// Preconditioners by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($module::METHOD.name, $module::METHOD.summary)),*];

        /// The setup of the preconditioner that `spec` names.
        pub fn lookup<K: Backend + 'static>(spec: &str) -> Option<fn(Setup<K>) -> Ready<K>> {
            let name = name(spec);
            $(if name == $module::METHOD.name {
                return Some($module::setup::<K>);
            })*
            None
        }
    };
}

registry! {
    none jacobi bilu fgbilu ic mcilu mcsgs meilu spai fsai tns chebyshev isai sweeps
}

/// The name in `name:key=value,key=value`.
pub fn name(spec: &str) -> &str {
    spec.split_once(':').map_or(spec, |(name, _)| name)
}

/// What `spec` names.
fn method(spec: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name(spec))
}

/// What `spec` names, and its parameters.
fn read(spec: &str) -> Result<(&'static Method, Options)> {
    let text = spec.split_once(':').map_or("", |(_, text)| text);
    let method = method(spec).ok_or_else(|| {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        Error::unknown("preconditioner", name(spec), &names)
    })?;
    Ok((method, Options::parse(method.name, method.parameters, text)?))
}

/// `spec` as it is always written: parameters in their order, without those that have their defaults.
///
/// # Errors
/// Names the preconditioner or the parameter that there is not, or that is out of range.
pub fn canonical(spec: &str) -> Result<String> {
    let (method, options) = read(spec)?;
    let text = options.text(method.parameters);
    Ok(if text.is_empty() { method.name.to_owned() } else { format!("{}:{text}", method.name) })
}

/// `spec` with all its parameters, those that have their defaults too; what is not known stays as it is.
pub fn stated(spec: &str) -> String {
    match read(spec) {
        Ok((method, options)) if !method.parameters.is_empty() => {
            format!("{}:{}", method.name, options.all())
        }
        _ => spec.to_owned(),
    }
}

/// Every preconditioner with its parameters.
pub fn described() -> impl Iterator<Item = (&'static str, &'static [Parameter])> {
    METHODS.iter().map(|method| (method.name, method.parameters))
}

/// What `all` stands for: one of each kind that takes any matrix, and for the kinds of which the paper
/// or its library has several, those.
pub const ALL: &[&str] = &[
    "jacobi",
    "bilu",
    "ic",
    "mcilu",
    "mcilu:p=1",
    "mcsgs",
    "meilu",
    "meilu:last=sgs",
    "meilu:last=ilu",
    "spai:symmetric=yes",
    "fsai",
    "fsai:power=2",
    "tns",
    "tns:form=explicit",
    "chebyshev",
    "isai",
    "sweeps",
];

/// Whether the preconditioner that `spec` names is a symmetric operator where A is; an unknown one is none.
pub fn symmetric(spec: &str) -> bool {
    read(spec).is_ok_and(|(method, options)| (method.symmetric)(&options))
}

/// Whether the preconditioner that `spec` names, set up on A', is the transpose of the one set up on A; an
/// unknown one is not.
pub fn transposable(spec: &str) -> bool {
    method(spec).is_some_and(|method| method.transposable)
}

/// Matrices that the preconditioner called `spec` takes; those that an unknown one takes are not known.
pub fn takes(spec: &str) -> Option<Takes> {
    method(spec).map(|method| method.takes)
}

/// Whether the preconditioner that `spec` names says that it uses a setting; `None` where it is unknown.
pub fn uses(spec: &str, setting: Setting) -> Option<bool> {
    method(spec).map(|method| method.uses.contains(&setting))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
