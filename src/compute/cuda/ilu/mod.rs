//! Block ILU(k) factors on the GPU: the registry of the algorithms of the numeric factorisation, and what they have
//! in common.
//!
//! An algorithm is a file with `ABOUT`, what it is, and `ALGORITHM`, when it applies and how it is made; and its name
//! in `registry!`. The first in the registry that takes a pattern factorises on it.

mod cusparse;
mod march;
mod points;
mod rows;
mod stencil_blocks;
mod stencil_entries;
mod stencil_long;
mod tasks;
mod updates;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, DriverError};

use super::analysis::{self, Analysis, Stencils};
use super::compressed::Factored;
use super::device::Device;
use super::memory::failed;
use super::schedules::Order;
use super::sources::{Source, Variant};
use super::storage::{Factors, Structure};
use super::symbolic::Boxed;
use crate::base::error::Result;
use crate::compute::{SingularBlock, cuda};
use crate::matrix::Csr;
use crate::symbolic::{FillPattern, Schedule, Stencil};
pub(super) use cusparse::VendorIlu;
use march::Marched;
pub(super) use rows::InStages;

/// What an algorithm is.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// A line about it.
    pub summary: &'static str,
    /// The patterns and blocks that it takes.
    pub takes: &'static str,
    /// Its kernels; `None` where it has none, or none of ours.
    pub source: Option<&'static Source>,
}

/// An algorithm of the numeric factorisation.
struct Algorithm {
    about: Description,
    /// Variants of the kernels for such a pattern of a 7-point matrix, those that need the most registers where they
    /// depend on the pattern in further ways; none for one that it does not take.
    variants: fn(&Subject) -> Vec<Variant>,
    new: New,
}

/// How an algorithm factorises on a pattern; `None` where it does not take it.
type New = fn(&System) -> Result<Option<By>>;

macro_rules! registry {
    ($($name:ident),* $(,)?) => {
        /// Every algorithm, in the order in which they are asked.
        static ALGORITHMS: &[&Algorithm] = &[$(&$name::ALGORITHM),*];
    };
}

registry! { points, stencil_entries, stencil_long, stencil_blocks, rows, cusparse }

/// What the algorithms are, in the order in which they are asked.
pub fn factorisations() -> impl Iterator<Item = &'static Description> {
    ALGORITHMS.iter().map(|a| &a.about)
}

/// What the kernels are compiled to for factors of a 7-point matrix with this pattern, by the algorithms that take it;
/// `multiprocessors` are those of the GPU.
pub fn factor_variants(
    block_size: usize,
    pattern: &FillPattern,
    multiprocessors: u32,
) -> Vec<(&'static Source, Variant)> {
    let lower = Stencil::of_lower(pattern.lower.view());
    let stencils = Ok([lower, Stencil::of_upper(pattern.upper.view())]);
    let stencils = || &stencils;
    let subject = Subject::new(pattern, block_size, &stencils, multiprocessors);
    let of = |a: &&'static Algorithm| Some((a.about.source?, (a.variants)(&subject)));
    let compiled = ALGORITHMS.iter().filter_map(of);
    compiled.flat_map(|(source, all)| all.into_iter().map(move |v| (source, v))).collect()
}

/// Structs that the kernels share.
pub(super) fn layouts() -> impl Iterator<Item = &'static cuda::Layout> {
    tasks::LAYOUTS.iter()
}

/// What a choice depends on.
struct Subject<'a> {
    pattern: &'a FillPattern,
    block_size: usize,
    stencils: &'a dyn Fn() -> &'a Stencils,
    /// What is known without a look at the rows.
    boxed: Option<&'a Boxed>,
    multiprocessors: usize,
    /// The march over the stencil, found at the first call.
    marched: OnceCell<Option<Marched>>,
}

impl<'a> Subject<'a> {
    fn new(
        pattern: &'a FillPattern,
        block_size: usize,
        stencils: &'a dyn Fn() -> &'a Stencils,
        multiprocessors: u32,
    ) -> Self {
        let multiprocessors = multiprocessors as usize;
        let (boxed, marched) = (None, OnceCell::new());
        Self { pattern, block_size, stencils, boxed, multiprocessors, marched }
    }
}

/// What an algorithm is prepared for.
struct System<'a> {
    device: &'a Device,
    structure: &'a Structure,
    analysis: &'a Analysis,
    subject: Subject<'a>,
}

/// The pattern, the matrix and the shift to factors, or the singular block.
type OnHost = fn(&Device, &FillPattern, &Csr, f64) -> Result<Result<Factors, SingularBlock>>;

/// Who factorises.
enum By {
    /// The host, which reads the matrix faster than it sends it.
    Host(OnHost),
    /// Kernels.
    Device(Box<dyn Factorise>),
}

/// A factorisation by kernels.
trait Factorise {
    /// Whether a matrix of scalar rows may be on the device.
    fn takes_rows(&self) -> bool {
        false
    }

    /// Brings `a` to the device. `false` where it cannot be factorised so.
    fn take(&mut self, d: &Device, a: Factored, s: &Structure) -> Result<bool>;

