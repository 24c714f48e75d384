//! Chebyshev iteration on `D^-1 A` (Saad, 2nd edition, algorithm 12.1).

use super::approximate::Operator;
use super::scratch::Scratch;
use crate::base::error::Result;
use crate::compute::{Bytes, Coef, Operations};

/// Steps `x += p(D^-1 A) (c - D^-1 A x)` for `c = D^-1 b`, with the polynomial that is least on an interval.
pub(super) struct Polynomial<K: Operations> {
    /// `D^-1 A`.
    scaled: Operator<K>,
    degree: usize,
    /// Middle and half width of the interval of eigenvalues.
    theta: f64,
    delta: f64,
    /// Those of all ranks.
    unknowns: usize,
    /// The residual and the step.
    scratch: Scratch<K, 2>,
}

impl<K: Operations> Polynomial<K> {
    /// Of `degree` products with `D^-1 A`, for eigenvalues between two positive numbers.
    ///
    /// # Errors
    /// When there is too little memory.
    pub(super) fn new(
        k: &K,
        scaled: Operator<K>,
        n: usize,
        degree: usize,
        [smallest, largest]: [f64; 2],
    ) -> Result<Self> {
        Ok(Self {
            scaled,
            degree,
            theta: f64::midpoint(smallest, largest),
            delta: (largest - smallest) / 2.0,
            unknowns: k.extent(n)[1],
            scratch: Scratch::new(k, n)?,
        })
    }

    /// `x = p(D^-1 A) c`: from zero, which needs a product less than the degree of its error.
    pub(super) fn start(&self, k: &K, c: &K::Vector, x: &mut K::Vector) {
        let [residual, step] = &mut *self.scratch.borrow();
        k.axpby(Coef::Host(1.0 / self.theta), c, Coef::ZERO, step);
        k.copy(step, x);
        self.go_on(k, c, x, [residual, step]);
    }

    /// `x += p(D^-1 A) (c - D^-1 A x)`.
    pub(super) fn improve(&self, k: &K, c: &K::Vector, x: &mut K::Vector) {
        let [residual, step] = &mut *self.scratch.borrow();
        self.scaled.residual(k, x, c, residual);
        k.axpby(Coef::Host(1.0 / self.theta), residual, Coef::ZERO, step);
        k.axpby(Coef::ONE, step, Coef::ONE, x);
        self.go_on(k, c, x, [residual, step]);
    }

    /// The steps behind the first.
    fn go_on(
        &self,
        k: &K,
        c: &K::Vector,
        x: &mut K::Vector,
        [residual, step]: [&mut K::Vector; 2],
    ) {
        let Self { theta, delta, .. } = *self;
        let sigma = theta / delta;
        let mut rho = 1.0 / sigma;
        for _ in 0..self.degree {
            self.scaled.residual(k, x, c, residual);
            let next = 1.0 / (2.0 * sigma - rho);
            // step = next rho step + 2 next / delta residual; x += step
            k.axpby(Coef::Host(2.0 * next / delta), residual, Coef::Host(next * rho), step);
            k.axpby(Coef::ONE, step, Coef::ONE, x);
            rho = next;
        }
    }

    /// `r = c - D^-1 A x`.
    pub(super) fn residual(&self, k: &K, x: &K::Vector, c: &K::Vector, r: &mut K::Vector) {
        self.scaled.residual(k, x, c, r);
    }

    pub(super) fn entries(&self) -> usize {
        self.scaled.entries()
    }

    /// Bytes held, and moved by a [`start`](Self::start).
    pub(super) fn bytes(&self, k: &K) -> Bytes {
        let a = self.scaled.bytes(k);
        // both updates read two vectors and write one
        let each = self.residual_moved(k) + 48 * self.unknowns;
        Bytes { held: a.held, moved: 32 * self.unknowns + self.degree * each }
    }

    /// Bytes moved by a [`residual`](Self::residual), which reads a vector more than a product.
    pub(super) fn residual_moved(&self, k: &K) -> usize {
        self.scaled.bytes(k).moved + 8 * self.unknowns
    }

    /// Bytes moved by an [`improve`](Self::improve).
    pub(super) fn improve_moved(&self, k: &K) -> usize {
        self.bytes(k).moved + self.residual_moved(k) + 8 * self.unknowns
    }
}
