//! Plans of parts that the device makes (`kernels/sptrsv/partition.cu`).

use std::borrow::Cow;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::{Owners, Partition, Shape, Slice, blocks};
use crate::base::error::Result;
use crate::compute::cuda::analysis::Analysis;
use crate::compute::cuda::compressed::{by_threads, counts, run, starts};
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::{Address, address};
use crate::compute::cuda::layout::shared;
use crate::compute::cuda::schedules::{Steps, Waiting, sorted};
use crate::compute::cuda::sources::PARTITION;
use crate::compute::cuda::sptrsv::owners::{Costs, Parts};
use crate::compute::cuda::storage::{DevicePattern, Structure};
use crate::compute::cuda::symbolic::Boxed;
use crate::matrix::pattern::Lazy;

shared! {
    SortedArg = "Sorted" of "sptrsv/partition.cu" { rows: u32, lanes: u32, split: u32, most: u32, each: u32, order: Address, part: Address, time: Address, length: Address }
    CutArg = "Cut" of "sptrsv/partition.cu" { parts: u32, region: u32, first: Address, slices: Address, start: Address, count: Address, first_segment: Address, segments: Address, segment: Address }
    Held = "Held" of "sptrsv/partition.cu" { part: u32, segment: u32, slot: u32, none: u32 }
}

fn kernel(d: &Device, name: &str) -> Result<CudaFunction> {
    d.kernel(&PARTITION, 0, name)
}

/// L and U on the device.
pub(in crate::compute::cuda::sptrsv) fn triangles<'a>(
    d: &'a Device,
    (analysis, f): (&Analysis, &'a Structure),
) -> [Strict<'a>; 2] {
    let line = analysis.boxed.as_ref().and_then(Boxed::line);
    let strict = |pattern, backward| Strict { device: d, pattern, backward, line };
    [strict(&*f.lower, false), strict(&*f.upper, true)]
}

/// Where the rows of a triangle begin, on the host.
pub(in crate::compute::cuda::sptrsv) fn row_starts<'a>(
    d: &Device,
    rows: &'a Lazy,
    there: &DevicePattern,
) -> Result<Cow<'a, [u32]>> {
    Ok(if rows.is_there() {
        Cow::Borrowed(&rows.row_ptr)
    } else {
        Cow::Owned(d.host_part(&there.row_ptr, rows.rows() + 1)?)
    })
}

/// Steps of the longest chain of dependencies in parts of L.
pub(in crate::compute::cuda::sptrsv) fn chain(
    d: &Device,
    (analysis, f): (&Analysis, &Structure),
    parts: &Parts,
) -> Result<u32> {
    let owners = match parts {
        Parts::Owned(owners) => owners.clone(),
        Parts::Ranges(count) => {
            Owners::ranges(&row_starts(d, &f.pattern.lower, &f.lower)?, false, *count)
        }
    };
    let key = [owners.starts.clone(), owners.of_run.clone()];
    if let Some(&known) = analysis.chains.borrow().get(&key) {
        return Ok(known);
    }
    let found =
        d.span("chain", || triangles(d, (analysis, f))[0].chain(&owners, Costs::CROSSING_STEPS))?;
    analysis.chains.borrow_mut().insert(key, found);
    Ok(found)
}

/// A strictly triangular pattern on the device.
#[derive(Clone, Copy)]
pub(in crate::compute::cuda::sptrsv) struct Strict<'a> {
    pub(in crate::compute::cuda::sptrsv) device: &'a Device,
    pub(in crate::compute::cuda::sptrsv) pattern: &'a DevicePattern,
    /// Whether it is an upper one, whose solve begins at the last row.
    pub(in crate::compute::cuda::sptrsv) backward: bool,
    /// Rows of lines in which each needs the one before, where all are.
    line: Option<usize>,
}

/// Places of a list that are marked.
struct Marked {
    mark: CudaSlice<u32>,
    /// How many there are before each place.
    before: CudaSlice<u32>,
    /// The places, and one past the last of the list.
    list: CudaSlice<u32>,
    count: usize,
}

impl Marked {
    fn new(d: &Device, n: usize, mark: CudaSlice<u32>) -> Result<Self> {
        let (before, count) = starts(d, n, &mark)?;
        let (list, of) = (d.alloc::<u32>(count + 1)?, kernel(d, "list_marked")?);
        run!(d, of, by_threads(n); n as u32, mark, before, list);
        Ok(Self { mark, before, list, count })
    }
}

