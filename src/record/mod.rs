//! Records of runs and the files they are kept in.

pub mod columns;
pub mod contents;
pub mod environment;
pub mod gather;
mod lines;
pub mod obstacle;
pub mod output;
pub mod read;
pub mod rounds;
pub mod schema;
pub mod table;

pub use schema::Record;

#[cfg(test)]
pub(crate) mod samples;
