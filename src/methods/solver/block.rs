//! What block methods have in common: multivectors, their preconditioner, and orthonormal columns.

use super::gram::{self, Cholesky, Dependent};
use crate::base::error::{Error, Result};
use crate::compute::Operations;
use crate::compute::krylov::System;
use crate::compute::multivectors::{MOST_COLUMNS, Multivectors, Own};
use crate::compute::preconditioner::Form;
use crate::matrix::equilibration::largest;

/// Pivots up to this are of columns that one pass does not tell from dependent ones.
const UNSURE: f64 = 1e-10;
/// Pivots from here on leave columns orthonormal up to a few roundings.
const SURE: f64 = 1e-2;
/// The part of a column's norm that is rounding when all else is in the other columns.
const ROUNDING: f64 = 64.0 * f64::EPSILON;
/// Passes after which columns that are still not orthonormal are dropped.
const PASSES: usize = 4;

/// Multivectors of a backend and vectors for a preconditioner that takes one column at a time.
pub(super) struct Block<K: Operations> {
    pub(super) columns: usize,
    n: usize,
    single: Option<[K::Vector; 2]>,
}

/// The operations of `k` on multivectors.
pub(super) fn operations<K: Operations>(k: &K) -> &dyn Multivectors<K> {
    k.multivectors().expect("checked when the method was made")
}

impl<K: Operations> Block<K> {
    /// For so many right-hand sides of n unknowns each.
    ///
    /// # Errors
    /// When the backend has no multivectors, or there are too many columns.
    pub(super) fn new(k: &K, columns: usize, n: usize) -> Result<Self> {
        if k.multivectors().is_none() {
            return Err(Error::input("block methods run on `cpu` and `cpu-mt`"));
        }
        if columns > MOST_COLUMNS {
            return Err(Error::input(format!(
                "{columns} right-hand sides, of which {MOST_COLUMNS} are the most"
            )));
        }
        Ok(Self { columns, n, single: None })
    }

    /// A multivector of zeros.
    pub(super) fn vector(&self, k: &K) -> Result<K::Vector> {
        k.vector(self.n * self.columns)
    }

    /// `Z = M^-1 R`; column by column with a preconditioner that has no factors in the order of the vectors.
    pub(super) fn precondition(&mut self, k: &K, s: &System<K>, r: &K::Vector, z: &mut K::Vector) {
        let (ops, columns) = (operations(k), self.columns);
        match s.m.form() {
            Form::Identity => return k.copy(r, z),
            Form::Factors { ilu, .. } => return ops.solve(ilu, columns, r, z),
            Form::Other => {}
        }
        if self.single.is_none() {
            let two = || Ok::<_, Error>([k.vector(self.n)?, k.vector(self.n)?]);
            self.single = two().ok();
        }
        let [of_r, of_z] = self.single.as_mut().expect("memory for two vectors");
        for j in 0..columns {
            ops.column(columns, j, r, of_r);
            s.m.apply(k, of_r, of_z);
            ops.set_column(columns, j, of_z, z);
        }
    }

    /// `W = own + Q coef`, `Q = M^-1 W`, and `Q' W` and `W' W` one after the other in `grams`.
    pub(super) fn residuals(
        &mut self,
        k: &K,
        s: &System<K>,
        (own, coef): (Own, &[f64]),
        [w, q]: [&mut K::Vector; 2],
        grams: &mut [f64],
    ) {
        let (ops, columns) = (operations(k), self.columns);
        if let Form::Factors { ilu, symmetric } = s.m.form() {
            return ops.residuals((ilu, symmetric), columns, (own, coef), [w, q], grams);
        }
        ops.update(columns, own, &[q], coef, w);
        self.precondition(k, s, w, q);
        ops.grams(columns, &[&*q, &*w], w, grams);
    }

    /// What there is to say of the preconditioner.
    pub(super) fn remark(&self, s: &System<K>) -> Option<String> {
        let single = matches!(s.m.form(), Form::Other) && self.columns > 1;
        single.then(|| "the preconditioner is applied column by column".into())
    }

    /// `X' W`.
    pub(super) fn gram(&self, k: &K, x: &K::Vector, w: &K::Vector) -> Vec<f64> {
        let mut g = vec![0.0; self.columns * self.columns];
        operations(k).grams(self.columns, &[x], w, &mut g);
        g
    }

    /// Norms of the columns.
    pub(super) fn norms(&self, k: &K, w: &K::Vector) -> Vec<f64> {
        gram::norms(&self.gram(k, w, w), self.columns)
    }

    /// `W += X C`.
    pub(super) fn add(&self, k: &K, x: &K::Vector, c: &[f64], w: &mut K::Vector) {
        operations(k).update(self.columns, Own::Kept, &[x], c, w);
    }

    /// Makes the columns of W orthonormal, or zero where they depend on others: Cholesky's factorisation of `W' W`,
    /// repeated as long as it loses more than rounding (Fukaya et al., SIAM Journal on Scientific Computing 42,
    /// 2020, with pivoting in place of shifts). Returns R, by which the new W is multiplied to give the old one.
    pub(super) fn orthonormalise(&self, k: &K, w: &mut K::Vector) -> Vec<f64> {
        let s = self.columns;
        let (mut r, mut first) = (gram::identity(s), Vec::new());
        for pass in 1.. {
            let mut g = self.gram(k, w, w);
            let norms = gram::norms(&g, s);
            if pass == 1 {
                first.clone_from(&norms);
            }
            for j in (0..s).filter(|&j| norms[j] <= ROUNDING * first[j]) {
                for i in 0..s {
                    (g[i * s + j], g[j * s + i]) = (0.0, 0.0);
                }
            }
            let dependent = if pass < PASSES { Dependent::Left } else { Dependent::Dropped };
            let Cholesky { factor, inverse, rank, smallest } =
                gram::cholesky(&g, s, UNSURE, dependent);
            operations(k).update(s, Own::Times(&inverse), &[], &[], w);
            // norms from here on are those of normalised columns
            for (j, norm) in first.iter_mut().enumerate().filter(|(j, _)| factor[j * s + j] > 0.0) {
                *norm /= factor[j * s + j];
            }
            r = gram::times(&factor, &r, s);
            let complete = rank == g.iter().step_by(s + 1).filter(|v| **v > 0.0).count();
            if pass == PASSES || (complete && smallest >= SURE) {
                break;
            }
        }
        r
    }
}

/// The largest ratio of residuals to initial ones; columns that were zero have none.
pub(super) fn worst(norms: &[f64], initial: &[f64]) -> f64 {
    let ratios = norms.iter().zip(initial).filter(|(_, initial)| **initial > 0.0);
    largest(ratios.map(|(norm, initial)| norm / initial))
}
