//! Tiling of a part of the grid for thread blocks.

use crate::compute::cuda::layout::shared;
use crate::obstacle::Split;
use crate::obstacle::field::Extent;

shared! {
    #[derive(Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
    pub(super) Tile = "Tile" of "obstacle/grid.cuh" { y0: u32, y1: u32, z0: u32, z1: u32, slot: u32 }
}

/// All tiles of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    /// The tiles; those of a thread block are consecutive in z.
    pub(super) list: Vec<Tile>,
    /// Tiles of a thread block.
    pub(super) segments: usize,
    /// Tiles at faces, which come first.
    pub(super) early: usize,
    /// First slot of each part over which norms are taken, then the number of slots; in tiles.
    pub(super) first: Vec<u32>,
}

/// Constraints of a tiling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// Lines of a tile.
    pub(super) lines: usize,
    /// Slices of a tile; none where a thread block goes through all.
    pub(super) slices: Option<usize>,
    /// Whether the tiles of the first and of the last slice come before all others, because their values are
    /// sent to neighbours.
    pub(super) early: [bool; 2],
}

impl Tiles {
    /// No tile belongs to two parts of `norm`.
    pub(super) fn new(extent: &Extent, norm: Split, shape: Shape) -> Self {
        let m = extent.m;
        let pieces = |whole: &std::ops::Range<usize>, parts: usize, most: usize| {
            let mut list = Vec::new();
            for part in 0..parts {
                let range = Split::range(m, parts, part);
                let (from, to) = (range.start.max(whole.start), range.end.min(whole.end));
                // equal lengths, none above `most`
                let count = to.saturating_sub(from).div_ceil(most);
                for i in 0..count {
                    let at = |i: usize| (from + (to - from) * i / count - whole.start + 1) as u32;
                    list.push((part, at(i), at(i + 1)));
                }
            }
            list
        };
        let in_y = pieces(&extent.y, norm.y, shape.lines);
        let in_z = pieces(&extent.z, norm.z, shape.slices.unwrap_or(m));
        let mut list = Vec::with_capacity(in_y.len() * in_z.len());
        let mut part = Vec::with_capacity(list.capacity());
        let mut add = |y: (usize, u32, u32), z: (usize, u32, u32)| {
            list.push(Tile { y0: y.1, y1: y.2, z0: z.1, z1: z.2, slot: 0 });
            part.push(y.0 + norm.y * z.0);
        };
        let segments = if shape.slices.is_none() {
            for &y in &in_y {
                for &z in &in_z {
                    add(y, z);
                }
            }
            in_z.len()
        } else {
            // neighbours in y one behind the other: they share values in the cache
            for &z in &in_z {
                for &y in &in_y {
                    add(y, z);
                }
            }
            1
        };
        let mut first = vec![0; norm.count() + 1];
        for &p in &part {
            first[p + 1] += 1;
        }
        for p in 0..norm.count() {
            first[p + 1] += first[p];
        }
        let mut next = first.clone();
        for (tile, &p) in list.iter_mut().zip(&part) {
            tile.slot = next[p];
            next[p] += 1;
        }
        let last = extent.z.len() as u32 + 1;
        let [at_first, at_last] = shape.early;
        let is_early = |tile: &Tile| at_first && tile.z0 == 1 || at_last && tile.z1 == last;
        list.sort_by_key(|tile| !is_early(tile));
        let early = list.partition_point(is_early);
        Self { list, segments, early, first }
    }

    /// `slices` of a tile, or as many more as it takes for `in_y` tiles in y and all of `nz` to fit into a
    /// launch; with `parts` of the norm in z there may be as many tiles more.
    pub(super) fn fitting(slices: usize, in_y: usize, parts: usize, nz: usize) -> usize {
        const MOST: usize = 65_535;
        let in_z = (MOST / in_y.max(1)).saturating_sub(parts).max(1);
        slices.max(nz.div_ceil(in_z))
    }

