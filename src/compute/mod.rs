//! Where vectors, matrices and factors live and who computes on them.
//!
//! Solvers and preconditioners are written once, over [`Backend`]. Krylov scalars stay in
//! [`Slot`]s on the backend, so that a step of a method needs no answer from the device; reading a
//! slot is the only point of synchronisation.

pub mod backends;
pub mod clock;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod dilu;
pub mod distributed;
pub mod krylov;
pub mod multivectors;
pub mod platform;
pub mod preconditioner;
pub mod products;
pub mod scalar;
pub mod setup;
pub mod single;
pub mod trisolve;
pub mod tune;
pub mod vectors;

use std::sync::Arc;

use crate::base::choices::{Execution, FactorPrecision, FgbiluStyle, LevelRule};
use crate::base::error::{Error, Result};
use crate::base::parse::choice_name;
use crate::matrix::Csr;
use crate::matrix::pattern::TooLarge;
use crate::symbolic::{FillPattern, GridPattern, Schedule};
pub use backends::{
    NAMES, RankDevice, RankVisitor, Visitor, available, compile_seconds, on_gpu, with,
};
pub(crate) use backends::{
    has_multivectors, has_threads, has_trisolves, over_ranks, sets_up_rows, spares_threads,
    with_threads,
};
pub use clock::{Alone, Clock};
pub use dilu::{DiluFactors, Eisenstat};
use krylov::{Persistent, Settings, Solver, System};
pub use multivectors::Multivectors;
pub use platform::Platform;
pub use products::{Products, Storage};
pub use scalar::Step;
pub use setup::SetupOps;
use single::SingleVisitor;
pub use trisolve::Trisolve;
pub use vectors::Vectors;

/// Index of a scalar that lives on the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u16);

impl Slot {
    /// The slot `i` places behind this one.
    #[must_use]
    pub(crate) fn plus(self, i: usize) -> Self {
        Self(self.0 + i as u16)
    }
}

/// Number of slots every backend holds.
pub(crate) const SLOTS: usize = 1024;

/// A coefficient of a vector operation: a number of the host or one that stays on the backend.
///
/// A zero denominator gives zero: a method that has just met the exact solution must not be
/// destroyed by 0/0 before the host sees it. Methods check their denominators when they read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coef {
    /// A number known to the host.
    Host(f64),
    /// The value of a slot.
    Slot(Slot),
    /// One over the value of a slot.
    Reciprocal(Slot),
    /// First slot over second.
    Ratio(Slot, Slot),
    /// Minus first slot over second.
    NegRatio(Slot, Slot),
}

impl Coef {
    /// 1.
    pub(crate) const ONE: Self = Self::Host(1.0);
    /// 0: the operand is not read.
    pub(crate) const ZERO: Self = Self::Host(0.0);
}

/// A block of the factorisation that cannot be inverted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SingularBlock {
    /// Block row, from 0.
    pub row: usize,
    /// Row within the block at which elimination found no pivot.
    pub within: usize,
    /// Largest candidate pivot, relative to the largest entry of its row in the block.
    pub pivot: f64,
    /// Whether the diagonal is not even in the pattern.
    pub absent: bool,
}

impl std::fmt::Display for SingularBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.absent {
            write!(f, "zero pivot: block row {} has no diagonal entry", self.row)
        } else {
            write!(f, "singular diagonal block in block row {}", self.row)
        }
    }
}

/// Why there are no factors to apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Breakdown {
    /// A diagonal block cannot be inverted.
    Singular(SingularBlock),
    /// A number of this block row (from 0) is too large for float32, in which the factors are to be
    /// stored, or the inverse of its diagonal block would lose a row there.
    Range {
        /// Block row, from 0.
        row: usize,
    },
}

impl From<SingularBlock> for Breakdown {
    fn from(block: SingularBlock) -> Self {
        Self::Singular(block)
    }
}

impl Breakdown {
    /// The same where block rows have other numbers.
    #[must_use]
    pub(crate) fn renumbered(self, number: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Singular(block) => SingularBlock { row: number(block.row), ..block }.into(),
            Self::Range { row } => Self::Range { row: number(row) },
        }
    }
}

impl std::fmt::Display for Breakdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Singular(block) => block.fmt(f),
            Self::Range { row } => {
                write!(f, "block row {row} of the factors leaves the range of float32")
            }
        }
    }
}

/// Least bytes an operation moves, and bytes it keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Bytes held in memory.
    pub held: usize,
    /// Bytes one application must read and write at least.
    pub moved: usize,
}

