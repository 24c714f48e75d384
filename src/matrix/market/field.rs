//! What the banner of a file says of its entries.

pub use crate::matrix::read::Symmetry;

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
