//! Tiles of the wavefronts (`kernels/sptrsv/wavefront/geometry.cuh`): columns of a box that a thread block has, and
//! which there are.

use cudarc::driver::CudaSlice;

use super::device::Device;
use super::launch::{TilesArg, address};
use super::sources::Variant;
use crate::base::error::{Error, Result};
use crate::symbolic::{March, Stencil};

/// Largest block size: a lane has one row of a block.
pub(super) const LARGEST_BLOCK: usize = 32;

/// Lanes that share a long row.
const GROUP: usize = 8;

/// Microseconds of a step of a factorisation of long rows in tiles of one, two and four warps' columns, on an H200.
const STEPS_OF_LONG_ROWS: [f64; 3] = [0.63, 0.87, 1.17];

/// Up to so many offsets, those of k = 2, a row takes little enough that several small tiles of a multiprocessor
/// make up for their number: they are the faster ones up to so many rows of a level for each multiprocessor.
const LONGER: usize = 16;
const SMALL_TILES: usize = 20;

/// Columns of a warp: near square in the order of the levels.
fn patch(block_size: usize, march: &March, layers: usize) -> [usize; 2] {
    match LARGEST_BLOCK / block_size {
        n if layers == 1 => [n, 1],
        32 if march.alpha > 1 => [4, 8],
        32 => [8, 4],
        16 => [4, 4],
        10 => [5, 2],
        8 => [4, 2],
        6 => [3, 2],
        4 => [2, 2],
        n => [n, 1],
    }
}

/// Columns of cells that a thread block has: patches of a warp each, and warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    patch: [usize; 2],
    warps: [usize; 2],
}

impl Tile {
    /// The shortest march over the stencil that has a tile, and that. `None` when the stencil reaches too far.
    pub(super) fn of_solve(block_size: usize, stencil: &Stencil) -> Option<(March, Self)> {
        let mut marches =
            [Stencil::shortest_march, Stencil::march].into_iter().map(|of| of(stencil));
        let with_tile = |march: March| {
            let tile = Self::new(block_size, &march, stencil.extents[2])?;
            Some((march, tile))
        };
        marches.find_map(with_tile)
    }

    /// A tile for the march, of as many warps as fit a thread block. `None` when the stencil reaches too far.
    pub(super) fn new(block_size: usize, march: &March, layers: usize) -> Option<Self> {
        let period = march.period();
        // the columns of a warp are of one kind, every second one
        let patch = match block_size {
            1 if period == 2 => [8, 4],
            _ => patch(block_size, march, layers),
        };
        let warps: &[[usize; 2]] = match layers {
            _ if period == 2 && patch[1] == 1 => &[[2, 4], [2, 2]],
            _ if period == 2 => &[[2, 2]],
            1 => &[[4, 1], [2, 1], [1, 1]],
            _ if march.alpha > 1 && block_size == 1 => &[[4, 1], [2, 1], [1, 1]],
            _ if patch[1] == 1 => &[[2, 4], [2, 3], [2, 2], [1, 2], [1, 1]],
            _ => &[[2, 2], [2, 1], [1, 1]],
        };
        let enough = |axis: usize, warps: usize| {
            let reached = march.depth(axis + 1).div_ceil(patch[axis]);
            warps.max(reached.next_multiple_of(period))
        };
        let tiles = warps.iter().map(|w| Self { patch, warps: [enough(0, w[0]), enough(1, w[1])] });
        tiles.into_iter().find(|tile| tile.fits(block_size, march))
    }

