//! The names a user may write, gathered for `list`, help texts and error messages.

/// Names with one-line summaries.
pub type Names = &'static [(&'static str, &'static str)];

/// Solvers.
pub const SOLVERS: Names = &[
    ("gmres", "restarted GMRES(m)"),
    ("bicgstab", "BiCGStab"),
    ("cg", "conjugate gradients, for symmetric positive definite systems"),
];

/// Preconditioners.
pub const PRECONDITIONERS: Names = &[
    ("none", "no preconditioner"),
    ("jacobi", "inverse of the diagonal blocks"),
    ("bilu", "block ILU(k), level of fill k"),
];

/// Backends.
pub const BACKENDS: Names =
    &[("cpu", "one thread"), ("cpu-mt", "all cores, level-scheduled triangular solves")];

/// Storage formats of the matrix in the product.
pub const FORMATS: Names = &[
    ("auto", "the one of csr and bsr that holds fewer bytes"),
    ("csr", "scalar compressed sparse rows"),
    ("bsr", "block compressed sparse rows with the case's block size"),
];

/// Generators.
pub const GENERATORS: Names = &[];
