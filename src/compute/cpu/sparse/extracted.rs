//! Block ILU factors as plain matrices, for what is made of them.

use std::sync::Arc;

use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::Breakdown;
use crate::compute::cpu::ilu::BlockIlu;
use crate::compute::cpu::values::Values;
use crate::compute::setup::Triangles;
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// Factors of `a` on `pattern`, whole blocks, made on the calling thread or on all of its pool; the inner result
/// tells why there are none.
///
/// # Errors
/// When there are too many entries for indices.
pub fn extracted(
    threads: Threads,
    pattern: &Arc<FillPattern>,
    b: usize,
    (a, shift): (&Csr, f64),
) -> Result<Result<Triangles<Csr>, Breakdown>> {
    let parallel = threads == Threads::Pool;
    let mut ilu = BlockIlu::new(pattern, b, FactorPrecision::Float64, parallel);
    if let Err(why) = ilu.factor(a, shift) {
        return Ok(Err(why));
    }
    let Values::Double(blocks) = &ilu.values else { unreachable!("asked for float64") };
    let last = pattern.upper.entries().wrapping_sub(1);
    Ok(Ok(Triangles {
        lower: scalar(threads, &pattern.lower, b, &blocks.lower, |at| at)?,
        upper: scalar(threads, &pattern.upper, b, &blocks.upper, |at| last - at)?,
        inverse_diagonal: scalar(
            threads,
            &identity(pattern.rows()),
            b,
            &blocks.inverse_diagonal,
            |at| at,
        )?,
    }))
}

fn identity(rows: usize) -> Pattern<'static> {
    let count = rows as u32;
    Pattern {
        row_ptr: (0..=count).collect::<Vec<_>>().into(),
        col_ind: (0..count).collect::<Vec<_>>().into(),
    }
}

/// Column-major blocks, of which that of entry `at` is number `place(at)`, as a scalar matrix.
fn scalar(
    threads: Threads,
    pattern: &Pattern,
    b: usize,
    blocks: &[f64],
    place: impl Fn(usize) -> usize + Sync + Send,
) -> Result<Csr> {
    let (n, view) = (pattern.rows() * b, pattern.view());
    Csr::by_rows(
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
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::compute::Trisolve;
    use crate::compute::cpu::Cpu;
    use crate::compute::{Factors as _, Vectors as _};
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::iluk;

    #[test]
    fn extracted_factors_solve_as_the_others_do() {
        for (spec, b) in [("poisson3d:5x4x3", 1), ("blockpoisson3d:4x3x3,b=3", 3)] {
            let a = load(spec, ReadAs::Expanded).unwrap().matrix;
            let p = iluk(&block_pattern(&a, b), 1, LevelRule::Min, usize::MAX).unwrap();
            let p = Arc::new(p);
            let f = extracted(Threads::Pool, &p, b, (&a, 0.0)).unwrap().unwrap();
            let (k, n) = (Cpu::sequential(), a.rows());
            let double = FactorPrecision::Float64;
            let mut ilu = k.ilu_analyse(&p, b, Trisolve::AUTO, double).unwrap();
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
