//! The evolution obstacle problem in three dimensions and its parallel projected Richardson method
//! (L. Ziane Khodja, M. Chau, R. Couturier, J. Bahi, P. Spitéri: Solving sparse nonlinear systems of
//! obstacle problems on GPU clusters, in: Designing Scientific Applications on GPUs, CRC Press).
//!
//! A grid is shared by nodes: threads, ranks or GPUs. Each relaxes its part and exchanges the values
//! at its sides with up to four neighbours, with or without waiting for them.

pub mod case;
pub mod field;
pub mod node;
pub mod problem;
pub mod reference;
pub mod solve;
pub mod threads;

pub use case::{Case, MAX_SWEEPS_PER_PASS, Method, Mode, Split, StopOn};
pub use problem::{Coefficients, OBSTACLES, Obstacle, Problem};

#[cfg(test)]
mod tests;
