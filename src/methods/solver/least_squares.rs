//! The least-squares problem of GMRES.

/// A column of the triangular factor below this part of its norm depends on the others.
const DEPENDENT: f64 = 16.0 * f64::EPSILON;

/// The small least-squares problem `min |beta e1 - H y|`, kept triangular by Givens rotations.
pub(super) struct LeastSquares {
    /// Columns of R, column j at `j * (m + 1)`.
    r: Vec<f64>,
    rotations: Vec<(f64, f64)>,
    /// Rotated right-hand side.
    g: Vec<f64>,
    y: Vec<f64>,
    stride: usize,
    columns: usize,
}

impl LeastSquares {
    pub(super) fn new(m: usize) -> Self {
        let stride = m + 1;
        Self {
            r: vec![0.0; stride * m],
            rotations: Vec::with_capacity(m),
            g: vec![0.0; stride],
            y: vec![0.0; m],
            stride,
            columns: 0,
        }
    }

    pub(super) fn reset(&mut self, beta: f64) {
        self.columns = 0;
        self.rotations.clear();
        self.g[0] = beta;
    }

    /// Norm of the residual of the columns so far.
    pub(super) fn residual(&self) -> f64 {
        self.g[self.columns].abs()
    }

    /// Adds a column of H; returns the norm of the residual. `None` when the column depends on the
    /// others up to rounding: it is left out.
    pub(super) fn add(&mut self, column: &[f64]) -> Option<f64> {
        let j = self.columns;
        let r = &mut self.r[j * self.stride..][..j + 2];
        r.copy_from_slice(column);
        for (i, &(c, s)) in self.rotations.iter().enumerate() {
            (r[i], r[i + 1]) = (c * r[i] + s * r[i + 1], c * r[i + 1] - s * r[i]);
        }
        let length = r[j].hypot(r[j + 1]);
        let norm = column.iter().map(|h| h * h).sum::<f64>().sqrt();
        if length <= DEPENDENT * norm {
            return None;
        }
        let (c, s) = (r[j] / length, r[j + 1] / length);
        r[j] = length;
        self.rotations.push((c, s));
        self.g[j + 1] = -s * self.g[j];
        self.g[j] *= c;
        self.columns += 1;
        Some(self.residual())
    }

    /// Puts another column in the place of the last one.
    pub(super) fn replace_last(&mut self, column: &[f64]) -> Option<f64> {
        let (c, s) = self.rotations.pop()?;
        self.columns -= 1;
        let j = self.columns;
        self.g[j] = c * self.g[j] - s * self.g[j + 1];
        self.add(column)
    }

    /// Back substitution.
    pub(super) fn solve(&mut self) -> &[f64] {
        let usable = self.columns;
        for i in (0..usable).rev() {
            let mut sum = self.g[i];
            for j in i + 1..usable {
                sum -= self.r[j * self.stride + i] * self.y[j];
            }
            self.y[i] = sum / self.r[i * self.stride + i];
        }
        &self.y[..usable]
    }
}
