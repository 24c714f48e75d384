//! Parts of a triangular factor: who solves which rows, in which order, and where each row finds its
//! operands (`kernels/sptrsv/parts.cuh`).

mod device;
mod host;

use cudarc::driver::CudaSlice;

use super::owners::Owners;
use crate::base::error::{Error, Result};
use crate::compute::cuda::device::Device;
use crate::compute::cuda::layout::{Layout, shared};
use crate::compute::cuda::symbolic::Place;
use crate::matrix::pattern::Lazy;
pub(super) use device::{SlicesOfSteps, Strict, chain, row_starts, triangles};

/// Regions of shared memory through which the segments of a part pass in turn; mirrors the kernel.
const REGIONS: u32 = 4;

/// How the parts of a triangle are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Block rows that shared memory has slots for, without the slot of zeros.
    pub(super) slots: u32,
    /// Lanes of a warp over the rows of a block: rows of a slice times the lanes that share one.
    pub(super) lanes: usize,
    /// Lanes that share a row.
    pub(super) split: u32,
    /// Blocks of a lane beyond which more lanes share a row, as many as there are; `None` where they
    /// never do. The kernel is compiled with UNEVEN then.
    pub(super) most_each: Option<usize>,
    /// Time from a row to one that needs it in another part, in units of that within a part.
    pub(super) crossing: u32,
}

impl Shape {
    /// Refuses rows of so many blocks where 16 bits do not tell how many a lane has.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn admit(&self, longest: usize) -> Result<()> {
        let lanes = if self.most_each.is_some() { self.most() } else { self.split as usize };
        let most = lanes * u16::MAX as usize;
        if longest > most {
            let message = format!("a row of {longest} blocks of a triangle; {most} are the most");
            return Err(Error::memory(message).hint("`--trisolve syncfree` takes it"));
        }
        Ok(())
    }

    /// Lanes that share a row at most.
    fn most(&self) -> usize {
        (1 << self.lanes.ilog2()).max(self.split as usize)
    }

    /// Slots that are used when parts have up to `largest` rows, the one of zeros included, and those of a segment; 0 when
    /// each part is one.
    fn slots(&self, largest: usize) -> [u32; 2] {
        let region = self.slots / REGIONS;
        if largest <= self.slots as usize {
            [1 + largest as u32, 0]
        } else {
            [1 + REGIONS * region, region]
        }
    }
}

shared! {
    #[derive(Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
    pub(super) Slice = "Slice" of "sptrsv/partition.cuh" {
        first: u32,
        start: u32,
        /// Rows; in the upper byte the logarithm of the lanes that share one, where that differs.
        shape: u16,
        length: u16,
        slot: u32,
    }
}

/// Structs that kernels share.
pub(super) fn layouts() -> impl Iterator<Item = &'static Layout> {
    LAYOUTS.iter().chain(device::LAYOUTS)
}

/// A strictly triangular factor cut into parts; see `Parts` of the kernel for the arrays.
pub(super) struct Partition {
    pub(super) slices: CudaSlice<Slice>,
    /// Rows, part by part, slice by slice.
    pub(super) order: CudaSlice<u32>,
    pub(super) columns: CudaSlice<u32>,
    pub(super) segments: CudaSlice<u32>,
    pub(super) parts: CudaSlice<u32>,
    /// How many slices, columns, segments and parts there are.
    pub(super) counts: [usize; 4],
    /// Slots that are used, the one of zeros included.
    pub(super) slots: u32,
    /// Slots of a segment; 0 when each part is one.
    pub(super) region: u32,
}

impl Partition {
    /// Cuts a triangle, whose rows the host has, too, if it is to make the plan.
    ///
    /// # Errors
    /// When there are too many blocks for 32-bit indices, or the device fails or has too little memory.
    pub(super) fn new(
        (triangle, rows): (&Strict, &Lazy),
        owners: &Owners,
        shape: Shape,
        place: Place,
    ) -> Result<Self> {
        if place != Place::Host {
            return triangle.partition(owners, shape);
        }
        let made = host::Partition::new(rows.view(), triangle.backward, owners, shape)?;
        let d = triangle.device;
        let lengths =
            [made.slices.len(), made.columns.len(), made.segments.len(), made.parts.len()];
        Ok(Self {
            slices: d.copied(&made.slices)?,
            order: d.copied(&made.order)?,
            columns: d.copied(&made.columns)?,
            segments: d.copied(&made.segments)?,
            parts: d.copied(&made.parts)?,
            counts: [lengths[0], lengths[1], lengths[2] - 1, lengths[3] - 1],
            slots: made.slots,
            region: made.region,
        })
    }

    /// Its arrays, and the slots, on the host.
    pub(super) fn host(&self, d: &Device) -> Result<Vec<Vec<u32>>> {
        let [slices, columns, segments, parts] = self.counts;
        let mut words: Vec<u32> = bytemuck::cast_vec(d.host(&self.slices)?);
        words.truncate(4 * slices);
        Ok(vec![
            words,
            d.host_part(&self.order, self.order.len())?,
            d.host_part(&self.columns, columns)?,
            d.host_part(&self.segments, segments + 1)?,
            d.host_part(&self.parts, parts + 1)?,
            vec![self.slots, self.region],
        ])
    }
}

/// So many blocks of a factor, where 32 bits tell their places.
fn blocks(count: usize) -> Result<usize> {
    let most = u32::MAX as usize;
    if count > most { Err(Error::memory("a factor has more than 2^32 blocks")) } else { Ok(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_more_blocks_than_16_bits_count_are_refused() {
        let even = Shape { slots: 9, lanes: 1, split: 1, most_each: None, crossing: 4 };
        let uneven = Shape { lanes: 10, most_each: Some(3), ..even };
        let admitted = |shape: Shape, longest| shape.admit(longest).is_ok();
        assert_eq!([65_535, 65_536].map(|n| admitted(even, n)), [true, false]);
        assert_eq!([8 * 65_535, 8 * 65_535 + 1].map(|n| admitted(uneven, n)), [true, false]);
    }

    #[test]
    fn parts_that_do_not_fit_have_four_regions() {
        let shape = Shape { slots: 14, lanes: 32, split: 1, most_each: None, crossing: 4 };
        assert_eq!([14, 15].map(|largest| shape.slots(largest)), [[15, 0], [13, 3]]);
    }
}
