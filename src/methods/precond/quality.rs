//! What says whether factors are fit for use: pivots, growth, and how large their inverses are (Chow and Saad,
//! *Experimental study of ILU preconditioners for indefinite matrices*, 1997: |(L U)^-1 e|).
//!
//! All are those of the matrix whose rows, then columns, are scaled to a largest magnitude of 1, so that units make no
//! difference. With these scales e is the vector of the largest magnitudes of the rows.

use crate::base::error::Result;
use crate::compute::preconditioner::{FactorQuality, Form, Preconditioner};
use crate::compute::{Backend, TriangleNorms};
use crate::matrix::Csr;
use crate::matrix::equilibration::largest;

/// Largest magnitudes of the rows of a matrix and of the columns of what is left when the rows are divided by theirs; 1
/// for those of zeros.
pub struct Scales {
    rows: Vec<f64>,
    columns: Vec<f64>,
}

impl Scales {
    /// Those of a square matrix.
    pub fn of(a: &Csr) -> Self {
        let known = |v: f64| if v > 0.0 && v.is_finite() { v } else { 1.0 };
        let row = |i: usize| known(a.row(i).1.iter().fold(0.0, |most: f64, v| most.max(v.abs())));
        let rows: Vec<f64> = (0..a.rows()).map(row).collect();
        let mut columns = vec![0.0_f64; a.cols()];
        for (i, of_row) in rows.iter().enumerate() {
            let (cols, values) = a.row(i);
            for (&j, v) in cols.iter().zip(values) {
                columns[j as usize] = columns[j as usize].max(v.abs() / of_row);
            }
        }
        Self { rows, columns: columns.into_iter().map(known).collect() }
    }

    /// The largest magnitude of a vector of unknowns, scaled.
    fn of_unknowns(&self, x: &[f64]) -> f64 {
        largest(x.iter().zip(&self.columns).map(|(x, c)| c * x))
    }
}

/// The quality of a preconditioner that was made of `a`; what a backend does not tell is left out.
///
/// # Errors
/// When the backend fails.
pub(crate) fn quality<K: Backend>(
    k: &K,
    m: &dyn Preconditioner<K>,
    a: &Csr,
) -> Result<FactorQuality> {
    let scales = Scales::of(a);
    let n = a.rows();
    let (mut r, mut z) = (k.vector(n)?, k.vector(n)?);
    k.upload(&scales.rows, &mut r);
    m.apply(k, &r, &mut z);
    let mut solved = vec![0.0; n];
    k.download(&z, &mut solved);
    k.check()?;
    let mut found =
        FactorQuality { condest: Some(scales.of_unknowns(&solved)), ..FactorQuality::default() };
    if let Form::Factors { ilu, .. } = m.form() {
        // a library may keep its factors to itself
        let inverse = k.ilu_inverse_diagonal(ilu).ok();
        found.smallest_pivot = inverse.map(|of| smallest_pivot(&of, a.block_size(), &scales));
        if let Some(norms) = k.ilu_triangle_norms(ilu, &scales.rows, &scales.columns) {
            let TriangleNorms { lower, upper, growth } = norms;
            found.lower_condest = Some(lower);
            found.upper_condest = Some(upper);
            found.growth = Some(growth);
        }
    }
    Ok(found.finite())
}

/// The least `1 / |D_i^-1|` of the diagonal blocks D of the factors, in the norm of the largest sum of a row; for points
/// the least pivot.
fn smallest_pivot(inverse: &[f64], b: usize, scales: &Scales) -> f64 {
    let norm = |(at, block): (usize, &[f64])| {
        let (rows, columns) = (&scales.rows[at * b..][..b], &scales.columns[at * b..][..b]);
        let sum = |r: usize| (0..b).map(|c| (block[c * b + r] * rows[c]).abs()).sum::<f64>();
        largest((0..b).map(|r| columns[r] * sum(r)))
    };
    1.0 / largest(inverse.chunks_exact(b * b).enumerate().map(norm))
}
