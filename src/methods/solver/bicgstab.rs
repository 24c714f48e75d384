//! Right-preconditioned BiCGStab (van der Vorst 1992; Saad, 2nd edition, algorithm 7.7).

use super::{Advised, Method, Steps, read_meanwhile};
use crate::base::error::Result;
use crate::compute::krylov::stop::{CYCLE, ConvergenceMonitor};
use crate::compute::krylov::{Monitor, Outcome, Persistent, Settings, Solver, System};
use crate::compute::{AT_ONCE, Coef, Operations, Slot};
use crate::methods::precond::{bilu, fgbilu};

pub(crate) const METHOD: Method = Method {
    name: PERSISTENT.name,
    summary: "BiCGStab, right preconditioned",
    replays: true,
    begins_anew: PERSISTENT.restarts,
    persistent: Some(&PERSISTENT),
    steps: Some(Steps { products: 2, applications: 2, dots: 5, updates: 6, vectors: 26 }),
    advised: Advised { definite: Some(1), symmetric: Some(1), general: Some(0) },
    compared: &[(bilu::METHOD.name, 2, 1), (fgbilu::METHOD.name, 2, 0)],
    ..Method::PLAIN
};

const PERSISTENT: Persistent = Persistent {
    name: "bicgstab",
    range_vectors: 5,
    product_vectors: 3,
    breakdowns: &BREAKDOWNS,
    restarts: true,
    factors: true,
    long_row_threads: Some(768),
};

/// `(r0, v)`, omega or rho vanishes.
pub(super) const BREAKDOWNS: [&str; 3] = [
    "(r0, A M^-1 p) is zero",
    "omega is zero",
    "rho is zero: the shadow residual is orthogonal to the residual",
];

const RHO: [Slot; 2] = [Slot(0), Slot(1)];
/// `(r0, v)`.
const RV: Slot = Slot(2);
const TS: Slot = Slot(3);
const TT: Slot = Slot(4);
/// `|r|` after each iteration since the last look.
const NORM: Slot = Slot(5);
const SCALARS: usize = 5;
/// Behind what the host reads.
const BETA: Slot = Slot(NORM.0 + AT_ONCE as u16);

/// BiCGStab with its vectors. A full step with two products counts as one iteration; the monitored
/// residual is the true one. Where rho, omega or `(r0, v)` vanishes, the method begins anew with the
/// residual at hand as shadow residual.
pub(super) struct BiCgStab<K: Operations> {
    settings: Settings,
    vectors: Vectors<K>,
}

struct Vectors<K: Operations> {
    r: K::Vector,
    shadow: K::Vector,
    p: K::Vector,
    v: K::Vector,
    t: K::Vector,
    hat: K::Vector,
}

impl<K: Operations> BiCgStab<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let v = || k.vector(n);
        let vectors = Vectors { r: v()?, shadow: v()?, p: v()?, v: v()?, t: v()?, hat: v()? };
        Ok(Self { settings: settings.clone(), vectors })
    }
}

impl<K: Operations> Vectors<K> {
    /// Begins with the residual in `r`, whose rho goes to the given slot.
    fn begin(&mut self, k: &K, rho: Slot) {
        k.copy(&self.r, &mut self.shadow);
        k.copy(&self.r, &mut self.p);
        k.dot(&self.shadow, &self.r, rho);
    }

    /// Solution and residual of an iteration: from the first slot of rho to the second.
    fn step(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        [rho, next]: [Slot; 2],
        norm: Slot,
    ) {
        let Self { r, shadow, p, v, t, hat } = self;
        // v = A M^-1 p; alpha = rho / (r0, v)
        s.m.apply_then_multiply(k, s.a, p, hat, v);
        k.dot(shadow, v, RV);
        k.axpby(Coef::Ratio(rho, RV), hat, Coef::ONE, x);
        // s = r - alpha v, in the place of r
        k.axpby(Coef::NegRatio(rho, RV), v, Coef::ONE, r);
        // t = A M^-1 s; omega = (t, s) / (t, t)
        s.m.apply_then_multiply(k, s.a, r, hat, t);
        k.dot(t, r, TS);
        k.dot(t, t, TT);
        k.axpby(Coef::Ratio(TS, TT), hat, Coef::ONE, x);
        k.axpby(Coef::NegRatio(TS, TT), t, Coef::ONE, r);
        k.norm(r, norm);
        k.dot(shadow, r, next);
    }

    /// Direction of the next iteration.
    fn turn(&mut self, k: &K, next: Slot) {
        let Self { r, p, v, .. } = self;
        // beta = (rho' / rho) (alpha / omega) = rho' (t, t) / ((r0, v) (t, s))
        k.ratio(BETA, &[next, TT], &[RV, TS]);
        // p = r + beta (p - omega v)
        k.axpby(Coef::NegRatio(TS, TT), v, Coef::ONE, p);
        k.axpby(Coef::ONE, r, Coef::Slot(BETA), p);
    }
}

impl<K: Operations> Solver<K> for BiCgStab<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let Self { settings, vectors } = self;
        let mut scalars = [0.0; SCALARS + AT_ONCE];
        k.fill(x, 0.0);
        k.copy(s.b, &mut vectors.r);
        k.norm(&vectors.r, NORM);
        vectors.begin(k, RHO[0]);
        k.read(RHO[0], &mut scalars[..=SCALARS]);
        let mut judge = ConvergenceMonitor::new(&settings.stop, monitor, scalars[SCALARS]);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let at_once = k.iterations_at_once();
        let mut recording = K::Recording::default();
        loop {
            let first = judge.iterations;
            let count = at_once.min(settings.stop.max_iterations - first);
            let mut steps = || {
                for i in 0..count {
                    let from = (first + i) % 2;
                    if i > 0 {
                        vectors.turn(k, RHO[from]);
                    }
                    vectors.step(k, s, x, [RHO[from], RHO[1 - from]], NORM.plus(i));
                }
            };
            if count == at_once {
                k.replay(&mut recording, &mut steps);
            } else {
                steps();
            }
            let next = RHO[(first + count) % 2];
            let found = &mut scalars[..SCALARS + count];
            let turned = read_meanwhile(k, RHO[0], found, true, || vectors.turn(k, next));
            // a step whose half already solved the system has t = 0, omega = 0 and norm 0
            let norms = &scalars[SCALARS..SCALARS + count];
            if let Some(end) = norms.iter().fold(None, |end, &norm| end.or(judge.step(norm))) {
                return judge.outcome(end);
            }
            let found = [scalars[2], scalars[3], scalars[next.0 as usize]];
            let broken = found.iter().position(|&v| v == 0.0).map(|at| BREAKDOWNS[at]);
            if let Some(end) = judge.recurrence(broken) {
                return judge.outcome(end);
            }
            if broken.is_some() {
                vectors.begin(k, next);
            } else if !turned {
                vectors.turn(k, next);
            }
            if judge.iterations / CYCLE > first / CYCLE
                && let Some(end) = judge.cycle()
            {
                return judge.outcome(end);
            }
        }
    }
}
