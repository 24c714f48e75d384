//! Records of runs and the files they are kept in.

pub mod record;

pub use record::{Record, Status};
