//! Cases of kind `spmv`: the product alone.

use std::sync::Arc;

use super::checks::fits;
use super::no_result::together;
use super::roof::Roof;
use super::traffic::sample;
use super::{Job, NoResult, Stage};
use crate::base::status::Status;
use crate::base::threads::Threads;
use crate::compute::distributed::part::Part;
use crate::compute::{Backend, Operations};

/// Largest difference to the plain loop over CSR, relative to the sum of magnitudes of a row.
const AGREE: f64 = 1e-12;

impl Job<'_> {
    /// Stores the matrix, compares one product with the plain loop over CSR and times it.
    pub(super) fn product<K: Backend>(&mut self, k: &K) -> Result<(), NoResult> {
        let roof = Roof::of_copies(k);
        self.check_matrix(k)?;
        let (matrix, _) = self.store(k, false)?;
        let a = Arc::clone(self.a);
        self.product_with(
            k,
            &matrix,
            &roof,
            &Part::of_whole(&a, 0..(a.rows() / a.block_size()) as u64),
        )
    }

    /// The same with a stored matrix, of which this rank has a part.
    pub(super) fn product_with<K: Operations>(
        &mut self,
        k: &K,
        matrix: &K::Matrix,
        roof: &Roof,
        part: &Part,
    ) -> Result<(), NoResult> {
        let n = self.unknowns;
        let room = fits(16 * n, k.memory_free());
        let made = room.and_then(|()| Ok((k.vector(n)?, k.vector(n)?)));
        let (mut x, mut y) = together(k, made)?;
        let own = part.unknowns();
        let of_x: Vec<f64> = own.clone().map(|at| entry(part.unknown(at))).collect();
        k.upload(&of_x, &mut x);
        k.spmv(matrix, &x, &mut y);
        let mut of_y = vec![0.0; n];
        k.download(&y, &mut of_y);
        k.check()?;
        together(k, compare(part, &of_y))?;

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
}

/// A product that is wrong is not worth timing.
fn compare(part: &Part, y: &[f64]) -> Result<(), NoResult> {
    let first = part.unknowns().start;
    let terms = |i: usize| {
        let (cols, values) = part.matrix().row(first + i);
        cols.iter().zip(values).map(|(&j, v)| v * entry(part.unknown(j as usize)))
    };
    let wrong = Threads::Pool.find_map(y.len(), 1, |i| {
        let y = y[i];
        let (want, size): (f64, f64) = (terms(i).sum(), terms(i).map(f64::abs).sum());
        ((y - want).abs() > AGREE * size || y.is_nan()).then_some(i)
    });
    let Some(i) = wrong else { return Ok(()) };
    let want: f64 = terms(i).sum();
    let row = part.unknown(first + i) + 1;
    let reason = format!("row {row} of the product is {:e}, not {want:e}", y[i]);
    Err(NoResult::ended(Status::Failed, reason))
}

/// Entry i of the vector that is multiplied: a few hundred values on both sides of zero.
fn entry(i: u64) -> f64 {
    ((i * 7919 % 1000) as f64 - 499.5) / 256.0
}
