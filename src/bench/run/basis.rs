//! A basis to measure the orthogonalisation of GMRES on.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::base::error::Result;
use crate::compute::{Coef, Operations, Slot};

/// `m` different vectors of order `n` without zeros, and in `w` a random one to take their
/// projections from.
///
/// It costs next to nothing, unlike an Arnoldi process, and the time depends on neither directions
/// nor values. The vectors have the norm `1 / sqrt(m)`, so that `V V^T` has no eigenvalue above 1:
/// `w -= V (V^T w)` makes no `w` grow, however often it is repeated, and leaves what lies outside
/// the plane of the basis as it is.
pub(super) fn filled<K: Operations>(
    k: &K,
    (n, m): (usize, usize),
    w: &mut K::Vector,
) -> Result<Vec<K::Vector>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut random = || (0..n).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f64>>();
    let mut basis = (0..m).map(|_| k.vector(n)).collect::<Result<Vec<_>>>()?;
    k.upload(&random(), w);
    for (j, v) in basis.iter_mut().enumerate() {
        k.fill(v, j as f64 / m as f64);
        k.axpby(Coef::ONE, w, Coef::ONE, v);
        k.norm(v, Slot(0));
        k.scale(Coef::Reciprocal(Slot(0)), v);
        k.scale(Coef::Host((m as f64).sqrt().recip()), v);
    }
    k.upload(&random(), w);
    Ok(basis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Vectors as _;
    use crate::compute::cpu::Cpu;

    #[test]
    fn the_vectors_differ_and_projections_never_grow() {
        for (n, m) in [(1, 1), (3, 5), (1000, 1), (1000, 20), (4001, 70)] {
            let k = Cpu::sequential();
            let mut w = k.vector(n).unwrap();
            let basis = filled(&k, (n, m), &mut w).unwrap();
            let (mut before, mut entries) = (vec![0.0; n], vec![0.0; n]);
            for v in &basis {
                k.download(v, &mut entries);
                assert!(entries.iter().all(|&x| x != 0.0) && entries != before, "n {n}, m {m}");
                let square: f64 = entries.iter().map(|x| x * x).sum();
                assert!((square * m as f64 - 1.0).abs() < 1e-12, "n {n}, m {m}: {square}");
                before.copy_from_slice(&entries);
            }
            k.norm(&w, Slot(m as u16));
            let mut norms = [0.0; 2];
            k.read(Slot(m as u16), &mut norms[..1]);
            let first = norms[0];
            for _ in 0..600 {
                k.multi_dot(&basis, &w, Slot(0));
                k.multi_axpy_norm(&basis, Slot(0), &mut w, Slot(m as u16));
                k.read(Slot(m as u16), &mut norms[1..]);
                assert!(norms[1] <= norms[0] * (1.0 + 1e-14), "n {n}, m {m}: {norms:?}");
                norms[0] = norms[1];
            }
            // far from the numbers that are too small for full precision, which are slow
            assert!(n < 1000 || norms[0] > 0.9 * first, "n {n}, m {m}: {} of {first}", norms[0]);
        }
    }
}
