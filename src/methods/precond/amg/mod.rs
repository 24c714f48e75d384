//! Algebraic multigrid by smoothed aggregation (Vanek, Mandel and Brezina 1996): a V cycle with a Chebyshev
//! polynomial before and after each correction, all of it products.
//!
//! Every level works on `D^-1 A x = D^-1 b`, and the ways between levels take the scaling with them, so that a
//! cycle has no operation of its own for a diagonal.

pub(super) mod aggregates;
mod coarsening;
mod cycle;

use super::options::{Options, Parameter, Range};
use super::work::{Phased, STORED, host};
use super::{Method, Ready, Setup, Variants};
use crate::base::setting::Setting;
use crate::compute::Backend;
pub(super) use cycle::Cycle;

pub(super) const DEGREE: Parameter = Parameter {
    key: "degree",
    default: "2",
    range: Range::Whole(1, 16),
    summary: "of the polynomials that smooth before and after a correction",
};

pub(super) const THETA: Parameter = Parameter {
    key: "theta",
    default: "0.04",
    range: Range::Number(0.0, 1.0),
    summary: "size of a strong coupling: |a_ij|^2 > theta^2 |a_ii a_jj|; half of it on each next level",
};

pub(super) const COARSEST: Parameter = Parameter {
    key: "coarsest",
    default: "40",
    range: Range::Whole(1, 1000),
    summary: "unknowns of a level up to which it is solved by its dense inverse",
};

/// What a hierarchy is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choices {
    /// Degree of the smoothing polynomials, at least 1.
    pub(super) degree: usize,
    /// Size of a strong coupling on the finest level.
    pub(super) theta: f64,
    /// Unknowns of a level up to which its inverse is dense.
    pub(super) coarsest: usize,
}

impl Choices {
    pub(super) fn of(options: &Options) -> Self {
        Self {
            degree: options.whole("degree"),
            theta: options.number("theta"),
            coarsest: options.whole("coarsest"),
        }
    }
}

pub(crate) const METHOD: Method = Method {
    name: "amg",
    summary: "algebraic multigrid by smoothed aggregation, a V cycle",
    parameters: &[DEGREE, THETA, COARSEST],
    uses: &[Setting::BlockSize, Setting::Ordering],
    transposable: false,
    work: Phased {
        symbolic: None,
        analysis: Some(STORED),
        numeric: Some(host("aggregates, matrices of the levels, inverse of the coarsest")),
    },
    variants: Variants { compared: &["degree=1,theta=0.25,coarsest=4"], ..Variants::PLAIN },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(mut s: Setup<K>) -> Ready<K> {
    let choices = Choices::of(&s.options()?);
    Ok(Box::new(cycle::Solo::new(&mut s, choices)?))
}
