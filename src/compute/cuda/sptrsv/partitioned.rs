//! Triangular solves by parts that stay inside a multiprocessor (`kernels/sptrsv/partitioned.cu`).

mod variants;

use std::borrow::Cow;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig, sys};

use super::choice::Shape;
use super::owners::{Costs, Owners, Parts, Tiles};
use super::partition::{self, Partition, Slice, chain, row_starts, triangles};
use super::triangles::{self, Triangles};
use super::{Algorithm, InHalves, Solve, System, prepared};
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::cuda::Cuda;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{PartsArg, SolveArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Numbers;
use crate::compute::cuda::sources::{PARTITIONED, Variant};
use crate::compute::cuda::storage::DevicePattern;
use crate::compute::cuda::symbolic::Place;
use crate::compute::trisolve::Description;
use crate::symbolic::FillPattern;
pub(in crate::compute::cuda) use variants::RESIDENT_THREADS;
use variants::{
    Lengths, in_kernel_row, resident, split_for, threads_of, uneven_each, uneven_variant, variant,
};
pub use variants::{largest_variants, resident_variant};

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "partitioned",
    summary: "one launch; consecutive rows share a thread block and its shared memory; \
              blocks of more than 32 by syncfree",
    automatic: true,
    advised: true,
    // those of reservoirs, and few registers
    resident_block: 8,
    ..Description::PLAIN
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    about: ABOUT,
    seconds: Some(seconds),
    largest_block: LARGEST_BLOCK,
    host_rows: false,
    new: solve,
    in_halves: Some(in_halves),
};

/// Rows wait in shared memory; the work of a part and the crossings between parts are equal.
fn seconds(s: &Shape) -> Option<f64> {
    if s.block_size > LARGEST_BLOCK {
        return None;
    }
    // products of a row of average length, where they take longer than its way through shared memory
    let products =
        (s.pattern.lower.entries() * s.block_size) as f64 / s.pattern.rows().max(1) as f64;
    let rows = s.levels as f64 * 0.6e-9 * s.block_size as f64 * (products - 24.0).max(0.0);
    if let Some(seconds) = on_grid(s) {
        return Some(rows + seconds.max(s.reading()));
    }
    let slices =
        s.pattern.rows().div_ceil(32 / (split_for(s.pattern, s.block_size) * s.block_size));
    let work = 2.0 * (6.0 * s.handover * 0.1e-6 * slices as f64).sqrt();
    // small blocks are read less well
    let reading = 1.0 + 2.0 / (s.block_size * s.block_size) as f64;
    Some(0.09e-6 * s.levels as f64 + rows + 2.0 * work + reading * s.reading())
}

/// Largest block size: a block row must fit in a warp.
const LARGEST_BLOCK: usize = 32;

/// Bytes of shared memory that values of block rows may take.
const SHARED_BYTES: usize = 200 << 10;

/// Microseconds from a row to one that needs it in another part.
const CROSSING: f64 = 1.5;

/// Bytes of shared memory that values of block rows may take beside vectors of a method.
const RESIDENT_BYTES: usize = 96 << 10;

/// What solves with triangles of `p` cost whose rows are shared by `split` lanes.
fn costs(p: &FillPattern, block_size: usize, split: usize) -> Costs {
    let entries = p.lower.entries().max(p.upper.entries());
    Costs {
        slice_rows: (32 / (split * block_size)).max(1) as f64,
        row_bytes: (8 * entries * block_size * block_size) as f64 / p.rows().max(1) as f64,
    }
}

/// How many parts: a chain of dependencies crosses each bound between two of them at most once, and
/// the work of one multiprocessor falls with their number, so that the sum is least where both are
/// equal. The work is measured: 0.1 us for a slice and 0.2 us for 1 kB of values in float64.
fn part_count(rows: usize, slice_rows: usize, value_bytes: usize) -> usize {
    let slices = rows.div_ceil(slice_rows);
    let work = 0.1 * slices as f64 + 0.2e-3 * value_bytes as f64;
    ((work / CROSSING).sqrt().round() as usize).clamp(1, rows.max(1))
}

/// Parts for each multiprocessor when the order of the rows has no locality: then nearly every
/// operand comes from another part, however few they are, and small parts spread the late rows, which
/// are the long ones, over all multiprocessors.
const SCATTERED_PARTS: u32 = 8;

/// A plan of both triangles, and what the kernels are compiled for.
struct Plan {
    lower: Partition,
    upper: Partition,
    variant: Variant,
}

/// How many parts the ranges of `p` are where it has locality.
fn range_count(p: &FillPattern, block_size: usize, split: usize) -> usize {
    let rows = 32 / (split * block_size);
    let entries = p.lower.entries().max(p.upper.entries());
    // in float32 as many: fewer were slower
    part_count(p.rows(), rows, 8 * entries * block_size * block_size)
}

