//! Triangular solves with factors that are one stencil on a box (`kernels/wavefront.cu`).

use std::cell::Cell;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::device::{Device, failed, grid};
use super::ilu::DevicePattern;
use super::launch::{BoxArg, SolveArg, address, launch};
use super::numbers::Numbers;
use super::solve::{Solve, Stencils, System};
use super::sources::{Variant, WAVEFRONT};
use super::triangles::{self, Triangles};
use crate::case::FactorPrecision;
use crate::error::{Error, Result};
use crate::symbolic::{FillPattern, March, Stencil};

/// Largest block size: a lane has one row of a block.
const LARGEST_BLOCK: usize = 32;

/// Compute capability with bulk copies.
const OLDEST_ARCH: (i32, i32) = (9, 0);

/// Columns of cells that a thread block has: patches of a warp each, and warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    patch: [usize; 2],
    warps: [usize; 2],
}

impl Tile {
    /// A tile for the march: patches near square in the order of the levels, as many warps as fit a
    /// thread block. `None` when the stencil reaches too far.
    fn new(block_size: usize, march: &March, layers: usize) -> Option<Self> {
        let columns = LARGEST_BLOCK / block_size;
        let patch = match columns {
            n if layers == 1 => [n, 1],
            32 if march.alpha > 1 => [4, 8],
            32 => [8, 4],
            16 => [4, 4],
            10 => [5, 2],
            8 => [4, 2],
            6 => [3, 2],
            4 => [2, 2],
            n => [n, 1],
        };
        let warps: &[[usize; 2]] = match layers {
            1 => &[[4, 1], [2, 1], [1, 1]],
            _ if march.alpha > 1 && block_size == 1 => &[[4, 1], [2, 1], [1, 1]],
            _ if patch[1] == 1 => &[[2, 4], [2, 3], [2, 2], [1, 2], [1, 1]],
            _ => &[[2, 2], [2, 1], [1, 1]],
        };
        let enough =
            |axis: usize, warps: usize| warps.max(march.depth(axis + 1).div_ceil(patch[axis]));
        let tiles = warps.iter().map(|w| Self { patch, warps: [enough(0, w[0]), enough(1, w[1])] });
        tiles.into_iter().find(|tile| tile.fits(block_size, march))
    }

    /// Whether a thread block has the threads and, the stages of its factors being as small as can
    /// be, the shared memory; follows `wavefront.cu`.
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

    fn size(&self, axis: usize) -> usize {
        self.patch[axis] * self.warps[axis]
    }
}

/// The variant of `wavefront.cu` for a march in tiles.
fn variant(block_size: usize, march: &March, tile: &Tile) -> Variant {
    let list = |o: &[i32; 3]| format!("{{{},{},{}}}", o[0], o[1], o[2]);
    let offsets: Vec<String> = march.offsets.iter().map(list).collect();
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
        lists: vec![("OFFSETS", offsets.join(","))],
    }
}

/// The variant of `wavefront.cu` for a stencil; `None` when it reaches too far for a tile.
pub fn stencil_variant(block_size: usize, stencil: &Stencil) -> Option<Variant> {
    let march = stencil.march();
    Tile::new(block_size, &march, stencil.extents[2]).map(|tile| variant(block_size, &march, &tile))
}

/// The variant that takes pivots.
fn taking_pivots(mut variant: Variant) -> Variant {
    variant.defines.push(("PIVOTS", 1));
    variant
}

/// The variant of `wavefront.cu` for the pivots of a factorisation, blocks of one; `None` when the
/// stencil reaches too far for a tile.
pub fn pivots_variant(stencil: &Stencil) -> Option<Variant> {
    stencil_variant(1, stencil).map(taking_pivots)
}

/// What a kernel says of itself: mirrors `wavefront_layout`.
struct Layout {
    threads: u32,
    shared: u32,
    /// Numbers of a record, forward and backward.
    record: [usize; 2],
    /// Steps of a turn.
    turn: usize,
    /// Columns that neighbours look at.
    boundary: usize,
    /// Marches start and end at multiples of so many steps.
    aligned: usize,
    /// Steps by which the exchange starts before the first of a tile, and ends after the last.
    pad: usize,
}

