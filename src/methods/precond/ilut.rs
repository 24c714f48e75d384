//! ILUT(tau, p): elimination keeps what is large, and of that the largest (Saad 1994); see [`threshold`].

use std::sync::Arc;

use super::bilu::{self, Factors};
use super::options::{Parameter, Range};
use super::threshold::Dropping;
use super::work::{Phased, device, host};
use super::{Advised, Method, Phase, Ready, Settings, Setup, Shape, Variants};
use crate::base::setting::Setting;
use crate::base::shift::Shift;
use crate::compute::preconditioner::{FactorSize, Form, Preconditioner};
use crate::compute::{Backend, Bytes};

/// Factors that new values do not fit, for what is dropped depends on them.
struct Ilut<K: Backend>(Factors<K>);

impl<K: Backend> Preconditioner<K> for Ilut<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.0.apply(k, r, z);
    }

    fn form(&self) -> Form<'_, K> {
        self.0.form()
    }

    fn bytes(&self, k: &K) -> Bytes {
        self.0.bytes(k)
    }

    fn numeric_bytes(&self, k: &K) -> usize {
        self.0.numeric_bytes(k)
    }

    fn numeric_kernel_seconds(&self, k: &K) -> Option<f64> {
        self.0.numeric_kernel_seconds(k)
    }

    fn size(&self, k: &K) -> FactorSize {
        self.0.size(k)
    }
}

pub(crate) const METHOD: Method = Method {
    name: "ilut",
    summary: "block ILUT(tau, p): keeps what is large, and of that the p largest",
    parameters: &[
        Parameter {
            key: "tau",
            default: "0.001",
            range: Range::Number(0.0, 1e6),
            summary: "drops blocks below this part of the norm of their row of A",
        },
        Parameter {
            key: "p",
            default: "20",
            range: Range::Whole(0, 1_000_000),
            summary: "blocks that a row of L, and of U, keeps at most beside the diagonal",
        },
    ],
    uses: &[
        Setting::BlockSize,
        Setting::Shift,
        Setting::Ordering,
        Setting::FactorPrecision,
        Setting::Trisolve,
    ],
    symmetric: |_| false,
    transposable: false,
    work: Phased {
        symbolic: Some(host("elimination, in which small blocks are dropped")),
        analysis: Some(host("schedules and layout of the solves")),
        numeric: Some(device("values of the factors on the pattern that was found")),
    },
    shape: Shape::Triangles,
    variants: Variants {
        advised: Advised::Always(&[""]),
        compared: &["tau=0.01,p=2"],
        ..Variants::PLAIN
    },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (tau, most) = (options.number("tau"), options.whole("p"));
    let Setup { k, a, settings, phases } = s;
    phases.begin(Phase::Symbolic);
    let shift = settings.shift.fixed();
    let absolute = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
    let dropping = Dropping { tau, most, within: None };
    let made = dropping.eliminate(k, a, absolute, bilu::room(k, a))?;
    let pattern = Arc::new(made.pattern);
    let way = settings.trisolve;
    // the matrix that was made has the shift already
    let unshifted = Settings { shift: Shift::default(), ..settings.clone() };
    let (matrix, settings) = match made.matrix {
        Some(matrix) => (Arc::new(matrix), &unshifted),
        None => (Arc::clone(a), settings),
    };
    let s = Setup { k, a: &matrix, settings, phases };
    Ok(Box::new(Ilut(Factors::<K>::of(bilu::factorise(s, &pattern, way)?))))
}
