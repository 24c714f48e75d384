//! Factorised sparse approximate inverse (Kolotilina and Yeremin 1993): `M^-1 = G' G`, where G has the
//! pattern of the lower triangle of `|A|^q`, minimises `|I - G C|_F` over it for the exact Cholesky
//! factor C, and is scaled so that `G A G'` has the diagonal 1.

use super::approximate::Chain;
use super::options::{Parameter, Range};
use super::products::{Made, Stored, Undivided, on_device};
use super::work::{Phased, STORED, rows};
use super::{Advised, Method, Phase, Ready, Setup, Takes, Variants};
use crate::base::setting::Setting;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Backend, Operations};

const PARAMETERS: &[Parameter] = &[Parameter {
    key: "power",
    default: "1",
    range: Range::Whole(1, 8),
    summary: "q of the pattern |A|^q",
}];

pub(crate) const METHOD: Method = Method {
    name: "fsai",
    summary: "factorised sparse approximate inverse G' G of definite matrices",
    parameters: PARAMETERS,
    uses: &[Setting::BlockSize, Setting::Ordering, Setting::SymmetryTolerance],
    takes: Takes::Symmetric,
    undivided: Undivided::Products(|options| options.whole("power")),
    work: Phased {
        symbolic: Some(rows("A brought there, its symmetry and the power of its pattern")),
        analysis: Some(STORED),
        numeric: Some(rows("a small dense system for each row")),
    },
    variants: Variants {
        all: &["", "power=2"],
        advised: Advised::Symmetric(&["", "power=2"]),
        compared: &[],
    },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    on_device(s, make, apply)
}

/// G and G'.
pub(super) fn make<K: Backend>(s: &mut Setup<K>) -> Result<Made<K>, SetupFailure> {
    let q = s.options()?.whole("power");
    let k = s.k;
    s.phases.begin(Phase::Symbolic);
    let a = k.sparse(s.a)?;
    if let Some(found) = k.asymmetry(&a, s.settings.symmetry_tolerance)? {
        return Err(found.into());
    }
    let pattern = k.lower_power(&a, q)?;
    s.phases.begin(Phase::Numeric);
    let g = k.factorised_inverse(&a, &pattern)?;
    Ok(Made { mirrored: true, ..Made::of([g]) })
}

pub(super) fn apply<K: Operations + 'static>(k: &K, mut of: Stored<K>) -> Ready<K> {
    let [g, transposed] = of.take();
    Ok(Box::new(Chain::new(k, of.unknowns, g, Some(transposed))?))
}
