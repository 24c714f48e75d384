//! The stages of a case on one device: storage, setup, solves, what is measured beside.

use std::sync::Arc;

use super::crowd::Crowd;
use super::no_result::{NoResult, together};
use super::phases::{self, PhaseClock, PhaseSeconds, Stopwatch};
use super::roof::Roof;
use super::speed::Speed;
use super::watch::{History, going, watched};
use super::{Job, Progress, Stage, Stored, levels, reuse, several, traffic};
use crate::base::measure::{median, now, seconds_since};
use crate::base::parse::choice_name;
use crate::case::{Case, Execution, RunKind};
use crate::compute::krylov::{Outcome, Projection, Settings, Solver, Stop, System, Transposed};
use crate::compute::preconditioner::{FactorSize, Preconditioner};
use crate::compute::{Backend, Clock, Operations};
use crate::matrix::Csr;
use crate::methods::precond::quality::quality;
use crate::methods::precond::transposed::{self, Both};
use crate::methods::precond::{Setup, Shape};
use crate::methods::{precond, solver};

impl Job<'_> {
    pub(super) fn stages<K: Backend + 'static>(&mut self, k: &K) -> Result<(), NoResult> {
        let case = self.case;
        if case.kind == RunKind::Spmv {
            return self.product(k);
        }
        let (setup, build) = self.methods(k)?;
        let with_transposed = solver::needs_transposed(&case.solver);
        // measured first, so that its arrays do not add to the case's peak, and its time to no phase
        let roof = (!self.measure.once)
            .then(|| Roof { handover: k.handover_latency(), ..Roof::of_copies(k) });

        self.check_matrix(k)?;
        let (matrix, other) = self.store(k, with_transposed)?;
        let (other, other_matrix) = other.unzip();
        let (m, other_m) = self.set_up(k, setup, other.as_ref())?;
        self.record_factors(k, &*m);
        let deflation = self.deflate(k)?;

        self.check_vectors(k)?;
        let (n, columns) = (self.a.rows(), self.width(k));
        let (mut b, mut x) = (k.vector(n * columns)?, k.vector(n * columns)?);
        k.upload(&several::resized(&self.system.b, [self.columns(), columns], n), &mut b);
        let Case { rtol, max_iterations, .. } = *case;
        let time_limit_s = self.measure.time_limit_s;
        let stop = Stop { rtol, max_iterations, time_limit_s };
        let settings = Settings { columns, ..case.solver_settings(stop) };
        let transposed =
            other_matrix.as_ref().zip(other_m.as_deref()).map(|(a, m)| Transposed { a, m });
        let second = deflation.as_ref().map(|d| d as &dyn Projection<K>);
        let adapted = levels::adapted(k, case, n, &*m, second)?;
        let system = System {
            a: &matrix,
            m: adapted.as_ref().map_or(&*m, |both| both),
            b: &b,
            transposed,
            deflation: second.filter(|_| adapted.is_none()),
        };
        let mut method = match case.execution {
            Execution::Persistent => solver::in_kernel(&case.solver, k, &settings, &system)?,
            _ => build(k, &settings, n)?,
        };
        let crowd = Crowd::before(k);
        let (outcome, _) = self.solve(k, &mut *method, &system, &mut x)?;
        crowd.remark(k).into_iter().for_each(|remark| self.record.remark(remark));
        // free its vectors for those of the measurements
        drop(method);
        // what cannot be told is left out
        self.record.quality = quality(k, &*m, self.a).unwrap_or_default();
        self.conclude(k, &x, &outcome);
        // one application is measured for the first level alone
        let system = System { m: &*m, ..system };
        match roof {
            Some(roof) if columns > 1 => self.measure_columns(k, &system, &mut x, &roof)?,
            Some(roof) => self.measure_traffic(k, &system, &mut x, roof)?,
            None => self.record.traffic.memory_bytes = Some(traffic::held(k, &system)),
        }
        drop(adapted);
        let mut systems = vec![(matrix, m)];
        systems.extend(other_matrix.zip(other_m));
        self.measure_new_values(k, &mut systems)
    }

    /// Records the size of the factors, also over that of the matrix.
    pub(super) fn record_size(&mut self, factor: FactorSize) {
        let stored = self.record.size.matrix_blocks * self.case.block_size.pow(2);
        let fill_ratio = factor.factor_entries.map(|of| of as f64 / stored.max(1) as f64);
        self.record.factor = FactorSize { fill_ratio, ..factor };
    }

    /// The same, and what a shift or a drop tolerance made of them.
    pub(super) fn record_factors<K: Operations>(&mut self, k: &K, m: &dyn Preconditioner<K>) {
        self.record_size(m.size(k));
        let record = &mut self.record;
        let (size, factor) = (&record.size, &record.factor);
        let triangles = precond::shape(&self.case.precond) == Shape::Triangles;
        let bare =
            factor.factor_blocks == Some(size.block_rows) && size.matrix_blocks > size.block_rows;
        if let Some(alpha) = factor.shift_used.filter(|alpha| *alpha > 0.0) {
            record.remark(format!("factors of A + {alpha} diag(A)"));
        }
        if triangles && bare {
            record.remark("all but the diagonal of the factors was dropped".into());
        }
    }

    /// Converts the matrix, and its transpose if `with_transposed`, to the format of the product;
    /// repeated.
    pub(super) fn store<K: Backend>(
        &mut self,
        k: &K,
        with_transposed: bool,
    ) -> Result<Stored<K>, NoResult> {
        let (a, format) = (self.a, self.case.format);
        let ((used, matrix, other), seconds) = self.repeated(k, Stage::Storage, || {
            // of which nothing is known from the last time
            let used = Arc::new(a.in_blocks(a.block_size()));
            let matrix = k.matrix(&used, format)?;
            let other = with_transposed.then(|| {
                let a = Arc::new(a.transposed());
                k.matrix(&a, format).map(|matrix| (a, matrix))
            });
            Ok((used, matrix, other.transpose()?))
        })?;
        a.learn_blocks(&used);
        self.record.times.matrix_s = seconds;
        self.record.format_used = Some(choice_name(&k.format(&matrix)));
        self.record.tuned = k.tuned(&matrix);
        Ok((matrix, other))
    }

    /// Makes something as often as a setup is measured; the last that was made, and the median of the
    /// seconds.
    pub(super) fn repeated<K: Operations, T>(
        &mut self,
        k: &K,
        stage: Stage,
        make: impl Fn() -> Result<T, NoResult>,
    ) -> Result<(T, Option<f64>), NoResult> {
        let (start, mut samples) = (now(), Vec::new());
        loop {
            self.begin(k, stage)?;
            let stopwatch = Stopwatch::start(k);
            let made = together(k, make())?;
            samples.push(stopwatch.seconds(k));
            k.check()?;
            if !self.measure.another(samples.len(), k.of_all(seconds_since(start))) {
                return Ok((made, median(&samples).map(|m| m.value)));
            }
        }
    }

    /// Reports a stage.
    pub(super) fn begin<K: Clock>(&mut self, k: &K, stage: Stage) -> Result<(), NoResult> {
        going(k, self.progress, stage)
    }

    /// Symbolic, analysis and numeric phases, repeated.
    pub(super) fn set_up<K: Backend + 'static>(
        &mut self,
        k: &K,
        setup: fn(Setup<K>) -> precond::Ready<K>,
        transposed: Option<&Arc<Csr>>,
    ) -> Result<Both<K>, NoResult> {
        let mut runs: Vec<PhaseSeconds> = Vec::new();
        let mut kernel = Vec::new();
        let settings = self.case.preconditioning();
        let start = now();
        loop {
            let of = reuse::key(self.case, k.on_host(|threads| threads));
            let patterns = Some((&mut *self.reuse, of));
            let mut clock = PhaseClock::new(k, self.progress, patterns);
            // what one setup finds of the matrix the next one does not know
            let a = Arc::new(self.a.apart());
            let ready = transposed::set_up(k, setup, (&a, transposed), &settings, &mut clock);
            k.check()?;
            let Some(seconds) = clock.finish() else { return Err(NoResult::Cancelled) };
            runs.push(seconds);
            phases::record(&runs, &mut self.record.times);
            let ready = ready?;
            kernel.extend(ready.0.numeric_kernel_seconds(k));
            if !kernel.iter().any(|s| s.is_nan()) {
                let times = &mut self.record.times;
                times.numeric_kernel_s = median(&kernel).map(|m| m.value).or(times.numeric_s);
            }
            if !self.measure.another(runs.len(), seconds_since(start)) {
                return Ok(ready);
            }
        }
    }

    /// First solve and repetitions; fills the solve times. Also returns how often it solved.
    pub(super) fn solve<K: Operations>(
        &mut self,
        k: &K,
        method: &mut dyn Solver<K>,
        system: &System<K>,
        x: &mut K::Vector,
    ) -> Result<(Outcome, usize), NoResult> {
        let (mut history, limit_s, mut solves) =
            (History::new(self.measure.history), self.limit_s, 0);
        let mut once = |stage: Stage, progress: Progress| {
            solves += 1;
            watched(k, (method, system, x), (stage, progress, limit_s), &mut history)
        };
        // not between solves, whose caches it would take
        let speed = (!self.measure.once).then(|| Speed::before(k)).flatten();
        let (mut outcome, first) = once(Stage::WarmUp, self.progress)?;
        let mut samples = Vec::new();
        if first > self.measure.time_budget_s || self.measure.once {
            samples.push(first);
        }
        let mut spent: f64 = samples.iter().sum();
        while self.measure.another_solve(&samples, spent) {
            let (again, seconds) = once(Stage::Solve(samples.len() + 1), self.progress)?;
            outcome = again;
            spent += seconds;
            samples.push(seconds);
        }
        self.record.times.reference_s = speed.and_then(|speed| speed.reference_s(k));
        let m = median(&samples).expect("at least one repetition");
        self.keep_history(history.norms);
        let times = &mut self.record.times;
        times.set_solve(&m, false);
        times.total_s = times.to_solution(1);
        times.solve_s_per_rhs = self.record.size.rhs_count.map(|count| m.value / count as f64);
        times.set_iterations(outcome.iterations);
        Ok((outcome, solves))
    }
}
