//! Runs cases, schedules and measures sweeps, and searches for the best settings.

pub(crate) mod advise;
pub(crate) mod engine;
pub(crate) mod ilu;
pub(crate) mod obstacle;
pub mod parity;
pub(crate) mod process;
pub mod run;
pub(crate) mod solution;
