//! FGBILU on a structured grid (Luo et al. 2015): block ILU(0) whose triangles are those of A itself.

use std::sync::Arc;

use super::work::{Phased, device, host};
use super::{Advised, Kept, Method, Phase, Ready, Setup, Takes, Variants};
use crate::base::choices::{FactorPrecision, LevelRule};
use crate::base::error::Error;
use crate::base::measure::memory_free;
use crate::base::setting::Setting;
use crate::compute::preconditioner::{FactorSize, Preconditioner, Renewal, SetupFailure};
use crate::compute::{Backend, Breakdown, Bytes, DiluFactors};
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern_on;
use crate::symbolic::{GridPattern, NoGrid, iluk_on};

/// A grid and its factors on the backend.
struct Fgbilu<K: Backend> {
    grid: Arc<GridPattern>,
    factors: Box<dyn DiluFactors<K>>,
}

impl<K: Backend> Preconditioner<K> for Fgbilu<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.factors.apply(k, r, z);
    }

    fn refactor(&mut self, k: &K, a: &Arc<Csr>, shift: f64) -> Result<Renewal, SetupFailure> {
        self.factors.factor(k, a, shift)?;
        Ok(Renewal::Done)
    }

    fn residual(&self, k: &K, a: &K::Matrix, x: &K::Vector, b: &K::Vector, r: &mut K::Vector) {
        if !self.factors.residual(k, x, b, r) {
            k.residual(a, x, b, r);
        }
    }

    fn bytes(&self, k: &K) -> Bytes {
        self.factors.bytes(k)
    }

    fn numeric_bytes(&self, _: &K) -> usize {
        // as for block ILU: indices and the values of A once, the factors once
        let pattern = &self.grid.factors;
        pattern.bytes() + 2 * 8 * pattern.numbers()
    }

    fn numeric_kernel_seconds(&self, k: &K) -> Option<f64> {
        self.factors.factor_seconds(k)
    }

    fn size(&self, _: &K) -> FactorSize {
        let pattern = &self.grid.factors;
        let (blocks, points) = (pattern.blocks(), pattern.rows());
        let levels = self.grid.hyperplanes.levels();
        FactorSize {
            factor_blocks: Some(blocks),
            factor_entries: Some(pattern.numbers()),
            levels_lower: Some(levels),
            levels_upper: Some(levels),
            rows_per_level: Some(points as f64 / levels.max(1) as f64),
            ..FactorSize::default()
        }
    }
}

pub(crate) const METHOD: Method = Method {
    name: "fgbilu",
    summary: "block ILU(0) of a seven-point grid in wavefront order, without pivoting",
    uses: &[
        Setting::BlockSize,
        Setting::Shift,
        Setting::Ordering,
        Setting::FactorPrecision,
        Setting::FgbiluStyle,
    ],
    takes: Takes::Grid,
    keeps: Kept::Analysis,
    transposable: false,
    work: Phased {
        symbolic: Some(host("the grid and its hyperplanes")),
        analysis: Some(host("order and storage of the factors")),
        numeric: Some(device("values of the factors")),
    },
    variants: Variants { all: &[], advised: Advised::Grid(&[""]), compared: &[] },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let Setup { k, a, settings, phases } = s;
    if settings.factor_precision != FactorPrecision::Float64 {
        let message = "`fgbilu` stores its factors in float64 alone";
        let hint = "`bilu` of level 0 is the same preconditioner, and stores float32 too";
        return Err(Error::input(message).hint(hint).into());
    }
    phases.begin(Phase::Symbolic);
    let grid = k.on_host(|threads| {
        let point = block_pattern_on(threads, a);
        // nothing is filled in, so nothing can be too large
        let factors = iluk_on(threads, &point, 0, LevelRule::Min, usize::MAX);
        factors.map(|factors| GridPattern::of(&point, factors))
    });
    let free = k.memory_free().min(memory_free());
    let grid = grid.map_err(|at| SetupFailure::TooLarge { at, needed: 8 * at.entries, free })?;
    let grid = Arc::new(grid.map_err(|why| no_grid(why, a.block_size()))?);
    SetupFailure::check_memory(8 * grid.factors.numbers(), k.memory_free())?;
    phases.begin(Phase::Analysis);
    let mut factors = k.fgbilu_analyse(&grid, settings.fgbilu_style)?;
    phases.begin(Phase::Numeric);
    factors.factor(k, a, settings.shift.fixed()).map_err(|why| match why {
        Breakdown::Singular(block) => {
            SetupFailure::NoPivot { block, subscripts: grid.subscripts(block.row) }
        }
        other @ Breakdown::Range { .. } => SetupFailure::Breakdown(other),
    })?;
    Ok(Box::new(Fgbilu { grid, factors }))
}

fn no_grid(why: NoGrid, b: usize) -> Error {
    let what = match why {
        NoGrid::NoBox => format!("its blocks of {b} have other neighbours"),
        NoGrid::Others { extents: [i, j, k], entries } => {
            format!("{entries} blocks of {b} are not between neighbours on {i} x {j} x {k} points")
        }
    };
    Error::input(format!("`fgbilu` needs a matrix of seven points on a box: {what}"))
        .hint("`bilu` takes any matrix; on a box its factors of level 0 are the same")
}
