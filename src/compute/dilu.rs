//! Factors whose triangles are those of the matrix itself.

use super::{Backend, Breakdown, Bytes, Vectors};
use crate::matrix::Csr;

/// `M = (D + L) D^-1 (D + U)` of a matrix with the strictly lower and upper blocks L and U.
///
/// DILU of any matrix: `d_i = a_ii - sum over j < i of l_ij d_j^-1 u_ji` (Pommerell 1992; Barrett et al. 1994, section
/// 3.4.2.1), so that M and A have the same diagonal.
///
/// FGBILU is that of a matrix on a structured grid, with E and F for L and U (Luo et al. 2015, section 2). With unknowns and names of the paper:
///
/// ```text
/// d   = delta - alpha d(k-1)^-1 eta(k-1) - beta d(j-1)^-1 zeta(j-1) - gamma d(i-1)^-1 epsilon(i-1)
/// y   = d^-1 (b - alpha y(k-1) - beta y(j-1) - gamma y(i-1))
/// x   = y - d^-1 (epsilon x(i+1) + zeta x(j+1) + eta x(k+1))
/// ```
///
/// Equation 1 is printed without the shifts of eta, zeta and epsilon; Algorithms 4 and 9 have them. It
/// is block ILU(0), whose factors are `L = (D + E) D^-1` and `U' = D^-1 (D + F)`.
pub trait DiluFactors<K: Backend + ?Sized> {
    /// The diagonal blocks d of `a`, inverted in place; those of FGBILU by Gauss-Jordan elimination without exchanges
    /// of rows (Algorithm 5). A pivot counts as zero when it is a few roundings beside the largest entry of
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

    /// Solves that multiply by A on their way, where there are such.
    fn eisenstat(&self) -> Option<&dyn Eisenstat<K>> {
        None
    }

    /// Bytes held, and moved by one application at least.
    fn bytes(&self, k: &K) -> Bytes;
}

/// Solves with `M = (D + L) D^-1 (D + U)` that multiply by A on their way (Eisenstat 1981): a triangle that a solve has
/// read gives its part of a product with what was solved for.
pub trait Eisenstat<K: Vectors + ?Sized> {
    /// `z = M^-1 r` and `az = A z`: the part of U comes from the backward solve.
    fn apply_then_multiply(&self, k: &K, r: &K::Vector, z: &mut K::Vector, az: &mut K::Vector);

    /// `y = (D + L)^-1 r` and `dy = D y`.
    fn forward(&self, k: &K, r: &K::Vector, y: [&mut K::Vector; 2]);

    /// `t = (I + D^-1 U)^-1 p` and `at = A t`, then `y = (D + L)^-1 at` and `dy = D y`: both triangles are read once.
    fn through(&self, k: &K, p: &K::Vector, t: [&mut K::Vector; 2], y: [&mut K::Vector; 2]);
}
