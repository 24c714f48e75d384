//! Shared by the integration tests: random matrices, files that must be refused.
#![allow(dead_code)] // each test binary uses its part

#[cfg(feature = "cuda")]
pub(crate) mod blocks;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
pub(crate) mod program;
pub(crate) mod refused;

use bilu_bench::matrix::Csr;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Generator with a fixed seed: failures repeat.
pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Random n x n matrix with about `per_row` entries a row, a full diagonal, and rows made
/// diagonally dominant by `dominance` times their off-diagonal sum (0 leaves them as drawn).
pub(crate) fn random_csr(n: usize, per_row: usize, dominance: f64, seed: u64) -> Csr {
    let mut rng = rng(seed);
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], vec![], vec![]);
    for i in 0..n {
        let mut cols: Vec<u32> = (0..per_row).map(|_| rng.random_range(0..n as u32)).collect();
        cols.push(i as u32);
        cols.sort_unstable();
        cols.dedup();
        let start = values.len();
        let mut sum = 0.0;
        for &j in &cols {
            let v: f64 = rng.random_range(-1.0..1.0);
            sum += v.abs();
            values.push(v);
            col_ind.push(j);
        }
        if dominance > 0.0 {
            let diagonal = start + cols.binary_search(&(i as u32)).expect("diagonal is there");
            values[diagonal] = 1.0 + dominance * sum;
        }
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new(n, n, row_ptr, col_ind, values).expect("valid by construction")
}

/// Random vector with entries in [-1, 1).
pub(crate) fn random_vector(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Dense copy, row-major.
pub(crate) fn dense(a: &Csr) -> Vec<Vec<f64>> {
    (0..a.rows()).map(|i| (0..a.cols()).map(|j| a.get(i, j).unwrap_or(0.0)).collect()).collect()
}

/// Largest difference of two vectors relative to the largest entry of the second.
pub(crate) fn relative_difference(x: &[f64], y: &[f64]) -> f64 {
    let scale = y.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    x.iter().zip(y).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / scale
}
