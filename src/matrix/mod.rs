//! Sparse matrix storage and files.

pub mod bsr;
pub mod cache;
pub mod csr;
pub mod info;
pub mod market;
mod sprs;
mod triangle;

pub use bsr::Bsr;
pub use csr::{Csr, CsrPattern};
pub use triangle::lower_triangle;
