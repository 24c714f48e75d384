//! IDR(s) with biorthogonalisation (van Gijzen and Sonneveld 2011, Algorithm 913, ACM TOMS 38), s = 4: residuals
//! in spaces that shrink by s dimensions with every s + 1 products.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Method, read_meanwhile};
use crate::base::error::Result;
use crate::compute::krylov::stop::{CYCLE, ConvergenceMonitor, SolveEnd};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::{Coef, Operations, Slot};

pub(crate) const METHOD: Method = Method {
    name: "idr",
    summary: "IDR(4) with biorthogonalisation, right preconditioned",
    vectors: |_| 3 * S + 8,
    ..Method::PLAIN
};

/// Dimension of the shadow space.
const S: usize = 4;
/// Least cosine between t and r at which omega is what minimises the residual (section 3.3).
const LEAST_COSINE: f64 = 0.7;
/// Seed of the shadow space: runs repeat.
const SEED: u64 = 1;

/// `|r|`, then the products with the shadow space, or with t.
const NORM: Slot = Slot(0);
const DOTS: Slot = Slot(1);

const NO_PIVOT: &str = "(p, g) is zero: the shadow space is orthogonal to a direction";
const NO_T: &str = "A M^-1 r is zero: the preconditioned matrix is singular";
const NO_OMEGA: &str = "omega is zero: the residual is orthogonal to A M^-1 r";

/// IDR(s) with its vectors. Every product with its application counts as one iteration; the monitored residual
/// is the true one.
pub(super) struct Idr<K: Operations> {
    settings: Settings,
    /// Shadow space, orthonormal.
    shadow: Vec<K::Vector>,
    /// Directions, and A times them.
    u: Vec<K::Vector>,
    g: Vec<K::Vector>,
    r: K::Vector,
    v: K::Vector,
    hat: K::Vector,
    /// `m[i][k] = (p_i, g_k)`, lower triangular.
    m: [[f64; S]; S],
    /// `f[i] = (p_i, r)`.
    f: [f64; S],
    omega: f64,
}