impl Strict<'_> {
    fn rows(&self) -> usize {
        self.pattern.row_ptr.len() - 1
    }

    /// The part of each row.
    fn parts(&self, owners: &Owners) -> Result<CudaSlice<u32>> {
        let (d, n, runs) = (self.device, self.rows(), owners.of_run.len() as u32);
        let (start, of_run) = (d.copied(&owners.starts)?, d.copied(&owners.of_run)?);
        let part = d.alloc::<u32>(n)?;
        run!(d, kernel(d, "part_of_rows")?, by_threads(n); n as u32, runs, start, of_run, part);
        Ok(part)
    }

    /// Operands that rows find in other parts.
    pub(in crate::compute::cuda::sptrsv) fn far_operands(&self, owners: &Owners) -> Result<usize> {
        let (d, n, part) = (self.device, self.rows(), self.parts(owners)?);
        let (far, DevicePattern { row_ptr, col_ind }) = (d.zeros::<u32>(1)?, self.pattern);
        run!(d, kernel(d, "count_far")?, by_threads(n); n as u32, *row_ptr, *col_ind, part, far);
        Ok(d.host(&far)?[0] as usize)
    }

    /// Steps of the longest chain of dependencies: one to a row of the same part, `crossing` to one of another.
    pub(in crate::compute::cuda::sptrsv) fn chain(
        &self,
        owners: &Owners,
        crossing: u32,
    ) -> Result<u32> {
        Ok(self.waiting(&self.parts(owners)?, crossing)?.last)
    }

    fn waiting(&self, part: &CudaSlice<u32>, crossing: u32) -> Result<Waiting> {
        Waiting::new(self.device, self.pattern, self.backward, Some((part, crossing)), self.line)
    }

    /// Cuts it, as `host.rs` does.
    pub(super) fn partition(&self, owners: &Owners, shape: Shape) -> Result<Partition> {
        let (d, n) = (self.device, self.rows());
        let (part, [slots, region]) = (self.parts(owners)?, shape.slots(owners.largest()));
        let Waiting { time, last } = d.span("times", || self.waiting(&part, shape.crossing))?;
        let (length, longest) = self.lengths()?;
        let order = d.span("order", || {
            let turned = if self.backward { Some(self.turned()?) } else { None };
            let begin = turned.as_ref();
            let by_length = sorted(d, n, &length, longest, begin)?;
            let by_time = sorted(d, n, &time, last, Some(&by_length))?;
            sorted(d, n, &part, owners.parts as u32 - 1, Some(&by_time))
        })?;
        let of_rows = SortedArg {
            rows: n as u32,
            lanes: shape.lanes as u32,
            split: shape.split,
            most: shape.most() as u32,
            each: shape.most_each.unwrap_or(0) as u32,
            order: address(&order),
            part: address(&part),
            time: address(&time),
            length: address(&length),
        };
        let slices = d.span("slices", || self.slices(of_rows))?;
        let made = d.span("segments", || self.segments(&slices, owners.parts, region))?;
        let Segments { of_slices, starts: segments, first, count } = made;
        let columns = d.alloc::<u32>(slices.blocks)?;
        d.span("columns", || {
            let (held, of, marked) = (d.alloc::<Held>(n)?, kernel(d, "place_rows")?, &slices.marked);
            run!(d, of, by_threads(n); of_rows, slices.rows, of_slices, marked.mark, marked.before, held);
            let DevicePattern { row_ptr, col_ind } = self.pattern;
            let (of, count, backward) =
                (kernel(d, "fill_columns")?, marked.count as u32, u32::from(self.backward));
            let config = by_threads(32 * marked.count);
            run!(d, of, config; of_rows, count, slices.rows, *row_ptr, *col_ind, backward, held, columns);
            Ok(())
        })?;
        Ok(Partition {
            counts: [slices.marked.count, slices.blocks, count, owners.parts],
            slices: slices.rows,
            order,
            columns,
            segments,
            parts: first,
            slots,
            region,
        })
    }

    /// Slices of up to `rows` rows of one step, as few of unlike lengths as can be.
    pub(in crate::compute::cuda::sptrsv) fn slices_of_steps(
        &self,
        steps: &Steps,
        rows: usize,
    ) -> Result<SlicesOfSteps> {
        let (d, n, Waiting { time, last }) = (self.device, self.rows(), &steps.of_rows);
        let (length, longest) = self.lengths()?;
        let by_length = sorted(d, n, &length, longest, None)?;
        let order = sorted(d, n, time, *last, Some(&by_length))?;
        // one part
        let part = d.zeros::<u32>(n)?;
        let of_rows = SortedArg {
            rows: n as u32,
            lanes: rows as u32,
            split: 1,
            order: address(&order),
            part: address(&part),
            time: address(time),
            length: address(&length),
            ..SortedArg::default()
        };
        let Marked { list: first, count, .. } = self.first_of_slices(of_rows)?;
        let (length, blocks) = (d.alloc::<u32>(count)?, d.alloc::<u32>(count)?);
        let of = kernel(d, "measure_slices")?;
        run!(d, of, by_threads(count); of_rows, count as u32, first, length, blocks);
        let (start, all) = starts(d, count, &blocks)?;
        let (blocks, longest) = (super::blocks(all)?, longest as usize);
        Ok(SlicesOfSteps { order, first, start, length, count, blocks, longest })
    }

    /// Blocks of each row and of the longest.
    fn lengths(&self) -> Result<(CudaSlice<u32>, u32)> {
        let (d, n) = (self.device, self.rows());
        let (length, longest) = (d.alloc::<u32>(n)?, d.zeros::<u32>(1)?);
        let of = kernel(d, "find_lengths")?;
        run!(d, of, by_threads(n); n as u32, self.pattern.row_ptr, length, longest);
        Ok((length, d.host(&longest)?[0]))
    }

    /// Rows from the last to the first.
    fn turned(&self) -> Result<CudaSlice<u32>> {
        let (d, n) = (self.device, self.rows());
        let turned = d.alloc::<u32>(n)?;
        run!(d, kernel(d, "turn_rows")?, by_threads(n); n as u32, turned);
        Ok(turned)
    }

    /// Where slices begin.
    fn first_of_slices(&self, of_rows: SortedArg) -> Result<Marked> {
        let (d, n) = (self.device, of_rows.rows as usize);
        let mark = d.alloc::<u32>(n)?;
        run!(d, kernel(d, "mark_groups")?, by_threads(n); of_rows, mark);
        let groups = Marked::new(d, n, mark)?;
        let (mark, of) = (d.alloc::<u32>(n)?, kernel(d, "mark_slices")?);
        run!(d, of, by_threads(n); of_rows, groups.list, groups.mark, groups.before, mark);
        Marked::new(d, n, mark)
    }

    fn slices(&self, of_rows: SortedArg) -> Result<Slices> {
        let (d, marked) = (self.device, self.first_of_slices(of_rows)?);
        let count = marked.count;
        let (slices, part) = (d.alloc::<Slice>(count)?, d.alloc::<u32>(count)?);
        let (of, length) = (kernel(d, "describe_slices")?, d.alloc::<u32>(count)?);
        run!(d, of, by_threads(count); of_rows, count as u32, marked.list, slices, length, part);
        let (start, all) = starts(d, count, &length)?;
        Ok(Slices { marked, rows: slices, part, start, blocks: blocks(all)? })
    }

    fn segments(&self, s: &Slices, parts: usize, region: u32) -> Result<Segments> {
        let d = self.device;
        let of_parts = counts(d, s.marked.count, &s.part, parts - 1)?;
        let (first, _) = starts(d, parts, &of_parts)?;
        let count = d.alloc::<u32>(parts)?;
        let counting = CutArg {
            parts: parts as u32,
            region,
            first: address(&first),
            slices: address(&s.rows),
            start: address(&s.start),
            count: address(&count),
            ..CutArg::default()
        };
        let (of, config) = (kernel(d, "cut_segments")?, by_threads(32 * parts));
        run!(d, &of, config; counting);
        let (first_segment, all) = starts(d, parts, &count)?;
        let (segments, segment) = (d.alloc::<u32>(all + 1)?, d.alloc::<u32>(s.marked.count)?);
        let filling = CutArg {
            first_segment: address(&first_segment),
            segments: address(&segments),
            segment: address(&segment),
            ..counting
        };
        run!(d, of, config; filling);
        Ok(Segments { of_slices: segment, starts: segments, first: first_segment, count: all })
    }
}

