//! Quasi-minimal residuals without look-ahead (Freund and Nachtigal 1991, in the form of Barrett et
//! al. 1994, Templates, section 2.3.9, with coupled two-term recurrences).

use super::cg::CYCLE;
use super::stop::{End, Judge};
use super::{Monitor, Outcome, Settings, Solver, System, Transposed};
use crate::backend::{Backend, Coef, Slot};
use crate::case::Side;
use crate::error::Result;

/// `|y|`, `|z|`, `(z, y)` and `(q, A p)`: one read in the middle of an iteration.
const RHO: Slot = Slot(0);
const XI: Slot = Slot(1);
const ZY: Slot = Slot(2);
const EPSILON: Slot = Slot(3);
const SCALARS: usize = 4;
const DELTA: Slot = Slot(4);
const NORM: Slot = Slot(5);

/// Breakdowns as a kernel numbers them, from 1.
pub(crate) const BREAKDOWNS: [&str; 3] = [
    "a Lanczos vector is zero",
    "delta is zero: the Lanczos vectors are orthogonal to each other",
    "epsilon is zero: (q, A p) vanishes",
];

/// QMR with its vectors. An iteration has a product with A and one with A', and an application of
/// M and one of M'; the monitored residual is the true one on either side.
pub(super) struct Qmr<K: Backend> {
    settings: Settings,
    r: K::Vector,
    /// Bases of the two Krylov spaces, unscaled at first.
    v: K::Vector,
    w: K::Vector,
    /// The one of them that meets the preconditioner, behind it.
    hat: K::Vector,
    p: K::Vector,
    q: K::Vector,
    /// `A p`.
    ap: K::Vector,
    d: K::Vector,
    s: K::Vector,
    work: K::Vector,
}

/// Numbers that go from iteration to iteration.
struct Recurrence {
    rho: f64,
    xi: f64,
    delta: f64,
    epsilon: f64,
    gamma: f64,
    eta: f64,
    theta: f64,
}

impl<K: Backend> Qmr<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let v = || k.vector(n);
        Ok(Self {
            settings: settings.clone(),
            r: v()?,
            v: v()?,
            w: v()?,
            hat: v()?,
            p: v()?,
            q: v()?,
            ap: v()?,
            d: v()?,
            s: v()?,
            work: v()?,
        })
    }

    /// Puts v or w behind the preconditioner into `hat` and finds the norms and the product of
    /// `y = M1^-1 v` and `z = M2'^-1 w`, where M = M1 M2 is M1 on the left and M2 on the right.
    fn measure(&mut self, k: &K, system: &System<K>, transposed: &Transposed<K>) {
        let (y, z) = match self.settings.side {
            Side::Left => {
                system.m.apply(k, &self.v, &mut self.hat);
                (&self.hat, &self.w)
            }
            Side::Right => {
                transposed.m.apply(k, &self.w, &mut self.hat);
                (&self.v, &self.hat)
            }
        };
        k.norm(y, RHO);
        k.norm(z, XI);
        k.dot(z, y, ZY);
    }

    /// Scales v, w, y and z to the length one and finds the directions p and q, `first` without
    /// those before.
    fn directions(
        &mut self,
        k: &K,
        system: &System<K>,
        transposed: &Transposed<K>,
        n: &Recurrence,
        first: bool,
    ) {
        let (rho, xi) = (Coef::Host(1.0 / n.rho), Coef::Host(1.0 / n.xi));
        k.scale(rho, &mut self.v);
        k.scale(xi, &mut self.w);
        let back = |length: f64| {
            if first { Coef::ZERO } else { Coef::Host(-length * n.delta / n.epsilon) }
        };
        // p = M2^-1 y - (xi delta / epsilon) p; q = M1'^-1 z - (rho delta / epsilon) q
        match self.settings.side {
            Side::Left => {
                k.axpby(rho, &self.hat, back(n.xi), &mut self.p);
                transposed.m.apply(k, &self.w, &mut self.work);
                k.axpby(Coef::ONE, &self.work, back(n.rho), &mut self.q);
            }
            Side::Right => {
                system.m.apply(k, &self.v, &mut self.work);
                k.axpby(Coef::ONE, &self.work, back(n.xi), &mut self.p);
                k.axpby(xi, &self.hat, back(n.rho), &mut self.q);
            }
        }
    }
}

