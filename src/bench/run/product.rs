//! Cases of kind `spmv`: the product alone.

use rayon::prelude::*;

use super::checks::fits;
use super::no_result::together;
use super::roof::Roof;
use super::traffic::sample;
use super::{Job, NoResult, Stage};
use crate::base::status::Status;
use crate::compute::{Backend, Operations, Platform};

/// Largest difference to the plain loop over CSR, relative to the sum of magnitudes of a row.
const AGREE: f64 = 1e-12;

impl Job<'_> {
    /// Stores the matrix, compares one product with the plain loop over CSR and times it.
    pub(super) fn product<K: Backend>(&mut self, k: &K) -> Result<(), NoResult> {
        let roof = copying(k);
        self.check_matrix(k)?;
        let (matrix, _) = self.store(k, false)?;
        self.product_with(k, &matrix, &roof, 0, Some)
    }

    /// The same with a stored matrix, of which `first` unknowns are before this rank's. `whole` makes of this rank's
    /// part of a vector all of it, where the plain loop is to run.
    pub(super) fn product_with<K: Operations>(
        &mut self,
        k: &K,
        matrix: &K::Matrix,
        roof: &Roof,
        first: usize,
        whole: impl FnOnce(Vec<f64>) -> Option<Vec<f64>>,
    ) -> Result<(), NoResult> {
        let n = self.unknowns;
        let room = fits(16 * n, k.memory_free());
        let made = room.and_then(|()| Ok((k.vector(n)?, k.vector(n)?)));
        let (mut x, mut y) = together(k, made)?;
        let of_x: Vec<f64> = (first..first + n).map(entry).collect();
        k.upload(&of_x, &mut x);
        k.spmv(matrix, &x, &mut y);
        let mut of_y = vec![0.0; n];
        k.download(&y, &mut of_y);
        k.check()?;
        let checked = whole(of_y).map_or(Ok(()), |y| self.compare(&y));
        together(k, checked)?;

        self.begin(k, Stage::Traffic)?;
        let bytes = k.matrix_bytes(matrix);
        let time = sample(k, self.measure, || k.spmv(matrix, &x, &mut y));
        k.check()?;
        self.record.times.repetitions = time.count;
        self.record.traffic = self.of_product(bytes.moved, &time, roof);
        self.record.traffic.memory_bytes = Some(bytes.held);
        self.record.status = Status::Measured;
        Ok(())
    }

    /// A product that is wrong is not worth timing.
    fn compare(&self, y: &[f64]) -> Result<(), NoResult> {
        let terms = |i: usize| {
            let (cols, values) = self.a.row(i);
            cols.iter().zip(values).map(|(&j, v)| v * entry(j as usize))
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

/// The roof of copying.
pub(super) fn copying<K: Platform>(k: &K) -> Roof {
    let copy_gbps = Some(k.copy_bandwidth()).filter(|gbps| gbps.is_finite());
    Roof { copy_gbps, handover: None }
}

/// Entry i of the vector that is multiplied: a few hundred values on both sides of zero.
fn entry(i: usize) -> f64 {
    ((i * 7919 % 1000) as f64 - 499.5) / 256.0
}
