//! Sparse matrix storage and files.

pub mod csr;

pub use csr::Csr;