    /// Whether a thread block has the threads and, the stages of its factors being as small as can
    /// be, the shared memory; follows `sptrsv/wavefront.cu`.
    fn fits(&self, block_size: usize, march: &March) -> bool {
        let [ty, tz] = [self.size(0), self.size(1)];
        let [hy, hz] = [march.depth(1), march.depth(2)];
        let warps = self.warps[0] * self.warps[1];
        let loaders = (((ty + hy) * hz + hy * tz) * block_size).div_ceil(32);
        let turn = 4;
        let ring = (march.longest_delay() + turn).max(3 * turn).next_power_of_two();
        let lanes = self.patch[0] * self.patch[1] * block_size;
        // strides are padded by 15 at most
        let row = (ty + hy + 15) * (tz + hz) * block_size + 16;
        let of_warp = 3 * turn * (lanes + 2) + 4 * (lanes * block_size + 2) + 16;
        32 * (2 * warps + loaders) <= 1024 && 8 * (ring * row + warps * of_warp) <= 220 * 1024
    }

    /// A tile for the factorisation of a stencil (`ilu/stencil/rows.cuh`), of whose rows A has `given` (block)
    /// entries. `None` when what rows hand on does not fit the shared memory.
    pub(super) fn of_factorisation(
        block_size: usize,
        march: &March,
        layers: usize,
        given: usize,
    ) -> Option<Self> {
        let entries = block_size == 1 && layers > 1 && march.alpha > 1;
        // a narrow one leaves room for more that is handed on
        let patches = [Some(patch(block_size, march, layers)), entries.then_some([16, 2])];
        let warps: &[[usize; 2]] = match layers {
            1 => &[[4, 1], [2, 1], [1, 1]],
            _ if entries => &[[4, 1], [2, 1], [1, 2], [1, 1]],
            _ => &[[2, 2], [2, 1], [1, 1]],
        };
        let of = |&warps: &[usize; 2]| {
            patches.into_iter().flatten().map(move |patch| Self { patch, warps })
        };
        let tiles = warps.iter().flat_map(of);
        tiles.into_iter().find(|tile| tile.fits_factorisation(block_size, march, given))
    }

    /// A tile for a factorisation whose rows are shared by eight lanes each (`ilu/stencil/long.cu`); A has `given` entries
    /// in a row. `None` when the stencil reaches too far or what rows hand on does not fit the shared memory.
    pub(super) fn of_long_rows(
        stencil: &Stencil,
        given: usize,
        multiprocessors: usize,
    ) -> Option<Self> {
        let march = stencil.march();
        let [_, ny, nz] = stencil.extents;
        let of = |warps| Self { patch: [LARGEST_BLOCK / GROUP, 1], warps };
        if nz == 1 {
            return Some(of([4, 1])).filter(|tile| tile.fits_long_rows(&march, given));
        }
        let rows = stencil.extents.iter().product::<usize>() / march.levels(stencil.extents);
        // a step takes the longer the larger the tile is, but of small ones a multiprocessor has many, and goes
        // through those of shorter rows together
        let time = |tile: &Self, step: f64| {
            let tiles = (ny.div_ceil(tile.size(0)) + 1) * nz.div_ceil(tile.size(1));
            let steps = (tiles * tile.steps(stencil)).div_ceil(multiprocessors.max(1));
            steps.max(march.levels(stencil.extents)) as f64 * step
        };
        let tiles = [[1, 1], [2, 1], [2, 2]].map(of).into_iter().zip(STEPS_OF_LONG_ROWS);
        let mut fitting = tiles.filter(|(tile, _)| tile.fits_long_rows(&march, given));
        let best = if march.offsets.len() > LONGER {
            fitting.min_by(|a, b| time(&a.0, a.1).total_cmp(&time(&b.0, b.1)))
        } else if rows <= SMALL_TILES * multiprocessors {
            fitting.next()
        } else {
            fitting.next_back()
        };
        best.map(|(tile, _)| tile)
    }

    /// Steps of a march through the tile, about.
    fn steps(&self, stencil: &Stencil) -> usize {
        let march = stencil.march();
        let skew = march.alpha * (self.size(0) - 1) + march.beta * (self.size(1) - 1);
        stencil.extents[0] + skew + march.longest_delay()
    }

