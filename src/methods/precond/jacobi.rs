//! Block Jacobi: the inverse of the diagonal blocks, as block ILU on a diagonal pattern.

use std::sync::Arc;

use super::bilu::{self, Factors};
use super::work::{Phased, host};
use super::{Kept, Method, Phase, Ready, Setup, Shape};
use crate::base::setting::Setting;
use crate::compute::Backend;
use crate::compute::Trisolve;
use crate::symbolic::FillPattern;

pub(crate) const METHOD: Method = Method {
    name: "jacobi",
    summary: "block Jacobi: inverse of the diagonal blocks",
    uses: &[Setting::BlockSize, Setting::Shift, Setting::FactorPrecision],
    work: Phased {
        symbolic: Some(host("pattern of the diagonal")),
        analysis: Some(host("storage of the diagonal")),
        numeric: Some(host("the diagonal of A")),
    },
    keeps: Kept::Analysis,
    shape: Shape::Diagonal,
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    s.phases.begin(Phase::Symbolic);
    let pattern = Arc::new(FillPattern::diagonal_of(s.a));
    Ok(Box::new(Factors::<K>::of(bilu::factorise(s, &pattern, Trisolve::AUTO)?)))
}
