//! Small matrices of block methods, S x S by rows, and Cholesky factors of Gram matrices.

/// `a b`.
pub(super) fn times(a: &[f64], b: &[f64], s: usize) -> Vec<f64> {
    let mut c = vec![0.0; s * s];
    for (a, c) in a.chunks_exact(s).zip(c.chunks_exact_mut(s)) {
        for (a, b) in a.iter().zip(b.chunks_exact(s)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
    c
}

/// `a'`.
pub(super) fn transposed(a: &[f64], s: usize) -> Vec<f64> {
    (0..s * s).map(|at| a[at % s * s + at / s]).collect()
}

/// `-a`.
pub(super) fn negated(a: &[f64]) -> Vec<f64> {
    a.iter().map(|v| -v).collect()
}

pub(super) fn identity(s: usize) -> Vec<f64> {
    (0..s * s).map(|at| f64::from(u8::from(at / s == at % s))).collect()
}

/// Square roots of the diagonal; 0 of what is negative by rounding.
pub(super) fn norms(g: &[f64], s: usize) -> Vec<f64> {
    g.iter().step_by(s + 1).map(|&v| root(v)).collect()
}

/// The square root; 0 of what is negative by rounding, and what is no number stays so.
pub(super) fn root(v: f64) -> f64 {
    if v < 0.0 { 0.0 } else { v.sqrt() }
}

/// What is done with columns that depend on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dependent {
    /// They become zero.
    Dropped,
    /// What is orthogonal to the others is left of them.
    Left,
}

/// What makes a multivector W of the Gram matrix `W' W` orthonormal: `W = Q factor` and `Q = W inverse`. The columns
/// of Q that belong to dependent ones of W are zero, or what is left.
#[derive(Debug)]
pub(super) struct Cholesky {
    pub(super) factor: Vec<f64>,
    pub(super) inverse: Vec<f64>,
    /// Columns of Q that are orthonormal.
    pub(super) rank: usize,
    /// The smallest pivot, of columns of norm one.
    pub(super) smallest: f64,
}

/// Cholesky's factorisation of the Gram matrix `g` of columns that are scaled to norm one, with pivoting. Columns
/// with pivots up to `tolerance` depend on the others, zero columns as well.
pub(super) fn cholesky(g: &[f64], s: usize, tolerance: f64, dependent: Dependent) -> Cholesky {
    let norms = norms(g, s);
    let scaled = |i: usize, j: usize| g[i * s + j] / (norms[i] * norms[j]);
    let mut rest: Vec<f64> = norms.iter().map(|&n| f64::from(u8::from(n > 0.0))).collect();
    // row p of both belongs to pivot p
    let (mut factor, mut inverse) = (vec![0.0; s * s], vec![0.0; s * s]);
    let (mut pivots, mut smallest) = (Vec::new(), 1.0_f64);
    let is_left = |pivots: &[usize], j: usize| norms[j] > 0.0 && !pivots.contains(&j);
    while let Some(p) =
        (0..s).filter(|&j| is_left(&pivots, j)).reduce(|a, b| if rest[b] > rest[a] { b } else { a })
    {
        if rest[p] <= tolerance {
            break;
        }
        smallest = smallest.min(rest[p]);
        let root = rest[p].sqrt();
        for j in (0..s).filter(|&j| j != p && is_left(&pivots, j)) {
            let known: f64 =
                pivots.iter().map(|&l: &usize| factor[l * s + p] * factor[l * s + j]).sum();
            let v = (scaled(p, j) - known) / root;
            factor[p * s + j] = v;
            rest[j] -= v * v;
        }
        factor[p * s + p] = root;
        pivots.push(p);
    }
    for row in factor.chunks_exact_mut(s) {
        row.iter_mut().zip(&norms).for_each(|(v, norm)| *v *= norm);
    }
    // column by column: that of a pivot needs those of earlier ones
    let others: Vec<usize> = (0..s).filter(|&j| is_left(&pivots, j)).collect();
    let left = if dependent == Dependent::Left { &others[..] } else { &[] };
    for (at, &p) in pivots.iter().chain(left).enumerate() {
        for row in 0..s {
            let known: f64 = pivots[..at.min(pivots.len())]
                .iter()
                .map(|&l| inverse[row * s + l] * factor[l * s + p])
                .sum();
            inverse[row * s + p] = f64::from(u8::from(row == p)) - known;
        }
        if at < pivots.len() {
            let pivot = factor[p * s + p];
            (0..s).for_each(|row| inverse[row * s + p] /= pivot);
        } else {
            factor[p * s + p] = 1.0;
        }
    }
    Cholesky { factor, inverse, rank: pivots.len(), smallest }
}

/// The inverse of a Gram matrix, zero in the rows and columns of dependent columns.
pub(super) fn inverse(g: &[f64], s: usize, tolerance: f64) -> Vec<f64> {
    let Cholesky { inverse, .. } = cholesky(g, s, tolerance, Dependent::Dropped);
    times(&inverse, &transposed(&inverse, s), s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `w' w` of n rows.
    fn gram(w: &[f64], s: usize) -> Vec<f64> {
        let mut g = vec![0.0; s * s];
        for row in w.chunks_exact(s) {
            (0..s * s).for_each(|at| g[at] += row[at / s] * row[at % s]);
        }
        g
    }

    fn applied(w: &[f64], c: &[f64], s: usize) -> Vec<f64> {
        let row = |w: &[f64]| -> Vec<f64> {
            (0..s).map(|j| (0..s).map(|i| w[i] * c[i * s + j]).sum()).collect()
        };
        w.chunks_exact(s).flat_map(row).collect()
    }

    fn near(a: &[f64], b: &[f64], tolerance: f64) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= tolerance, "{a} beside {b}");
        }
    }

    /// 7 rows of 3 columns of different sizes.
    fn columns() -> Vec<f64> {
        let entry = |at: usize| ((at * at * 31 + 7 * at) % 17) as f64 - 8.0;
        (0..21).map(|at| entry(at) * [1.0, 1e-3, 1e4][at % 3]).collect()
    }

    #[test]
    fn independent_columns_become_orthonormal() {
        let w = columns();
        let Cholesky { factor, inverse, rank, .. } =
            cholesky(&gram(&w, 3), 3, 1e-12, Dependent::Dropped);
        let q = applied(&w, &inverse, 3);
        near(&gram(&q, 3), &identity(3), 1e-13);
        near(&applied(&q, &factor, 3), &w, 1e-10);
        assert_eq!(rank, 3);
        near(&times(&super::inverse(&gram(&w, 3), 3, 1e-12), &gram(&w, 3), 3), &identity(3), 1e-6);
    }

    #[test]
    fn equal_and_zero_columns_are_dropped() {
        let of = |row: &[f64]| [row[0], 0.0, 2.0 * row[0], row[1]];
        let w: Vec<f64> = columns().chunks_exact(3).flat_map(of).collect();
        let made = cholesky(&gram(&w, 4), 4, 1e-12, Dependent::Dropped);
        assert_eq!(made.rank, 2);
        let q = applied(&w, &made.inverse, 4);
        let mut projection = identity(4);
        (projection[5], projection[10]) = (0.0, 0.0);
        near(&gram(&q, 4), &projection, 1e-13);
        near(&applied(&q, &made.factor, 4), &w, 1e-12);
        // what is left of the third is nothing
        let left = cholesky(&gram(&w, 4), 4, 1e-12, Dependent::Left);
        near(&applied(&w, &left.inverse, 4), &q, 1e-12);
        assert_eq!((left.factor[10], left.factor[2]), (1.0, made.factor[2]));
    }

    #[test]
    fn small_matrices_multiply_as_they_should() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        assert_eq!(times(&a, &b, 2), [19.0, 22.0, 43.0, 50.0]);
        assert_eq!(transposed(&a, 2), [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(norms(&[4.0, 1.0, 1.0, -1e-30], 2), [2.0, 0.0]);
        assert_eq!(negated(&a)[3], -4.0);
    }
}