    /// As [`Tile::fits_factorisation`]; follows `ilu/stencil/long.cu`.
    fn fits_long_rows(&self, march: &March, given: usize) -> bool {
        let [ty, tz] = [self.size(0), self.size(1)];
        let [hy, hz] = [march.depth(1), march.depth(2)];
        let (offsets, warps) = (march.offsets.len(), self.warps[0] * self.warps[1]);
        let handed = offsets + 1;
        let ring = (march.longest_delay() + 2).next_power_of_two();
        let cell = (handed + 8) / 8 * 8;
        let given = 2 * (LARGEST_BLOCK / GROUP) * (8 * given + 1);
        let passed = 8 * LARGEST_BLOCK * (offsets.div_ceil(GROUP) + handed.div_ceil(GROUP));
        let ends = 2 * LARGEST_BLOCK;
        let numbers = ring * cell * (ty + hy) * (tz + hz) + warps * (given + passed) + ends;
        let loaders = (((ty + hy) * hz + hy * tz) * handed).div_ceil(128);
        let fits = hy <= ty && hz <= tz && loaders <= 12 && 8 * numbers <= 222 * 1024;
        // rows have a bit for each entry of a triangle, and stages are two or three steps apart
        fits && offsets <= 32 && march.longest_delay() > 2
    }

    /// Whether the tile is as wide as the stencil reaches, and a thread block has the threads and the shared
    /// memory for it; follows `ilu/stencil/entries.cu` and `ilu/stencil/blocks.cu`.
    fn fits_factorisation(&self, block_size: usize, march: &March, given: usize) -> bool {
        let [ty, tz] = [self.size(0), self.size(1)];
        let [hy, hz] = [march.depth(1), march.depth(2)];
        let warps = self.warps[0] * self.warps[1];
        let columns = self.patch[0] * self.patch[1];
        let bb = block_size * block_size;
        let handed = march.offsets.len() + 1;
        let wanted = ((ty + hy) * hz + hy * tz) * handed;
        // blocks are a little apart, and rows of entries come two by two
        let (block, turn) = if block_size == 1 { (1, 2) } else { (bb + 2, 1) };
        let ring = march.longest_delay().max(2).next_power_of_two();
        let rows = warps * 2 * (columns * (turn * given * bb + 1) + 2) + given.max(bb);
        let bytes = 8 * (ring * handed * (ty + hy) * (tz + hz) * block + rows);
        let loaders =
            if block_size == 1 { wanted.div_ceil(128) } else { (wanted * bb).div_ceil(256) };
        hy <= ty && hz <= tz && loaders <= 16 && bytes <= 222 * 1024
    }

    fn size(&self, axis: usize) -> usize {
        self.patch[axis] * self.warps[axis]
    }
}

/// The variant of a source for a march in tiles.
pub(super) fn variant(block_size: usize, march: &March, tile: &Tile) -> Variant {
    let list = |o: &[i32; 3]| format!("{{{},{},{}}}", o[0], o[1], o[2]);
    let offsets: Vec<String> = march.offsets.iter().map(list).collect();
    let mut lists = vec![("OFFSETS", offsets.join(","))];
    if let Some(kinds) = &march.kinds {
        let list = |of: &[usize]| of.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        lists.extend([("COUNTS", list(&kinds.counts)), ("PHASES", list(&kinds.phases))]);
    }
    Variant {
        block_size,
        defines: vec![
            ("SHEAR", march.shear),
            ("ALPHA", march.alpha),
            ("BETA", march.beta),
            ("PATCH_Y", tile.patch[0]),
            ("PATCH_Z", tile.patch[1]),
            ("WARPS_Y", tile.warps[0]),
            ("WARPS_Z", tile.warps[1]),
        ],
        lists,
    }
}

