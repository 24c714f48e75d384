//! Triangular solves of scalar factors on a box of cells that are coupled along its axes alone, both triangles
//! in one launch (`kernels/sptrsv/pencils.cu`).

use std::rc::Rc;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig};

use super::choice::Shape;
use super::triangles;
use super::{Algorithm, Solve, System};
use crate::base::error::{Error, Result};
use crate::compute::Bytes;
use crate::compute::cuda::analysis::Stencils;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{PencilsArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::{Numbers, Values};
use crate::compute::cuda::sources::{PENCILS, Variant};
use crate::compute::cuda::storage::Structure;
use crate::compute::trisolve::{Description, Takes};

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "pencils",
    summary: "one launch for both triangles of a 7-point grid; a lane has pencils of cells, \
              y stays on chip",
    takes: Takes::Axes,
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
    in_halves: None,
};

/// Steps and bounds follow one another; a launch, and a part of the way of the first numbers to their place.
fn seconds(s: &Shape) -> Option<f64> {
    let plan = Plan::new(s.stencils, s.block_size).ok()?;
    let (steps, bounds) = plan.fits(s.resident, s.shared_bytes).then(|| plan.path())?;
    let triangle = 0.1e-6 * steps as f64 + 2.8 * s.handover * bounds as f64;
    Some(8e-6 + 2.0 * triangle + 0.35 * s.reading())
}

/// Pencils of a thread block along x and y; mirrors `sptrsv/pencils.cuh`.
const PATCH: [usize; 2] = [16, 8];
/// Steps by which the last lane lags behind the first; likewise.
const LAG: usize = 10;
/// Steps of a turn; likewise.
const TURN: usize = 6;
/// Turns of which factors are in shared memory; likewise.
const TURNS_OF_FACTORS: usize = 3;
/// Cells of a thread block in a step; likewise.
const COLUMNS: usize = 128;
/// Numbers that a thread block hands over in a step; likewise.
const EDGES: usize = 24;

/// Offsets of the neighbours before a cell.
const ALONG: [[i32; 3]; 3] = [[0, 0, -1], [0, -1, 0], [-1, 0, 0]];

/// How thread blocks share a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    extents: [usize; 3],
    /// Thread blocks along x and y.
    blocks: [usize; 2],
    turns: usize,
}

impl Plan {
    /// For the factors of `stencils`; or why there is none.
    pub(super) fn new(
        stencils: &Stencils,
        block_size: usize,
    ) -> std::result::Result<Self, &'static str> {
        if block_size > 1 {
            return Err("blocks have several unknowns");
        }
        stencils.as_ref().map_err(|why| *why)?;
        // one of them may be empty
        let triangles = || stencils.iter().flatten().flatten();
        let extents = triangles().next().ok_or("both triangles are empty")?.extents;
        if triangles().any(|s| s.extents != extents || s.offsets.iter().any(|o| !ALONG.contains(o)))
        {
            return Err("cells are coupled not along the axes alone");
        }
        let [nx, ny, nz] = extents;
        let blocks = [nx.div_ceil(PATCH[0]), ny.div_ceil(PATCH[1])];
        Ok(Self { extents, blocks, turns: (nz + LAG).div_ceil(TURN) })
    }

    /// Thread blocks, which are resident together.
    pub(super) fn count(&self) -> usize {
        self.blocks[0] * self.blocks[1]
    }

    fn steps(&self) -> usize {
        self.turns * TURN
    }

    /// Steps that follow one another in a triangle, and bounds of thread blocks that are crossed on the way.
    pub(super) fn path(&self) -> (usize, usize) {
        let [nx, ny, nz] = self.extents;
        (nx.div_ceil(2) + ny.div_ceil(2) + nz, self.blocks[0] + self.blocks[1] - 2)
    }

    /// Bytes of shared memory, of a kernel that needs so many for each turn and besides.
    fn shared(&self, [each, besides]: [usize; 2]) -> usize {
        self.turns * each + besides
    }

    /// Whether a device with so many multiprocessors and bytes of shared memory has room, by what a turn's vector
    /// and the factors on their way take.
    pub(super) fn fits(&self, multiprocessors: usize, shared: usize) -> bool {
        let factors = TURNS_OF_FACTORS * TURN * 3 * COLUMNS * size_of::<f64>();
        let vector = (self.steps() + 2) * COLUMNS * size_of::<f64>();
        self.count() <= multiprocessors && vector + factors + (8 << 10) <= shared
    }
}

