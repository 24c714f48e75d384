//! Factorisations in an order of their own: colours or independent sets first.
//!
//! Each is `P' (L D U')^-1 P` with block ILU factors of a matrix made of `P A P'`, on a pattern whose
//! levels are the sets of the order. That the factors of one matrix on one pattern are unique makes this
//! enough for all of them: what a method calls its factors is what elimination finds in the matrix that
//! agrees with their product on the pattern.

use std::borrow::Cow;
use std::sync::Arc;

use super::bilu::Factors;
use super::{Failure, Form, Phase, Preconditioner, Ready, Setup};
use crate::backend::{Backend, Breakdown, Bytes};
use crate::case::Trisolve;
use crate::matrix::{Csr, Sums};
use crate::measure::memory_free;
use crate::result::record::FactorSize;
use crate::symbolic::{FillPattern, Schedule, Threads, block_pattern, is_symmetric};

/// The matrix in its order that is factored, from A.
type Arrange = Box<dyn Fn(Threads, &Csr) -> Result<Csr, Failure> + Send + Sync>;

/// What is factored, and in which order.
pub(super) struct Plan {
    /// Block row of A of each row of the factors, set by set: rows of a set are not coupled.
    pub(super) sets: Schedule,
    /// Pattern of the factors.
    pub(super) pattern: FillPattern,
    /// What is factored.
    pub(super) arrange: Arrange,
}

/// Factors in an order of their own.
struct Ordered<K: Backend> {
    factors: Factors<K>,
    arrange: Arrange,
}

impl<K: Backend> Preconditioner<K> for Ordered<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.factors.apply(k, r, z);
    }

    fn refactor(&mut self, k: &K, a: &Csr, shift: f64) -> Result<(), Breakdown> {
        match k.on_host(|threads| (self.arrange)(threads, a)) {
            Ok(arranged) => self.factors.refactor(k, &arranged, shift),
            Err(Failure::Breakdown(why)) => Err(why),
            // the same entries were arranged before
            Err(_) => unreachable!("values alone have changed"),
        }
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

    fn size(&self, k: &K, matrix_blocks: usize) -> FactorSize {
        self.factors.size(k, matrix_blocks)
    }
}

/// Factors according to `plan`.
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>, plan: Plan) -> Ready<K> {
    let Setup { k, a, case, phases } = s;
    let (b, pattern) = (case.block_size, Arc::new(plan.pattern));
    let (needed, free) = (8 * pattern.blocks() * b * b, k.memory_free());
    if needed > free {
        return Err(Failure::OutOfMemory { needed, free });
    }
    phases.begin(Phase::Analysis);
    let way = match case.trisolve {
        Trisolve::Auto => k.coloured_trisolve(),
        way => way,
    };
    let precision = case.factor_precision;
    let mut ilu = k.ilu_analyse_in_order(&pattern, &plan.sets, b, way, precision)?;
    phases.begin(Phase::Numeric);
    let arranged = k.on_host(|threads| (plan.arrange)(threads, a))?;
    k.ilu_factor(&mut ilu, &arranged, case.shift)?;
    Ok(Box::new(Ordered { factors: Factors::<K>(ilu), arrange: plan.arrange }))
}

/// Most entries of a pattern of blocks of `b` that the memory has room for, with the bytes of each and
/// those free.
pub(super) fn room<K: Backend>(k: &K, b: usize) -> [usize; 3] {
    let each = 8 * b * b + 8;
    let free = k.memory_free().min((memory_free() / 8).saturating_mul(each));
    [free / each, each, free]
}

/// `a` with zeros where only the place across the diagonal holds an entry.
pub(super) fn with_mirrors(threads: Threads, a: &Csr) -> Result<Cow<'_, Csr>, Failure> {
    if is_symmetric(threads, &block_pattern(a, 1)) {
        return Ok(Cow::Borrowed(a));
    }
    let mirrored = a.transposed();
    let n = a.rows();
    let made = Csr::by_rows(
        threads,
        [n, n],
        || Sums::new(n),
        |sums, i, to| {
            let (columns, values) = a.row(i);
            columns.iter().zip(values).for_each(|(&j, &v)| sums.add(j, v));
            mirrored.row(i).0.iter().for_each(|&j| sums.add(j, 0.0));
            sums.finish(to);
            Ok(())
        },
    );
    made.map(Cow::Owned)
}