impl<K: Operations> Idr<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let v = || k.vector(n);
        let many = |count| (0..count).map(|_| v()).collect::<Result<Vec<_>>>();
        // every rank makes the whole vectors and keeps its part
        let [first, all] = k.extent(n);
        let rows = shadow(all);
        let mut shadow = many(rows.len())?;
        rows.iter().zip(&mut shadow).for_each(|(from, to)| k.upload(&from[first..first + n], to));
        Ok(Self {
            settings: settings.clone(),
            u: many(rows.len())?,
            g: many(rows.len())?,
            shadow,
            r: v()?,
            v: v()?,
            hat: v()?,
            m: [[0.0; S]; S],
            f: [0.0; S],
            omega: 1.0,
        })
    }

    /// Begins with the residual in `r`.
    fn reset(&mut self, k: &K) {
        for v in self.u.iter_mut().chain(&mut self.g) {
            k.fill(v, 0.0);
        }
        self.m = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
        self.omega = 1.0;
        self.measure(k);
    }

    /// The norm of `r` and, behind it, its products with the shadow space.
    fn measure(&self, k: &K) {
        k.norm(&self.r, NORM);
        k.multi_dot(&self.shadow, &self.r, DOTS);
    }

    /// What comes before the host looks at [`DOTS`]: direction `place` and its products with the shadow space, or, behind
    /// the last one, A M^-1 r.
    fn prepare(&mut self, k: &K, s: &System<K>, place: usize) {
        let Self { shadow, u, g, r, v, hat, m, f, omega, .. } = self;
        let count = shadow.len();
        if place == count {
            s.m.apply_then_multiply(k, s.a, r, hat, v);
            k.dot(v, r, DOTS);
            return k.dot(v, v, DOTS.plus(1));
        }
        // v = r - G c with M c = f
        let mut c = [0.0; S];
        for i in place..count {
            let before: f64 = (place..i).map(|l| m[i][l] * c[l]).sum();
            c[i] = (f[i] - before) / m[i][i];
        }
        k.combine(&g[place..], &c[place..count], v);
        k.axpby(Coef::ONE, r, Coef::Host(-1.0), v);
        s.m.apply(k, v, hat);
        // u = U c + omega M^-1 v, in the place of v
        k.combine(&u[place..], &c[place..count], v);
        k.axpby(Coef::Host(*omega), hat, Coef::ONE, v);
        std::mem::swap(&mut u[place], v);
        k.spmv(s.a, &u[place], &mut g[place]);
        k.multi_dot(shadow, &g[place], DOTS);
    }

    /// Makes direction `j` orthogonal to the first of the shadow space and steps along it; or what vanished.
    fn step(&mut self, k: &K, x: &mut K::Vector, j: usize) -> Result<(), &'static str> {
        let Self { shadow, u, g, r, m, f, .. } = self;
        let count = shadow.len();
        let mut dots = [0.0; S];
        k.read(DOTS, &mut dots[..count]);
        let mut alpha = [0.0; S];
        for i in 0..j {
            let before: f64 = (0..i).map(|l| alpha[l] * m[i][l]).sum();
            alpha[i] = (dots[i] - before) / m[i][i];
        }
        for vectors in [&mut *u, &mut *g] {
            let (before, own) = vectors.split_at_mut(j);
            for (vector, alpha) in before.iter().zip(alpha) {
                k.axpby(Coef::Host(-alpha), vector, Coef::ONE, &mut own[0]);
            }
        }
        for i in j..count {
            m[i][j] = dots[i] - (0..j).map(|l| alpha[l] * m[i][l]).sum::<f64>();
        }
        if m[j][j] == 0.0 {
            return Err(NO_PIVOT);
        }
        let beta = f[j] / m[j][j];
        k.axpby(Coef::Host(-beta), &g[j], Coef::ONE, r);
        k.axpby(Coef::Host(beta), &u[j], Coef::ONE, x);
        for i in j + 1..count {
            f[i] -= beta * m[i][j];
        }
        k.norm(r, NORM);
        Ok(())
    }

    /// Enters the next space: the step along M^-1 r that makes the residual small. `norm` is that of r.
    fn reduce(&mut self, k: &K, x: &mut K::Vector, norm: f64) -> Result<(), &'static str> {
        let Self { r, v, hat, omega, .. } = self;
        let mut dots = [0.0; 2];
        k.read(DOTS, &mut dots);
        let [tr, tt] = dots;
        if tt == 0.0 {
            return Err(NO_T);
        }
        *omega = tr / tt;
        let cosine = (tr / (tt.sqrt() * norm)).abs();
        if cosine < LEAST_COSINE {
            *omega *= LEAST_COSINE / cosine;
        }
        if tr == 0.0 {
            return Err(NO_OMEGA);
        }
        k.axpby(Coef::Host(*omega), hat, Coef::ONE, x);
        k.axpby(Coef::Host(-*omega), v, Coef::ONE, r);
        self.measure(k);
        Ok(())
    }
}

impl<K: Operations> Solver<K> for Idr<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        let stop = self.settings.stop.clone();
        let count = self.shadow.len();
        k.fill(x, 0.0);
        k.copy(s.b, &mut self.r);
        self.reset(k);
        // the norm of the residual, and f where the space is new
        let mut found = [0.0; S + 1];
        k.read(NORM, &mut found[..=count]);
        let mut judge = ConvergenceMonitor::new(&stop, monitor, found[0]);
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let mut begun = false;
        for place in (0..=count).cycle() {
            if place == 0 {
                self.f.copy_from_slice(&found[1..]);
            }
            if !begun {
                self.prepare(k, s, place);
            }
            let stepped = match place {
                j if j < count => self.step(k, x, j),
                _ => self.reduce(k, x, found[0]),
            };
            if let Err(what) = stepped {
                return judge.outcome(SolveEnd::Breakdown(what));
            }
            // the first direction of a space needs its f
            let wanted = place < count && !judge.may_end();
            let read = if place < count { 1 } else { count + 1 };
            begun = read_meanwhile(k, NORM, &mut found[..read], wanted, || {
                self.prepare(k, s, place + 1);
            });
            if let Some(end) = judge.step(found[0]).or_else(|| judge.cycle_of(CYCLE)) {
                return judge.outcome(end);
            }
        }
        unreachable!("the iteration limit ends the loop")
    }
}