impl<K: Backend> Solver<K> for Qmr<K> {
    fn solve(
        &mut self,
        k: &K,
        system: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let transposed = system.transposed.as_ref().expect("the solver asks for A' and M'");
        let stop = self.settings.stop.clone();
        k.fill(x, 0.0);
        k.copy(system.b, &mut self.r);
        k.copy(system.b, &mut self.v);
        k.copy(system.b, &mut self.w);
        k.norm(&self.r, NORM);
        self.measure(k, system, transposed);
        let (mut scalars, mut norm) = ([0.0; SCALARS], [0.0]);
        k.read(NORM, &mut norm);
        let mut judge = Judge::new(&stop, monitor, norm[0]);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        k.read(RHO, &mut scalars);
        let [rho, xi, zy, _] = scalars;
        let mut n = Recurrence {
            rho,
            xi,
            delta: zy / (rho * xi),
            epsilon: 0.0,
            gamma: 1.0,
            eta: -1.0,
            theta: 0.0,
        };
        loop {
            let first = judge.iterations == 0;
            if let Some(what) = n.broken() {
                return judge.outcome(End::Breakdown(what));
            }
            k.ratio(DELTA, &[ZY], &[RHO, XI]);
            self.directions(k, system, transposed, &n, first);
            // epsilon = (q, A p); v = A p - beta v, w = A' q - beta w with beta = epsilon / delta
            k.spmv(system.a, &self.p, &mut self.ap);
            k.dot(&self.q, &self.ap, EPSILON);
            k.axpby(Coef::ONE, &self.ap, Coef::NegRatio(EPSILON, DELTA), &mut self.v);
            k.spmv(transposed.a, &self.q, &mut self.work);
            k.axpby(Coef::ONE, &self.work, Coef::NegRatio(EPSILON, DELTA), &mut self.w);
            self.measure(k, system, transposed);
            k.read(RHO, &mut scalars);
            let [rho, xi, zy, epsilon] = scalars;
            if epsilon == 0.0 {
                return judge.outcome(End::Breakdown(BREAKDOWNS[2]));
            }
            let back = n.advance(rho, epsilon);
            // d = eta p + (theta_old gamma)^2 d, s = A d; x += d, r -= s
            let (eta, back) = (Coef::Host(n.eta), Coef::Host(if first { 0.0 } else { back }));
            k.axpby(eta, &self.p, back, &mut self.d);
            k.axpby(eta, &self.ap, back, &mut self.s);
            k.axpby(Coef::ONE, &self.d, Coef::ONE, x);
            k.axpby(Coef::Host(-1.0), &self.s, Coef::ONE, &mut self.r);
            k.norm(&self.r, NORM);
            k.read(NORM, &mut norm);
            if let Some(end) = judge.step(norm[0]) {
                return judge.outcome(end);
            }
            (n.rho, n.xi, n.delta) = (rho, xi, zy / (rho * xi));
            if judge.iterations.is_multiple_of(CYCLE)
                && let Some(end) = judge.cycle()
            {
                return judge.outcome(end);
            }
        }
    }
}

