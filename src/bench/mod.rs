//! Runs cases, schedules and measures sweeps, and searches for the best settings.

pub mod advise;
pub mod engine;
pub mod obstacle;
pub mod parity;
pub mod run;
pub mod solution;
