//! Block ILU(k) factors on the GPU: numeric factorisation (`kernels/ilu/rows.cu`).

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};
use rayon::prelude::*;

use super::analysis::Analysis;
use super::device::Device;
use super::entries::Entries;
use super::launch::{Address, FactorsArg, MatrixArg, RowsArg, address, launch};
use super::memory::failed;
use super::rows::{Launch, Rows};
use super::sources::{ILU, Variant};
use super::stencil_ilu::{Marched, StencilIlu};
use super::storage::{DevicePattern, Factored, Factors, Structure};
use super::updates::Updates;
use crate::base::error::Result;
use crate::compute::SingularBlock;
use crate::matrix::Csr;
use crate::symbolic::{FillPattern, Schedule};

/// The numeric factorisation of matrices on one pattern.
pub(super) struct Factorisation {
    pub(super) structure: Structure,
    by: By,
    seconds: f64,
}

/// How it is done.
enum By {
    /// Row by row, each when the rows above it are there.
    Rows(Box<ByRows>),
    /// As a wavefront of the stencil that the pattern is.
    Stencil(Box<StencilIlu>),
    /// By the host: numbers on the diagonal alone, which it reads faster than it sends the matrix.
    Points,
}

/// No singular block.
const REGULAR: u64 = u64::MAX;

impl Factorisation {
    pub(super) fn new(
        d: &Device,
        pattern: &Arc<FillPattern>,
        analysis: &Analysis,
        block_size: usize,
    ) -> Result<Self> {
        let structure = Structure::new(d, pattern, block_size)?;
        if block_size == 1 && pattern.blocks() == pattern.rows() {
            return Ok(Self { structure, by: By::Points, seconds: f64::NAN });
        }
        let stencils = analysis.stencils(d, block_size);
        let by = if let Some(marched) =
            Marched::of(pattern, block_size, stencils, d.multiprocessors())
        {
            By::Stencil(Box::new(StencilIlu::new(marched)))
        } else {
            let forward = &analysis.schedules()[0];
            let patterns = [&structure.lower, &structure.upper];
            let kernel = Rc::new(Kernel::new(d, pattern, patterns)?);
            By::Rows(Box::new(ByRows::new(d, &kernel, pattern, forward, patterns)?))
        };
        Ok(Self { structure, by, seconds: f64::NAN })
    }

    /// Whether a matrix may be on the device.
    pub(super) fn takes_rows(&self) -> bool {
        matches!(self.by, By::Rows(_)) && self.structure.block_size == 1
    }

    /// Factors of `a`, which is on the host unless [`takes_rows`](Self::takes_rows); see [`Factors::ilu_factor`](crate::compute::Factors::ilu_factor). The inner result tells of a
    /// singular block.
    pub(super) fn run(
        &mut self,
        d: &Device,
        a: Factored,
        shift: f64,
    ) -> Result<Result<Factors, SingularBlock>> {
        if let (By::Points, Factored::Host(a)) = (&self.by, a) {
            return points(d, a, shift);
        }
        let fault = |e: DriverError| failed("factorisation", e);
        let Structure { pattern, block_size, lower, upper } = &self.structure;
        let bb = block_size * block_size;
        let mut values = Factors {
            lower: d.alloc(pattern.lower.entries() * bb)?,
            diagonal: d.alloc(pattern.rows() * bb)?,
            upper: d.alloc(pattern.upper.entries() * bb)?,
        };
        let error = d.copied(&[REGULAR])?;
        let patterns = [lower, upper];
        if let (By::Stencil(by), Factored::Host(a)) = (&mut self.by, a)
            && !by.take(d, a, patterns)?
        {
            let forward = Schedule::lower(pattern);
            let kernel = Rc::new(Kernel::new(d, pattern, patterns)?);
            self.by = By::Rows(Box::new(ByRows::new(d, &kernel, pattern, &forward, patterns)?));
        }
        let val = match &mut self.by {
            By::Rows(by) => by.take(d, a, patterns)?,
            By::Stencil(_) | By::Points => 0,
        };
        let start = d.event().map_err(fault)?;
        match &mut self.by {
            By::Rows(by) => {
                d.mark_absent(&mut values.diagonal)?;
                d.mark_absent(&mut values.upper)?;
                by.factor(d, (val, shift), patterns, &mut values, &error)?;
            }
            By::Stencil(by) => by.factor(d, shift, patterns, &values, &error)?,
            By::Points => unreachable!("returned above"),
        }
        let end = d.event().map_err(fault)?;
        let singular = singular(d, pattern, &values, &error)?;
        self.seconds = f64::from(start.elapsed_ms(&end).map_err(fault)?) / 1e3;
        Ok(singular.map_or(Ok(values), Err))
    }

