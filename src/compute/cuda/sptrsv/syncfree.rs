//! Triangular solves whose rows wait for rows through the L2 cache (`kernels/sptrsv/slices.cu`).

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::choice::Shape;
use super::slices::{SLICES_PER_BLOCK, Slices, THREADS};
use super::triangles::{self, Triangles};
use super::{Algorithm, InHalves, Solve, System};
use crate::base::error::Result;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{SolveArg, launch};
use crate::compute::cuda::numbers::Numbers;
use crate::compute::cuda::sources::{TRSV, Variant};
use crate::compute::cuda::storage::DevicePattern;
use crate::compute::trisolve::Description;

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "syncfree",
    summary: "one launch; a row waits for the values it needs",
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

/// Rows wait through the L2 cache: some hand-overs per level, more the longer the rows are.
#[allow(clippy::unnecessary_wraps, reason = "others do not take all factors")]
fn seconds(s: &Shape) -> Option<f64> {
    // blocks of more than eight are read by columns
    let (longest, bb) = (s.longest() as f64, (s.block_size * s.block_size).min(64) as f64);
    let level = s.handover * (2.4 + 0.12 * longest + 0.012 * longest * bb);
    let unknowns = (s.pattern.rows() * s.block_size) as f64;
    Some(s.levels as f64 * level + 0.06e-9 * unknowns + s.reading())
}

/// A triangle in one launch; rows wait for the values they need.
struct Triangle {
    slices: Slices,
    kernel: CudaFunction,
    config: LaunchConfig,
}

/// Most blocks of a row that a lane has registers for: 3 for each and 2 for each of its numbers.
fn most_ahead(block_size: usize) -> usize {
    match block_size {
        33.. => 4,
        b => (190 / (3 + 2 * b)).min(32),
    }
}

/// The variant of `sptrsv/slices.cu` for rows of `longest` blocks: few different ones, so that few are compiled.
fn variant(block_size: usize, longest: usize) -> Variant {
    const STEPS: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
    let ahead = STEPS.iter().copied().find(|&step| step >= longest).unwrap_or(longest);
    Variant { defines: vec![("AHEAD", ahead.min(most_ahead(block_size)))], ..block_size.into() }
}

/// The variant of `sptrsv/slices.cu` that needs the most registers.
pub fn largest_variant(block_size: usize) -> Variant {
    variant(block_size, usize::MAX)
}

/// Both triangles.
fn solve(s: &System) -> Result<Box<dyn Solve>> {
    let mut y = s.device.alloc(s.structure.pattern.rows() * s.structure.block_size)?;
    s.device.mark_absent(&mut y)?;
    Ok(Box::new(Triangles::new(s, pair(s)?, y)?))
}

fn in_halves(s: &System) -> Result<Box<dyn InHalves>> {
    triangles::in_halves(s, pair(s)?)
}

fn pair(s: &System) -> Result<[Option<Triangle>; 2]> {
    let (d, f) = (s.device, s.structure);
    let [lower, upper] = Slices::by_steps(s)?;
    let longest = lower.longest.max(upper.longest);
    let variant = variant(f.block_size, longest).storing(s.precision);
    let triangle = |slices: Slices, name: &str| {
        let kernel = d.kernel(&TRSV, variant.clone(), name)?;
        let most = slices.count.div_ceil(SLICES_PER_BLOCK) as u32;
        let blocks = d.resident(&kernel, THREADS, 0)?.min(most).max(1);
        Ok(Triangle { slices, kernel, config: grid(blocks as usize, THREADS) })
    };
    Ok([Some(triangle(lower, "syncfree_forward")?), Some(triangle(upper, "syncfree_backward")?)])
}

impl triangles::Triangle for Triangle {
    const READS_DIAGONAL: bool = true;
    const MARKS: bool = true;

    fn bytes(&self) -> usize {
        self.slices.bytes()
    }

    fn set_values(
        &mut self,
        d: &Device,
        pattern: &DevicePattern,
        blocks: &CudaSlice<f64>,
        _: &Numbers,
    ) -> Result<()> {
        self.slices.set_values(d, &pattern.row_ptr, blocks)
    }

    fn solve(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError> {
        let (count, slices) = (self.slices.count as u32, self.slices.argument());
        launch!(cooperative d, &self.kernel, self.config; count, slices, arg)
    }
}
