//! Neighbours that write each other's memory: the sides of a part go straight from the sweep that makes
//! them to where the neighbour's next sweep looks. The GPUs keep each other in step by numbers in their
//! memory, for which streams wait; the host waits for nothing. Parts of one process and of several
//! (`ipc.rs`) differ in how they come by the addresses alone.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use cudarc::driver::{CudaStream, result, sys};

use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::Address;
use crate::compute::cuda::memory::Apart;
use crate::compute::cuda::memory::failed;
use crate::obstacle::field::{Field, Layout};

/// Bytes between what lies in a home: lines begin on cache lines, and numbers of neighbours do not share one.
const ALIGNED: usize = 512;

/// Where the iterate of a part lives, in one piece of memory: two fields, then for the neighbour before and
/// the one behind the number of its last step.
pub(super) struct Home {
    memory: Apart,
    layout: Layout,
}

impl Home {
    /// Zeros.
    pub(super) fn new(device: &Device, layout: Layout) -> Result<Self> {
        Ok(Self { memory: Apart::zeros(device.stream(), bytes(layout))?, layout })
    }

    /// Where it begins.
    pub(super) fn at(&self) -> Address {
        self.memory.at()
    }

    /// The two fields.
    pub(super) fn fields(&self) -> [Address; 2] {
        [0, 1].map(|k| self.at() + field(self.layout, k))
    }

    /// The numbers of a field; waits.
    pub(super) fn read(&self, stream: &CudaStream, k: usize) -> Result<Field> {
        let fault = |e| failed("cannot download", e);
        let mut values = Field::zeros(self.layout)?;
        stream.synchronize().map_err(fault)?;
        // SAFETY: a field has as many numbers on both sides
        unsafe { result::memcpy_dtoh_sync(&mut values.data[..], self.fields()[k]) }
            .map_err(fault)?;
        Ok(values)
    }

    /// What the neighbour at `end`, 0 before and 1 behind, has written last; waits.
    #[cfg(feature = "mpi")]
    pub(super) fn heard(&self, end: usize) -> Result<u32> {
        let mut number = [0_u32];
        // SAFETY: one number at a place of this memory
        unsafe { result::memcpy_dtoh_sync(&mut number, self.at() + step(self.layout, end)) }
            .map_err(|e| failed("cannot download", e))?;
        Ok(number[0])
    }
}

/// Bytes of a home.
fn bytes(layout: Layout) -> usize {
    step(layout, 2) as usize
}

/// Where field `k` begins in a home.
fn field(layout: Layout, k: usize) -> u64 {
    (k * (size_of::<f64>() * layout.len()).next_multiple_of(ALIGNED)) as u64
}

/// Where the number of the neighbour at `end` is.
fn step(layout: Layout, end: usize) -> u64 {
    field(layout, 2) + (end * ALIGNED) as u64
}

/// A way into the memory of the neighbour at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The slice in each of its fields where it looks for the values of this part.
    pub(super) ghosts: [Address; 2],
    /// Where it looks for the number of this part's last step.
    step: Address,
}

impl Way {
    /// Into the home that begins at `at`, of a part with `layout` that lies before (`end` 0) or behind (1).
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

/// A part's ways to its neighbours, before and behind, and the steps that it has told them of.
#[derive(Default)]
pub(super) struct Ways {
    pub(super) to: [Option<Way>; 2],
    told: u32,
}

impl Ways {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.to.iter().all(Option::is_none)
    }

    /// Steps that the neighbours were told of.
    #[cfg(feature = "mpi")]
    pub(super) fn told(&self) -> u32 {
        self.told
    }

    /// Tells the neighbours that all that was launched so far is done, when it is.
    pub(super) fn tell(&mut self, stream: &CudaStream) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let fault = |e| failed("cannot tell a neighbour of a sweep", e);
        stream.context().bind_to_thread().map_err(fault)?;
        self.told = self.told.wrapping_add(1);
        for way in self.to.iter().flatten() {
            // SAFETY: a number in the neighbour's memory, which stays open until nobody sweeps; what the
            // stream wrote before is there before the number
            unsafe { sys::cuStreamWriteValue32_v2(stream.cu_stream(), way.step, self.told, 0) }
                .result()
                .map_err(fault)?;
        }
        Ok(())
    }

    /// What is launched from now on waits until the neighbours have told of as many steps.
    pub(super) fn wait(&self, stream: &CudaStream, home: &Home) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let fault = |e| failed("cannot wait for a neighbour", e);
        stream.context().bind_to_thread().map_err(fault)?;
        // at least, as numbers that go round
        let flags = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        for end in (0..2).filter(|&end| self.to[end].is_some()) {
            let at = home.at() + step(home.layout, end);
            // SAFETY: a number in this part's memory
            unsafe { sys::cuStreamWaitValue32_v2(stream.cu_stream(), at, self.told, flags) }
                .result()
                .map_err(fault)?;
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
    fn a_way_leads_to_the_slices_that_the_neighbour_reads_and_to_a_number_of_its_own() {
        let split = Split { y: 1, z: 3 };
        let layout = |number| Layout::of(&Extent::of_node(20, split, number));
        let at = [1 << 20, 2 << 20, 3 << 20];
        let slice = layout(0).slice as u64 * 8;
        // of the middle part
        let before = Way::into(at[0], layout(0), 0);
        let behind = Way::into(at[2], layout(2), 1);
        // 6, 7 and 7 slices
        assert_eq!(before.ghosts[0], at[0] + 7 * slice);
        assert_eq!(behind.ghosts[0], at[2]);
        for (way, number) in [(before, 0), (behind, 2)] {
            let second = field(layout(number), 1);
            assert!(second >= layout(number).len() as u64 * 8 && second.is_multiple_of(512));
            assert_eq!(way.ghosts[1] - way.ghosts[0], second);
        }
        // the part before hears of it as of the one behind, and the other way round
        assert_eq!(before.step, at[0] + step(layout(0), 1));
        assert_eq!(behind.step, at[2] + step(layout(2), 0));
        assert!(bytes(layout(0)) as u64 >= step(layout(0), 1) + 4);
        // what the outer parts write to the middle does not meet
        let [from_first, from_last] =
            [Way::into(at[1], layout(1), 1), Way::into(at[1], layout(1), 0)];
        assert_ne!(from_first.step, from_last.step);
        assert_eq!(from_last.ghosts[0] - from_first.ghosts[0], 8 * slice);
    }
}
