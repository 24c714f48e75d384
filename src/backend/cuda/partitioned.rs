//! Triangular solves by parts that stay inside a multiprocessor (`kernels/partitioned.cu`).

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig, sys};

use super::device::{Device, failed, grid};
use super::ilu::DevicePattern;
use super::launch::{PartsArg, SolveArg, address, launch};
use super::numbers::Numbers;
use super::owners::{Costs, Owners, far_operands};
use super::partition::{Partition, Shape, Slice};
use super::solve::{Solve, System};
use super::sources::{PARTITIONED, Variant};
use super::triangles::{self, Triangles};
use crate::case::FactorPrecision;
use crate::error::Result;
use crate::symbolic::FillPattern;

/// Largest block size: a block row must fit in a warp.
pub(super) const LARGEST_BLOCK: usize = 32;

/// Bytes of shared memory that values of block rows may take.
const SHARED_BYTES: usize = 200 << 10;

/// Threads of a block: many small rows hide each other's way to memory, large ones need registers.
fn threads_of(block_size: usize) -> usize {
    if block_size <= 5 { 512 } else { 256 }
}

/// Most blocks of a row that a lane has registers for: 4 for each and 2 for each of its numbers.
fn most_ahead(block_size: usize) -> usize {
    let registers = (65536 / threads_of(block_size)).min(255);
    (registers - 40 - registers / 6) / (4 + 2 * block_size)
}

/// Lanes that share a row of `typical` blocks, so that all of them are under way at once.
fn split(block_size: usize, typical: usize) -> usize {
    let most = 32 / block_size;
    let wanted = typical.div_ceil(most_ahead(block_size)).next_power_of_two();
    wanted.min(1 << most.ilog2())
}

