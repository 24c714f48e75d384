//! GMRES-based iterative refinement (Carson and Higham, SIAM J. Sci. Comput. 39 and 40, 2017 and 2018).
//!
//! Three precisions: x, b and residuals `b - A x` are in float64. A correction d with `A d = r` is found by GMRES to a
//! loose tolerance, with vectors and a copy of the matrix in float32 where the backend has such ([`Single`]), else in
//! float64; sums are in float64. The factors of the preconditioner are stored in the precision of the case
//! (`--factor-precision`), and its solves are in float64.

use std::cell::RefCell;

use super::gmres::Gmres;
use super::{Method, from_zero, norm};
use crate::base::choices::Side;
use crate::base::error::Result;
use crate::base::setting::Setting;
use crate::base::units::plural;
use crate::compute::krylov::stop::{ConvergenceMonitor, SolveEnd, Stop};
use crate::compute::krylov::{Monitor, Outcome, Settings, Solver, System};
use crate::compute::single::{Rounded, Single, SingleVisitor};
use crate::compute::{Coef, Operations, Slot};

pub(crate) const METHOD: Method = Method {
    name: "gmres-ir",
    summary: "iterative refinement in float64, corrections by right preconditioned GMRES(m) to `--inner-rtol`",
    uses: &[Setting::Restart, Setting::Orthogonalisation, Setting::InnerRtol],
    vectors: |restart| restart + 9,
    ..Method::PLAIN
};

const NORM: Slot = Slot(0);

/// How corrections are found.
trait Corrections<K: Operations> {
    /// `d` with `A d = r`, about, for a residual and its norm.
    fn correct(
        &mut self,
        k: &K,
        s: &System<K>,
        r: (&K::Vector, f64),
        d: &mut K::Vector,
        watch: &mut Watch,
    ) -> SolveEnd;
}

/// By GMRES of the backend itself.
impl<K: Operations> Corrections<K> for Gmres<K> {
    fn correct(
        &mut self,
        k: &K,
        s: &System<K>,
        (r, _): (&K::Vector, f64),
        d: &mut K::Vector,
        watch: &mut Watch,
    ) -> SolveEnd {
        let system = System { a: s.a, m: s.m, b: r, transposed: None, deflation: None };
        self.solve(k, &system, d, watch).end
    }
}

/// By GMRES in float32.
struct InFloat32<K: Operations, L: Single<K>> {
    low: L,
    gmres: Gmres<L>,
    r: L::Vector,
    d: L::Vector,
    work: RefCell<[K::Vector; 2]>,
    /// The matrix of the solve; a later one may have other values.
    a: Option<L::Matrix>,
}

impl<K: Operations, L: Single<K>> Corrections<K> for InFloat32<K, L> {
    fn correct(
        &mut self,
        k: &K,
        s: &System<K>,
        (r, norm): (&K::Vector, f64),
        d: &mut K::Vector,
        watch: &mut Watch,
    ) -> SolveEnd {
        let Self { low, gmres, r: narrow, d: found, work, a } = self;
        if watch.first {
            *a = low.narrowed(s.a);
        }
        let a = a.as_ref().expect("the format does not change");
        low.narrow(r, 1.0 / norm, narrow);
        let m = Rounded { k, m: s.m, work };
        let system = System { a, m: &m, b: narrow, transposed: None, deflation: None };
        let end = gmres.solve(low, &system, found, watch).end;
        low.widen(found, norm, d);
        end
    }
}

/// Makes [`InFloat32`].
struct Make<'a> {
    settings: &'a Settings,
    n: usize,
}

impl<K: Operations + 'static> SingleVisitor<K> for Make<'_> {
    type Output = Box<dyn Corrections<K>>;

    fn visit<L: Single<K>>(self, k: &K, low: L) -> Result<Self::Output> {
        let n = self.n;
        Ok(Box::new(InFloat32 {
            gmres: Gmres::new(&low, self.settings, n)?,
            r: low.vector(n)?,
            d: low.vector(n)?,
            work: RefCell::new([k.vector(n)?, k.vector(n)?]),
            a: None,
            low,
        }))
    }
}

