//! Chebyshev iteration on `D^-1 A` as a polynomial preconditioner (Saad, 2nd edition, algorithm 12.1).

use super::approximate::{Operator, size};
use super::diagonal::Diagonal;
use super::options::{Parameter, Range};
use super::scratch::Scratch;
use super::work::{Phased, STORED, rows};
use super::{Advised, Method, Phase, Ready, Setup, Variants};
use crate::base::setting::Setting;
use crate::compute::preconditioner::{FactorSize, Preconditioner};
use crate::compute::setup::Part;
use crate::compute::{Backend, Bytes, Coef};

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

/// The polynomial and its recurrence.
struct Chebyshev<K: Backend> {
    diagonal: Diagonal<K>,
    /// `D^-1 A`.
    scaled: Operator<K>,
    degree: usize,
    /// Middle and half width of the interval of eigenvalues.
    theta: f64,
    delta: f64,
    scratch: Scratch<K, 3>,
}

impl<K: Backend> Preconditioner<K> for Chebyshev<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let [start, residual, step] = &mut *self.scratch.borrow();
        let Self { theta, delta, .. } = *self;
        // start = D^-1 r; z = step = start / theta
        self.diagonal.apply(k, r, start);
        k.axpby(Coef::Host(1.0 / theta), start, Coef::ZERO, step);
        k.copy(step, z);
        let sigma = theta / delta;
        let mut rho = 1.0 / sigma;
        for _ in 0..self.degree {
            // residual = start - D^-1 A z
            self.scaled.residual(k, z, start, residual);
            let next = 1.0 / (2.0 * sigma - rho);
            // step = next rho step + 2 next / delta residual; z += step
            k.axpby(Coef::Host(2.0 * next / delta), residual, Coef::Host(next * rho), step);
            k.axpby(Coef::ONE, step, Coef::ONE, z);
            rho = next;
        }
    }

    fn bytes(&self, k: &K) -> Bytes {
        let (d, a) = (self.diagonal.bytes(k), self.scaled.bytes(k));
        // a residual reads a vector more than a product; both updates read two and write one
        let vector = d.moved - d.held;
        let each = a.moved + vector / 2 + 3 * vector;
        Bytes { held: d.held + a.held, moved: d.moved + 2 * vector + self.degree * each }
    }

    fn size(&self, _: &K) -> FactorSize {
        size(self.scaled.entries())
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
    Ok(Box::new(Chebyshev {
        diagonal: Diagonal::new(&s)?,
        scaled: Operator::new(&s, scaled)?,
        degree: options.whole("degree"),
        theta: f64::midpoint(largest, smallest),
        delta: (largest - smallest) / 2.0,
        scratch: Scratch::new(s.k, s.a.rows())?,
    }))
}
