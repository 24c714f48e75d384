//! Pipelined BiCGStab, right preconditioned (Cools and Vanroose 2017, Parallel Computing 65, algorithm 9): two
//! reductions an iteration, each of which goes on during a preconditioner and a product.

use super::bicgstab::BREAKDOWNS;
use super::replacement::Replacement;
use super::{Method, from_zero, vectors_of};
use crate::base::error::Result;
use crate::compute::krylov::stop::{CYCLE, ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::{Coef, Operations, Slot};
use crate::methods::precond::bilu;

pub(crate) const METHOD: Method = Method {
    name: "pipelined-bicgstab",
    summary: "BiCGStab with two reductions an iteration, made during the products; right preconditioned",
    begins_anew: true,
    vectors: |_| 15,
    compared: &[(bilu::METHOD.name, 2, 1)],
    ..Method::PLAIN
};

/// `(q, y)` and `(y, y)`, whose quotient is omega.
const QY: Slot = Slot(0);
const YY: Slot = Slot(1);
const OMEGA: Coef = Coef::Ratio(QY, YY);
const MINUS_OMEGA: Coef = Coef::NegRatio(QY, YY);
/// Products of the shadow residual with r, w, s and z, then `|r|`.
const SHADOWS: Slot = Slot(2);
const NORM: Slot = Slot(6);
const SCALARS: usize = 7;

/// Pipelined BiCGStab with its vectors. A full step with two products counts as one iteration; the monitored
/// residual is the true one. Where rho, omega or `(r0, A M^-1 p)` vanishes, the method begins anew with the
/// residual at hand as shadow residual.
pub(super) struct PipelinedBiCgStab<K: Operations> {
    settings: Settings,
    vectors: Vectors<K>,
}

/// `w = A M^-1 r`, `t = A M^-1 w`, `s = A M^-1 p`, `z = A M^-1 s`, `v = A M^-1 z`; hats are behind `M^-1`. All but
/// `hat_w`, t, `hat_z` and v by recurrences, but for the residual's replacement.
struct Vectors<K: Operations> {
    r: K::Vector,
    hat_r: K::Vector,
    w: K::Vector,
    hat_w: K::Vector,
    t: K::Vector,
    hat_p: K::Vector,
    s: K::Vector,
    hat_s: K::Vector,
    z: K::Vector,
    hat_z: K::Vector,
    v: K::Vector,
    shadow: K::Vector,
}

/// Coefficients of the step that follows.
#[derive(Clone, Copy)]
struct Step {
    rho: f64,
    alpha: f64,
    beta: f64,
}

impl<K: Operations> PipelinedBiCgStab<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let [r, hat_r, w, hat_w, t, hat_p, s, hat_s, z, hat_z, v, shadow] = vectors_of(k, n)?;
        let vectors = Vectors { r, hat_r, w, hat_w, t, hat_p, s, hat_s, z, hat_z, v, shadow };
        Ok(Self { settings: settings.clone(), vectors })
    }
}

impl<K: Operations> Vectors<K> {
    /// `hat_r = M^-1 r`, `w = A hat_r`.
    fn follow(&mut self, k: &K, s: &System<K>) {
        s.m.apply(k, &self.r, &mut self.hat_r);
        k.spmv(s.a, &self.hat_r, &mut self.w);
    }

    /// The sums at the end of an iteration, and meanwhile `hat_w = M^-1 w` and `t = A hat_w`.
    fn measure(&mut self, k: &K, system: &System<K>) -> [f64; SCALARS] {
        for (i, of) in [&self.r, &self.w, &self.s, &self.z].into_iter().enumerate() {
            k.dot(&self.shadow, of, SHADOWS.plus(i));
        }
        k.norm(&self.r, NORM);
        k.begin_reduction();
        system.m.apply(k, &self.w, &mut self.hat_w);
        k.spmv(system.a, &self.hat_w, &mut self.t);
        let mut found = [0.0; SCALARS];
        k.read(QY, &mut found);
        found
    }

