//! `bilu-bench`: a benchmark for preconditioned sparse solvers.
//!
//! Data flow: TOML or flags -> experiment -> [`case::Case`]s -> [`problem::Problem`] -> symbolic,
//! numeric, solve on a backend -> [`result::Record`] -> tables and files.

pub mod advise;
pub mod backend;
pub mod case;
pub mod cli;
pub mod config;
pub(crate) mod cores;
pub mod deflation;
pub mod engine;
pub mod error;
pub(crate) mod files;
pub(crate) mod input;
pub mod interrupt;
pub mod matrix;
pub mod measure;
pub mod memory;
pub mod obstacle;
pub mod ordering;
pub mod parity;
pub mod plot;
pub mod precond;
pub mod problem;
pub mod registry;
pub mod report;
pub mod result;
pub mod run;
pub mod solver;
pub mod symbolic;
pub mod tune;

pub use error::{Error, Result};
