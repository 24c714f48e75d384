//! Settings that change something only with some methods.

/// A setting that only some methods use; each says in its own file which. Its name is that of a flag and a key of
/// TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
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
    /// Variant of triangular solves.
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