    /// The first half of a step: directions, by recurrences or computed anew, and `r - alpha s`.
    fn turn(&mut self, k: &K, system: &System<K>, Step { alpha, beta, .. }: Step, anew: bool) {
        let Self { r, hat_r, w, hat_w, t, hat_p, s, hat_s, z, hat_z, v, .. } = self;
        // new = of + beta (old - omega after)
        let turned = |of: &K::Vector, after: &K::Vector, old: &mut K::Vector| {
            if beta != 0.0 {
                k.axpby(MINUS_OMEGA, after, Coef::ONE, old);
            }
            k.axpby(Coef::ONE, of, Coef::Host(beta), old);
        };
        turned(hat_r, hat_s, hat_p);
        if anew {
            k.spmv(system.a, hat_p, s);
            system.m.apply(k, s, hat_s);
            k.spmv(system.a, hat_s, z);
        } else {
            turned(w, z, s);
            turned(hat_w, hat_z, hat_s);
            turned(t, v, z);
        }
        // q = r - alpha s, its hat and y = w - alpha z in the places of r and w
        for (direction, to) in [(&*s, r), (hat_s, hat_r), (z, w)] {
            k.axpby(Coef::Host(-alpha), direction, Coef::ONE, to);
        }
    }

    /// The second half: along the residual that is left, which omega makes as small as it can.
    fn step(&mut self, k: &K, system: &System<K>, x: &mut K::Vector, alpha: f64) {
        let Self { r, hat_r, w, hat_w, t, hat_p, z, hat_z, v, .. } = self;
        k.dot(r, w, QY);
        k.dot(w, w, YY);
        k.begin_reduction();
        system.m.apply(k, z, hat_z);
        k.spmv(system.a, hat_z, v);
        k.axpby(Coef::Host(alpha), hat_p, Coef::ONE, x);
        // what follows q - omega y: these two are found anew before they are next read
        k.axpby(Coef::Host(-alpha), hat_z, Coef::ONE, hat_w);
        k.axpby(Coef::Host(-alpha), v, Coef::ONE, t);
        k.axpby(OMEGA, hat_r, Coef::ONE, x);
        for (along, to) in [(&*w, r), (hat_w, hat_r)] {
            k.axpby(MINUS_OMEGA, along, Coef::ONE, to);
        }
        k.axpby(MINUS_OMEGA, t, Coef::ONE, w);
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
        let mut last: Option<Step> = None;
        // whether r and w were computed anew after the last step, and whether it has been judged
        let (mut anew, mut judged) = (false, true);
        k.copy(&self.r, &mut self.shadow);
        loop {
            let found = self.measure(k, s);
            let [.., norm] = found;
            if !judged {
                match judge.step(norm) {
                    Some(SolveEnd::Converged) => {
                        let true_residual = (&mut self.r, NORM);
                        if let Some(end) = replacement.verify(k, s, x, true_residual, norm, judge) {
                            return end;
                        }
                        (anew, judged) = (true, true);
                        self.follow(k, s);
                        continue;
                    }
                    Some(end) => return end,
                    None => {}
                }
                if let Some(end) = judge.cycle_of(CYCLE) {
                    return end;
                }
            }
            let (next, broken) = next(&found, last);
            if let Some(end) = judge.recurrence(broken) {
                return end;
            }
            if broken.is_some() {
                // s, z and the hats count for nothing where there was no step
                (last, judged) = (None, true);
                k.residual(s.a, x, s.b, &mut self.r);
                k.copy(&self.r, &mut self.shadow);
                self.follow(k, s);
                continue;
            }
            self.turn(k, s, next, anew);
            self.step(k, s, x, next.alpha);
            (last, judged) = (Some(next), false);
            anew = replacement.is_due(judge.iterations + 1);
            if anew {
                k.residual(s.a, x, s.b, &mut self.r);
                self.follow(k, s);
            }
        }
    }
}

/// The step that follows what was found, after `last`, and what vanished, if anything did.
fn next(found: &[f64; SCALARS], last: Option<Step>) -> (Step, Option<&'static str>) {
    let [qy, yy, rho, rw, rs, rz, _] = *found;
    let (omega, beta) = last.map_or((1.0, 0.0), |last| {
        let omega = if yy == 0.0 { 0.0 } else { qy / yy };
        (omega, rho / last.rho * (last.alpha / omega))
    });
    // (r0, A M^-1 p) of the new p
    let rv = if last.is_none() { rw } else { rw + beta * (rs - omega * rz) };
    let zero = [rv, omega, rho].iter().position(|v| *v == 0.0);
    // an omega of zero makes the others none
    let zero = if omega == 0.0 { Some(1) } else { zero };
    (Step { rho, alpha: rho / rv, beta }, zero.map(|at| BREAKDOWNS[at]))
}

impl<K: Operations> Solver<K> for PipelinedBiCgStab<K> {
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
        let outcome = judge.outcome(end);
        let remarks = outcome.remark.into_iter().chain(replacement.remark());
        let remark = remarks.reduce(|one, other| format!("{one}; {other}"));
        Outcome { remark, ..outcome }
    }
}
