//! Parts of a grid: their faces and regions.

use super::case::Split;
use super::field::Layout;

/// A face of a part towards a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Towards smaller y.
    South,
    /// Towards larger y.
    North,
    /// Towards smaller z.
    Rear,
    /// Towards larger z.
    Front,
}

impl Face {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::South, Self::North, Self::Rear, Self::Front];

    /// The opposite face, that of the neighbour.
    #[must_use]
    pub fn opposite(self) -> Self {
        [Self::North, Self::South, Self::Front, Self::Rear][self as usize]
    }

    /// The neighbour of node `number` at this face, if any.
    pub fn neighbour(self, split: Split, number: usize) -> Option<usize> {
        let (y, z) = (number % split.y, number / split.y);
        match self {
            Self::South => (y > 0).then(|| number - 1),
            Self::North => (y + 1 < split.y).then(|| number + 1),
            Self::Rear => (z > 0).then(|| number - split.y),
            Self::Front => (z + 1 < split.z).then(|| number + split.y),
        }
    }

    /// Lines of this face: the boundary values, or the ghost values one line further out.
    pub(super) fn lines(self, layout: Layout, outside: bool) -> impl Iterator<Item = usize> {
        let further = usize::from(outside);
        let (ny, nz) = (layout.ny, layout.nz);
        let (ys, zs) = match self {
            Self::South => (1 - further..2 - further, 1..nz + 1),
            Self::North => (ny + further..ny + further + 1, 1..nz + 1),
            Self::Rear => (1..ny + 1, 1 - further..2 - further),
            Self::Front => (1..ny + 1, nz + further..nz + further + 1),
        };
        zs.flat_map(move |z| ys.clone().map(move |y| layout.line(y, z)))
    }

    /// Number of values of this face.
    pub fn len(self, layout: Layout) -> usize {
        layout.nx
            * match self {
                Self::South | Self::North => layout.nz,
                Self::Rear | Self::Front => layout.ny,
            }
    }
}

/// Regions of a part that a Jacobi sweep relaxes separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The points that need no ghost value.
    Inner,
    /// The other points.
    Rim,
}
