//! Bandwidth of the pieces of a solve: the product, the preconditioner, the factorisation, Gram-Schmidt.

use super::no_result::NoResult;
use super::roof::Roof;
use super::{Job, Stage, basis};
use crate::base::measure::{Median, median, now, seconds_since};
use crate::case::{Execution, Setting};
use crate::compute::krylov::System;
use crate::compute::{Coef, Operations, Slot, over_ranks};
use crate::config::sampling::Measure;
use crate::methods::deflation::Choice;
use crate::methods::solver;
use crate::record::schema::Traffic;

/// Calls are repeated within a sample until it lasts about this long, in seconds.
const SHORT_CALLS: f64 = 1e-3;

/// Bytes that the matrix and the preconditioner of a system occupy, their transposes included.
pub(super) fn held<K: Operations>(k: &K, system: &System<K>) -> usize {
    // A' and M' are as large
    let copies = if system.transposed.is_some() { 2 } else { 1 };
    (k.matrix_bytes(system.a).held + system.m.bytes(k).held) * copies
}

impl Job<'_> {
    /// One product and one preconditioner application, timed apart.
    pub(super) fn measure_traffic<K: Operations>(
        &mut self,
        k: &K,
        system: &System<K>,
        x: &mut K::Vector,
        roof: Roof,
    ) -> Result<(), NoResult> {
        self.begin(k, Stage::Traffic)?;
        let (product, apply) = (k.matrix_bytes(system.a), system.m.bytes(k));
        let spmv = sample(k, self.measure, || k.spmv(system.a, system.b, x));
        let mut t = self.of_product(product.moved, &spmv, &roof);
        t.memory_bytes = Some(held(k, system));
        if apply.moved > 0 {
            let time = sample(k, self.measure, || system.m.apply(k, system.b, x));
            self.of_application(&mut t, apply.moved, &time, &roof);
        }
        let numeric_bytes = system.m.numeric_bytes(k);
        if let Some(seconds) = self.record.times.numeric_kernel_s.filter(|_| numeric_bytes > 0) {
            // a row waits for the rows left of its diagonal, as in the forward solve
            let levels = self.record.factor.levels_lower;
            t.numeric_bytes = Some(numeric_bytes);
            t.numeric_gbps = Some(numeric_bytes as f64 / seconds / 1e9);
            t.numeric_us_per_level = levels.map(|levels| 1e6 * seconds / levels as f64);
            t.numeric_percent_of_bandwidth = roof.percent(seconds, numeric_bytes);
        }
        self.measure_steps(k, system, x, &mut t);
        if solver::recomputes_residual(&self.case.solver) {
            let m = system.m;
            let mut r = k.vector(self.unknowns)?;
            let time = sample(k, self.measure, || m.residual(k, system.a, x, system.b, &mut r));
            t.residual_s = Some(time.value);
        }
        if self.case.uses(Setting::Orthogonalisation) {
            self.measure_orthogonalisation(k, x, &mut t)?;
        }
        let whole = self.iteration_bytes(&t).filter(|_| system.m.eisenstat().is_none());
        if let Some((bytes, ms)) = whole.zip(self.record.times.ms_per_iteration) {
            t.iteration_bytes = Some(bytes);
            t.iteration_percent_of_bandwidth = roof.percent(1e-3 * ms, bytes);
        }
        self.record.traffic = t;
        Ok(())
    }

    /// Bytes of an iteration whose operations each go through memory: not within one kernel, nor with projections.
    fn iteration_bytes(&self, t: &Traffic) -> Option<usize> {
        let (case, size) = (self.case, &self.record.size);
        let apart = case.execution != Execution::Persistent && case.deflation == Choice::None;
        let made = self.record.convergence.iterations;
        let moves = solver::moves(&case.solver, case.restart, case.orthogonalisation, made);
        let moves = moves.filter(|_| apart && !over_ranks(&case.backend))?;
        let vectors = 8.0 * (size.n + size.padding) as f64 * moves.vectors;
        let operations = moves.products * t.spmv_bytes? as f64
            + moves.applications * t.apply_bytes.unwrap_or(0) as f64;
        Some((operations + vectors) as usize)
    }

    /// What a product that moved so many bytes in so much time says.
    pub(super) fn of_product(&self, bytes: usize, time: &Median, roof: &Roof) -> Traffic {
        let mut t = Traffic {
            spmv_bytes: Some(bytes),
            spmv_gbps: Some(bytes as f64 / time.value / 1e9),
            spmv_gflops: Some(
                2.0 * (self.record.size.nnz * self.columns()) as f64 / time.value / 1e9,
            ),
            spmv_percent_of_bandwidth: roof.percent(time.value, bytes),
            copy_gbps: roof.copy_gbps,
            cache_bytes: roof.cache_bytes,
            handover_us: roof.handover.map(|s| 1e6 * s),
            ..Traffic::default()
        };
        t.set_spmv(time, false);
        t
    }

    /// What an application of the preconditioner that moved so many bytes in so much time says.
    pub(super) fn of_application(&self, t: &mut Traffic, bytes: usize, time: &Median, roof: &Roof) {
        t.apply_s = Some(time.value);
        t.apply_bytes = Some(bytes);
        t.apply_gbps = Some(bytes as f64 / time.value / 1e9);
        let f = &self.record.factor;
        let levels = f.levels_lower.zip(f.levels_upper).map(|(l, u)| l + u);
        t.us_per_level = levels.map(|levels| 1e6 * time.value / levels as f64);
        t.percent_of_bandwidth = roof.percent(time.value, bytes);
    }

    /// One inner product and one vector update, timed apart, where the solver is made of them and
    /// they are steps of their own.
    fn measure_steps<K: Operations>(
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

    /// One pass of Gram-Schmidt against as many vectors as a restart has, when they fit beside what
    /// is there: the basis is read twice, the vector read twice and written once.
    fn measure_orthogonalisation<K: Operations>(
        &self,
        k: &K,
        w: &mut K::Vector,
        t: &mut Traffic,
    ) -> Result<(), NoResult> {
        let (n, m) = (self.unknowns, self.case.restart);
        let lacking = 8 * n * m > k.memory_free() / 2;
        // on one rank is on all: what follows is collective
        if k.of_all(f64::from(u8::from(lacking))) > 0.0 {
            return Ok(());
        }
        let basis = basis::filled(k, (n, m), w)?;
        let (coef, norm) = (Slot(0), Slot(m as u16));
        let time = sample(k, self.measure, || {
            k.multi_dot(&basis, w, coef);
            k.multi_axpy_norm(&basis, coef, w, norm);
        });
        t.orthogonalisation_s = Some(time.value);
        // of all ranks
        let rows = self.record.size.n + self.record.size.padding;
        t.orthogonalisation_gbps = Some((8 * rows * (2 * m + 3)) as f64 / time.value / 1e9);
        Ok(())
    }
}

/// Median time of `f`, of as many samples as `measure` asks for. Short calls are sampled several at a
/// time, back to back, as a solver makes them.
pub(super) fn sample<K: Operations>(k: &K, measure: &Measure, mut f: impl FnMut()) -> Median {
    let mut once = |calls: usize| {
        let run = k.mark();
        (0..calls).for_each(|_| f());
        k.seconds(&run, &k.mark()) / calls as f64
    };
    once(1);
    let calls = (SHORT_CALLS / once(1)).clamp(1.0, 20.0) as usize;
    let (start, mut samples) = (now(), Vec::new());
    while measure.another(samples.len(), k.of_all(seconds_since(start))) {
        samples.push(once(calls));
    }
    median(&samples).expect("one sample at least")
}
