//! What ends the recurrences of methods that a backend may run as one kernel, as such a kernel numbers it
//! from 1.

/// `BiCGStab`: `(r0, v)`, omega or rho vanishes.
pub(crate) const BICGSTAB: [&str; 3] = [
    "(r0, A M^-1 p) is zero",
    "omega is zero",
    "rho is zero: the shadow residual is orthogonal to the residual",
];

/// Coupled two-term QMR: a Lanczos vector, delta or epsilon vanishes.
pub(crate) const QMR: [&str; 3] = [
    "a Lanczos vector is zero",
    "delta is zero: the Lanczos vectors are orthogonal to each other",
    "epsilon is zero: (q, A p) vanishes",
];
