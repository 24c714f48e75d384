//! Factorisations in an order of their own: colours or independent sets first.
//!
//! Each is `P' (L D U')^-1 P` with block ILU factors of a matrix made of `P A P'`, on a pattern whose
//! levels are the sets of the order. That the factors of one matrix on one pattern are unique makes this
//! enough for all of them: what a method calls its factors is what elimination finds in the matrix that
//! agrees with their product on the pattern.

use std::sync::Arc;

use super::bilu::Factors;
use super::{Kept, Method, Phase, Ready, Setup};
use crate::base::setting::Setting;
use crate::base::threads::Threads;
use crate::compute::Trisolve;
use crate::compute::preconditioner::{FactorSize, Form, Preconditioner, Renewal, SetupFailure};
use crate::compute::setup::SetupOps;
use crate::compute::{Backend, Bytes};
use crate::matrix::pattern::scalar_pattern;
use crate::matrix::{Csr, Sums};
use crate::symbolic::{FillPattern, Schedule, is_symmetric};

/// What methods with an order of their own have in common.
pub(super) const BASE: Method = Method {
    uses: &[
        Setting::BlockSize,
        Setting::Shift,
        Setting::Ordering,
        Setting::FactorPrecision,
        Setting::Trisolve,
    ],
    keeps: Kept::Analysis,
    own_order: true,
    ..Method::PLAIN
};

/// What is factored, made of `P A P'`.
pub(super) type Change<K> =
    Box<dyn Fn(&K, &<K as SetupOps>::Sparse) -> Result<<K as SetupOps>::Sparse, SetupFailure>>;

/// What is factored, and in which order.
pub(super) struct Plan<K: Backend> {
    /// Block row of A of each row of the factors, set by set: rows of a set are not coupled.
    pub(super) sets: Schedule,
    /// Pattern of the factors.
    pub(super) pattern: FillPattern,
    /// Whether A is to have zeros where only the place across the diagonal holds an entry.
    pub(super) mirrored: bool,
    /// What is made of the matrix in that order, if anything.
    pub(super) change: Option<Change<K>>,
}

/// Factors in an order of their own.
struct Ordered<K: Backend> {
    factors: Factors<K>,
    arrange: Arrange<K>,
}

/// How A becomes what is factored.
struct Arrange<K: Backend> {
    order: Vec<u32>,
    mirrored: bool,
    change: Option<Change<K>>,
}

impl<K: Backend> Arrange<K> {
    fn arranged(&self, k: &K, a: &Csr) -> Result<K::Sparse, SetupFailure> {
        let filled =
            if self.mirrored { k.on_host(|threads| with_mirrors(threads, a))? } else { None };
        let a = k.sparse(filled.as_ref().unwrap_or(a))?;
        let permuted = k.permuted(&a, &self.order)?;
        match &self.change {
            Some(change) => change(k, &permuted),
            None => Ok(permuted),
        }
    }
}

impl<K: Backend> Preconditioner<K> for Ordered<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.factors.apply(k, r, z);
    }

    fn refactor(&mut self, k: &K, a: &Arc<Csr>, shift: f64) -> Result<Renewal, SetupFailure> {
        k.ilu_factor_made(&mut self.factors.ilu, &self.arrange.arranged(k, a)?, shift)?;
        Ok(Renewal::Done)
    }

    fn form(&self) -> Form<'_, K> {
        Form::Other
    }

    fn bytes(&self, k: &K) -> Bytes {
        self.factors.bytes(k)
    }

    fn numeric_bytes(&self, k: &K) -> usize {
        self.factors.numeric_bytes(k)
    }

    fn numeric_kernel_seconds(&self, k: &K) -> Option<f64> {
        self.factors.numeric_kernel_seconds(k)
    }

    fn size(&self, k: &K) -> FactorSize {
        self.factors.size(k)
    }
}

/// Factors according to `plan`.
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>, plan: Plan<K>) -> Ready<K> {
    let Setup { k, a, settings, phases } = s;
    let pattern = Arc::new(plan.pattern);
    SetupFailure::check_memory(8 * pattern.numbers(), k.memory_free())?;
    phases.begin(Phase::Analysis);
    let way = match settings.trisolve {
        Trisolve::AUTO => k.coloured_trisolve(),
        way => way,
    };
    let precision = settings.factor_precision;
    let mut ilu = k.ilu_analyse_in_order(&pattern, &plan.sets, way, precision)?;
    phases.begin(Phase::Numeric);
    let Plan { sets, mirrored, change, .. } = plan;
    let arrange = Arrange { order: sets.rows, mirrored, change };
    k.ilu_factor_made(&mut ilu, &arrange.arranged(k, a)?, settings.shift.fixed())?;
    Ok(Box::new(Ordered { factors: Factors::<K>::of(ilu), arrange }))
}

/// `a` with zeros where only the place across the diagonal holds an entry; `None` where there is none such.
fn with_mirrors(threads: Threads, a: &Csr) -> Result<Option<Csr>, SetupFailure> {
    if is_symmetric(threads, &scalar_pattern(a)) {
        return Ok(None);
    }
    let mirrored = a.transposed();
    let made = a.by_rows_like(
        threads,
        || Sums::new(a.rows()),
        |sums, i, to| {
            sums.add_row(a.row(i), 1.0);
            mirrored.row(i).0.iter().for_each(|&j| sums.add(j, 0.0));
            sums.finish(to);
            Ok(())
        },
    );
    made.map(Some)
}
