//! How large the triangles of factors and their inverses are.

use super::block::invert_block;
use super::ilu::BlockIlu;
use super::parts::Blocks;
use super::trsv;
use crate::compute::TriangleNorms;
use crate::matrix::equilibration::largest;

/// Those of `ilu`, in the scales of [`Factors::ilu_triangle_norms`](crate::compute::Factors::ilu_triangle_norms).
pub(super) fn triangle_norms(ilu: &BlockIlu, rows: &[f64], columns: &[f64]) -> TriangleNorms {
    let all = 0..ilu.pattern.rows();
    let mut y = vec![0.0; rows.len()];
    trsv::forward_part(ilu, all.clone(), rows, &mut y);
    let lower = largest(y.iter().zip(rows).map(|(y, row)| y / row));
    y.copy_from_slice(rows);
    trsv::backward_part(ilu, all, &mut y);
    let upper = largest(y.iter().zip(columns).map(|(x, column)| x * column));
    let growth = ilu.values.in_float64(&ilu.pattern, |blocks| growth(ilu, blocks, rows, columns));
    TriangleNorms { lower, upper, growth }
}

/// The largest magnitude in `D U'`.
fn growth(ilu: &BlockIlu, blocks: &Blocks<f64>, rows: &[f64], columns: &[f64]) -> f64 {
    let b = ilu.pattern.block_size();
    let (bb, upper) = (b * b, ilu.pattern.upper.view());
    let mut most = 0.0;
    let (mut diagonal, mut product) = (vec![0.0; bb], vec![0.0; bb]);
    for i in 0..ilu.pattern.rows() {
        diagonal.copy_from_slice(&blocks.inverse_diagonal[i * bb..(i + 1) * bb]);
        if invert_block(&mut diagonal, b).is_err() {
            return f64::NAN;
        }
        let mut take = |j: usize, block: &[f64]| {
            let scaled = |at: usize| block[at] / (rows[i * b + at % b] * columns[j * b + at / b]);
            most = largest([most].into_iter().chain((0..bb).map(scaled)));
        };
        take(i, &diagonal);
        for at in upper.range(i) {
            // U' is in the opposite order
            let stored = upper.entries() - 1 - at;
            let of = &blocks.upper[stored * bb..(stored + 1) * bb];
            for (at, to) in product.iter_mut().enumerate() {
                let (r, c) = (at % b, at / b);
                *to = (0..b).map(|q| diagonal[q * b + r] * of[c * b + q]).sum();
            }
            take(upper.col_ind[at] as usize, &product);
        }
    }
    most
}
