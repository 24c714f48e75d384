//! Preconditioned conjugate gradients (Saad, Iterative Methods, 2nd edition, algorithm 9.1), with
//! deflation where the system has it (Tang, Nabben, Vuik and Erlangga 2009, DEF1): A becomes `P A`, the
//! residual `P r`, and the solution's part in the vectors is found at the end.

use super::projections::Projections;
use super::{Advised, Method, Steps, from_zero, read_meanwhile, vectors_of};
use crate::base::error::Result;
use crate::base::setting::Setting;
use crate::compute::krylov::stop::{ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::{Coef, Eisenstat, Operations, Slot};
use crate::methods::precond::{bilu, jacobi};

pub(crate) const METHOD: Method = Method {
    name: "cg",
    summary: "preconditioned conjugate gradients, deflated or not, for symmetric positive definite \
              systems",
    uses: &[Setting::SymmetryTolerance],
    symmetric: true,
    deflates: true,
    steps: Some(Steps { products: 1, applications: 1, dots: 3, updates: 3, vectors: 14 }),
    advised: Advised { definite: Some(0), symmetric: Some(2), general: None },
    compared: &[(jacobi::METHOD.name, 4, 0), (bilu::METHOD.name, 1, 0)],
    ..Method::PLAIN
};

const RHO: [Slot; 2] = [Slot(0), Slot(1)];
/// `(p, A p)` and `|r|`, side by side: one read an iteration.
const PQ: Slot = Slot(2);
const NORM: Slot = Slot(3);

/// The same for conjugate gradients, which minimise another norm: with jumps of the coefficient the
/// residual rises first and stays there for hundreds of iterations, until the small eigenvalues are found.
pub(super) const LONG_CYCLE: usize = 1000;

/// What ends the recurrence.
pub(super) const NO_RHO: &str = "(r, M^-1 r) is zero: the preconditioner is not positive definite";
pub(super) const NEGATIVE_RHO: &str =
    "(r, M^-1 r) is negative: the preconditioner is not positive definite";
pub(super) const NO_PQ: &str = "(p, A p) is not positive: the matrix is not positive definite";

/// CG with its vectors. The monitored residual is the true one, whatever the side and with deflation
/// too: it is that of the solution which the last step would make of the iterate.
pub(super) struct Cg<K: Operations> {
    settings: Settings,
    r: K::Vector,
    z: K::Vector,
    p: K::Vector,
    q: K::Vector,
    /// Unknowns, and vectors for a preconditioner that multiplies on its way.
    n: usize,
    solved: Option<[K::Vector; 4]>,
}

impl<K: Operations> Cg<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let v = || k.vector(n);
        Ok(Self { settings: settings.clone(), r: v()?, z: v()?, p: v()?, q: v()?, n, solved: None })
    }
}

impl<K: Operations> Solver<K> for Cg<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let Self { settings, r, z, p, q, n, solved } = self;
        let initial = from_zero(k, s, x, r, NORM);
        let mut judge = ConvergenceMonitor::new(&settings.stop, monitor, initial);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let mut projections = None;
        if s.deflation.is_none()
            && let Some(m) = s.m.eisenstat()
        {
            // without room for these vectors the other way is left
            if solved.is_none() {
                *solved = vectors_of(k, *n).ok();
            }
            if let Some(solved) = solved {
                let end = Self::iterate_through(k, m, [r, z, p, q], solved, x, &mut judge);
                return judge.outcome(end);
            }
        }
        // of what the vectors alone solve nothing is left to iterate on
        let mut end = None;
        if let Some(deflation) = s.deflation {
            let sizes = (initial, settings.stop.rtol);
            let (new, norm) = Projections::start(k, deflation, [r, z, q], sizes, [PQ, NORM]);
            projections = Some(new);
            end = judge.between(norm);
        }
        let end = end.unwrap_or_else(|| {
            Self::iterate(k, s, [r, z, p, q], x, (&mut judge, &mut projections))
        });
        let Some(projections) = projections else { return judge.outcome(end) };
        projections.correct(k, s, x, [q, z], [PQ, NORM]);
        Outcome { remark: projections.remark(), ..judge.outcome(end) }
    }
}

