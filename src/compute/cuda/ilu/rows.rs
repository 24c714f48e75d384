//! Row by row, each when the rows above it are there (`kernels/ilu/rows.cu`): any pattern.

use std::borrow::Cow;
use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig};
use itertools::Itertools as _;

use super::tasks::{Launch, Rows};
use super::updates::Updates;
use super::{Algorithm, By, Description, Factorise};
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::cuda::analysis;
use crate::compute::cuda::compressed::{Compressed, Factored};
use crate::compute::cuda::device::{Device, WARP};
use crate::compute::cuda::launch::{Address, FactorsArg, MatrixArg, RowsArg, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::schedules::Order;
use crate::compute::cuda::sources::{ILU, Variant};
use crate::compute::cuda::storage::{Factors, Structure};
use crate::matrix::CsrPattern;
use crate::symbolic::Schedule;

const ABOUT: Description = Description {
    name: "rows",
    summary: "each row when the rows above it are there; values are their own flags",
    takes: "any pattern, blocks of any size",
    source: Some(&ILU),
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    about: ABOUT,
    variants: |s| largest_variants(s.block_size),
    new: |s| {
        let order = s.analysis.forward_order(s.device, s.structure)?;
        Ok(Some(By::Device(new(s.device, s.structure, s.analysis.rows(), &order)?)))
    },
};

/// `order` is that of the forward solve.
pub(super) fn new(
    d: &Device,
    s: &Structure,
    like: analysis::Rows,
    order: &Order,
) -> Result<Box<dyn Factorise>> {
    let kernel = Rc::new(Kernel::new(d, s, like, order.levels())?);
    Ok(Box::new(ByRows::new(d, &kernel, s, like, order)?))
}

/// Largest blocks whose updates are listed beforehand.
const LARGEST_LISTED: usize = 8;

/// The kernel for rows like those of a pattern in so many levels, and the updates of these.
struct Kernel {
    variant: Variant,
    launch: Launch,
    updates: Option<Updates>,
    factor: CudaFunction,
}

impl Kernel {
    fn new(d: &Device, s: &Structure, like: analysis::Rows, levels: usize) -> Result<Self> {
        let (block_size, patterns) = (s.block_size, s.triangles());
        let of_level = like.count() as f64 / levels.max(1) as f64 / f64::from(d.multiprocessors());
        let mut variant = suited(block_size, s.pattern.upper.entries(), like, of_level);
        let mut launch = Launch::of(d, &variant)?;
        let mut updates = None;
        if block_size <= LARGEST_LISTED {
            updates = Updates::new(d, &variant, launch.width, like, patterns)?;
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
    /// A matrix of which nobody else has a copy, with its pattern.
    own: Option<(CsrPattern, Compressed)>,
    /// Places of the entries of a matrix with this pattern; without one of one on the device, once.
    places: Option<(Option<CsrPattern>, CudaSlice<u32>)>,
    /// Values of the matrix that was taken.
    val: Address,
    config: LaunchConfig,
}

impl ByRows {
    /// `order` is that of the forward solve, or of some of the rows, at least one.
    fn new(
        d: &Device,
        kernel: &Rc<Kernel>,
        s: &Structure,
        like: analysis::Rows,
        order: &Order,
    ) -> Result<Self> {
        let Kernel { variant, launch, updates, factor } = &**kernel;
        let (pattern, patterns) = (&*s.pattern, s.triangles());
        let rows = Rows::new(d, variant, like, order, launch, updates.as_ref(), patterns)?;
        Ok(Self {
            config: rows.config(d, factor, launch)?,
            spill: d.alloc(rows.spilled_numbers())?,
            rows,
            kernel: Rc::clone(kernel),
            absent: d.copied(&pattern.no_diagonal)?,
            n_absent: pattern.no_diagonal.len(),
            own: None,
            places: None,
            val: 0,
        })
    }

    /// Factors of the rows, of the matrix that was taken. D and U' are marked absent where they are to be made.
    fn launch(
        &mut self,
        d: &Device,
        shift: f64,
        s: &Structure,
        values: &Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        let matrix = MatrixArg {
            val: self.val,
            place: address(&self.places.as_ref().expect("taken before").1),
            absent: address(&self.absent),
            n_absent: self.n_absent as u32,
            shift,
        };
        let factors = FactorsArg {
            lower: address(&values.lower),
            diagonal: address(&values.diagonal),
            upper: address(&values.upper),
        };
        let (lower, upper) = (s.lower.argument(), s.upper.argument());
        let rows: RowsArg = self.rows.argument(&self.spill);
        let Kernel { updates, factor, .. } = &*self.kernel;
        let updates = updates.as_ref().map_or(0, |updates| address(&updates.list));
        let launched = launch!(
            cooperative d, factor, self.config;
            rows, updates, matrix, lower, upper, factors, *error
        );
        // without a pattern to know them by
        self.places.take_if(|(of, _)| of.is_none());
        launched.map_err(|e| failed("factorisation", e))
    }
}

impl Factorise for ByRows {
    fn takes_rows(&self) -> bool {
        true
    }

    fn take(&mut self, d: &Device, a: Factored, s: &Structure) -> Result<bool> {
        let pattern = match a {
            Factored::Host(a, _) => Some(a.pattern()),
            Factored::Device(_) => None,
        };
        let known = |of: &CsrPattern| pattern.is_some_and(|pattern| pattern.is(of));
        let there = a.there(d, &mut self.own)?;
        if !self.places.as_ref().and_then(|(of, _)| of.as_ref()).is_some_and(known) {
            // the memory of the old ones is free before
            self.places = None;
            let places = self.rows.places(d, &there, s.triangles())?;
            self.places = Some((pattern.cloned(), places));
        }
        self.val = address(&there.val);
        Ok(true)
    }

    fn factor(
        &mut self,
        d: &Device,
        shift: f64,
        s: &Structure,
        values: &mut Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        d.mark_absent(&mut values.diagonal)?;
        d.mark_absent(&mut values.upper)?;
        self.launch(d, shift, s, values, error)
    }
}

/// A factorisation stage by stage; those without rows here are `None`.
pub(in crate::compute::cuda) struct InStages(Vec<Option<ByRows>>);

impl InStages {
    /// `stages` has the levels of each.
    pub(in crate::compute::cuda) fn new(
        d: &Device,
        s: &Structure,
        stages: &[Schedule],
    ) -> Result<Self> {
        let like = analysis::Rows::of(&s.pattern);
        let levels = stages.iter().map(Schedule::levels).sum();
        let kernel = Rc::new(Kernel::new(d, s, like, levels)?);
        let stage = |levels: &Schedule| {
            if levels.rows.is_empty() {
                return Ok(None);
            }
            ByRows::new(d, &kernel, s, like, &Order::Host(Cow::Borrowed(levels))).map(Some)
        };
        Ok(Self(stages.iter().map(stage).collect::<Result<_>>()?))
    }

    /// The rows of a stage, after all that they need; see [`super::singular`] for `error`.
    pub(in crate::compute::cuda) fn factor(
        &mut self,
        d: &Device,
        stage: usize,
        (a, shift): (&Compressed, f64),
        s: &Structure,
        values: &Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        let Some(rows) = &mut self.0[stage] else { return Ok(()) };
        rows.take(d, Factored::Device(a), s)?;
        rows.launch(d, shift, s, values, error)
    }
}

/// Rows of a level for each multiprocessor and job of a row. Fewer leave warps idle, and time goes by levels: then a row
/// has a whole warp and begins before its gate opens (`EARLY` of `ilu/rows.cuh`). Measured on an H200 with 21 real
/// matrices and grids: docs/notes/gpu-factorisation.md.
mod fewer_than {
    /// Points: a warp to a row.
    pub(super) const POINTS: f64 = 0.38;
    /// Blocks begin early.
    pub(super) const BLOCKS: f64 = 0.15;
    /// Four warps to a row of blocks, if it has [`super::FOUR_WARPS`] jobs.
    pub(super) const FOUR_WARPS: f64 = 0.03;
    /// And these begin early.
    pub(super) const FOUR_EARLY: f64 = 0.007;
}

/// Jobs of a row that four warps share.
const FOUR_WARPS: usize = 20;

/// Jobs of a row of points that begins early.
const EARLY_POINTS: usize = 6;

/// Updates that a variant of `ilu/rows.cu` makes at once, where rows have about `upper` blocks of U' and levels many rows:
/// for blocks of one about as many as come from one row above, but 32 were slower than 16.
fn width(block_size: usize, upper: f64) -> usize {
    match block_size {
        1 => ((0.8 * upper).ceil() as usize).next_power_of_two().clamp(4, 16),
        2 => 4,
        3 | 4 => 2,
        _ => 1,
    }
}

/// Jobs of about `jobs` of a row, which four warps share or not, whose operands are fetched together: as many as there
/// are registers for, and few different numbers, so that few variants are compiled.
fn ahead(block_size: usize, jobs: usize, four: bool) -> usize {
    let most = match block_size {
        1 if jobs > 12 => 8,
        3 | 4 if four => 5,
        1..=4 => 6,
        8 => 4,
        _ => 3,
    };
    if jobs <= 4 { jobs.clamp(2, most) } else { most }
}

/// The variant of `ilu/rows.cu` for rows of points of about `jobs` jobs of `lanes` updates.
fn points(lanes: usize, jobs: usize) -> Variant {
    if lanes == WARP && jobs >= EARLY_POINTS {
        return Variant { defines: vec![("LANES", lanes), ("AHEAD", 4), ("EARLY", 1)], ..1.into() };
    }
    Variant { defines: vec![("LANES", lanes), ("AHEAD", ahead(1, jobs, false))], ..1.into() }
}

/// The variant for rows of blocks of about `jobs` jobs, so many rows of a level for each multiprocessor and job.
fn blocks(block_size: usize, jobs: usize, rows_per_job: f64) -> Variant {
    let four = jobs >= FOUR_WARPS && rows_per_job < fewer_than::FOUR_WARPS;
    let ahead = ahead(block_size, jobs, four);
    // blocks of 8 with few jobs ahead share the registers among too many thread blocks
    let room = block_size < 8 || ahead > 3;
    let most = if four { fewer_than::FOUR_EARLY } else { fewer_than::BLOCKS };
    let early = room && rows_per_job < most;
    let mut defines = vec![("AHEAD", ahead)];
    if four {
        defines.push(("WARPS", 4));
    }
    if early {
        defines.push(("EARLY", 1));
    }
    Variant { defines, ..block_size.into() }
}

/// The variant that searches for the targets of updates.
fn searching(block_size: usize) -> Variant {
    Variant { defines: vec![("SEARCHED", 1)], ..block_size.into() }
}

/// The variant for such rows, of which those of U have `in_upper` blocks together, and a level has `of_level` for each
/// multiprocessor.
fn suited(block_size: usize, in_upper: usize, like: analysis::Rows, of_level: f64) -> Variant {
    if block_size > LARGEST_LISTED {
        return block_size.into();
    }
    let width = width(block_size, in_upper as f64 / like.count().max(1) as f64);
    if block_size > 1 {
        let jobs = jobs(like, width);
        return blocks(block_size, jobs, of_level / jobs.max(1) as f64);
    }
    let of_warp = jobs(like, WARP);
    if of_level < fewer_than::POINTS * of_warp as f64 {
        points(WARP, of_warp)
    } else {
        points(width, jobs(like, width))
    }
}

/// Mean jobs of `width` updates of a row, as some of the rows tell.
fn jobs(like: analysis::Rows, width: usize) -> usize {
    const SAMPLE: usize = 200;
    const LONG: usize = 32;
    let pattern = like.pattern;
    // an odd distance, so that not all are the first of a line of a grid
    let apart = (like.count() / SAMPLE) | 1;
    let sampled = like.count().div_ceil(apart);
    let of_row = |marked: &mut Vec<bool>, n: usize| {
        let i = like.alike(n * apart);
        let [lower, upper] = [&pattern.lower, &pattern.upper].map(|triangle| triangle.row(i));
        let row = || lower.iter().chain(upper).map(|&j| j as usize).chain([i]);
        row().for_each(|j| marked[j] = true);
        let in_row = |j: &&u32| marked[**j as usize];
        let updates = |p: &u32| pattern.upper.row(*p as usize).iter().filter(in_row).count();
        let jobs: usize = lower.iter().map(|p| updates(p).div_ceil(width)).sum();
        row().for_each(|j| marked[j] = false);
        jobs
    };
    // short rows take less than to wake the others
    let threads = Threads::when(pattern.blocks() > LONG * pattern.rows());
    let all = threads.map_with(sampled, 8, || vec![false; pattern.rows()], of_row);
    all.into_iter().sum::<usize>().div_ceil(sampled.max(1))
}

/// The variants of `ilu/rows.cu` that need the most registers.
fn largest_variants(block_size: usize) -> Vec<Variant> {
    if block_size > LARGEST_LISTED {
        return vec![block_size.into()];
    }
    // fewer operands fetched ahead are to leave room for more thread blocks
    let jobs = [3, 12, FOUR_WARPS];
    let all = jobs.into_iter().flat_map(|jobs| match block_size {
        1 => [16, WARP].map(|lanes| points(lanes, jobs)).to_vec(),
        _ => [0.0, fewer_than::FOUR_EARLY, fewer_than::FOUR_WARPS, fewer_than::BLOCKS]
            .map(|rows_per_job| blocks(block_size, jobs, rows_per_job))
            .to_vec(),
    });
    all.chain([searching(block_size)]).unique().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::LevelRule;
    use crate::symbolic::iluk;

    #[test]
    fn jobs_are_those_of_all_rows_of_a_small_matrix() {
        let grid =
            crate::problem::load("poisson3d:5", crate::base::choices::ReadAs::Expanded).unwrap();
        let pattern = crate::matrix::pattern::block_pattern(&grid.matrix);
        let p = iluk(&pattern, 3, LevelRule::Min, usize::MAX).unwrap();
        let in_row = |i: usize, j: &u32| {
            *j as usize == i || p.lower.row(i).contains(j) || p.upper.row(i).contains(j)
        };
        for width in [1, 4, 32] {
            let updates =
                |i, &k: &u32| p.upper.row(k as usize).iter().filter(|j| in_row(i, j)).count();
            let of_row =
                |i| p.lower.row(i).iter().map(|k| updates(i, k).div_ceil(width)).sum::<usize>();
            let all: usize = (0..125).map(of_row).sum();
            assert!(all > 125, "{all}");
            assert_eq!(jobs(analysis::Rows::of(&p), width), all.div_ceil(125), "width {width}");
        }
    }

    #[test]
    fn the_variant_follows_the_rows() {
        let grid =
            crate::problem::load("poisson3d:9", crate::base::choices::ReadAs::Expanded).unwrap();
        let point = crate::matrix::pattern::block_pattern(&grid.matrix);
        let of = |b, k, of_level| {
            let p = iluk(&point, k, LevelRule::Min, usize::MAX).unwrap();
            suited(b, p.upper.entries(), analysis::Rows::of(&p), of_level).defines
        };
        let many = |b, k| of(b, k, 1e3);
        assert_eq!(many(1, 0), [("LANES", 4), ("AHEAD", 3)]);
        assert_eq!(many(1, 1), [("LANES", 8), ("AHEAD", 6)]);
        assert_eq!(many(1, 3), [("LANES", 16), ("AHEAD", 8)]);
        assert_eq!(many(4, 0), [("AHEAD", 3)]);
        assert_eq!(many(8, 0), [("AHEAD", 3)]);
        assert_eq!(many(8, 3), [("AHEAD", 4)]);
        assert_eq!(many(25, 0), []);
        let few = |b, k| of(b, k, 0.1);
        assert_eq!(few(1, 0), [("LANES", 32), ("AHEAD", 3)], "short rows wait");
        assert_eq!(few(1, 3), [("LANES", 32), ("AHEAD", 4), ("EARLY", 1)]);
        assert_eq!(few(4, 0), [("AHEAD", 3), ("EARLY", 1)]);
        assert_eq!(few(8, 3), [("AHEAD", 4), ("WARPS", 4), ("EARLY", 1)]);
        // levels of 231 rows on 132 multiprocessors
        assert_eq!(of(4, 3, 1.75), [("AHEAD", 5), ("WARPS", 4)]);
        assert_eq!(of(4, 2, 2.86), [("AHEAD", 6), ("EARLY", 1)]);
    }
}
