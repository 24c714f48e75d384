//! Block ILU(k) whose triangular systems are solved by Jacobi sweeps (Chow, Anzt, Scott and Dongarra
//! 2018): `y = r - L y`, started from `y = r`, and likewise for U'. As many sweeps as levels less one
//! are exact.

use std::sync::Arc;

use super::approximate::{Operator, size};
use super::options::{Parameter, Range};
use super::scratch::Scratch;
use super::work::{Phased, STORED, host, rows};
use super::{Kept, Method, Phase, Ready, Setup, Variants, bilu};
use crate::base::setting::Setting;
use crate::compute::preconditioner::{FactorSize, Preconditioner, Renewal, SetupFailure};
use crate::compute::{Backend, Bytes};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

const PARAMETERS: &[Parameter] = &[Parameter {
    key: "sweeps",
    default: "3",
    range: Range::Whole(1, 1000),
    summary: "with each triangle",
}];

/// Triangles and diagonal on the backend.
struct Swept<K: Backend> {
    lower: Operator<K>,
    diagonal: Operator<K>,
    upper: Operator<K>,
    sweeps: usize,
    pattern: Arc<FillPattern>,
    scratch: Scratch<K, 3>,
}

impl<K: Backend> Swept<K> {
    /// `out` = the last of `sweeps` iterates for the right-hand side `r`.
    fn solve(
        &self,
        k: &K,
        a: &Operator<K>,
        r: &K::Vector,
        out: &mut K::Vector,
        work: &mut K::Vector,
    ) {
        let (mut to, mut other) = if self.sweeps % 2 == 1 { (out, work) } else { (work, out) };
        a.residual(k, r, r, to);
        for _ in 1..self.sweeps {
            std::mem::swap(&mut to, &mut other);
            a.residual(k, other, r, to);
        }
    }
}

impl<K: Backend> Preconditioner<K> for Swept<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let [y, scaled, work] = &mut *self.scratch.borrow();
        self.solve(k, &self.lower, r, y, work);
        self.diagonal.multiply(k, y, scaled);
        self.solve(k, &self.upper, scaled, z, work);
    }

    fn refactor(&mut self, _: &K, _: &Arc<Csr>, _: f64) -> Result<Renewal, SetupFailure> {
        Ok(Renewal::Setup(Some(Arc::clone(&self.pattern))))
    }

    fn bytes(&self, k: &K) -> Bytes {
        let [l, d, u] = [&self.lower, &self.diagonal, &self.upper].map(|a| a.bytes(k));
        // after the first sweep the right-hand side is another vector than the iterate
        let vector = (d.moved - d.held) / 2;
        let more = 2 * (self.sweeps - 1) * vector;
        Bytes {
            held: l.held + d.held + u.held,
            moved: self.sweeps * (l.moved + u.moved) + more + d.moved,
        }
    }

    fn size(&self, _: &K) -> FactorSize {
        let entries = [&self.lower, &self.diagonal, &self.upper].map(Operator::entries);
        size(entries.iter().sum())
    }
}

pub(crate) const METHOD: Method = Method {
    name: "sweeps",
    summary: "block ILU(k) with triangles solved by Jacobi sweeps",
    parameters: PARAMETERS,
    uses: &[
        Setting::BlockSize,
        Setting::Fill,
        Setting::LevelRule,
        Setting::Shift,
        Setting::Ordering,
    ],
    work: Phased {
        symbolic: Some(host("pattern of the factors")),
        analysis: Some(STORED),
        numeric: Some(rows("factors as matrices")),
    },
    keeps: Kept::Pattern,
    variants: Variants { compared: &["sweeps=2"], ..Variants::PLAIN },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(mut s: Setup<K>) -> Ready<K> {
    let sweeps = s.options()?.whole("sweeps");
    let pattern = bilu::pattern(&mut s)?;
    s.phases.begin(Phase::Numeric);
    let factors = s.k.triangles(&pattern, s.a, s.settings.shift.fixed())?;
    s.phases.begin(Phase::Analysis);
    Ok(Box::new(Swept {
        lower: Operator::new(s.k, factors.lower)?,
        diagonal: Operator::new(s.k, factors.inverse_diagonal)?,
        upper: Operator::new(s.k, factors.upper)?,
        sweeps,
        pattern,
        scratch: Scratch::new(s.k, s.a.rows())?,
    }))
}