/// Seconds of both solves in parts of the grid that the pattern is; `None` where it is none.
fn on_grid(s: &Shape) -> Option<f64> {
    let (p, block_size) = (s.pattern, s.block_size);
    let split = split_for(p, block_size);
    let most = (s.multiprocessors, range_count(p, block_size, split));
    let tiles = Tiles::of(s.lattice?, p.rows(), most, costs(p, block_size, split), s.chain)?;
    Some(2e-6 * tiles.best_time())
}

impl Plan {
    fn of(s: &System) -> Result<Self> {
        if s.resident { Self::resident(s) } else { Self::of_kernels(s) }
    }

    /// For kernels of their own: tiles of a grid where they pay, else ranges of rows.
    fn of_kernels(s: &System) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let (b, p) = (f.block_size, &f.pattern);
        let split = split_for(p, b);
        let starts = Self::starts(s)?;
        let mut parts = range_count(p, b, split);
        let ranges = Owners::ranges(&starts[0], false, parts);
        let far =
            d.span("far operands", || triangles(d, (s.analysis, f))[0].far_operands(&ranges))?;
        let scattered = parts > 1 && far > p.lower.entries() / 10 * 9;
        if scattered {
            parts = ((d.multiprocessors() * SCATTERED_PARTS) as usize).min(p.rows());
        }
        let lengths = d.span("lengths", || Lengths::of([&starts[0], &starts[1]]));
        let uneven = if scattered { None } else { uneven_each(b, split, lengths) };
        let variant = match uneven {
            Some(each) => uneven_variant(b, split, each, lengths.longest),
            None => variant(b, split, lengths.longest.max(1)),
        };
        let shape = partition::Shape {
            slots: (d.shared_for_values().min(SHARED_BYTES) / (8 * b)) as u32 - 1,
            lanes: 32 / b,
            split: split as u32,
            most_each: uneven,
            crossing: 4,
        };
        shape.admit(lengths.longest)?;
        let most = d.multiprocessors().min(d.limits().resident) as usize;
        let chain = |parts: &Parts| chain(d, (s.analysis, f), parts).ok();
        let tiles = s.analysis.lattice().and_then(|lattice| {
            Tiles::of(lattice, p.rows(), (most, parts), costs(p, b, split), &chain)
        });
        let parts = match tiles.filter(Tiles::pay) {
            Some(tiles) => Parts::Owned(tiles.owners()),
            None => Parts::Ranges(parts),
        };
        Self::new(s, &starts, parts, shape, variant)
    }

    /// The same parts of both triangles, for thread blocks that stay for a whole solve.
    fn resident(s: &System) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let (b, p) = (f.block_size, &f.pattern);
        let (split, ahead) = in_kernel_row(b);
        let most = d.multiprocessors().min(d.limits().resident) as usize;
        let starts = Self::starts(s)?;
        let (chain, costs) =
            (|parts: &Parts| chain(d, (s.analysis, f), parts).ok(), costs(p, b, split));
        let parts = Parts::resident(s.analysis.lattice(), p.rows(), most, costs, &chain);
        let owners = Parts::Owned(parts.owners(&starts[0], false));
        let shape = partition::Shape {
            slots: (d.shared_for_values().min(RESIDENT_BYTES) / (8 * b)) as u32 - 1,
            lanes: 32 / b,
            split: split as u32,
            most_each: Some(ahead),
            crossing: 4,
        };
        Self::new(s, &starts, owners, shape, resident(b))
    }

    /// Where the rows of both triangles begin.
    fn starts<'a>(s: &System<'a>) -> Result<[Cow<'a, [u32]>; 2]> {
        let (d, f) = (s.device, s.structure);
        let of = |rows, there| row_starts(d, rows, there);
        Ok([of(&f.pattern.lower, &f.lower)?, of(&f.pattern.upper, &f.upper)?])
    }

    fn new(
        s: &System,
        starts: &[Cow<[u32]>; 2],
        parts: Parts,
        shape: partition::Shape,
        variant: Variant,
    ) -> Result<Self> {
        let [lower, upper] = triangles(s.device, (s.analysis, s.structure));
        let [of_lower, of_upper] = match parts {
            Parts::Owned(owners) => [owners.clone(), owners],
            Parts::Ranges(count) => {
                let of = |at: usize| Owners::ranges(&starts[at], at == 1, count);
                [of(0), of(1)]
            }
        };
        let p = &s.structure.pattern;
        let of = |triangle, owners| Partition::new(triangle, owners, shape, s.plans);
        Ok(Self {
            lower: of((&lower, &p.lower), &of_lower)?,
            upper: of((&upper, &p.upper), &of_upper)?,
            variant: variant.storing(s.precision),
        })
    }
}

