//! Ways of triangular solves with our factors: what they have in common, and which there are.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::cusparse::Handle;
use super::device::Device;
use super::ilu::Factorisation;
use super::launch::{Address, PartsArg};
use super::numbers::Values;
use super::{levels, partitioned, pencils, syncfree, vendor, wavefront};
use crate::base::choices::{FactorPrecision, Trisolve};
use crate::base::error::Result;
use crate::compute::Bytes;
use crate::symbolic::{FillPattern, Schedule, Stencil};

/// Solves with both triangles: `z = (L D U')^-1 r`.
pub(super) trait Solve {
    /// Takes over the values of the factors. Returns the seconds spent on a choice among the ways of
    /// a library, which no phase should be charged with.
    fn set_values(&mut self, d: &Device, f: &Factorisation, values: Values) -> Result<f64>;

    /// Whether it takes vectors in the order that its system names.
    fn in_order(&self) -> bool {
        false
    }

    /// Bytes of its own storage and of one application, where they are not those of the pattern.
    fn bytes(&self) -> Option<Bytes> {
        None
    }

    /// What solves within another kernel need, where they are prepared for.
    fn parts(&self) -> Option<Parts> {
        None
    }

    /// `z = (L D U')^-1 r`. Asynchronous.
    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()>;
}

/// Factors as a kernel takes them whose thread blocks have a part each.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) lower: PartsArg,
    pub(super) upper: PartsArg,
    /// Inverse diagonal blocks.
    pub(super) diagonal: Address,
    /// Place of the forward solution.
    pub(super) y: Address,
    /// Block rows that it has shared memory for.
    pub(super) slots: usize,
}

/// What a way is made for.
pub(super) struct System<'a> {
    pub(super) device: &'a Device,
    pub(super) factorisation: &'a Factorisation,
    pub(super) analysis: &'a Analysis,
    /// Block row of the vectors of each block row of the factors, where it is another one.
    pub(super) order: Option<&'a [u32]>,
    /// Numbers in which the solves read the factors.
    pub(super) precision: FactorPrecision,
    /// Whether a kernel solves that stays for a whole method.
    pub(super) resident: bool,
    /// Opens cuSPARSE.
    pub(super) library: &'a dyn Fn() -> Result<Rc<Handle>>,
}

/// The stencils of both triangles, `None` for an empty one; or why there are none.
pub(super) type Stencils = std::result::Result<[Option<Stencil>; 2], &'static str>;

/// What is known of both triangles from their patterns.
pub(super) struct Analysis {
    pattern: Arc<FillPattern>,
    schedules: OnceCell<[Schedule; 2]>,
    stencils: OnceCell<Stencils>,
}

impl Analysis {
    pub(super) fn new(pattern: &Arc<FillPattern>) -> Self {
        let pattern = Arc::clone(pattern);
        Self { pattern, schedules: OnceCell::new(), stencils: OnceCell::new() }
    }

    /// The same with one grouping of the rows for both solves: the sets of their order.
    pub(super) fn of_sets(pattern: &Arc<FillPattern>, sets: &Schedule) -> Self {
        let forward = sets.in_place();
        let backward = forward.reversed();
        Self { schedules: OnceCell::from([forward, backward]), ..Self::new(pattern) }
    }

    /// Schedules of the forward and the backward solve, found at the first call.
    pub(super) fn schedules(&self) -> &[Schedule; 2] {
        let p = &self.pattern;
        self.schedules
            .get_or_init(|| rayon::join(|| Schedule::lower(p), || Schedule::upper(p)).into())
    }

    /// Levels of the forward and the backward solve, for which a grid needs no schedules.
    pub(super) fn levels(&self, d: &Device, block_size: usize) -> [usize; 2] {
        let p = &self.pattern;
        if p.blocks() == p.rows() {
            return [p.rows().min(1); 2];
        }
        if self.schedules.get().is_none()
            && let Ok([Some(lower), Some(upper)]) = self.stencils(d, block_size)
            && let Some(lower) = lower.levels(p.lower.entries())
            && let Some(upper) = upper.levels(p.upper.entries())
        {
            return [lower, upper];
        }
        [0, 1].map(|i: usize| self.schedules()[i].levels())
    }

    /// The stencils, looked for at the first call.
    pub(super) fn stencils(&self, d: &Device, block_size: usize) -> &Stencils {
        self.stencils.get_or_init(|| wavefront::stencils(d, &self.pattern, block_size))
    }
}

/// Makes a way of triangular solves.
type Make = fn(&System) -> Result<Box<dyn Solve>>;

/// Every way of triangular solves with our factors.
const WAYS: &[(Trisolve, Make)] = &[
    (Trisolve::Levels, levels::blockwise),
    (Trisolve::Pointwise, levels::pointwise),
    (Trisolve::Syncfree, syncfree::solve),
    (Trisolve::Wavefront, wavefront::solve),
    (Trisolve::Pencils, pencils::solve),
    (Trisolve::Partitioned, partitioned::solve),
    (Trisolve::Cusparse, vendor::solve),
];

/// Solves in the `way`, which is not [`Trisolve::Auto`].
pub(super) fn make(way: Trisolve, system: &System) -> Result<Box<dyn Solve>> {
    let (_, make) = WAYS.iter().find(|(name, _)| *name == way).expect("every way is listed");
    make(system)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_way_but_the_choice_is_listed_once() {
        for way in Trisolve::value_variants() {
            let listed = WAYS.iter().filter(|(name, _)| name == way).count();
            assert_eq!(listed, usize::from(*way != Trisolve::Auto), "{way:?}");
        }
    }
}
