//! Triangular solves by parts that stay inside a multiprocessor (`kernels/sptrsv/partitioned.cu`).

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig, sys};

use super::choice::Shape;
use super::owners::{Costs, Owners, Tiles, far_operands};
use super::partition::{self, Partition, Slice};
use super::triangles::{self, Triangles};
use super::{Algorithm, InHalves, Solve, System};
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::lattice::Lattice;
use crate::compute::cuda::launch::{PartsArg, SolveArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Numbers;
use crate::compute::cuda::sources::{PARTITIONED, Variant};
use crate::compute::cuda::storage::DevicePattern;
use crate::compute::trisolve::Description;
use crate::symbolic::FillPattern;

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
    new: solve,
    in_halves: Some(in_halves),
};

/// Rows wait in shared memory; the work of a part and the crossings between parts are equal.
fn seconds(s: &Shape) -> Option<f64> {
    if s.block_size > LARGEST_BLOCK {
        return None;
    }
    if let Some(seconds) = on_grid(s) {
        return Some(seconds.max(s.reading()));
    }
    let slices =
        s.pattern.rows().div_ceil(32 / (split_for(s.pattern, s.block_size) * s.block_size));
    let work = 2.0 * (6.0 * s.handover * 0.1e-6 * slices as f64).sqrt();
    // small blocks are read less well
    let reading = 1.0 + 2.0 / (s.block_size * s.block_size) as f64;
    Some(0.09e-6 * s.levels as f64 + 2.0 * work + reading * s.reading())
}

/// Largest block size: a block row must fit in a warp.
const LARGEST_BLOCK: usize = 32;

/// Threads of a block of a kernel that stays for a whole method: as many as there are registers for.
pub(in crate::compute::cuda) const RESIDENT_THREADS: u32 = 512;

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

/// Blocks that a lane has under way for rows of up to `longest`: few different ones, so that few
/// kernels are compiled.
fn ahead_for(block_size: usize, split: usize, longest: usize) -> usize {
    const STEPS: [usize; 8] = [1, 2, 3, 4, 5, 6, 8, 11];
    let length = longest.div_ceil(split);
    let ahead = STEPS.iter().copied().find(|&step| step >= length).unwrap_or(length);
    ahead.min(most_ahead(block_size))
}