impl Cuda {
    /// Plans of solves in parts with factors of a pattern, those for kernels of their own and those within the kernel of a
    /// method: the arrays that the device makes, and those that the host makes.
    ///
    /// # Errors
    /// When the device fails or has too little memory, or blocks are too large for one of them.
    pub fn plans_of_parts(&self, pattern: &Arc<FillPattern>) -> Result<[Vec<Vec<u32>>; 2]> {
        let d = self.gpu();
        let there = self.triangles_of(pattern);
        let made = |plans: Place| -> Result<Vec<Vec<u32>>> {
            let mut all = Vec::new();
            for resident in [false, true] {
                let plan = prepared(self, pattern, there.clone(), (plans, resident), Plan::of)?;
                all.extend(plan.lower.host(d)?.into_iter().chain(plan.upper.host(d)?));
            }
            Ok(all)
        };
        Ok([made(Place::Device)?, made(Place::Host)?])
    }
}

/// Both triangles in parts; a block must not be larger than [`LARGEST_BLOCK`], or `ABOUT.resident_block` for
/// solves within another kernel.
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
    let Plan { lower, upper, variant } = d.span("parts", || Plan::of(s))?;
    let triangle = |p: Partition, backward| {
        let mut triangle = Triangle::new(d, p, f.block_size, s.precision, &variant, backward)?;
        triangle.resident = s.resident;
        Ok(Some(triangle))
    };
    Ok([triangle(lower, false)?, triangle(upper, true)?])
}

/// A strictly triangular factor on the device.
struct Triangle {
    plan: Partition,
    val: Numbers,
    fill_values: CudaFunction,
    solve: CudaFunction,
    config: LaunchConfig,
    backward: u32,
    /// Whether another kernel solves.
    resident: bool,
}

impl Triangle {
    fn new(
        d: &Device,
        plan: Partition,
        block_size: usize,
        precision: FactorPrecision,
        variant: &Variant,
        backward: bool,
    ) -> Result<Self> {
        let [_, blocks, ..] = plan.counts;
        let kernel = |name| d.kernel(&PARTITIONED, variant.clone(), name);
        let threads = variant.defines.iter().find(|(name, _)| *name == "THREADS");
        let threads =
            threads.map_or_else(|| threads_of(block_size), |(_, threads)| *threads) as u32;
        let solve = kernel(if backward { "partitioned_backward" } else { "partitioned_forward" })?;
        Ok(Self {
            val: Numbers::alloc(d, blocks * block_size * block_size, precision)?,
            fill_values: kernel("partitioned_values")?,
            config: config(d, &solve, &plan, block_size, threads)?,
            solve,
            plan,
            backward: u32::from(backward),
            resident: false,
        })
    }

    fn argument(&self) -> PartsArg {
        let plan = &self.plan;
        PartsArg {
            slices: address(&plan.slices),
            order: address(&plan.order),
            col_ind: address(&plan.columns),
            val: self.val.address(),
            segments: address(&plan.segments),
            parts: address(&plan.parts),
            count: plan.counts[3] as u32,
            region: plan.region,
            slots: plan.slots,
        }
    }
}

/// All thread blocks resident, and no more than there are parts.
fn config(
    d: &Device,
    kernel: &CudaFunction,
    p: &Partition,
    block_size: usize,
    threads: u32,
) -> Result<LaunchConfig> {
    use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let shared = p.slots * 8 * block_size as u32;
    // the same for all that share the kernel
    let most = d.shared_bytes().min(SHARED_BYTES) as i32;
    kernel
        .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most)
        .map_err(|e| failed("cannot prepare the solves", e))?;
    let resident = d.resident(kernel, threads, shared)?;
    let mut config = grid((resident as usize).min(p.counts[3]).max(1), threads);
    config.shared_mem_bytes = shared;
    Ok(config)
}

impl triangles::Triangle for Triangle {
    const READS_DIAGONAL: bool = true;
    const MARKS: bool = true;

    fn bytes(&self) -> usize {
        let [slices, columns, ..] = self.plan.counts;
        self.val.bytes() + 4 * (columns + self.plan.order.len()) + size_of::<Slice>() * slices
    }

    fn set_values(
        &mut self,
        d: &Device,
        pattern: &DevicePattern,
        blocks: &CudaSlice<f64>,
        _: &Numbers,
    ) -> Result<()> {
        let arg = self.argument();
        let threads = self.config.block_dim.0;
        let [slices, ..] = self.plan.counts;
        let config = grid(slices.div_ceil(threads as usize / 32), threads);
        launch!(
            d, &self.fill_values, config;
            slices as u32, arg, pattern.row_ptr, *blocks, self.backward, self.val.address()
        )
        .map_err(|e| failed("partitioned_values", e))
    }

    fn parts(&self) -> Option<(PartsArg, usize)> {
        self.resident.then(|| (self.argument(), self.plan.slots as usize))
    }

    fn solve(&self, d: &Device, arg: SolveArg) -> Result<(), DriverError> {
        let parts = self.argument();
        launch!(cooperative d, &self.solve, self.config; parts, arg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_with_the_root_of_the_work() {
        // the FEM twin with 1 and 5 unknowns per block, and one row
        assert_eq!(part_count(525_825, 32, 8 * 1_574_400), 53);
        assert_eq!(part_count(105_165, 6, 8 * 25 * 314_060), 98);
        assert_eq!(part_count(1, 32, 0), 1);
    }
}