/// At most [`S`] orthonormal vectors of length n.
fn shadow(n: usize) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for _ in 0..S.min(n) {
        let mut row: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
        for other in &rows {
            let part = dot(other, &row);
            row.iter_mut().zip(other).for_each(|(v, o)| *v -= part * o);
        }
        let norm = dot(&row, &row).sqrt();
        row = row.iter().map(|v| v / norm).collect();
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::case::Case;
    use crate::compute::cpu::invert_block;
    use crate::matrix::Csr;
    use crate::methods::solver::bicgstab;
    use crate::methods::solver::block_tests::solved;
    use crate::problem::samples::matrix;

    fn solve(solver: &str, precond: &str, a: &Arc<Csr>, rhs: &[f64]) -> (Outcome, Vec<f64>) {
        let case = Case { solver: solver.into(), precond: precond.into(), ..Case::default() };
        solved(&Case { rtol: 1e-10, ..case }, a, rhs)
    }

    fn right_hand_side(n: usize) -> Vec<f64> {
        (0..n).map(|i| 1.0 + (3.0 * i as f64).sin()).collect()
    }

    #[test]
    fn it_finds_the_solution_of_elimination() {
        for spec in ["convdiff3d:5x4x4,px=0.4", "fem-p1:9x8", "poisson3d:3x1x1", "poisson3d:1x1x1"]
        {
            let a = matrix(spec);
            let (n, b) = (a.rows(), right_hand_side(a.rows()));
            let mut inverse: Vec<f64> =
                (0..n * n).map(|e| a.get(e % n, e / n).unwrap_or(0.0)).collect();
            invert_block(&mut inverse, n).expect("regular");
            let want: Vec<f64> =
                (0..n).map(|i| (0..n).map(|j| inverse[j * n + i] * b[j]).sum()).collect();
            for precond in ["none", "bilu"] {
                let (outcome, x) = solve(METHOD.name, precond, &a, &b);
                assert_eq!(outcome.end, SolveEnd::Converged, "{spec} {precond}");
                // at most (1 + 1 / s) n products, but for rounding
                assert!(outcome.iterations <= n + n / S + 5, "{spec} {precond}: {outcome:?}");
                let scale = want.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                for (x, want) in x.iter().zip(&want) {
                    assert!((x - want).abs() < 1e-8 * scale, "{spec} {precond}: {x} {want}");
                }
            }
        }
    }

    #[test]
    fn it_takes_no_more_products_than_bicgstab_by_much() {
        for spec in ["convdiff3d:14,px=0.4,py=-0.3", "poisson3d:16", "fem-p1:30x31"] {
            let a = matrix(spec);
            let b = right_hand_side(a.rows());
            for precond in ["none", "bilu"] {
                let (own, _) = solve(METHOD.name, precond, &a, &b);
                let (other, _) = solve(bicgstab::METHOD.name, precond, &a, &b);
                assert_eq!((own.end, other.end), (SolveEnd::Converged, SolveEnd::Converged));
                let (own, other) = (own.iterations, 2 * other.iterations);
                println!("{spec} {precond}: {own} products, BiCGStab {other}");
                assert!(own * 10 <= other * 12, "{spec} {precond}: {own} and {other}");
            }
        }
    }

    #[test]
    fn what_vanishes_is_told() {
        let zero = Csr::new(1, 1, vec![0, 1], vec![0], vec![0.0]).unwrap();
        let (outcome, _) = solve(METHOD.name, "none", &Arc::new(zero), &[1.0]);
        assert_eq!((outcome.end, outcome.iterations), (SolveEnd::Breakdown(NO_PIVOT), 0));
    }
}
