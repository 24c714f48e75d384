//! Scaling of matrices and right-hand sides whose squared norms overflow or underflow in float64.

use std::borrow::Cow;
use std::sync::Arc;

use crate::matrix::Csr;
pub(super) use crate::matrix::equilibration::times;

/// Methods multiply up to four norms, which decrease with the residual: entries between 2^-100 and 2^100 leave
/// room for both.
const EXPONENT: i32 = 100;

/// A system with its largest entries near 1: `A x = b` as `(A / 2^p) y = b / 2^q`. Scaling by a
/// power of two is exact, and relative residuals do not change.
pub(super) struct Scaled<'a> {
    /// The matrix, without padding.
    pub(super) matrix: Cow<'a, Arc<Csr>>,
    pub(super) b: Cow<'a, [f64]>,
    pub(super) scaling: Scaling,
}

/// Exponents of the powers of two by which a system was divided; 0 where scaling was not necessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Scaling {
    pub(super) matrix: i32,
    pub(super) b: i32,
}

impl Scaling {
    /// Exponent of the power of two that turns the solution of the scaled system into that of the original.
    pub(super) fn of_solution(self) -> i32 {
        self.b - self.matrix
    }

    /// That of a system by the largest magnitudes of its matrix and its right-hand side.
    pub(super) fn of(largest: [f64; 2]) -> Self {
        let [matrix, b] = largest.map(exponent_of);
        Self { matrix, b }
    }

    pub(super) fn remarks(self) -> impl Iterator<Item = String> {
        [("matrix", self.matrix), ("right-hand side", self.b)]
            .into_iter()
            .filter(|(_, exponent)| *exponent != 0)
            .map(|(what, exponent)| format!("{what} scaled by 2^{}", -exponent))
    }
}

/// The system `A x = b`, scaled where its entries are too large or too small.
pub(super) fn in_range<'a>(matrix: &'a Arc<Csr>, b: &'a [f64]) -> Scaled<'a> {
    let scaling = Scaling::of([matrix.values(), b].map(largest));
    let scaled = || {
        let mut scaled = Csr::clone(matrix);
        scaled.values_mut().iter_mut().for_each(|v| *v = times(*v, -scaling.matrix));
        Arc::new(scaled)
    };
    Scaled {
        matrix: if scaling.matrix == 0 { Cow::Borrowed(matrix) } else { Cow::Owned(scaled()) },
        b: match scaling.b {
            0 => Cow::Borrowed(b),
            exponent => Cow::Owned(b.iter().map(|v| times(*v, -exponent)).collect()),
        },
        scaling,
    }
}

/// The unscaled system.
pub(super) fn as_given<'a>(matrix: &'a Arc<Csr>, b: &'a [f64]) -> Scaled<'a> {
    Scaled { matrix: Cow::Borrowed(matrix), b: Cow::Borrowed(b), scaling: Scaling::default() }
}

/// The largest magnitude of some numbers; what is no number has none.
pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m: f64, v| m.max(v.abs()))
}

/// The power of two by which values are divided so that the largest is near 1; 0 where that is not needed.
fn exponent_of(largest: f64) -> i32 {
    let exponent = largest.log2().floor();
    if largest == 0.0 || !largest.is_finite() || exponent.abs() <= f64::from(EXPONENT) {
        return 0;
    }
    exponent as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matrix of one entry.
    fn of(v: f64) -> Arc<Csr> {
        Csr::new(1, 1, vec![0, 1], vec![0], vec![v]).unwrap().into()
    }

    #[test]
    fn only_what_is_far_from_one_is_scaled() {
        let one = of(1.0);
        for plain in [0.0, 1.0, -3e29, 1e-30, f64::NAN, f64::INFINITY] {
            let (matrix, b) = (of(plain), [plain]);
            let system = in_range(&matrix, &b);
            assert!(matches!(system.matrix, Cow::Borrowed(_)), "{plain}");
            assert!(matches!(system.b, Cow::Borrowed(_)), "{plain}");
            assert_eq!(system.scaling, Scaling::default(), "{plain}");
            assert_eq!(system.scaling.remarks().count(), 0);
        }
        let Scaled { matrix, b, scaling } = in_range(&one, &[3e-162, -1e-162, 0.0]);
        assert!(matches!(matrix, Cow::Borrowed(_)) && scaling.matrix == 0);
        assert!((1.0..2.0).contains(&b[0]), "{}", b[0]);
        assert_eq!(b[0] / b[1], 3e-162 / -1e-162);
        assert_eq!((times(b[0], scaling.b), b[2]), (3e-162, 0.0));
    }

    #[test]
    fn a_scaled_matrix_makes_another_solution_of_the_same_residual() {
        let system = (of(3e200), [6e-160]);
        let Scaled { matrix, b, scaling } = in_range(&system.0, &system.1);
        let a = matrix.values()[0];
        assert!((0.5..2.0).contains(&a) && (0.5..2.0).contains(&b[0]), "{a} {}", b[0]);
        assert_eq!(times(a, scaling.matrix), 3e200);
        // 6e-160 / 3e200 underflows in float64, so the exponent is compared
        assert_eq!(scaling.of_solution(), scaling.b - scaling.matrix);
        let x = b[0] / a;
        assert_eq!(x.log2().floor() as i32 + scaling.of_solution(), -1195);
        let remarks: Vec<String> = scaling.remarks().collect();
        assert_eq!(remarks, ["matrix scaled by 2^-665", "right-hand side scaled by 2^529"]);
    }

    #[test]
    fn the_ends_of_the_range_come_back_as_they_were() {
        let least = f64::from_bits(1);
        for v in [least, f64::MIN_POSITIVE, f64::MAX, -1e155, 1e-158] {
            let (one, b) = (of(v), [v]);
            let system = in_range(&one, &b);
            for (scaled, exponent) in [
                (system.b[0], system.scaling.b),
                (system.matrix.values()[0], system.scaling.matrix),
            ] {
                assert!((0.5..=2.0).contains(&scaled.abs()), "{v:e}: {scaled}");
                assert_eq!(times(scaled, exponent), v);
            }
        }
    }
}
