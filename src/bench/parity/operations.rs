//! What the comparison runs: each function does the same on every backend and returns its numbers.

use std::sync::Arc;

use crate::base::error::Result;
use crate::case::{Case, FactorPrecision, Format, LevelRule, Trisolve};
use crate::compute::krylov::{Stop, System};
use crate::compute::{Backend, Coef, Slot, Step};
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern;
use crate::methods::precond::Setup;
use crate::methods::{precond, solver};
use crate::symbolic::{FillPattern, iluk};

/// `x` on a backend.
pub(super) fn there<B: Backend>(k: &B, x: &[f64]) -> Result<B::Vector> {
    let mut v = k.vector(x.len())?;
    k.upload(x, &mut v);
    Ok(v)
}

pub(super) fn here<B: Backend>(k: &B, v: &B::Vector, n: usize) -> Vec<f64> {
    let mut x = vec![f64::NAN; n];
    k.download(v, &mut x);
    x
}

/// Everything that turns vectors into vectors, with every kind of coefficient.
pub(super) fn simple<B: Backend>(k: &B, x: &[f64], y: &[f64]) -> Result<Vec<f64>> {
    let n = x.len();
    let (x, mut y) = (there(k, x)?, there(k, y)?);
    let mut all = Vec::new();
    let mut z = k.vector(n)?;
    k.fill(&mut z, 0.5);
    all.extend(here(k, &z, n));
    k.copy(&x, &mut z);
    all.extend(here(k, &z, n));
    k.norm(&x, Slot(3));
    k.norm(&y, Slot(4));
    for (a, b) in [
        (Coef::ONE, Coef::Host(-0.25)),
        (Coef::Slot(Slot(3)), Coef::ZERO),
        (Coef::Ratio(Slot(3), Slot(4)), Coef::ONE),
        (Coef::ONE, Coef::Reciprocal(Slot(4))),
        (Coef::NegRatio(Slot(4), Slot(3)), Coef::Slot(Slot(3))),
        (Coef::ZERO, Coef::Host(0.5)),
    ] {
        k.axpby(a, &x, b, &mut y);
        all.extend(here(k, &y, n));
    }
    k.scale(Coef::Reciprocal(Slot(3)), &mut y);
    all.extend(here(k, &y, n));
    Ok(all)
}

pub(super) fn scalars<B: Backend>(k: &B, x: &[f64], y: &[f64]) -> Result<Vec<f64>> {
    let (x, y) = (there(k, x)?, there(k, y)?);
    k.norm(&x, Slot(0));
    k.norm(&y, Slot(1));
    k.dot(&x, &x, Slot(2));
    k.dot(&y, &y, Slot(3));
    k.ratio(Slot(4), &[Slot(0), Slot(1)], &[Slot(2)]);
    k.ratio(Slot(5), &[Slot(3)], &[]);
    let mut s = vec![f64::NAN; 6];
    k.read(Slot(0), &mut s);
    // every operation, on what the steps before have left
    k.scalars(&[
        Step::hypot(Slot(8), Coef::NegRatio(Slot(0), Slot(1)), Coef::ZERO),
        Step::sum(Slot(9), Coef::Slot(Slot(8)), Coef::ONE),
        Step::product(Slot(8), Coef::Ratio(Slot(8), Slot(9)), Coef::Slot(Slot(9))),
        Step::hypot(Slot(10), Coef::Slot(Slot(8)), Coef::Slot(Slot(9))),
        Step::set(Slot(11), Coef::Reciprocal(Slot(10))),
    ]);
    let mut made = [f64::NAN; 4];
    k.read(Slot(8), &mut made);
    s.extend(made);
    // x . y may cancel: it is compared on the scale of the norms
    k.dot(&x, &y, Slot(7));
    let mut product = [f64::NAN];
    k.read(Slot(7), &mut product);
    s.push(product[0] / (s[0] * s[1]).max(f64::MIN_POSITIVE));
    Ok(s)
}

pub(super) fn basis_operations<B: Backend>(
    k: &B,
    basis: &[Vec<f64>],
    w: &[f64],
) -> Result<Vec<f64>> {
    let (n, m) = (w.len(), basis.len());
    let v = basis.iter().map(|v| there(k, v)).collect::<Result<Vec<_>>>()?;
    let mut w = there(k, w)?;
    k.multi_dot(&v, &w, Slot(8));
    let mut all = vec![f64::NAN; m + 1];
    k.read(Slot(8), &mut all[..m]);
    // coefficients of the size of one: projections are small numbers with large errors
    let coef: Vec<f64> = (0..m).map(|j| 1.0 / (1.0 + j as f64)).collect();
    k.combine(&v, &coef, &mut w);
    all.extend(here(k, &w, n));
    k.multi_axpy_norm(&v, Slot(8), &mut w, Slot(7));
    k.read(Slot(7), &mut all[m..=m]);
    all.extend(here(k, &w, n));
    Ok(all)
}

