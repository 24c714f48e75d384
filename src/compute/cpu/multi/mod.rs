//! Multivectors: products, solves and small dense algebra on n rows of several columns.
//!
//! Kernels work on strips of 8, 4, 2 or 1 columns, which a register holds: up to eight columns cost one pass over the
//! matrix and the factors. Each column has the operations of a single vector, in their order.

mod dense;
mod factors;
mod joined;
mod lanes;
mod rows;
mod runs;
mod solves;

use super::{BlockIlu, Cpu, Matrix};
use crate::base::memory::Buffer;
use crate::compute::Platform as _;
use crate::compute::multivectors::{Multivectors, Own, Step};
pub(super) use rows::product;

/// Threads up to which one alone is faster with passes that are joined than all are with one operation after the other:
/// two take 1.2 times as long (`docs/notes/several-rhs.md`).
const JOINING: usize = 2;

impl Multivectors<Self> for Cpu {
    fn passes(&self, columns: usize) -> usize {
        lanes::strips(columns).count()
    }

    fn product(
        &self,
        a: &Matrix,
        columns: usize,
        x: &Buffer<f64>,
        b: Option<&Buffer<f64>>,
        y: &mut Buffer<f64>,
    ) {
        let b = b.map(|b| &**b);
        self.on(a.stored(), |parallel| a.multiproduct(columns, x, b, y, parallel));
    }

    fn solve(&self, ilu: &BlockIlu, columns: usize, r: &Buffer<f64>, z: &mut Buffer<f64>) {
        assert!(ilu.renumbered.is_none(), "factors in the order of the vectors");
        let pace = ilu.plan.as_ref().map(|plan| &plan.solving);
        self.paced(
            ilu.pattern.numbers(),
            pace,
            |all| all.solves += 1,
            |alone| solves::apply(ilu, columns, r, z, alone),
        );
    }

    fn grams(&self, columns: usize, basis: &[&Buffer<f64>], w: &Buffer<f64>, out: &mut [f64]) {
        let basis = slices(basis);
        self.on(w.len(), |parallel| dense::grams(columns, &basis, w, parallel, out));
    }

    fn update(
        &self,
        columns: usize,
        own: Own,
        basis: &[&Buffer<f64>],
        coef: &[f64],
        w: &mut Buffer<f64>,
    ) {
        let basis = slices(basis);
        self.on(w.len(), |parallel| dense::update(columns, own, &basis, coef, w, parallel));
    }

    fn joins_on_one(&self) -> bool {
        (2..=JOINING).contains(&self.threads())
    }

    fn directions(
        &self,
        a: &Matrix,
        columns: usize,
        step: Step,
        [x, p, z]: [&mut Buffer<f64>; 3],
        gram: &mut [f64],
    ) {
        if let (true, Some(a)) = (self.threads() <= JOINING, a.by_rows()) {
            return self.pooled(|| joined::directions(a, columns, &step, [x, p, z], gram));
        }
        if let Some(add) = step.add {
            self.update(columns, Own::Kept, &[p], add, x);
        }
        self.update(columns, step.own, &[z], step.coef, p);
        self.product(a, columns, p, None, z);
        self.grams(columns, &[p], z, gram);
    }

    fn residuals(
        &self,
        ilu: &BlockIlu,
        columns: usize,
        (own, coef): (Own, &[f64]),
        [w, q]: [&mut Buffer<f64>; 2],
        grams: &mut [f64],
    ) {
        if self.threads() <= JOINING && ilu.renumbered.is_none() && solves::have_strips(ilu) {
            return self.pooled(|| joined::residuals(ilu, columns, (own, coef), [w, q], grams));
        }
        self.update(columns, own, &[q], coef, w);
        self.solve(ilu, columns, w, q);
        self.grams(columns, &[q, w], w, grams);
    }

    fn column(&self, columns: usize, j: usize, from: &Buffer<f64>, to: &mut Buffer<f64>) {
        gather(columns, j, from, to);
    }

    fn set_column(&self, columns: usize, j: usize, from: &Buffer<f64>, to: &mut Buffer<f64>) {
        scatter(columns, j, from, to);
    }
}

fn slices<'a>(basis: &[&'a Buffer<f64>]) -> Vec<&'a [f64]> {
    basis.iter().map(|v| &***v).collect()
}

/// Copies column j.
pub(super) fn gather(columns: usize, j: usize, from: &[f64], to: &mut [f64]) {
    let from = from.iter().skip(j).step_by(columns);
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Sets column j.
fn scatter(columns: usize, j: usize, from: &[f64], to: &mut [f64]) {
    let to = to.iter_mut().skip(j).step_by(columns);
    to.zip(from).for_each(|(to, from)| *to = *from);
}

#[cfg(test)]
mod tests;
