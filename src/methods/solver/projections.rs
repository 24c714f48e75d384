//! Deflation within conjugate gradients, where rounding matters.
//!
//! E is added up in double precision, and its inverse is that of what was added up. Of a vector v that is
//! projected some `u cond(E) |Z' v|` therefore stays in Z, u being the unit roundoff, and no later step of
//! DEF1 takes that out of a residual. It keeps its size while the residual falls; when it is no longer
//! small beside the residual, directions fill up with vectors of which P A makes nothing but rounding, and
//! (p, P A p) becomes negative (Tang, Nabben, Vuik and Erlangga 2009 on DEF1 and an inexact E). Another
//! projection of the residual takes out of it as much as the first one took out of v.

use crate::compute::krylov::{Projection, System};
use crate::compute::{Coef, Operations, Slot};

/// Part of the residual to which a solve goes on that may stay in the vectors.
const HARMLESS: f64 = 1e-3;

/// Tolerances below this count as this: the rounding of any projection is not to look harmful.
const LEAST_RTOL: f64 = 1e-10;

/// A residual that has fallen to this part since it was projected is projected again.
const FALLEN: f64 = 0.1;

/// A projection that leaves more than this is so far from P that iterations are saved by another one of
/// each `A p`; below they are not, and it would be a fifth of their time.
const INEXACT: f64 = 1e-7;

/// The projections of a solve.
pub(super) struct Projections<'a, K: Operations> {
    deflation: &'a dyn Projection<K>,
    /// Size of what a projection leaves, relative to the largest residual.
    left: f64,
    /// Size of what may be left.
    bound: f64,
    /// Largest residual so far.
    largest: f64,
    /// Iteration from whose end on residuals are projected again, and the largest since one was.
    again: Option<(usize, f64)>,
}

impl<'a, K: Operations> Projections<'a, K> {
    /// Projects the residual `r` of x = 0, whose norm is `norm`, and measures what is left by doing it
    /// again in `work`. Norms go to `slots`, which are consecutive. Also the norm of the new residual.
    pub(super) fn start(
        k: &K,
        deflation: &'a dyn Projection<K>,
        [r, work, change]: [&mut K::Vector; 3],
        (norm, rtol): (f64, f64),
        slots: [Slot; 2],
    ) -> (Self, f64) {
        deflation.project(k, r);
        k.copy(r, work);
        deflation.project(k, work);
        k.copy(work, change);
        k.axpby(Coef::Host(-1.0), r, Coef::ONE, change);
        k.norm(change, slots[0]);
        k.norm(r, slots[1]);
        let mut sizes = [0.0; 2];
        k.read(slots[0], &mut sizes);
        let largest = norm.max(sizes[1]);
        let bound = HARMLESS * rtol.max(LEAST_RTOL) * norm;
        let mut new = Self { deflation, left: sizes[0] / largest, bound, largest, again: None };
        let mut after = sizes[1];
        if new.too_much() {
            k.copy(work, r);
            after = super::norm(k, r, slots[1]);
            new.again = Some((0, after));
        }
        (new, after)
    }

    fn too_much(&self) -> bool {
        self.left * self.largest > self.bound
    }

    fn twice(&self) -> bool {
        self.again.is_some() && self.left > INEXACT
    }

    /// `q = P q`.
    pub(super) fn project(&self, k: &K, q: &mut K::Vector) {
        self.deflation.project(k, q);
        if self.twice() {
            self.deflation.project(k, q);
        }
    }

    /// Looks at the norm of the residual `r` after an iteration; whether it was projected again.
    pub(super) fn watch(&mut self, k: &K, r: &mut K::Vector, norm: f64, iteration: usize) -> bool {
        self.largest = self.largest.max(norm);
        let now = match &mut self.again {
            None => self.too_much(),
            Some((_, largest)) => {
                *largest = largest.max(norm);
                norm < FALLEN * *largest
            }
        };
        if now {
            self.deflation.project(k, r);
            self.again = Some((self.again.map_or(iteration, |(from, _)| from), norm));
        }
        now
    }

    /// `x += Z E^-1 Z' (b - A x)`. Where residuals were projected again this is done again, too, if it makes
    /// the residual smaller: what the first one leaves goes, and each adds the rounding of x.
    pub(super) fn correct(
        &self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        [work, once]: [&mut K::Vector; 2],
        slots: [Slot; 2],
    ) {
        k.residual(s.a, x, s.b, work);
        self.deflation.correct(k, work, x);
        if self.again.is_none() {
            return;
        }
        k.copy(x, once);
        k.residual(s.a, x, s.b, work);
        k.norm(work, slots[0]);
        self.deflation.correct(k, work, x);
        k.residual(s.a, x, s.b, work);
        k.norm(work, slots[1]);
        let mut sizes = [0.0; 2];
        k.read(slots[0], &mut sizes);
        if sizes[1] > sizes[0] {
            k.copy(once, x);
        }
    }

    /// What a reader of the results needs to know.
    pub(super) fn remark(&self) -> Option<String> {
        let (left, from) = (self.left, self.again?.0 + 1);
        let twice = if self.twice() { ", and each A p twice" } else { "" };
        Some(format!(
            "a projection leaves {left:.0e} of a residual in the deflation vectors: from iteration {from} \
             on residuals are projected again when they have fallen{twice}"
        ))
    }
}
