//! Restarted GMRES(m) (Saad, Iterative Methods, 2nd edition, algorithms 6.9, 9.4 and 9.5).

use super::delayed::Delayed;
use super::least_squares::LeastSquares;
use super::orthogonality::Orthogonality;
use super::{Advised, Method, Moves, read_meanwhile};
use crate::base::choices::{Orthogonalisation, Side};
use crate::base::error::{Error, Result};
use crate::base::setting::Setting;
use crate::compute::krylov::stop::{ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::{Coef, Operations, SLOTS, Slot};
use crate::methods::precond::{bilu, fgbilu, none};

pub(crate) const METHOD: Method = Method {
    name: "gmres",
    summary: "restarted GMRES(m), left or right preconditioned",
    uses: &[Setting::Side, Setting::Restart, Setting::Orthogonalisation],
    monitors_preconditioned: true,
    vectors: |restart| restart + 4,
    advised: Advised { definite: Some(2), symmetric: Some(0), general: Some(1) },
    compared: &[
        (bilu::METHOD.name, 4, 1),
        (bilu::METHOD.name, 1, 0),
        (none::METHOD.name, 1, 0),
        (fgbilu::METHOD.name, 4, 0),
    ],
    moves,
    ..Method::PLAIN
};

/// In the mean of all cycles, each of which ends with a product, an application and the basis read for the solution.
fn moves(restart: usize, by: Orthogonalisation, made: usize) -> Option<Moves> {
    let passes = match by {
        Orthogonalisation::Cgs => 1,
        Orthogonalisation::Cgs2 => 2,
        Orthogonalisation::Mgs | Orthogonalisation::OneReduce => return None,
    };
    let of_cycle = |length: usize| {
        // a pass reads the vectors twice, w twice, and writes it; w is divided by its norm
        let steps: usize = (1..=length).map(|j| passes * (2 * j + 3) + 2).sum();
        // the solution is read and written, the residual's norm taken
        steps + length + 8
    };
    let (whole, rest) = (made / restart.max(1), made % restart.max(1));
    let last = if rest > 0 { of_cycle(rest) } else { 0 };
    let cycles = (whole + usize::from(rest > 0)) as f64;
    let (made, vectors) = (made as f64, (whole * of_cycle(restart) + last) as f64);
    let each = 1.0 + cycles / made;
    (made > 0.0).then(|| Moves { products: each, applications: each, vectors: vectors / made })
}

/// Scalars on the backend: norms first, then a column of the Hessenberg matrix and corrections.
const NORM: Slot = Slot(0);
const COLUMN: Slot = Slot(8);

/// Largest restart: a column and its corrections must fit into the slots.
pub(crate) const MAX_RESTART: usize = (SLOTS - 8) / 2 - 2;

/// Breakdown of a column, or a block of them, that depends on the others.
pub(super) const EXHAUSTED: &str =
    "the Krylov space is exhausted: the preconditioned matrix is singular";

/// GMRES with its basis.
pub(super) struct Gmres<K: Operations> {
    settings: Settings,
    basis: Vec<K::Vector>,
    work: K::Vector,
    small: LeastSquares,
    orthogonality: Orthogonality,
    delayed: Option<Delayed>,
}

impl<K: Operations> Gmres<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let m = settings.restart;
        if m == 0 || m > MAX_RESTART {
            return Err(Error::input(format!("restart {m} is outside 1..={MAX_RESTART}")));
        }
        Ok(Self {
            settings: settings.clone(),
            basis: (0..=m).map(|_| k.vector(n)).collect::<Result<_>>()?,
            work: k.vector(n)?,
            small: LeastSquares::new(m),
            orthogonality: Orthogonality::default(),
            delayed: (settings.orthogonalisation == Orthogonalisation::OneReduce)
                .then(|| Delayed::new(m)),
        })
    }

    /// `basis[0] = r` of the side's system; its norm is left in [`NORM`].
    fn start(&mut self, k: &K, s: &System<K>, x: &K::Vector, first: bool) {
        let (r, work) = (&mut self.basis[0], &mut self.work);
        match (self.settings.side, first) {
            (Side::Right, true) => k.copy(s.b, r),
            (Side::Right, false) => k.residual(s.a, x, s.b, r),
            (Side::Left, true) => s.m.apply(k, s.b, r),
            (Side::Left, false) => {
                k.residual(s.a, x, s.b, work);
                s.m.apply(k, work, r);
            }
        }
        k.norm(r, NORM);
    }

    /// `basis[j + 1] = operator basis[j]`.
    fn expand(&mut self, k: &K, s: &System<K>, j: usize) {
        let (head, tail) = self.basis.split_at_mut(j + 1);
        let (v, w) = (&head[j], &mut tail[0]);
        match self.settings.side {
            Side::Right => {
                s.m.apply_then_multiply(k, s.a, v, &mut self.work, w);
            }
            Side::Left => {
                k.spmv(s.a, v, &mut self.work);
                s.m.apply(k, &self.work, w);
            }
        }
    }

    /// Makes `basis[j + 1]` orthogonal to its predecessors. `column` receives `h[0..=j]` and, last,
    /// the norm that is left; the next step is begun meanwhile if it is `wanted`. Whether it was; `None` where the last
    /// of them turns out to depend on the others.
    fn orthogonalise(
        &mut self,
        k: &K,
        s: &System<K>,
        j: usize,
        column: &mut [f64],
        wanted: bool,
    ) -> Option<bool> {
        let (v, tail) = self.basis.split_at_mut(j + 1);
        let w = &mut tail[0];
        match self.settings.orthogonalisation {
            Orthogonalisation::Cgs => {
                project(k, v, w, COLUMN);
                let wanted = wanted && !self.orthogonality.lost();
                return Some(self.read_column(k, s, j, column, wanted));
            }
            Orthogonalisation::Mgs => {
                for i in 0..=j {
                    k.dot(w, &v[i], COLUMN.plus(i));
                    k.multi_axpy_norm(&v[i..=i], COLUMN.plus(i), w, COLUMN.plus(j + 1));
                }
                k.read(COLUMN, column);
            }
            Orthogonalisation::Cgs2 => {
                project(k, v, w, COLUMN);
                k.read(COLUMN, column);
                refine(k, v, w, column);
            }
            Orthogonalisation::OneReduce => {
                let delayed = self.delayed.as_mut().expect("made with the method");
                let waits = delayed.step(k, v, w, column, &mut self.small)?;
                if !waits {
                    refine(k, v, w, column);
                }
                delayed.keep(j, column, waits);
            }
        }
        Some(false)
    }

    /// The column after one pass, and a second one where the first left too little; as
    /// [`orthogonalise`](Self::orthogonalise).
    fn read_column(
        &mut self,
        k: &K,
        s: &System<K>,
        j: usize,
        column: &mut [f64],
        wanted: bool,
    ) -> bool {
        let begun = read_meanwhile(k, COLUMN, column, wanted, || {
            self.normalise(k, j);
            self.expand(k, s, j + 1);
        });
        let again = self.orthogonality.add(column);
        if again {
            let (v, tail) = self.basis.split_at_mut(j + 1);
            if begun {
                k.scale(Coef::Slot(COLUMN.plus(j + 1)), &mut tail[0]);
            }
            refine(k, v, &mut tail[0], column);
        }
        begun && !again
    }

    /// Divides `basis[j + 1]` by its norm, unless it is to be made orthogonal once more.
    fn normalise(&mut self, k: &K, j: usize) {
        if !self.delayed.as_ref().is_some_and(Delayed::waits) {
            k.scale(Coef::Reciprocal(COLUMN.plus(j + 1)), &mut self.basis[j + 1]);
        }
    }
}

