//! Preconditioners, solvers and deflation, written once over the traits of [`crate::compute`]. One file
//! each, with what the method says of itself.

pub mod deflation;
pub mod precond;
pub mod registry;
pub mod schwarz;
pub mod solver;
