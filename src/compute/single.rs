//! A backend whose vectors and matrices are in float32, beside one in float64.

use super::Operations;
use super::preconditioner::Preconditioner;
use crate::base::error::Result;

/// Vectors and products in float32 where `K` has them in float64. Sums and scalars are in float64.
pub trait Single<K: Operations>: Operations + Sized + 'static {
    /// `a` with its entries in float32, where there are products with such.
    fn narrowed(&self, a: &K::Matrix) -> Option<Self::Matrix>;
    /// `to = factor * from`, rounded.
    fn narrow(&self, from: &K::Vector, factor: f64, to: &mut Self::Vector);
    /// `to = factor * from`.
    fn widen(&self, from: &Self::Vector, factor: f64, to: &mut K::Vector);
}

/// Code that runs on the backend in float32 that belongs to `K`.
pub trait SingleVisitor<K: Operations> {
    /// What it yields.
    type Output;
    /// Runs on `low`, which shares threads with `k` and nothing else.
    ///
    /// # Errors
    /// Its own.
    fn visit<L: Single<K>>(self, k: &K, low: L) -> Result<Self::Output>;
}

/// A preconditioner in float64 applied to vectors in float32.
pub struct Rounded<'a, K: Operations> {
    /// Its backend.
    pub k: &'a K,
    /// The preconditioner.
    pub m: &'a dyn Preconditioner<K>,
    /// Two vectors for its work.
    pub work: &'a std::cell::RefCell<[K::Vector; 2]>,
}

impl<K: Operations, L: Single<K>> Preconditioner<L> for Rounded<'_, K> {
    fn apply(&self, low: &L, r: &L::Vector, z: &mut L::Vector) {
        let [wide_r, wide_z] = &mut *self.work.borrow_mut();
        low.widen(r, 1.0, wide_r);
        self.m.apply(self.k, wide_r, wide_z);
        low.narrow(wide_z, 1.0, z);
    }
}
