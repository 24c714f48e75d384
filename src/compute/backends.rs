//! Backends by name, and the device of a rank.

#[cfg(feature = "cuda")]
use super::cuda;
use super::distributed::Local;
use super::distributed::communicator::Communicator;
use super::{Backend, cpu};
use crate::base::error::{Error, Result};

/// Code that runs on whichever backend a name stands for.
pub trait Visitor {
    /// What it yields.
    type Output;
    /// Runs on `backend`.
    fn visit<K: Backend + 'static>(self, backend: &K) -> Self::Output;
}

/// Backends by name, with a line about each.
pub const NAMES: &[(&str, &str)] = &[
    ("cpu", "one CPU thread: the reference of the papers"),
    ("cpu-mt", "all CPU cores: factorisation and solves in parallel chunks and levels"),
    ("cuda", "one NVIDIA GPU, our kernels"),
    (
        "cusparse",
        "one NVIDIA GPU, products, factorisation and solves by cuSPARSE: the vendor's baseline",
    ),
    ("mpi", "ranks over MPI with `--threads` CPU threads each; subdomains on one without `mpirun`"),
    ("mpi-cuda", "the same with an NVIDIA GPU each, which several may share"),
];

/// Whether the backend called `name` computes on a GPU.
pub fn on_gpu(name: &str) -> bool {
    matches!(name, "cuda" | "cusparse" | "mpi-cuda")
}

/// Whether the backend called `name` divides a system among ranks.
pub(crate) fn over_ranks(name: &str) -> bool {
    matches!(name, "mpi" | "mpi-cuda")
}

/// Whether the GPU of the backend called `name` computes with sparse matrices of blocks of one in setups.
pub(crate) fn sets_up_rows(name: &str) -> bool {
    matches!(name, "cuda" | "mpi-cuda")
}

/// Whether the backend called `name` has a number of CPU threads that can be set.
pub(crate) fn has_threads(name: &str) -> bool {
    matches!(name, "cpu-mt" | "mpi" | "mpi-cuda")
}

/// Whether the backend called `name` takes one thread of several because a system of so many entries is small;
/// `threads` are those asked for, 0 for none.
pub(crate) fn spares_threads(name: &str, threads: usize, entries: usize) -> bool {
    name == "cpu-mt" && threads == 0 && cpu::spares_threads(entries)
}

/// Whether the backend called `name` has operations on several vectors at once.
pub(crate) fn has_multivectors(name: &str) -> bool {
    matches!(name, "cpu" | "cpu-mt")
}

/// Whether the backend called `name` offers a choice of triangular solves.
pub(crate) fn has_trisolves(name: &str) -> bool {
    matches!(name, "cuda" | "mpi-cuda")
}

/// Whether the backend called `name` can compute here: its devices and libraries are there. Cheap
/// but for the first use of a GPU, which is kept.
///
/// # Errors
/// What is missing, and what to do about it.
pub fn available(name: &str) -> Result<()> {
    match name {
        #[cfg(feature = "cuda")]
        "cuda" | "mpi-cuda" => {
            cuda::Device::shared().and_then(|_| cuda::nvrtc::version()).map(|_| ())
        }
        #[cfg(feature = "cuda")]
        "cusparse" => available("cuda").and_then(|()| cuda::cusparse::version()).map(|_| ()),
        #[cfg(not(feature = "cuda"))]
        "cuda" | "cusparse" | "mpi-cuda" => Err(without_cuda()),
        _ => Ok(()),
    }
}

/// Seconds that compiling and loading kernels of the backend called `name` took so far in this process; 0
/// where there are none.
pub fn compile_seconds(name: &str) -> f64 {
    match name {
        #[cfg(feature = "cuda")]
        _ if on_gpu(name) => cuda::Device::shared().map_or(0.0, |device| device.compile_seconds()),
        _ => 0.0,
    }
}

#[cfg(not(feature = "cuda"))]
fn without_cuda() -> Error {
    Error::run("this program was built without CUDA")
        .hint("build it with the feature `cuda`, which needs no CUDA toolkit")
}

/// Runs `visitor` on the backend called `name`, with all cores for `cpu-mt`; `None` if there is no such backend.
pub fn with<V: Visitor>(name: &str, visitor: V) -> Option<Result<V::Output>> {
    with_threads(name, 0, usize::MAX, visitor)
}

/// The same for a system of so many entries; `threads` are those of `cpu-mt`, 0 for as many as pay.
pub(crate) fn with_threads<V: Visitor>(
    name: &str,
    threads: usize,
    entries: usize,
    visitor: V,
) -> Option<Result<V::Output>> {
    match name {
        "cpu" => Some(Ok(visitor.visit(&cpu::Cpu::sequential()))),
        "cpu-mt" => Some(cpu::Cpu::suited(threads, entries).map(|k| visitor.visit(&k))),
        #[cfg(feature = "cuda")]
        "cuda" => Some(cuda::Cuda::ours().map(|k| visitor.visit(&k))),
        #[cfg(feature = "cuda")]
        "cusparse" => Some(cuda::Cuda::vendor().map(|k| visitor.visit(&k))),
        #[cfg(not(feature = "cuda"))]
        "cuda" | "cusparse" => Some(Err(without_cuda())),
        _ => None,
    }
}

/// The device of a rank.
pub enum RankDevice {
    /// CPU threads.
    Cpu(cpu::Cpu),
    /// A GPU.
    #[cfg(feature = "cuda")]
    Cuda(Box<cuda::Cuda>),
}

/// Code that runs on whichever device a rank has.
pub trait RankVisitor {
    /// What it yields.
    type Output;
    /// Runs on `local`.
    fn visit<K: Local + 'static>(self, local: K) -> Self::Output;
}

impl RankDevice {
    /// What the backend called `name`, which is one over ranks, has for this rank: a GPU, or so many CPU threads.
    /// Collective.
    ///
    /// # Errors
    /// That of the first rank that has none, on all.
    pub fn new(name: &str, threads: usize, communicator: &dyn Communicator) -> Result<Self> {
        let gpu = || -> Result<Self> {
            #[cfg(not(feature = "cuda"))]
            return Err(without_cuda());
            #[cfg(feature = "cuda")]
            {
                let [rank, ranks] = communicator.on_host();
                cuda::Cuda::of_rank(rank, ranks).map(|k| Self::Cuda(Box::new(k)))
            }
        };
        let own = if on_gpu(name) { gpu() } else { cpu::Cpu::of_threads(threads).map(Self::Cpu) };
        let rank = communicator.rank();
        let said = own.as_ref().err().map(|e| format!("rank {rank}: {e}"));
        match communicator.failure(said) {
            None => own,
            Some(said) => Err(own.err().unwrap_or_else(|| Error::run(said))),
        }
    }

    /// Runs `visitor` on it.
    pub fn visit<V: RankVisitor>(self, visitor: V) -> V::Output {
        match self {
            Self::Cpu(k) => visitor.visit(k),
            #[cfg(feature = "cuda")]
            Self::Cuda(k) => visitor.visit(*k),
        }
    }
}