/// Which tiles there are, in the order in which they start, and where their records lie.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// y', z of the tile in tiles, first step, number of steps.
    tiles: Vec<[i32; 4]>,
    /// Per tile and warp: first step of the records, how many, index of the first.
    warps: Vec<[i32; 4]>,
    place: Vec<u32>,
    across: usize,
    /// Steps from the first to the last cell of a tile at most.
    steps: usize,
    records: usize,
}

impl Plan {
    fn new(
        stencil: &Stencil,
        march: &March,
        tile: &Tile,
        turn: usize,
        aligned: usize,
    ) -> Result<Self> {
        let [nx, ny, nz] = stencil.extents;
        let (alpha, beta) = (march.alpha, march.beta);
        let across = (ny + march.shear * (nz - 1)).div_ceil(tile.size(0));
        let layers = nz.div_ceil(tile.size(1));
        let exists =
            |yy: usize, z: usize| z < nz && yy >= march.shear * z && yy < march.shear * z + ny;
        // steps at which columns [y, y + patch) x [z, z + patch) of a tile start
        let starts = |at: [usize; 2], from: [usize; 2], size: [usize; 2]| {
            let mut range: Option<(i32, i32)> = None;
            for tz in from[1]..from[1] + size[1] {
                for ty in from[0]..from[0] + size[0] {
                    if exists(at[0] * tile.size(0) + ty, at[1] * tile.size(1) + tz) {
                        let s = (alpha * ty + beta * tz) as i32;
                        range = Some(range.map_or((s, s), |(a, b)| (a.min(s), b.max(s))));
                    }
                }
            }
            range
        };
        let whole = [tile.size(0), tile.size(1)];
        let mut there: Vec<([usize; 2], i32, i32)> = (0..layers)
            .flat_map(|z| (0..across).map(move |y| [y, z]))
            .filter_map(|at| starts(at, [0, 0], whole).map(|(a, b)| (at, a, b)))
            .collect();
        let level = |at: [usize; 2]| alpha * at[0] * tile.size(0) + beta * at[1] * tile.size(1);
        there.sort_by_key(|&(at, first, _)| (level(at) as i64 + i64::from(first), at[1]));

        let mut plan = Self {
            tiles: Vec::new(),
            warps: Vec::new(),
            place: vec![u32::MAX; across * layers],
            across,
            steps: alpha * (tile.size(0) - 1) + beta * (tile.size(1) - 1) + nx,
            records: 0,
        };
        let (turn, aligned) = (turn as i32, aligned as i32);
        let up = |n: i32, to: i32| (n + to - 1) / to * to;
        for (at, first, _) in there {
            plan.place[at[1] * across + at[0]] = plan.tiles.len() as u32;
            // values of neighbours are wanted before the first own cell
            let first = (first - march.longest_delay() as i32).div_euclid(aligned) * aligned;
            let mut steps = aligned;
            for wz in 0..tile.warps[1] {
                for wy in 0..tile.warps[0] {
                    let from = [wy * tile.patch[0], wz * tile.patch[1]];
                    let (begin, count) = match starts(at, from, tile.patch) {
                        Some((a, b)) => {
                            let begin = (a - first) / turn * turn;
                            (begin, up(b - first + nx as i32, turn) - begin)
                        }
                        None => (0, 0),
                    };
                    steps = steps.max(up(begin + count, aligned));
                    plan.warps.push([begin, count, plan.records as u32 as i32, 0]);
                    plan.records += count as usize;
                }
            }
            plan.tiles.push([at[0] as i32, at[1] as i32, first, steps]);
        }
        if u32::try_from(plan.records).is_err()
            || stencil.extents.iter().product::<usize>() > i32::MAX as usize
        {
            return Err(Error::memory("a factor has more than 2^32 records"));
        }
        Ok(plan)
    }
}

/// What a march is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Solving with L.
    Forward,
    /// Solving with U', whose stencil is that of the box turned around.
    Backward,
    /// Pivots of a factorisation: a forward solve that inverts what it finds, blocks of one.
    Pivots,
}

/// A triangle on the device, in the order of its march.
pub(super) struct Triangle {
    solve: CudaFunction,
    store: CudaFunction,
    config: LaunchConfig,
    extents: [usize; 3],
    plan: Plan,
    tiles: CudaSlice<[i32; 4]>,
    warps: CudaSlice<[i32; 4]>,
    place: CudaSlice<u32>,
    val: Numbers,
    /// Boundary values of this solve and of the next one.
    exchange: [CudaSlice<f64>; 2],
    turn: Cell<usize>,
    backward: bool,
}

