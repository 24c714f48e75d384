//! Cases of kind `spmv`: the product alone.

use rayon::prelude::*;

use super::checks::fits;
use super::roof::Roof;
use super::traffic::sample;
use super::{Job, NoResult, Stage};
use crate::base::status::Status;
use crate::compute::Backend;

/// Largest difference to the plain loop over CSR, relative to the sum of magnitudes of a row.
const AGREE: f64 = 1e-12;

impl Job<'_> {
    /// Stores the matrix, compares one product with the plain loop over CSR and times it.
    pub(super) fn product<K: Backend>(&mut self, k: &K) -> Result<(), NoResult> {
        let copy_gbps = Some(k.copy_bandwidth()).filter(|gbps| gbps.is_finite());
        let roof = Roof { copy_gbps, handover: None };
        self.check_matrix(k)?;
        let (matrix, _) = self.store(k, false)?;
        let n = self.a.rows();
        fits(16 * n, k.memory_free())?;
        let (mut x, mut y) = (k.vector(n)?, k.vector(n)?);
        let of_x: Vec<f64> = (0..n).map(entry).collect();
        k.upload(&of_x, &mut x);
        k.spmv(&matrix, &x, &mut y);
        let mut of_y = vec![0.0; n];
        k.download(&y, &mut of_y);
        k.check()?;
        self.compare(&of_x, &of_y)?;

        self.begin(k, Stage::Traffic)?;
        let bytes = k.matrix_bytes(&matrix);
        let time = sample(k, self.measure, || k.spmv(&matrix, &x, &mut y));
        k.check()?;
        self.record.times.repetitions = time.count;
        self.record.traffic = self.of_product(bytes.moved, &time, &roof);
        self.record.traffic.memory_bytes = Some(bytes.held);
        self.record.status = Status::Measured;
        Ok(())
    }

    /// A product that is wrong is not worth timing.
    fn compare(&self, x: &[f64], y: &[f64]) -> Result<(), NoResult> {
        let terms = |i: usize| {
            let (cols, values) = self.a.row(i);
            cols.iter().zip(values).map(|(&j, v)| v * x[j as usize])
        };
        let wrong = y.par_iter().enumerate().position_first(|(i, y)| {
            let (want, size): (f64, f64) = (terms(i).sum(), terms(i).map(f64::abs).sum());
            (y - want).abs() > AGREE * size || y.is_nan()
        });
        let Some(i) = wrong else { return Ok(()) };
        let want: f64 = terms(i).sum();
        let reason = format!("row {} of the product is {:e}, not {want:e}", i + 1, y[i]);
        Err(NoResult::ended(Status::Failed, reason))
    }
}

/// Entry i of the vector that is multiplied: a few hundred values on both sides of zero.
fn entry(i: usize) -> f64 {
    ((i * 7919 % 1000) as f64 - 499.5) / 256.0
}
