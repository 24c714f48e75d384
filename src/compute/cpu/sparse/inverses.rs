//! Approximate inverses on patterns, each row from a small dense system.

use super::dense;
use super::diagonal::whole_blocks;
use crate::base::threads::Threads;
use crate::compute::preconditioner::SetupFailure;
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;

/// Columns of a row of a factorised inverse up to which its small system is solved.
const LONGEST: usize = 2000;

/// Numbers of a least-squares problem up to which it is solved.
const LARGEST: usize = 4_000_000;

/// What the row of a factor is found with.
#[derive(Default)]
struct RowSpace {
    columns: Vec<u32>,
    matrix: Vec<f64>,
    row: Vec<f64>,
}

/// G on the lower triangle of `pattern`.
///
/// Row i has the columns J up to i: `A(J, J) y = e` for the last unit vector e, and the row is
/// `y / sqrt(y_i)`. With the Cholesky factor C of `A(J, J)` that is the last row of C^-1.
pub(crate) fn factorised(
    threads: Threads,
    a: &Csr,
    pattern: &Pattern,
) -> Result<Csr, SetupFailure> {
    let a = &*whole_blocks(threads, a);
    let (b, view) = (a.block_size(), pattern.view());
    a.by_rows_like(threads, RowSpace::default, |space, i, to| {
        let RowSpace { columns, matrix, row } = space;
        columns.clear();
        let blocks = view.row(i / b).iter().flat_map(|&j| j * b as u32..(j + 1) * b as u32);
        columns.extend(blocks.take_while(|&j| j as usize <= i));
        let m = columns.len();
        if m > LONGEST {
            let message = format!("row {i} of the inverse has {m} columns: the limit is {LONGEST}");
            return Err(SetupFailure::Broken(message));
        }
        gather(a, columns, matrix);
        dense::cholesky(matrix, m).map_err(|(at, pivot)| {
            let (i, at) = (i + 1, columns[at] + 1);
            let test = format!("pivot {pivot:.3e} of unknown {at} in the system of row {i}");
            SetupFailure::Broken(format!("the matrix is not positive definite: {test}"))
        })?;
        row.clear();
        row.resize(m, 0.0);
        dense::last_row(matrix, m, row);
        columns.iter().zip(&*row).for_each(|(&j, &v)| to.push(j, v));
        Ok(())
    })
}

/// `A(J, J)` for increasing J, row by row; the lower triangle alone is filled.
fn gather(a: &Csr, columns: &[u32], to: &mut Vec<f64>) {
    let m = columns.len();
    to.clear();
    to.resize(m * m, 0.0);
    for (r, &i) in columns.iter().enumerate() {
        let (of_row, values) = a.row(i as usize);
        let mut at = 0;
        for (c, &j) in columns[..=r].iter().enumerate() {
            while at < of_row.len() && of_row[at] < j {
                at += 1;
            }
            if at < of_row.len() && of_row[at] == j {
                to[r * m + c] = values[at];
            }
        }
    }
}

/// What a column is found with.
#[derive(Default)]
struct ColumnSpace {
    rows: Vec<u32>,
    matrix: Vec<f64>,
    right: Vec<f64>,
}

/// M' from A'. Column j of M has the rows J that column j of A has: `A(I, J) m = e_j` in the sense of
/// least squares, I being all rows in which the columns J of A have entries.
pub(crate) fn least_squares(threads: Threads, mirrored: &Csr) -> Result<Csr, SetupFailure> {
    let mirrored = &*whole_blocks(threads, mirrored);
    mirrored.by_rows_like(threads, ColumnSpace::default, |space, j, to| {
        let ColumnSpace { rows, matrix, right } = space;
        let (columns, _) = mirrored.row(j);
        rows.clear();
        for &k in columns {
            rows.extend_from_slice(mirrored.row(k as usize).0);
        }
        rows.sort_unstable();
        rows.dedup();
        let (m, count) = (rows.len(), columns.len());
        let broken = |why: &str| SetupFailure::Broken(format!("column {} of A: {why}", j + 1));
        if m * count > LARGEST {
            return Err(broken("too many rows and columns for a least-squares problem"));
        }
        if m < count {
            return Err(broken("fewer rows than unknowns in its least-squares problem"));
        }
        matrix.clear();
        matrix.resize(m * count, 0.0);
        for (c, &k) in columns.iter().enumerate() {
            let (of_column, values) = mirrored.row(k as usize);
            let mut r = 0;
            for (&i, &v) in of_column.iter().zip(values) {
                while rows[r] < i {
                    r += 1;
                }
                matrix[r * count + c] = v;
            }
        }
        right.clear();
        right.resize(m, 0.0);
        if let Ok(at) = rows.binary_search(&(j as u32)) {
            right[at] = 1.0;
        }
        dense::least_squares(matrix, m, count, right)
            .map_err(|_| broken("the columns near it are dependent"))?;
        columns.iter().zip(&*right).for_each(|(&k, &v)| to.push(k, v));
        Ok(())
    })
}

/// W with `(W L)_ij = I_ij` on the pattern of a unit lower triangle L, whose diagonal is not stored.
///
/// Row i has the columns J of row i of L: `w L(J, J) = e` for the last unit vector e.
pub fn triangular(threads: Threads, lower: &Csr) -> Result<Csr, SetupFailure> {
    lower.by_rows_like(threads, Vec::new, |w: &mut Vec<f64>, i, to| {
        let (columns, of_row) = lower.row(i);
        w.clear();
        // the last unknown is 1
        w.extend(of_row.iter().map(|v| -v));
        for s in (0..columns.len()).rev() {
            let (inner, values) = lower.row(columns[s] as usize);
            let (mut t, value) = (0, w[s]);
            for (&j, &v) in inner.iter().zip(values) {
                while t < s && columns[t] < j {
                    t += 1;
                }
                if t < s && columns[t] == j {
                    w[t] -= value * v;
                }
            }
        }
        columns.iter().zip(&*w).for_each(|(&j, &v)| to.push(j, v));
        to.push(i as u32, 1.0);
        Ok(())
    })
}
