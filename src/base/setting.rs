//! Settings that change something only with some methods.

/// A setting that only some methods use; each says in its own file which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Unknowns per block.
    BlockSize,
    /// Order of the unknowns: whether more than rounding depends on it.
    Ordering,
    /// Fill level of ILU(k).
    Fill,
    /// Update rule of the fill level.
    LevelRule,
    /// What is added to the diagonal.
    Shift,
    /// What is dropped of factors.
    DropTolerance,
    /// Side of the preconditioner.
    Side,
    /// Basis vectors of GMRES.
    Restart,
    /// Orthogonalisation of GMRES.
    Orthogonalisation,
    /// Tolerance of corrections in iterative refinement.
    InnerRtol,
    /// What counts as symmetric.
    SymmetryTolerance,
    /// Numbers in which factors are stored.
    FactorPrecision,
    /// Way of triangular solves.
    Trisolve,
    /// Execution of FGBILU.
    FgbiluStyle,
    /// Execution of the solver.
    Execution,
    /// Division among subdomains.
    Partition,
    /// Their number.
    Subdomains,
    /// What their preconditioners know of each other.
    Schwarz,
    /// Threads of a processor.
    Threads,
    /// Where the solves of a sequence start.
    Guess,
    /// Steps of a sequence whose preconditioner is made of their own values.
    Refactor,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 21] = [
        Self::BlockSize,
        Self::Ordering,
        Self::Fill,
        Self::LevelRule,
        Self::Shift,
        Self::DropTolerance,
        Self::Side,
        Self::Restart,
        Self::Orthogonalisation,
        Self::InnerRtol,
        Self::SymmetryTolerance,
        Self::FactorPrecision,
        Self::Trisolve,
        Self::FgbiluStyle,
        Self::Execution,
        Self::Partition,
        Self::Subdomains,
        Self::Schwarz,
        Self::Threads,
        Self::Guess,
        Self::Refactor,
    ];

    /// Its name as a flag and a key of TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::BlockSize => "block-size",
            Self::Ordering => "ordering",
            Self::Fill => "fill",
            Self::LevelRule => "level-rule",
            Self::Shift => "shift",
            Self::DropTolerance => "drop-tolerance",
            Self::Side => "side",
            Self::Restart => "restart",
            Self::Orthogonalisation => "orthogonalisation",
            Self::InnerRtol => "inner-rtol",
            Self::SymmetryTolerance => "symmetry-tolerance",
            Self::FactorPrecision => "factor-precision",
            Self::Trisolve => "trisolve",
            Self::FgbiluStyle => "fgbilu-style",
            Self::Execution => "execution",
            Self::Partition => "partition",
            Self::Subdomains => "subdomains",
            Self::Schwarz => "schwarz",
            Self::Threads => "threads",
            Self::Guess => "guess",
            Self::Refactor => "refactor",
        }
    }
}
