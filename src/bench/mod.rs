//! Runs cases and searches among them: what is measured, in which order, and what becomes of it.

pub mod advise;
pub mod engine;
pub mod obstacle;
pub mod parity;
pub mod run;
pub mod solution;
