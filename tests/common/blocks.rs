//! Block matrices as cuSPARSE takes them, with dense arithmetic beside.

use bilu_bench::compute::cuda::cusparse::{Diagonal, Triangle, with_diagonal};
use bilu_bench::matrix::pattern::{Pattern, PatternView};
use rand::Rng;

use super::rng;

/// Off-diagonal blocks drawn for each block row.
const PER_ROW: usize = 5;

/// A square matrix of full blocks inside a pattern, dense and row by row on the host.
#[derive(Clone)]
pub(crate) struct Blocks {
    pub(crate) b: usize,
    pub(crate) pattern: Pattern<'static>,
    pub(crate) n: usize,
    pub(crate) dense: Vec<f64>,
}

impl Blocks {
    /// Random pattern with all diagonal blocks; numbers small beside the diagonal, which is 1 to 2,
    /// so that neither factors nor solves grow.
    pub(crate) fn random(rows: usize, b: usize, seed: u64) -> Self {
        let mut rng = rng(seed);
        let (mut row_ptr, mut col_ind) = (vec![0], vec![]);
        for i in 0..rows as u32 {
            let mut row: Vec<u32> =
                (0..PER_ROW).map(|_| rng.random_range(0..rows as u32)).collect();
            row.push(i);
            row.sort_unstable();
            row.dedup();
            col_ind.extend(row);
            row_ptr.push(col_ind.len() as u32);
        }
        let pattern = Pattern::new(row_ptr, col_ind);
        Self::on(pattern, b, seed + 1)
    }

    /// Random numbers on a pattern.
    pub(crate) fn on(pattern: Pattern<'static>, b: usize, seed: u64) -> Self {
        let mut rng = rng(seed);
        let n = pattern.rows() * b;
        let most = 1.0 / ((PER_ROW + 1) * b) as f64;
        let mut dense = vec![0.0; n * n];
        for_each_number(&pattern, b, |_, i, j| {
            let diagonal = if i == j { rng.random_range(1.0..2.0) } else { 0.0 };
            dense[i * n + j] = diagonal + rng.random_range(-most..most);
        });
        Self { b, pattern, n, dense }
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.dense[i * self.n + j]
    }

    /// The numbers as the device has them: block after block, each column by column.
    pub(crate) fn values(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.pattern.entries() * self.b * self.b];
        for_each_number(&self.pattern, self.b, |place, i, j| values[place] = self.at(i, j));
        values
    }

    pub(crate) fn product(&self, x: &[f64]) -> Vec<f64> {
        self.dense.chunks(self.n).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    /// The textbook's point factorisation inside the pattern (Saad, Algorithm 10.4).
    pub(crate) fn ilu(&self) -> Self {
        let (mut lu, n) = (self.clone(), self.n);
        let mut kept = vec![false; n * n];
        for_each_number(&self.pattern, self.b, |_, i, j| kept[i * n + j] = true);
        for i in 1..n {
            for k in (0..i).filter(|k| kept[i * n + k]) {
                let l = lu.at(i, k) / lu.at(k, k);
                lu.dense[i * n + k] = l;
                for j in (k + 1..n).filter(|j| kept[i * n + j]) {
                    lu.dense[i * n + j] -= l * lu.at(k, j);
                }
            }
        }
        lu
    }

    /// Substitution with one triangle of the numbers.
    pub(crate) fn solve(&self, triangle: Triangle, diagonal: Diagonal, x: &[f64]) -> Vec<f64> {
        let (mut y, n) = (x.to_vec(), self.n);
        let rows: Vec<usize> = match triangle {
            Triangle::Lower => (0..n).collect(),
            Triangle::Upper => (0..n).rev().collect(),
        };
        for (done, &i) in rows.iter().enumerate() {
            let known: f64 = rows[..done].iter().map(|&j| self.at(i, j) * y[j]).sum();
            let pivot = if diagonal == Diagonal::Unit { 1.0 } else { self.at(i, i) };
            y[i] = (x[i] - known) / pivot;
        }
        y
    }

    /// Only blocks strictly inside the triangle; beside ones where `b` > 1 with identity blocks on
    /// the diagonal.
    pub(crate) fn our_factor(&self, triangle: Triangle) -> Self {
        let (mut row_ptr, mut col_ind) = (vec![0], vec![]);
        for i in 0..self.pattern.rows() {
            let inside = |&&j: &&u32| match triangle {
                Triangle::Lower => (j as usize) < i,
                Triangle::Upper => (j as usize) > i,
            };
            col_ind.extend(self.pattern.row(i).iter().filter(inside));
            row_ptr.push(col_ind.len() as u32);
        }
        let strict = PatternView::new(&row_ptr, &col_ind);
        let pattern = if self.b > 1 {
            with_diagonal(strict, triangle)
        } else {
            Pattern::new(row_ptr, col_ind)
        };
        let (b, n) = (self.b, self.n);
        let mut factor = Self { b, pattern, n, dense: vec![0.0; n * n] };
        for_each_number(&factor.pattern, b, |_, i, j| {
            let identity = f64::from(u8::from(i == j));
            factor.dense[i * n + j] = if i / b == j / b { identity } else { self.at(i, j) };
        });
        factor
    }

    /// Zeros in block row `row` left of and on the diagonal.
    pub(crate) fn with_zero_pivot(&self, row: usize) -> Self {
        let mut singular = self.clone();
        for i in row * self.b..(row + 1) * self.b {
            singular.dense[i * self.n..][..(row + 1) * self.b].fill(0.0);
        }
        singular
    }
}

/// Calls `f(place, i, j)` for each number of each block in the order of the device's values.
pub(crate) fn for_each_number(
    pattern: &Pattern<'_>,
    b: usize,
    mut f: impl FnMut(usize, usize, usize),
) {
    let mut place = 0;
    for block_row in 0..pattern.rows() {
        for &block_col in pattern.row(block_row) {
            for c in 0..b {
                for r in 0..b {
                    f(place, block_row * b + r, block_col as usize * b + c);
                    place += 1;
                }
            }
        }
    }
}
