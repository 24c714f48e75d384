//! What setups compute with sparse matrices.

use rand::Rng;

use super::operations::pattern;
use super::{Bench, Finding, LIMIT, patterns};
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::Backend;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::setup::{Part, Triangles};
use crate::matrix::pattern::block_pattern;
use crate::matrix::{Csr, SYMMETRY_TOLERANCE};
use crate::symbolic::{Rest, multi_elimination, symmetrised};

/// A matrix as numbers: one that tells patterns apart, and the values.
fn numbers(a: &Csr) -> Vec<f64> {
    let places = a.row_ptr().iter().chain(a.col_ind());
    let hash = places.fold(0_u64, |hash, &at| (hash ^ u64::from(at)).wrapping_mul(0x100_0000_01b3));
    [(hash >> 11) as f64]
        .into_iter()
        .map(|h| h / 2f64.powi(53))
        .chain(a.values().iter().copied())
        .collect()
}

/// The text of a failure.
fn told(failure: &SetupFailure) -> crate::Error {
    crate::Error::run(format!("{failure:?}"))
}

/// One operation and its result.
type Made = (&'static str, Result<Vec<f64>>);

/// Everything that `k` makes of `a`.
fn all<B: Backend>(k: &B, a: &Csr) -> Result<Vec<Made>> {
    let s = k.sparse(a)?;
    let host = |m: B::Sparse| k.to_host(&m).map(|m| numbers(&m));
    let tried =
        |m: std::result::Result<B::Sparse, SetupFailure>| m.map_err(|e| told(&e)).and_then(host);
    let turned = k.transposed(&s)?;
    let lower = k.scaled(&s, Part::Lower);
    let mut made = vec![
        ("largest sum", k.largest_row_sum(&s).map(|v| vec![v])),
        ("product", host(k.times(&s, &turned)?)),
        ("mean", host(k.mean(&s, &turned)?)),
        ("scaled", tried(k.scaled(&s, Part::All))),
        ("scaled upper part", tried(k.scaled(&s, Part::Upper))),
        ("inverse diagonal", tried(k.inverse_diagonal(&s))),
        ("least squares", tried(k.least_squares_inverse(&turned))),
    ];
    if let Ok(lower) = &lower {
        made.push(("identity less a triangle", host(k.identity_minus(lower)?)));
        made.push(("triangular inverse", tried(k.triangular_inverse(lower))));
    }
    made.push(("scaled lower part", tried(lower)));
    let symmetric = k.mean(&s, &turned)?;
    let asymmetry = |m| -> Result<Vec<f64>> {
        let found = k.asymmetry(m, SYMMETRY_TOLERANCE)?;
        Ok(found.map_or_else(Vec::new, |at| vec![at.row as f64, at.column as f64, at.value]))
    };
    made.push(("asymmetry", asymmetry(&s)));
    made.push(("symmetry", asymmetry(&symmetric)));
    for (q, name) in [(1, "factorised"), (2, "factorised, q 2"), (3, "factorised, q 3")] {
        let g = k.lower_power(&symmetric, q).and_then(|p| k.factorised_inverse(&symmetric, &p));
        made.push((name, tried(g)));
    }
    let coupled = block_pattern(a);
    let coupled = symmetrised(Threads::One, &coupled);
    let sets = multi_elimination(Threads::One, &coupled, 2, Rest::Diagonal, usize::MAX);
    let sets = sets.expect("there is no limit");
    let ordered = k.permuted(&s, &sets.sets.rows)?;
    made.push(("product of Gauss-Seidel", tried(k.gauss_seidel(&s, 1.3))));
    for (levels, name) in [(1, "the same of what is left"), (2, "the same of two sets")] {
        made.push((name, tried(k.with_gauss_seidel(&ordered, &sets.sizes[..levels]))));
    }
    made.push(("another order", host(ordered)));
    let fill = pattern(a, 1);
    let names = ["triangle", "inverse pivots", "upper triangle"];
    match k.triangles(&fill, a, 0.0) {
        Ok(Triangles { lower, inverse_diagonal, upper }) => {
            for (name, m) in names.into_iter().zip([lower, inverse_diagonal, upper]) {
                made.push((name, host(m)));
            }
        }
        Err(why) => made.push((names[0], Err(told(&why)))),
    }
    Ok(made)
}

impl<K: Backend + 'static> Bench<'_, K> {
    /// Every operation on matrices of many shapes, and what is said of those without an inverse.
    pub(super) fn algebra(&mut self) -> Result<()> {
        for &(name, columns) in patterns::PATTERNS.iter().chain(patterns::ONE_TRIANGLE) {
            for &n in self.sizes.sparse {
                let b = if n % 3 == 0 { 3 } else { 1 };
                let a = patterns::matrix(columns, n / b, b, &mut self.rng);
                self.algebra_of(&format!("{name} of {n}, b {b}"), &a)?;
            }
        }
        let a = patterns::matrix(patterns::PATTERNS[3].1, 61, 1, &mut self.rng);
        let at = self.rng.random_range(0..a.rows());
        let change = |to: f64| {
            let mut a = a.clone();
            let i = a.row_ptr()[at] as usize + a.row(at).0.partition_point(|&j| (j as usize) < at);
            a.values_mut()[i] = to;
            a
        };
        self.algebra_of("a negative diagonal", &change(-40.0))?;
        self.algebra_of("a zero on the diagonal", &change(0.0))?;
        let without = a.filtered(Threads::One, |i, j, v| (i != at || j != at).then_some(v));
        self.algebra_of("no diagonal in a row", &without)
    }

    fn algebra_of(&mut self, shape: &str, a: &Csr) -> Result<()> {
        let (got, want) = (all(self.k, a)?, all(&self.cpu, a)?);
        for ((name, got), (_, want)) in got.into_iter().zip(want) {
            let check = format!("{name}, {shape}");
            match (got, want) {
                (Ok(got), Ok(want)) if got.len() == want.len() => {
                    self.found(check, &got, &want, LIMIT);
                }
                (Err(got), Err(want)) if got == want => {
                    (self.report)(Finding { check, difference: 0.0, limit: 0.0 });
                }
                (got, want) => {
                    let text = |r: Result<Vec<f64>>| match r {
                        Ok(numbers) => format!("{} numbers", numbers.len()),
                        Err(why) => why.to_string(),
                    };
                    let check = format!("{check}: {}, on the CPU {}", text(got), text(want));
                    (self.report)(Finding { check, difference: f64::NAN, limit: 0.0 });
                }
            }
        }
        Ok(())
    }
}
