//! Right-preconditioned BiCGStab (van der Vorst 1992; Saad, 2nd edition, algorithm 7.7).

use super::cg::CYCLE;
use super::stop::{End, Judge};
use super::{Monitor, Outcome, Settings, Solver, System};
use crate::backend::{Backend, Coef, Slot};
use crate::error::Result;

const RHO: [Slot; 2] = [Slot(0), Slot(1)];
/// `(r0, v)`.
const RV: Slot = Slot(2);
const TS: Slot = Slot(3);
const TT: Slot = Slot(4);
const NORM: Slot = Slot(5);
const BETA: Slot = Slot(6);
const SCALARS: usize = 7;

/// BiCGStab with its vectors. A full step with two products counts as one iteration; the monitored
/// residual is the true one.
pub(super) struct BiCgStab<K: Backend> {
    settings: Settings,
    r: K::Vector,
    shadow: K::Vector,
    p: K::Vector,
    v: K::Vector,
    t: K::Vector,
    hat: K::Vector,
}

impl<K: Backend> BiCgStab<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let v = || k.vector(n);
        Ok(Self {
            settings: settings.clone(),
            r: v()?,
            shadow: v()?,
            p: v()?,
            v: v()?,
            t: v()?,
            hat: v()?,
        })
    }
}

impl<K: Backend> Solver<K> for BiCgStab<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let Self { settings, r, shadow, p, v, t, hat } = self;
        let mut scalars = [0.0; SCALARS];
        k.fill(x, 0.0);
        k.copy(s.b, r);
        k.copy(r, shadow);
        k.norm(r, NORM);
        k.dot(shadow, r, RHO[0]);
        k.copy(r, p);
        k.read(RHO[0], &mut scalars);
        let mut judge = Judge::new(&settings.stop, monitor, scalars[5]);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        for iteration in 0.. {
            let (rho, next) = (RHO[iteration % 2], RHO[(iteration + 1) % 2]);
            // v = A M^-1 p; alpha = rho / (r0, v)
            s.m.apply(k, p, hat);
            k.spmv(s.a, hat, v);
            k.dot(shadow, v, RV);
            k.axpby(Coef::Ratio(rho, RV), hat, Coef::ONE, x);
            // s = r - alpha v, in the place of r
            k.axpby(Coef::NegRatio(rho, RV), v, Coef::ONE, r);
            // t = A M^-1 s; omega = (t, s) / (t, t)
            s.m.apply(k, r, hat);
            k.spmv(s.a, hat, t);
            k.dot(t, r, TS);
            k.dot(t, t, TT);
            k.axpby(Coef::Ratio(TS, TT), hat, Coef::ONE, x);
            k.axpby(Coef::NegRatio(TS, TT), t, Coef::ONE, r);
            k.norm(r, NORM);
            // beta = (rho' / rho) (alpha / omega) = rho' (t, t) / ((r0, v) (t, s))
            k.dot(shadow, r, next);
            k.ratio(BETA, &[next, TT], &[RV, TS]);
            // p = r + beta (p - omega v)
            k.axpby(Coef::NegRatio(TS, TT), v, Coef::ONE, p);
            k.axpby(Coef::ONE, r, Coef::Slot(BETA), p);
            k.read(RHO[0], &mut scalars);
            let next = scalars[(iteration + 1) % 2];
            let [_, _, rv, ts, _, norm, _] = scalars;
            // a step whose half already solved the system has t = 0, omega = 0 and norm 0
            if let Some(end) = judge.step(norm) {
                return judge.outcome(end);
            }
            for (value, what) in [
                (rv, "(r0, A M^-1 p) is zero"),
                (ts, "omega is zero"),
                (next, "rho is zero: the shadow residual is orthogonal to the residual"),
            ] {
                if value == 0.0 {
                    return judge.outcome(End::Breakdown(what));
                }
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
