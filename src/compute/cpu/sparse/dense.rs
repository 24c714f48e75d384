//! Small dense systems: one for each row of an approximate inverse, and inverses of coarse matrices. Matrices are
//! row by row.

use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::matrix::Csr;

/// A pivot below this part of the diagonal entry that it comes from is rounding.
const NO_PIVOT: f64 = 1e-14;

/// A pivot below this of a matrix with a unit diagonal says that a row depends on those before it.
const DEPENDENT: f64 = 1e-11;

/// The Cholesky factor C of a symmetric matrix of order n, in its lower triangle: `A = C C'`.
///
/// # Errors
/// The first row (from 0) without a positive pivot, and that pivot.
pub fn cholesky(a: &mut [f64], n: usize) -> Result<(), (usize, f64)> {
    for j in 0..n {
        let diagonal = a[j * n + j];
        let pivot = diagonal - (0..j).map(|p| a[j * n + p] * a[j * n + p]).sum::<f64>();
        if pivot.is_nan() || pivot <= NO_PIVOT * diagonal.abs() {
            return Err((j, pivot));
        }
        let root = pivot.sqrt();
        a[j * n + j] = root;
        for i in j + 1..n {
            let sum: f64 = (0..j).map(|p| a[i * n + p] * a[j * n + p]).sum();
            a[i * n + j] = (a[i * n + j] - sum) / root;
        }
    }
    Ok(())
}

/// `x = C^-T e` for the last unit vector e.
pub(crate) fn last_row(c: &[f64], n: usize, x: &mut [f64]) {
    for j in (0..n).rev() {
        let right = if j + 1 == n { 1.0 } else { 0.0 };
        let sum: f64 = (j + 1..n).map(|i| c[i * n + j] * x[i]).sum();
        x[j] = (right - sum) / c[j * n + j];
    }
}

/// The least-squares solution of `A x = b` by Householder reflections, A being m x n with m >= n. A and
/// b are overwritten; the solution is left in the first n entries of b.
///
/// # Errors
/// The first column (from 0) that depends on those before it.
pub(crate) fn least_squares(a: &mut [f64], m: usize, n: usize, b: &mut [f64]) -> Result<(), usize> {
    let largest = a[..m * n].iter().fold(0.0_f64, |max, v| max.max(v.abs()));
    for j in 0..n {
        let norm = (j..m).map(|i| a[i * n + j] * a[i * n + j]).sum::<f64>().sqrt();
        if norm.is_nan() || norm <= NO_PIVOT * largest {
            return Err(j);
        }
        let first = a[j * n + j];
        let alpha = if first > 0.0 { -norm } else { norm };
        // v = column - alpha e, beta = 2 / (v, v)
        let beta = 1.0 / (norm * (norm + first.abs()));
        a[j * n + j] = first - alpha;
        for k in j + 1..n {
            let dot: f64 = (j..m).map(|i| a[i * n + j] * a[i * n + k]).sum();
            (j..m).for_each(|i| a[i * n + k] -= beta * dot * a[i * n + j]);
        }
        let dot: f64 = (j..m).map(|i| a[i * n + j] * b[i]).sum();
        (j..m).for_each(|i| b[i] -= beta * dot * a[i * n + j]);
        a[j * n + j] = alpha;
    }
    for j in (0..n).rev() {
        let sum: f64 = (j + 1..n).map(|k| a[j * n + k] * b[k]).sum();
        b[j] = (b[j] - sum) / a[j * n + j];
    }
    Ok(())
}

