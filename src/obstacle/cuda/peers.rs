//! Neighbours that write each other's memory: a sweep stores the boundary values of its part directly into the
//! ghost slices that the neighbour's next sweep reads. The GPUs synchronise by flag words in their memory,
//! on which streams wait; the host does not wait. Parts of one process and of several processes (`ipc.rs`)
//! differ only in how they obtain the addresses.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use cudarc::driver::{CudaStream, result};

use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::ipc;
use crate::compute::cuda::launch::Address;
use crate::compute::cuda::memory::{Apart, failed};
use crate::obstacle::field::{Field, Layout};

/// Alignment within a window: lines begin on cache lines, and flag words of two neighbours do not share one.
const ALIGNED: usize = 512;

/// The memory of a part that neighbours can write, one allocation: two fields of the iterate, then the flag
/// words of the neighbour before and the one behind, each with the number of its last step.
pub(super) struct Window {
    memory: Apart,
    layout: Layout,
}

impl Window {
    /// A window of zeros.
    pub(super) fn new(device: &Device, layout: Layout) -> Result<Self> {
        Ok(Self { memory: Apart::zeros(device.stream(), bytes(layout))?, layout })
    }

    /// Its first address.
    pub(super) fn at(&self) -> Address {
        self.memory.at()
    }

    /// The two fields.
    pub(super) fn fields(&self) -> [Address; 2] {
        [0, 1].map(|k| self.at() + field(self.layout, k))
    }

    /// The values of field `k`; waits.
    pub(super) fn read(&self, stream: &CudaStream, k: usize) -> Result<Field> {
        let fault = |e| failed("cannot download", e);
        let mut values = Field::zeros(self.layout)?;
        stream.synchronize().map_err(fault)?;
        // SAFETY: a field has as many values on both sides
        unsafe { result::memcpy_dtoh_sync(&mut values.data[..], self.fields()[k]) }
            .map_err(fault)?;
        Ok(values)
    }

    /// The flag word of the neighbour at `end`, 0 before and 1 behind; waits.
    #[cfg(feature = "mpi")]
    pub(super) fn signalled(&self, end: usize) -> Result<u32> {
        let mut number = [0_u32];
        // SAFETY: one number at a place of this memory
        unsafe { result::memcpy_dtoh_sync(&mut number, self.at() + step(self.layout, end)) }
            .map_err(|e| failed("cannot download", e))?;
        Ok(number[0])
    }
}

/// Bytes of a window.
fn bytes(layout: Layout) -> usize {
    step(layout, 2) as usize
}

/// Offset of field `k` in a window.
fn field(layout: Layout, k: usize) -> u64 {
    (k * (size_of::<f64>() * layout.len()).next_multiple_of(ALIGNED)) as u64
}

/// Offset of the flag word of the neighbour at `end`.
fn step(layout: Layout, end: usize) -> u64 {
    field(layout, 2) + (end * ALIGNED) as u64
}

/// Addresses in the window of the neighbour at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemoteWindow {
    /// In each of its fields the ghost slice that receives the values of this part.
    pub(super) ghosts: [Address; 2],
    /// Its flag word for this part's steps.
    step: Address,
}

impl RemoteWindow {
    /// Those in the window at `at` of a part with `layout` that lies before (`end` 0) or behind (1).
    pub(super) fn into(at: Address, layout: Layout, end: usize) -> Self {
        // the slice behind the last of the part before, that before the first of the part behind
        let z = if end == 0 { layout.nz + 1 } else { 0 };
        let ghost = (size_of::<f64>() * layout.line(0, z)) as u64;
        Self {
            ghosts: [0, 1].map(|k| at + field(layout, k) + ghost),
            step: at + step(layout, 1 - end),
        }
    }
}

/// A part's neighbours, before and behind, and the number of steps signalled to them.
#[derive(Default)]
pub(super) struct Neighbours {
    pub(super) to: [Option<RemoteWindow>; 2],
    epoch: u32,
}

impl Neighbours {
    /// Whether there is no neighbour.
    pub(super) fn is_empty(&self) -> bool {
        self.to.iter().all(Option::is_none)
    }

    /// Number of steps signalled so far.
    #[cfg(feature = "mpi")]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Enqueues a signal to the neighbours that the work launched so far is complete.
    pub(super) fn signal(&mut self, stream: &CudaStream) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.epoch = self.epoch.wrapping_add(1);
        for remote in self.to.iter().flatten() {
            // SAFETY: a flag word in the neighbour's memory, which stays open until no sweep runs
            unsafe { ipc::signal(stream, remote.step, self.epoch) }
                .map_err(|e| failed("cannot signal a sweep to a neighbour", e))?;
        }
        Ok(())
    }

    /// Makes later launches wait until the neighbours have signalled as many steps.
    pub(super) fn wait(&self, stream: &CudaStream, window: &Window) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        for end in (0..2).filter(|&end| self.to[end].is_some()) {
            let at = window.at() + step(window.layout, end);
            // SAFETY: a flag word in this part's memory
            unsafe { ipc::wait(stream, at, self.epoch) }
                .map_err(|e| failed("cannot wait for a neighbour", e))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::obstacle::Split;
    use crate::obstacle::field::Extent;

    #[test]
    fn remote_addresses_are_the_ghost_slices_and_a_flag_word_of_their_own() {
        let split = Split { y: 1, z: 3 };
        let layout = |number| Layout::of(&Extent::of_node(20, split, number));
        let at = [1 << 20, 2 << 20, 3 << 20];
        let slice = layout(0).slice as u64 * 8;
        // of the middle part
        let before = RemoteWindow::into(at[0], layout(0), 0);
        let behind = RemoteWindow::into(at[2], layout(2), 1);
        // 6, 7 and 7 slices
        assert_eq!(before.ghosts[0], at[0] + 7 * slice);
        assert_eq!(behind.ghosts[0], at[2]);
        for (remote, number) in [(before, 0), (behind, 2)] {
            let second = field(layout(number), 1);
            assert!(second >= layout(number).len() as u64 * 8 && second.is_multiple_of(512));
            assert_eq!(remote.ghosts[1] - remote.ghosts[0], second);
        }
        // the part before sees this one as its neighbour behind, and vice versa
        assert_eq!(before.step, at[0] + step(layout(0), 1));
        assert_eq!(behind.step, at[2] + step(layout(2), 0));
        assert!(bytes(layout(0)) as u64 >= step(layout(0), 1) + 4);
        // the writes of the outer parts to the middle one are disjoint
        let [from_first, from_last] =
            [RemoteWindow::into(at[1], layout(1), 1), RemoteWindow::into(at[1], layout(1), 0)];
        assert_ne!(from_first.step, from_last.step);
        assert_eq!(from_last.ghosts[0] - from_first.ghosts[0], 8 * slice);
    }
}
