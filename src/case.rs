//! One case of a sweep: every setting of a run.

mod setting;

use serde::{Deserialize, Serialize};

pub use crate::base::choices::{
    Execution, FactorPrecision, FgbiluStyle, Format, Guess, LevelRule, MAX_FILL, Orthogonalisation,
    Partition, ReadAs, RunKind, Scaling, Side, Zeros,
};
pub(crate) use crate::base::choices::{MAX_BLOCK_SIZE, MAX_SUBDOMAINS};
use crate::base::external::external;
pub use crate::base::refactor::Refactor;
pub use crate::base::setting::Setting;
pub use crate::base::shift::Shift;
pub use crate::compute::Trisolve;
use crate::compute::krylov;
use crate::matrix::SYMMETRY_TOLERANCE;
use crate::methods::{deflation, precond, schwarz, solver};
pub use crate::symbolic::ordering::Ordering;

/// One run: a matrix, a right-hand side, a preconditioned solver and where it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Case {
    /// Matrix: a generator (`poisson3d:60`), a catalogue name or a file.
    pub matrix: String,
    /// The sequence of which the matrix is a step, as it was named; empty for none.
    #[serde(default)]
    pub sequence: String,
    /// How a symmetric file is read.
    pub read_as: ReadAs,
    /// Treatment of explicitly stored zeros.
    #[serde(default)]
    pub zeros: Zeros,
    /// Ordering of the unknowns, applied to matrix and right-hand side.
    #[serde(default, alias = "reorder")]
    pub ordering: Ordering,
    /// Scaling of rows and columns, before anything is computed.
    #[serde(default)]
    pub scaling: Scaling,
    /// Right-hand side: `ones`, `a-ones`, `random`, `random:SEED`, `file:PATH` or `own` (beside the matrix); several at
    /// once as `random*COUNT`, or from a file with several columns.
    pub rhs: String,
    /// Unknowns per block, at least 1.
    pub block_size: usize,
    /// What is run: solves or products alone.
    #[serde(default)]
    pub kind: RunKind,
    /// Preconditioner: a name in the registry, with parameters as in `mcilu:p=1,q=2`.
    pub precond: String,
    /// Fill level k of ILU(k).
    pub fill: usize,
    /// Update rule of the fill level.
    pub level_rule: LevelRule,
    /// Diagonal shift before the factorisation.
    pub shift: Shift,
    /// Blocks of ILU(k) below this part of the norm of their row are dropped.
    #[serde(default)]
    pub drop_tolerance: f64,
    /// Deflation vectors, the second level.
    #[serde(default)]
    pub deflation: deflation::Choice,
    /// Solver, a name in the registry.
    pub solver: String,
    /// Side of the preconditioner.
    pub side: Side,
    /// Basis vectors of GMRES between restarts.
    pub restart: usize,
    /// Orthogonalisation of GMRES.
    pub orthogonalisation: Orthogonalisation,
    /// Part of a residual that a correction of iterative refinement may leave.
    #[serde(default = "inner_rtol")]
    pub inner_rtol: f64,
    /// Converged when the monitored residual is at most `rtol` times its initial value.
    pub rtol: f64,
    /// Iteration limit.
    pub max_iterations: usize,
    /// Largest difference of entries (i, j) and (j, i), relative as in [`crate::matrix::Asymmetry`], that methods for
    /// symmetric matrices accept as rounding.
    #[serde(default = "symmetry_tolerance")]
    pub symmetry_tolerance: f64,
    /// Where the solves of a sequence start.
    #[serde(default)]
    pub guess: Guess,
    /// Steps of a sequence whose preconditioner is made of their own values.
    #[serde(default)]
    pub refactor: Refactor,
    /// Storage format of the product.
    pub format: Format,
    /// Precision in which the factors are stored for the triangular solves.
    #[serde(default)]
    pub factor_precision: FactorPrecision,
    /// Algorithm of the triangular solves on a GPU.
    #[serde(default)]
    pub trisolve: Trisolve,
    /// Execution of FGBILU on a GPU.
    #[serde(default)]
    pub fgbilu_style: FgbiluStyle,
    /// Execution of the solver on a GPU.
    #[serde(default)]
    pub execution: Execution,
    /// How block rows are divided among subdomains.
    #[serde(default)]
    pub partition: Partition,
    /// Subdomains; 0 for one of each rank.
    #[serde(default)]
    pub subdomains: usize,
    /// What the preconditioner of a subdomain knows of the others.
    #[serde(default)]
    pub schwarz: schwarz::Choice,
    /// CPU threads, of each rank where there are ranks; 0 where the program chooses. `threads` is what was used.
    #[serde(default, rename = "threads-asked")]
    pub threads: usize,
    /// Backend, a name in the registry.
    pub backend: String,
}

