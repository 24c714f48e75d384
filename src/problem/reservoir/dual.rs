//! Numbers with their derivatives: forward differentiation to rounding.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A value and its derivatives by `N` unknowns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dual<const N: usize> {
    /// The value.
    pub(super) value: f64,
    /// Its derivatives.
    pub(super) by: [f64; N],
}

impl<const N: usize> Dual<N> {
    /// A number that depends on nothing.
    pub(super) fn constant(value: f64) -> Self {
        Self { value, by: [0.0; N] }
    }

    /// Unknown number `i`.
    pub(super) fn unknown(value: f64, i: usize) -> Self {
        let mut by = [0.0; N];
        by[i] = 1.0;
        Self { value, by }
    }

    /// `f(self)`, given the value of f and its derivative there.
    fn chain(self, value: f64, slope: f64) -> Self {
        Self { value, by: self.by.map(|d| slope * d) }
    }

    /// The square.
    pub(super) fn square(self) -> Self {
        self.chain(self.value * self.value, 2.0 * self.value)
    }

    /// The exponential.
    pub(super) fn exp(self) -> Self {
        let value = self.value.exp();
        self.chain(value, value)
    }
}

impl<const N: usize> Add for Dual<N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let by = std::array::from_fn(|i| self.by[i] + other.by[i]);
        Self { value: self.value + other.value, by }
    }
}

impl<const N: usize> Sub for Dual<N> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<const N: usize> Neg for Dual<N> {
    type Output = Self;
    fn neg(self) -> Self {
        self.chain(-self.value, -1.0)
    }
}

impl<const N: usize> Mul for Dual<N> {
    type Output = Self;
    #[allow(clippy::suspicious_arithmetic_impl, reason = "the product rule adds")]
    fn mul(self, other: Self) -> Self {
        let by = std::array::from_fn(|i| self.by[i] * other.value + self.value * other.by[i]);
        Self { value: self.value * other.value, by }
    }
}

impl<const N: usize> Mul<f64> for Dual<N> {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        self.chain(factor * self.value, factor)
    }
}

impl<const N: usize> Add<f64> for Dual<N> {
    type Output = Self;
    fn add(self, other: f64) -> Self {
        self.chain(self.value + other, 1.0)
    }
}

impl<const N: usize> Div for Dual<N> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let inverse = 1.0 / other.value;
        self * other.chain(inverse, -inverse * inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_follow_the_rules() {
        let (x, y) = (Dual::<2>::unknown(3.0, 0), Dual::<2>::unknown(0.5, 1));
        assert_eq!((x * y + 1.0).by, [0.5, 3.0]);
        assert_eq!((x / y).by, [2.0, -12.0]);
        assert_eq!((x.square() - y * 4.0).by, [6.0, -4.0]);
        assert_eq!((-y).exp().by, [0.0, -(-0.5_f64).exp()]);
        assert_eq!((Dual::<2>::constant(7.0) * x).value, 21.0);
    }
}
