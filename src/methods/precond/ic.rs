//! Incomplete Cholesky IC(k): of a symmetric matrix, block ILU(k) is `L D L'`. It is kept in that form,
//! with both triangles, as PARALUTION does (Gupta et al. 2015, section 2): no transposed solve is needed.

use rayon::prelude::*;

use super::bilu::{self, Factors};
use super::work::{Phased, device, host};
use super::{Advised, Kept, Method, Phase, Ready, Setup, Shape, Takes, Variants};
use crate::base::choices::LevelRule;
use crate::base::setting::Setting;
use crate::base::threads::Threads;
use crate::compute::Backend;
use crate::compute::cpu::dense;
use crate::compute::preconditioner::SetupFailure;

pub(crate) const METHOD: Method = Method {
    name: "ic",
    summary: "incomplete Cholesky by level of fill, kept as L D L'; symmetric matrices",
    uses: &[
        Setting::BlockSize,
        Setting::Fill,
        Setting::LevelRule,
        Setting::Shift,
        Setting::Ordering,
        Setting::FactorPrecision,
        Setting::Trisolve,
        Setting::SymmetryTolerance,
    ],
    takes: Takes::Symmetric,
    work: Phased {
        symbolic: Some(host("symmetry of A and pattern of the factors")),
        analysis: Some(host("schedules and layout of the solves")),
        numeric: Some(device("values of the factors and signs of their pivots")),
    },
    keeps: Kept::Analysis,
    shape: Shape::Triangles,
    reads_pivots: true,
    variants: Variants { advised: Advised::Symmetric(&[""]), ..Variants::PLAIN },
    ..Method::PLAIN
};

pub(super) fn setup<K: Backend + 'static>(mut s: Setup<K>) -> Ready<K> {
    s.phases.begin(Phase::Symbolic);
    let (k, b) = (s.k, s.a.block_size());
    if let Some(found) = k.asymmetry(&k.sparse(s.a)?, s.settings.symmetry_tolerance)? {
        return Err(found.into());
    }
    let pattern = bilu::pattern(&mut s)?;
    // levels that depend on the order of the rows may keep an entry and not its mirror image
    let symmetric = s.settings.fill == 0 || s.settings.level_rule == LevelRule::Min;
    let way = s.settings.trisolve;
    let ilu = bilu::factorise(s, &pattern, way)?;
    let inverse = k.ilu_inverse_diagonal(&ilu)?;
    k.on_host(|threads| definite(threads, &inverse, b))?;
    Ok(Box::new(Factors::<K> { ilu, symmetric }))
}

/// Refuses factors of which a pivot block is not positive definite.
pub(super) fn definite(threads: Threads, inverse: &[f64], b: usize) -> Result<(), SetupFailure> {
    let blocks = inverse.len() / (b * b);
    let fault = |work: &mut Vec<f64>, row: usize| {
        work.clear();
        work.extend_from_slice(&inverse[row * b * b..(row + 1) * b * b]);
        dense::cholesky(work, b).err().map(|(within, pivot)| (row * b + within + 1, pivot))
    };
    let found = match threads {
        Threads::One => {
            let mut work = Vec::new();
            (0..blocks).find_map(|row| fault(&mut work, row))
        }
        Threads::Pool => (0..blocks)
            .into_par_iter()
            .with_min_len(4096)
            .map_init(Vec::new, fault)
            .find_map_first(|found| found),
    };
    let Some((at, pivot)) = found else { return Ok(()) };
    let pivot = if b == 1 { 1.0 / pivot } else { pivot };
    let what = if b == 1 { "pivot" } else { "pivot of the inverse pivot block" };
    Err(SetupFailure::Broken(format!(
        "incomplete Cholesky is not positive definite: {what} {pivot:.3e} of unknown {at}"
    )))
}
