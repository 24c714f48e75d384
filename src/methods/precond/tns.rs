//! Truncated Neumann series (Gupta et al. 2015): `A = L + D + U`, `(D + L) D^-1 (D + U)` inverted by
//! series, `M^-1 = K_U D^-1 K_L` with `K_L = I - L D^-1 + (L D^-1)^2 - ..` and
//! `K_U` likewise.

use super::approximate::{Chain, Operator, size};
use super::options::{Options, Parameter, Range};
use super::products::{Made, Stored, Undivided, on_device};
use super::scratch::Scratch;
use super::work::{Phased, STORED, rows};
use super::{Method, Phase, Ready, Setup, Variants};
use crate::base::setting::Setting;
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::compute::setup::Part;
use crate::compute::{Backend, Bytes, Operations};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "order",
        default: "2",
        range: Range::Whole(1, 16),
        summary: "highest power of the series",
    },
    Parameter {
        key: "form",
        default: "implicit",
        range: Range::Words(&["implicit", "explicit"]),
        summary: "products with the triangles, or with the matrix that they make",
    },
];

/// By products alone: with `G = D^-1 L`, `H = D^-1 U`,
/// `z = (I - H + H^2 ..) (I - G + G^2 ..) D^-1 r`, both series by Horner's rule.
struct Implicit<K: Operations> {
    diagonal: Box<dyn Preconditioner<K>>,
    lower: Operator<K>,
    upper: Operator<K>,
    order: usize,
    scratch: Scratch<K, 3>,
}

impl<K: Operations> Preconditioner<K> for Implicit<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let [start, v, w] = &mut *self.scratch.borrow();
        self.diagonal.apply(k, r, start);
        // v = start - G (start - G (.. start))
        series(k, &self.lower, self.order, start, v, w);
        series(k, &self.upper, self.order, v, z, w);
    }

    fn bytes(&self, k: &K) -> Bytes {
        let [d, l, u] = [self.diagonal.bytes(k), self.lower.bytes(k), self.upper.bytes(k)];
        Bytes { held: d.held + l.held + u.held, moved: d.moved + self.order * (l.moved + u.moved) }
    }

    fn size(&self, _: &K) -> FactorSize {
        let entries = self.lower.entries() + self.upper.entries();
        size(entries)
    }
}

/// `out = sum over m <= order of (-a)^m x`; `work` is overwritten.
fn series<K: Operations>(
    k: &K,
    a: &Operator<K>,
    order: usize,
    x: &K::Vector,
    out: &mut K::Vector,
    work: &mut K::Vector,
) {
    // the last of the residuals must end in `out`
    let (mut to, mut other) = if order % 2 == 1 { (out, work) } else { (work, out) };
    a.residual(k, x, x, to);
    for _ in 1..order {
        std::mem::swap(&mut to, &mut other);
        a.residual(k, other, x, to);
    }
}

pub(crate) const METHOD: Method = Method {
    name: "tns",
    summary: "truncated Neumann series of the triangles of A",
    parameters: PARAMETERS,
    uses: &[Setting::BlockSize, Setting::Ordering],
    undivided: Undivided::Products(|options| {
        if is_explicit(options) { 2 * options.whole("order") } else { 1 }
    }),
    work: Phased {
        symbolic: None,
        analysis: Some(STORED),
        numeric: Some(rows("products of triangles")),
    },
    variants: Variants { all: &["", "form=explicit"], compared: &["order=3"], ..Variants::PLAIN },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    on_device(s, make, apply)
}

fn is_explicit(options: &Options) -> bool {
    options.word("form") == "explicit"
}

/// Both triangles divided by the diagonal, or M^-1.
pub(super) fn make<K: Backend>(s: &mut Setup<K>) -> Result<Made<K>, SetupFailure> {
    let options = s.options()?;
    s.phases.begin(Phase::Numeric);
    let k = s.k;
    let a = k.sparse(s.a)?;
    let (lower, upper) = (k.scaled(&a, Part::Lower)?, k.scaled(&a, Part::Upper)?);
    if !is_explicit(&options) {
        return Ok(Made { diagonal: true, ..Made::of([lower, upper]) });
    }
    let order = options.whole("order");
    let right = k.times(&series_of(k, &lower, order)?, &k.inverse_diagonal(&a)?)?;
    Ok(Made::of([k.times(&series_of(k, &upper, order)?, &right)?]))
}

pub(super) fn apply<K: Operations + 'static>(k: &K, mut of: Stored<K>) -> Ready<K> {
    let n = of.unknowns;
    if is_explicit(&of.options) {
        let [m] = of.take();
        return Ok(Box::new(Chain::new(k, n, m, None)?));
    }
    let [lower, upper] = of.take();
    Ok(Box::new(Implicit {
        diagonal: of.diagonal.expect("asked for"),
        lower,
        upper,
        order: of.options.whole("order"),
        scratch: Scratch::new(k, n)?,
    }))
}

/// `I - a + a^2 - ..` to the power `order`, by Horner's rule, for a strict triangle.
fn series_of<K: Backend>(k: &K, a: &K::Sparse, order: usize) -> Result<K::Sparse, SetupFailure> {
    let mut sum = k.identity_minus(a)?;
    for _ in 1..order {
        sum = k.identity_minus(&k.times(a, &sum)?)?;
    }
    Ok(sum)
}
