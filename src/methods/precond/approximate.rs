//! What preconditioners made of products have in common.

use super::Setup;
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::compute::{Backend, Bytes};
use crate::methods::precond::scratch::Scratch;

/// A matrix that a preconditioner multiplies by.
pub(super) struct Operator<K: Backend> {
    matrix: K::Matrix,
    entries: usize,
}

impl<K: Backend> Operator<K> {
    /// `a` as the backend multiplies by it.
    ///
    /// # Errors
    /// When it does not fit.
    pub(super) fn new(s: &Setup<K>, a: K::Sparse) -> Result<Self, SetupFailure> {
        let (entries, free) = (s.k.entries(&a), s.k.memory_free());
        let needed = 12 * entries;
        if needed > free {
            return Err(SetupFailure::OutOfMemory { needed, free });
        }
        Ok(Self { matrix: s.k.operator(a)?, entries })
    }

    /// `y = A x`.
    pub(super) fn multiply(&self, k: &K, x: &K::Vector, y: &mut K::Vector) {
        k.spmv(&self.matrix, x, y);
    }

    /// `r = b - A x`.
    pub(super) fn residual(&self, k: &K, x: &K::Vector, b: &K::Vector, r: &mut K::Vector) {
        k.residual(&self.matrix, x, b, r);
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes of a product; a residual moves a vector more, unless it is x.
    pub(super) fn bytes(&self, k: &K) -> Bytes {
        k.matrix_bytes(&self.matrix)
    }
}

/// The sizes of a preconditioner of `entries` numbers.
pub(super) fn size(entries: usize) -> FactorSize {
    FactorSize { factor_entries: Some(entries), ..FactorSize::default() }
}

/// `z = M_n ... M_1 r`, one or two products.
pub(super) struct Chain<K: Backend> {
    first: Operator<K>,
    then: Option<(Operator<K>, Scratch<K, 1>)>,
}

impl<K: Backend> Chain<K> {
    pub(super) fn one(s: &Setup<K>, m: K::Sparse) -> Result<Self, SetupFailure> {
        Ok(Self { first: Operator::new(s, m)?, then: None })
    }

    /// `z = then first r`.
    pub(super) fn two(
        s: &Setup<K>,
        first: K::Sparse,
        then: K::Sparse,
    ) -> Result<Self, SetupFailure> {
        let scratch = Scratch::new(s.k, s.a.rows())?;
        let then = Some((Operator::new(s, then)?, scratch));
        Ok(Self { first: Operator::new(s, first)?, then })
    }
}

impl<K: Backend> Preconditioner<K> for Chain<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let Some((then, scratch)) = &self.then else {
            self.first.multiply(k, r, z);
            return;
        };
        let [y] = &mut *scratch.borrow();
        self.first.multiply(k, r, y);
        then.multiply(k, y, z);
    }

    fn bytes(&self, k: &K) -> Bytes {
        let (first, then) = (self.first.bytes(k), self.then.as_ref().map(|(t, _)| t.bytes(k)));
        let then = then.unwrap_or_default();
        Bytes { held: first.held + then.held, moved: first.moved + then.moved }
    }

    fn size(&self, _: &K) -> FactorSize {
        let then = self.then.as_ref().map_or(0, |(then, _)| then.entries());
        size(self.first.entries() + then)
    }
}