/// The variant of `sptrsv/partitioned.cu` for rows of up to `longest` blocks.
fn variant(block_size: usize, split: usize, longest: usize) -> Variant {
    let ahead = ahead_for(block_size, split, longest);
    let whole = usize::from(longest.div_ceil(split) <= ahead);
    let threads = threads_of(block_size);
    let defines = vec![("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads), ("WHOLE", whole)];
    Variant { defines, ..block_size.into() }
}

/// Lanes of a warp that can share a row at most.
fn most_lanes(block_size: usize) -> usize {
    1 << (32 / block_size).ilog2()
}

/// Lengths of the rows of both triangles.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    longest: usize,
    /// Of all but one in fifty.
    most: usize,
}

impl Lengths {
    fn of(p: &FillPattern) -> Self {
        // how many rows have each length
        let mut of_length: Vec<usize> = Vec::new();
        for ends in [&p.lower, &p.upper].into_iter().flat_map(|t| t.row_ptr.windows(2)) {
            let length = (ends[1] - ends[0]) as usize;
            if length >= of_length.len() {
                of_length.resize(length + 1, 0);
            }
            of_length[length] += 1;
        }
        let rows = 2 * p.rows();
        let mut left = rows - rows / 50;
        let most = of_length.iter().position(|&count| {
            left = left.saturating_sub(count);
            left == 0
        });
        let longest = of_length.len().saturating_sub(1);
        Self { longest, most: most.unwrap_or(0) }
    }
}

/// Most blocks of a lane where rows are shared unevenly, which takes registers of its own.
const MOST_UNEVEN: usize = 8;

/// Blocks that a lane has under way where a few rows, as those of wells, are so much longer than most that more lanes share
/// each of them: all lanes would go through windows as long as theirs.
fn uneven_each(block_size: usize, split: usize, lengths: Lengths) -> Option<usize> {
    let each = ahead_for(block_size, split, lengths.most.max(1)).min(MOST_UNEVEN);
    let longer = 2 * lengths.longest >= 3 * each * split;
    (longer && most_lanes(block_size) > split).then_some(each)
}

/// The variant of `sptrsv/partitioned.cu` for rows that different numbers of lanes share, up to `longest` blocks.
fn uneven_variant(block_size: usize, split: usize, each: usize, longest: usize) -> Variant {
    let whole = usize::from(longest <= each * most_lanes(block_size));
    let threads = threads_of(block_size);
    let sizes = [("AHEAD", each), ("SPLIT", split), ("THREADS", threads), ("WHOLE", whole)];
    let defines = [&sizes[..], &[("UNEVEN", 1)]].concat();
    Variant { defines, ..block_size.into() }
}

/// The variant of `sptrsv/partitioned.cu` for solves within another kernel.
pub fn resident_variant(block_size: usize) -> Option<Variant> {
    (block_size <= ABOUT.resident_block).then(|| resident(block_size))
}

/// The variants of `sptrsv/partitioned.cu` that need the most registers; none for blocks that are too large.
pub fn largest_variants(block_size: usize) -> Vec<Variant> {
    if block_size > LARGEST_BLOCK {
        return Vec::new();
    }
    let most = most_lanes(block_size);
    let ahead = most_ahead(block_size);
    // whole rows, and longer ones, by one lane and by as many as can be
    let mut variants = vec![
        variant(block_size, 1, ahead),
        variant(block_size, 1, ahead + 1),
        variant(block_size, most, most * ahead + 1),
        uneven_variant(block_size, 1, ahead.min(MOST_UNEVEN), most * ahead + 1),
    ];
    variants.dedup();
    variants
}

fn resident(block_size: usize) -> Variant {
    let ((split, ahead), threads) = (in_kernel_row(block_size), RESIDENT_THREADS as usize);
    let sizes = [("AHEAD", ahead), ("SPLIT", split), ("THREADS", threads)];
    Variant { defines: [&sizes[..], &[("WHOLE", 0), ("UNEVEN", 1)]].concat(), ..block_size.into() }
}

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

/// Lanes that share a row at least, and blocks that a lane has under way, of solves within another
/// kernel; mirrors `krylov/in_kernel.cuh`.
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

/// The same for any pattern, and whether it has none.
fn ranges_of(d: &Device, p: &FillPattern, block_size: usize, split: usize) -> (usize, bool) {
    let parts = range_count(p, block_size, split);
    let far = far_operands(p.lower.view(), false, parts);
    let scattered = parts > 1 && far > p.lower.entries() / 10 * 9;
    let spread = (d.multiprocessors() * SCATTERED_PARTS) as usize;
    (if scattered { spread.min(p.rows()) } else { parts }, scattered)
}

/// Seconds of both solves in parts of the grid that the pattern is; `None` where it is none.
fn on_grid(s: &Shape) -> Option<f64> {
    let (p, block_size, most) = (s.pattern, s.block_size, s.multiprocessors);
    let split = split_for(p, block_size);
    let ranges = range_count(p, block_size, split);
    let costs = costs(p, block_size, split);
    let tiles = match s.stencils {
        Ok([Some(lower), _]) => {
            Tiles::on(Lattice::of_stencil(lower)?, p.rows(), most, ranges, costs)
        }
        _ => Tiles::of(p.lower.view(), most, ranges, costs),
    }?;
    Some(2e-6 * tiles.best_time())
}

impl Plan {
    /// For kernels of their own: tiles of a grid where they pay, else ranges of rows.
    fn of_kernels(s: &System) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let (b, p) = (f.block_size, &f.pattern);
        let split = split_for(p, b);
        let (parts, scattered) = d.span("ranges", || ranges_of(d, p, b, split));
        let lengths = d.span("lengths", || Lengths::of(p));
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
        let variant = variant.storing(s.precision);
        let most = d.multiprocessors().min(d.limits().resident) as usize;
        let tiles = d.span("tiles", || Tiles::of(p.lower.view(), most, parts, costs(p, b, split)));
        if let Some(tiles) = tiles.filter(Tiles::pay) {
            let owners = tiles.owners();
            return Self::new(p, [&owners, &owners], shape, variant);
        }
        let lower = Owners::ranges(p.lower.view(), false, parts);
        let upper = Owners::ranges(p.upper.view(), true, parts);
        Self::new(p, [&lower, &upper], shape, variant)
    }

    /// The same parts of both triangles, for thread blocks that stay for a whole solve.
    fn resident(s: &System) -> Result<Self> {
        let (d, f) = (s.device, s.structure);
        let (b, p) = (f.block_size, &f.pattern);
        let (split, ahead) = in_kernel_row(b);
        let most = d.multiprocessors().min(d.limits().resident) as usize;
        let owners = Owners::resident(p.lower.view(), most, costs(p, b, split));
        let shape = partition::Shape {
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
        shape: partition::Shape,
        variant: Variant,
    ) -> Result<Self> {
        let (lower, upper) = rayon::join(
            || Partition::new(p.lower.view(), false, lower, shape),
            || Partition::new(p.upper.view(), true, upper, shape),
        );
        Ok(Self { lower: lower?, upper: upper?, variant })
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
    let plan =
        d.span("parts", || if s.resident { Plan::resident(s) } else { Plan::of_kernels(s) })?;
    let triangle = |p: &Partition, backward| {
        let mut triangle = Triangle::new(d, p, f.block_size, s.precision, &plan.variant, backward)?;
        triangle.resident = s.resident;
        Ok(Some(triangle))
    };
    Ok([triangle(&plan.lower, false)?, triangle(&plan.upper, true)?])
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
    /// Whether another kernel solves.
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
            resident: false,
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
    fn rows_of_wells_are_shared_by_more_lanes() {
        let each = |b, split, most, longest| uneven_each(b, split, Lengths { longest, most });
        // those of `reservoir:41,k=2,wells=50`, `nornebox_b3` and `spe9cp_b3`
        assert_eq!([each(2, 1, 3, 82), each(3, 1, 3, 9), each(3, 2, 6, 24)], [Some(3); 3]);
        assert_eq!([each(3, 1, 3, 6), each(3, 2, 6, 9)], [Some(3); 2]);
        // a grid, blocks that fill a warp, and rows that only end the last window
        assert_eq!([each(1, 1, 3, 3), each(25, 1, 3, 82), each(1, 1, 8, 11)], [None; 3]);
        let defines = uneven_variant(2, 1, 3, 82).defines;
        assert_eq!(defines[..2], [("AHEAD", 3), ("SPLIT", 1)]);
        assert_eq!(defines[2..], [("THREADS", 512), ("WHOLE", 0), ("UNEVEN", 1)]);
    }

    #[test]
    fn parts_grow_with_the_root_of_the_work() {
        // the FEM twin with 1 and 5 unknowns per block, and one row
        assert_eq!(part_count(525_825, 32, 8 * 1_574_400), 53);
        assert_eq!(part_count(105_165, 6, 8 * 25 * 314_060), 98);
        assert_eq!(part_count(1, 32, 0), 1);
    }
}