    /// Seconds on the device of the last factorisation, from A in its memory to the factors; not a
    /// number before the first.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }
}

/// The first singular block that a factorisation told of in `error`; waits.
pub(super) fn singular(
    d: &Device,
    pattern: &FillPattern,
    values: &Factors,
    error: &CudaSlice<u64>,
) -> Result<Option<SingularBlock>> {
    let found = d.host(error)?[0];
    if found == REGULAR {
        return Ok(None);
    }
    let fault = |e: DriverError| failed("factorisation", e);
    let (row, bb) = ((found >> 32) as usize, pattern.block_size().pow(2));
    let block = values.diagonal.slice(row * bb..=row * bb);
    let mut pivot = [0.0];
    d.stream().memcpy_dtoh(&block, &mut pivot).map_err(fault)?;
    d.stream().synchronize().map_err(fault)?;
    let absent = pattern.no_diagonal.binary_search(&(row as u32)).is_ok();
    Ok(Some(SingularBlock { row, within: found as u32 as usize, pivot: pivot[0], absent }))
}

/// The inverse numbers of the diagonal of `a`.
fn points(d: &Device, a: &Csr, shift: f64) -> Result<Result<Factors, SingularBlock>> {
    let pivots: Vec<f64> = (0..a.rows())
        .into_par_iter()
        .with_min_len(4096)
        .map(|row| a.get(row, row).unwrap_or(0.0) + shift)
        .collect();
    if let Some(row) = pivots.par_iter().with_min_len(4096).position_first(|v| *v == 0.0) {
        return Ok(Err(SingularBlock { row, within: 0, pivot: 0.0, absent: false }));
    }
    let inverse: Vec<f64> = pivots.into_par_iter().with_min_len(4096).map(|v| 1.0 / v).collect();
    let (lower, upper) = (d.alloc(0)?, d.alloc(0)?);
    Ok(Ok(Factors { lower, diagonal: d.copied(&inverse)?, upper }))
}

/// Largest blocks whose updates are listed beforehand.
const LARGEST_LISTED: usize = 8;

/// The kernel for rows like those of a pattern, and the updates of these.
struct Kernel {
    variant: Variant,
    launch: Launch,
    updates: Option<Updates>,
    factor: CudaFunction,
}

impl Kernel {
    fn new(d: &Device, pattern: &FillPattern, patterns: [&DevicePattern; 2]) -> Result<Self> {
        let block_size = pattern.block_size();
        let mut variant = suited(block_size, pattern);
        let mut launch = Launch::of(d, &variant)?;
        let mut updates = None;
        if block_size <= LARGEST_LISTED {
            updates = Updates::new(d, &variant, launch.width, pattern, patterns)?;
            if updates.is_none() {
                variant = searching(block_size);
                launch = Launch::of(d, &variant)?;
            }
        }
        let factor = d.kernel(&ILU, variant.clone(), "factor")?;
        Ok(Self { variant, launch, updates, factor })
    }
}

/// What a factorisation row by row needs: order, updates, kernel.
struct ByRows {
    rows: Rows,
    /// Where rows are that shared memory does not hold.
    spill: CudaSlice<f64>,
    kernel: Rc<Kernel>,
    absent: CudaSlice<u32>,
    n_absent: usize,
    entries: Option<Entries>,
    /// Places of the entries of a matrix that was on the device already.
    places: Option<CudaSlice<u32>>,
    config: LaunchConfig,
}

