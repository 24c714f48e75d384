//! Block Jacobi: the inverse of the diagonal blocks, as block ILU on a diagonal pattern.

use std::sync::Arc;

use super::bilu::{self, Factors};
use super::work::{Phased, host};
use super::{Phase, Ready, Setup};
use crate::backend::Backend;
use crate::symbolic::FillPattern;

pub(super) const WORK: Phased = Phased {
    symbolic: Some(host("pattern of the diagonal")),
    analysis: Some(host("storage of the diagonal")),
    numeric: Some(host("the diagonal of A")),
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    s.phases.begin(Phase::Symbolic);
    let pattern = Arc::new(FillPattern::diagonal(s.a.rows() / s.case.block_size));
    Ok(Box::new(Factors::<K>(bilu::factorise(s, &pattern)?)))
}
