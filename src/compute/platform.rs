//! What computes.

use crate::base::error::Result;
use crate::base::threads::Threads;

/// What a backend runs on.
pub trait Platform {
    /// What the backend runs on, for the records.
    fn device(&self) -> String;
    /// Threads of the backend; 1 on a GPU's host side.
    fn threads(&self) -> usize;
    /// The processors to which its threads are pinned, by the numbers of the system.
    fn placement(&self) -> Option<String> {
        None
    }
    /// Whether it computes on cores of this host.
    fn on_cores(&self) -> bool {
        false
    }
    /// Bytes that can still be had for vectors, matrices and factors.
    fn memory_free(&self) -> usize;
    /// Bandwidth of a copy in GB/s (1e9), reads and writes counted: the roof of everything that only
    /// moves bytes. Measured once and remembered.
    fn copy_bandwidth(&self) -> f64;
    /// Bytes of the last-level cache that the backend computes with: what is smaller may be moved faster than
    /// [`Platform::copy_bandwidth`]. `None` where it is not known.
    fn cache_bytes(&self) -> Option<usize>;
    /// Seconds in which one thread block hands a value to another through the memory they share:
    /// what the time of a level of a triangular solve is compared with. Measured once and remembered;
    /// `None` where it is not measured.
    fn handover_latency(&self) -> Option<f64> {
        None
    }
    /// Waits, and tells of the first operation that failed since the backend was made, if any.
    fn check(&self) -> Result<()>;
    /// Runs work that the host does for the backend and tells it on which threads: one for the
    /// backend of one thread, all for the others.
    fn on_host<R: Send>(&self, work: impl FnOnce(Threads) -> R + Send) -> R {
        work(Threads::Pool)
    }
}
