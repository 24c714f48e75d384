//! From the end of a solve to status, residuals and solution.

use super::range::Scaled;
use super::scaling::Given;
use super::{Job, range, several, verdict};
use crate::compute::Operations;
use crate::compute::krylov::Outcome;
use crate::matrix::Csr;
use crate::matrix::equilibration::largest;
use crate::methods::precond::Shape;
use crate::methods::{precond, solver};

impl Job<'_> {
    /// Exponent of the power of two that turns norms that a solver monitors into those of the original system.
    pub(super) fn monitored_exponent(&self) -> i32 {
        let scaling = self.system.scaling;
        // M, but for the identity, is scaled with A
        let with_m = precond::shape(&self.case.precond) != Shape::Identity
            && solver::monitors_preconditioned(&self.case.solver, self.case.side);
        if with_m { scaling.of_solution() } else { scaling.b }
    }

    /// Records the residuals of a solve.
    pub(super) fn keep_history(&mut self, norms: impl IntoIterator<Item = f64>) {
        let exponent = self.monitored_exponent();
        let norms = norms.into_iter().map(|norm| range::times(norm, exponent));
        // files hold finite numbers alone
        self.record.convergence.residual_history = norms.take_while(|n| n.is_finite()).collect();
    }

    /// Recomputes the residual and sets status and residuals.
    pub(super) fn conclude<K: Operations>(&mut self, k: &K, x: &K::Vector, outcome: &Outcome) {
        let (columns, width) = (self.columns(), self.width(k));
        let mut solution = vec![0.0; self.unknowns * width];
        k.download(x, &mut solution);
        if width > columns {
            solution = several::resized(&solution, [width, columns], self.unknowns);
            let zero = width - columns;
            self.record.remark(format!("in {width} columns, {zero} of them zero: faster"));
        }
        self.judge(solution, outcome);
    }

    /// The same of a solution in the order of the problem, which may have padding.
    pub(super) fn judge(&mut self, mut solution: Vec<f64>, outcome: &Outcome) {
        let Scaled { matrix, b, .. } = self.system;
        // over ranks the system is a part, and the given one is whole
        let (matrix, b) = self.given.map_or((&***matrix, &**b), |given| (given.matrix, given.b));
        solution.truncate(b.len());
        if let Some(Given { equilibration, .. }) = self.given {
            equilibration.solution(&mut solution);
        }
        let true_residual = relative_residual(matrix, &solution, b);
        self.judged(true_residual, outcome);
        self.solved(solution);
    }

    /// What a true residual says of a solve.
    pub(super) fn judged(&mut self, true_residual: f64, outcome: &Outcome) {
        let finite = |v: f64| v.is_finite().then_some(v);
        let record = &mut self.record;
        record.convergence.iterations = outcome.iterations;
        record.convergence.monitored_residual = finite(outcome.residual);
        record.convergence.true_residual = finite(true_residual);
        let (status, reason) = verdict::verdict(self.case, outcome, true_residual);
        record.status = status;
        for remark in [reason, outcome.remark.clone()].into_iter().flatten() {
            record.remark(remark);
        }
    }

    /// Keeps the solution of the system as it was solved.
    pub(super) fn solved(&mut self, mut solution: Vec<f64>) {
        let exponent = self.system.scaling.of_solution();
        if exponent != 0 {
            for v in &mut solution {
                *v = range::times(*v, exponent);
            }
        }
        self.x = Some(solution);
    }
}

/// `|b - A x| / |b|` in plain float64 arithmetic, of the worst of several columns.
fn relative_residual(a: &Csr, x: &[f64], b: &[f64]) -> f64 {
    let columns = (b.len() / a.rows().max(1)).max(1);
    if columns == 1 {
        return of_column(a, x, b);
    }
    let column =
        |v: &[f64], j: usize| -> Vec<f64> { v.iter().skip(j).step_by(columns).copied().collect() };
    largest((0..columns).map(|j| of_column(a, &column(x, j), &column(b, j))))
}

/// The same of one column; 0 for b = 0.
fn of_column(a: &Csr, x: &[f64], b: &[f64]) -> f64 {
    let mut r = vec![0.0; b.len()];
    a.multiply(x, &mut r);
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    let top = norm(&mut b.iter().zip(&r).map(|(b, r)| b - r));
    let bottom = norm(&mut b.iter().copied());
    if bottom == 0.0 { top } else { top / bottom }
}
