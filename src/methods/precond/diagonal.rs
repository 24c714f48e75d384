//! The inverse of the diagonal blocks, for vectors.

use std::sync::Arc;

use crate::base::choices::FactorPrecision;
use crate::compute::preconditioner::{Preconditioner, SetupFailure};
use crate::compute::{Backend, Bytes, FactorInfo, Trisolve};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

/// `D^-1` on the backend, for vectors.
pub(super) struct Diagonal<K: Backend>(K::BlockIlu);

impl<K: Backend> Diagonal<K> {
    pub(super) fn new(k: &K, a: &Csr) -> Result<Self, SetupFailure> {
        let pattern = Arc::new(FillPattern::diagonal_of(a));
        let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, FactorPrecision::Float64)?;
        k.ilu_factor(&mut ilu, a, 0.0)?;
        Ok(Self(ilu))
    }
}

impl<K: Backend> Preconditioner<K> for Diagonal<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        k.ilu_apply(&self.0, r, z);
    }

    /// Bytes held, and moved at least: diagonal, r and z.
    fn bytes(&self, _: &K) -> Bytes {
        let pattern = self.0.pattern();
        let (numbers, n) = (8 * pattern.numbers(), pattern.rows() * pattern.block_size());
        Bytes { held: numbers, moved: numbers + 16 * n }
    }
}
