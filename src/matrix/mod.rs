//! Sparse matrix storage and files.

pub mod bdia;
pub mod bsr;
pub mod cache;
mod coo;
pub mod csr;
mod dia;
pub(crate) mod equilibration;
pub mod hash;
mod hyb;
pub mod market;
pub(crate) mod npy;
pub mod pattern;
mod rows;
mod sell;
pub mod storage;
mod symmetry;
mod triangle;

pub use bdia::Bdia;
pub use bsr::Bsr;
pub use coo::Coo;
pub use csr::{Csr, CsrPattern};
pub use dia::Dia;
pub use equilibration::Equilibration;
pub use hyb::Hyb;
pub use pattern::inverse;
pub(crate) use pattern::inverse_on;
pub use rows::{Rows, Sums};
pub use sell::Sell;
pub use storage::Storage;
pub use symmetry::Asymmetry;
pub(crate) use symmetry::SYMMETRY_TOLERANCE;
pub use triangle::lower_triangle;