/// Rows of a triangle step by step, in slices.
pub(in crate::compute::cuda::sptrsv) struct SlicesOfSteps {
    pub(in crate::compute::cuda::sptrsv) order: CudaSlice<u32>,
    /// First place of each slice in `order`, and the end of the last.
    pub(in crate::compute::cuda::sptrsv) first: CudaSlice<u32>,
    /// First block of each slice.
    pub(in crate::compute::cuda::sptrsv) start: CudaSlice<u32>,
    /// Blocks of its longest row.
    pub(in crate::compute::cuda::sptrsv) length: CudaSlice<u32>,
    pub(in crate::compute::cuda::sptrsv) count: usize,
    pub(in crate::compute::cuda::sptrsv) blocks: usize,
    /// Most blocks of a row.
    pub(in crate::compute::cuda::sptrsv) longest: usize,
}

/// Slices without their places in shared memory.
struct Slices {
    marked: Marked,
    rows: CudaSlice<Slice>,
    /// The part of each.
    part: CudaSlice<u32>,
    /// First block of each.
    start: CudaSlice<u32>,
    blocks: usize,
}

struct Segments {
    /// The segment of each slice in its part.
    of_slices: CudaSlice<u32>,
    starts: CudaSlice<u32>,
    /// First segment of each part, and one past the last.
    first: CudaSlice<u32>,
    count: usize,
}