/// The variant of `partitioned.cu` for rows of up to `longest` blocks: few different ones, so that
/// few are compiled.
fn variant(block_size: usize, split: usize, longest: usize) -> Variant {
    const STEPS: [usize; 8] = [1, 2, 3, 4, 5, 6, 8, 11];
    let length = longest.div_ceil(split);
    let ahead = STEPS.iter().copied().find(|&step| step >= length).unwrap_or(length);
    let ahead = ahead.min(most_ahead(block_size));
    let whole = usize::from(length <= ahead);
    let threads = threads_of(block_size);
    let defines = vec![("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads), ("WHOLE", whole)];
    Variant { defines, ..block_size.into() }
}

/// The variant of `partitioned.cu` for solves within another kernel.
pub fn resident_variant(block_size: usize) -> Option<Variant> {
    (block_size <= LARGEST_RESIDENT_BLOCK).then(|| resident(block_size))
}

/// The variants of `partitioned.cu` that need the most registers; none for blocks that are too large.
pub fn largest_variants(block_size: usize) -> Vec<Variant> {
    if block_size > LARGEST_BLOCK {
        return Vec::new();
    }
    let most = 1 << (32 / block_size).ilog2();
    let ahead = most_ahead(block_size);
    // whole rows, and longer ones, by one lane and by as many as can be
    let mut variants = vec![
        variant(block_size, 1, ahead),
        variant(block_size, 1, ahead + 1),
        variant(block_size, most, most * ahead + 1),
    ];
    variants.dedup();
    variants
}

fn resident(block_size: usize) -> Variant {
    let ((split, ahead), threads) = (in_kernel_row(block_size), super::in_kernel::THREADS as usize);
    let sizes = [("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads)];
    Variant { defines: [&sizes[..], &[("WHOLE", 0), ("UNEVEN", 1)]].concat(), ..block_size.into() }
}

/// Microseconds from a row to one that needs it in another part.
const CROSSING: f64 = 1.5;

/// Largest block size of solves within another kernel: those of reservoirs, and few registers.
pub(super) const LARGEST_RESIDENT_BLOCK: usize = 8;

/// Bytes of shared memory that values of block rows may take beside vectors of a method.
const RESIDENT_BYTES: usize = 96 << 10;

/// Microseconds from a row to one that needs it in another tile.
const HOP: f64 = 1.2;

/// Lanes that share a row at least, and blocks that a lane has under way, of solves within another
/// kernel; mirrors `in_kernel.cuh`.
fn in_kernel_row(block_size: usize) -> (usize, usize) {
    if block_size <= 4 { (1, 4) } else { (2, 2) }
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

/// Lanes that share a row of a triangle of `p`: few rows are much longer than a quarter above the
/// mean.
fn split_for(p: &FillPattern, block_size: usize) -> usize {
    let entries = p.lower.entries().max(p.upper.entries());
    split(block_size, (entries * 5).div_ceil(p.rows().max(1) * 4))
}

/// Slices of a triangle, about; for blocks of at most [`LARGEST_BLOCK`].
pub(super) fn slices(p: &FillPattern, block_size: usize) -> usize {
    let lanes = if block_size > LARGEST_BLOCK { 32 } else { split_for(p, block_size) * block_size };
    p.rows().div_ceil(32 / lanes)
}

/// A plan of both triangles, and what the kernels are compiled for.
struct Plan {
    lower: Partition,
    upper: Partition,
    variant: Variant,
}

/// How many parts the ranges of `p` are.
fn range_count(d: &Device, p: &FillPattern, block_size: usize, split: usize) -> usize {
    let rows = 32 / (split * block_size);
    let entries = p.lower.entries().max(p.upper.entries());
    // in float32 as many: fewer were slower
    let parts = part_count(p.rows(), rows, 8 * entries * block_size * block_size);
    let far = far_operands(p.lower.view(), false, parts);
    let scattered = parts > 1 && far > p.lower.entries() / 10 * 9;
    let spread = (d.multiprocessors() * SCATTERED_PARTS) as usize;
    if scattered { spread.min(p.rows()) } else { parts }
}

impl Plan {
    /// Ranges of rows for kernels of their own.
    fn ranges(s: &System) -> Result<Self> {
        let (d, f) = (s.device, s.factorisation);
        let (b, p) = (f.block_size, &f.pattern);
        let rows = || [&p.lower, &p.upper].into_iter().flat_map(|t| t.row_ptr.windows(2));
        let longest = rows().map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0);
        let split = split_for(p, b);
        let parts = range_count(d, p, b, split);
        let shape = Shape {
            slots: (d.shared_for_values().min(SHARED_BYTES) / (8 * b)) as u32 - 1,
            lanes: 32 / b,
            split: split as u32,
            most_each: None,
            crossing: 4,
        };
        let owners = |backward| {
            let triangle = if backward { &p.upper } else { &p.lower };
            Owners::ranges(triangle.view(), backward, parts)
        };
        let variant = variant(b, split, longest.max(1)).storing(s.precision);
        Self::new(p, [&owners(false), &owners(true)], shape, variant)
    }

    /// The same parts of both triangles, for thread blocks that stay for a whole solve.
    fn resident(s: &System) -> Result<Self> {
        let (d, f) = (s.device, s.factorisation);
        let (b, p) = (f.block_size, &f.pattern);
        let (split, ahead) = in_kernel_row(b);
        let most = d.multiprocessors().min(d.limits().resident) as usize;
        // three blocks of a row, and its share of a slice
        let row = 0.1e-3 * (3 * 8 * b * b) as f64 + 0.1 * (split * b) as f64 / 32.0;
        let owners = Owners::resident(p.lower.view(), most, Costs { crossing: HOP, row });
        let shape = Shape {
            slots: (d.shared_for_values().min(RESIDENT_BYTES) / (8 * b)) as u32 - 1,
            lanes: 32 / b,
            split: split as u32,
            most_each: Some(ahead),
            crossing: 4,
        };
        let variant = resident(b).storing(s.precision);
        Self::new(p, [&owners, &owners], shape, variant)
    }

    fn new(
        p: &FillPattern,
        [lower, upper]: [&Owners; 2],
        shape: Shape,
        variant: Variant,
    ) -> Result<Self> {
        let (lower, upper) = rayon::join(
            || Partition::new(p.lower.view(), false, lower, shape),
            || Partition::new(p.upper.view(), true, upper, shape),
        );
        Ok(Self { lower: lower?, upper: upper?, variant })
    }
}

/// Both triangles in parts; a block must not be larger than [`LARGEST_BLOCK`], or
/// [`LARGEST_RESIDENT_BLOCK`] for solves within another kernel.
pub(super) fn solve(s: &System) -> Result<Box<dyn Solve>> {
    let (d, f) = (s.device, s.factorisation);
    let plan = if s.resident { Plan::resident(s)? } else { Plan::ranges(s)? };
    let triangle = |p: &Partition, backward| {
        Triangle::new(d, p, f.block_size, s.precision, &plan.variant, backward).map(Some)
    };
    let pair = [triangle(&plan.lower, false)?, triangle(&plan.upper, true)?];
    let mut y = d.alloc(f.pattern.rows() * f.block_size)?;
    d.mark_absent(&mut y)?;
    Ok(Box::new(Triangles::new(d, f, s.precision, pair, y)?))
}

/// A strictly triangular factor on the device.
struct Triangle {
    slices: CudaSlice<Slice>,
    order: CudaSlice<u32>,
    columns: CudaSlice<u32>,
    val: Numbers,
    segments: CudaSlice<u32>,
    parts: CudaSlice<u32>,
    /// Slices, parts, slots of a region, slots.
    count: u32,
    part_count: u32,
    region: u32,
    slots: u32,
    fill_values: CudaFunction,
    solve: CudaFunction,
    config: LaunchConfig,
    backward: u32,
    resident: bool,
}

impl Triangle {
    fn new(
        d: &Device,
        p: &Partition,
        block_size: usize,
        precision: FactorPrecision,
        variant: &Variant,
        backward: bool,
    ) -> Result<Self> {
        let numbers = p.columns.len() * block_size * block_size;
        let kernel = |name| d.kernel(&PARTITIONED, variant.clone(), name);
        let threads = variant.defines.iter().find(|(name, _)| *name == "THREADS");
        let threads =
            threads.map_or_else(|| threads_of(block_size), |(_, threads)| *threads) as u32;
        let solve = kernel(if backward { "partitioned_backward" } else { "partitioned_forward" })?;
        Ok(Self {
            slices: d.copied(&p.slices)?,
            order: d.copied(&p.order)?,
            columns: d.copied(&p.columns)?,
            val: Numbers::alloc(d, numbers, precision)?,
            segments: d.copied(&p.segments)?,
            parts: d.copied(&p.parts)?,
            count: p.slices.len() as u32,
            part_count: p.parts.len() as u32 - 1,
            region: p.region,
            slots: p.slots,
            fill_values: kernel("partitioned_values")?,
            config: config(d, &solve, p, block_size, threads)?,
            solve,
            backward: u32::from(backward),
            resident: variant.defines.contains(&("UNEVEN", 1)),
        })
    }

    fn argument(&self) -> PartsArg {
        PartsArg {
            slices: address(&self.slices),
            order: address(&self.order),
            col_ind: address(&self.columns),
            val: self.val.address(),
            segments: address(&self.segments),
            parts: address(&self.parts),
            count: self.part_count,
            region: self.region,
            slots: self.slots,
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
    let mut config = grid((resident as usize).min(p.parts.len() - 1).max(1), threads);
    config.shared_mem_bytes = shared;
    Ok(config)
}

impl triangles::Triangle for Triangle {
    const READS_DIAGONAL: bool = true;

    fn set_values(
        &mut self,
        d: &Device,
        pattern: &DevicePattern,
        blocks: &CudaSlice<f64>,
        _: &Numbers,
    ) -> Result<()> {
        let arg = self.argument();
        let threads = self.config.block_dim.0;
        let config = grid((self.count as usize).div_ceil(threads as usize / 32), threads);
        launch!(
            d, &self.fill_values, config;
            self.count, arg, pattern.row_ptr, *blocks, self.backward, self.val.address()
        )
        .map_err(|e| failed("partitioned_values", e))
    }

    fn parts(&self) -> Option<(PartsArg, usize)> {
        self.resident.then(|| (self.argument(), self.slots as usize))
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
    fn rows_are_shared_so_that_all_their_blocks_are_under_way() {
        assert_eq!([1, 3, 5, 8, 25, 32].map(most_ahead), [11, 6, 4, 8, 3, 2]);
        assert_eq!([3, 11, 12, 25, 500].map(|typical| split(1, typical)), [1, 1, 2, 4, 32]);
        assert_eq!([split(3, 23), split(3, 500), split(25, 500)], [4, 8, 1]);
    }

    #[test]
    fn variants_are_whole_while_rows_fit_their_lanes() {
        let defines = |b, split, longest| variant(b, split, longest).defines;
        let expected = |ahead, split, threads, whole| {
            vec![("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads), ("WHOLE", whole)]
        };
        assert_eq!(defines(1, 1, 3), expected(3, 1, 512, 1));
        assert_eq!(defines(3, 4, 25), expected(6, 4, 512, 0));
        assert_eq!(defines(8, 4, 28), expected(8, 4, 256, 1));
    }

    #[test]
    fn parts_grow_with_the_root_of_the_work() {
        // the FEM twin with 1 and 5 unknowns per block, and one row
        assert_eq!(part_count(525_825, 32, 8 * 1_574_400), 53);
        assert_eq!(part_count(105_165, 6, 8 * 25 * 314_060), 98);
        assert_eq!(part_count(1, 32, 0), 1);
    }
}
