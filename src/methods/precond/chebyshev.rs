//! Chebyshev iteration on `D^-1 A` as a polynomial preconditioner.

use super::approximate::size;
use super::options::{Parameter, Range};
use super::polynomial::Polynomial;
use super::products::{Made, Stored, Undivided, on_device};
use super::scratch::Scratch;
use super::work::{Phased, STORED, rows};
use super::{Advised, Method, Phase, Ready, Setup, Variants};
use crate::base::setting::Setting;
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::compute::setup::Part;
use crate::compute::{Backend, Bytes, Operations};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "degree",
        default: "4",
        range: Range::Whole(1, 64),
        summary: "of the polynomial: products with D^-1 A",
    },
    Parameter {
        key: "ratio",
        default: "30",
        range: Range::Number(1.0, 1e12),
        summary: "of the largest eigenvalue, by Gershgorin's circles, to the smallest that is damped",
    },
];

/// The polynomial, and what A and vectors are divided by.
struct Chebyshev<K: Operations> {
    diagonal: Box<dyn Preconditioner<K>>,
    polynomial: Polynomial<K>,
    scratch: Scratch<K, 1>,
}

impl<K: Operations> Preconditioner<K> for Chebyshev<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let [start] = &mut *self.scratch.borrow();
        self.diagonal.apply(k, r, start);
        self.polynomial.start(k, start, z);
    }

    fn bytes(&self, k: &K) -> Bytes {
        let (d, p) = (self.diagonal.bytes(k), self.polynomial.bytes(k));
        Bytes { held: d.held + p.held, moved: d.moved + p.moved }
    }

    fn size(&self, _: &K) -> FactorSize {
        size(self.polynomial.entries())
    }
}

pub(crate) const METHOD: Method = Method {
    name: "chebyshev",
    summary: "Chebyshev polynomial of D^-1 A",
    parameters: PARAMETERS,
    uses: &[Setting::BlockSize],
    transposable: false,
    undivided: Undivided::Products(|_| 1),
    work: Phased {
        symbolic: None,
        analysis: Some(STORED),
        numeric: Some(rows("A divided by its diagonal, and its largest sum of a row")),
    },
    variants: Variants {
        advised: Advised::Symmetric(&[""]),
        compared: &["degree=7"],
        ..Variants::PLAIN
    },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    on_device(s, make, apply)
}

/// `D^-1 A`; every eigenvalue lies within its largest sum of a row.
pub(super) fn make<K: Backend>(s: &mut Setup<K>) -> Result<Made<K>, SetupFailure> {
    s.phases.begin(Phase::Numeric);
    let scaled = s.k.scaled(&s.k.sparse(s.a)?, Part::All)?;
    let largest = s.k.largest_row_sum(&scaled)?;
    Ok(Made { diagonal: true, largest, ..Made::of([scaled]) })
}

pub(super) fn apply<K: Operations + 'static>(k: &K, mut of: Stored<K>) -> Ready<K> {
    let ([scaled], largest, n) = (of.take(), of.largest, of.unknowns);
    let smallest = largest / of.options.number("ratio");
    let degree = of.options.whole("degree");
    Ok(Box::new(Chebyshev {
        diagonal: of.diagonal.expect("asked for"),
        polynomial: Polynomial::new(k, scaled, n, degree, [smallest, largest])?,
        scratch: Scratch::new(k, n)?,
    }))
}
