//! Arnoldi's method with delayed re-orthogonalisation: one reduction a step (Swirydowicz, Langou, Ananthan, Yang
//! and Thomas, Low synchronization Gram-Schmidt and generalized minimal residual algorithms, 2021; Bielich,
//! Langou, Thomas, Swirydowicz, Yamazaki and Boman, Low-synch Gram-Schmidt with delayed reorthogonalization for
//! Krylov solvers, 2022, DCGS2).
//!
//! The last vector u of the basis has had one pass against the others, Q, and no normalisation. The next step
//! multiplies it as it is, `w = A u`, and finds `s = Q' u` and `[Q, u]' w` in one reduction. From these come the
//! final vector `q = (u - Q s) / alpha`, the column of H to which it belongs, and what the first pass against
//! `[Q, q]` leaves of `A q = (w - A Q s) / alpha`, where `A Q = [Q, q] H`.
//!
//! In these papers the residual is known one step late. Here the reduction has `|w|`, too: by Pythagoras the norm of
//! what the pass leaves is known at once up to `u |w|^2 / |left|^2`, u being the rounding unit. Where that is not
//! small enough for the residual to be judged, the second pass is made at once ([`Delayed::step`] says so).

use super::least_squares::LeastSquares;
use crate::compute::scalar::quotient;
use crate::compute::{Coef, Operations, Slot, Step};

/// Norm of what the first pass left of the last vector, before its division; norm of the new vector.
const LEFT: Slot = Slot(1);
const WHOLE: Slot = Slot(2);
/// A norm that nobody reads.
const UNUSED: Slot = Slot(3);
/// Coefficients, those of a second pass first.
const FIRST: usize = 8;

/// Part of the square of a vector's norm that its first pass must leave for the difference of squares to be the
/// rest to five digits, and for the rest to be orthogonal to ten.
const RELIABLE: f64 = 1e-10;

/// What Arnoldi's method knows from step to step.
pub(super) struct Delayed {
    /// Columns of H, column j at `j * stride`.
    h: Vec<f64>,
    stride: usize,
    /// Whether the last vector waits for its second pass, and by what it was divided after the first.
    waits: bool,
    divisor: f64,
    found: Vec<f64>,
}

pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

impl Delayed {
    /// For at most `m` steps.
    pub(super) fn new(m: usize) -> Self {
        let stride = m + 1;
        let h = vec![0.0; stride * m];
        Self { h, stride, waits: false, divisor: 1.0, found: vec![0.0; FIRST + 2 * m] }
    }

    /// Begins with one vector of length one.
    pub(super) fn reset(&mut self) {
        self.waits = false;
    }

    /// Whether the last vector waits for its second pass.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// The second pass of the last of the vectors `v`, and the first one of `w`, which is the operator times it.
    /// Corrects the last column of the small problem. `column` receives the coefficients of the first pass and the
    /// norm that is left; whether these are reliable. `None` where the last vector was nothing but rounding.
    pub(super) fn step<K: Operations>(
        &mut self,
        k: &K,
        v: &mut [K::Vector],
        w: &mut K::Vector,
        column: &mut [f64],
        small: &mut LeastSquares,
    ) -> Option<bool> {
        let j = v.len() - 1;
        let seconds = if self.waits { j } else { 0 };
        let [second, first] = [FIRST, FIRST + seconds].map(|at| Slot(0).plus(at));
        if self.waits {
            k.multi_dot(&v[..j], &v[j], second);
        }
        k.multi_dot(v, w, first);
        k.norm(w, WHOLE);
        let mut found = std::mem::take(&mut self.found);
        let end = FIRST + seconds + j + 1;
        k.read(Slot(0), &mut found[..end]);
        let (scalars, coefficients) = found[..end].split_at_mut(FIRST);
        let (s, t) = coefficients.split_at_mut(seconds);
        let (left, whole) = (scalars[1] / self.divisor, scalars[2]);
        let (mut alpha, mut independent) = (1.0, true);
        if self.waits {
            alpha = (left * left - dot(s, s)).sqrt();
            let last = &mut self.h[(j - 1) * self.stride..][..=j];
            last[..j].iter_mut().zip(&*s).for_each(|(h, s)| *h += s);
            last[j] = alpha;
            independent = small.replace_last(last).is_some();
            let (before, own) = v.split_at_mut(j);
            k.multi_axpy_norm(before, second, &mut own[0], UNUSED);
            k.scale(Coef::Host(quotient(1.0, alpha)), &mut own[0]);
            t[j] = quotient(t[j] - dot(s, t), alpha);
            k.scalars(&[Step::set(first.plus(j), Coef::Host(t[j]))]);
        }
        k.multi_axpy_norm(v, first, w, LEFT);
        if self.waits {
            k.scale(Coef::Host(quotient(1.0, alpha)), w);
        }
        let rest = whole * whole - dot(t, t);
        // (t - H s) / alpha
        let (h, norm) = column.split_at_mut(j + 1);
        h.copy_from_slice(t);
        for (l, s) in s.iter().enumerate() {
            let of_h = &self.h[l * self.stride..][..l + 2];
            h.iter_mut().zip(of_h).for_each(|(t, h)| *t -= s * h);
        }
        for h in h.iter_mut() {
            *h = quotient(*h, alpha);
        }
        norm[0] = quotient(rest.max(0.0).sqrt(), alpha);
        self.found = found;
        self.divisor = alpha;
        independent.then_some(rest > RELIABLE * whole * whole)
    }

    /// Takes the column of step `j`, whose vector waits for its second pass or does not.
    pub(super) fn keep(&mut self, j: usize, column: &[f64], waits: bool) {
        self.h[j * self.stride..][..column.len()].copy_from_slice(column);
        self.waits = waits;
    }
}