impl Recurrence {
    /// The quantity that must not be zero when an iteration begins and is.
    fn broken(&self) -> Option<&'static str> {
        if self.rho == 0.0 || self.xi == 0.0 {
            // the space is exhausted, and the residual is not zero
            Some(BREAKDOWNS[0])
        } else if self.delta == 0.0 {
            Some(BREAKDOWNS[1])
        } else {
            None
        }
    }

    /// New gamma, eta and theta, given the next rho and epsilon; returns what d keeps of itself.
    fn advance(&mut self, rho: f64, epsilon: f64) -> f64 {
        let beta = epsilon / self.delta;
        let theta = rho / (self.gamma * beta.abs());
        let gamma = 1.0 / 1.0_f64.hypot(theta);
        self.eta *= -self.rho * gamma * gamma / (beta * self.gamma * self.gamma);
        let kept = self.theta * gamma;
        (self.theta, self.gamma, self.epsilon) = (theta, gamma, epsilon);
        kept * kept
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Stop, lookup};
    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::case::{Case, Format, Orthogonalisation, ReadAs};
    use crate::precond::{self, Phase, Phases, Setup};
    use crate::problem::load;
    use std::sync::Arc;

    struct Silent;
    impl Phases for Silent {
        fn begin(&mut self, _: Phase) {}
    }

    /// Residual history and solution of a method without a preconditioner.
    fn history(solver: &str, spec: &str) -> (Vec<f64>, Vec<f64>) {
        let k = Cpu::sequential();
        let a = load(spec, ReadAs::Expanded).unwrap().matrix;
        let at = Arc::new(a.transposed());
        let n = a.rows();
        let setup = || {
            let case = Case::default();
            let none = precond::lookup::<Cpu>("none").unwrap();
            none(Setup { k: &k, a: &a, case: &case, phases: &mut Silent }).unwrap()
        };
        let (m, other) = (setup(), setup());
        let stored = |a| k.matrix(a, 1, Format::Csr).unwrap();
        let (matrix, transposed) = (stored(&a), stored(&at));
        let (mut b, mut x) = (k.vector(n).unwrap(), k.vector(n).unwrap());
        (0..n).for_each(|i| b[i] = ((i * 7919) % 101) as f64 - 50.0);
        let settings = Settings {
            side: Side::Right,
            restart: 200,
            orthogonalisation: Orthogonalisation::Cgs2,
            stop: Stop { rtol: 1e-11, max_iterations: 200, time_limit_s: None },
        };
        let mut method = lookup::<Cpu>(solver).unwrap()(&k, &settings, n).unwrap();
        let transposed = Some(Transposed { a: &transposed, m: &*other });
        let system = System { a: &matrix, m: &*m, b: &b, transposed, deflation: None };
        let mut seen = Vec::new();
        let outcome = method.solve(&k, &system, &mut x, &mut seen);
        assert_eq!(outcome.end, End::Converged, "{solver} {spec}");
        (seen, x.to_vec())
    }

    /// With A = A' the Lanczos vectors are orthogonal, and the quasi-minimal residual is the minimal
    /// one: that of GMRES without restarts.
    #[test]
    fn a_symmetric_matrix_has_the_residuals_of_gmres() {
        let (qmr, x) = history("qmr", "poisson3d:7x6x5");
        let (gmres, y) = history("gmres", "poisson3d:7x6x5");
        assert!(qmr.len() >= gmres.len() && gmres.len() > 15, "{} {}", qmr.len(), gmres.len());
        for (i, (q, g)) in qmr.iter().zip(&gmres).take(20).enumerate() {
            assert!((q - g).abs() < 1e-6 * g, "iteration {}: {q:e} beside {g:e}", i + 1);
        }
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-7));
    }

    /// Otherwise GMRES is never above it.
    #[test]
    fn no_residual_is_below_that_of_gmres() {
        let spec = "convdiff3d:7x6x5,cx=3,pz=0.5";
        let (qmr, x) = history("qmr", spec);
        let (gmres, y) = history("gmres", spec);
        for (q, g) in qmr.iter().zip(&gmres) {
            assert!(*q > g * (1.0 - 1e-9), "{q:e} beside {g:e}");
        }
        assert!(qmr.len() < 3 * gmres.len());
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-7));
    }
}