/// Which tiles there are, in the order in which they start, and where their records lie.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// y', z of the tile in tiles, first step, number of steps.
    pub(super) tiles: Vec<[i32; 4]>,
    /// Per tile and warp: first step of the records, how many, units before the first.
    pub(super) warps: Vec<[i32; 4]>,
    pub(super) place: Vec<u32>,
    pub(super) across: usize,
    /// Steps from the first to the last cell of a tile at most.
    pub(super) steps: usize,
    /// Parts of records.
    pub(super) units: usize,
}

impl Plan {
    /// The plan of a march in turns of `turn` steps, which starts and ends at multiples of `aligned` steps; a record
    /// of a warp has so many units for each kind of columns.
    pub(super) fn new(
        stencil: &Stencil,
        (march, tile): (&March, &Tile),
        [turn, aligned]: [usize; 2],
        units: &[usize],
    ) -> Result<Self> {
        let [nx, ny, nz] = stencil.extents;
        let period = march.period();
        let across = (ny + march.shear * (nz - 1)).div_ceil(tile.size(0));
        let layers = nz.div_ceil(tile.size(1));
        let exists =
            |yy: usize, z: usize| z < nz && yy >= march.shear * z && yy < march.shear * z + ny;
        // steps at which so many columns of a tile start, each `apart` from the one before
        let starts = |at: [usize; 2], from: [usize; 2], count: [usize; 2], apart: usize| {
            let mut range: Option<(i32, i32)> = None;
            for tz in (0..count[1]).map(|n| from[1] + n * apart) {
                for ty in (0..count[0]).map(|n| from[0] + n * apart) {
                    if exists(at[0] * tile.size(0) + ty, at[1] * tile.size(1) + tz) {
                        let s = march.skew(ty as i32, tz as i32);
                        range = Some(range.map_or((s, s), |(a, b)| (a.min(s), b.max(s))));
                    }
                }
            }
            range
        };
        let whole = [tile.size(0), tile.size(1)];
        let mut there: Vec<([usize; 2], i32, i32)> = (0..layers)
            .flat_map(|z| (0..across).map(move |y| [y, z]))
            .filter_map(|at| starts(at, [0, 0], whole, 1).map(|(a, b)| (at, a, b)))
            .collect();
        // when each starts, not before those that it waits for
        let mut start = vec![i32::MIN; across * layers];
        for &([y, z], first, _) in &there {
            let own = first + march.skew((y * tile.size(0)) as i32, (z * tile.size(1)) as i32);
            let waits = [(1, 0), (0, 1), (1, 1)].into_iter().filter(|&(dy, dz)| y >= dy && z >= dz);
            let others = waits.map(|(dy, dz)| start[(z - dz) * across + y - dy]).max();
            start[z * across + y] = own.max(others.unwrap_or(own));
        }
        there.sort_by_key(|&([y, z], _, _)| (start[z * across + y], z));

        let mut plan = Self {
            tiles: Vec::new(),
            warps: Vec::new(),
            place: vec![u32::MAX; across * layers],
            across,
            steps: nx,
            units: 0,
        };
        let (turn, aligned) = (turn as i32, aligned as i32);
        let up = |n: i32, to: i32| (n + to - 1) / to * to;
        for (at, first, last) in there {
            plan.steps = plan.steps.max(last as usize + nx);
            plan.place[at[1] * across + at[0]] = plan.tiles.len() as u32;
            // values of neighbours are wanted before the first own cell
            let first = (first - march.longest_delay() as i32).div_euclid(aligned) * aligned;
            let mut steps = aligned;
            for wz in 0..tile.warps[1] {
                for wy in 0..tile.warps[0] {
                    let column =
                        |warp: usize, patch: usize| warp / period * period * patch + warp % period;
                    let from = [column(wy, tile.patch[0]), column(wz, tile.patch[1])];
                    let (begin, count) = match starts(at, from, tile.patch, period) {
                        Some((a, b)) => {
                            let begin = (a - first) / turn * turn;
                            (begin, up(b - first + nx as i32, turn) - begin)
                        }
                        None => (0, 0),
                    };
                    steps = steps.max(up(begin + count, aligned));
                    plan.warps.push([begin, count, plan.units as u32 as i32, 0]);
                    let kind = if period == 1 { 0 } else { wy % 2 + 2 * (wz % 2) };
                    plan.units += count as usize * units[kind];
                }
            }
            plan.tiles.push([at[0] as i32, at[1] as i32, first, steps]);
        }
        if u32::try_from(plan.units).is_err()
            || stencil.extents.iter().product::<usize>() > i32::MAX as usize
        {
            return Err(Error::memory("a factor has more than 2^32 parts of records"));
        }
        Ok(plan)
    }
}