    /// Slices of a tile such that `resident` thread blocks have about the same to do, when there are
    /// `columns` of tiles; with `extra` slices a tile reads beyond its own.
    pub(super) fn slices(nz: usize, columns: usize, resident: usize, extra: f64) -> usize {
        let share = |count: usize| {
            let (blocks, slices) = (columns * count, nz.div_ceil(count));
            let waves = blocks.div_ceil(resident.max(1));
            blocks as f64 / (waves * resident.max(1)) as f64 * slices as f64
                / (slices as f64 + extra)
        };
        let counts = 1..=nz.div_ceil(8).min(64);
        let best = counts.max_by(|a, b| share(*a).total_cmp(&share(*b))).unwrap_or(1);
        nz.div_ceil(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_line_and_slice_once_within_the_parts_of_the_norm() {
        let (m, norm) = (21, Split { y: 3, z: 2 });
        let extent = Extent { m, y: 0..m, z: 5..17 };
        let [both, one] = [[true, true], [false, true]];
        for shape in [
            Shape { lines: 4, slices: Some(5), ..Shape::default() },
            Shape { lines: 4, slices: Some(2), early: both },
            Shape { lines: 2, slices: Some(4), early: one },
            Shape { lines: 8, slices: None, ..Shape::default() },
        ] {
            let tiles = Tiles::new(&extent, norm, shape);
            let mut seen = vec![0; m * 12];
            let mut slots = Vec::new();
            for tile in &tiles.list {
                let part =
                    |at: u32, start: usize, parts| Split::part(m, parts, start + at as usize - 1);
                let p = part(tile.y0, 0, 3) + 3 * part(tile.z0, 5, 2);
                assert_eq!(p, part(tile.y1 - 1, 0, 3) + 3 * part(tile.z1 - 1, 5, 2));
                assert!((tiles.first[p]..tiles.first[p + 1]).contains(&tile.slot), "{tile:?}");
                slots.push(tile.slot);
                assert!(tile.y1 - tile.y0 <= shape.lines as u32);
                for z in tile.z0..tile.z1 {
                    (tile.y0..tile.y1)
                        .for_each(|y| seen[(z as usize - 1) * m + y as usize - 1] += 1);
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{shape:?}");
            slots.sort_unstable();
            assert!(slots.iter().enumerate().all(|(i, &s)| i == s as usize));
            let segments = if shape.slices.is_none() { 2 } else { 1 };
            assert_eq!(
                (tiles.segments, *tiles.first.last().unwrap()),
                (segments, slots.len() as u32)
            );
        }
    }

    #[test]
    fn tiles_at_sides_that_neighbours_want_come_first() {
        let extent = Extent { m: 6, y: 0..4, z: 0..6 };
        let order = |early| {
            let shape = Shape { lines: 2, slices: Some(2), early };
            let tiles = Tiles::new(&extent, Split::WHOLE, shape);
            let at_sides = early.into_iter().filter(|side| *side).count();
            assert_eq!(tiles.early, 2 * at_sides);
            tiles.list.iter().map(|t| (t.y0, t.z0)).collect::<Vec<_>>()
        };
        assert_eq!(order([false, false]), [(1, 1), (3, 1), (1, 3), (3, 3), (1, 5), (3, 5)]);
        assert_eq!(order([false, true]), [(1, 5), (3, 5), (1, 1), (3, 1), (1, 3), (3, 3)]);
        assert_eq!(order([true, true]), [(1, 1), (3, 1), (1, 5), (3, 5), (1, 3), (3, 3)]);
    }

    #[test]
    fn a_launch_has_room_for_all_tiles() {
        assert_eq!(Tiles::fitting(16, 100, 1, 800), 16);
        // 512 tiles in y: no more than 127 in z
        assert_eq!(Tiles::fitting(16, 512, 1, 4096), 33);
        assert_eq!(Tiles::fitting(64, 1, 1, 5), 64);
    }

    #[test]
    fn blocks_of_one_wave_are_preferred() {
        // 128 columns for 1056 blocks: 8 of 32 slices each fill 97 %
        assert_eq!(Tiles::slices(256, 128, 1056, 0.7), 32);
        assert_eq!(Tiles::slices(512, 512, 1056, 0.7), 256);
        assert!(Tiles::slices(5, 1, 1000, 0.7) <= 5);
    }
}
