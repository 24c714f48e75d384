//! Systems and patterns for tests.

use super::generator::{Generated, Generator, Piece};
use super::{Problem, load};
use crate::base::choices::{LevelRule, Partition, ReadAs};
use crate::base::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern;
use crate::symbolic::partition::divide;
use crate::symbolic::{FillPattern, iluk};
use std::sync::Arc;

/// The system that `spec` names.
pub(crate) fn problem(spec: &str) -> Problem {
    load(spec, ReadAs::Expanded).expect(spec)
}

/// Its matrix.
pub(crate) fn matrix(spec: &str) -> Arc<Csr> {
    problem(spec).matrix
}

/// Why there is none.
pub(crate) fn no_problem(spec: &str) -> Error {
    load(spec, ReadAs::Expanded).expect_err(spec)
}

/// What a generator makes of its arguments.
pub(super) fn generated(generator: &'static Generator, arguments: &str) -> Result<Generated> {
    generator.arguments(arguments).and_then(|a| (generator.build)(&a, Piece::WHOLE))
}

/// Why it makes nothing of them.
pub(super) fn refused(generator: &'static Generator, arguments: &str) -> String {
    generated(generator, arguments).unwrap_err().to_string()
}

/// The pattern of block ILU(k) of the blocks of `a`.
pub(crate) fn pattern(a: &Csr, k: usize) -> Arc<FillPattern> {
    Arc::new(iluk(&block_pattern(a), k, LevelRule::Min, usize::MAX).expect("small"))
}

/// A matrix like `a`, without some of its entries and with other values, and with one
/// entry more where `outside` has a row and a column.
pub(crate) fn thinned(a: &Csr, outside: Option<(usize, u32)>) -> Csr {
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.rows() {
        let (cols, row) = a.row(i);
        for (&j, &v) in cols.iter().zip(row) {
            if !(i + j as usize).is_multiple_of(11) || i == j as usize {
                col_ind.push(j);
                values.push(v + 0.01 * (i % 7) as f64);
            }
        }
        if let Some((_, column)) = outside.filter(|&(row, _)| row == i) {
            col_ind.push(column);
            values.push(3.0);
        }
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new(a.rows(), a.rows(), row_ptr, col_ind, values).expect("valid")
}

/// A system in the order of its subdomains, with their first block rows.
pub(crate) struct Divided {
    pub(crate) a: Csr,
    pub(crate) starts: Vec<usize>,
}

/// The grid of a problem cut into boxes, numbered one by one.
pub(crate) fn boxes(spec: &str, block_size: usize, count: usize) -> Divided {
    let problem = problem(spec);
    let a = problem.matrix.in_blocks(block_size);
    let found = divide(&a, Partition::Boxes, problem.grid, count, false).unwrap();
    let a = match found.unknowns(block_size) {
        Some(order) => a.permuted(&order).in_blocks(block_size),
        None => a, // the boxes are ranges of rows
    };
    Divided { a, starts: found.starts }
}

/// A vector of numbers in [-1, 1).
pub(crate) fn centred(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 / 504.5 - 1.0).collect()
}

/// One of numbers in [1, 2).
pub(crate) fn positive(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + ((i * 7919 + 13) % 1009) as f64 / 1009.0).collect()
}
