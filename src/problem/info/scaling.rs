//! How the values of a matrix are scaled: their range, that of its rows and columns, and its diagonal.

use serde::Serialize;

use super::Csr;
use crate::base::threads::Threads;

/// Magnitudes of the values, and what of a matrix is zero. Rows count from 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scaling {
    /// Smallest magnitude of an entry that is not zero; none where all are.
    pub smallest: Option<f64>,
    /// Largest magnitude of an entry.
    pub largest: f64,
    /// Largest over smallest norm of the rows that are not zero; the norm is the largest magnitude.
    pub rows: Option<f64>,
    /// The same of the columns.
    pub columns: Option<f64>,
    /// Rows without an entry that is not zero.
    pub zero_rows: Zeros,
    /// Such columns.
    pub zero_columns: Zeros,
    /// The row whose diagonal is the smallest against the others.
    pub weakest_diagonal: Option<Weakest>,
}

/// Lines of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Zeros {
    /// How many.
    pub count: usize,
    /// The first of them.
    pub first: Option<usize>,
}

/// A row and its diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Weakest {
    /// The row, from 1.
    pub row: usize,
    /// `|a(i,i)|` over the sum of the other magnitudes of the row; rows without others do not count.
    pub ratio: f64,
}

/// The scaling of a matrix.
pub fn scaling(a: &Csr) -> Scaling {
    let norms: Vec<f64> = Threads::Pool.map(a.rows(), 1, |i| largest(a.row(i).1));
    let mut columns = vec![0.0_f64; a.cols()];
    for i in 0..a.rows() {
        let (cols, values) = a.row(i);
        for (&j, v) in cols.iter().zip(values) {
            columns[j as usize] = columns[j as usize].max(v.abs());
        }
    }
    let less = |least: f64, at: usize| match a.values()[at].abs() {
        v if v > 0.0 => least.min(v),
        _ => least,
    };
    let smallest = Threads::Pool.fold(a.nnz(), 1, || f64::INFINITY, less, f64::min);
    Scaling {
        smallest: Some(smallest).filter(|v| *v < f64::INFINITY),
        largest: largest(&norms),
        rows: spread(&norms),
        columns: spread(&columns),
        zero_rows: zeros(&norms),
        zero_columns: zeros(&columns),
        weakest_diagonal: weakest(a),
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m: f64, v| m.max(v.abs()))
}

/// The largest over the smallest of norms that are not zero.
fn spread(norms: &[f64]) -> Option<f64> {
    let smallest = norms.iter().copied().filter(|v| *v > 0.0).min_by(f64::total_cmp)?;
    Some(largest(norms) / smallest)
}

fn zeros(norms: &[f64]) -> Zeros {
    Zeros {
        count: norms.iter().filter(|v| **v == 0.0).count(),
        first: norms.iter().position(|v| *v == 0.0).map(|i| i + 1),
    }
}

/// The first of the weakest.
fn weakest(a: &Csr) -> Option<Weakest> {
    let of_row = |i: usize| {
        let (cols, values) = a.row(i);
        let (mut own, mut others) = (0.0, 0.0);
        for (&j, v) in cols.iter().zip(values) {
            *(if j as usize == i { &mut own } else { &mut others }) += v.abs();
        }
        (others > 0.0).then(|| Weakest { row: i + 1, ratio: own / others })
    };
    let weaker = |a: &Weakest, b: &Weakest| a.ratio.total_cmp(&b.ratio).then(a.row.cmp(&b.row));
    let with = |least: Option<Weakest>, i| least.into_iter().chain(of_row(i)).min_by(weaker);
    let join = |a: Option<Weakest>, b| a.into_iter().chain(b).min_by(weaker);
    Threads::Pool.fold(a.rows(), 1, || None, with, join)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scaling_of_a_small_matrix_by_hand() {
        // [ 4  -2   .   0*]   0* is a stored zero
        // [ .   1  -8   . ]
        // [ .   .   .   . ]
        // [ .   .   1  0* ]
        let a = Csr::new(
            4,
            4,
            vec![0, 3, 5, 5, 7],
            vec![0, 1, 3, 1, 2, 2, 3],
            vec![4.0, -2.0, 0.0, 1.0, -8.0, 1.0, 0.0],
        )
        .unwrap();
        let expected = Scaling {
            smallest: Some(1.0),
            largest: 8.0,
            // rows 4, 8, -, 1; columns 4, 2, 8, -
            rows: Some(8.0),
            columns: Some(4.0),
            zero_rows: Zeros { count: 1, first: Some(3) },
            zero_columns: Zeros { count: 1, first: Some(4) },
            weakest_diagonal: Some(Weakest { row: 4, ratio: 0.0 }),
        };
        assert_eq!(scaling(&a), expected);
        // without the last row the second is the weakest
        let a = Csr::new(2, 3, vec![0, 2, 4], vec![0, 1, 1, 2], vec![4.0, -2.0, 1.0, -8.0]);
        let found = scaling(&a.unwrap()).weakest_diagonal;
        assert_eq!(found, Some(Weakest { row: 2, ratio: 0.125 }));
    }

    #[test]
    fn values_at_the_ends_of_the_range_have_a_ratio() {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1e-160, -1e140]).unwrap();
        let found = scaling(&a);
        assert_eq!((found.smallest, found.largest), (Some(1e-160), 1e140));
        let near = |ratio: Option<f64>| (ratio.unwrap() / 1e300 - 1.0).abs() < 1e-12;
        assert!(near(found.rows) && near(found.columns));
        assert_eq!(found.weakest_diagonal, None);
        let zero = Csr::new(1, 1, vec![0, 1], vec![0], vec![0.0]).unwrap();
        let found = scaling(&zero);
        assert_eq!((found.smallest, found.rows, found.zero_rows.count), (None, None, 1));
    }
}