/// A pass of classical Gram-Schmidt: coefficients go to slots from `at` on, the norm that is left behind them.
fn project<K: Operations>(k: &K, v: &[K::Vector], w: &mut K::Vector, at: Slot) {
    k.multi_dot(v, w, at);
    k.multi_axpy_norm(v, at, w, at.plus(v.len()));
}

/// Second pass of classical Gram-Schmidt: adds its coefficients to `column`, and puts the new norm
/// where the first pass left its own.
fn refine<K: Operations>(k: &K, v: &[K::Vector], w: &mut K::Vector, column: &mut [f64]) {
    let m = v.len();
    let correction = COLUMN.plus(m + 1);
    project(k, v, w, correction);
    k.ratio(COLUMN.plus(m), &[correction.plus(m)], &[]);
    let mut second = vec![0.0; m + 1];
    k.read(correction, &mut second);
    for (h, c) in column[..m].iter_mut().zip(&second) {
        *h += c;
    }
    column[m] = second[m];
}

impl<K: Operations> Solver<K> for Gmres<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let stop = self.settings.stop.clone();
        k.fill(x, 0.0);
        self.start(k, s, x, true);
        let mut norm = [0.0];
        k.read(NORM, &mut norm);
        let mut judge = ConvergenceMonitor::new(&stop, monitor, norm[0]);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let mut column = vec![0.0; self.settings.restart + 1];
        loop {
            k.scale(Coef::Reciprocal(NORM), &mut self.basis[0]);
            self.small.reset(norm[0]);
            self.orthogonality.reset();
            self.delayed.iter_mut().for_each(Delayed::reset);
            let (mut end, mut begun) = (None, false);
            for j in 0..self.settings.restart {
                if !begun {
                    self.expand(k, s, j);
                }
                let column = &mut column[..j + 2];
                let wanted = j + 1 < self.settings.restart && !judge.may_end();
                let Some(next) = self.orthogonalise(k, s, j, column, wanted) else {
                    end = Some(SolveEnd::Breakdown(EXHAUSTED));
                    break;
                };
                begun = next;
                end = if let Some(residual) = self.small.add(column) {
                    judge.step(residual)
                } else {
                    // the space is invariant and yet the residual is not zero
                    judge.step(self.small.residual()).or(Some(SolveEnd::Breakdown(EXHAUSTED)))
                };
                if end.is_some() {
                    break;
                }
                if !begun {
                    self.normalise(k, j);
                }
            }
            if !matches!(end, Some(SolveEnd::Diverged)) {
                self.update(k, s, x);
            }
            if let Some(end) = end.or_else(|| judge.cycle()) {
                return judge.outcome(end);
            }
            self.start(k, s, x, false);
            k.read(NORM, &mut norm);
            if !norm[0].is_finite() {
                return judge.outcome(SolveEnd::Diverged);
            }
            if norm[0] == 0.0 {
                return judge.outcome(SolveEnd::Converged);
            }
        }
    }
}

