//! Quasi-minimal residuals without look-ahead with coupled two-term recurrences (Freund and Nachtigal
//! 1994, SIAM J. Sci. Comput. 15, in the form of Barrett et al. 1994, Templates, section 2.3.9).

use super::{Method, Steps, vectors_of};
use crate::base::choices::Side;
use crate::base::error::Result;
use crate::base::setting::Setting;
use crate::compute::krylov::stop::{CYCLE, ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Persistent, Settings, Solver, System, Transposed};
use crate::compute::{AT_ONCE, Coef, Operations, Slot, Step};

pub(crate) const METHOD: Method = Method {
    name: PERSISTENT.name,
    summary: "quasi-minimal residuals, left or right preconditioned; uses A' and M' too",
    uses: &[Setting::Side],
    transposed: true,
    replays: true,
    persistent: Some(&PERSISTENT),
    steps: Some(Steps { products: 2, applications: 2, dots: 5, updates: 10, vectors: 35 }),
    // iterate by iteration, as what is replayed
    compared: &[],
    ..Method::PLAIN
};

const PERSISTENT: Persistent = Persistent {
    name: "qmr",
    range_vectors: 8,
    product_vectors: 2,
    breakdowns: &BREAKDOWNS,
    restarts: false,
    factors: false,
    long_row_threads: None,
};

/// A Lanczos vector, delta or epsilon vanishes.
const BREAKDOWNS: [&str; 3] = [
    "a Lanczos vector is zero",
    "delta is zero: the Lanczos vectors are orthogonal to each other",
    "epsilon is zero: (q, A p) vanishes",
];

/// Scalars that go from iteration to iteration: lengths of the Lanczos vectors, `(z, y)` of the length
/// one, the rotation, and what directions and updates keep of themselves.
const RHO: Slot = Slot(0);
const XI: Slot = Slot(1);
const DELTA: Slot = Slot(2);
const GAMMA: Slot = Slot(3);
const ETA: Slot = Slot(4);
const THETA: Slot = Slot(5);
const BACK_P: Slot = Slot(6);
const BACK_Q: Slot = Slot(7);
const KEPT: Slot = Slot(8);
/// The first of the intermediate ones.
const WORK: Slot = Slot(9);

/// What an iteration finds: `|y|`, `|z|`, `(z, y)`, `(q, A p)` and `|r|`, side by side for each
/// iteration since the last look.
#[derive(Clone, Copy)]
struct Found {
    rho: Slot,
    xi: Slot,
    zy: Slot,
    epsilon: Slot,
    norm: Slot,
}

const FOUND: Slot = Slot(16);
const EACH: usize = 5;

impl Found {
    /// Of iteration `i` since the last look.
    fn of(i: usize) -> Self {
        let at = |j| FOUND.plus(EACH * i + j);
        Self { rho: at(0), xi: at(1), zy: at(2), epsilon: at(3), norm: at(4) }
    }
}

