//! Decoupled block ILU(k) (Yang et al., Algorithm 5): symbolic phase on the point pattern, then
//! block factorisation on the filled pattern, applied as `L D U'` (equation 6).

use crate::compute::{Backend, Bytes, FactorInfo};
use std::sync::Arc;

use super::products::Undivided;
use super::threshold::Dropping;
use super::work::{Phased, device, host};
use super::{Kept, Method, Phase, Ready, Settings, Setup, Shape};
use crate::base::measure::memory_free;
use crate::base::setting::Setting;
use crate::compute::Trisolve;
use crate::compute::preconditioner::{FactorSize, Form, Preconditioner, Renewal, SetupFailure};
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern_on;
use crate::symbolic::{FillPattern, iluk_on};

/// Factors on the backend.
pub(super) struct Factors<K: Backend> {
    pub(super) ilu: K::BlockIlu,
    /// Whether U' is the transpose of L.
    pub(super) symmetric: bool,
}

impl<K: Backend> Factors<K> {
    pub(super) fn of(ilu: K::BlockIlu) -> Self {
        Self { ilu, symmetric: false }
    }
}

impl<K: Backend> Preconditioner<K> for Factors<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        k.ilu_apply(&self.ilu, r, z);
    }

    fn refactor(&mut self, k: &K, a: &Arc<Csr>, shift: f64) -> Result<Renewal, SetupFailure> {
        k.ilu_factor(&mut self.ilu, a, shift)?;
        Ok(Renewal::Done)
    }

    fn form(&self) -> Form<'_, K> {
        Form::Factors { ilu: &self.ilu, symmetric: self.symmetric }
    }

    fn bytes(&self, _: &K) -> Bytes {
        self.ilu.bytes()
    }

    fn numeric_bytes(&self, _: &K) -> usize {
        // indices and the values of A once, the factors once; a place of fill counts as one of A,
        // for a zero has to be written there before the rows are added up
        let pattern = self.ilu.pattern();
        pattern.bytes() + 2 * 8 * pattern.numbers()
    }

    fn numeric_kernel_seconds(&self, _: &K) -> Option<f64> {
        self.ilu.factor_seconds()
    }

    fn size(&self, _: &K) -> FactorSize {
        let pattern = self.ilu.pattern();
        let [lower, upper] = self.ilu.levels();
        let trisolve = self.ilu.trisolve();
        let blocks = pattern.blocks();
        let triangles = blocks > pattern.rows();
        let reason = self.ilu.trisolve_reason().filter(|_| triangles);
        FactorSize {
            factor_blocks: Some(blocks),
            factor_entries: Some(pattern.numbers()),
            levels_lower: Some(lower),
            levels_upper: Some(upper),
            rows_per_level: Some(pattern.rows() as f64 / lower.max(1) as f64),
            trisolve_used: (triangles && trisolve != Trisolve::AUTO).then_some(trisolve),
            trisolve_reason: reason.map(str::to_owned),
            factor_precisions: self.ilu.precisions(),
            ..FactorSize::default()
        }
    }
}

pub(crate) const METHOD: Method = Method {
    name: "bilu",
    summary: "block ILU(k) by level of fill",
    uses: &[
        Setting::BlockSize,
        Setting::Fill,
        Setting::LevelRule,
        Setting::Shift,
        Setting::DropTolerance,
        Setting::Ordering,
        Setting::FactorPrecision,
        Setting::Trisolve,
    ],
    work: Phased {
        symbolic: Some(host("pattern of the factors")),
        analysis: Some(host("schedules and layout of the solves")),
        numeric: Some(device("values of the factors")),
    },
    undivided: Undivided::Factors,
    keeps: Kept::Analysis,
    shape: Shape::Triangles,
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(mut s: Setup<K>) -> Ready<K> {
    let mut pattern = pattern(&mut s)?;
    let Settings { drop_tolerance: tau, trisolve: variant, shift, .. } = *s.settings;
    if tau > 0.0 {
        let dropping = Dropping { tau, most: usize::MAX, within: Some(&*pattern) };
        let shift = shift.fixed() * s.a.largest_diagonal();
        pattern = Arc::new(dropping.eliminate(s.k, s.a, shift, room(s.k, s.a))?.pattern);
    }
    Ok(Box::new(Factors::<K>::of(factorise(s, &pattern, variant)?)))
}

/// The symbolic phase: the pattern of ILU(k) of the case.
pub(super) fn pattern<K: Backend>(s: &mut Setup<K>) -> Result<Arc<FillPattern>, SetupFailure> {
    s.phases.begin(Phase::Symbolic);
    if let Some(known) = s.phases.known_pattern() {
        return Ok(known);
    }
    let [limit, each, free] = room(s.k, s.a);
    let (a, settings) = (s.a, s.settings);
    let (fill, rule) = (settings.fill, settings.level_rule);
    let there = s.k.ilu_pattern(a, fill, rule, limit)?;
    let found = there.unwrap_or_else(|| {
        let point = |threads| block_pattern_on(threads, a);
        s.k.on_host(|threads| iluk_on(threads, &point(threads), fill, rule, limit)).map(Arc::new)
    });
    let found =
        found.map_err(|at| SetupFailure::TooLarge { at, needed: at.entries * each, free })?;
    s.phases.found_pattern(&found);
    Ok(found)
}

/// Most entries of a pattern of the blocks of `a` that the memory has room for, with the bytes of each and
/// those free. An entry costs its index twice (pattern and phase) and the values of its block; the indices are
/// made on the host.
pub(crate) fn room<K: Backend>(k: &K, a: &Csr) -> [usize; 3] {
    let each = 8 * a.block_size() * a.block_size() + 8;
    let free = k.memory_free().min((memory_free() / 8).saturating_mul(each));
    [free / each, each, free]
}

/// Analysis and numeric factorisation on a pattern, solved by the given variant.
pub(super) fn factorise<K: Backend>(
    s: Setup<K>,
    pattern: &Arc<FillPattern>,
    variant: Trisolve,
) -> Result<K::BlockIlu, SetupFailure> {
    let Setup { k, a, settings, phases } = s;
    SetupFailure::check_memory(8 * pattern.numbers(), k.memory_free())?;
    phases.begin(Phase::Analysis);
    let mut ilu = k.ilu_analyse(pattern, variant, settings.factor_precision)?;
    phases.begin(Phase::Numeric);
    k.ilu_factor(&mut ilu, a, settings.shift.fixed()).map_err(SetupFailure::Breakdown)?;
    Ok(ilu)
}