impl Case {
    /// The peer that runs it, if one does.
    pub fn peer(&self) -> Option<&str> {
        external(&self.backend)
    }

    /// The same case on another backend. The algorithm of the triangular solves, the style of FGBILU, the
    /// execution and the side of the preconditioner take their defaults where backend and methods offer
    /// no choice.
    #[must_use]
    pub fn on(&self, backend: &str) -> Self {
        let mut on = Self { backend: backend.to_owned(), ..self.clone() };
        if !on.uses(Setting::Trisolve) {
            on.trisolve = Trisolve::AUTO;
        }
        if !on.uses(Setting::FgbiluStyle) {
            on.fgbilu_style = FgbiluStyle::Auto;
        }
        if !on.uses(Setting::Execution) {
            on.execution = Execution::Fused;
        }
        if !on.uses(Setting::Subdomains) {
            let Self { partition, subdomains, schwarz, .. } = Self::default();
            (on.partition, on.subdomains, on.schwarz) = (partition, subdomains, schwarz);
        }
        if !on.uses(Setting::Threads) {
            on.threads = 0;
        }
        if !on.uses(Setting::Side) {
            on.side = Side::default();
        }
        if !on.uses(Setting::Guess) {
            (on.guess, on.refactor) = (Guess::default(), Refactor::default());
        }
        on
    }

    /// The same case; where only products run, the settings of a solve take their defaults.
    #[must_use]
    pub(crate) fn for_its_kind(self) -> Self {
        match self.kind {
            RunKind::Solve => self,
            RunKind::Spmv => Self {
                precond: precond::none::METHOD.name.into(),
                matrix: self.matrix,
                read_as: self.read_as,
                zeros: self.zeros,
                ordering: self.ordering,
                block_size: self.block_size,
                kind: self.kind,
                format: self.format,
                partition: self.partition,
                subdomains: self.subdomains,
                threads: self.threads,
                backend: self.backend,
                ..Self::default()
            },
        }
    }
}

/// For records without this column.
fn inner_rtol() -> f64 {
    krylov::Settings::INNER_RTOL
}

/// For records without this column.
fn symmetry_tolerance() -> f64 {
    SYMMETRY_TOLERANCE
}

impl Default for Case {
    fn default() -> Self {
        Self {
            matrix: "poisson3d:60".into(),
            sequence: String::new(),
            read_as: ReadAs::default(),
            zeros: Zeros::default(),
            ordering: Ordering::default(),
            scaling: Scaling::default(),
            rhs: "ones".into(),
            block_size: 1,
            kind: RunKind::default(),
            precond: precond::bilu::METHOD.name.into(),
            fill: 0,
            level_rule: LevelRule::default(),
            shift: Shift::default(),
            drop_tolerance: 0.0,
            deflation: deflation::Choice::default(),
            solver: solver::gmres::METHOD.name.into(),
            side: Side::default(),
            restart: krylov::Settings::RESTART,
            orthogonalisation: Orthogonalisation::default(),
            inner_rtol: krylov::Settings::INNER_RTOL,
            rtol: 1e-6,
            max_iterations: 2000,
            symmetry_tolerance: SYMMETRY_TOLERANCE,
            guess: Guess::default(),
            refactor: Refactor::default(),
            format: Format::default(),
            factor_precision: FactorPrecision::default(),
            trisolve: Trisolve::default(),
            fgbilu_style: FgbiluStyle::default(),
            execution: Execution::default(),
            partition: Partition::default(),
            subdomains: 0,
            schwarz: schwarz::Choice::default(),
            threads: 0,
            backend: "cpu".into(),
        }
    }
}
