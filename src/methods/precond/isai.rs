//! Incomplete sparse approximate inverses of triangular factors (Anzt, Huckle, Braeckle and Dongarra
//! 2018): `W L = I` and `U' V = I` on the patterns of L and U', so that both solves become products.

use super::approximate::{Chain, Operator};
use super::work::{Phased, STORED, host, rows};
use super::{Kept, Method, Phase, Ready, Setup, bilu};
use crate::base::setting::Setting;
use crate::compute::Backend;
use crate::compute::setup::Triangles;

pub(crate) const METHOD: Method = Method {
    name: "isai",
    summary: "block ILU(k) with incomplete sparse approximate inverses of its triangles",
    uses: &[
        Setting::BlockSize,
        Setting::Fill,
        Setting::LevelRule,
        Setting::Shift,
        Setting::Ordering,
    ],
    work: Phased {
        symbolic: Some(host("pattern of the factors")),
        analysis: Some(STORED),
        numeric: Some(rows("factors, and a small system for each of their rows")),
    },
    keeps: Kept::Pattern,
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(mut s: Setup<K>) -> Ready<K> {
    let pattern = bilu::pattern(&mut s)?;
    s.phases.begin(Phase::Numeric);
    let k = s.k;
    let Triangles { lower, inverse_diagonal, upper } =
        k.triangles(&pattern, s.a, s.settings.shift.fixed())?;
    let first = k.triangular_inverse(&lower)?;
    // U' V = I is V' U'' = I with the lower triangle U''
    let mirrored = k.triangular_inverse(&k.transposed(&upper)?)?;
    let then = k.times(&k.transposed(&mirrored)?, &inverse_diagonal)?;
    s.phases.begin(Phase::Analysis);
    let (first, then) = (Operator::new(k, first)?, Operator::new(k, then)?);
    Ok(Box::new(Chain::new(k, s.a.rows(), first, Some(then))?.on(pattern)))
}
