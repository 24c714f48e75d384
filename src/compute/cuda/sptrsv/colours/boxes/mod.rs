//! Solves by the colours of a lattice in one launch, for scalar factors on a box of cells
//! (`kernels/sptrsv/colours/boxes.cu`).

mod division;
mod lists;
mod plan;
#[cfg(test)]
mod tests;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig};

use self::lists::Lists;
use self::plan::{Plan, Shape};
use crate::base::error::Result;
use crate::compute::Bytes;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{Address, BoxLayoutArg, ColourBoxesArg, address, launch};
use crate::compute::cuda::layout::Layout;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Values;
use crate::compute::cuda::sources::{COLOUR_BOXES, Variant};
use crate::compute::cuda::sptrsv::{Solve, System};
use crate::compute::cuda::storage::Structure;

/// Structs that the kernels share.
pub(super) const LAYOUTS: [&[Layout]; 2] = [plan::LAYOUTS, plan::steps::LAYOUTS];

/// Compute capability from which the kernel is compiled.
const OLDEST: (i32, i32) = (9, 0);

/// Threads of the kernel that lays values out; mirrors `sptrsv/colours/boxes.cu`.
const LAYOUT_THREADS: u32 = 512;

/// A launch for all colours.
pub(super) struct ColourBoxes {
    solve: CudaFunction,
    values: CudaFunction,
    config: LaunchConfig,
    argument: ColourBoxesArg,
    layout: BoxLayoutArg,
    val: CudaSlice<u8>,
    _tables: Tables,
    bytes: Bytes,
}

/// What the arguments are addresses of.
struct Tables {
    _words: Vec<CudaSlice<u32>>,
    _distances: Vec<CudaSlice<i32>>,
    _places: Vec<CudaSlice<u16>>,
    _published: CudaSlice<u64>,
}

/// For vectors in the `order` of the cells of a box, and at least three colours of its rows, from `ends` on.
/// `None` where the device or the shape of the factors does not let it.
pub(super) fn solve(s: &System, ends: &[u32], order: &[u32]) -> Result<Option<ColourBoxes>> {
    let (d, f) = (s.device, s.structure);
    if f.block_size > 1 || ends.len() < 4 || d.arch() < OLDEST {
        return Ok(None);
    }
    let Some(lists) = Lists::new(&f.pattern, ends, order) else { return Ok(None) };
    let variant = || Variant::from(1).storing(s.precision);
    let [workers, carriers, entries, beyond] =
        d.constants(&COLOUR_BOXES, variant(), "colour_boxes_shape")?.map(|v: u32| v as usize);
    let blocks = d.multiprocessors().min(d.limits().resident) as usize;
    let shared = d.shared_for_values().saturating_sub(16 * beyond);
    let shape = Shape { team: 32 * workers, entries, blocks, shared };
    let Some(plan) = Plan::new(&lists, shape) else { return Ok(None) };
    let kernel = |name| d.kernel(&COLOUR_BOXES, variant(), name);
    let (solve, threads) = (kernel("colour_boxes")?, 32 * (workers + carriers) as u32);
    let shared = 8 * plan.division.cells + 16 * (plan.most_steps + beyond) + 4 * plan.lists.len();
    solve
        .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
        .map_err(|e| failed("cannot prepare the solves by colours", e))?;
    if (d.resident(&solve, threads, shared as u32)? as usize) < plan.parts.len() {
        return Ok(None);
    }
    let config = LaunchConfig {
        grid_dim: (plan.parts.len() as u32, 1, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: shared as u32,
    };
    let stored = s.precision.bytes();
    let val = d.zeros::<u8>(plan.values * stored)?;
    let (argument, layout, tables, held) = upload(d, &plan, &lists, order)?;
    let (n, held) = (order.len(), held + plan.values * stored);
    Ok(Some(ColourBoxes {
        solve,
        values: kernel("colour_boxes_values")?,
        config,
        argument: ColourBoxesArg { val: address(&val), ..argument },
        layout,
        val,
        _tables: tables,
        // places are read by both sweeps
        bytes: Bytes { held, moved: held + 2 * n + 2 * 8 * n },
    }))
}

/// The tables on the device, and the bytes of those that a solve reads.
fn upload(
    d: &Device,
    plan: &Plan,
    lists: &Lists,
    order: &[u32],
) -> Result<(ColourBoxesArg, BoxLayoutArg, Tables, usize)> {
    let mut read = 0;
    let mut words = Vec::new();
    let mut of_words = |from: &[u32], reads: bool| -> Result<Address> {
        read += if reads { size_of_val(from) } else { 0 };
        words.push(d.copied(from)?);
        Ok(words.last().map_or(0, address))
    };
    let part = of_words(bytemuck::cast_slice(&plan.parts), true)?;
    let steps = of_words(bytemuck::cast_slice(&plan.steps), true)?;
    let events = of_words(&plan.events, true)?;
    let from = of_words(&plan.from, true)?;
    let listed = of_words(bytemuck::cast_slice(&plan.listed), false)?;
    let starts = of_words(bytemuck::cast_slice(&plan.starts), false)?;
    let cell = of_words(order, false)?;
    let row = of_words(&lists.row, false)?;
    let launches = of_words(&vec![0; plan.parts.len()], false)?;
    let distances = vec![d.copied(&plan.lists)?, d.copied(&plan.distances)?];
    let places = vec![d.copied(&plan.rows)?, d.copied(&plan.to)?];
    // two words for each number, which no launch has written
    let published = d.zeros::<u64>(2 * plan.published)?;
    let division = &plan.division;
    let [nx, ny, _] = lists.extents;
    let argument = ColourBoxesArg {
        part,
        steps,
        rows: address(&places[0]),
        val: 0,
        lists: address(&distances[0]),
        events,
        from,
        to: address(&places[1]),
        launches,
        published: address(&published),
        line: nx as u32,
        plane: (nx * ny) as u32,
        pitch: division.pitch as u32,
        layer: division.layer as u32,
        origin: division.origin as u32,
        cells: division.cells as u32,
        most_steps: plan.most_steps as u32,
        listed: plan.lists.len() as u32,
        handovers: plan.hand_overs() as u32,
        pad: 0,
        r: 0,
        z: 0,
    };
    let layout = BoxLayoutArg {
        listed,
        distances: address(&distances[1]),
        starts,
        cell,
        row,
        colours: plan.colours as u32,
        pad: 0,
    };
    let read = read + 2 * (plan.rows.len() + plan.to.len());
    let tables =
        Tables { _words: words, _distances: distances, _places: places, _published: published };
    Ok((argument, layout, tables, read))
}

impl Solve for ColourBoxes {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        let (lower, upper) = (f.lower.triangle(&v.lower), f.upper.triangle(&v.upper));
        let parts = self.config.grid_dim.0 as usize;
        let mut config = grid(parts, LAYOUT_THREADS);
        config.grid_dim.1 = self.layout.colours;
        let diagonal = v.diagonal.address();
        let (argument, layout) = (self.argument, self.layout);
        launch!(d, &self.values, config; argument, layout, lower, upper, diagonal, self.val)
            .map_err(|e| failed("cannot lay out the factors", e))?;
        Ok(0.0)
    }

    fn in_order(&self) -> bool {
        true
    }

    fn bytes(&self) -> Option<Bytes> {
        Some(self.bytes)
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        let argument = ColourBoxesArg { r: address(r), z: address(z), ..self.argument };
        launch!(cooperative d, &self.solve, self.config; argument)
            .map_err(|e| failed("triangular solve", e))
    }
}
