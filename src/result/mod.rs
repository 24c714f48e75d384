//! Records of runs and the files they are kept in.

pub mod columns;
pub mod contents;
pub mod environment;
pub mod gather;
mod lines;
pub mod output;
pub mod read;
pub mod record;
pub mod rounds;
pub mod solution;
pub mod table;

pub use record::{Record, Status};

#[cfg(test)]
pub(crate) mod samples;
