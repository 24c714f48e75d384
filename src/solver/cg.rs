//! Preconditioned conjugate gradients (Saad, Iterative Methods, 2nd edition, algorithm 9.1).

use super::stop::{End, Judge};
use super::{Monitor, Outcome, Settings, Solver, System};
use crate::backend::{Backend, Coef, Slot};
use crate::error::Result;

const RHO: [Slot; 2] = [Slot(0), Slot(1)];
/// `(p, A p)` and `|r|`, side by side: one read an iteration.
const PQ: Slot = Slot(2);
const NORM: Slot = Slot(3);

/// Iterations that make up a cycle when progress is judged.
pub(crate) const CYCLE: usize = 50;

/// CG with its vectors. The monitored residual is the true one, whatever the side.
pub(super) struct Cg<K: Backend> {
    settings: Settings,
    r: K::Vector,
    z: K::Vector,
    p: K::Vector,
    q: K::Vector,
}

impl<K: Backend> Cg<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let v = || k.vector(n);
        Ok(Self { settings: settings.clone(), r: v()?, z: v()?, p: v()?, q: v()? })
    }
}

impl<K: Backend> Solver<K> for Cg<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let Self { settings, r, z, p, q } = self;
        let mut scalars = [0.0; 4];
        k.fill(x, 0.0);
        k.copy(s.b, r);
        k.norm(r, NORM);
        k.read(RHO[0], &mut scalars);
        let mut judge = Judge::new(&settings.stop, monitor, scalars[3]);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        for iteration in 0.. {
            let (rho, old) = (RHO[iteration % 2], RHO[(iteration + 1) % 2]);
            // z = M^-1 r; rho = (r, z)
            s.m.apply(k, r, z);
            k.dot(r, z, rho);
            // p = z + (rho / rho_old) p
            let beta = if iteration == 0 { Coef::ZERO } else { Coef::Ratio(rho, old) };
            k.axpby(Coef::ONE, z, beta, p);
            // q = A p; alpha = rho / (p, q)
            k.spmv(s.a, p, q);
            k.dot(p, q, PQ);
            // x += alpha p; r -= alpha q
            k.axpby(Coef::Ratio(rho, PQ), p, Coef::ONE, x);
            k.axpby(Coef::NegRatio(rho, PQ), q, Coef::ONE, r);
            k.norm(r, NORM);
            k.read(RHO[0], &mut scalars);
            let (rho, pq) = (scalars[iteration % 2], scalars[2]);
            if rho == 0.0 {
                return judge.outcome(End::Breakdown("(r, M^-1 r) is zero"));
            }
            if pq <= 0.0 {
                let what = "(p, A p) is not positive: the matrix is not positive definite";
                return judge.outcome(End::Breakdown(what));
            }
            if let Some(end) = judge.step(scalars[3]) {
                return judge.outcome(end);
            }
            if judge.iterations.is_multiple_of(CYCLE)
                && let Some(end) = judge.cycle()
            {
                return judge.outcome(end);
            }
        }
        unreachable!("the iteration limit ends the loop")
    }
}
