//! Deflation within conjugate gradients, where rounding matters.
//!
//! E is added up in double precision, and its inverse is that of what was added up. Of a vector v that is
//! projected some `u cond(E) |Z' v|` therefore stays in Z, u being the unit roundoff. No later step of
//! DEF1 takes that out of a residual. It keeps its size while the residual falls; as soon as it is all
//! that is left, residuals and P A do not belong together any more, and (p, P A p) becomes negative (Tang,
//! Nabben, Vuik and Erlangga 2009 on DEF1 and inexact E). A second projection takes out of what the first
//! one left as much as that took out of v.

use super::System;
use crate::backend::{Backend, Coef, Slot};
use crate::deflation::Deflation;

/// Part of the residual to which a solve goes on that may stay in the vectors.
const HARMLESS: f64 = 0.01;

/// Tolerances below this count as this: rounding of one projection is not to look harmful by itself.
const LEAST_RTOL: f64 = 1e-10;

/// The projections of a solve: one at a time, or two where one leaves too much.
pub(super) struct Projections<'a, K: Backend> {
    deflation: &'a Deflation<K>,
    /// Size of what one projection leaves, relative to the largest residual.
    left: f64,
    /// Size of what may be left.
    bound: f64,
    /// Largest residual so far.
    largest: f64,
    /// Iteration from whose end on there are two.
    two_from: Option<usize>,
}

impl<'a, K: Backend> Projections<'a, K> {
    /// Projects the residual `r` of x = 0, whose norm is `norm`, and measures what is left by doing it
    /// again in `work`; the norms go to `slots`, which are consecutive.
    pub(super) fn start(
        k: &K,
        deflation: &'a Deflation<K>,
        [r, again, change]: [&mut K::Vector; 3],
        (norm, rtol): (f64, f64),
        slots: [Slot; 2],
    ) -> Self {
        deflation.project(k, r);
        k.copy(r, again);
        deflation.project(k, again);
        k.copy(again, change);
        k.axpby(Coef::Host(-1.0), r, Coef::ONE, change);
        k.norm(change, slots[0]);
        k.norm(r, slots[1]);
        let mut sizes = [0.0; 2];
        k.read(slots[0], &mut sizes);
        let largest = norm.max(sizes[1]);
        let bound = HARMLESS * rtol.max(LEAST_RTOL) * norm;
        let left = sizes[0] / largest;
        let mut new = Self { deflation, left, bound, largest, two_from: None };
        if new.too_much() {
            k.copy(again, r);
            new.two_from = Some(0);
        }
        new
    }

    fn too_much(&self) -> bool {
        self.left * self.largest > self.bound
    }

    /// `q = P q`.
    pub(super) fn project(&self, k: &K, q: &mut K::Vector) {
        self.deflation.project(k, q);
        if self.two_from.is_some() {
            self.deflation.project(k, q);
        }
    }

    /// Looks at the norm of the residual `r` after an iteration. What is left grows with it.
    pub(super) fn watch(&mut self, k: &K, r: &mut K::Vector, norm: f64, iteration: usize) {
        self.largest = self.largest.max(norm);
        if self.two_from.is_none() && self.too_much() {
            self.deflation.project(k, r);
            self.two_from = Some(iteration);
        }
    }

    /// `x += Z E^-1 Z' (b - A x)`, with the residual in `work`.
    pub(super) fn correct(&self, k: &K, s: &System<K>, x: &mut K::Vector, work: &mut K::Vector) {
        for _ in 0..=usize::from(self.two_from.is_some()) {
            k.residual(s.a, x, s.b, work);
            self.deflation.correct(k, work, x);
        }
    }

    /// What a reader of the results needs to know.
    pub(super) fn remark(&self) -> Option<String> {
        self.two_from.map(|from| {
            format!(
                "E is nearly singular: one projection leaves {:.0e} of a residual in the deflation \
                 vectors; two from iteration {} on",
                self.left,
                from + 1
            )
        })
    }
}
