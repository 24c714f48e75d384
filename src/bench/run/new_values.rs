//! New values on the same pattern, as in each step of a Newton iteration: matrix and factors are updated, and
//! everything that depends only on the pattern is reused.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::crowd::Crowd;
use super::phases::Stopwatch;
use super::{Job, NoResult, Stage};
use crate::base::measure::median;
use crate::compute::preconditioner::Preconditioner;
use crate::compute::{Backend, Products};
use crate::matrix::Csr;
use crate::methods::precond;

/// Largest relative change of a value.
const CHANGE: f64 = 0.01;

/// A stored matrix with its preconditioner.
type WithPreconditioner<K> = (<K as Products>::Matrix, Box<dyn Preconditioner<K>>);

impl Job<'_> {
    /// Times both steps for the requested number of new matrices, and records the medians: of the matrix with its
    /// preconditioner and, where the solver needs them, of their transposes. These hold the values of the last
    /// matrix afterwards.
    pub(super) fn measure_new_values<K: Backend + 'static>(
        &mut self,
        k: &K,
        systems: &mut [WithPreconditioner<K>],
    ) -> Result<(), NoResult> {
        let settings = self.case.preconditioning();
        let (mut matrix_s, mut numeric_s) = (Vec::new(), Vec::new());
        let crowd = Crowd::before(k);
        for turn in 1..=self.measure.repeat_values {
            self.begin(k, Stage::NewValues(turn))?;
            let a = Arc::new(near(self.a, turn as u64));
            k.synchronise();
            let stopwatch = Stopwatch::start(k);
            let mut of = vec![Arc::clone(&a)];
            of.extend((systems.len() > 1).then(|| Arc::new(a.transposed())));
            for ((matrix, _), a) in systems.iter_mut().zip(&of) {
                k.matrix_values(matrix, a)?;
            }
            matrix_s.push(stopwatch.seconds(k));
            let stopwatch = Stopwatch::start(k);
            let mut both = systems.iter_mut().zip(&of);
            let renewed = both
                .try_for_each(|((_, m), a)| precond::renew(m, k, a, &settings, &mut ()).map(drop));
            numeric_s.push(stopwatch.seconds(k));
            k.check()?;
            match renewed.map_err(NoResult::from) {
                Ok(()) => {}
                Err(NoResult::Ended(_, why)) => {
                    self.record.remark(format!("with new values: {why}"));
                    return Ok(());
                }
                Err(other) => return Err(other),
            }
        }
        if let Some(said) = crowd.remark(k).filter(|_| !numeric_s.is_empty()) {
            self.record.remark(format!("with new values: {said}"));
        }
        let of = |samples: &[f64]| median(samples).map(|m| m.value);
        let times = &mut self.record.times;
        times.rematrix_s = of(&matrix_s);
        times.renumeric_s = times.numeric_s.and(of(&numeric_s));
        Ok(())
    }
}

/// A matrix with the pattern of `a` whose diagonal is larger by up to 1 % and whose other entries
/// are smaller by up to 1 %, in absolute value: a dominant diagonal stays dominant.
pub(super) fn near(a: &Csr, seed: u64) -> Csr {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut near = a.clone();
    let values = near.values_mut();
    for i in 0..a.rows() {
        for at in a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize {
            let change = rng.random_range(0.0..CHANGE);
            let diagonal = a.col_ind()[at] as usize == i;
            values[at] *= if diagonal { 1.0 + change } else { 1.0 - change };
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Format};
    use crate::compute::cpu::Cpu;
    use crate::compute::krylov::{Stop, System};
    use crate::compute::{Storage as _, Vectors as _};
    use crate::methods::precond::Setup;
    use crate::methods::solver;
    use crate::problem::samples::matrix;

    /// Iterations and solution of GMRES with the matrix and the factors of `first`, or with those
    /// that took over the values of `then`.
    fn solve(k: &Cpu, case: &Case, first: &Arc<Csr>, then: Option<&Arc<Csr>>) -> (usize, Vec<f64>) {
        let first = &Arc::new(first.in_blocks(case.block_size));
        let setup = precond::lookup::<Cpu>(&case.precond).expect("registered");
        let mut m =
            setup(Setup { k, a: first, settings: &case.preconditioning(), phases: &mut () })
                .expect("regular");
        let mut matrix = k.matrix(first, case.format).expect("stored");
        if let Some(a) = then {
            let a = &Arc::new(a.in_blocks(case.block_size));
            k.matrix_values(&mut matrix, a).expect("the same pattern");
            precond::renew(&mut m, k, a, &case.preconditioning(), &mut ()).expect("regular");
        }
        let n = first.rows();
        let (mut b, mut x) = (k.vector(n).expect("memory"), k.vector(n).expect("memory"));
        k.fill(&mut b, 1.0);
        let stop = Stop { rtol: 1e-10, max_iterations: 500, time_limit_s: None };
        let build = solver::lookup::<Cpu>(&case.solver).expect("registered");
        let mut method = build(k, &case.solver_settings(stop), n).expect("memory");
        let system = System { a: &matrix, m: &*m, b: &b, transposed: None, deflation: None };
        let outcome = method.solve(k, &system, &mut x, &mut ());
        (outcome.iterations, x.to_vec())
    }

    #[test]
    fn new_values_leave_nothing_of_the_old_ones() {
        let a = matrix("convdiff3d:20,px=0.3");
        let mut new = near(&a, 1);
        // more than a scaling: rows differ by up to three in size
        for i in 0..new.rows() {
            let row = new.row_ptr()[i] as usize..new.row_ptr()[i + 1] as usize;
            new.values_mut()[row].iter_mut().for_each(|v| *v *= 1.0 + (i % 7) as f64 / 3.0);
        }
        let new = Arc::new(new);
        for k in [Cpu::sequential(), Cpu::parallel(Some(2)).expect("threads")] {
            for (precond, block_size, format) in [
                ("bilu", 1, Format::Csr),
                ("bilu", 4, Format::Bsr),
                ("jacobi", 5, Format::Csr),
                ("none", 2, Format::Bsr),
            ] {
                let precond = precond.to_owned();
                let case = Case { precond, block_size, format, fill: 1, ..Case::default() };
                let fresh = solve(&k, &case, &new, None);
                assert_eq!(solve(&k, &case, &a, Some(&new)), fresh, "{case:?}");
                assert_ne!(solve(&k, &case, &a, None), fresh, "{case:?}");
            }
        }
    }

    #[test]
    fn values_change_by_one_percent_and_the_diagonal_stays_dominant() {
        let a = matrix("poisson3d:6");
        let new = near(&a, 3);
        assert_eq!((new.row_ptr(), new.col_ind()), (a.row_ptr(), a.col_ind()));
        for i in 0..a.rows() {
            let (cols, values) = new.row(i);
            for (&j, &v) in cols.iter().zip(values) {
                let range = if j as usize == i { 6.0..6.06 } else { -1.0..-0.99 };
                assert!(range.contains(&v), "({i}, {j}): {v}");
            }
        }
        assert_ne!(near(&a, 4).values(), new.values());
        assert_eq!(near(&a, 3).values(), new.values());
    }
}
