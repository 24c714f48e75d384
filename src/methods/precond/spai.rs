//! Sparse approximate inverse on a fixed pattern (Benson and Frederickson 1982; Chow 2000, "A priori
//! sparsity patterns for parallel sparse approximate inverse preconditioners"): M minimises `|A M - I|_F` among
//! the matrices with the pattern of A, a least-squares problem for each of its columns.

use super::approximate::Chain;
use super::options::{Parameter, Range};
use super::products::{Made, Stored, on_device};
use super::work::{Phased, STORED, rows};
use super::{Method, Phase, Ready, Setup, Variants};
use crate::base::setting::Setting;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::{Backend, Operations};

const PARAMETERS: &[Parameter] = &[Parameter {
    key: "symmetric",
    default: "no",
    range: Range::Words(&["no", "yes"]),
    summary: "yes: (M + M') / 2, which conjugate gradients need",
}];

pub(crate) const METHOD: Method = Method {
    name: "spai",
    summary: "sparse approximate inverse: least |A M - I| on the pattern of A",
    parameters: PARAMETERS,
    uses: &[Setting::BlockSize],
    symmetric: |options| options.word("symmetric") == "yes",
    transposable: false,
    work: Phased {
        symbolic: None,
        analysis: Some(STORED),
        numeric: Some(rows("a small dense system for each row")),
    },
    variants: Variants { all: &["symmetric=yes"], compared: &[""], ..Variants::PLAIN },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    on_device(s, make, apply)
}

/// M^-1.
fn make<K: Backend>(s: &mut Setup<K>) -> Result<Made<K>, SetupFailure> {
    let symmetric = s.options()?.word("symmetric") == "yes";
    let k = s.k;
    s.phases.begin(Phase::Numeric);
    let a = k.sparse(s.a)?;
    let mirrored = k.least_squares_inverse(&k.transposed(&a)?)?;
    drop(a);
    let mut m = k.transposed(&mirrored)?;
    if symmetric {
        m = k.mean(&m, &mirrored)?;
    }
    Ok(Made::of([m]))
}

fn apply<K: Operations + 'static>(k: &K, mut of: Stored<K>) -> Ready<K> {
    let [m] = of.take();
    Ok(Box::new(Chain::new(k, of.unknowns, m, None)?))
}