impl Bytes {
    /// Solves with factors `L D U'` in the order of their pattern, whose blocks take `values` bytes: factors and indices
    /// once, r read, z written and, between both triangles, read and written again; D and two vectors where it is all.
    #[must_use]
    pub fn of_factors(pattern: &FillPattern, values: usize) -> Self {
        let (held, vector) = (values + pattern.bytes(), 8 * pattern.rows() * pattern.block_size());
        let diagonal = pattern.blocks() == pattern.rows();
        let moved = if diagonal { values + 2 * vector } else { held + 4 * vector };
        Self { held, moved }
    }
}

/// What says how stable solves with factors `L D U'` are, in the scales of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TriangleNorms {
    /// `|L^-1 e|`, the largest magnitude.
    pub lower: f64,
    /// `|(D U')^-1 e|`.
    pub upper: f64,
    /// The largest magnitude in `D U'`.
    pub growth: f64,
}

/// What factors say of themselves.
pub trait FactorInfo {
    /// Seconds of the last factorisation on the device alone, by its own clock: without the values'
    /// way to the device and without what the solves make of the factors. `None` where
    /// [`ilu_factor`](Factors::ilu_factor) does nothing else.
    fn factor_seconds(&self) -> Option<f64> {
        None
    }
    /// Pattern of the factors.
    fn pattern(&self) -> &FillPattern;
    /// Bytes of one application.
    fn bytes(&self) -> Bytes;
    /// Variant of the triangular solves; on a GPU never [`Trisolve::AUTO`].
    fn trisolve(&self) -> Trisolve;
    /// Parts of the blocks in each precision, where blocks differ.
    fn precisions(&self) -> Option<String> {
        None
    }
    /// Why the solves are done in this way, in a line, where the backend chose it: what a model or a
    /// measurement says of it and of the others. A measurement is made by the first
    /// [`ilu_factor`](Factors::ilu_factor), and may change the variant.
    fn trisolve_reason(&self) -> Option<&str> {
        None
    }
    /// Levels of the forward and the backward solve.
    fn levels(&self) -> [usize; 2];
}

/// Block ILU factors `L D U'` with unit diagonals of L and U'.
pub trait Factors: SetupOps + Executions {
    /// The pattern of block ILU(k) of the blocks of `a`, of at most `limit` entries of L and U, where the backend
    /// finds it; the host does where this is none.
    ///
    /// # Errors
    /// When the backend fails; the inner one when `limit` is passed.
    fn ilu_pattern(
        &self,
        _a: &Csr,
        _fill: usize,
        _rule: LevelRule,
        _limit: usize,
    ) -> Result<Option<Result<Arc<FillPattern>, TooLarge>>> {
        Ok(None)
    }
    /// Prepares factors on a pattern: schedules and storage, no values. Solves read the factors in
    /// `precision`; all arithmetic is in float64.
    fn ilu_analyse(
        &self,
        pattern: &Arc<FillPattern>,
        trisolve: Trisolve,
        precision: FactorPrecision,
    ) -> Result<Self::BlockIlu>;
    /// The same for factors whose row i is block row `sets.rows[i]` of the vectors that they are applied
    /// to: factors of `P A P'` that solve in the order of A. The rows of a set are not coupled.
    fn ilu_analyse_in_order(
        &self,
        pattern: &Arc<FillPattern>,
        sets: &Schedule,
        trisolve: Trisolve,
        precision: FactorPrecision,
    ) -> Result<Self::BlockIlu>;
    /// Numeric factorisation of `a` on the pattern (Yang et al., Algorithms 4 and 5), then the
    /// split `U = D U'` (equation 5). Entries of `a` outside the pattern are dropped. `shift` is
    /// added to the diagonal, relative to the largest diagonal entry of `a`.
    fn ilu_factor(
        &self,
        ilu: &mut Self::BlockIlu,
        a: &Csr,
        shift: f64,
    ) -> std::result::Result<(), Breakdown>;
    /// The same of a matrix that a setup has made.
    fn ilu_factor_made(
        &self,
        ilu: &mut Self::BlockIlu,
        a: &Self::Sparse,
        shift: f64,
    ) -> std::result::Result<(), Breakdown>;
    /// Variant of triangular solves with few levels of many rows each, as colours make them.
    fn coloured_trisolve(&self) -> Trisolve {
        Trisolve::AUTO
    }
    /// Inverse diagonal blocks of the factors, column-major, on the host; waits.
    ///
    /// # Errors
    /// Where the factors are not ours.
    fn ilu_inverse_diagonal(&self, ilu: &Self::BlockIlu) -> Result<Vec<f64>>;
    /// Norms of both triangles, where the backend has them on the host. `rows` and `columns` are the largest magnitudes
    /// by which the matrix is thought to be divided.
    fn ilu_triangle_norms(
        &self,
        _ilu: &Self::BlockIlu,
        _rows: &[f64],
        _columns: &[f64],
    ) -> Option<TriangleNorms> {
        None
    }
    /// `z = (L D U')^-1 r` (Yang et al., Algorithm 7).
    fn ilu_apply(&self, ilu: &Self::BlockIlu, r: &Self::Vector, z: &mut Self::Vector);
    /// Prepares DILU on the pattern of a matrix: order and storage, no values. `None` where there is no such thing
    /// here.
    fn dilu_analyse(&self, _pattern: &Arc<FillPattern>) -> Option<Box<dyn DiluFactors<Self>>>
    where
        Self: Backend + Sized,
    {
        None
    }
    /// Prepares FGBILU on a grid: order and storage, no values.
    fn fgbilu_analyse(
        &self,
        grid: &Arc<GridPattern>,
        style: FgbiluStyle,
    ) -> Result<Box<dyn DiluFactors<Self>>>
    where
        Self: Backend + Sized;
}

