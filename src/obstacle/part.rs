//! Parts of a grid: their faces and regions.

use super::case::Split;
use super::field::Layout;

/// A side of a part that another part may touch.
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

    /// The side of the neighbour that touches this one.
    #[must_use]
    pub fn opposite(self) -> Self {
        [Self::North, Self::South, Self::Front, Self::Rear][self as usize]
    }

    /// The node behind this side of node `number`, if any.
    pub fn neighbour(self, split: Split, number: usize) -> Option<usize> {
        let (y, z) = (number % split.y, number / split.y);
        match self {
            Self::South => (y > 0).then(|| number - 1),
            Self::North => (y + 1 < split.y).then(|| number + 1),
            Self::Rear => (z > 0).then(|| number - split.y),
            Self::Front => (z + 1 < split.z).then(|| number + split.y),
        }
    }

    /// Lines of this side: of the outermost values, or one further out those of the neighbour.
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

    /// Values of this side.
    pub fn len(self, layout: Layout) -> usize {
        layout.nx
            * match self {
                Self::South | Self::North => layout.nz,
                Self::Rear | Self::Front => layout.ny,
            }
    }
}

/// Lines of a part that a Jacobi sweep does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Those that need nothing of a neighbour.
    Inner,
    /// The others.
    Rim,
}
