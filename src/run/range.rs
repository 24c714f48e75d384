//! Right-hand sides whose norm has no square in float64.

use std::borrow::Cow;

/// Methods multiply up to four norms with each other, and these fall with the residual: entries between
/// 2^-100 and 2^100 leave room for both.
const EXPONENT: i32 = 100;

/// `b` with its largest entry near 1, and the power of two that it was divided by for that; `b` itself,
/// and 0, where it is in no danger. Methods are linear in b, and a power of two rounds nothing.
pub(super) fn in_range(b: &[f64]) -> (Cow<'_, [f64]>, i32) {
    let largest = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let exponent = largest.log2().floor();
    if largest == 0.0 || !largest.is_finite() || exponent.abs() <= f64::from(EXPONENT) {
        return (Cow::Borrowed(b), 0);
    }
    let exponent = exponent as i32;
    (Cow::Owned(b.iter().map(|v| times(*v, -exponent)).collect()), exponent)
}

/// `v` times two to the power of `exponent`, which by itself may be outside the range.
pub(super) fn times(v: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    v * 2.0_f64.powi(half) * 2.0_f64.powi(exponent - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_far_from_one_is_scaled() {
        for plain in [0.0, 1.0, -3e29, 1e-30, f64::NAN, f64::INFINITY] {
            let (b, exponent) = in_range(std::slice::from_ref(&plain));
            assert!(matches!(b, Cow::Borrowed(_)) && exponent == 0, "{plain}");
        }
        let (b, exponent) = in_range(&[3e-162, -1e-162, 0.0]);
        assert!((1.0..2.0).contains(&b[0]), "{}", b[0]);
        assert_eq!(b[0] / b[1], 3e-162 / -1e-162);
        assert_eq!((times(b[0], exponent), b[2]), (3e-162, 0.0));
    }

    #[test]
    fn the_ends_of_the_range_come_back_as_they_were() {
        let least = f64::from_bits(1);
        for v in [least, f64::MIN_POSITIVE, f64::MAX, -1e155, 1e-158] {
            let (b, exponent) = in_range(std::slice::from_ref(&v));
            assert!((0.5..=2.0).contains(&b[0].abs()), "{v:e}: {}", b[0]);
            assert_eq!(times(b[0], exponent), v);
        }
    }
}
