//! Iterative correction, the stationary method of the preconditioner (Luo et al. 2015, equation 3).

use super::{Method, from_zero, norm};
use crate::base::error::Result;
use crate::compute::krylov::stop::{CYCLE, ConvergenceMonitor};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::{Coef, Operations, Slot};
use crate::methods::precond::{bilu, fgbilu};

pub(crate) const METHOD: Method = Method {
    name: "correction",
    summary: "iterative correction x += M^-1 (b - A x), any preconditioner",
    recomputes_residual: true,
    compared: &[(fgbilu::METHOD.name, 1, 0), (bilu::METHOD.name, 4, 1)],
    ..Method::PLAIN
};

const NORM: Slot = Slot(0);

/// `x += M^-1 (b - A x)` from `x = 0` with its vectors. It converges when the spectral radius of
/// `I - M^-1 A` is below one; the side does not matter, and the monitored residual is the true one.
///
/// Every application of the preconditioner counts as one iteration. Luo et al. call the first one
/// the initial estimate: their correction l is iteration l + 1.
pub(super) struct Correction<K: Operations> {
    settings: Settings,
    r: K::Vector,
    xi: K::Vector,
}

impl<K: Operations> Correction<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        Ok(Self { settings: settings.clone(), r: k.vector(n)?, xi: k.vector(n)? })
    }
}

impl<K: Operations> Solver<K> for Correction<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let Self { settings, r, xi } = self;
        let initial = from_zero(k, s, x, r, NORM);
        let mut judge = ConvergenceMonitor::new(&settings.stop, monitor, initial);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        loop {
            // M xi = r; x += xi
            s.m.apply(k, r, xi);
            k.axpby(Coef::ONE, xi, Coef::ONE, x);
            // r = b - A x
            s.m.residual(k, s.a, x, s.b, r);
            let end = judge.step(norm(k, r, NORM));
            if let Some(end) = end.or_else(|| judge.cycle_of(CYCLE)) {
                return judge.outcome(end);
            }
        }
    }
}
