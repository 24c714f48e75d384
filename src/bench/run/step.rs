//! One solve of a step of a sequence, from a guess where there is one.

use super::no_result::together;
use super::watch::{History, watched};
use super::{Job, NoResult, Stage, levels, range, traffic};
use crate::base::measure::median;
use crate::case::Case;
use crate::compute::krylov::{
    Outcome, Projection, Settings, SolveEnd, Solver, Stop, System, Transposed,
};
use crate::compute::preconditioner::Preconditioner;
use crate::compute::{Coef, Operations, Slot};
use crate::methods::solver;

/// What a step is solved with.
pub(super) struct Step<'a, K: Operations> {
    pub(super) matrix: &'a K::Matrix,
    pub(super) m: &'a dyn Preconditioner<K>,
    pub(super) transposed: Option<Transposed<'a, K>>,
    pub(super) second: Option<&'a dyn Projection<K>>,
    /// Makes the solver.
    #[expect(clippy::type_complexity, reason = "no other place names it")]
    pub(super) solver:
        &'a dyn Fn(&K, &Settings, &System<K>) -> Result<Box<dyn Solver<K>>, NoResult>,
    /// Its number, from 1.
    pub(super) number: usize,
}

impl Job<'_> {
    /// A guess for the system as it is solved, of its unknowns in their order.
    pub(super) fn guess(&mut self, guess: Option<Vec<f64>>) -> Option<Vec<f64>> {
        let mut x = guess?;
        let exponent = self.system.scaling.of_solution();
        for v in &mut x {
            *v = range::times(*v, -exponent);
        }
        if let Some(given) = self.given {
            given.equilibration.unknowns(&mut x);
        }
        if x.iter().all(|v| v.is_finite()) {
            return Some(x);
        }
        self.record.remark("the last solution is not finite: starts from zero".into());
        None
    }

    /// One solve, whose right-hand side and guess are filled up with zeros; the solution.
    pub(super) fn solve_step<K: Operations + 'static>(
        &mut self,
        k: &K,
        step: &Step<K>,
        b: &[f64],
        guess: Option<&[f64]>,
    ) -> Result<(K::Vector, Outcome), NoResult> {
        let (case, n) = (self.case, self.unknowns);
        let vector = |values: &[f64]| -> Result<K::Vector, NoResult> {
            let (mut padded, mut made) = (values.to_vec(), k.vector(n)?);
            padded.resize(n, 0.0);
            k.upload(&padded, &mut made);
            Ok(made)
        };
        let made = self.check_vectors(k).and_then(|()| {
            let start = guess.map(&vector).transpose()?;
            Ok((vector(b)?, k.vector(n)?, start, levels::adapted(k, case, n, step.m, step.second)?))
        });
        let (b, mut x, start, adapted) = together(k, made)?;
        let system = System {
            a: step.matrix,
            m: adapted.as_ref().map_or(step.m, |both| both),
            b: &b,
            transposed: step.transposed.as_ref().map(|of| Transposed { a: of.a, m: of.m }),
            deflation: step.second.filter(|_| adapted.is_none()),
        };
        let (outcome, seconds) = self.solve_from(k, step, system, start, &mut x)?;
        let times = &mut self.record.times;
        times.set_solve(&median(&[seconds]).expect("one solve"), false);
        times.set_iterations(outcome.iterations);
        Ok((x, outcome))
    }

    /// A solve that starts from `start`, if it does not from zero, and its seconds: that of `A d = b - A x0`, whose
    /// tolerance is relative to the norm that a solve from zero begins with.
    fn solve_from<K: Operations + 'static>(
        &mut self,
        k: &K,
        step: &Step<K>,
        system: System<K>,
        start: Option<K::Vector>,
        x: &mut K::Vector,
    ) -> Result<(Outcome, f64), NoResult> {
        let Case { rtol, max_iterations, .. } = *self.case;
        // ranks agree on a limit
        let time_limit_s = self.measure.time_limit_s.filter(|_| self.limit_s.is_none());
        let mut stop = Stop { rtol, max_iterations, time_limit_s };
        let (mut seconds, mut ratio, mut residual) = (0.0, 1.0, None);
        self.begin(k, Stage::Solve(step.number))?;
        if let Some(start) = &start {
            let mut r = together(k, k.vector(self.unknowns).map_err(NoResult::from))?;
            let mark = k.mark();
            system.m.residual(k, system.a, start, system.b, &mut r);
            let [of_b, of_r] = self.monitored_norms(k, &system, [system.b, &r])?;
            seconds = k.seconds(&mark, &k.mark());
            ratio = of_r / of_b;
            residual = Some(r).filter(|_| of_b > 0.0 && ratio < 1.0);
            if of_b > 0.0 && residual.is_none() {
                self.record
                    .remark("the last solution is no better than zero: starts from zero".into());
            }
        }
        let Some((start, r)) = start.zip(residual) else {
            let (outcome, solve_s) = self.solve_once(k, step, &system, stop, x)?;
            return Ok((outcome, seconds + solve_s));
        };
        if rtol > 0.0 && ratio <= rtol {
            k.copy(&start, x);
            let (end, remark) = (SolveEnd::Converged, None);
            return Ok((Outcome { end, iterations: 0, residual: ratio, remark }, seconds));
        }
        stop.rtol = rtol / ratio;
        let system = System { b: &r, ..system };
        let (outcome, solve_s) = self.solve_once(k, step, &system, stop, x)?;
        let mark = k.mark();
        k.axpby(Coef::ONE, &start, Coef::ONE, x);
        seconds += solve_s + k.seconds(&mark, &k.mark());
        Ok((Outcome { residual: outcome.residual * ratio, ..outcome }, seconds))
    }

    /// Norms of residuals as the solver monitors them.
    fn monitored_norms<K: Operations>(
        &self,
        k: &K,
        system: &System<K>,
        residuals: [&K::Vector; 2],
    ) -> Result<[f64; 2], NoResult> {
        let with_m = solver::monitors_preconditioned(&self.case.solver, self.case.side);
        let z = with_m.then(|| k.vector(self.unknowns)).transpose();
        let mut z = together(k, z.map_err(NoResult::from))?;
        let mut norms = [0.0; 2];
        for (norm, r) in norms.iter_mut().zip(residuals) {
            match &mut z {
                None => k.norm(r, Slot(0)),
                Some(z) => {
                    system.m.apply(k, r, z);
                    k.norm(z, Slot(0));
                }
            }
            let mut read = [0.0];
            k.read(Slot(0), &mut read);
            [*norm] = read;
        }
        Ok(norms)
    }

    /// The solve of one system from zero, and its seconds.
    fn solve_once<K: Operations + 'static>(
        &mut self,
        k: &K,
        step: &Step<K>,
        system: &System<K>,
        stop: Stop,
        x: &mut K::Vector,
    ) -> Result<(Outcome, f64), NoResult> {
        let settings = self.case.solver_settings(stop);
        let mut method = together(k, (step.solver)(k, &settings, system))?;
        let mut history = History::new(self.measure.history);
        let stage = Stage::Solve(step.number);
        let (outcome, seconds) = watched(
            k,
            (&mut *method, system, x),
            (stage, self.progress, self.limit_s),
            &mut history,
        )?;
        self.keep_history(history.norms);
        self.record.traffic.memory_bytes = Some(traffic::held(k, system));
        Ok((outcome, seconds))
    }
}
