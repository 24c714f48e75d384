//! The inverse of the diagonal blocks, for vectors.

use crate::compute::{Backend, FactorInfo};
use std::sync::Arc;

use super::Setup;
use crate::base::choices::FactorPrecision;
use crate::compute::Trisolve;
use crate::compute::preconditioner::Failure;
use crate::symbolic::FillPattern;

/// `D^-1` on the backend, for vectors.
pub(super) struct Diagonal<K: Backend>(K::BlockIlu);

impl<K: Backend> Diagonal<K> {
    pub(super) fn new(s: &Setup<K>) -> Result<Self, Failure> {
        let b = s.settings.block_size;
        let pattern = Arc::new(FillPattern::diagonal(s.a.rows() / b));
        let mut ilu = s.k.ilu_analyse(&pattern, b, Trisolve::AUTO, FactorPrecision::Float64)?;
        s.k.ilu_factor(&mut ilu, s.a, 0.0)?;
        Ok(Self(ilu))
    }

    /// `z = D^-1 r`.
    pub(super) fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        k.ilu_apply(&self.0, r, z);
    }

    /// Bytes held, and moved at least: diagonal, r and z.
    pub(super) fn bytes(&self, _: &K) -> crate::compute::Bytes {
        let n = self.0.pattern().rows() * self.0.block_size();
        let numbers = 8 * n * self.0.block_size();
        crate::compute::Bytes { held: numbers, moved: numbers + 16 * n }
    }
}
