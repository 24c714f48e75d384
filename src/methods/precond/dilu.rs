//! DILU (Pommerell 1992; Barrett et al. 1994, section 3.4.2.1): `M = (D + L) D^-1 (D + U)` with the triangles of A itself
//! and `d_i = a_ii - sum over j < i of l_ij d_j^-1 u_ji`. Where no three unknowns are all coupled to each other it is
//! block ILU(0).

use std::sync::Arc;

use super::bilu::{self, room};
use super::work::{Phased, device, host};
use super::{Advised, Kept, Method, Phase, Ready, Setup, Variants};
use crate::base::choices::LevelRule;
use crate::base::error::Error;
use crate::base::setting::Setting;
use crate::compute::preconditioner::{FactorSize, Preconditioner, Renewal, SetupFailure};
use crate::compute::{Backend, Bytes, DiluFactors, Eisenstat};
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern_on;
use crate::symbolic::{FillPattern, iluk_on, schedule};

/// Factors on the backend.
struct Dilu<K: Backend> {
    pattern: Arc<FillPattern>,
    factors: Box<dyn DiluFactors<K>>,
}

impl<K: Backend> Preconditioner<K> for Dilu<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.factors.apply(k, r, z);
    }

    fn eisenstat(&self) -> Option<&dyn Eisenstat<K>> {
        self.factors.eisenstat()
    }

    fn refactor(&mut self, k: &K, a: &Arc<Csr>, shift: f64) -> Result<Renewal, SetupFailure> {
        self.factors.factor(k, a, shift)?;
        Ok(Renewal::Done)
    }

    fn bytes(&self, k: &K) -> Bytes {
        self.factors.bytes(k)
    }

    fn numeric_bytes(&self, _: &K) -> usize {
        // indices and the values of A once, the factors once
        self.pattern.bytes() + 2 * 8 * self.pattern.numbers()
    }

    fn size(&self, _: &K) -> FactorSize {
        let pattern = &*self.pattern;
        let [lower, upper] = [schedule::levels_lower(pattern), schedule::levels_upper(pattern)];
        FactorSize {
            factor_blocks: Some(pattern.blocks()),
            factor_entries: Some(pattern.numbers()),
            levels_lower: Some(lower),
            levels_upper: Some(upper),
            rows_per_level: Some(pattern.rows() as f64 / lower.max(1) as f64),
            ..FactorSize::default()
        }
    }
}

pub(crate) const METHOD: Method = Method {
    name: "dilu",
    summary: "block DILU: triangles of A itself; products by A come with its solves",
    uses: &[Setting::BlockSize, Setting::Shift, Setting::Ordering],
    keeps: Kept::Analysis,
    work: Phased {
        symbolic: Some(host("triangles of the pattern of A")),
        analysis: Some(host("order and storage of the solves")),
        numeric: Some(device("diagonal blocks, triangles of A copied")),
    },
    // `bilu` of level 0 is as good where it is tried
    variants: Variants { advised: Advised::Never, ..Variants::PLAIN },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    s.phases.begin(Phase::Symbolic);
    let pattern = Arc::new(pattern(s.k, s.a)?);
    SetupFailure::check_memory(8 * pattern.numbers(), s.k.memory_free())?;
    s.phases.begin(Phase::Analysis);
    let Some(mut factors) = s.k.dilu_analyse(&pattern) else {
        if !s.k.on_host(|_| pattern.changes_diagonals_alone()) {
            let what =
                "a GPU has `dilu` only for graphs without triangles, as of a seven-point stencil";
            return Err(Error::input(what).hint("`bilu` takes any matrix").into());
        }
        // the same factors with triangles of their own
        let way = s.settings.trisolve;
        return Ok(Box::new(bilu::Factors::<K>::of(bilu::factorise(s, &pattern, way)?)));
    };
    s.phases.begin(Phase::Numeric);
    factors.factor(s.k, s.a, s.settings.shift.fixed())?;
    Ok(Box::new(Dilu { pattern, factors }))
}

/// The triangles of A.
fn pattern<K: Backend>(k: &K, a: &Csr) -> Result<FillPattern, SetupFailure> {
    let [limit, each, free] = room(k, a);
    let found = k.on_host(|threads| {
        iluk_on(threads, &block_pattern_on(threads, a), 0, LevelRule::Min, limit)
    });
    found.map_err(|at| SetupFailure::TooLarge { at, needed: at.entries * each, free })
}

/// Whether the backend has it for `a`.
pub(crate) fn is_there<K: Backend>(k: &K, a: &Csr) -> bool {
    pattern(k, a).is_ok_and(|pattern| {
        let pattern = Arc::new(pattern);
        pattern.changes_diagonals_alone() || k.dilu_analyse(&pattern).is_some()
    })
}
