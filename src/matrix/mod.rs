//! Sparse matrix storage and files.

pub mod csr;
pub mod market;

pub use csr::Csr;
