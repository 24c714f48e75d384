//! The evolution obstacle problem in three dimensions and its parallel projected Richardson method
//! (L. Ziane Khodja, M. Chau, R. Couturier, J. Bahi, P. Spitéri: Solving sparse nonlinear systems of
//! obstacle problems on GPU clusters, in: Designing Scientific Applications on GPUs, CRC Press).
//!
//! The grid is divided among nodes: threads, ranks or GPUs. Each relaxes its part and exchanges halos with up to
//! four neighbours, synchronously or asynchronously.

pub mod case;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod field;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod node;
pub mod part;
pub mod problem;
pub mod reference;
pub mod solve;
pub mod threads;

pub(crate) use case::MAX_SWEEPS_PER_PASS;
pub use case::{Case, Method, Mode, Split, StopOn, Transport};
pub use problem::{Coefficients, Obstacle, Problem};

/// The backends.
pub const BACKENDS: crate::methods::registry::Names = &[
    ("cpu", "one thread"),
    ("cpu-mt", "a thread for each part, by default as many as there are cores"),
    ("cuda", "one GPU, or with a split 1xN the first N of this host"),
    (MPI, "a rank of `mpirun` for each part, each a CPU core"),
    (MPI_CUDA, "the same, each a GPU: rank i of a host has GPU i modulo their number"),
];

/// The backend whose nodes are ranks on cores.
pub const MPI: &str = "mpi";

/// The backend whose nodes are ranks on GPUs.
pub(crate) const MPI_CUDA: &str = "mpi-cuda";

/// Whether the nodes of a backend are ranks.
pub(crate) fn over_ranks(backend: &str) -> bool {
    [MPI, MPI_CUDA].contains(&backend)
}

#[cfg(not(feature = "mpi"))]
pub(crate) use crate::compute::distributed::launch::without_mpi as no_mpi;

#[cfg(test)]
mod tests;
