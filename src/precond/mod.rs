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
use crate::case::Case;
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

/// A preconditioner that a case may name.
struct Entry {
    name: &'static str,
    parameters: &'static [Parameter],
    work: Phased,
}

macro_rules! registry {
    ($($name:literal, $module:ident, $parameters:expr, $summary:literal;)*) => {
        /// Preconditioners by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($name, $summary)),*];

        const ENTRIES: &[Entry] = &[$(Entry {
            name: $name,
            parameters: $parameters,
            work: $module::WORK,
        }),*];

        /// The setup of the preconditioner that `spec` names.
        pub fn lookup<K: Backend + 'static>(spec: &str) -> Option<fn(Setup<K>) -> Ready<K>> {
            match name(spec) {
                $($name => Some($module::setup::<K>),)*
                _ => None,
            }
        }
    };
}

/// The name in `name:key=value,key=value`.
pub fn name(spec: &str) -> &str {
    spec.split_once(':').map_or(spec, |(name, _)| name)
}

/// What `spec` names.
fn entry(spec: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name(spec))
}

/// What `spec` names, and its parameters.
fn read(spec: &str) -> Result<(&'static Entry, Options)> {
    let text = spec.split_once(':').map_or("", |(_, text)| text);
    let entry = entry(spec).ok_or_else(|| {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        Error::unknown("preconditioner", name(spec), &names)
    })?;
    Ok((entry, Options::parse(entry.name, entry.parameters, text)?))
}

/// `spec` as it is always written: parameters in their order, without those that have their defaults.
///
/// # Errors
/// Names the preconditioner or the parameter that there is not, or that is out of range.
pub fn canonical(spec: &str) -> Result<String> {
    let (entry, options) = read(spec)?;
    let text = options.text(entry.parameters);
    Ok(if text.is_empty() { entry.name.to_owned() } else { format!("{}:{text}", entry.name) })
}

/// Every preconditioner with its parameters.
pub fn described() -> impl Iterator<Item = (&'static str, &'static [Parameter])> {
    ENTRIES.iter().map(|entry| (entry.name, entry.parameters))
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

/// Whether the preconditioner that `spec` names is a symmetric operator where A is.
pub fn symmetric(spec: &str) -> bool {
    name(spec) != "spai" || read(spec).is_ok_and(|(_, options)| options.word("symmetric") == "yes")
}

/// Whether the preconditioner that `spec` names, set up on A', is the transpose of the one set up on A:
/// not the least squares of the columns of A, nor a polynomial whose interval comes from its rows.
pub fn transposes(spec: &str) -> bool {
    !matches!(name(spec), "spai" | "chebyshev" | "fgbilu")
}

registry! {
    "none", none, &[], "no preconditioner";
    "jacobi", jacobi, &[], "block Jacobi: inverse of the diagonal blocks";
    "bilu", bilu, &[], "block ILU(k) by level of fill";
    "fgbilu", fgbilu, &[], "block ILU(0) of a seven-point grid in wavefront order, without pivoting";
    "ic", ic, &[], "incomplete Cholesky by level of fill, kept as L D L'; symmetric matrices";
    "mcilu", mcilu, mcilu::PARAMETERS, "multicolour block ILU(p,q) by the power(q)-pattern method";
    "mcsgs", mcsgs, mcsgs::PARAMETERS, "multicolour symmetric Gauss-Seidel, SSOR with omega";
    "meilu", meilu, meilu::PARAMETERS, "multi-elimination ILU with maximal independent sets";
    "spai", spai, spai::PARAMETERS, "sparse approximate inverse: least |A M - I| on the pattern of A";
    "fsai", fsai, fsai::PARAMETERS, "factorised sparse approximate inverse G' G of definite matrices";
    "tns", tns, tns::PARAMETERS, "truncated Neumann series of the triangles of A";
    "chebyshev", chebyshev, chebyshev::PARAMETERS, "Chebyshev polynomial of D^-1 A";
    "isai", isai, &[], "block ILU(k) with incomplete sparse approximate inverses of its triangles";
    "sweeps", sweeps, sweeps::PARAMETERS, "block ILU(k) with triangles solved by Jacobi sweeps";
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