pub(super) fn products<B: Backend>(
    k: &B,
    a: &Arc<Csr>,
    format: Format,
    x: &[f64],
    rhs: &[f64],
) -> Result<Vec<f64>> {
    let n = x.len();
    let (mut matrix, x, rhs) = (k.matrix(a, format)?, there(k, x)?, there(k, rhs)?);
    let mut y = k.vector(n)?;
    k.fill(&mut y, f64::NAN);
    k.spmv(&matrix, &x, &mut y);
    let mut all = here(k, &y, n);
    k.fill(&mut y, f64::NAN);
    k.residual(&matrix, &x, &rhs, &mut y);
    all.extend(here(k, &y, n));
    // new values in the old places
    k.matrix_values(&mut matrix, &Arc::new(scaled(a)))?;
    k.spmv(&matrix, &x, &mut y);
    all.extend(here(k, &y, n));
    Ok(all)
}

/// Other values on the pattern of `a`: entries times 2, 3, 4 and 5 by their places, mirrored ones alike, and diagonals
/// by 5.
pub(super) fn scaled(a: &Csr) -> Csr {
    let mut scaled = a.clone();
    for i in 0..a.rows() {
        for at in a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize {
            let j = a.col_ind()[at] as usize;
            scaled.values_mut()[at] *= if i == j { 5.0 } else { 2.0 + ((i + j) % 4) as f64 };
        }
    }
    scaled
}

pub(super) fn pattern(a: &Csr, fill: usize) -> Arc<FillPattern> {
    pattern_by(a, fill, LevelRule::Min)
}

/// The same by a rule of levels.
pub(super) fn pattern_by(a: &Csr, fill: usize, rule: LevelRule) -> Arc<FillPattern> {
    Arc::new(iluk(&block_pattern(a), fill, rule, usize::MAX).expect("small"))
}

/// The factors to compute.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) pattern: &'a Arc<FillPattern>,
    pub(super) algorithm: Trisolve,
    pub(super) precision: FactorPrecision,
}

/// Three solves with factors made twice, so that nothing may be left over from the one before.
pub(super) fn solve_with<B: Backend>(
    k: &B,
    a: &Csr,
    request: &Request,
    r: &[f64],
) -> Result<Vec<f64>> {
    let Request { pattern, algorithm, precision } = *request;
    let n = r.len();
    let mut ilu = k.ilu_analyse(pattern, algorithm, precision)?;
    let mut all = Vec::new();
    for a in [a, a, &scaled(a)] {
        if let Err(broken) = k.ilu_factor(&mut ilu, a, 0.0) {
            return Err(crate::Error::run(broken.to_string()));
        }
        let (mut from, mut to) = (there(k, r)?, k.vector(n)?);
        for _ in 0..2 {
            k.fill(&mut to, f64::NAN);
            k.ilu_apply(&ilu, &from, &mut to);
            all.extend(here(k, &to, n));
            std::mem::swap(&mut from, &mut to);
        }
    }
    Ok(all)
}

pub(super) fn unknown(name: &str) -> crate::Error {
    crate::Error::run(format!("`{name}` is not registered"))
}

pub(super) fn iterations<B: Backend + 'static>(
    k: &B,
    a: &Arc<Csr>,
    case: &Case,
    rhs: &[f64],
) -> Result<usize> {
    let a = &Arc::new(a.in_blocks(case.block_size));
    let setup = precond::lookup::<B>(&case.precond).ok_or_else(|| unknown(&case.precond))?;
    let m = setup(Setup { k, a, settings: &case.preconditioning(), phases: &mut () })
        .map_err(|e| crate::Error::run(format!("{e:?}")))?;
    let matrix = k.matrix(a, case.format)?;
    let (b, mut x) = (there(k, rhs)?, k.vector(a.rows())?);
    let stop = Stop { rtol: 1e-8, max_iterations: 500, time_limit_s: None };
    let settings = case.solver_settings(stop);
    let build = solver::lookup::<B>(&case.solver).ok_or_else(|| unknown(&case.solver))?;
    let mut method = build(k, &settings, a.rows())?;
    let system = System { a: &matrix, m: &*m, b: &b, transposed: None, deflation: None };
    let outcome = method.solve(k, &system, &mut x, &mut ());
    k.check()?;
    Ok(outcome.iterations)
}
