//! Block conjugate gradients (O'Leary, Linear Algebra and its Applications 29, 1980) in the form of Dubrulle (Electronic
//! Transactions on Numerical Analysis 12, 2001, BCGrQ): residuals are `R = W C`, and the columns of `W F^-1` are
//! orthonormal in the inner product of M^-1, so that columns which converge at different speed do no harm. Those that
//! depend on others become zero.

use super::Method;
use super::block::{self, Block, operations};
use super::cg::{LONG_CYCLE, NEGATIVE_RHO, NO_PQ, NO_RHO};
use super::gram::{self, Cholesky, Dependent, negated, transposed};
use crate::base::error::Result;
use crate::base::setting::Setting;
use crate::compute::Operations;
use crate::compute::krylov::stop::{ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::multivectors::{Own, Step};
use crate::compute::preconditioner::Form;
use crate::matrix::equilibration::largest;

pub(crate) const METHOD: Method = Method {
    name: "block-cg",
    summary: "block conjugate gradients for several right-hand sides at once, symmetric positive \
              definite systems",
    uses: &[Setting::SymmetryTolerance],
    symmetric: true,
    several: true,
    vectors: |_| 7,
    compared: &[],
    ..Method::PLAIN
};

/// Pivots up to this are of residuals that depend on others.
const DEPENDENT: f64 = 1e-12;
/// True residuals this many times the tolerance are iterated on.
const DRIFTED: f64 = 2.0;

/// Block CG with its multivectors. The monitored residual is that of the worst column.
pub(super) struct BlockCg<K: Operations> {
    settings: Settings,
    block: Block<K>,
    /// Residuals, before the small matrix that multiplies them.
    w: K::Vector,
    /// Preconditioned residuals, and what A makes of the directions.
    z: K::Vector,
    /// Directions.
    p: K::Vector,
}

impl<K: Operations> BlockCg<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let block = Block::new(k, settings.columns, n)?;
        let v = || block.vector(k);
        let (w, z, p) = (v()?, v()?, v()?);
        Ok(Self { settings: settings.clone(), block, w, z, p })
    }
}

impl<K: Operations> Solver<K> for BlockCg<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let stop = self.settings.stop.clone();
        k.fill(x, 0.0);
        k.copy(s.b, &mut self.w);
        let initial = self.block.norms(k, &self.w);
        let scale = largest(initial.iter().copied());
        let mut judge = ConvergenceMonitor::new(&stop, monitor, scale);
        let joins = matches!(s.m.form(), Form::Factors { .. }) && operations(k).joins_on_one();
        let alone = joins.then(|| "one thread iterates: two are slower".into());
        let remark = self.block.remark(s).or(alone);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let mut before = f64::INFINITY;
        let end = loop {
            let end = self.iterate(k, s, x, &initial, &mut judge);
            if end != SolveEnd::Converged || stop.rtol == 0.0 {
                break end;
            }
            operations(k).product(s.a, self.block.columns, x, Some(s.b), &mut self.w);
            let residual = block::worst(&self.block.norms(k, &self.w), &initial);
            // what was dropped, and what rounding has added, is left to solve for
            if residual.is_nan() || residual <= DRIFTED * stop.rtol || residual > before / 2.0 {
                break end;
            }
            before = residual;
        };
        Outcome { remark, ..judge.outcome(end) }
    }
}

impl<K: Operations> BlockCg<K> {
    /// Iterates from the residuals W; says why it ended.
    fn iterate(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        initial: &[f64],
        judge: &mut ConvergenceMonitor,
    ) -> SolveEnd {
        let Self { block, w, z, p, .. } = self;
        let (ops, columns) = (operations(k), block.columns);
        let scale = largest(initial.iter().copied());
        // R = W C, where C has no part in the first residuals
        let mut c = gram::identity(columns);
        let mut grams = vec![0.0; 2 * columns * columns];
        let mut of_q = vec![0.0; columns * columns];
        // what P is multiplied by before it is added to X, in the pass that changes P
        let mut add: Option<Vec<f64>> = None;
        block.precondition(k, s, w, z);
        ops.grams(columns, &[&*z, &*w], w, &mut grams);
        let end = loop {
            // Z = M^-1 W; F' F = W' Z; the residuals are W F^-1 (F C)
            let (of_z, of_w) = grams.split_at(columns * columns);
            if add.is_some() {
                let residual = block::worst(&residuals(of_w, &c, columns), initial);
                let end = judge.step(residual * scale);
                if let Some(end) = end.or_else(|| judge.cycle_of(LONG_CYCLE)) {
                    break end;
                }
            }
            if of_z.iter().step_by(columns + 1).any(|v| *v < 0.0) {
                break SolveEnd::Breakdown(NEGATIVE_RHO);
            }
            let Cholesky { factor, inverse, rank, .. } =
                gram::cholesky(of_z, columns, DEPENDENT, Dependent::Dropped);
            if rank == 0 {
                break SolveEnd::Breakdown(NO_RHO);
            }
            c = gram::times(&factor, &c, columns);
            // P = Z F^-1 + P F'; Q = A P, in the place of Z
            let of_p = transposed(&factor, columns);
            let own = if add.is_none() { Own::Zero } else { Own::Times(&of_p) };
            let step = Step { add: add.as_deref(), own, coef: &inverse };
            ops.directions(s.a, columns, step, [&mut *x, &mut *p, &mut *z], &mut of_q);
            add = None;
            let diagonal = |of: &[f64], j: usize| of[j * (columns + 1)];
            if (0..columns).any(|j| diagonal(&of_q, j) <= 0.0 && diagonal(&factor, j) > 0.0) {
                break SolveEnd::Breakdown(NO_PQ);
            }
            // X += P (P' Q)^-1 C; W = W F^-1 - Q (P' Q)^-1
            let delta = gram::inverse(&of_q, columns, DEPENDENT);
            add = Some(gram::times(&delta, &c, columns));
            let update = (Own::Times(&inverse), &*negated(&delta));
            block.residuals(k, s, update, [&mut *w, &mut *z], &mut grams);
        };
        if let Some(add) = add {
            block.add(k, p, &add, x);
        }
        end
    }
}

/// Norms of the columns of `W C`, of which `g` is `W' W`.
fn residuals(g: &[f64], c: &[f64], columns: usize) -> Vec<f64> {
    let gc = gram::times(g, c, columns);
    let squared = |j: usize| (0..columns).map(|i| c[i * columns + j] * gc[i * columns + j]).sum();
    (0..columns).map(|j| gram::root(squared(j))).collect()
}
