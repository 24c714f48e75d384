//! What preconditioners made of products have in common.

use std::sync::Arc;

use crate::base::error::Result;
use crate::compute::preconditioner::{FactorSize, Preconditioner, Renewal, SetupFailure};
use crate::compute::{Backend, Bytes, Operations};
use crate::matrix::Csr;
use crate::methods::precond::scratch::Scratch;
use crate::symbolic::FillPattern;

/// A matrix that a preconditioner multiplies by.
pub(crate) struct Operator<K: Operations> {
    matrix: K::Matrix,
    /// Those of all ranks.
    entries: usize,
}

impl<K: Backend> Operator<K> {
    /// `a` as the backend multiplies by it.
    ///
    /// # Errors
    /// When it does not fit.
    pub(super) fn new(k: &K, a: K::Sparse) -> Result<Self, SetupFailure> {
        let entries = k.entries(&a);
        SetupFailure::check_memory(12 * entries, k.memory_free())?;
        Ok(Self { matrix: k.operator(a)?, entries })
    }
}

impl<K: Operations> Operator<K> {
    /// A stored matrix with so many entries on all ranks.
    pub(crate) fn of(matrix: K::Matrix, entries: usize) -> Self {
        Self { matrix, entries }
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
pub(super) struct Chain<K: Operations> {
    first: Operator<K>,
    then: Option<(Operator<K>, Scratch<K, 1>)>,
    /// Pattern of the factors of which it was made, if any.
    pattern: Option<Arc<FillPattern>>,
}

impl<K: Operations> Chain<K> {
    /// `z = then first r` for vectors of n unknowns, or `z = first r`.
    ///
    /// # Errors
    /// When there is too little memory.
    pub(super) fn new(
        k: &K,
        n: usize,
        first: Operator<K>,
        then: Option<Operator<K>>,
    ) -> Result<Self> {
        let with_scratch = |then| Ok((then, Scratch::new(k, n)?));
        Ok(Self { first, then: then.map(with_scratch).transpose()?, pattern: None })
    }

    /// The same, made of factors on `pattern`.
    pub(super) fn on(self, pattern: Arc<FillPattern>) -> Self {
        Self { pattern: Some(pattern), ..self }
    }
}

impl<K: Operations> Preconditioner<K> for Chain<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let Some((then, scratch)) = &self.then else {
            self.first.multiply(k, r, z);
            return;
        };
        let [y] = &mut *scratch.borrow();
        self.first.multiply(k, r, y);
        then.multiply(k, y, z);
    }

    fn refactor(&mut self, _: &K, _: &Arc<Csr>, _: f64) -> Result<Renewal, SetupFailure> {
        Ok(Renewal::Setup(self.pattern.clone()))
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
