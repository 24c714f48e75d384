//! The inverse of the diagonal blocks, for vectors.

use crate::compute::{Backend, FactorInfo};
use std::sync::Arc;

use super::Setup;
use crate::base::choices::FactorPrecision;
use crate::compute::Trisolve;
use crate::compute::preconditioner::SetupFailure;
use crate::symbolic::FillPattern;

/// `D^-1` on the backend, for vectors.
pub(super) struct Diagonal<K: Backend>(K::BlockIlu);

impl<K: Backend> Diagonal<K> {
    pub(super) fn new(s: &Setup<K>) -> Result<Self, SetupFailure> {
        let pattern = Arc::new(FillPattern::diagonal_of(s.a));
        let mut ilu = s.k.ilu_analyse(&pattern, Trisolve::AUTO, FactorPrecision::Float64)?;
        s.k.ilu_factor(&mut ilu, s.a, 0.0)?;
        Ok(Self(ilu))
    }

    /// `z = D^-1 r`.
    pub(super) fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        k.ilu_apply(&self.0, r, z);
    }

    /// Bytes held, and moved at least: diagonal, r and z.
    pub(super) fn bytes(&self, _: &K) -> crate::compute::Bytes {
        let pattern = self.0.pattern();
        let (numbers, n) = (8 * pattern.numbers(), pattern.rows() * pattern.block_size());
        crate::compute::Bytes { held: numbers, moved: numbers + 16 * n }
    }
}