    /// Factors of the matrix that was taken. The first row without a pivot goes to `error`, a number on the device, in
    /// the upper half. Asynchronous.
    fn factor(
        &mut self,
        d: &Device,
        shift: f64,
        s: &Structure,
        factors: &mut Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()>;
}

/// The numeric factorisation of matrices on one pattern.
pub(super) struct Factorisation {
    pub(super) structure: Structure,
    by: By,
    seconds: f64,
}

impl Factorisation {
    pub(super) fn new(
        d: &Device,
        pattern: &Arc<FillPattern>,
        analysis: &Analysis,
        block_size: usize,
    ) -> Result<Self> {
        let structure = match analysis.triangles.clone() {
            Some(triangles) => Structure::there(pattern, block_size, triangles),
            None => d.span("structure", || Structure::new(d, pattern, block_size))?,
        };
        let stencils = || analysis.stencils(d, block_size);
        let subject = Subject::new(pattern, block_size, &stencils, d.multiprocessors());
        let subject = Subject { boxed: analysis.boxed.as_ref(), ..subject };
        let system = System { device: d, structure: &structure, analysis, subject };
        let made = ALGORITHMS.iter().find_map(|a| (a.new)(&system).transpose());
        let by = made.expect("rows take all patterns")?;
        Ok(Self { structure, by, seconds: f64::NAN })
    }

    /// Whether a matrix may be on the device.
    pub(super) fn takes_rows(&self) -> bool {
        matches!(&self.by, By::Device(by) if by.takes_rows()) && self.structure.block_size == 1
    }

    /// Factors of `a`, which is on the host unless [`takes_rows`](Self::takes_rows); see
    /// [`Factors::ilu_factor`](crate::compute::Factors::ilu_factor). The inner result tells of a singular block.
    pub(super) fn run(
        &mut self,
        d: &Device,
        a: Factored,
        shift: f64,
    ) -> Result<Result<Factors, SingularBlock>> {
        let by = match (&mut self.by, a) {
            (By::Host(factor), Factored::Host(a, _)) => {
                return factor(d, &self.structure.pattern, a, shift);
            }
            (By::Host(_), Factored::Device(_)) => unreachable!("it takes no rows on the device"),
            (By::Device(by), _) => by,
        };
        let fault = |e: DriverError| failed("factorisation", e);
        let s = &self.structure;
        let (pattern, bb) = (&s.pattern, s.block_size * s.block_size);
        let mut values = Factors {
            lower: d.alloc(pattern.lower.entries() * bb)?,
            diagonal: d.alloc(pattern.rows() * bb)?,
            upper: d.alloc(pattern.upper.entries() * bb)?,
        };
        let error = d.least()?;
        if !d.span("take", || by.take(d, a, s))? {
            let order = Order::Host(Cow::Owned(Schedule::lower(pattern)));
            *by = rows::new(d, s, analysis::Rows::of(pattern), &order)?;
            by.take(d, a, s)?;
        }
        let start = d.event().map_err(fault)?;
        by.factor(d, shift, s, &mut values, &error)?;
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
    let Some(found) = d.found(error)? else {
        return Ok(None);
    };
    let fault = |e: DriverError| failed("factorisation", e);
    let (row, bb) = ((found >> 32) as usize, pattern.block_size().pow(2));
    let block = values.diagonal.slice(row * bb..=row * bb);
    let mut pivot = [0.0];
    d.stream().memcpy_dtoh(&block, &mut pivot).map_err(fault)?;
    d.stream().synchronize().map_err(fault)?;
    let absent = pattern.lacks_diagonal(row);
    Ok(Some(SingularBlock { row, within: found as u32 as usize, pivot: pivot[0], absent }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::iluk;

    fn pattern(matrix: &str, fill: usize) -> FillPattern {
        let grid = problem::load(matrix, ReadAs::Expanded).unwrap();
        iluk(&block_pattern(&grid.matrix), fill, LevelRule::Min, usize::MAX).unwrap()
    }

    /// Who has kernels for the pattern, in the order of the registry.
    fn compiled(b: usize, pattern: &FillPattern) -> Vec<&'static str> {
        let all = factor_variants(b, pattern, 132);
        let mut names: Vec<_> = all.into_iter().map(|(source, _)| source.name).collect();
        names.dedup();
        names
    }

    #[test]
    fn stencils_small_enough_are_marched_over() {
        const ROWS: &str = "ilu/rows";
        let patterns = [0, 1, 2, 3].map(|k| pattern("poisson3d:20", k));
        let all = |b: usize| patterns.each_ref().map(|p| compiled(b, p));
        let [first, filled @ ..] = all(1);
        assert_eq!(first, ["ilu/stencil/entries", ROWS]);
        assert!(filled.iter().all(|names| *names == ["ilu/stencil/long", ROWS]), "{filled:?}");
        for b in 2..=4 {
            let [first, filled @ ..] = all(b);
            assert_eq!(first, ["ilu/stencil/blocks", ROWS], "b = {b}");
            assert!(filled.iter().all(|names| *names == [ROWS]), "b = {b}: {filled:?}");
        }
        assert!(all(5).iter().all(|names| *names == [ROWS]));
    }

    #[test]
    fn descriptions_name_their_files_and_stand_in_the_page() {
        let page = include_str!("../../../../docs/gpu-factorisation.md");
        for about in factorisations() {
            let source = about.source.map_or("", |source| source.name);
            let row = format!("| `{}` | {} | {} |", about.name, about.takes, about.summary);
            let kernel =
                if source.is_empty() { String::new() } else { format!(" `{source}.cu` |") };
            assert!(
                page.contains(&format!("{row}{kernel}")),
                "docs/gpu-factorisation.md: {row}{kernel}"
            );
        }
        let names: Vec<_> = factorisations().map(|about| about.name).collect();
        let registry = include_str!("mod.rs").split_once("\nregistry! {").unwrap().1;
        let files = registry.split_once('}').unwrap().0.split(',').map(str::trim);
        assert_eq!(names, files.map(|file| file.replace('_', "-")).collect::<Vec<_>>());
    }
}