/// Refinement with the method of its corrections.
pub(super) struct GmresIr<K: Operations> {
    settings: Settings,
    n: usize,
    /// Made for the first matrix, and whether it is in float32.
    inner: Option<(Box<dyn Corrections<K>>, bool)>,
    r: K::Vector,
    d: K::Vector,
}

impl<K: Operations + 'static> GmresIr<K> {
    pub(super) fn new(k: &K, settings: &Settings, n: usize) -> Result<Self> {
        let settings = settings.clone();
        Ok(Self { settings, n, inner: None, r: k.vector(n)?, d: k.vector(n)? })
    }

    fn made(&self, k: &K, a: &K::Matrix) -> Result<(Box<dyn Corrections<K>>, bool)> {
        // a correction is one cycle at most, and its end is up to `Watch`
        let stop = Stop { rtol: 0.0, max_iterations: self.settings.restart, time_limit_s: None };
        let settings = &Settings { side: Side::Right, stop, ..self.settings.clone() };
        if let Some(low) = k.in_single(a, Make { settings, n: self.n })? {
            return Ok((low, true));
        }
        Ok((Box::new(Gmres::new(k, settings, self.n)?), false))
    }
}

/// Looks at the iterations of a correction.
struct Watch<'a, 'b> {
    judge: &'a mut ConvergenceMonitor<'b>,
    /// Norm of the residual that is corrected.
    norm: f64,
    inner_rtol: f64,
    /// Whether it is the first of a solve.
    first: bool,
    end: Option<SolveEnd>,
}

impl Monitor for Watch<'_, '_> {
    fn iteration(&mut self, _: usize, residual: f64) -> bool {
        self.end = self.judge.step(residual * self.norm);
        self.end.is_none() && residual > self.inner_rtol
    }
}

impl<K: Operations + 'static> Solver<K> for GmresIr<K> {
    fn solve(
        &mut self,
        k: &K,
        s: &System<K>,
        x: &mut K::Vector,
        monitor: &mut dyn Monitor,
    ) -> Outcome {
        if self.inner.is_none() {
            self.inner = self.made(k, s.a).ok();
        }
        let Self { settings, inner, r, d, .. } = self;
        let mut size = from_zero(k, s, x, r, NORM);
        let mut judge = ConvergenceMonitor::new(&settings.stop, monitor, size);
        let Some((inner, single)) = inner else {
            return judge.outcome(SolveEnd::Breakdown("no memory for the vectors of corrections"));
        };
        if let Some(end) = judge.first() {
            return judge.outcome(end);
        }
        let mut corrections = 0;
        let end = loop {
            let (before, first) = (size, corrections == 0);
            let inner_rtol = settings.inner_rtol;
            let mut watch = Watch { judge: &mut judge, norm: before, inner_rtol, first, end: None };
            let made = inner.correct(k, s, (r, before), d, &mut watch);
            let end = watch.end;
            if made == SolveEnd::Diverged {
                break made;
            }
            corrections += 1;
            k.axpby(Coef::ONE, d, Coef::ONE, x);
            s.m.residual(k, s.a, x, s.b, r);
            size = norm(k, r, NORM);
            if let Some(end) = judge.between(size) {
                break end;
            }
            // what GMRES takes for converged is only so if the residual is
            if let Some(end) = end.filter(|end| *end != SolveEnd::Converged) {
                break end;
            }
            if matches!(made, SolveEnd::Breakdown(_)) && size >= before {
                break made;
            }
            if let Some(end) = judge.cycle() {
                break end;
            }
        };
        let precision = if *single { "float32" } else { "float64" };
        let remark = format!("{} in {precision}", plural(corrections, "correction"));
        Outcome { remark: Some(remark), ..judge.outcome(end) }
    }
}