impl ByRows {
    /// `forward` is the schedule of the forward solve, or that of some of the rows, at least one.
    fn new(
        d: &Device,
        kernel: &Rc<Kernel>,
        pattern: &FillPattern,
        forward: &Schedule,
        patterns: [&DevicePattern; 2],
    ) -> Result<Self> {
        let Kernel { variant, launch, updates, factor } = &**kernel;
        let rows = Rows::new(d, variant, pattern, forward, launch, updates.as_ref(), patterns)?;
        Ok(Self {
            config: rows.config(d, factor, launch)?,
            spill: d.alloc(rows.spilled_numbers())?,
            rows,
            kernel: Rc::clone(kernel),
            absent: d.copied(&pattern.no_diagonal)?,
            n_absent: pattern.no_diagonal.len(),
            entries: None,
            places: None,
        })
    }

    /// Brings `a` to the device; its values.
    fn take(&mut self, d: &Device, a: Factored, patterns: [&DevicePattern; 2]) -> Result<Address> {
        match a {
            Factored::Host(a) => {
                let mut entries = match self.entries.take() {
                    Some(known) if known.are_of(a) => known,
                    _ => self.rows.entries(d, a, patterns)?,
                };
                d.overwrite(a.values(), &mut entries.val)?;
                Ok(address(&self.entries.insert(entries).val))
            }
            Factored::Device(a) => {
                let places = self.rows.places(d, (&a.row_ptr, &a.col_ind, a.entries), patterns)?;
                self.places = Some(places);
                Ok(address(&a.val))
            }
        }
    }

    /// Factors of the matrix that was taken and has these values; see [`StencilIlu::factor`]. D and U' are marked
    /// absent where they are to be made.
    fn factor(
        &mut self,
        d: &Device,
        (val, shift): (Address, f64),
        [lower, upper]: [&DevicePattern; 2],
        values: &mut Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        // those of a matrix of somebody else are not kept
        let places = self.places.take();
        let place = match (&places, &self.entries) {
            (Some(places), _) => address(places),
            (None, entries) => address(&entries.as_ref().expect("taken before").place),
        };
        let matrix = MatrixArg {
            val,
            place,
            absent: address(&self.absent),
            n_absent: self.n_absent as u32,
            shift,
        };
        let factors = FactorsArg {
            lower: address(&values.lower),
            diagonal: address(&values.diagonal),
            upper: address(&values.upper),
        };
        let (lower, upper) = (lower.argument(), upper.argument());
        let rows: RowsArg = self.rows.argument(&self.spill);
        let Kernel { updates, factor, .. } = &*self.kernel;
        let updates = updates.as_ref().map_or(0, |updates| address(&updates.list));
        launch!(
            cooperative d, factor, self.config;
            rows, updates, matrix, lower, upper, factors, *error
        )
        .map_err(|e| failed("factorisation", e))
    }
}

/// A factorisation stage by stage; those without rows here are `None`.
pub(super) struct InStages(Vec<Option<ByRows>>);

impl InStages {
    /// `stages` has the levels of each.
    pub(super) fn new(
        d: &Device,
        pattern: &FillPattern,
        stages: &[Schedule],
        patterns: [&DevicePattern; 2],
    ) -> Result<Self> {
        let kernel = Rc::new(Kernel::new(d, pattern, patterns)?);
        let stage = |levels: &Schedule| {
            if levels.rows.is_empty() {
                return Ok(None);
            }
            ByRows::new(d, &kernel, pattern, levels, patterns).map(Some)
        };
        Ok(Self(stages.iter().map(stage).collect::<Result<_>>()?))
    }

    /// The rows of a stage, after all that they need; see [`Factorisation::run`] for `error`.
    pub(super) fn factor(
        &mut self,
        d: &Device,
        stage: usize,
        (a, shift): (&Csr, f64),
        patterns: [&DevicePattern; 2],
        values: &mut Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        let Some(rows) = &mut self.0[stage] else { return Ok(()) };
        let val = rows.take(d, Factored::Host(a), patterns)?;
        let done = rows.factor(d, (val, shift), patterns, values, error);
        // each stage would keep the whole matrix
        rows.entries = None;
        done
    }
}

/// Most jobs of a row that one warp works on; more are shared out among four.
const MOST_JOBS: usize = 64;

/// Updates that a variant of `ilu/rows.cu` makes at once, where rows have about `upper` blocks of U': for
/// blocks of one about as many as come from one row above, but 32 were slower than 16.
fn width(block_size: usize, upper: f64) -> usize {
    match block_size {
        1 => ((0.8 * upper).ceil() as usize).next_power_of_two().clamp(4, 16),
        2 => 4,
        3 | 4 => 2,
        _ => 1,
    }
}

