//! Numbers of 16 bits: float16 (IEEE 754 binary16) and bfloat16.

#![allow(unsafe_code, reason = "plain 16 bits")]

use bytemuck::{Pod, Zeroable};

/// 11 significant bits, exponents from -14 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Float16(pub(crate) u16);

/// 8 significant bits, the exponents of float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Bfloat16(pub(crate) u16);

// SAFETY: 16 plain bits, all of which mean a number.
unsafe impl Zeroable for Float16 {}
// SAFETY: as above
unsafe impl Pod for Float16 {}
// SAFETY: as above
unsafe impl Zeroable for Bfloat16 {}
// SAFETY: as above
unsafe impl Pod for Bfloat16 {}

/// A number of 16 bits.
pub(crate) trait Short: Pod + Send + Sync {
    /// `x` rounded to nearest, ties to even; infinite beyond the range.
    fn rounded(x: f64) -> Self;
}

impl Short for Float16 {
    fn rounded(x: f64) -> Self {
        Self(encoded::<10>(x, -14))
    }
}

impl Short for Bfloat16 {
    fn rounded(x: f64) -> Self {
        Self(encoded::<7>(x, -126))
    }
}

impl Float16 {
    /// The number in float32, which holds all of them.
    #[inline(always)]
    pub(crate) fn single(self) -> f32 {
        // the exponent of float32 is 112 higher; the product is right for subnormal numbers, too
        const HIGHER: f32 = f32::from_bits((112 + 127) << 23);
        let magnitude = u32::from(self.0 & 0x7fff);
        let sign = u32::from(self.0 & 0x8000) << 16;
        let bits = if magnitude < 0x7c00 {
            (f32::from_bits(magnitude << 13) * HIGHER).to_bits()
        } else {
            0x7f80_0000 | (magnitude & 0x3ff) << 13
        };
        f32::from_bits(bits | sign)
    }
}

impl Bfloat16 {
    /// The number in float32, whose upper half it is.
    #[inline(always)]
    pub(crate) fn single(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// The bits of `x` with `FRACTION` bits behind the leading one, least exponent `least` of normal numbers.
fn encoded<const FRACTION: i32>(x: f64, least: i32) -> u16 {
    let (sign, infinite) = ((x.to_bits() >> 48) as u16 & 0x8000, 0x7fff >> FRACTION << FRACTION);
    if x.is_nan() {
        return sign | infinite | 1 << (FRACTION - 1);
    }
    let exponent = exponent(x).max(least);
    if exponent > 1 - least {
        return sign | infinite;
    }
    // a multiple of the spacing there; the sum, whose spacing is 1, rounds it to nearest, ties to even
    let spacings =
        (x.abs() * power_of_two(FRACTION - exponent) + power_of_two(52)).to_bits() as u16;
    // the leading one counts as an exponent of one; a carry moves on to the next
    sign | ((((exponent - least) as u16) << FRACTION) + spacings).min(infinite)
}

/// The exponent of `x`; -1023 for zero and subnormal numbers.
pub(crate) fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// `2^exponent`, from -1022 to 1023.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// bfloat16 to float32 by a shift.
#[inline(always)]
pub(crate) fn brains<const N: usize, const L: usize>(x: &[Bfloat16]) -> [f32; L] {
    let x = &x[..N];
    std::array::from_fn(|l| if l < N { x[l].single() } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that bits mean, written from the definition of the format.
    fn meant(bits: u16, fraction: i32, bias: i32) -> f64 {
        let (sign, field) = (if bits >> 15 == 1 { -1.0 } else { 1.0 }, i32::from(bits & 0x7fff));
        let (exponent, part) = (field >> fraction, field & ((1 << fraction) - 1));
        let part = f64::from(part) / f64::from(1 << fraction);
        if exponent == (1 << (15 - fraction)) - 1 {
            return if part == 0.0 { sign * f64::INFINITY } else { f64::NAN };
        }
        match exponent {
            0 => sign * part * 2f64.powi(1 - bias),
            _ => sign * (1.0 + part) * 2f64.powi(exponent - bias),
        }
    }

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    /// Every number and its neighbourhood: the midpoint to the next, and what is just beside that.
    fn check<T: Short>(fraction: i32, bias: i32, bits: impl Fn(T) -> u16, to: impl Fn(u16) -> f32) {
        let of = |code: u16| meant(code, fraction, bias);
        for code in 0..=u16::MAX {
            let value = of(code);
            assert!(same(f64::from(to(code)), value), "{code:#x}");
            let back = bits(T::rounded(value));
            assert!(back == code || value.is_nan() && of(back).is_nan(), "{code:#x}: {back:#x}");
            let infinite = 0x7fff >> fraction << fraction;
            let magnitude = code & 0x7fff;
            if magnitude >= infinite {
                continue;
            }
            // beyond the largest the next number would be a power of two
            let next = if magnitude + 1 == infinite {
                value.signum() * 2f64.powi(bias + 1)
            } else {
                of(code + 1)
            };
            let middle = value / 2.0 + next / 2.0;
            let even = if code % 2 == 0 { code } else { code + 1 };
            let round = |x: f64| bits(T::rounded(x));
            assert_eq!(round(middle), even, "{code:#x}");
            let (below, above) = (middle.to_bits() - 1, middle.to_bits() + 1);
            assert_eq!(round(f64::from_bits(below)), code, "{code:#x}");
            assert_eq!(round(f64::from_bits(above)), code + 1, "{code:#x}");
        }
        for x in [f64::MAX, -1e300, f64::INFINITY] {
            let all = bits(T::rounded(x));
            assert_eq!(of(all), x.signum() * f64::INFINITY);
        }
        for x in [5e-324, 1e-300, -1e-300, 0.0, -0.0] {
            assert!(same(of(bits(T::rounded(x))), x.signum() * 0.0), "{x}");
        }
    }

    #[test]
    fn every_number_of_16_bits_is_converted_exactly_and_every_midpoint_to_even() {
        check::<Float16>(10, 15, |v| v.0, |code| Float16(code).single());
        check::<Bfloat16>(7, 127, |v| v.0, |code| Bfloat16(code).single());
    }
}
