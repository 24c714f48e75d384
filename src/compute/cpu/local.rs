//! The CPU as the device of a rank.

use std::ops::Range;

use super::ilu::BlockIlu;
use super::{Cpu, trsv, vector};
use crate::base::memory::Buffer;
use crate::compute::Breakdown;
use crate::compute::distributed::{Coupling, FactorBlocks, Local};
use crate::matrix::Csr;

impl Local for Cpu {
    fn partial_dots(&self, x: &Buffer<f64>, y: &Buffer<f64>, starts: &[usize], out: &mut [f64]) {
        for (range, out) in ranges(starts).zip(out) {
            let (x, y) = (&x[range.clone()], &y[range]);
            *out = self.on(x.len(), |parallel| vector::dot(x, y, parallel));
        }
    }

    fn partial_multi_dots(
        &self,
        basis: &[Buffer<f64>],
        w: &Buffer<f64>,
        starts: &[usize],
        out: &mut [f64],
    ) {
        let parts = starts.len() - 1;
        let mut sums = vec![0.0; basis.len()];
        for (s, range) in ranges(starts).enumerate() {
            let of: Vec<&[f64]> = basis.iter().map(|v| &v[range.clone()]).collect();
            let w = &w[range];
            self.on(w.len(), |parallel| vector::multi_dot(&of, w, parallel, &mut sums));
            sums.iter().enumerate().for_each(|(j, sum)| out[j * parts + s] = *sum);
        }
    }

    fn partial_multi_axpy(
        &self,
        basis: &[Buffer<f64>],
        coef: &[f64],
        w: &mut Buffer<f64>,
        starts: &[usize],
        out: &mut [f64],
    ) {
        for (range, out) in ranges(starts).zip(out) {
            let of: Vec<&[f64]> = basis.iter().map(|v| &v[range.clone()]).collect();
            let w = &mut w[range];
            *out = self.on(w.len(), |parallel| vector::multi_axpy_norm2(&of, coef, w, parallel));
        }
    }

    fn gather(&self, x: &Buffer<f64>, places: &[u32], out: &mut [f64]) {
        for (to, &at) in out.iter_mut().zip(places) {
            *to = x[at as usize];
        }
    }

    fn add_coupling(&self, c: &Coupling, sign: f64, ghosts: &[f64], y: &mut Buffer<f64>) {
        for (i, &row) in c.rows.iter().enumerate() {
            let entries = c.row_ptr[i] as usize..c.row_ptr[i + 1] as usize;
            let terms = c.columns[entries.clone()].iter().zip(&c.values[entries]);
            let sum: f64 = terms.map(|(&j, v)| v * ghosts[j as usize]).sum();
            y[row as usize] += sign * sum;
        }
    }

    fn extend(&self, from: &Buffer<f64>, ghosts: &[f64], places: &[u32], to: &mut Buffer<f64>) {
        for (to, &at) in to.iter_mut().zip(places) {
            let at = at as usize;
            *to = if at < from.len() { from[at] } else { ghosts[at - from.len()] };
        }
    }

    fn restrict(&self, from: &Buffer<f64>, places: &[u32], first: usize, to: &mut Buffer<f64>) {
        for (to, &at) in to[first..].iter_mut().zip(places) {
            *to = from[at as usize];
        }
    }

    fn scatter(&self, values: &[f64], places: &[u32], to: &mut Buffer<f64>) {
        for (&value, &at) in values.iter().zip(places) {
            to[at as usize] = value;
        }
    }

    fn copy_range(&self, from: &Buffer<f64>, range: Range<usize>, to: &mut Buffer<f64>, at: usize) {
        to[at..at + range.len()].copy_from_slice(&from[range]);
    }

    fn ilu_factor_in_stages(
        &self,
        ilu: &mut BlockIlu,
        a: &Csr,
        shift: f64,
        stages: &[Vec<Range<usize>>],
        between: &mut dyn FnMut(usize, &mut dyn FactorBlocks),
    ) -> Vec<Breakdown> {
        ilu.factor_in_stages(a, shift, stages, between)
    }

    fn ilu_forward(
        &self,
        ilu: &BlockIlu,
        rows: Range<usize>,
        r: &Buffer<f64>,
        at: usize,
        z: &mut Buffer<f64>,
    ) {
        trsv::forward_part(ilu, rows, &r[at..], z);
    }

    fn ilu_backward(&self, ilu: &BlockIlu, rows: Range<usize>, z: &mut Buffer<f64>) {
        trsv::backward_part(ilu, rows, z);
    }
}

fn ranges(starts: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> {
    starts.windows(2).map(|w| w[0]..w[1])
}
