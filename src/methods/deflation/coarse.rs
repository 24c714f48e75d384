//! The coarse matrix `E = Z' A Z` and its inverse.

use crate::compute::{Backend, FactorInfo};
use std::sync::Arc;

use super::vectors::{NONE, Vectors};
use crate::base::choices::{FactorPrecision, Format, LevelRule, MAX_FILL};
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::compute::Trisolve;
use crate::compute::cpu::sparse::dense::semidefinite_inverse;
use crate::matrix::pattern::scalar_pattern;
use crate::matrix::{Csr, Sums};
use crate::symbolic::{FillPattern, iluk};

/// Vectors up to which the inverse of E is dense.
const DENSE: usize = 512;

/// `Z' (A Z)`, in the order of columns. Sums have the order of the rows, whatever the threads.
pub(super) fn matrix(threads: Threads, az: &Csr, vectors: &Vectors) -> Result<Csr> {
    /// Rows that a task looks through.
    const PART: usize = 1 << 14;
    let (k, rows) = (vectors.count, vectors.of.len());
    let some = |&i: &usize| vectors.of[i] != NONE && !az.row(i).0.is_empty();
    let filled = threads.map(rows.div_ceil(PART), 1, |part| {
        (part * PART..rows.min((part + 1) * PART)).filter(some).collect::<Vec<_>>()
    });
    let mut terms: Vec<Vec<(u32, f64)>> = vec![Vec::new(); k];
    for i in filled.into_iter().flatten() {
        let (columns, values) = az.row(i);
        let to = &mut terms[vectors.of[i] as usize];
        to.extend(columns.iter().zip(values).map(|(&j, &v)| (j, v)));
        // so that no list grows to the number of all unknowns of a piece
        if to.len() > 4096 {
            *to = added(to);
        }
    }
    Csr::by_rows(
        Threads::One,
        [k, k],
        || Sums::new(k),
        |sums, i, to| {
            terms[i].iter().for_each(|&(j, v)| sums.add(j, v));
            sums.finish(to);
            Ok(())
        },
    )
}

/// One term for each column.
fn added(terms: &mut [(u32, f64)]) -> Vec<(u32, f64)> {
    terms.sort_by_key(|term| term.0);
    terms
        .chunk_by(|a, b| a.0 == b.0)
        .map(|of_column| (of_column[0].0, of_column.iter().map(|t| t.1).sum()))
        .collect()
}

/// `y = E^-1 t` for the sums t over the pieces, or over parts of them.
pub(super) enum Coarse<K: Backend> {
    /// The inverse times what adds the parts up, as one dense matrix.
    Dense(K::Matrix),
    /// What adds the parts up, and exact factors.
    Sparse(K::Matrix, K::BlockIlu, std::cell::RefCell<K::Vector>),
}

impl<K: Backend> Coarse<K> {
    /// For `parts`, whose row i has ones for the parts of piece i. Second, the vectors that depend on
    /// others and play no part.
    pub(super) fn new(k: &K, e: &Csr, parts: Csr) -> Result<(Self, usize)> {
        let count = e.rows();
        let stored = |m: Csr| k.matrix(&Arc::new(m), Format::Csr);
        if count <= DENSE {
            let (inverse, dependent) = semidefinite_inverse(e)?;
            let product = inverse.times(&parts, Threads::One)?;
            return Ok((Self::Dense(stored(product)?), dependent));
        }
        let pattern = Arc::new(exact(e)?);
        let way = Trisolve::AUTO;
        let mut ilu = k.ilu_analyse(&pattern, way, FactorPrecision::Float64)?;
        k.ilu_factor(&mut ilu, e, 0.0)
            .map_err(|why| Error::run(format!("the coarse matrix of deflation: {why}")))?;
        let sums = std::cell::RefCell::new(k.vector(count)?);
        Ok((Self::Sparse(stored(parts)?, ilu, sums), 0))
    }

    pub(super) fn apply(&self, k: &K, sums: &K::Vector, y: &mut K::Vector) {
        match self {
            Self::Dense(m) => k.spmv(m, sums, y),
            Self::Sparse(parts, ilu, added) => {
                let added = &mut *added.borrow_mut();
                k.spmv(parts, sums, added);
                k.ilu_apply(ilu, added, y);
            }
        }
    }

    /// Bytes that one application moves at least.
    pub(super) fn moved(&self, k: &K) -> usize {
        match self {
            Self::Dense(m) => k.matrix_bytes(m).moved,
            Self::Sparse(m, ilu, _) => k.matrix_bytes(m).moved + ilu.bytes().moved,
        }
    }
}

/// The pattern of the complete factors.
fn exact(e: &Csr) -> Result<FillPattern> {
    let point = scalar_pattern(e);
    let filled = |k| {
        iluk(&point, k, LevelRule::Min, 1 << 28).map_err(|at| {
            Error::memory(format!(
                "the coarse factors have {} entries up to row {}",
                at.entries, at.row
            ))
        })
    };
    let pattern = filled(MAX_FILL)?;
    let complete = (0..pattern.rows()).all(|i| {
        let behind = pattern.upper.row(i);
        behind.first().is_none_or(|&p| {
            let of_p = pattern.upper.row(p as usize);
            behind[1..].iter().all(|j| of_p.binary_search(j).is_ok())
        })
    });
    if complete {
        return Ok(pattern);
    }
    Err(Error::input(format!("the factors of the coarse matrix have fill levels above {MAX_FILL}"))
        .hint("choose fewer deflation vectors"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::deflation::{Choice, vectors};
    use crate::problem::samples::{matrix as sample, problem};

    #[test]
    fn terms_of_a_piece_are_added_up() {
        let p = problem("layered:64x64x64,layers=4,contrast=1e2");
        let z = Vectors::new(Threads::Pool, Choice::LevelSet, &p.matrix, p.grid).unwrap();
        let az = vectors::applied(Threads::Pool, &p.matrix, &z).unwrap();
        let e = matrix(Threads::Pool, &az, &z).unwrap();
        assert_eq!(e.rows(), 4);
        for piece in 0..4 {
            let mut want = [0.0; 4];
            for i in (0..z.of.len()).filter(|&i| z.of[i] == piece) {
                let (columns, values) = az.row(i);
                columns.iter().zip(values).for_each(|(&j, v)| want[j as usize] += v);
            }
            for (j, want) in want.iter().enumerate() {
                let found = e.get(piece as usize, j).unwrap_or(0.0);
                assert!((found - want).abs() < 1e-9 * 4096.0, "{piece} {j}: {found} {want}");
            }
        }
    }

    #[test]
    fn factors_without_dropping_are_known_as_such() {
        let a = sample("poisson3d:7x6x5");
        assert!(exact(&a).is_ok());
    }
}
