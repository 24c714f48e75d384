//! Vectors of the CPU, in float64 or float32; sums and scalars are in float64.

use super::Cpu;
use super::entry::Entry as _;
use super::vector::{self, Lane};
use crate::base::error::Result;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;
use crate::compute::scalar::{self, Step, quotient};
use crate::compute::{Coef, Slot, Vectors};

/// A backend whose vectors the threads of a [`Cpu`] compute with.
#[allow(private_bounds, reason = "only backends of this module implement it")]
pub trait Host {
    /// A number of a vector.
    type Number: Lane;
    /// The threads, and the scalars.
    fn cpu(&self) -> &Cpu;
}

fn slices<T: Lane>(basis: &[Buffer<T>]) -> Vec<&[T]> {
    basis.iter().map(|v| &**v).collect()
}

impl<H: Host> Vectors for H {
    type Vector = Buffer<H::Number>;

    fn vector(&self, n: usize) -> Result<Buffer<H::Number>> {
        Ok(Buffer::zeros(n))
    }

    fn upload(&self, from: &[f64], to: &mut Buffer<H::Number>) {
        to.iter_mut().zip(from).for_each(|(to, &v)| *to = Lane::of(v));
    }

    fn download(&self, from: &Buffer<H::Number>, to: &mut [f64]) {
        to.iter_mut().zip(&**from).for_each(|(to, v)| *to = v.wide());
    }

    fn fill(&self, x: &mut Buffer<H::Number>, value: f64) {
        x.fill(Lane::of(value));
    }

    fn copy(&self, x: &Buffer<H::Number>, y: &mut Buffer<H::Number>) {
        self.axpby(Coef::ONE, x, Coef::ZERO, y);
    }

    fn axpby(&self, a: Coef, x: &Buffer<H::Number>, b: Coef, y: &mut Buffer<H::Number>) {
        let (a, b) = (self.cpu().value(a), self.cpu().value(b));
        self.cpu().on(y.len(), |parallel| {
            if parallel {
                let segment = |at: usize, y: &mut [H::Number]| {
                    vector::axpby(a, &x[at * vector::SEGMENT..][..y.len()], b, y);
                };
                Threads::Pool.chunks(y, vector::SEGMENT, 1, segment);
            } else {
                vector::axpby(a, x, b, y);
            }
        });
    }

    fn scale(&self, a: Coef, x: &mut Buffer<H::Number>) {
        let a = self.cpu().value(a);
        let segment = |x: &mut [H::Number]| x.iter_mut().for_each(|x| *x = Lane::of(a * x.wide()));
        self.cpu().on(x.len(), |parallel| {
            if parallel {
                Threads::Pool.chunks(x, vector::SEGMENT, 1, |_, x| segment(x));
            } else {
                segment(x);
            }
        });
    }

    fn dot(&self, x: &Buffer<H::Number>, y: &Buffer<H::Number>, out: Slot) {
        self.cpu().set(out, self.cpu().on(x.len(), |parallel| vector::dot(x, y, parallel)));
    }

    fn norm(&self, x: &Buffer<H::Number>, out: Slot) {
        self.cpu().set(out, self.cpu().on(x.len(), |parallel| vector::dot(x, x, parallel)).sqrt());
    }

    fn multi_dot(&self, basis: &[Buffer<H::Number>], w: &Buffer<H::Number>, out: Slot) {
        let first = out.0 as usize;
        let slots = &mut self.cpu().slots.borrow_mut()[first..first + basis.len()];
        self.cpu().on(w.len(), |parallel| vector::multi_dot(&slices(basis), w, parallel, slots));
    }

    fn multi_axpy_norm(
        &self,
        basis: &[Buffer<H::Number>],
        coef: Slot,
        w: &mut Buffer<H::Number>,
        norm_out: Slot,
    ) {
        let first = coef.0 as usize;
        let slots = &mut self.cpu().slots.borrow_mut()[..];
        let coef = slots[first..first + basis.len()].to_vec();
        let norm2 = self
            .cpu()
            .on(w.len(), |parallel| vector::multi_axpy_norm2(&slices(basis), &coef, w, parallel));
        slots[norm_out.0 as usize] = norm2.sqrt();
    }

    fn combine(&self, basis: &[Buffer<H::Number>], coef: &[f64], x: &mut Buffer<H::Number>) {
        self.cpu().on(x.len(), |parallel| vector::combine(&slices(basis), coef, x, parallel));
    }

    fn ratio(&self, out: Slot, num: &[Slot], den: &[Slot]) {
        let product =
            |slots: &[Slot]| slots.iter().map(|&s| self.cpu().value(Coef::Slot(s))).product();
        let (num, den): (f64, f64) = (product(num), product(den));
        self.cpu().set(out, quotient(num, den));
    }

    fn scalars(&self, steps: &[Step]) {
        scalar::evaluate(steps, &mut self.cpu().slots.borrow_mut()[..]);
    }

    fn read(&self, first: Slot, out: &mut [f64]) {
        let first = first.0 as usize;
        out.copy_from_slice(&self.cpu().slots.borrow()[first..first + out.len()]);
    }

    #[cfg(test)]
    fn reads_meanwhile(&self) -> bool {
        self.cpu().meanwhile.borrow().is_some()
    }

    #[cfg(test)]
    fn begin_read(&self, first: Slot, count: usize) {
        let mut begun = vec![0.0; count];
        self.read(first, &mut begun);
        self.cpu().meanwhile.replace(Some(begun));
    }

    #[cfg(test)]
    fn end_read(&self, first: Slot, out: &mut [f64]) {
        self.read(first, out);
        assert_eq!(self.cpu().meanwhile.borrow().as_deref(), Some(&*out), "written meanwhile");
    }
}
