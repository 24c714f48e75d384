//! Dense vectors and scalars that stay where they are computed.

use super::scalar::Step;
use super::{Coef, Slot};
use crate::base::error::Result;

/// Vectors of the padded length and the operations of Krylov methods on them. Operations may be
/// asynchronous; [`read`](Vectors::read) and [`download`](Vectors::download) wait.
pub trait Vectors {
    /// A dense vector.
    type Vector;
    /// A vector of `n` zeros.
    fn vector(&self, n: usize) -> Result<Self::Vector>;
    /// Of vectors with `n` unknowns here: how many other ranks hold before these, and how many there are in all.
    fn extent(&self, n: usize) -> [usize; 2] {
        [0, n]
    }
    /// Copies from the host.
    fn upload(&self, from: &[f64], to: &mut Self::Vector);
    /// Copies to the host; waits.
    fn download(&self, from: &Self::Vector, to: &mut [f64]);
    /// Sets every entry.
    fn fill(&self, x: &mut Self::Vector, value: f64);
    /// `y = x`.
    fn copy(&self, x: &Self::Vector, y: &mut Self::Vector);
    /// `y = a x + b y`.
    fn axpby(&self, a: Coef, x: &Self::Vector, b: Coef, y: &mut Self::Vector);
    /// `x = a x`.
    fn scale(&self, a: Coef, x: &mut Self::Vector);
    /// `out = x . y`.
    fn dot(&self, x: &Self::Vector, y: &Self::Vector, out: Slot);
    /// `out = |x|`.
    fn norm(&self, x: &Self::Vector, out: Slot);
    /// `out[j] = basis[j] . w` in one pass over the basis.
    fn multi_dot(&self, basis: &[Self::Vector], w: &Self::Vector, out: Slot);
    /// `w -= sum_j coef[j] basis[j]` in one pass over the basis; `norm_out = |w|`.
    fn multi_axpy_norm(
        &self,
        basis: &[Self::Vector],
        coef: Slot,
        w: &mut Self::Vector,
        norm_out: Slot,
    );
    /// Says that all sums so far will be needed, and that other work comes first: over ranks they are added up
    /// meanwhile.
    fn begin_reduction(&self) {}
    /// `x = sum_j coef[j] basis[j]`.
    fn combine(&self, basis: &[Self::Vector], coef: &[f64], x: &mut Self::Vector);
    /// `out = product of num / product of den`; zero when the denominator is zero.
    fn ratio(&self, out: Slot, num: &[Slot], den: &[Slot]);
    /// Does at most [`MOST_STEPS`](super::scalar::MOST_STEPS) steps of arithmetic with slots, in their order.
    fn scalars(&self, steps: &[Step]);
    /// Reads slots `first..first + out.len()` to the host; waits.
    fn read(&self, first: Slot, out: &mut [f64]);
    /// Whether operations between [`begin_read`](Self::begin_read) and [`end_read`](Self::end_read) are under way while
    /// the host waits for its scalars.
    fn reads_meanwhile(&self) -> bool {
        false
    }
    /// Begins to read `count` slots from `first` on, which the operations up to [`end_read`](Self::end_read) leave as
    /// they are; one read at a time.
    fn begin_read(&self, _first: Slot, _count: usize) {}
    /// Slots `first..first + out.len()`, whose reading was begun; waits for them.
    fn end_read(&self, first: Slot, out: &mut [f64]) {
        self.read(first, out);
    }
}
