//! Incomplete Cholesky IC(k): of a symmetric matrix, block ILU(k) is `L D L'`. It is kept in that form,
//! with both triangles, as PARALUTION does (Gupta et al. 2015, section 2): no transposed solve is needed.

use super::bilu::{self, Factors};
use super::{Failure, Phase, Ready, Setup};
use crate::backend::Backend;
use crate::backend::cpu::dense;

pub(super) fn setup<K: Backend + 'static>(mut s: Setup<K>) -> Ready<K> {
    s.phases.begin(Phase::Symbolic);
    if let Some(found) = s.k.on_host(|_| s.a.asymmetry()) {
        return Err(found.into());
    }
    let (k, b) = (s.k, s.case.block_size);
    let pattern = bilu::pattern(&mut s)?;
    let ilu = bilu::factorise(s, &pattern)?;
    definite(&k.ilu_inverse_diagonal(&ilu)?, b)?;
    Ok(Box::new(Factors::<K>(ilu)))
}

/// Refuses factors of which a pivot block is not positive definite.
fn definite(inverse: &[f64], b: usize) -> Result<(), Failure> {
    let mut work = vec![0.0; b * b];
    for (row, block) in inverse.chunks_exact(b * b).enumerate() {
        work.copy_from_slice(block);
        if let Err((within, pivot)) = dense::cholesky(&mut work, b) {
            let at = row * b + within + 1;
            let pivot = if b == 1 { 1.0 / pivot } else { pivot };
            let what = if b == 1 { "pivot" } else { "pivot of the inverse pivot block" };
            return Err(Failure::Broken(format!(
                "incomplete Cholesky is not positive definite: {what} {pivot:.3e} of unknown {at}"
            )));
        }
    }
    Ok(())
}
