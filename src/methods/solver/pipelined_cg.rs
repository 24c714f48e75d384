//! Pipelined conjugate gradients (Ghysels and Vanroose 2014, Parallel Computing 40, algorithm 4): all sums of an
//! iteration are one reduction, which goes on during the preconditioner and the product.

use super::cg::{LONG_CYCLE, NEGATIVE_RHO, NO_PQ, NO_RHO};
use super::replacement::Replacement;
use super::{Method, from_zero, vectors_of};
use crate::base::error::Result;
use crate::base::setting::Setting;
use crate::compute::krylov::stop::{ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::{Coef, Operations, Slot};
use crate::methods::precond::{bilu, jacobi};

pub(crate) const METHOD: Method = Method {
    name: "pipelined-cg",
    summary: "conjugate gradients with one reduction an iteration, made during the product",
    uses: &[Setting::SymmetryTolerance],
    symmetric: true,
    vectors: |_| 12,
    compared: &[(jacobi::METHOD.name, 4, 0), (bilu::METHOD.name, 1, 0)],
    ..Method::PLAIN
};

/// `(r, u)`, `(w, u)` and `|r|`.
const RHO: Slot = Slot(0);
const DELTA: Slot = Slot(1);
const NORM: Slot = Slot(2);

/// Pipelined CG with its vectors. The monitored residual is the true one.
pub(super) struct PipelinedCg<K: Operations> {
    settings: Settings,
    vectors: Vectors<K>,
}

/// `u = M^-1 r`, `w = A u`, `s = A p`, `q = M^-1 s`, `z = A q`, by recurrences but for the residual's replacement;
/// `m = M^-1 w`, `n = A m`.
struct Vectors<K: Operations> {
    r: K::Vector,
    u: K::Vector,
    w: K::Vector,
    m: K::Vector,
    n: K::Vector,
    p: K::Vector,
    s: K::Vector,
    q: K::Vector,
    z: K::Vector,
}

impl<K: Operations> PipelinedCg<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let [r, u, w, m, n, p, s, q, z] = vectors_of(k, n)?;
        Ok(Self { settings: settings.clone(), vectors: Vectors { r, u, w, m, n, p, s, q, z } })
    }
}

impl<K: Operations> Solver<K> for PipelinedCg<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let Self { settings, vectors } = self;
        let initial = from_zero(k, s, x, &mut vectors.r, NORM);
        let mut judge = ConvergenceMonitor::new(&settings.stop, monitor, initial);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let mut replacement = Replacement::new();
        vectors.follow(k, s);
        let end = vectors.iterate(k, s, x, &mut judge, &mut replacement);
        Outcome { remark: replacement.remark(), ..judge.outcome(end) }
    }
}

impl<K: Operations> Vectors<K> {
    /// `u = M^-1 r`, `w = A u`.
    fn follow(&mut self, k: &K, s: &System<K>) {
        s.m.apply(k, &self.r, &mut self.u);
        k.spmv(s.a, &self.u, &mut self.w);
    }

    /// The sums of an iteration, and meanwhile `m = M^-1 w` and `n = A m`.
    fn measure(&mut self, k: &K, s: &System<K>) -> [f64; 3] {
        k.dot(&self.r, &self.u, RHO);
        k.dot(&self.w, &self.u, DELTA);
        k.norm(&self.r, NORM);
        k.begin_reduction();
        s.m.apply(k, &self.w, &mut self.m);
        k.spmv(s.a, &self.m, &mut self.n);
        let mut found = [0.0; 3];
        k.read(RHO, &mut found);
        found
    }

    /// `p = u + beta p`, and what follows it: by recurrences, or computed anew.
    fn turn(&mut self, k: &K, system: &System<K>, beta: f64, anew: bool) {
        let Self { u, w, m, n, p, s, q, z, .. } = self;
        let beta = Coef::Host(beta);
        k.axpby(Coef::ONE, u, beta, p);
        if anew {
            k.spmv(system.a, p, s);
            system.m.apply(k, s, q);
            k.spmv(system.a, q, z);
        } else {
            k.axpby(Coef::ONE, w, beta, s);
            k.axpby(Coef::ONE, m, beta, q);
            k.axpby(Coef::ONE, n, beta, z);
        }
    }

    /// A step of the length `alpha` along p.
    fn step(&mut self, k: &K, x: &mut K::Vector, alpha: f64) {
        let Self { r, u, w, p, s, q, z, .. } = self;
        k.axpby(Coef::Host(alpha), p, Coef::ONE, x);
        for (direction, to) in [(s, r), (q, u), (z, w)] {
            k.axpby(Coef::Host(-alpha), direction, Coef::ONE, to);
        }
    }

    /// Iterates from the residual `r` of x = 0; says why it ended.
    fn iterate(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        judge: &mut ConvergenceMonitor,
        replacement: &mut Replacement,
    ) -> SolveEnd {
        // rho and alpha of the step before
        let mut last: Option<[f64; 2]> = None;
        // whether r, u and w were computed anew after that step, and whether it has been judged
        let (mut anew, mut judged) = (false, true);
        loop {
            let [rho, delta, norm] = self.measure(k, s);
            let mut again = false;
            if !judged {
                match judge.step(norm) {
                    Some(SolveEnd::Converged) => {
                        let true_residual = (&mut self.r, NORM);
                        match replacement.verify(k, s, x, true_residual, norm, judge) {
                            Some(end) => return end,
                            None => again = true,
                        }
                    }
                    Some(end) => return end,
                    None => {}
                }
                if let Some(end) = judge.cycle_of(LONG_CYCLE) {
                    return end;
                }
            }
            // (p, A p) of the new p
            let (beta, pq) = last.map_or((0.0, delta), |[old, alpha]| {
                let beta = rho / old;
                (beta, delta - beta * rho / alpha)
            });
            if !again && (rho <= 0.0 || pq <= 0.0) {
                if anew || last.is_none() {
                    return SolveEnd::Breakdown(match rho {
                        0.0 => NO_RHO,
                        rho if rho < 0.0 => NEGATIVE_RHO,
                        _ => NO_PQ,
                    });
                }
                // it may be rounding alone
                k.residual(s.a, x, s.b, &mut self.r);
                replacement.note(judge.iterations);
                again = true;
            }
            judged = again;
            if again {
                anew = true;
                self.follow(k, s);
                continue;
            }
            self.turn(k, s, beta, anew);
            let alpha = rho / pq;
            self.step(k, x, alpha);
            last = Some([rho, alpha]);
            anew = replacement.is_due(judge.iterations + 1);
            if anew {
                k.residual(s.a, x, s.b, &mut self.r);
                self.follow(k, s);
            }
        }
    }
}
