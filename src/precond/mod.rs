//! Preconditioners, written once over the [`Backend`] trait.

mod bilu;
mod fgbilu;
mod jacobi;
mod none;

use std::sync::Arc;

use crate::backend::{Backend, Breakdown, Bytes, SingularBlock};
use crate::case::Case;
use crate::error::Error;
use crate::matrix::Csr;
use crate::result::record::FactorSize;
use crate::symbolic::{FillPattern, TooLarge};

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
    fn refactor(&mut self, _k: &K, _a: &Csr, _shift: f64) -> Result<(), Breakdown> {
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
    /// The backend failed.
    Backend(Error),
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

/// Result of a setup.
pub type Ready<K> = Result<Box<dyn Preconditioner<K>>, Failure>;

macro_rules! registry {
    ($($name:literal, $module:ident, $summary:literal;)*) => {
        /// Preconditioners by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($name, $summary)),*];

        /// The setup of the preconditioner called `name`.
        pub fn lookup<K: Backend + 'static>(name: &str) -> Option<fn(Setup<K>) -> Ready<K>> {
            match name {
                $($name => Some($module::setup::<K>),)*
                _ => None,
            }
        }
    };
}

/// Whether the preconditioner called `name`, set up on A', is the transpose of the one set up on A.
pub fn transposes(name: &str) -> bool {
    matches!(name, "none" | "jacobi" | "bilu")
}

registry! {
    "none", none, "no preconditioner";
    "jacobi", jacobi, "block Jacobi: inverse of the diagonal blocks";
    "bilu", bilu, "block ILU(k) by level of fill";
    "fgbilu", fgbilu, "block ILU(0) of a seven-point grid in wavefront order, without pivoting";
}
