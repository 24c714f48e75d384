//! The least-squares problems of block GMRES.

/// A column of the triangular factor below this part of its norm depends on the others.
const DEPENDENT: f64 = 16.0 * f64::EPSILON;

/// `min |E1 R - H Y|` for several columns, kept triangular by Householder's reflections. H has blocks of S x S, and
/// its block column j ends with block row j + 1.
pub(super) struct BlockLeastSquares {
    s: usize,
    /// Columns of the factor, each with all rows.
    r: Vec<Vec<f64>>,
    /// A reflection of each column: its first row, and `v` of `I - v v'`, where there is one.
    reflections: Vec<Option<Vec<f64>>>,
    /// Right-hand sides by rows.
    g: Vec<f64>,
}

impl BlockLeastSquares {
    /// For `m` blocks of s columns.
    pub(super) fn new(m: usize, s: usize) -> Self {
        Self { s, r: Vec::new(), reflections: Vec::new(), g: vec![0.0; (m + 1) * s * s] }
    }

    /// Begins with another R, by rows.
    pub(super) fn reset(&mut self, r: &[f64]) {
        self.r.clear();
        self.reflections.clear();
        self.g.fill(0.0);
        self.g[..r.len()].copy_from_slice(r);
    }

    /// Blocks so far.
    pub(super) fn blocks(&self) -> usize {
        self.r.len() / self.s
    }

    /// Norms of the residuals of the columns.
    pub(super) fn residuals(&self) -> Vec<f64> {
        let s = self.s;
        let rest = &self.g[self.r.len() * s..][..s * s];
        let squared = |j: usize| rest.iter().skip(j).step_by(s).map(|v| v * v).sum::<f64>();
        (0..s).map(|j| squared(j).sqrt()).collect()
    }

    /// Adds a block column of H: small matrices by rows, one below the other.
    pub(super) fn add(&mut self, h: &[f64]) {
        let s = self.s;
        for j in 0..s {
            let mut column: Vec<f64> = h.iter().skip(j).step_by(s).copied().collect();
            let norm = length(&column);
            for (first, v) in self.reflections.iter().enumerate() {
                if let Some(v) = v {
                    reflect(v, &mut column[first..], 1, 0);
                }
            }
            let first = self.r.len();
            let rest = &mut column[first..];
            let alpha = length(rest);
            let reflection = (alpha > DEPENDENT * norm).then(|| {
                let alpha = if rest[0] > 0.0 { -alpha } else { alpha };
                let mut v = rest.to_vec();
                v[0] -= alpha;
                let scale = std::f64::consts::SQRT_2 / length(&v);
                for v in &mut v {
                    *v *= scale;
                }
                rest.fill(0.0);
                rest[0] = alpha;
                v
            });
            if let Some(v) = &reflection {
                for of in 0..s {
                    reflect(v, &mut self.g[first * s..], s, of);
                }
            } else {
                rest.fill(0.0);
            }
            self.reflections.push(reflection);
            self.r.push(column);
        }
    }

    /// Y, by rows; zero for columns of H that depend on others.
    pub(super) fn solve(&self) -> Vec<f64> {
        let (s, rows) = (self.s, self.r.len());
        let mut y = self.g[..rows * s].to_vec();
        for i in (0..rows).rev() {
            let pivot = self.r[i][i];
            for j in 0..s {
                let v = if pivot == 0.0 { 0.0 } else { y[i * s + j] / pivot };
                y[i * s + j] = v;
                for row in 0..i {
                    y[row * s + j] -= self.r[i][row] * v;
                }
            }
        }
        y
    }
}

fn length(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// `x - v v' x`, the entries of x being every `step`-th from `at` on.
fn reflect(v: &[f64], x: &mut [f64], step: usize, at: usize) {
    let product: f64 = v.iter().zip(x.iter().skip(at).step_by(step)).map(|(v, x)| v * x).sum();
    let x = x.iter_mut().skip(at).step_by(step);
    x.zip(v).for_each(|(x, v)| *x -= product * v);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::solver::least_squares::LeastSquares;

    #[test]
    fn blocks_of_one_are_the_problem_of_one_right_hand_side() {
        let (mut block, mut single) = (BlockLeastSquares::new(3, 1), LeastSquares::new(3));
        block.reset(&[2.0]);
        single.reset(2.0);
        for column in [&[1.0, 0.5][..], &[-0.5, 2.0, 0.25], &[0.1, 0.2, 3.0, 0.125]] {
            block.add(column);
            let residual = single.add(column).unwrap();
            assert!((block.residuals()[0] - residual).abs() < 1e-15);
        }
        assert_eq!(block.blocks(), 3);
        for (y, want) in block.solve().iter().zip(single.solve()) {
            assert!((y - want).abs() < 1e-15, "{y} beside {want}");
        }
    }

    #[test]
    fn the_gradient_of_every_column_vanishes() {
        let (m, s) = (2, 2);
        let mut small = BlockLeastSquares::new(m, s);
        let start = [2.0, 1.0, 0.0, 3.0];
        small.reset(&start);
        let blocks = [
            vec![1.0, 0.5, -0.25, 2.0, 0.5, 0.25, 0.0, 0.75],
            vec![0.1, 0.2, 0.3, 0.4, 1.5, -1.0, 0.5, 1.25, 0.5, 0.125, 0.0, 0.0],
        ];
        for h in &blocks {
            small.add(h);
        }
        let y = small.solve();
        let rows = (m + 1) * s;
        let h = |i: usize, j: usize| {
            let of = &blocks[j / s];
            if i * s < of.len() { of[i * s + j % s] } else { 0.0 }
        };
        for column in 0..s {
            let residual: Vec<f64> = (0..rows)
                .map(|i| {
                    let b = if i < s { start[i * s + column] } else { 0.0 };
                    b - (0..m * s).map(|j| h(i, j) * y[j * s + column]).sum::<f64>()
                })
                .collect();
            for j in 0..m * s {
                let gradient: f64 = (0..rows).map(|i| h(i, j) * residual[i]).sum();
                assert!(gradient.abs() < 1e-14, "{gradient}");
            }
            assert!((length(&residual) - small.residuals()[column]).abs() < 1e-14);
        }
    }

    #[test]
    fn a_column_of_zeros_has_no_part() {
        let mut small = BlockLeastSquares::new(1, 2);
        small.reset(&[3.0, 0.0, 0.0, 0.0]);
        small.add(&[2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let y = small.solve();
        assert!((y[0] - 1.5).abs() < 1e-14 && y[1..] == [0.0, 0.0, 0.0], "{y:?}");
        assert!(small.residuals().iter().all(|r| *r < 1e-15));
    }
}
