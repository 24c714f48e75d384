//! What the banner of a file says of its entries.

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Floating-point numbers.
    Real,
    /// Integers.
    Integer,
    /// None: every entry is 1.
    Pattern,
}

/// Which entries the file leaves out because others imply them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// None.
    General,
    /// Those above the diagonal: `a(j,i) = a(i,j)`. Also `hermitian`, whose values are real here.
    Symmetric,
    /// Those on and above the diagonal: `a(j,i) = -a(i,j)`.
    SkewSymmetric,
}
