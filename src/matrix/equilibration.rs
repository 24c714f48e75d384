//! Scaling of rows and columns by powers of two, which changes no digit.

use super::Csr;
use crate::base::choices::Scaling;
use crate::base::threads::Threads;

/// Passes over the matrix at most, and the distance of all norms from 1 at which they end: what is rounded to powers
/// of two afterwards is within a factor of 2 anyhow.
const MOST_PASSES: usize = 20;
const NEAR_ONE: f64 = 0.1;

/// Exponents of `R` and `C`, diagonal matrices of powers of two: the system `A x = b` becomes `R A C y = R b`,
/// `x = C y`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equilibration {
    rows: Vec<i32>,
    columns: Vec<i32>,
}

impl Equilibration {
    /// That of a square matrix; `None` where `how` is not to scale. Where `symmetric` says so, rows and columns of `Ruiz`
    /// have the same factors. Rows and columns of zeros stay as they are.
    pub fn new(a: &Csr, how: Scaling, symmetric: impl FnOnce() -> bool) -> Option<Self> {
        let n = a.rows();
        let mut factors = [vec![1.0; n], vec![1.0; n]];
        match how {
            Scaling::None => return None,
            Scaling::Rows => {
                let [rows, _] = norms(a, &factors);
                scale(&mut factors[0], &rows, |norm| norm);
            }
            Scaling::Ruiz => ruiz(a, symmetric(), &mut factors),
        }
        let [rows, columns] = factors.map(exponents);
        Some(Self { rows, columns })
    }

    /// `R A C`.
    #[must_use]
    pub fn matrix(&self, a: &Csr) -> Csr {
        let mut scaled = a.clone();
        let row_ptr = a.row_ptr();
        let values = scaled.values_mut();
        for (i, &of_row) in self.rows.iter().enumerate() {
            for at in row_ptr[i] as usize..row_ptr[i + 1] as usize {
                let of_column = self.columns[a.col_ind()[at] as usize];
                values[at] = times(values[at], of_row + of_column);
            }
        }
        scaled
    }

    /// `R b`; b, as the vectors below, may have rows of several numbers.
    pub fn right_hand_side(&self, b: &[f64]) -> Vec<f64> {
        let mut scaled = b.to_vec();
        scale_rows(&mut scaled, &self.rows, 1);
        scaled
    }

    /// `x = C y` in place.
    pub fn solution(&self, y: &mut [f64]) {
        scale_rows(y, &self.columns, 1);
    }

    /// `y = C^-1 x` in place.
    pub fn unknowns(&self, x: &mut [f64]) {
        scale_rows(x, &self.columns, -1);
    }

    /// What was done, for people.
    pub fn remark(&self) -> String {
        let spread = |of: &[i32]| {
            let [least, most] = [of.iter().min(), of.iter().max()].map(|e| e.copied().unwrap_or(0));
            format!("2^{least} to 2^{most}")
        };
        let (rows, columns) = (spread(&self.rows), spread(&self.columns));
        format!("rows scaled by {rows}, columns by {columns}")
    }
}

/// Multiplies rows by two to the powers of their exponents, which have this sign.
fn scale_rows(v: &mut [f64], exponents: &[i32], sign: i32) {
    let columns = (v.len() / exponents.len().max(1)).max(1);
    for (row, &exponent) in v.chunks_exact_mut(columns).zip(exponents) {
        for v in row {
            *v = times(*v, sign * exponent);
        }
    }
}

/// `v` times two to the power of `exponent`, which by itself may be outside the range.
pub(crate) fn times(v: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    v * 2.0_f64.powi(half) * 2.0_f64.powi(exponent - half)
}

/// The largest magnitude; NaN where there is one.
pub(crate) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most: f64, v| if v.abs() > most || v.is_nan() { v.abs() } else { most })
}

/// Algorithm 1 of Ruiz, *A scaling algorithm to equilibrate both rows and columns norms in matrices* (RAL-TR-2001-034),
/// in the norm of the largest magnitude: both are divided by the square roots of their norms at once.
fn ruiz(a: &Csr, symmetric: bool, factors: &mut [Vec<f64>; 2]) {
    for _ in 0..MOST_PASSES {
        let [mut rows, mut columns] = norms(a, factors);
        if symmetric {
            // they may differ by rounding
            rows.iter_mut().zip(&columns).for_each(|(row, column)| *row = row.max(*column));
            columns.clone_from(&rows);
        }
        let near = |norm: &f64| *norm == 0.0 || (*norm - 1.0).abs() <= NEAR_ONE;
        if rows.iter().chain(&columns).all(near) {
            break;
        }
        let [of_rows, of_columns] = factors;
        scale(of_rows, &rows, f64::sqrt);
        scale(of_columns, &columns, f64::sqrt);
    }
}

fn scale(factors: &mut [f64], norms: &[f64], divisor: impl Fn(f64) -> f64) {
    for (factor, &norm) in factors.iter_mut().zip(norms) {
        if norm > 0.0 && norm.is_finite() {
            *factor /= divisor(norm);
        }
    }
}

