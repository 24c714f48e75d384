//! What an execution of FGBILU does (Luo et al. 2015).

use super::{Backend, Breakdown, Bytes};
use crate::matrix::Csr;

/// FGBILU `M = (D + E) D^-1 (D + F)` of a matrix on a structured grid, where E and F are its strictly
/// lower and upper blocks (Luo et al. 2015, section 2). With unknowns and names of the paper:
///
/// ```text
/// d   = delta - alpha d(k-1)^-1 eta(k-1) - beta d(j-1)^-1 zeta(j-1) - gamma d(i-1)^-1 epsilon(i-1)
/// y   = d^-1 (b - alpha y(k-1) - beta y(j-1) - gamma y(i-1))
/// x   = y - d^-1 (epsilon x(i+1) + zeta x(j+1) + eta x(k+1))
/// ```
///
/// Equation 1 is printed without the shifts of eta, zeta and epsilon; Algorithms 4 and 9 have them. It
/// is block ILU(0), whose factors are `L = (D + E) D^-1` and `U' = D^-1 (D + F)`.
pub trait GridFactors<K: Backend + ?Sized> {
    /// The diagonal blocks d of `a`, inverted in place by Gauss-Jordan elimination without exchanges of
    /// rows (Algorithm 5). A pivot counts as zero when it is a few roundings beside the largest entry of
    /// its row in delta. `shift` as in [`Factors::ilu_factor`](crate::compute::Factors::ilu_factor).
    ///
    /// # Errors
    /// The first point whose block has no pivot.
    fn factor(&mut self, k: &K, a: &Csr, shift: f64) -> Result<(), Breakdown>;

    /// Seconds of the last factorisation on the device alone; `None` where
    /// [`factor`](Self::factor) does nothing else.
    fn factor_seconds(&self, _k: &K) -> Option<f64> {
        None
    }

    /// `z = M^-1 r`: both sweeps.
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector);

    /// `r = b - A x` with the blocks of A that are held here, where the execution has a residual of its
    /// own (Algorithm 7); `false` where it has none, and then nothing is done.
    fn residual(&self, _k: &K, _x: &K::Vector, _b: &K::Vector, _r: &mut K::Vector) -> bool {
        false
    }

    /// Bytes held, and moved by one application at least.
    fn bytes(&self, k: &K) -> Bytes;
}
