//! Multivectors: products, solves and small dense algebra on n rows of several columns.
//!
//! Kernels work on strips of 8, 4, 2 or 1 columns, which a register holds: up to eight columns cost one pass over the
//! matrix and the factors. Each column has the operations of a single vector, in their order.

mod energy;
mod factors;
mod grams;
mod joined;
mod lanes;
mod rows;
mod runs;
mod solves;
mod updates;

use super::{BlockIlu, Cpu, Matrix};
use crate::base::memory::Buffer;
use crate::compute::Platform as _;
use crate::compute::multivectors::{Multivectors, Own, Step};
use grams::Kind;
pub(super) use rows::product;

/// Threads up to which one alone is faster with passes that are joined than all are with one operation after the other:
/// two take 1.2 times as long (`docs/notes/several-rhs.md`).
const JOINING: usize = 2;

impl Multivectors<Self> for Cpu {
    fn width(&self, columns: usize) -> usize {
        // one strip in place of several
        if columns < 8 { columns.next_power_of_two() } else { columns }
    }

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
        self.solve_then(ilu, columns, (r, z), &mut |_, _| {});
    }

    fn grams(&self, columns: usize, basis: &[&Buffer<f64>], w: &Buffer<f64>, out: &mut [f64]) {
        let basis = slices(basis);
        self.on(w.len(), |parallel| grams::grams(columns, Kind::Any, &basis, w, parallel, out));
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
        self.on(w.len(), |parallel| updates::update(columns, own, &basis, coef, w, parallel));
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
        self.symmetric_gram(columns, p, z, gram);
    }

    fn residuals(
        &self,
        (ilu, symmetric): (&BlockIlu, bool),
        columns: usize,
        (own, coef): (Own, &[f64]),
        [w, q]: [&mut Buffer<f64>; 2],
        grams: &mut [f64],
    ) {
        let factors = (ilu, symmetric);
        if self.threads() <= JOINING && ilu.renumbered.is_none() && solves::have_strips(ilu) {
            return self.pooled(|| joined::residuals(factors, columns, (own, coef), [w, q], grams));
        }
        self.update(columns, own, &[q], coef, w);
        if !(symmetric && solves::have_strips(ilu)) {
            self.solve(ilu, columns, w, q);
            return self.grams(columns, &[q, w], w, grams);
        }
        let (of_q, of_w) = grams.split_at_mut(columns * columns);
        self.symmetric_gram(columns, w, w, of_w);
        self.solve_then(ilu, columns, (w, q), &mut |y, parallel| {
            energy::gram(ilu, columns, y, parallel, of_q);
        });
    }

    fn column(&self, columns: usize, j: usize, from: &Buffer<f64>, to: &mut Buffer<f64>) {
        gather(columns, j, from, to);
    }

    fn set_column(&self, columns: usize, j: usize, from: &Buffer<f64>, to: &mut Buffer<f64>) {
        scatter(columns, j, from, to);
    }
}

impl Cpu {
    /// `out = X' W`, which is symmetric.
    fn symmetric_gram(&self, columns: usize, x: &[f64], w: &[f64], out: &mut [f64]) {
        let kind = Kind::Symmetric;
        self.on(w.len(), |parallel| grams::grams(columns, kind, &[x], w, parallel, out));
    }

    /// `Z = (L D U')^-1 R`; `half` is called with `L^-1 R`, and whether it may use all threads, between both solves,
    /// where factors are solved with by strips.
    fn solve_then(
        &self,
        ilu: &BlockIlu,
        columns: usize,
        (r, z): (&[f64], &mut [f64]),
        half: &mut (dyn FnMut(&[f64], bool) + Send),
    ) {
        assert!(ilu.renumbered.is_none(), "factors in the order of the vectors");
        let pace = ilu.plan.as_ref().map(|plan| &plan.solving);
        self.paced(
            ilu.pattern.numbers(),
            pace,
            |all| all.solves += 1,
            |alone| solves::apply(ilu, columns, r, z, alone, half),
        );
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
