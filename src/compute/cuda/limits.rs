//! Limits below those of the hardware, so that tests reach what only large systems reach.

/// What kernels may use at most. Results must not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Resident thread blocks of kernels whose thread blocks wait for one another: few of them show
    /// a deadlock that many hide.
    pub resident: u32,
    /// Bytes of shared memory for the rows of a factorisation and the values of a triangular solve.
    pub shared_bytes: usize,
    /// Bytes of the list of a factorisation's updates.
    pub update_bytes: usize,
}

impl Limits {
    /// Those of the hardware.
    pub const NONE: Self =
        Self { resident: u32::MAX, shared_bytes: usize::MAX, update_bytes: usize::MAX };
}
