//! No preconditioner: `M = I`.

use std::sync::Arc;

use super::work::Phased;
use super::{Advised, Kept, Method, Ready, Setup, Shape, Variants};
use crate::compute::Backend;
use crate::compute::preconditioner::{Form, Preconditioner, Renewal, SetupFailure};
use crate::matrix::Csr;

pub(super) struct Identity;

impl<K: Backend> Preconditioner<K> for Identity {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        k.copy(r, z);
    }

    fn refactor(&mut self, _: &K, _: &Arc<Csr>, _: f64) -> Result<Renewal, SetupFailure> {
        Ok(Renewal::Done)
    }

    fn form(&self) -> Form<'_, K> {
        Form::Identity
    }
}

pub(crate) const METHOD: Method = Method {
    name: "none",
    summary: "no preconditioner",
    work: Phased { symbolic: None, analysis: None, numeric: None },
    keeps: Kept::Analysis,
    shape: Shape::Identity,
    variants: Variants { all: &[], advised: Advised::Never, compared: &[] },
    ..Method::PLAIN
};

#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)] // signature of the registry
pub(super) fn setup<K: Backend>(_: Setup<K>) -> Ready<K> {
    Ok(Box::new(Identity))
}
