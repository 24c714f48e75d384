//! Every preconditioner, and deflation.

use std::sync::Arc;

use super::operations::{here, scaled, there, unknown};
use super::{Bench, LIMIT, SINGLE_LIMIT, patterns};
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::case::{Case, FactorPrecision, ReadAs, Trisolve};
use crate::compute::Backend;
use crate::compute::krylov::Projection;
use crate::matrix::Csr;
use crate::methods::deflation::{Deflation, Vectors};
use crate::methods::precond;
use crate::methods::precond::{Setup, Takes};
use crate::problem;
use crate::symbolic::FillPattern;

/// Rounding of methods in which products follow products.
const CHAIN_LIMIT: f64 = 10.0 * LIMIT;

impl<K: Backend + 'static> Bench<'_, K> {
    /// One application of each, with the values of the setup and with new ones.
    pub(super) fn preconditioners(&mut self, trisolves: &[Trisolve]) -> Result<()> {
        for &(spec, b, _) in self.sizes.systems {
            let a = problem::load(spec, ReadAs::Expanded)?.matrix;
            let r = self.random(a.rows());
            for text in precond::all().chain(precond::compared()) {
                let coloured = precond::has_own_order(&text);
                let algorithms = if coloured { trisolves } else { &trisolves[..1] };
                for &trisolve in algorithms {
                    let of = |trisolve| Case {
                        precond: text.clone(),
                        block_size: b,
                        trisolve,
                        ..Case::default()
                    };
                    // a definite matrix or none
                    if precond::takes(&text) == Some(Takes::Symmetric) && a.asymmetry().is_some() {
                        continue;
                    }
                    if precond::name(&text) == precond::dilu::METHOD.name
                        && !precond::dilu::is_there(self.k, &a.in_blocks(b))
                    {
                        continue;
                    }
                    if precond::reads_pivots(&text) && self.k.device().contains("cuSPARSE") {
                        continue;
                    }
                    let got = applied(self.k, &a, &of(trisolve), &r)?;
                    let want = applied(&self.cpu, &a, &of(Trisolve::AUTO), &r)?;
                    let check = format!("{text}, {spec}, b {b}, {trisolve:?}");
                    self.found(check, &got, &want, CHAIN_LIMIT);
                }
            }
        }
        self.colours(trisolves)
    }

    /// Solves by colours with factors of random matrices: one colour or many, rows longer than any part of them
    /// that is under way, columns far apart, and numbers in float32 and bfloat16.
    fn colours(&mut self, trisolves: &[Trisolve]) -> Result<()> {
        let patterns = ["chain", "band of 11", "random", "diagonal"];
        let diagonal = Arc::new(FillPattern::diagonal(3, 1));
        let shapes = patterns::PATTERNS.iter().filter(|(name, _)| patterns.contains(name));
        for (&(name, columns), &n) in
            shapes.flat_map(|p| self.sizes.coloured.iter().map(move |n| (p, n)))
        {
            let a = Arc::new(patterns::matrix(columns, n, 1, &mut self.rng));
            let r = self.random(n);
            for text in
                precond::all().filter(|text| precond::name(text) == precond::mcilu::METHOD.name)
            {
                for (factor_precision, limit) in [
                    (FactorPrecision::Float64, CHAIN_LIMIT),
                    (FactorPrecision::Float32, SINGLE_LIMIT),
                    (FactorPrecision::Bfloat16, SINGLE_LIMIT),
                ] {
                    let of = |trisolve| Case {
                        precond: text.clone(),
                        trisolve,
                        factor_precision,
                        ..Case::default()
                    };
                    let want = applied(&self.cpu, &a, &of(Trisolve::AUTO), &r)?;
                    for &trisolve in trisolves {
                        if self.k.ilu_analyse(&diagonal, trisolve, factor_precision).is_err() {
                            continue;
                        }
                        let got = applied(self.k, &a, &of(trisolve), &r)?;
                        let check =
                            format!("{text}, {name} of {n}, {factor_precision:?}, {trisolve:?}");
                        self.found(check, &got, &want, limit);
                    }
                }
            }
        }
        Ok(())
    }

    /// A projection, and a correction.
    pub(super) fn deflation(&mut self) -> Result<()> {
        if self.k.device().contains("cuSPARSE") {
            return Ok(());
        }
        for &(spec, b, choice) in self.sizes.systems {
            let p = problem::load(spec, ReadAs::Expanded)?;
            let v = Vectors::new(Threads::One, choice.parse()?, &p.matrix.in_blocks(b), p.grid)?;
            let (r, x) = (self.random(p.matrix.rows()), self.random(p.matrix.rows()));
            let got = deflated(self.k, &p.matrix, &v, [&r, &x])?;
            let want = deflated(&self.cpu, &p.matrix, &v, [&r, &x])?;
            for (part, (got, want)) in
                ["projection", "correction"].iter().zip(got.iter().zip(&want))
            {
                let check = format!("deflation {choice}, {part}, {spec}, b {b}");
                self.found(check, got, want, CHAIN_LIMIT);
            }
        }
        Ok(())
    }
}

fn applied<B: Backend + 'static>(k: &B, a: &Arc<Csr>, case: &Case, r: &[f64]) -> Result<Vec<f64>> {
    let a = &Arc::new(a.in_blocks(case.block_size));
    let setup = precond::lookup::<B>(&case.precond).ok_or_else(|| unknown(&case.precond))?;
    let failed = |e: String| crate::Error::run(format!("{}: {e}", case.precond));
    let settings = &case.preconditioning();
    let ready = setup(Setup { k, a, settings, phases: &mut () });
    let mut m = ready.map_err(|e| failed(format!("{e:?}")))?;
    let (n, mut all) = (a.rows(), Vec::new());
    let (r, mut z) = (there(k, r)?, k.vector(n)?);
    for turn in 0..3 {
        if turn == 2 {
            precond::renew(&mut m, k, &Arc::new(scaled(a)), settings, &mut ())
                .map_err(|e| failed(format!("{e:?}")))?;
        }
        k.fill(&mut z, f64::NAN);
        m.apply(k, &r, &mut z);
        all.extend(here(k, &z, n));
    }
    Ok(all)
}

/// P r, and x + Z E^-1 Z' r. Not of the projected r, of whose sums nothing but rounding is left: with jumps
/// E^-1 makes any size of that.
fn deflated<B: Backend>(k: &B, a: &Csr, v: &Vectors, [r, x]: [&[f64]; 2]) -> Result<[Vec<f64>; 2]> {
    let d = Deflation::new(k, a, v)?;
    let n = a.rows();
    let (mut r, mut x) = (there(k, r)?, there(k, x)?);
    d.correct(k, &r, &mut x);
    d.project(k, &mut r);
    Ok([here(k, &r, n), here(k, &x, n)])
}