/// QMR with its vectors. An iteration has a product with A and one with A', and an application of
/// M and one of M'; the monitored residual is the true one on either side.
pub(super) struct Qmr<K: Operations> {
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

impl<K: Operations> Qmr<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let [r, v, w, hat, p, q, ap, d, s, work] = vectors_of(k, n)?;
        Ok(Self { settings: settings.clone(), r, v, w, hat, p, q, ap, d, s, work })
    }

    /// Begins with the residual in `r`.
    fn begin(&mut self, k: &K, system: &System<K>, transposed: &Transposed<K>, x: &mut K::Vector) {
        k.fill(x, 0.0);
        for to in [&mut self.r, &mut self.v, &mut self.w] {
            k.copy(system.b, to);
        }
        for directions in [&mut self.p, &mut self.q, &mut self.d, &mut self.s] {
            k.fill(directions, 0.0);
        }
        let found = Found::of(0);
        k.norm(&self.r, found.norm);
        self.measure(k, system, transposed, found);
        k.scalars(&[
            Step::set(RHO, Coef::Slot(found.rho)),
            Step::set(XI, Coef::Slot(found.xi)),
            Step::product(WORK, Coef::Slot(RHO), Coef::Slot(XI)),
            Step::set(DELTA, Coef::Ratio(found.zy, WORK)),
            Step::set(GAMMA, Coef::ONE),
            Step::set(ETA, Coef::Host(-1.0)),
            Step::set(THETA, Coef::ZERO),
            Step::set(BACK_P, Coef::ZERO),
            Step::set(BACK_Q, Coef::ZERO),
        ]);
    }

    /// Puts v or w behind the preconditioner into `hat` and finds the norms and the product of
    /// `y = M1^-1 v` and `z = M2'^-1 w`, where M = M1 M2 is M1 on the left and M2 on the right.
    fn measure(&mut self, k: &K, system: &System<K>, transposed: &Transposed<K>, found: Found) {
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
        k.norm(y, found.rho);
        k.norm(z, found.xi);
        k.dot(z, y, found.zy);
    }

    /// Scales v, w, y and z to the length one and finds the directions p and q.
    fn directions(&mut self, k: &K, system: &System<K>, transposed: &Transposed<K>) {
        let (by_rho, by_xi) = (Coef::Reciprocal(RHO), Coef::Reciprocal(XI));
        let (back_p, back_q) = (Coef::Slot(BACK_P), Coef::Slot(BACK_Q));
        k.scale(by_rho, &mut self.v);
        k.scale(by_xi, &mut self.w);
        // p = M2^-1 y - (xi delta / epsilon) p; q = M1'^-1 z - (rho delta / epsilon) q
        match self.settings.side {
            Side::Left => {
                k.axpby(by_rho, &self.hat, back_p, &mut self.p);
                transposed.m.apply(k, &self.w, &mut self.work);
                k.axpby(Coef::ONE, &self.work, back_q, &mut self.q);
            }
            Side::Right => {
                system.m.apply(k, &self.v, &mut self.work);
                k.axpby(Coef::ONE, &self.work, back_p, &mut self.p);
                k.axpby(by_xi, &self.hat, back_q, &mut self.q);
            }
        }
    }

    /// An iteration. Once a divisor has been zero, x and r stay as they are.
    fn step(
        &mut self,
        k: &K,
        system: &System<K>,
        transposed: &Transposed<K>,
        x: &mut K::Vector,
        found: Found,
    ) {
        self.directions(k, system, transposed);
        // epsilon = (q, A p); v = A p - beta v, w = A' q - beta w with beta = epsilon / delta
        k.spmv(system.a, &self.p, &mut self.ap);
        k.dot(&self.q, &self.ap, found.epsilon);
        k.axpby(Coef::ONE, &self.ap, Coef::NegRatio(found.epsilon, DELTA), &mut self.v);
        k.spmv(transposed.a, &self.q, &mut self.work);
        k.axpby(Coef::ONE, &self.work, Coef::NegRatio(found.epsilon, DELTA), &mut self.w);
        self.measure(k, system, transposed, found);
        k.scalars(&advance(found));
        // d = eta p + (theta_old gamma)^2 d, s = A d; x += d, r -= s
        let (eta, kept) = (Coef::Slot(ETA), Coef::Slot(KEPT));
        k.axpby(eta, &self.p, kept, &mut self.d);
        k.axpby(eta, &self.ap, kept, &mut self.s);
        k.axpby(Coef::ONE, &self.d, Coef::ONE, x);
        k.axpby(Coef::Host(-1.0), &self.s, Coef::ONE, &mut self.r);
        k.norm(&self.r, found.norm);
    }
}

impl<K: Operations> Solver<K> for Qmr<K> {
    fn solve(
        &mut self,
        k: &K,
        system: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let transposed = system.transposed.as_ref().expect("the solver asks for A' and M'");
        let stop = self.settings.stop.clone();
        self.begin(k, system, transposed, x);
        let mut all = [0.0; EACH * AT_ONCE];
        k.read(FOUND, &mut all[..EACH]);
        let mut judge = ConvergenceMonitor::new(&stop, monitor, all[EACH - 1]);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        if let Some(what) = broken(&all) {
            return judge.outcome(SolveEnd::Breakdown(what));
        }
        let at_once = k.iterations_at_once();
        let mut recording = K::Recording::default();
        loop {
            let count = at_once.min(stop.max_iterations - judge.iterations);
            let mut steps = || {
                for i in 0..count {
                    self.step(k, system, transposed, x, Found::of(i));
                }
            };
            if count == at_once {
                k.replay(&mut recording, &mut steps);
            } else {
                steps();
            }
            k.read(FOUND, &mut all[..EACH * count]);
            for found in all[..EACH * count].chunks_exact(EACH) {
                let (epsilon, norm) = (found[3], found[4]);
                if epsilon == 0.0 {
                    return judge.outcome(SolveEnd::Breakdown(BREAKDOWNS[2]));
                }
                if let Some(end) = judge.step(norm).or_else(|| judge.cycle_of(CYCLE)) {
                    return judge.outcome(end);
                }
                if let Some(what) = broken(found) {
                    return judge.outcome(SolveEnd::Breakdown(what));
                }
            }
        }
    }
}

