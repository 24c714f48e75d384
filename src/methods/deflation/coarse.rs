//! The coarse matrix `E = Z' A Z` and its inverse.

use crate::compute::{Backend, FactorInfo};
use std::sync::Arc;

use super::vectors::{NONE, Vectors};
use crate::base::choices::{FactorPrecision, Format, LevelRule, MAX_FILL};
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::compute::Trisolve;
use crate::matrix::pattern::scalar_pattern;
use crate::matrix::{Csr, Sums};
use crate::symbolic::{FillPattern, iluk};

/// Vectors up to which the inverse of E is dense.
const DENSE: usize = 512;

/// A pivot of the scaled E below this says that a vector depends on those before it.
const DEPENDENT: f64 = 1e-11;

/// `Z' (A Z)`, in the order of columns.
pub(super) fn matrix(az: &Csr, vectors: &Vectors) -> Result<Csr> {
    let k = vectors.count;
    let mut terms: Vec<Vec<(u32, f64)>> = vec![Vec::new(); k];
    for (i, &of) in vectors.of.iter().enumerate().filter(|(_, of)| **of != NONE) {
        let (columns, values) = az.row(i);
        let to = &mut terms[of as usize];
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
            let (inverse, dependent) = inverse(e)?;
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

/// The inverse of E, scaled to a unit diagonal for the elimination; vectors that depend on those before
/// them have zero rows and columns. Second, how many those are.
fn inverse(e: &Csr) -> Result<(Csr, usize)> {
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
    // Gauss-Jordan: E is definite where A is, and the order that of the vectors
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
    use crate::base::choices::ReadAs;
    use crate::problem::load;

    #[test]
    fn the_inverse_is_one_and_leaves_out_what_depends() {
        let a = load("poisson3d:3x3x2", ReadAs::Expanded).unwrap().matrix;
        let (x, dependent) = inverse(&a).unwrap();
        let product = a.times(&x, Threads::One).unwrap();
        for i in 0..18 {
            for j in 0..18 {
                let want = f64::from(u8::from(i == j));
                assert!((product.get(i, j).unwrap_or(0.0) - want).abs() < 1e-14);
            }
        }
        assert_eq!(dependent, 0);
        // singular: constants in the null space; the last row goes
        let a = load("bubbly:3x2x1,bubbles=0,boundary=neumann", ReadAs::Expanded).unwrap().matrix;
        let (x, dependent) = inverse(&a).unwrap();
        assert_eq!((dependent, x.row(5).0.len(), x.get(0, 5)), (1, 0, None));
        let again = a.times(&x, Threads::One).unwrap().times(&a, Threads::One).unwrap();
        for i in 0..6 {
            for j in 0..6 {
                let of = |m: &Csr| m.get(i, j).unwrap_or(0.0);
                assert!((of(&again) - of(&a)).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn factors_without_dropping_are_known_as_such() {
        let a = load("poisson3d:7x6x5", ReadAs::Expanded).unwrap().matrix;
        assert!(exact(&a).is_ok());
    }
}
