//! How far a basis made by one pass of classical Gram-Schmidt has come from orthogonality.

/// Loss up to which the small matrices of a Krylov method are those of an orthogonal basis up to rounding:
/// the square root of the rounding unit (Simon 1984).
const HARMLESS: f64 = 1.0 / (1 << 26) as f64;

/// Rounding unit.
const UNIT: f64 = f64::EPSILON / 2.0;

/// An estimate of `V' V - I`, without an operation on vectors.
///
/// One pass leaves in the new vector what the others lack of orthogonality: with `h = V' w` and a norm of
/// `kept` behind the pass, `V' v = -(V' V - I) h / kept`, and rounding of about `u |w| / kept`. The loss
/// therefore multiplies from step to step by up to `|h| / kept`, which no look at the norms of one step
/// shows: seven steps that each keep a tenth lose seven digits. Simon follows it in this way for Lanczos'
/// method (The Lanczos algorithm with partial reorthogonalization, Mathematics of Computation 42, 1984);
/// Arnoldi's only has more terms.
#[derive(Debug, Default)]
pub(super) struct Orthogonality {
    /// Above the diagonal, column by column.
    products: Vec<f64>,
    /// Vectors so far.
    vectors: usize,
    /// Whether more than what is harmless has been lost: a second pass keeps the further vectors orthogonal
    /// to each other, and is needed for all of them.
    lost: bool,
    /// Signs of rounding errors; the same in every solve.
    random: u64,
    new: Vec<f64>,
}

impl Orthogonality {
    /// Begins with one vector.
    pub(super) fn reset(&mut self) {
        *self = Self { vectors: 1, random: 0x9e37_79b9_7f4a_7c15, ..std::mem::take(self) };
        self.products.clear();
        self.lost = false;
    }

    /// Whether all further vectors need a second pass.
    pub(super) fn lost(&self) -> bool {
        self.lost
    }

    /// Adds a vector that one pass has made, from what it has found: the coefficients, then the norm that
    /// is left. Whether it needs a second pass.
    pub(super) fn add(&mut self, column: &[f64]) -> bool {
        if self.lost {
            return true;
        }
        let (kept, h) = column.split_last().expect("a norm");
        debug_assert_eq!(h.len(), self.vectors);
        let rounding = UNIT * column.iter().map(|h| h * h).sum::<f64>().sqrt();
        let mut new = std::mem::take(&mut self.new);
        new.clear();
        new.extend((0..h.len()).map(|_| if self.sign() { rounding } else { -rounding }));
        let mut rest = &self.products[..];
        for k in 1..h.len() {
            let (above, further) = rest.split_at(k);
            rest = further;
            let (before, own) = new.split_at_mut(k);
            for ((new, product), h_i) in before.iter_mut().zip(above).zip(h) {
                *new -= product * h[k];
                own[0] -= product * h_i;
            }
        }
        let loss = new.iter().map(|v| v * v).sum::<f64>().sqrt() / kept;
        // not a number: nothing is left of the vector
        self.lost = loss.is_nan() || loss > HARMLESS;
        self.products.extend(new.iter().map(|v| v / kept));
        self.vectors += 1;
        self.new = new;
        self.lost
    }

    /// A random bit (xorshift).
    fn sign(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random & 1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::solver::delayed::dot;

    /// Arnoldi's method with one pass on a diagonal matrix that keeps a part of each vector only, beside the
    /// estimate of what is lost.
    #[test]
    fn the_estimate_follows_the_loss() {
        let n = 400;
        let diagonal: Vec<f64> =
            (0..n).map(|i| 1.0 + 0.5 * (i as f64 / n as f64).powi(2)).collect();
        let mut basis = vec![vec![(n as f64).sqrt().recip(); n]];
        let mut orthogonality = Orthogonality::default();
        orthogonality.reset();
        for step in 1..n {
            let mut w: Vec<f64> =
                basis[step - 1].iter().zip(&diagonal).map(|(v, d)| v * d).collect();
            let mut column: Vec<f64> = basis.iter().map(|v| dot(v, &w)).collect();
            for (v, h) in basis.iter().zip(&column) {
                w.iter_mut().zip(v).for_each(|(w, v)| *w -= h * v);
            }
            let kept = dot(&w, &w).sqrt();
            column.push(kept);
            let lost = orthogonality.add(&column);
            for w in &mut w {
                *w /= kept;
            }
            let real = basis.iter().map(|v| dot(v, &w).powi(2)).sum::<f64>().sqrt();
            if lost {
                // found when it begins to matter: neither early nor late
                assert!((1e-10..1e-6).contains(&real), "step {step}: {real:e}");
                assert!(step > 4 && orthogonality.add(&[]), "{step}");
                return;
            }
            assert!(real < 1e-6, "step {step}: {real:e}");
            basis.push(w);
        }
        panic!("no loss is found");
    }

    #[test]
    fn vectors_that_keep_their_norm_need_one_pass() {
        let mut orthogonality = Orthogonality::default();
        orthogonality.reset();
        for step in 1..300 {
            let mut column = vec![0.0; step];
            column.push(1.0);
            assert!(!orthogonality.add(&column), "{step}");
        }
        orthogonality.reset();
        // nothing left of a vector, and one that loses all digits at once
        assert!(orthogonality.add(&[1.0, 0.0]));
        orthogonality.reset();
        assert!(orthogonality.add(&[1.0, 1e-9]));
        orthogonality.reset();
        assert!(!orthogonality.add(&[1.0, 1e-3]));
    }
}
