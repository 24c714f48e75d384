//! Records of runs and the files they are kept in.

pub(crate) mod columns;
pub(crate) mod contents;
pub(crate) mod environment;
pub(crate) mod gather;
mod lines;
pub mod obstacle;
pub mod output;
pub mod read;
pub(crate) mod rounds;
pub mod schema;
mod step;
pub mod table;
mod times;

pub use schema::Record;

#[cfg(test)]
pub(crate) mod samples;
