//! Chebyshev iteration on `D^-1 A` as a polynomial preconditioner.

use super::approximate::{Operator, size};
use super::diagonal::Diagonal;
use super::options::{Parameter, Range};
use super::polynomial::Polynomial;
use super::scratch::Scratch;
use super::work::{Phased, STORED, rows};
use super::{Advised, Method, Phase, Ready, Setup, Variants};
use crate::base::setting::Setting;
use crate::compute::preconditioner::{FactorSize, Preconditioner};
use crate::compute::setup::Part;
use crate::compute::{Backend, Bytes};

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
struct Chebyshev<K: Backend> {
    diagonal: Diagonal<K>,
    polynomial: Polynomial<K>,
    scratch: Scratch<K, 1>,
}

impl<K: Backend> Preconditioner<K> for Chebyshev<K> {
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

#[allow(clippy::needless_pass_by_value)] // signature of the registry
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    s.phases.begin(Phase::Numeric);
    let scaled = s.k.scaled(&s.k.sparse(s.a)?, Part::All)?;
    // every eigenvalue lies within the largest sum of a row
    let largest = s.k.largest_row_sum(&scaled)?;
    let smallest = largest / options.number("ratio");
    s.phases.begin(Phase::Analysis);
    let degree = options.whole("degree");
    let (scaled, n) = (Operator::new(s.k, scaled)?, s.a.rows());
    Ok(Box::new(Chebyshev {
        diagonal: Diagonal::new(&s)?,
        polynomial: Polynomial::new(s.k, scaled, n, degree, [smallest, largest])?,
        scratch: Scratch::new(s.k, n)?,
    }))
}