/// The inverse of a definite or semidefinite matrix, scaled to a unit diagonal for the elimination; rows that
/// depend on those before them have zero rows and columns. Second, how many those are.
///
/// # Errors
/// When it has more entries than indices.
pub(crate) fn semidefinite_inverse(e: &Csr) -> Result<(Csr, usize)> {
    let n = e.rows();
    let scale: Vec<f64> = (0..n)
        .map(|i| match e.get(i, i).unwrap_or(0.0).abs() {
            0.0 => 1.0,
            d => 1.0 / d.sqrt(),
        })
        .collect();
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        let (columns, values) = e.row(i);
        for (&j, &v) in columns.iter().zip(values) {
            a[i * n + j as usize] = v * scale[i] * scale[j as usize];
        }
    }
    let mut kept = vec![true; n];
    // Gauss-Jordan
    for j in 0..n {
        let pivot = a[j * n + j];
        if pivot.is_nan() || pivot.abs() <= DEPENDENT {
            kept[j] = false;
            continue;
        }
        for c in 0..n {
            a[j * n + c] = if c == j { 1.0 / pivot } else { a[j * n + c] / pivot };
        }
        let (row, start) = (a[j * n..(j + 1) * n].to_vec(), j);
        for i in (0..n).filter(|&i| i != start) {
            let factor = a[i * n + j];
            if factor == 0.0 {
                continue;
            }
            for c in 0..n {
                let own = if c == j { 0.0 } else { a[i * n + c] };
                a[i * n + c] = own - factor * row[c];
            }
        }
    }
    let dependent = kept.iter().filter(|kept| !**kept).count();
    let made = Csr::by_rows(
        Threads::One,
        [n, n],
        || (),
        |(), i, to| {
            for j in (0..n).filter(|&j| kept[i] && kept[j]) {
                to.push(j as u32, a[i * n + j] * scale[i] * scale[j]);
            }
            Ok(())
        },
    );
    made.map(|m| (m, dependent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_is_one_and_leaves_out_what_depends() {
        let a = matrix("poisson3d:3x3x2");
        let (x, dependent) = semidefinite_inverse(&a).unwrap();
        let product = a.times(&x, Threads::One).unwrap();
        for i in 0..18 {
            for j in 0..18 {
                let want = f64::from(u8::from(i == j));
                assert!((product.get(i, j).unwrap_or(0.0) - want).abs() < 1e-14);
            }
        }
        assert_eq!(dependent, 0);
        // singular: constants in the null space; the last row goes
        let a = matrix("bubbly:3x2x1,bubbles=0,boundary=neumann");
        let (x, dependent) = semidefinite_inverse(&a).unwrap();
        assert_eq!((dependent, x.row(5).0.len(), x.get(0, 5)), (1, 0, None));
        let again = a.times(&x, Threads::One).unwrap().times(&a, Threads::One).unwrap();
        for i in 0..6 {
            for j in 0..6 {
                let of = |m: &Csr| m.get(i, j).unwrap_or(0.0);
                assert!((of(&again) - of(&a)).abs() < 1e-13);
            }
        }
    }

    use crate::compute::cpu::block::tests::random;
    use crate::problem::samples::matrix;

    /// `B B' + I` of order n.
    fn definite(n: usize) -> Vec<f64> {
        let b = random(n * n, 7);
        let entry = |i: usize, j: usize| (0..n).map(|p| b[i * n + p] * b[j * n + p]).sum::<f64>();
        let at = |e: usize| entry(e / n, e % n) + if e / n == e % n { 1.0 } else { 0.0 };
        (0..n * n).map(at).collect()
    }

    #[test]
    fn cholesky_factors_and_finds_what_is_not_definite() {
        for n in [1, 2, 7, 20] {
            let a = definite(n);
            let mut c = a.clone();
            cholesky(&mut c, n).unwrap();
            let mut g = vec![0.0; n];
            last_row(&c, n, &mut g);
            for i in 0..n {
                let got: f64 = (0..n).map(|j| a[i * n + j] * g[j]).sum();
                let want = if i + 1 == n { c[n * n - 1] } else { 0.0 };
                assert!((got - want).abs() < 1e-12);
            }
        }
        let mut saddle = [1.0, 0.0, 2.0, 1.0];
        assert_eq!(cholesky(&mut saddle, 2), Err((1, -3.0)));
    }

    #[test]
    fn least_squares_leave_a_residual_at_right_angles() {
        for (m, n) in [(1, 1), (5, 5), (9, 4), (25, 7)] {
            let (a, b) = (random(m * n, 5), random(m, 6));
            let (mut q, mut x) = (a.clone(), b.clone());
            least_squares(&mut q, m, n, &mut x).unwrap();
            let residual: Vec<f64> =
                (0..m).map(|i| b[i] - (0..n).map(|j| a[i * n + j] * x[j]).sum::<f64>()).collect();
            for j in 0..n {
                let dot: f64 = (0..m).map(|i| a[i * n + j] * residual[i]).sum();
                assert!(dot.abs() < 1e-13, "{m} x {n}: {dot}");
            }
        }
        let mut dependent = [1.0, 2.0, 2.0, 4.0, 3.0, 6.0];
        assert_eq!(least_squares(&mut dependent, 3, 2, &mut [1.0; 3]), Err(1));
    }
}