/// Largest magnitudes of the rows and of the columns of the scaled matrix.
fn norms(a: &Csr, [of_rows, of_columns]: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    let scaled = |i: usize| {
        let (cols, values) = a.row(i);
        let of = move |(&j, v): (&u32, &f64)| (j, v.abs() * of_rows[i] * of_columns[j as usize]);
        cols.iter().zip(values).map(of)
    };
    let row = |i: usize| scaled(i).fold(0.0, |most: f64, (_, v)| most.max(v));
    let rows = Threads::Pool.map(a.rows(), 1024, row);
    let mut columns = vec![0.0_f64; a.cols()];
    for i in 0..a.rows() {
        scaled(i).for_each(|(j, v)| columns[j as usize] = columns[j as usize].max(v));
    }
    [rows, columns]
}

/// The nearest powers of two.
fn exponents(factors: Vec<f64>) -> Vec<i32> {
    factors.into_iter().map(|factor| factor.log2().round() as i32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dense(rows: &[[f64; 3]; 3]) -> Csr {
        let values: Vec<f64> = rows.iter().flatten().copied().collect();
        Csr::new(3, 3, vec![0, 3, 6, 9], [0, 1, 2].repeat(3), values).unwrap()
    }

    #[test]
    fn rows_and_columns_of_a_small_matrix() {
        let a = dense(&[[4.0, 2.0, 0.0], [0.0, 1.0, -64.0], [0.0, 0.0, 0.0]]);
        assert_eq!(Equilibration::new(&a, Scaling::None, || false), None);
        let of = Equilibration::new(&a, Scaling::Rows, || false).unwrap();
        assert_eq!((&of.rows[..], &of.columns[..]), (&[-2, -6, 0][..], &[0, 0, 0][..]));
        let scaled = of.matrix(&a);
        assert_eq!(scaled.values(), [1.0, 0.5, 0.0, 0.0, 0.015_625, -1.0, 0.0, 0.0, 0.0]);
        assert_eq!(of.right_hand_side(&[4.0, 64.0, 3.0]), [1.0, 1.0, 3.0]);
        assert_eq!(of.remark(), "rows scaled by 2^-6 to 2^0, columns by 2^0 to 2^0");
        // diag(4, 64) in other columns: each entry alone in its row and column
        let a = dense(&[[0.0, 4.0, 0.0], [0.0, 0.0, 64.0], [0.25, 0.0, 0.0]]);
        let of = Equilibration::new(&a, Scaling::Ruiz, || false).unwrap();
        let scaled = of.matrix(&a);
        assert_eq!([scaled.get(0, 1), scaled.get(1, 2), scaled.get(2, 0)], [Some(1.0); 3]);
        let mut y = [3.0, 3.0, 3.0];
        of.solution(&mut y);
        assert_eq!(y, [1, -1, -3].map(|e| 3.0 * 2.0_f64.powi(e)));
    }

    #[test]
    fn a_symmetric_matrix_stays_symmetric_to_the_last_bit() {
        let a = dense(&[[1e6, 300.0, 0.1], [300.0, 7.0, 1e-4], [0.1, 1e-4, 1e-9]]);
        let of = Equilibration::new(&a, Scaling::Ruiz, || true).unwrap();
        assert_eq!(of.rows, of.columns);
        assert_eq!(of.matrix(&a).asymmetry(), None);
        let rows = Equilibration::new(&a, Scaling::Rows, || true).unwrap();
        assert!(rows.matrix(&a).asymmetry().is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Norms end near 1, and what is scaled back has the bits of before.
        #[test]
        fn scaling_is_exact_and_ends_near_one(
            exponents in proptest::collection::vec((-60_i32..60, -60_i32..60), 4..30), seed in any::<u64>(),
        ) {
            use rand::{Rng, SeedableRng};
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let n = exponents.len();
            let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
            for i in 0..n {
                for j in 0..n {
                    if i == j || rng.random_range(0..4) == 0 {
                        col_ind.push(j as u32);
                        let size = exponents[i].0 + exponents[j].1;
                        values.push(rng.random_range(0.5..1.5) * 2.0_f64.powi(size));
                    }
                }
                row_ptr.push(col_ind.len() as u32);
            }
            let a = Csr::new(n, n, row_ptr, col_ind, values).unwrap();
            let of = Equilibration::new(&a, Scaling::Ruiz, || false).unwrap();
            let scaled = of.matrix(&a);
            let back = Equilibration {
                rows: of.rows.iter().map(|e| -e).collect(),
                columns: of.columns.iter().map(|e| -e).collect(),
            };
            prop_assert_eq!(back.matrix(&scaled), a.clone());
            let ones = [vec![1.0; n], vec![1.0; n]];
            for norm in norms(&scaled, &ones).iter().flatten() {
                prop_assert!((0.4..2.5).contains(norm), "{}", norm);
            }
        }
    }
}
