//! On which threads work is done.

/// On which threads work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread.
    One,
    /// All threads of the current rayon pool.
    Pool,
}