/// Both triangles.
struct Pencils {
    solve: CudaFunction,
    values: CudaFunction,
    config: LaunchConfig,
    argument: PencilsArg,
    lower: Numbers,
    upper: Numbers,
    /// In natural order; with the first values.
    diagonal: Option<Rc<Numbers>>,
    _exchange: CudaSlice<f64>,
    _launches: CudaSlice<u32>,
    /// Thread blocks that lay factors out for a triangle: one for each turn of each march.
    turns: usize,
    bytes: Bytes,
}

/// Factors whose box is as the kernel takes it.
fn solve(s: &System) -> Result<Box<dyn Solve>> {
    let (d, f) = (s.device, s.structure);
    let refused = |why: &str| {
        Error::input(format!("no pencils: {why}"))
            .hint("leave `--trisolve` at `auto`, or choose `wavefront` or `syncfree`")
    };
    if f.pattern.blocks() == f.pattern.rows() {
        return triangles::diagonal_alone(s);
    }
    let plan = Plan::new(s.analysis.stencils(d, f.block_size), f.block_size).map_err(refused)?;
    let variant = || Variant::from(1).storing(s.precision);
    let [threads, each, besides] = d.constants(&PENCILS, variant(), "pencils_shape")?;
    let shared = plan.shared([each as usize, besides as usize]);
    if shared > d.shared_bytes() {
        let (needed, there) = (shared.div_ceil(1024), d.shared_bytes() / 1024);
        return Err(refused(&format!(
            "{} cells along z need {needed} KiB of shared memory, and a thread block has {there}",
            plan.extents[2]
        )));
    }
    let solve = d.kernel(&PENCILS, variant(), "pencils")?;
    solve
        .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
        .map_err(|e| failed("cannot prepare the solves by pencils", e))?;
    let resident = d.resident(&solve, threads, shared as u32)? as usize;
    if plan.count() > resident {
        return Err(refused(&format!(
            "{} x {} cells need {} thread blocks at once, and the GPU has room for {resident}",
            plan.extents[0],
            plan.extents[1],
            plan.count()
        )));
    }
    Ok(Box::new(Pencils::new(s, plan, solve, [threads, shared as u32])?))
}

impl Pencils {
    fn new(
        s: &System,
        plan: Plan,
        solve: CudaFunction,
        [threads, shared]: [u32; 2],
    ) -> Result<Self> {
        let (d, precision) = (s.device, s.precision);
        let records = plan.count() * plan.steps();
        let factor = || Numbers::alloc(d, records * 3 * COLUMNS, precision);
        let (lower, upper) = (factor()?, factor()?);
        // of both directions, for this launch and the next one
        let mut exchange = d.alloc(4 * records * EDGES)?;
        d.mark_absent(&mut exchange)?;
        let launches = d.zeros::<u32>(plan.count())?;
        let [nx, ny, nz] = plan.extents.map(|n| n as i32);
        let rows = s.structure.pattern.rows();
        let factors = (records * 6 * COLUMNS + rows) * precision.bytes();
        Ok(Self {
            solve,
            values: d.kernel(&PENCILS, Variant::from(1).storing(precision), "pencils_values")?,
            config: LaunchConfig {
                grid_dim: (plan.count() as u32, 1, 1),
                block_dim: (threads, 1, 1),
                shared_mem_bytes: shared,
            },
            argument: PencilsArg {
                nx,
                ny,
                nz,
                across: plan.blocks[0] as i32,
                down: plan.blocks[1] as i32,
                turns: plan.turns as i32,
                lower: lower.address(),
                upper: upper.address(),
                diagonal: 0,
                exchange: address(&exchange),
                launches: address(&launches),
                r: 0,
                z: 0,
            },
            lower,
            upper,
            diagonal: None,
            turns: plan.count() * plan.turns,
            bytes: Bytes {
                held: factors + size_of_val(&0.0) * exchange.len(),
                moved: factors + 2 * size_of_val(&0.0) * rows,
            },
            _exchange: exchange,
            _launches: launches,
        })
    }
}