impl Triangle {
    pub(super) fn new(
        d: &Device,
        block_size: usize,
        precision: FactorPrecision,
        stencil: &Stencil,
        role: Role,
    ) -> Result<Self> {
        let backward = role == Role::Backward;
        let march = stencil.march();
        let tile = Tile::new(block_size, &march, stencil.extents[2])
            .ok_or_else(|| Error::input("the stencil reaches too far for a tile"))?;
        let variant = variant(block_size, &march, &tile).storing(precision);
        let variant = if role == Role::Pivots { taking_pivots(variant) } else { variant };
        let name = |forward, back| if backward { back } else { forward };
        let solve =
            d.kernel(&WAVEFRONT, variant.clone(), name("wavefront_forward", "wavefront_backward"))?;
        let store = d.kernel(
            &WAVEFRONT,
            variant.clone(),
            name("wavefront_store_lower", "wavefront_store_upper"),
        )?;
        let layout = layout(d, variant)?;
        let which = usize::from(backward);
        let mut plan = Plan::new(stencil, &march, &tile, layout.turn, layout.aligned)?;
        solve
            .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, layout.shared as i32)
            .map_err(|e| failed("cannot prepare the wavefront", e))?;
        let resident = d.resident(&solve, layout.threads, layout.shared)?;
        plan.steps += 2 * layout.pad;
        let room = plan.tiles.len() * plan.steps * layout.boundary * block_size;
        let mut exchange = [d.alloc(room.max(1))?, d.alloc(room.max(1))?];
        for values in &mut exchange {
            d.mark_absent(values)?;
        }
        Ok(Self {
            solve,
            store,
            config: LaunchConfig {
                grid_dim: (resident.min(plan.tiles.len() as u32), 1, 1),
                block_dim: (layout.threads, 1, 1),
                shared_mem_bytes: layout.shared,
            },
            extents: stencil.extents,
            tiles: d.copied(&plan.tiles)?,
            warps: d.copied(&plan.warps)?,
            place: d.copied(&plan.place)?,
            val: Numbers::alloc(d, plan.records * layout.record[which], precision)?,
            exchange,
            turn: Cell::new(0),
            backward,
            plan,
        })
    }

    fn argument(&self) -> BoxArg {
        let turn = self.turn.get();
        BoxArg {
            nx: self.extents[0] as i32,
            ny: self.extents[1] as i32,
            nz: self.extents[2] as i32,
            tiles: self.plan.tiles.len() as i32,
            across: self.plan.across as i32,
            steps: self.plan.steps as i32,
            tile: address(&self.tiles),
            warp: address(&self.warps),
            place: address(&self.place),
            val: self.val.address(),
            exchange: address(&self.exchange[turn]),
            other: address(&self.exchange[1 - turn]),
        }
    }
}

impl triangles::Triangle for Triangle {
    const READS_DIAGONAL: bool = false;

    fn set_values(
        &mut self,
        d: &Device,
        pattern: &DevicePattern,
        blocks: &CudaSlice<f64>,
        diagonal: &Numbers,
    ) -> Result<()> {
        let arg = self.argument();
        launch!(
            d, &self.store, grid(self.plan.warps.len(), 128);
            arg, pattern.row_ptr, pattern.col_ind, *blocks, diagonal.address(), self.val.address()
        )
        .map_err(|e| failed("wavefront_store", e))
    }

    fn solve(&self, d: &Device, v: SolveArg) -> Result<(), DriverError> {
        let arg = self.argument();
        self.turn.set(1 - self.turn.get());
        let (from, to) = if self.backward { (v.y, v.z) } else { (v.r, v.y) };
        launch!(cooperative d, &self.solve, self.config; arg, from, to)
    }
}

fn layout(d: &Device, variant: Variant) -> Result<Layout> {
    let fault = |e: DriverError| failed("cannot prepare the wavefront", e);
    let module = d.module(&WAVEFRONT, variant)?;
    let mut bytes = [0u8; 32];
    let global = module.get_global("wavefront_layout", d.stream()).map_err(fault)?;
    d.stream().memcpy_dtoh(&global, &mut bytes).map_err(fault)?;
    d.stream().synchronize().map_err(fault)?;
    let mut n = [0u32; 8];
    for (n, b) in n.iter_mut().zip(bytes.chunks_exact(4)) {
        *n = u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
    }
    Ok(Layout {
        threads: n[0],
        shared: n[1],
        record: [n[2] as usize, n[3] as usize],
        turn: n[4] as usize,
        boundary: n[5] as usize,
        aligned: n[6] as usize,
        pad: n[7] as usize,
    })
}

