//! `bilu-bench`: a benchmark for preconditioned sparse solvers.
//!
//! Data flow: TOML or flags -> experiment -> [`case::Case`]s -> [`problem::Problem`] -> symbolic,
//! numeric, solve on a backend -> [`record::Record`] -> tables and files.
//!
//! The modules are layers: base, matrix, symbolic, compute, methods, obstacle, problem, case, record,
//! config, bench, report, cli. Each uses those before it only (`tests/repository/layers.rs`).

pub mod base;
pub mod bench;
pub mod case;
pub mod cli;
pub mod compute;
pub mod config;
pub mod matrix;
pub mod methods;
pub mod obstacle;
pub mod problem;
pub mod record;
pub mod report;
pub mod symbolic;

pub use base::error::{Error, Result};
