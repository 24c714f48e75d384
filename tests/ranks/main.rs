//! Runs over ranks: `cargo test --features mpi --test ranks`.
#![cfg(feature = "mpi")]

#[path = "../common/mod.rs"]
mod common;
mod obstacle_mpi;
mod obstacle_transport;
mod run_mpi;
mod run_mpi_failures;
mod run_mpi_loading;