/// The stencils of both triangles, `None` for an empty one; fails when a triangle is not one
/// stencil on a box.
pub(super) fn stencils(d: &Device, pattern: &FillPattern, block_size: usize) -> Stencils {
    if d.arch() < OLDEST_ARCH {
        return Err("the GPU is older than compute capability 9.0");
    }
    if block_size > LARGEST_BLOCK {
        return Err("blocks are larger than 32");
    }
    let (lower, upper) = rayon::join(
        || Stencil::of_lower(pattern.lower.view()),
        || Stencil::of_upper(pattern.upper.view()),
    );
    if lower.is_none() && pattern.lower.entries() > 0
        || upper.is_none() && pattern.upper.entries() > 0
    {
        return Err("the factors are not one stencil on a box");
    }
    let fits = |s: &Stencil| Tile::new(block_size, &s.march(), s.extents[2]).is_some();
    if !lower.iter().chain(&upper).all(fits) {
        return Err("the stencil reaches too far for a tile");
    }
    Ok([lower, upper])
}

/// Both triangles of a stencil.
pub(super) fn solve(s: &System) -> Result<Box<dyn Solve>> {
    let (d, f) = (s.device, s.factorisation);
    let [lower, upper] =
        s.analysis.stencils(d, &f.pattern, f.block_size).as_ref().map_err(|why| {
            Error::input(format!("no wavefront: {why}"))
                .hint("leave `--trisolve` at `auto`, or choose `syncfree`")
        })?;
    let triangle = |stencil: &Option<Stencil>, role| {
        let new = |stencil| Triangle::new(d, f.block_size, s.precision, stencil, role);
        stencil.as_ref().map(new).transpose()
    };
    let pair = [triangle(lower, Role::Forward)?, triangle(upper, Role::Backward)?];
    let y = d.alloc(f.pattern.rows() * f.block_size)?;
    Ok(Box::new(Triangles::new(d, f, s.precision, pair, y)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stencil(extents: [usize; 3], offsets: &[[i32; 3]]) -> Stencil {
        Stencil { extents, offsets: offsets.to_vec() }
    }

    /// Every cell is in exactly one record range, and every tile comes after those it waits for.
    fn check(stencil: &Stencil, tile: &Tile) {
        let march = stencil.march();
        let plan = Plan::new(stencil, &march, tile, 4, 8).unwrap();
        let [nx, ny, nz] = stencil.extents;
        let mut covered = vec![0u8; nx * ny * nz];
        for (k, t) in plan.tiles.iter().enumerate() {
            for w in 0..tile.warps[0] * tile.warps[1] {
                let [begin, count, _, _] = plan.warps[k * tile.warps[0] * tile.warps[1] + w];
                assert!(begin >= 0 && begin + count <= t[3] && count % 4 == 0);
                for c in 0..tile.patch[0] * tile.patch[1] {
                    let ty = w % tile.warps[0] * tile.patch[0] + c % tile.patch[0];
                    let tz = w / tile.warps[0] * tile.patch[1] + c / tile.patch[0];
                    let (yy, z) =
                        (t[0] as usize * tile.size(0) + ty, t[1] as usize * tile.size(1) + tz);
                    let Some(y) = yy.checked_sub(march.shear * z).filter(|&y| y < ny && z < nz)
                    else {
                        continue;
                    };
                    for u in begin..begin + count {
                        let x = t[2] + u - (march.alpha * ty + march.beta * tz) as i32;
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
    fn tiles_cover_every_cell_once_and_follow_their_sources() {
        let seven = [[0, 0, -1], [0, -1, 0], [-1, 0, 0]];
        let filled = [[0, 0, -1], [1, 0, -1], [0, 1, -1], [0, -1, 0], [1, -1, 0], [-1, 0, 0]];
        for extents in [[5, 7, 9], [40, 33, 17], [3, 1, 50], [2, 70, 1]] {
            for offsets in [&seven[..], &filled] {
                let s = stencil(extents, offsets);
                for block_size in [1, 2, 3, 8, 25] {
                    check(&s, &Tile::new(block_size, &s.march(), extents[2]).expect("short reach"));
                }
            }
        }
    }
}