/// A plan on the device.
pub(super) struct Tiles {
    pub(super) plan: Plan,
    extents: [usize; 3],
    tile: CudaSlice<[i32; 4]>,
    warp: CudaSlice<[i32; 4]>,
    place: CudaSlice<u32>,
}

impl Tiles {
    pub(super) fn new(d: &Device, stencil: &Stencil, plan: Plan) -> Result<Self> {
        Ok(Self {
            extents: stencil.extents,
            tile: d.copied(&plan.tiles)?,
            warp: d.copied(&plan.warps)?,
            place: d.copied(&plan.place)?,
            plan,
        })
    }

    pub(super) fn argument(&self) -> TilesArg {
        let [nx, ny, nz] = self.extents.map(|n| n as i32);
        TilesArg {
            nx,
            ny,
            nz,
            tiles: self.plan.tiles.len() as i32,
            across: self.plan.across as i32,
            steps: self.plan.steps as i32,
            tile: address(&self.tile),
            warp: address(&self.warp),
            place: address(&self.place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stencil(extents: [usize; 3], offsets: &[[i32; 3]]) -> Stencil {
        Stencil::uniform(extents, offsets.to_vec())
    }

    /// Every cell is in exactly one record range, and every tile comes after those it waits for.
    fn check(stencil: &Stencil, march: &March, tile: &Tile) {
        let period = march.period();
        let units = vec![1; march.counts().len()];
        let plan = Plan::new(stencil, (march, tile), [4, 8], &units).unwrap();
        let [nx, ny, nz] = stencil.extents;
        let mut covered = vec![0u8; nx * ny * nz];
        for (k, t) in plan.tiles.iter().enumerate() {
            for w in 0..tile.warps[0] * tile.warps[1] {
                let [begin, count, _, _] = plan.warps[k * tile.warps[0] * tile.warps[1] + w];
                assert!(begin >= 0 && begin + count <= t[3] && count % 4 == 0);
                for c in 0..tile.patch[0] * tile.patch[1] {
                    let of = |w: usize, patch: usize, c: usize| {
                        w / period * period * patch + w % period + period * c
                    };
                    let ty = of(w % tile.warps[0], tile.patch[0], c % tile.patch[0]);
                    let tz = of(w / tile.warps[0], tile.patch[1], c / tile.patch[0]);
                    let (yy, z) =
                        (t[0] as usize * tile.size(0) + ty, t[1] as usize * tile.size(1) + tz);
                    let Some(y) = yy.checked_sub(march.shear * z).filter(|&y| y < ny && z < nz)
                    else {
                        continue;
                    };
                    for u in begin..begin + count {
                        let x = t[2] + u - march.skew(ty as i32, tz as i32);
                        if (0..nx as i32).contains(&x) {
                            covered[(z * ny + y) * nx + x as usize] += 1;
                        }
                    }
                }
            }
            for (dy, dz) in [(1, 0), (0, 1), (1, 1)] {
                if t[0] >= dy && t[1] >= dz {
                    let before =
                        plan.place[(t[1] - dz) as usize * plan.across + (t[0] - dy) as usize];
                    assert!(before == u32::MAX || (before as usize) < k, "{before} before {k}");
                }
            }
        }
        assert!(covered.iter().all(|&n| n == 1));
    }

    #[test]
    fn long_rows_have_small_tiles_while_there_are_multiprocessors_for_them() {
        // what three levels of fill reach, and one
        let filled = [
            [0, 0, -1],
            [1, 0, -1],
            [2, 0, -1],
            [3, 0, -1],
            [-1, 1, -1],
            [-2, 1, -1],
            [0, 1, -1],
            [1, 1, -1],
            [0, 2, -1],
            [-1, 2, -1],
            [0, 3, -1],
            [0, -2, 0],
            [0, -1, 0],
            [1, -1, 0],
            [2, -1, 0],
            [3, -1, 0],
            [-1, 0, 0],
        ];
        let once = [[0, 0, -1], [1, 0, -1], [0, 1, -1], [0, -1, 0], [1, -1, 0], [-1, 0, 0]];
        let warps = |offsets: &[[i32; 3]], extents, multiprocessors| {
            let s = stencil(extents, offsets);
            Tile::of_long_rows(&s, 7, multiprocessors).expect("short reach").warps
        };
        assert_eq!(warps(&filled, [64, 64, 64], 132), [1, 1]);
        assert_eq!(warps(&filled, [64, 64, 64], 40), [2, 1]);
        assert_eq!(warps(&filled, [120, 120, 120], 132), [2, 1]);
        assert_eq!(warps(&filled, [200, 200, 200], 132), [2, 2]);
        assert_eq!(warps(&filled, [400, 400, 1], 132), [4, 1]);
        assert_eq!(warps(&once, [64, 64, 64], 132), [1, 1]);
        assert_eq!(warps(&once, [120, 120, 120], 132), [1, 1]);
        assert_eq!(warps(&once, [200, 200, 200], 132), [2, 2]);
    }

    #[test]
    fn tiles_cover_every_cell_once_and_follow_their_sources() {
        let seven = [[0, 0, -1], [0, -1, 0], [-1, 0, 0]];
        let filled = [[0, 0, -1], [1, 0, -1], [0, 1, -1], [0, -1, 0], [1, -1, 0], [-1, 0, 0]];
        for extents in [[5, 7, 9], [40, 33, 17], [3, 1, 50], [2, 70, 1]] {
            for offsets in [&seven[..], &filled] {
                let s = stencil(extents, offsets);
                for block_size in [1, 2, 3, 8, 25] {
                    let march = s.march();
                    let tile = Tile::new(block_size, &march, extents[2]).expect("short reach");
                    check(&s, &march, &tile);
                }
            }
        }
    }

    #[test]
    fn warps_of_columns_of_one_kind_cover_every_cell_once() {
        for extents in [[5, 17, 19], [12, 33, 18], [3, 40, 7]] {
            let pair = [[0, 0, -1], [0, -1, 0], [-1, 0, 0], [1, 0, -1], [1, -1, 0]];
            let mut s = stencil(extents, &pair);
            // what is filled, every second line along an axis has
            s.parities[3] = crate::symbolic::Parities(0b1100);
            s.parities[4] = crate::symbolic::Parities(0b1010);
            for block_size in [1, 2, 3, 4, 8, 13] {
                let (march, tile) = Tile::of_solve(block_size, &s).expect("short reach");
                assert_eq!(march.period(), 2, "{extents:?}, b = {block_size}");
                check(&s, &march, &tile);
            }
            // lines that are coupled with every second one, so that the next may start before
            let apart = [[2, -2, 0], [-1, 0, 0], [3, -1, -1]];
            let mut s = stencil(extents, &apart);
            s.parities[0] = crate::symbolic::Parities(0b0101);
            for block_size in [1, 4] {
                let (march, tile) = Tile::of_solve(block_size, &s).expect("short reach");
                check(&s, &march, &tile);
            }
        }
    }
}