impl<K: Operations> Gmres<K> {
    /// `x += V y`, or `x += M^-1 V y` on the right.
    fn update(&mut self, k: &K, s: &System<K>, x: &mut K::Vector) {
        let y = self.small.solve();
        if y.is_empty() {
            return;
        }
        match self.settings.side {
            Side::Left => {
                k.combine(&self.basis[..y.len()], y, &mut self.work);
                k.axpby(Coef::ONE, &self.work, Coef::ONE, x);
            }
            Side::Right => {
                // the last vector of the basis is rebuilt before it is next read
                let (v, last) = self.basis.split_at_mut(y.len());
                k.combine(v, y, &mut self.work);
                s.m.apply(k, &self.work, &mut last[0]);
                k.axpby(Coef::ONE, &last[0], Coef::ONE, x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_moves_its_share_of_the_cycles() {
        // cycles of two steps and of one: 5 + 2 and 7 + 2 vectors, then 5 + 2, and 8 + 2 and 8 + 1 for their ends
        let three = moves(2, Orthogonalisation::Cgs, 3).unwrap();
        assert_eq!(three.vectors, f64::from(16 + 10 + 7 + 9) / 3.0);
        assert!((three.products - 5.0 / 3.0).abs() < 1e-15 && three.products == three.applications);
        let twice = moves(2, Orthogonalisation::Cgs2, 3).unwrap();
        assert_eq!(twice.vectors, f64::from(28 + 10 + 12 + 9) / 3.0);
        assert_eq!(moves(20, Orthogonalisation::Mgs, 3), None);
        assert_eq!(moves(20, Orthogonalisation::Cgs, 0), None);
    }
}
