//! Sparse approximate inverse (Grote and Huckle 1997, without adaption): M minimises `|A M - I|_F` among
//! the matrices with the pattern of A, a least-squares problem for each of its columns.

use super::approximate::Chain;
use super::diagonal::whole_blocks;
use super::options::{Parameter, Range};
use super::{Failure, Phase, Ready, Setup, dense};
use crate::backend::Backend;
use crate::matrix::{Csr, Sums};
use crate::symbolic::Threads;

pub(super) const PARAMETERS: &[Parameter] = &[Parameter {
    key: "symmetric",
    default: "no",
    range: Range::Words(&["no", "yes"]),
    summary: "yes: (M + M') / 2, which conjugate gradients need",
}];

/// Numbers of a least-squares problem up to which it is solved.
const LARGEST: usize = 4_000_000;

#[allow(clippy::needless_pass_by_value)] // signature of the registry
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let symmetric = s.options()?.word("symmetric") == "yes";
    let b = s.case.block_size;
    s.phases.begin(Phase::Numeric);
    let m = s.k.on_host(|threads| -> Result<_, Failure> {
        let mirrored = inverse(threads, &whole_blocks(threads, s.a, b).transposed())?;
        let m = mirrored.transposed();
        Ok(if symmetric { mean(threads, &m, &mirrored)? } else { m })
    })?;
    s.phases.begin(Phase::Analysis);
    Ok(Box::new(Chain::one(&s, m)?))
}

/// What a column is found with.
#[derive(Default)]
struct Space {
    rows: Vec<u32>,
    matrix: Vec<f64>,
    right: Vec<f64>,
}

/// M' from A'. Column j of M has the rows J that column j of A has: `A(I, J) m = e_j` in the sense of
/// least squares, I being all rows in which the columns J of A have entries.
pub(super) fn inverse(threads: Threads, mirrored: &Csr) -> Result<Csr, Failure> {
    let n = mirrored.rows();
    Csr::by_rows(threads, [n, n], Space::default, |space, j, to| {
        let Space { rows, matrix, right } = space;
        let (columns, _) = mirrored.row(j);
        rows.clear();
        for &k in columns {
            rows.extend_from_slice(mirrored.row(k as usize).0);
        }
        rows.sort_unstable();
        rows.dedup();
        let (m, count) = (rows.len(), columns.len());
        let broken = |why: &str| Failure::Broken(format!("column {} of A: {why}", j + 1));
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

/// Half the sum of two matrices.
fn mean(threads: Threads, a: &Csr, b: &Csr) -> Result<Csr, Failure> {
    let n = a.rows();
    Csr::by_rows(
        threads,
        [n, n],
        || Sums::new(n),
        |sums, i, to| {
            for m in [a, b] {
                let (columns, values) = m.row(i);
                columns.iter().zip(values).for_each(|(&j, &v)| sums.add(j, v / 2.0));
            }
            sums.finish(to);
            Ok(())
        },
    )
}
