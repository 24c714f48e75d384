//! Vectors over ranks: each holds its own part, and sums are added up over subdomains in their order, so that
//! they do not depend on the number of ranks.

use super::Distributed;
use super::local::Local;
use crate::base::error::Result;
use crate::compute::{Coef, Slot, Step, Vectors};

/// Sums of this rank's subdomains that are not yet added up over all.
pub(super) struct Pending {
    slot: Slot,
    /// Whether the root of the sum is meant.
    root: bool,
    partial: Vec<f64>,
}

impl<K: Local> Distributed<K> {
    fn later(&self, slot: Slot, root: bool, partial: Vec<f64>) {
        self.pending.borrow_mut().push(Pending { slot, root, partial });
    }

    /// Adds up all pending sums over the ranks, in one reduction.
    pub(super) fn reduce(&self) {
        let pending = std::mem::take(&mut *self.pending.borrow_mut());
        if pending.is_empty() {
            return;
        }
        let mut own: Vec<f64> = pending.iter().flat_map(|p| p.partial.iter().copied()).collect();
        own.push(f64::from(u8::from(self.asked.get())));
        let entries = pending.len();
        let counts: Vec<usize> = self.parts_of_ranks().map(|parts| entries * parts + 1).collect();
        let all = self.gathered(&own, &counts);
        let mut sums = vec![0.0; entries];
        let (mut at, mut stop) = (0, false);
        for parts in self.parts_of_ranks() {
            for sum in &mut sums {
                all[at..at + parts].iter().for_each(|partial| *sum += partial);
                at += parts;
            }
            stop |= all[at] > 0.0;
            at += 1;
        }
        self.stopped.set(self.stopped.get() || stop);
        let value = |(p, sum): (&Pending, &f64)| {
            Step::set(p.slot, Coef::Host(if p.root { sum.sqrt() } else { *sum }))
        };
        let steps: Vec<Step> = pending.iter().zip(&sums).map(value).collect();
        steps.chunks(crate::compute::scalar::MOST_STEPS).for_each(|s| self.local.scalars(s));
    }

    /// Adds up pending sums where a coefficient may be one.
    fn need(&self, coefficients: &[Coef]) {
        if coefficients.iter().any(|c| !matches!(c, Coef::Host(_))) {
            self.reduce();
        }
    }

    fn parts(&self) -> usize {
        self.starts.len() - 1
    }
}

impl<K: Local> Vectors for Distributed<K> {
    type Vector = K::Vector;

    fn vector(&self, n: usize) -> Result<K::Vector> {
        self.local.vector(n)
    }

    fn extent(&self, n: usize) -> [usize; 2] {
        let own = self.layout.unknowns(self.communicator.rank());
        debug_assert_eq!(own.len(), n);
        [own.start, self.layout.unknowns(self.layout.ranks() - 1).end]
    }

    fn upload(&self, from: &[f64], to: &mut K::Vector) {
        self.local.upload(from, to);
    }

    fn download(&self, from: &K::Vector, to: &mut [f64]) {
        self.local.download(from, to);
    }

    fn fill(&self, x: &mut K::Vector, value: f64) {
        self.local.fill(x, value);
    }

    fn copy(&self, x: &K::Vector, y: &mut K::Vector) {
        self.local.copy(x, y);
    }

    fn axpby(&self, a: Coef, x: &K::Vector, b: Coef, y: &mut K::Vector) {
        self.need(&[a, b]);
        self.local.axpby(a, x, b, y);
    }

    fn scale(&self, a: Coef, x: &mut K::Vector) {
        self.need(&[a]);
        self.local.scale(a, x);
    }

    fn dot(&self, x: &K::Vector, y: &K::Vector, out: Slot) {
        let mut partial = vec![0.0; self.parts()];
        self.local.partial_dots(x, y, &self.starts, &mut partial);
        self.later(out, false, partial);
    }

    fn norm(&self, x: &K::Vector, out: Slot) {
        let mut partial = vec![0.0; self.parts()];
        self.local.partial_dots(x, x, &self.starts, &mut partial);
        self.later(out, true, partial);
    }

    fn multi_dot(&self, basis: &[K::Vector], w: &K::Vector, out: Slot) {
        let parts = self.parts();
        let mut partial = vec![0.0; parts * basis.len()];
        self.local.partial_multi_dots(basis, w, &self.starts, &mut partial);
        for (j, partial) in partial.chunks(parts).enumerate() {
            self.later(out.plus(j), false, partial.to_vec());
        }
    }

    fn multi_axpy_norm(&self, basis: &[K::Vector], coef: Slot, w: &mut K::Vector, norm_out: Slot) {
        let mut coefficients = vec![0.0; basis.len()];
        self.read(coef, &mut coefficients);
        let mut partial = vec![0.0; self.parts()];
        self.local.partial_multi_axpy(basis, &coefficients, w, &self.starts, &mut partial);
        self.later(norm_out, true, partial);
    }

    fn combine(&self, basis: &[K::Vector], coef: &[f64], x: &mut K::Vector) {
        self.local.combine(basis, coef, x);
    }

    fn ratio(&self, out: Slot, num: &[Slot], den: &[Slot]) {
        self.reduce();
        self.local.ratio(out, num, den);
    }

    fn scalars(&self, steps: &[Step]) {
        self.reduce();
        self.local.scalars(steps);
    }

    fn read(&self, first: Slot, out: &mut [f64]) {
        self.reduce();
        self.local.read(first, out);
    }
}