impl<K: Operations> Cg<K> {
    /// Iterates from the residual `r` of x = 0, projected; says why it ended.
    fn iterate(
        k: &K,
        s: &System<K>,
        [r, z, p, q]: [&mut K::Vector; 4],
        x: &mut K::Vector,
        (judge, projections): (&mut ConvergenceMonitor, &mut Option<Projections<K>>),
    ) -> SolveEnd {
        let mut scalars = [0.0; 4];
        let mut begun = false;
        for iteration in 0.. {
            let (rho, old) = (RHO[iteration % 2], RHO[(iteration + 1) % 2]);
            // z = M^-1 r; rho = (r, z)
            if !begun {
                s.m.apply(k, r, z);
            }
            k.dot(r, z, rho);
            // p = z + (rho / rho_old) p
            let beta = if iteration == 0 { Coef::ZERO } else { Coef::Ratio(rho, old) };
            k.axpby(Coef::ONE, z, beta, p);
            // q = A p, deflated P A p; alpha = rho / (p, q)
            k.spmv(s.a, p, q);
            if let Some(projections) = projections {
                projections.project(k, q);
            }
            k.dot(p, q, PQ);
            // x += alpha p; r -= alpha q
            k.axpby(Coef::Ratio(rho, PQ), p, Coef::ONE, x);
            k.axpby(Coef::NegRatio(rho, PQ), q, Coef::ONE, r);
            k.norm(r, NORM);
            let wanted = projections.is_none() && !judge.may_end();
            begun = read_meanwhile(k, RHO[0], &mut scalars, wanted, || s.m.apply(k, r, z));
            if let Some(end) = ended(&scalars, iteration, judge) {
                return end;
            }
            if let Some(projections) = projections
                && projections.watch(k, r, scalars[3], judge.iterations)
            {
                scalars[3] = super::norm(k, r, NORM);
                if let Some(end) = judge.between(scalars[3]) {
                    return end;
                }
            }
        }
        unreachable!("the iteration limit ends the loop")
    }

    /// The same iterates with a preconditioner `(D + L) D^-1 (D + U)` that multiplies on its way (Eisenstat 1981). The
    /// residual r has a companion `y = (D + L)^-1 r`, for which `(r, M^-1 r) = (y, D y)`, and directions t come from
    /// their `p = (I + D^-1 U) t`.
    fn iterate_through(
        k: &K,
        m: &dyn Eisenstat<K>,
        [r, t, p, q]: [&mut K::Vector; 4],
        [y, dy, of_q, dof_q]: &mut [K::Vector; 4],
        x: &mut K::Vector,
        judge: &mut ConvergenceMonitor,
    ) -> SolveEnd {
        let mut scalars = [0.0; 4];
        m.forward(k, r, [y, dy]);
        for iteration in 0.. {
            let (rho, old) = (RHO[iteration % 2], RHO[(iteration + 1) % 2]);
            k.dot(y, dy, rho);
            // p = y + (rho / rho_old) p
            let beta = if iteration == 0 { Coef::ZERO } else { Coef::Ratio(rho, old) };
            k.axpby(Coef::ONE, y, beta, p);
            // q = A t; alpha = rho / (t, q)
            m.through(k, p, [t, q], [of_q, dof_q]);
            k.dot(t, q, PQ);
            // x += alpha t; r -= alpha q, and its companion
            k.axpby(Coef::Ratio(rho, PQ), t, Coef::ONE, x);
            for (of_r, of_q) in [(&mut *r, &*q), (&mut *y, &*of_q), (&mut *dy, &*dof_q)] {
                k.axpby(Coef::NegRatio(rho, PQ), of_q, Coef::ONE, of_r);
            }
            k.norm(r, NORM);
            k.read(RHO[0], &mut scalars);
            if let Some(end) = ended(&scalars, iteration, judge) {
                return end;
            }
        }
        unreachable!("the iteration limit ends the loop")
    }
}

/// Why the recurrence or the solve ends with an iteration, given what was read after it.
fn ended(scalars: &[f64; 4], iteration: usize, judge: &mut ConvergenceMonitor) -> Option<SolveEnd> {
    let (rho, pq) = (scalars[iteration % 2], scalars[2]);
    if rho <= 0.0 {
        return Some(SolveEnd::Breakdown(if rho < 0.0 { NEGATIVE_RHO } else { NO_RHO }));
    }
    if pq <= 0.0 {
        return Some(SolveEnd::Breakdown(NO_PQ));
    }
    judge.step(scalars[3]).or_else(|| judge.cycle_of(LONG_CYCLE))
}
