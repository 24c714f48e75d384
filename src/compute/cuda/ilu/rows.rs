//! Row by row, each when the rows above it are there (`kernels/ilu/rows.cu`): any pattern.

use std::borrow::Cow;
use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig};

use super::tasks::{Launch, Rows};
use super::updates::Updates;
use super::{Algorithm, By, Description, Factorise};
use crate::base::error::Result;
use crate::compute::cuda::analysis;
use crate::compute::cuda::compressed::{Compressed, Factored};
use crate::compute::cuda::device::Device;
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
    let kernel = Rc::new(Kernel::new(d, s, like)?);
    Ok(Box::new(ByRows::new(d, &kernel, s, like, order)?))
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
    fn new(d: &Device, s: &Structure, like: analysis::Rows) -> Result<Self> {
        let (block_size, patterns) = (s.block_size, s.triangles());
        let mut variant = suited(block_size, s.pattern.upper.entries(), like, early());
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
        let kernel = Rc::new(Kernel::new(d, s, like)?);
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

/// Most jobs of a row that one warp works on; more are shared out among four.
const MOST_JOBS: usize = 64;

/// Environment variable that lets rows of more jobs than [`MOST_JOBS`] begin before their gates open; not yet measured.
const EARLY_ROWS: &str = "BILU_BENCH_EARLY_ROWS";

fn early() -> bool {
    std::env::var_os(EARLY_ROWS).is_some_and(|set| set == "1")
}

/// Updates that a variant of `ilu/rows.cu` makes at once, where rows have about `upper` blocks of U': for
/// blocks of one about as many as come from one row above, but 32 were slower than 16, and are for rows that
/// begin early.
fn width(block_size: usize, upper: f64, early: bool) -> usize {
    let most = if early && upper >= 64.0 { 32 } else { 16 };
    match block_size {
        1 => ((0.8 * upper).ceil() as usize).next_power_of_two().clamp(4, most),
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
fn listed(block_size: usize, width: usize, jobs: usize, early: bool) -> Variant {
    let mut defines = Vec::new();
    if block_size == 1 {
        defines.push(("LANES", width));
    } else if jobs > MOST_JOBS {
        defines.push(("WARPS", 4));
    }
    defines.push(("AHEAD", ahead(block_size, jobs)));
    if early && jobs > MOST_JOBS {
        defines.push(("EARLY", 1));
    }
    Variant { defines, ..block_size.into() }
}

/// The variant that searches for the targets of updates.
fn searching(block_size: usize) -> Variant {
    Variant { defines: vec![("SEARCHED", 1)], ..block_size.into() }
}

/// The variant for such rows, of which those of U have so many blocks together.
fn suited(block_size: usize, in_upper: usize, like: analysis::Rows, early: bool) -> Variant {
    if block_size > LARGEST_LISTED {
        return block_size.into();
    }
    let width = width(block_size, in_upper as f64 / like.count().max(1) as f64, early);
    listed(block_size, width, jobs(like, width), early)
}

/// Mean jobs of `width` updates of a row, as some of the rows tell.
fn jobs(like: analysis::Rows, width: usize) -> usize {
    const SAMPLE: usize = 200;
    let pattern = like.pattern;
    let has = |i: usize, j: &u32| {
        *j as usize == i
            || pattern.lower.row(i).binary_search(j).is_ok()
            || pattern.upper.row(i).binary_search(j).is_ok()
    };
    // an odd distance, so that not all are the first of a line of a grid
    let rows = || (0..like.count()).step_by((like.count() / SAMPLE) | 1).map(|i| like.alike(i));
    let of_row = |i: usize| -> usize {
        let updates = |p: &u32| pattern.upper.row(*p as usize).iter().filter(|j| has(i, j)).count();
        pattern.lower.row(i).iter().map(|p| updates(p).div_ceil(width)).sum()
    };
    rows().map(of_row).sum::<usize>().div_ceil(rows().count().max(1))
}

/// The variants of `ilu/rows.cu` that need the most registers.
fn largest_variants(block_size: usize) -> Vec<Variant> {
    if block_size > LARGEST_LISTED {
        return vec![block_size.into()];
    }
    let width = |early| width(block_size, f64::from(u16::MAX), early);
    let jobs = [2, 3, 4, 12, MOST_JOBS, MOST_JOBS + 1];
    let usual = jobs.map(|jobs| listed(block_size, width(false), jobs, false));
    let early = listed(block_size, width(true), MOST_JOBS + 1, true);
    usual.into_iter().chain([early, searching(block_size)]).collect()
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
        let of = |b, k, early| {
            let p = pattern(k);
            suited(b, p.upper.entries(), analysis::Rows::of(&p), early).defines
        };
        let defines = |b, k| of(b, k, false);
        assert_eq!(defines(1, 0), [("LANES", 4), ("AHEAD", 3)]);
        assert_eq!(defines(1, 1), [("LANES", 8), ("AHEAD", 6)]);
        assert_eq!(defines(1, 3), [("LANES", 16), ("AHEAD", 8)]);
        assert_eq!(defines(4, 0), [("AHEAD", 3)]);
        assert_eq!(defines(8, 0), [("AHEAD", 3)]);
        assert_eq!(defines(8, 3), [("WARPS", 4), ("AHEAD", 4)]);
        assert_eq!(defines(25, 0), []);
        assert_eq!(of(1, 3, true), [("LANES", 16), ("AHEAD", 8)], "short rows wait");
        assert_eq!(of(1, 8, true), [("LANES", 16), ("AHEAD", 8), ("EARLY", 1)]);
        assert_eq!(of(1, 12, true), [("LANES", 32), ("AHEAD", 8), ("EARLY", 1)]);
        assert_eq!(of(8, 3, true), [("WARPS", 4), ("AHEAD", 4), ("EARLY", 1)]);
    }
}
