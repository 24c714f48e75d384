//! Sparse matrix storage and files.

pub mod bsr;
pub mod csr;

pub use bsr::Bsr;
pub use csr::Csr;
