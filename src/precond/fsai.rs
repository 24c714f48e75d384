//! Factorised sparse approximate inverse (Kolotilina and Yeremin 1993): `M^-1 = G' G`, where G has the
//! pattern of the lower triangle of `|A|^q`, minimises `|I - G C|_F` over it for the exact Cholesky
//! factor C, and is scaled so that `G A G'` has the diagonal 1.

use super::approximate::Chain;
use super::diagonal::whole_blocks;
use super::options::{Parameter, Range};
use super::{Failure, Phase, Ready, Setup, dense};
use crate::backend::Backend;
use crate::matrix::Csr;
use crate::measure::memory_free;
use crate::symbolic::{Pattern, Threads, block_pattern_on, power};

pub(super) const PARAMETERS: &[Parameter] = &[Parameter {
    key: "power",
    default: "1",
    range: Range::Whole(1, 8),
    summary: "q of the pattern |A|^q",
}];

/// Columns of a row of G up to which its small system is solved.
const LONGEST: usize = 2000;

#[allow(clippy::needless_pass_by_value)] // signature of the registry
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let q = s.options()?.whole("power");
    let b = s.case.block_size;
    s.phases.begin(Phase::Symbolic);
    if let Some(found) = s.k.on_host(|_| s.a.asymmetry()) {
        return Err(found.into());
    }
    let free = s.k.memory_free().min(memory_free());
    let each = 12 * b * b;
    let pattern = s.k.on_host(|threads| {
        let point = block_pattern_on(threads, s.a, b);
        power(threads, &point, q, free / each)
    });
    let pattern =
        pattern.map_err(|at| Failure::TooLarge { at, needed: each * at.entries, free })?;
    s.phases.begin(Phase::Numeric);
    let (g, gt) = s.k.on_host(|threads| -> Result<_, Failure> {
        let g = factor(threads, &whole_blocks(threads, s.a, b), &pattern, b)?;
        let gt = g.transposed();
        Ok((g, gt))
    })?;
    s.phases.begin(Phase::Analysis);
    Ok(Box::new(Chain::two(&s, g, gt)?))
}

/// What the row of a factor is found with.
#[derive(Default)]
struct Space {
    columns: Vec<u32>,
    matrix: Vec<f64>,
    row: Vec<f64>,
}

/// G on the lower triangle of `pattern`, of blocks of `b`.
///
/// Row i has the columns J up to i: `A(J, J) y = e` for the last unit vector e, and the row is
/// `y / sqrt(y_i)`. With the Cholesky factor C of `A(J, J)` that is the last row of C^-1.
pub(super) fn factor(
    threads: Threads,
    a: &Csr,
    pattern: &Pattern,
    b: usize,
) -> Result<Csr, Failure> {
    let (n, view) = (a.rows(), pattern.view());
    Csr::by_rows(threads, [n, n], Space::default, |space, i, to| {
        let Space { columns, matrix, row } = space;
        columns.clear();
        let blocks = view.row(i / b).iter().flat_map(|&j| j * b as u32..(j + 1) * b as u32);
        columns.extend(blocks.take_while(|&j| j as usize <= i));
        let m = columns.len();
        if m > LONGEST {
            let message = format!("row {i} of the inverse has {m} columns: the limit is {LONGEST}");
            return Err(Failure::Broken(message));
        }
        gather(a, columns, matrix);
        dense::cholesky(matrix, m).map_err(|(at, pivot)| {
            let (i, at) = (i + 1, columns[at] + 1);
            let test = format!("pivot {pivot:.3e} of unknown {at} in the system of row {i}");
            Failure::Broken(format!("the matrix is not positive definite: {test}"))
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
