//! Factors without blocks beside the diagonal, such as those of block Jacobi: one pass over the vectors.

use super::super::block::BlockSize;
use super::super::multiversion::multiversion;
use super::super::simd::Simd;
use super::Factors;
use super::rows::Numbers;
use crate::base::threads::Threads;

/// Block rows of one task.
const ROWS: usize = 4096;

/// `z = D^-1 r`.
pub(super) fn diagonal_alone<K: BlockSize, N: Numbers>(
    size: K,
    f: Factors<N>,
    threads: Threads,
    r: &[f64],
    z: &mut [f64],
) {
    let n = f.rows() * size.b();
    assert!(r.len() == n && z.len() == n);
    let step = ROWS * size.b();
    threads.chunks(z, step, 1, |task, z| {
        rows(size, f, task * ROWS, &r[task * step..][..z.len()], z);
    });
}

multiversion! { fn rows[K: BlockSize, N: Numbers](size: K, f: Factors<N>, first: usize, r: &[f64], z: &mut [f64]) = rows_body }

/// Block rows from `first` on, of which `r` and `z` begin with the first.
#[inline(always)]
fn rows_body<K: BlockSize, N: Numbers, S: Simd>(
    s: S,
    size: K,
    f: Factors<N>,
    first: usize,
    r: &[f64],
    z: &mut [f64],
) {
    let b = size.b();
    for i in 0..z.len() / b {
        let of = i * b..(i + 1) * b;
        let segment = f.numbers.inverse_times(s, size, first + i, &r[of.clone()]);
        size.store(s, segment, &mut z[of]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::case::{FactorPrecision, Trisolve};
    use crate::compute::Factors as _;
    use crate::compute::cpu::Cpu;
    use crate::compute::cpu::trsv::{apply, backward_part, forward_part};
    use crate::problem::samples::matrix;
    use crate::symbolic::FillPattern;

    #[test]
    fn a_diagonal_in_one_pass_has_the_bits_of_both_solves() {
        use FactorPrecision::{Adaptive, Bfloat16, Float16, Float32, Float64};
        let k = Cpu::parallel(Some(3)).unwrap();
        for (b, spec) in
            [(1, "poisson3d:47x19x11"), (3, "blockpoisson3d:17x7x31,b=3"), (9, "poisson3d:9x41x12")]
        {
            let a = matrix(spec).in_blocks(b);
            let n = a.rows();
            // one of them is a zero with a sign
            let r: Vec<f64> =
                (0..n).map(|i| ((i * 7919) % 1000) as f64 - 499.0).map(|v| v * -0.5).collect();
            for precision in [Float64, Float32, Bfloat16, Float16, Adaptive] {
                let pattern = Arc::new(FillPattern::diagonal_of(&a));
                let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, precision).unwrap();
                k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
                let [mut alone, mut together, mut both] = std::array::from_fn(|_| vec![0.0; n]);
                forward_part(&ilu, 0..n / b, &r, &mut both);
                backward_part(&ilu, 0..n / b, &mut both);
                apply(&ilu, &r, &mut alone, true);
                k.pooled(|| apply(&ilu, &r, &mut together, false));
                assert!(both.iter().all(|z| z.is_finite()) && both.iter().any(|z| *z > 1.0));
                for found in [alone, together] {
                    assert!(
                        found.iter().zip(&both).all(|(a, b)| a.to_bits() == b.to_bits()),
                        "{spec} {precision:?}"
                    );
                }
            }
        }
    }
}