/// How the operations of a Krylov method are executed.
pub trait Executions: Vectors {
    /// Pattern, schedule and values of block ILU factors `L D U'` with unit diagonals of L and U', which a
    /// kernel of a whole solve applies, too.
    type BlockIlu: FactorInfo;
    /// Operations that were recorded to be replayed.
    type Recording: Default;
    /// Executes the operations that follow as a case asks for.
    ///
    /// # Errors
    /// When the backend has no such execution.
    fn execute(&self, execution: Execution) -> Result<()> {
        match execution {
            Execution::Fused => Ok(()),
            other => Err(no_execution(other, "the backend computes on a CPU")),
        }
    }
    /// Iterations that a method should do between looks at its residual, 1 or an even number, at most
    /// [`AT_ONCE`].
    fn iterations_at_once(&self) -> usize {
        1
    }
    /// Does `work`, whose operations are the same on the same operands at every call with
    /// `recording`, which is new at first: they may be recorded and replayed. `work` reads nothing.
    fn replay(&self, _recording: &mut Self::Recording, work: &mut dyn FnMut()) {
        work();
    }
    /// What `visitor` makes of the backend in float32 that belongs to this one; `None` where there is none for such
    /// a matrix.
    ///
    /// # Errors
    /// Those of the visitor.
    fn in_single<V: SingleVisitor<Self>>(
        &self,
        _a: &Self::Matrix,
        _visitor: V,
    ) -> Result<Option<V::Output>>
    where
        Self: Operations + Sized,
    {
        Ok(None)
    }
    /// Operations on several vectors at once, where there are such.
    fn multivectors(&self) -> Option<&dyn Multivectors<Self>>
    where
        Self: Operations + Sized,
    {
        None
    }
    /// `method` as one kernel for `system`, in place of what is written over the operations of a
    /// backend: an outcome and, but for rounding, iterates are the same.
    ///
    /// # Errors
    /// When there is none for the preconditioner or the format.
    fn in_kernel(
        &self,
        _method: &'static Persistent,
        _settings: &Settings,
        _system: &System<Self>,
    ) -> Result<Box<dyn Solver<Self>>>
    where
        Self: Operations + Sized,
    {
        Err(no_execution(Execution::Persistent, "the backend computes on a CPU"))
    }
}

/// What Krylov methods are written over: on one device, or on many ranks.
pub trait Operations: Platform + Clock + Vectors + Products + Executions {}

impl<K: Platform + Clock + Vectors + Products + Executions> Operations for K {}

/// A device that computes: what setups of preconditioners are written over, too.
pub trait Backend: Operations + Storage + SetupOps + Factors {}

impl<K: Operations + Storage + SetupOps + Factors> Backend for K {}

/// Most iterations between looks at a residual.
pub const AT_ONCE: usize = 16;

/// The error of an execution that is not to be had, with the reason.
pub(crate) fn no_execution(execution: Execution, reason: &str) -> Error {
    let name = choice_name(&execution);
    Error::input(format!("there is no execution `{name}` here: {reason}"))
}
