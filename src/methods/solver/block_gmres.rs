//! Restarted block GMRES(m) (Saad, Iterative Methods, 2nd edition, section 6.12): m blocks of basis vectors, made by a
//! block Arnoldi process. Basis vectors that depend on others are zero.

use super::block::{self, Block, operations};
use super::block_least_squares::BlockLeastSquares;
use super::gmres::EXHAUSTED;
use super::gram::{self, negated};
use super::{MAX_RESTART, Method};
use crate::base::choices::Side;
use crate::base::error::{Error, Result};
use crate::base::setting::Setting;
use crate::compute::krylov::stop::{ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::multivectors::Own;
use crate::compute::{Coef, Operations};
use crate::matrix::equilibration::largest;

pub(crate) const METHOD: Method = Method {
    name: "block-gmres",
    summary: "restarted block GMRES(m) for several right-hand sides at once, left or right \
              preconditioned",
    uses: &[Setting::Side, Setting::Restart],
    several: true,
    monitors_preconditioned: true,
    vectors: |restart| restart + 4,
    compared: &[],
    ..Method::PLAIN
};

/// The part of a column's norm that one pass of Gram-Schmidt must leave: it loses as many digits.
const KEPT: f64 = 1e-2;

/// Block GMRES with its basis.
pub(super) struct BlockGmres<K: Operations> {
    settings: Settings,
    block: Block<K>,
    basis: Vec<K::Vector>,
    work: K::Vector,
    small: BlockLeastSquares,
}

impl<K: Operations> BlockGmres<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let m = settings.restart;
        if m == 0 || m > MAX_RESTART {
            return Err(Error::input(format!("restart {m} is outside 1..={MAX_RESTART}")));
        }
        let block = Block::new(k, settings.columns, n)?;
        Ok(Self {
            settings: settings.clone(),
            basis: (0..=m).map(|_| block.vector(k)).collect::<Result<_>>()?,
            work: block.vector(k)?,
            small: BlockLeastSquares::new(m, settings.columns),
            block,
        })
    }

    /// `basis[0] = R` of the side's system.
    fn start(&mut self, k: &K, s: &System<K>, x: &K::Vector) {
        let Self { block, basis, work, .. } = self;
        let columns = block.columns;
        let residual = |to: &mut K::Vector| {
            operations(k).product(s.a, columns, x, Some(s.b), to);
        };
        match self.settings.side {
            Side::Right => residual(&mut basis[0]),
            Side::Left => {
                residual(work);
                block.precondition(k, s, work, &mut basis[0]);
            }
        }
    }

    /// `basis[j + 1] = operator basis[j]`.
    fn expand(&mut self, k: &K, s: &System<K>, j: usize) {
        let Self { block, basis, work, .. } = self;
        let (head, tail) = basis.split_at_mut(j + 1);
        let (v, w) = (&head[j], &mut tail[0]);
        let columns = block.columns;
        let product = |x: &K::Vector, y: &mut K::Vector| {
            operations(k).product(s.a, columns, x, None, y);
        };
        match self.settings.side {
            Side::Right => {
                block.precondition(k, s, v, work);
                product(work, w);
            }
            Side::Left => {
                product(v, work);
                block.precondition(k, s, work, w);
            }
        }
    }

    /// Makes `basis[j + 1]` orthonormal, also to its predecessors. The answer is the block column of H.
    fn orthogonalise(&mut self, k: &K, j: usize) -> Vec<f64> {
        let Self { block, basis, .. } = self;
        let (ops, s) = (operations(k), block.columns);
        let (v, tail) = basis.split_at_mut(j + 1);
        let (v, w): (Vec<&K::Vector>, _) = (v.iter().collect(), &mut tail[0]);
        let pass = |w: &mut K::Vector| {
            let mut h = vec![0.0; v.len() * s * s];
            ops.grams(s, &v, w, &mut h);
            ops.update(s, Own::Kept, &v, &negated(&h), w);
            let r = block.orthonormalise(k, w);
            (h, r)
        };
        let (mut h, mut r) = pass(w);
        // a diagonal entry of R is what is left of a column
        let lost = (0..s).any(|c| {
            let before = h.iter().chain(&r).skip(c).step_by(s).map(|v| v * v).sum::<f64>().sqrt();
            r[c * s + c].abs() < KEPT * before
        });
        if lost {
            let (again, of_again) = pass(w);
            for (h, again) in h.chunks_exact_mut(s * s).zip(again.chunks_exact(s * s)) {
                let more = gram::times(again, &r, s);
                h.iter_mut().zip(more).for_each(|(h, more)| *h += more);
            }
            r = gram::times(&of_again, &r, s);
        }
        h.extend(r);
        h
    }

    /// `X += V Y`, or `X += M^-1 V Y` on the right.
    fn update(&mut self, k: &K, s: &System<K>, x: &mut K::Vector) {
        let (y, used) = (self.small.solve(), self.small.blocks());
        if used == 0 {
            return;
        }
        let Self { block, basis, work, .. } = self;
        // the last block of the basis is rebuilt before it is next read
        let (v, last) = basis.split_at_mut(used);
        let v: Vec<&K::Vector> = v.iter().collect();
        operations(k).update(block.columns, Own::Zero, &v, &y, work);
        match self.settings.side {
            Side::Left => k.axpby(Coef::ONE, work, Coef::ONE, x),
            Side::Right => {
                block.precondition(k, s, work, &mut last[0]);
                k.axpby(Coef::ONE, &last[0], Coef::ONE, x);
            }
        }
    }
}

impl<K: Operations> Solver<K> for BlockGmres<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let stop = self.settings.stop.clone();
        let remark = self.block.remark(s);
        k.fill(x, 0.0);
        self.start(k, s, x);
        let initial = self.block.norms(k, &self.basis[0]);
        let scale = largest(initial.iter().copied());
        let mut judge = ConvergenceMonitor::new(&stop, monitor, scale);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let end = loop {
            let r = self.block.orthonormalise(k, &mut self.basis[0]);
            self.small.reset(&r);
            let mut end = None;
            for j in 0..self.settings.restart {
                self.expand(k, s, j);
                let h = self.orthogonalise(k, j);
                self.small.add(&h);
                end = judge.step(block::worst(&self.small.residuals(), &initial) * scale);
                let square = h.len() - r.len();
                if h[square..].iter().all(|v| *v == 0.0) {
                    // the space is invariant and yet the residual is not zero
                    end = end.or(Some(SolveEnd::Breakdown(EXHAUSTED)));
                }
                if end.is_some() {
                    break;
                }
            }
            if !matches!(end, Some(SolveEnd::Diverged)) {
                self.update(k, s, x);
            }
            if let Some(end) = end.or_else(|| judge.cycle()) {
                break end;
            }
            self.start(k, s, x);
            let residual = block::worst(&self.block.norms(k, &self.basis[0]), &initial);
            if !residual.is_finite() {
                break SolveEnd::Diverged;
            }
            if residual == 0.0 {
                break SolveEnd::Converged;
            }
        };
        Outcome { remark, ..judge.outcome(end) }
    }
}
