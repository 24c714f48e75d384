//! Block ILU factors as plain matrices, for what is made of them.

use std::sync::Arc;

use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::cpu::ilu::BlockIlu;
use crate::compute::cpu::values::Values;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::setup::Triangles;
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// Factors of `a` on `pattern`, whole blocks, made on the calling thread or on all of its pool.
///
/// # Errors
/// When a diagonal block cannot be inverted, or there are too many entries for indices.
pub fn extracted(
    threads: Threads,
    pattern: &Arc<FillPattern>,
    (a, shift): (&Csr, f64),
) -> Result<Triangles<Csr>, SetupFailure> {
    let parallel = threads == Threads::Pool;
    let mut ilu = BlockIlu::new(pattern, FactorPrecision::Float64, parallel);
    ilu.factor(a, shift, false)?;
    let Values::Double(blocks) = &ilu.values else { unreachable!("asked for float64") };
    let last = pattern.upper.entries().wrapping_sub(1);
    Ok(Triangles {
        lower: scalar(threads, &pattern.lower, &blocks.lower, |at| at)?,
        upper: scalar(threads, &pattern.upper, &blocks.upper, |at| last - at)?,
        inverse_diagonal: scalar(threads, &identity(pattern), &blocks.inverse_diagonal, |at| at)?,
    })
}

fn identity(like: &FillPattern) -> Pattern<'static> {
    let count = like.rows() as u32;
    Pattern::new((0..=count).collect::<Vec<_>>(), (0..count).collect::<Vec<_>>())
        .in_blocks(like.block_size())
}

/// Column-major blocks, of which that of entry `at` is number `place(at)`, as a scalar matrix.
fn scalar(
    threads: Threads,
    pattern: &Pattern,
    blocks: &[f64],
    place: impl Fn(usize) -> usize + Sync + Send,
) -> Result<Csr> {
    let b = pattern.block_size();
    let (n, view) = (pattern.rows() * b, pattern.view());
    let made = Csr::by_rows(
        threads,
        [n, n],
        || (),
        |(), row, to| {
            let (i, r) = (row / b, row % b);
            for at in view.range(i) {
                let block = &blocks[place(at) * b * b..(place(at) + 1) * b * b];
                let first = view.col_ind[at] * b as u32;
                (0..b).for_each(|c| to.push(first + c as u32, block[c * b + r]));
            }
            Ok(())
        },
    );
    made.map(|made| made.in_blocks(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Trisolve;
    use crate::compute::cpu::Cpu;
    use crate::compute::{Factors as _, Vectors as _};
    use crate::problem::samples::{matrix, pattern};

    #[test]
    fn extracted_factors_solve_as_the_others_do() {
        for (spec, b) in [("poisson3d:5x4x3", 1), ("blockpoisson3d:4x3x3,b=3", 3)] {
            let a = matrix(spec);
            let p = pattern(&a.in_blocks(b), 1);
            let f = extracted(Threads::Pool, &p, (&a, 0.0)).unwrap();
            let (k, n) = (Cpu::sequential(), a.rows());
            let double = FactorPrecision::Float64;
            let mut ilu = k.ilu_analyse(&p, Trisolve::AUTO, double).unwrap();
            k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
            // r = L D U' z, from the right
            let z: Vec<f64> = (0..n).map(|i| (i % 7) as f64 - 3.0).collect();
            let mut by = vec![0.0; n];
            f.upper.multiply(&z, &mut by);
            let u: Vec<f64> = z.iter().zip(&by).map(|(z, u)| z + u).collect();
            let mut r = k.vector(n).unwrap();
            let mut got = k.vector(n).unwrap();
            // D is had by the ILU of D^-1: solve blockwise with the dense inverse's inverse
            let mut d = k.vector(n).unwrap();
            for i in (0..n).step_by(b) {
                let mut block: Vec<f64> = (0..b * b)
                    .map(|e| f.inverse_diagonal.get(i + e / b, i + e % b).unwrap())
                    .collect();
                crate::compute::cpu::invert_block(&mut block, b).unwrap();
                for r in 0..b {
                    d[i + r] = (0..b).map(|c| block[r * b + c] * u[i + c]).sum();
                }
            }
            f.lower.multiply(&d, &mut by);
            (0..n).for_each(|i| r[i] = d[i] + by[i]);
            k.ilu_apply(&ilu, &r, &mut got);
            let worst = got.iter().zip(&z).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-12, "{spec}: {worst}");
        }
    }
}
