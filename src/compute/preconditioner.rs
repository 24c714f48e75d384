//! What a preconditioner is to a solver and to a backend.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Breakdown, Bytes, Eisenstat, Operations, SingularBlock};
use crate::base::error::Error;
use crate::compute::Trisolve;
use crate::matrix::pattern::TooLarge;
use crate::matrix::{Asymmetry, Csr};
use crate::symbolic::FillPattern;

/// A set-up preconditioner: `z = M^-1 r`.
pub trait Preconditioner<K: Operations> {
    /// Applies it.
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector);

    /// `z = M^-1 r` and `az = A z`.
    fn apply_then_multiply(
        &self,
        k: &K,
        a: &K::Matrix,
        r: &K::Vector,
        z: &mut K::Vector,
        az: &mut K::Vector,
    ) {
        if let Some(both) = self.eisenstat() {
            both.apply_then_multiply(k, r, z, az);
        } else {
            self.apply(k, r, z);
            k.spmv(a, z, az);
        }
    }

    /// Solves that multiply by A on their way, where there are such.
    fn eisenstat(&self) -> Option<&dyn Eisenstat<K>> {
        None
    }

    /// Takes over the values of `a`, which has the pattern of the matrix of the setup: the numeric
    /// phase alone, with `shift` as in [`Factors::ilu_factor`](crate::compute::Factors::ilu_factor).
    /// Where there is no such phase nothing is done, and the answer says so.
    ///
    /// # Errors
    /// Those of the setup; then there is nothing to apply.
    fn refactor(&mut self, _k: &K, _a: &Arc<Csr>, _shift: f64) -> Result<Renewal, SetupFailure> {
        Ok(Renewal::Setup(None))
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

    /// Sizes for the record; their share of the matrix is left to the caller.
    fn size(&self, _k: &K) -> FactorSize {
        FactorSize::default()
    }
}

/// A preconditioner of other values than those of the matrix beside it: what it knows of its own matrix is not used.
pub struct Lagged<'a, K: Operations>(pub &'a dyn Preconditioner<K>);

impl<K: Operations> Preconditioner<K> for Lagged<'_, K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.0.apply(k, r, z);
    }

    fn form(&self) -> Form<'_, K> {
        self.0.form()
    }

    fn bytes(&self, k: &K) -> Bytes {
        self.0.bytes(k)
    }

    fn size(&self, k: &K) -> FactorSize {
        self.0.size(k)
    }
}

/// How a preconditioner comes to new values on the pattern of the old ones.
#[must_use]
#[derive(Debug)]
pub enum Renewal {
    /// It has them.
    Done,
    /// By a setup, which may take this pattern of the factors as known.
    Setup(Option<Arc<FillPattern>>),
}

/// What a preconditioner is made of.
pub enum Form<'a, K: Operations> {
    /// M = I.
    Identity,
    /// Block ILU factors, of a diagonal pattern for block Jacobi.
    Factors {
        /// These.
        ilu: &'a K::BlockIlu,
        /// Whether U' is the transpose of L, to rounding.
        symmetric: bool,
    },
    /// Something else.
    Other,
}

/// Why a preconditioner could not be set up.
#[derive(Debug)]
pub enum SetupFailure {
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
    /// Another rank failed, and says why.
    Elsewhere,
    /// The backend failed.
    Backend(Error),
}

impl SetupFailure {
    /// Refuses what needs more bytes than are free.
    pub(crate) fn check_memory(needed: usize, free: usize) -> Result<(), Self> {
        if needed > free { Err(Self::OutOfMemory { needed, free }) } else { Ok(()) }
    }
}

impl From<Breakdown> for SetupFailure {
    fn from(why: Breakdown) -> Self {
        Self::Breakdown(why)
    }
}

impl From<Asymmetry> for SetupFailure {
    fn from(found: Asymmetry) -> Self {
        Self::Backend(Error::input(found.to_string()))
    }
}

impl From<Error> for SetupFailure {
    fn from(e: Error) -> Self {
        Self::Backend(e)
    }
}

/// Size and parallelism of the factors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FactorSize {
    /// Blocks of L, D and U together.
    pub factor_blocks: Option<usize>,
    /// Scalar entries of the factors: blocks times block size squared.
    pub factor_entries: Option<usize>,
    /// Factor blocks over matrix blocks.
    pub fill_ratio: Option<f64>,
    /// Levels of the L solve.
    pub levels_lower: Option<usize>,
    /// Levels of the U solve.
    pub levels_upper: Option<usize>,
    /// Mean block rows per level of the L solve.
    pub rows_per_level: Option<f64>,
    /// Variant of the triangular solves; empty where there is no choice (on a CPU) or no triangle.
    pub trisolve_used: Option<Trisolve>,
    /// Why, where the backend chose it: the times that it measured or expects of this variant and others.
    pub trisolve_reason: Option<String>,
    /// Parts of the factors' blocks in each precision, where blocks differ.
    #[serde(default)]
    pub factor_precisions: Option<String>,
    /// Deflation vectors in use.
    #[serde(default)]
    pub deflation_vectors: Option<usize>,
    /// Multiple of the diagonal that a search added to it.
    #[serde(default)]
    pub shift_used: Option<f64>,
}

/// Whether factors are fit for use, of the matrix with rows and columns scaled to largest magnitudes of 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FactorQuality {
    /// The smallest pivot; for blocks the least `1 / |D_i^-1|`.
    #[serde(default)]
    pub smallest_pivot: Option<f64>,
    /// `|M^-1 e|`, the largest magnitude.
    #[serde(default)]
    pub condest: Option<f64>,
    /// `|L^-1 e|`.
    #[serde(default)]
    pub lower_condest: Option<f64>,
    /// `|(D U')^-1 e|`.
    #[serde(default)]
    pub upper_condest: Option<f64>,
    /// Largest magnitude of `D U'`.
    #[serde(default)]
    pub growth: Option<f64>,
}

impl FactorQuality {
    /// The same without what is no number: files hold finite numbers alone.
    #[must_use]
    pub fn finite(self) -> Self {
        let finite = |v: Option<f64>| v.filter(|v| v.is_finite());
        let Self { smallest_pivot, condest, lower_condest, upper_condest, growth } = self;
        Self {
            smallest_pivot: finite(smallest_pivot),
            condest: finite(condest),
            lower_condest: finite(lower_condest),
            upper_condest: finite(upper_condest),
            growth: finite(growth),
        }
    }
}
