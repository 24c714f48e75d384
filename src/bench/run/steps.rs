//! Time of the steps of BiCGStab and QMR beside products and preconditioner: inner products and
//! vector updates.

use super::Job;
use super::traffic::sample;
use crate::case::Execution;
use crate::compute::krylov::System;
use crate::compute::{Backend, Coef, Slot};
use crate::methods::solver;
use crate::record::schema::Traffic;

impl Job<'_> {
    /// One inner product and one vector update, timed apart, where the solver is made of them and
    /// they are steps of their own.
    pub(super) fn measure_steps<K: Backend>(
        &self,
        k: &K,
        system: &System<K>,
        x: &mut K::Vector,
        t: &mut Traffic,
    ) {
        let apart = matches!(self.case.execution, Execution::Fused | Execution::Calls);
        if !apart || solver::steps(&self.case.solver).is_none() {
            return;
        }
        t.dot_s = Some(sample(k, self.measure, || k.dot(system.b, x, Slot(0))).value);
        // remains of the size of b
        let half = Coef::Host(0.5);
        t.axpy_s = Some(sample(k, self.measure, || k.axpby(half, system.b, half, x)).value);
    }
}
