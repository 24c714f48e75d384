//! Values of a node's part of the grid with a layer of neighbours around it in y and z.

use std::ops::Range;

use super::case::Split;
use super::problem::Problem;
use crate::base::error::Result;
use crate::base::memory::Buffer;

/// Where a node's part lies in the grid; x is never split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Points in x.
    pub m: usize,
    /// Points in y.
    pub y: Range<usize>,
    /// Points in z.
    pub z: Range<usize>,
}

impl Extent {
    /// The part of node `number`; y is the faster direction.
    pub(crate) fn of_node(m: usize, split: Split, number: usize) -> Self {
        let y = Split::range(m, split.y, number % split.y);
        Self { m, y, z: Split::range(m, split.z, number / split.y) }
    }
}

/// Memory layout of a part: consecutive lines in x, each followed by at least one 0, which also precedes the
/// next line; a ghost line before and after the lines of each slice, and a ghost slice before and after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Points in x.
    pub nx: usize,
    /// Lines of a slice, without neighbours.
    pub ny: usize,
    /// Slices, without neighbours.
    pub nz: usize,
    /// Values from one line to the next: a multiple of 8, so that lines begin on cache lines.
    pub pitch: usize,
    /// Values from one slice to the next.
    pub slice: usize,
}

impl Layout {
    /// Of a part.
    pub fn of(extent: &Extent) -> Self {
        let pitch = (extent.m + 1).next_multiple_of(8);
        let (ny, nz) = (extent.y.len(), extent.z.len());
        Self { nx: extent.m, ny, nz, pitch, slice: pitch * (ny + 2) }
    }

    /// Index of the first value of line `y` of slice `z`; 0 and `ny + 1` are ghosts, likewise in z.
    #[inline(always)]
    pub fn line(&self, y: usize, z: usize) -> usize {
        z * self.slice + y * self.pitch
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.slice * (self.nz + 2)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Values of a part.
pub struct Field {
    /// Their layout.
    pub layout: Layout,
    /// The values.
    pub data: Buffer<f64>,
}

impl Field {
    /// Zeros.
    ///
    /// # Errors
    /// When memory is exhausted.
    pub fn zeros(layout: Layout) -> Result<Self> {
        Ok(Self { layout, data: Buffer::try_zeros(layout.len())? })
    }

    /// The obstacle, where it is not the same everywhere.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    pub fn floor(problem: &Problem, extent: &Extent) -> Result<Option<Self>> {
        if problem.flat_floor().is_some() {
            return Ok(None);
        }
        let mut field = Self::zeros(Layout::of(extent))?;
        field.each(extent, |at, v| *v = problem.floor(at));
        Ok(Some(field))
    }

    /// Calls `f` with each point of the grid and its number.
    pub fn each(&mut self, extent: &Extent, mut f: impl FnMut([usize; 3], &mut f64)) {
        let layout = self.layout;
        for (k, z) in extent.z.clone().enumerate() {
            for (j, y) in extent.y.clone().enumerate() {
                let at = layout.line(j + 1, k + 1);
                for (x, v) in self.data[at..at + layout.nx].iter_mut().enumerate() {
                    f([x, y, z], v);
                }
            }
        }
    }

    /// The values without ghosts, x fastest, then y.
    pub fn values(&self) -> Vec<f64> {
        let layout = self.layout;
        let lines = (1..=layout.nz).flat_map(|z| (1..=layout.ny).map(move |y| layout.line(y, z)));
        lines.flat_map(|at| self.data[at..at + layout.nx].iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_tile_the_grid_and_lines_end_in_zeros() {
        let split = Split { y: 2, z: 3 };
        let mut points = 0;
        for number in 0..split.count() {
            let extent = Extent::of_node(7, split, number);
            points += extent.y.len() * extent.z.len();
            let layout = Layout::of(&extent);
            assert_eq!((layout.pitch, layout.nx), (8, 7));
            assert_eq!(layout.len(), 8 * (extent.y.len() + 2) * (extent.z.len() + 2));
        }
        assert_eq!(points, 49);
        assert_eq!(Layout::of(&Extent::of_node(8, Split::WHOLE, 0)).pitch, 16);
        assert_eq!(Extent::of_node(7, split, 3), Extent { m: 7, y: 3..7, z: 2..4 });
        let extent = Extent::of_node(3, Split::WHOLE, 0);
        let mut field = Field::zeros(Layout::of(&extent)).unwrap();
        field.each(&extent, |[x, y, z], v| *v = (100 * z + 10 * y + x) as f64);
        assert_eq!(field.values()[..7], [0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0]);
        assert_eq!(field.data[field.layout.line(2, 3) + 1], 211.0);
    }
}