/// Jobs of about `jobs` of a row whose operands are fetched together: as many as there are registers
/// for, and few different numbers, so that few variants are compiled.
fn ahead(block_size: usize, jobs: usize) -> usize {
    let most = match block_size {
        1 if jobs > 12 => 8,
        3 | 4 if jobs > MOST_JOBS => 5,
        1..=4 => 6,
        8 => 4,
        _ => 3,
    };
    if jobs <= 4 { jobs.clamp(2, most) } else { most }
}

/// The variant of `ilu/rows.cu` for rows of about `jobs` jobs of `width` updates.
fn listed(block_size: usize, width: usize, jobs: usize) -> Variant {
    let mut defines = Vec::new();
    if block_size == 1 {
        defines.push(("LANES", width));
    } else if jobs > MOST_JOBS {
        defines.push(("WARPS", 4));
    }
    defines.push(("AHEAD", ahead(block_size, jobs)));
    Variant { defines, ..block_size.into() }
}

/// The variant that searches for the targets of updates.
fn searching(block_size: usize) -> Variant {
    Variant { defines: vec![("SEARCHED", 1)], ..block_size.into() }
}

/// The variant for rows like those of `pattern`.
fn suited(block_size: usize, pattern: &FillPattern) -> Variant {
    if block_size > LARGEST_LISTED {
        return block_size.into();
    }
    let upper = pattern.upper.entries() as f64 / pattern.rows().max(1) as f64;
    let width = width(block_size, upper);
    listed(block_size, width, jobs(pattern, width))
}

/// Mean jobs of `width` updates of a row, as some of the rows tell.
fn jobs(pattern: &FillPattern, width: usize) -> usize {
    const SAMPLE: usize = 200;
    let has = |i: usize, j: &u32| {
        *j as usize == i
            || pattern.lower.row(i).binary_search(j).is_ok()
            || pattern.upper.row(i).binary_search(j).is_ok()
    };
    // an odd distance, so that not all are the first of a line of a grid
    let rows = || (0..pattern.rows()).step_by((pattern.rows() / SAMPLE) | 1);
    let of_row = |i: usize| -> usize {
        let updates = |p: &u32| pattern.upper.row(*p as usize).iter().filter(|j| has(i, j)).count();
        pattern.lower.row(i).iter().map(|p| updates(p).div_ceil(width)).sum()
    };
    rows().map(of_row).sum::<usize>().div_ceil(rows().count().max(1))
}

/// The variants of `ilu/rows.cu` that need the most registers.
pub fn largest_factor_variants(block_size: usize) -> Vec<Variant> {
    if block_size > LARGEST_LISTED {
        return vec![block_size.into()];
    }
    let width = width(block_size, f64::from(u16::MAX));
    let jobs = [2, 3, 4, 12, MOST_JOBS, MOST_JOBS + 1];
    let listed = jobs.map(|jobs| listed(block_size, width, jobs));
    listed.into_iter().chain([searching(block_size)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::LevelRule;
    use crate::symbolic::iluk;

    #[test]
    fn the_variant_follows_the_rows() {
        let grid =
            crate::problem::load("poisson3d:9", crate::base::choices::ReadAs::Expanded).unwrap();
        let point = crate::matrix::pattern::block_pattern(&grid.matrix);
        let pattern = |k| iluk(&point, k, LevelRule::Min, usize::MAX).unwrap();
        let defines = |b, k| suited(b, &pattern(k)).defines;
        assert_eq!(defines(1, 0), [("LANES", 4), ("AHEAD", 3)]);
        assert_eq!(defines(1, 1), [("LANES", 8), ("AHEAD", 6)]);
        assert_eq!(defines(1, 3), [("LANES", 16), ("AHEAD", 8)]);
        assert_eq!(defines(4, 0), [("AHEAD", 3)]);
        assert_eq!(defines(8, 0), [("AHEAD", 3)]);
        assert_eq!(defines(8, 3), [("WARPS", 4), ("AHEAD", 4)]);
        assert_eq!(defines(25, 0), []);
    }
}
