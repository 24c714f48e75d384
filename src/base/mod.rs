//! What every layer may use: errors, choices by name, numbers and their units, files, memory, clock.

pub mod choices;
pub(crate) mod cores;
pub(crate) mod embedded;
pub mod error;
pub mod external;
pub(crate) mod files;
pub(crate) mod input;
pub mod interrupt;
pub mod measure;
pub mod memory;
mod pages;
pub mod parse;
pub mod refactor;
pub mod setting;
pub mod shift;
pub mod status;
pub mod threads;
pub mod units;