impl Solve for Pencils {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        let (lower, upper) = (f.lower.triangle(&v.lower), f.upper.triangle(&v.upper));
        let mut config = grid(self.turns, COLUMNS as u32);
        config.grid_dim.1 = 2;
        self.argument.diagonal = v.diagonal.address();
        self.diagonal = Some(v.diagonal);
        let argument = self.argument;
        launch!(
            d, &self.values, config;
            argument, lower, upper, self.lower.address(), self.upper.address()
        )
        .map_err(|e| failed("cannot lay out the factors", e))?;
        Ok(0.0)
    }

    fn bytes(&self) -> Option<Bytes> {
        Some(self.bytes)
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        let argument = PencilsArg { r: address(r), z: address(z), ..self.argument };
        launch!(cooperative d, &self.solve, self.config; argument)
            .map_err(|e| failed("triangular solve", e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::{Stencil, iluk};

    /// The plan for ILU(fill) of a generated matrix.
    fn plan(
        matrix: &str,
        block_size: usize,
        fill: usize,
    ) -> std::result::Result<Plan, &'static str> {
        let a = problem::load(matrix, ReadAs::Expanded).unwrap().matrix;
        let p = iluk(&block_pattern(&a.in_blocks(block_size)), fill, LevelRule::Min, usize::MAX)
            .unwrap();
        let stencils = [Stencil::of_lower(p.lower.view()), Stencil::of_upper(p.upper.view())];
        Plan::new(&Ok(stencils), block_size)
    }

    #[test]
    fn a_box_is_cut_across_lines_and_planes() {
        let plan = plan("poisson3d:33x17x29", 1, 0).unwrap();
        assert_eq!((plan.blocks, plan.count(), plan.steps()), ([3, 3], 9, 42));
        // 17 pairs along x, 9 along y; 2 bounds each
        assert_eq!(plan.path(), (17 + 9 + 29, 4));
        assert!(plan.fits(9, 227 << 10) && !plan.fits(8, 227 << 10));
    }

    #[test]
    fn an_h200_has_room_for_128_lines_of_128_pencils() {
        let of = |extents: [usize; 3]| Plan {
            extents,
            blocks: [extents[0].div_ceil(PATCH[0]), extents[1].div_ceil(PATCH[1])],
            turns: (extents[2] + LAG).div_ceil(TURN),
        };
        let fits = |extents| of(extents).fits(132, 227 << 10);
        assert!(fits([128, 128, 128]) && fits([128, 128, 146]) && fits([176, 96, 60]));
        assert!(!fits([128, 128, 153]) && !fits([136, 128, 128]));
        // 138 steps of 1 KiB for vectors, 54 KiB for factors, 6.6 KiB for sides
        let shared = of([128; 3]).shared([TURN * 1024 + 48, 2048 + 55_296 + 6720]);
        assert_eq!(shared, 206_480);
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        assert_eq!(plan("poisson3d:12", 1, 1), Err("cells are coupled not along the axes alone"));
        assert_eq!(plan("blockpoisson3d:12,b=2", 2, 0), Err("blocks have several unknowns"));
        assert_eq!(Plan::new(&Ok([None, None]), 1), Err("both triangles are empty"));
        assert_eq!(Plan::new(&Err("no box"), 1), Err("no box"));
    }
}