/// The quantity among those found that must not be zero when an iteration begins and is.
fn broken(found: &[f64]) -> Option<&'static str> {
    let [rho, xi, zy] = [found[0], found[1], found[2]];
    if rho == 0.0 || xi == 0.0 {
        // the space is exhausted, and the residual is not zero
        Some(BREAKDOWNS[0])
    } else if zy / (rho * xi) == 0.0 {
        Some(BREAKDOWNS[1])
    } else {
        None
    }
}

/// New scalars from those of the last iteration and what this one has found. A divisor that is zero
/// makes ETA and KEPT zero, and leaves ETA so.
fn advance(found: Found) -> [Step; 25] {
    let Found { rho, xi, zy, epsilon, .. } = found;
    let work = |i: usize| WORK.plus(i);
    let [beta, size, whole, new_theta, new_gamma, a, b] = std::array::from_fn(work);
    let of = Coef::Slot;
    [
        Step::set(beta, Coef::Ratio(epsilon, DELTA)),
        // theta = rho / (gamma |beta|); gamma = 1 / sqrt(1 + theta^2)
        Step::hypot(size, of(beta), Coef::ZERO),
        Step::product(size, of(size), of(GAMMA)),
        Step::set(new_theta, Coef::Ratio(rho, size)),
        Step::hypot(size, of(new_theta), Coef::ONE),
        Step::set(new_gamma, Coef::Reciprocal(size)),
        // eta = -eta rho gamma^2 / (beta gamma_old^2), with the old rho
        Step::product(a, of(new_gamma), of(new_gamma)),
        Step::product(a, of(a), of(RHO)),
        Step::product(b, of(GAMMA), of(GAMMA)),
        Step::product(b, of(b), of(beta)),
        Step::product(ETA, of(ETA), Coef::NegRatio(a, b)),
        // (theta_old gamma)^2, or zero where a divisor is
        Step::product(whole, Coef::Ratio(DELTA, DELTA), Coef::Ratio(epsilon, epsilon)),
        Step::product(a, of(THETA), of(new_gamma)),
        Step::product(KEPT, of(a), of(a)),
        Step::product(KEPT, of(KEPT), of(whole)),
        Step::set(THETA, of(new_theta)),
        Step::set(GAMMA, of(new_gamma)),
        Step::set(RHO, of(rho)),
        Step::set(XI, of(xi)),
        Step::product(a, of(RHO), of(XI)),
        Step::set(DELTA, Coef::Ratio(zy, a)),
        // what the next directions keep: -xi delta / epsilon and -rho delta / epsilon
        Step::product(a, of(XI), of(DELTA)),
        Step::set(BACK_P, Coef::NegRatio(a, epsilon)),
        Step::product(b, of(RHO), of(DELTA)),
        Step::set(BACK_Q, Coef::NegRatio(b, epsilon)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::lookup;
    use super::*;
    use crate::base::choices::{Format, Orthogonalisation};
    use crate::case::Case;
    use crate::compute::cpu::Cpu;
    use crate::compute::krylov::Stop;
    use crate::compute::{Storage as _, Vectors as _};
    use crate::methods::precond;
    use crate::methods::precond::Setup;
    use crate::problem::samples::matrix;
    use std::sync::Arc;

    /// Residual history and solution of a method without a preconditioner.
    fn history(solver: &str, spec: &str) -> (Vec<f64>, Vec<f64>) {
        let k = Cpu::sequential();
        let a = matrix(spec);
        let at = Arc::new(a.transposed());
        let n = a.rows();
        let setup = || {
            let case = Case::default();
            let none = precond::lookup::<Cpu>("none").unwrap();
            none(Setup { k: &k, a: &a, settings: &case.preconditioning(), phases: &mut () })
                .unwrap()
        };
        let (m, other) = (setup(), setup());
        let stored = |a| k.matrix(a, Format::Csr).unwrap();
        let (matrix, transposed) = (stored(&a), stored(&at));
        let (mut b, mut x) = (k.vector(n).unwrap(), k.vector(n).unwrap());
        (0..n).for_each(|i| b[i] = ((i * 7919) % 101) as f64 - 50.0);
        let stop = Stop { rtol: 1e-11, max_iterations: 200, time_limit_s: None };
        let orthogonalisation = Orthogonalisation::Cgs2;
        let settings = Settings { restart: 200, orthogonalisation, ..Settings::new(stop) };
        let mut method = lookup::<Cpu>(solver).unwrap()(&k, &settings, n).unwrap();
        let transposed = Some(Transposed { a: &transposed, m: &*other });
        let system = System { a: &matrix, m: &*m, b: &b, transposed, deflation: None };
        let mut seen = Vec::new();
        let outcome = method.solve(&k, &system, &mut x, &mut seen);
        assert_eq!(outcome.end, SolveEnd::Converged, "{solver} {spec}");
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
