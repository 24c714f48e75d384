//! Arithmetic of scalars that live on a backend.

use super::{Coef, Slot};

/// Most steps of one call of [`scalars`](crate::compute::Vectors::scalars); mirrored by `kernels/vectors/operations.cu`.
pub const MOST_STEPS: usize = 32;

/// A step of arithmetic: `out` becomes `a` and `b` put together. With the quotients that coefficients
/// are, a list of steps is any rational expression, and roots of sums of squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Where the result goes.
    pub out: Slot,
    /// What is done.
    pub operation: Operation,
    /// The first operand.
    pub a: Coef,
    /// The second operand.
    pub b: Coef,
}

/// What a step does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `a + b`.
    Sum,
    /// `a b`.
    Product,
    /// `sqrt(a^2 + b^2)`; with b = 0 the absolute value.
    Hypot,
}

impl Step {
    /// `out = a`.
    #[must_use]
    pub fn set(out: Slot, a: Coef) -> Self {
        Self::product(out, a, Coef::ONE)
    }

    /// `out = a + b`.
    #[must_use]
    pub fn sum(out: Slot, a: Coef, b: Coef) -> Self {
        Self { out, operation: Operation::Sum, a, b }
    }

    /// `out = a b`.
    #[must_use]
    pub fn product(out: Slot, a: Coef, b: Coef) -> Self {
        Self { out, operation: Operation::Product, a, b }
    }

    /// `out = sqrt(a^2 + b^2)`.
    #[must_use]
    pub(crate) fn hypot(out: Slot, a: Coef, b: Coef) -> Self {
        Self { out, operation: Operation::Hypot, a, b }
    }
}

impl Coef {
    /// Its value, given those of all slots.
    #[must_use]
    pub fn value(self, slots: &[f64]) -> f64 {
        let at = |slot: Slot| slots[slot.0 as usize];
        match self {
            Self::Host(value) => value,
            Self::Slot(a) => at(a),
            Self::Reciprocal(a) => quotient(1.0, at(a)),
            Self::Ratio(a, b) => quotient(at(a), at(b)),
            Self::NegRatio(a, b) => -quotient(at(a), at(b)),
        }
    }
}

/// A quotient whose denominator is zero counts as zero.
#[must_use]
pub fn quotient(num: f64, den: f64) -> f64 {
    if den == 0.0 { 0.0 } else { num / den }
}

/// Does the steps, one after the other, on `slots` of the host.
pub(crate) fn evaluate(steps: &[Step], slots: &mut [f64]) {
    for step in steps {
        let (a, b) = (step.a.value(slots), step.b.value(slots));
        slots[step.out.0 as usize] = match step.operation {
            Operation::Sum => a + b,
            Operation::Product => a * b,
            Operation::Hypot => a.hypot(b),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_use_what_those_before_have_left() {
        let [x, y, z] = [Slot(0), Slot(1), Slot(2)];
        let mut slots = [-3.0, 8.0, 0.0];
        let steps = [
            Step::hypot(x, Coef::Slot(x), Coef::ZERO),
            Step::hypot(z, Coef::Slot(x), Coef::Host(4.0)),
            Step::product(z, Coef::Ratio(z, x), Coef::NegRatio(x, z)),
            Step::sum(y, Coef::Slot(y), Coef::Slot(z)),
            Step::set(x, Coef::Reciprocal(y)),
        ];
        evaluate(&steps, &mut slots);
        assert_eq!(slots, [1.0 / 7.0, 7.0, -1.0]);
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let mut slots = [5.0, 0.0];
        for a in [Coef::Ratio(Slot(0), Slot(1)), Coef::Reciprocal(Slot(1))] {
            evaluate(&[Step::set(Slot(0), a)], &mut slots);
            assert_eq!(slots, [0.0, 0.0]);
        }
    }
}
