//! Triangular solves with factors that are one stencil on a box (`kernels/sptrsv/wavefront.cu`).

use std::cell::Cell;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::choice::Shape;
use super::triangles::{self, Triangles};
use super::{Algorithm, InHalves, Solve, System};
use crate::base::choices::FactorPrecision;
use crate::base::error::{Error, Result};
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{BoxArg, SolveArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Numbers;
use crate::compute::cuda::sources::{Variant, WAVEFRONT};
use crate::compute::cuda::storage::DevicePattern;
use crate::compute::cuda::tiles::{Plan, Tile, Tiles, variant};
use crate::compute::trisolve::{Description, Takes};
use crate::symbolic::Stencil;

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "wavefront",
    summary: "one launch; tiles of a stencil on a box march through it, \
              levels inside a multiprocessor",
    takes: Takes::Stencils,
    automatic: true,
    advised: true,
    ..Description::PLAIN
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    about: ABOUT,
    seconds: Some(seconds),
    largest_block: usize::MAX,
    host_rows: false,
    new: solve,
    in_halves: Some(in_halves),
};

/// A step per level, with all products of a row; launches and the way through the first tiles.
fn seconds(s: &Shape) -> Option<f64> {
    let both = s.stencils.as_ref().ok()?;
    let most = |stencil: &Stencil| stencil.shortest_march().counts().into_iter().max();
    let offsets = both.iter().flatten().filter_map(most).max().unwrap_or(0);
    let products = (offsets * s.block_size) as f64;
    // lanes of large blocks wait for each other's columns
    let product = 0.4e-9 * (s.block_size as f64).max(7.5);
    let step = 0.17e-6 + 8.5e-9 * products.min(24.0) + product * (products - 24.0).max(0.0);
    Some(15e-6 + s.levels as f64 * step + s.reading())
}

/// The variant of `sptrsv/wavefront.cu` for a stencil; `None` when it reaches too far for a tile.
pub fn stencil_variant(block_size: usize, stencil: &Stencil) -> Option<Variant> {
    Tile::of_solve(block_size, stencil).map(|(march, tile)| variant(block_size, &march, &tile))
}

/// Thread blocks that store the records of a warp: one has too few loads under way.
const STORE_PARTS: u32 = 8;

/// What a kernel says of itself: mirrors `wavefront_layout`.
struct Layout {
    threads: u32,
    shared: u32,
    /// Numbers of a part of a record: of an offset, or of the diagonal when solving with U'.
    unit: usize,
    /// Steps of a turn.
    turn: usize,
    /// Columns that neighbours look at.
    boundary: usize,
    /// Marches start and end at multiples of so many steps.
    aligned: usize,
    /// Steps by which the exchange starts before the first of a tile, and ends after the last.
    pad: usize,
}

/// What a march is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Solving with L.
    Forward,
    /// Solving with U', whose stencil is that of the box turned around.
    Backward,
}

/// A triangle on the device, in the order of its march.
pub(super) struct Triangle {
    solve: CudaFunction,
    store: CudaFunction,
    config: LaunchConfig,
    tiles: Tiles,
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
        let (march, tile) = Tile::of_solve(block_size, stencil)
            .ok_or_else(|| Error::input("the stencil reaches too far for a tile"))?;
        let variant = variant(block_size, &march, &tile).storing(precision);
        let name = |forward, back| if backward { back } else { forward };
        let solve =
            d.kernel(&WAVEFRONT, variant.clone(), name("wavefront_forward", "wavefront_backward"))?;
        let store = d.kernel(
            &WAVEFRONT,
            variant.clone(),
            name("wavefront_store_lower", "wavefront_store_upper"),
        )?;
        let layout = layout(d, variant)?;
        let units: Vec<usize> =
            march.counts().into_iter().map(|offsets| offsets + usize::from(backward)).collect();
        let turns = [layout.turn, layout.aligned];
        let mut plan = d.span("tiles", || Plan::new(stencil, (&march, &tile), turns, &units))?;
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
            val: Numbers::alloc(d, plan.units * layout.unit, precision)?,
            exchange,
            turn: Cell::new(0),
            backward,
            tiles: Tiles::new(d, stencil, plan)?,
        })
    }

    fn argument(&self) -> BoxArg {
        let turn = self.turn.get();
        BoxArg {
            base: self.tiles.argument(),
            val: self.val.address(),
            exchange: address(&self.exchange[turn]),
            other: address(&self.exchange[1 - turn]),
        }
    }
}

impl triangles::Triangle for Triangle {
    const READS_DIAGONAL: bool = false;
    const MARKS: bool = false;

    /// Records are as many for each cell as there are offsets; what tiles exchange stays in the cache.
    fn bytes(&self) -> usize {
        self.val.bytes()
    }

    fn set_values(
        &mut self,
        d: &Device,
        pattern: &DevicePattern,
        blocks: &CudaSlice<f64>,
        diagonal: &Numbers,
    ) -> Result<()> {
        let arg = self.argument();
        let mut config = grid(self.tiles.plan.warps.len(), 128);
        config.grid_dim.1 = STORE_PARTS;
        launch!(
            d, &self.store, config;
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
    let n = d.constants::<7>(&WAVEFRONT, variant, "wavefront_layout")?;
    Ok(Layout {
        threads: n[0],
        shared: n[1],
        unit: n[2] as usize,
        turn: n[3] as usize,
        boundary: n[4] as usize,
        aligned: n[5] as usize,
        pad: n[6] as usize,
    })
}

/// Both triangles of a stencil.
fn solve(s: &System) -> Result<Box<dyn Solve>> {
    let y = s.device.alloc(s.structure.pattern.rows() * s.structure.block_size)?;
    Ok(Box::new(Triangles::new(s, pair(s)?, y)?))
}

fn in_halves(s: &System) -> Result<Box<dyn InHalves>> {
    triangles::in_halves(s, pair(s)?)
}

fn pair(s: &System) -> Result<[Option<Triangle>; 2]> {
    let (d, f) = (s.device, s.structure);
    let [lower, upper] = s.analysis.stencils(d, f.block_size).as_ref().map_err(|why| {
        Error::input(format!("no wavefront: {why}"))
            .hint("leave `--trisolve` at `auto`, or choose `syncfree`")
    })?;
    let triangle = |stencil: &Option<Stencil>, role| {
        let new = |stencil| Triangle::new(d, f.block_size, s.precision, stencil, role);
        stencil.as_ref().map(new).transpose()
    };
    Ok([triangle(lower, Role::Forward)?, triangle(upper, Role::Backward)?])
}
