//! Decimal mantissas of up to 64 bits times powers of ten, correctly rounded.
//!
//! Lemire, *Number parsing at a gigabyte per second*, Software: Practice and Experience 51 (2021):
//! one or two products with a 128-bit approximation of the power of five give the float64. Within
//! the range of exponents kept here the approximation always suffices (section 5 there), and no
//! result is subnormal or overflows.

/// Exponents covered: what 16 to 19 digits of values between 1e-11 and 1e40 need.
const LOWEST: i64 = -27;
const HIGHEST: i64 = 27;

/// The leading 128 bits of `5^q`, rounded down for positive and up for negative q.
const FIVES: [(u64, u64); (HIGHEST - LOWEST + 1) as usize] = {
    let mut table = [(0, 0); (HIGHEST - LOWEST + 1) as usize];
    let mut q = LOWEST;
    while q <= HIGHEST {
        let five = 5_u128.pow(q.unsigned_abs() as u32);
        let bits = if q < 0 { reciprocal(five as u64) } else { five << five.leading_zeros() };
        table[(q - LOWEST) as usize] = ((bits >> 64) as u64, bits as u64);
        q += 1;
    }
    table
};

/// The leading 128 bits of `1 / divisor`, rounded up.
const fn reciprocal(divisor: u64) -> u128 {
    // long division of a one followed by zeros, one bit at a time
    let (mut remainder, mut quotient) = (1_u128, 0_u128);
    while quotient >> 127 == 0 {
        remainder <<= 1;
        quotient <<= 1;
        if remainder >= divisor as u128 {
            remainder -= divisor as u128;
            quotient |= 1;
        }
    }
    quotient + 1
}

/// `w * 10^q` rounded to the nearest float64, ties to even; `None` outside the range of exponents
/// and in the rare cases that need more digits of the power.
#[inline]
pub(super) fn scaled(w: u64, q: i64) -> Option<f64> {
    if w == 0 {
        return Some(0.0);
    }
    let (high, low) = *FIVES.get(usize::try_from(q - LOWEST).ok()?)?;
    let zeros = w.leading_zeros();
    let w = w << zeros;
    let mut product = u128::from(w) * u128::from(high);
    if (product >> 64) as u64 & 0x1ff == 0x1ff {
        product += u128::from(w) * u128::from(low) >> 64;
    }
    let (upper, lower) = ((product >> 64) as u64, product as u64);
    // 54 bits: the float64 and one for rounding
    let top = upper >> 63;
    let shift = top + 9;
    let mut mantissa = upper >> shift;
    // within these exponents the product can be exactly half way between two numbers
    if lower <= 1 && (-4..=23).contains(&q) && mantissa & 3 == 1 && mantissa << shift == upper {
        mantissa &= !1;
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    // 217706 / 2^16 approximates the binary logarithm of ten
    let exponent = (q * 217_706 >> 16) + 63 + top as i64 - i64::from(zeros) + 1023;
    // a mantissa rounded up to 2^53 carries into the exponent
    Some(f64::from_bits(((exponent as u64 - 1) << 52) + mantissa))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_of_five_match_the_published_table() {
        let at = |q: i64| FIVES[(q - LOWEST) as usize];
        assert_eq!(at(0), (0x8000_0000_0000_0000, 0));
        assert_eq!(at(1), (0xa000_0000_0000_0000, 0));
        assert_eq!(at(-1), (0xcccc_cccc_cccc_cccc, 0xcccc_cccc_cccc_cccd));
        assert_eq!(at(-27), (0x9e74_d1b7_91e0_7e48, 0x775e_a264_cf55_347e));
        assert_eq!(at(27), (0xcecb_8f27_f420_0f3a, 0));
    }

    #[test]
    fn halves_round_to_even() {
        assert_eq!(scaled(9_007_199_254_740_993, 0), Some(9_007_199_254_740_992.0));
        assert_eq!(scaled(9_007_199_254_740_995, 0), Some(9_007_199_254_740_996.0));
        assert_eq!(scaled(90_071_992_547_409_930, -1), Some(9_007_199_254_740_992.0));
        assert_eq!(scaled(u64::MAX, 0), Some(18_446_744_073_709_551_616.0));
        assert_eq!(scaled(1, 28), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(w in any::<u64>(), bits in 0_u32..64, q in LOWEST..=HIGHEST) {
            let w = w >> bits;
            let expected: f64 = format!("{w}e{q}").parse().unwrap();
            prop_assert_eq!(scaled(w, q).map(f64::to_bits), Some(expected.to_bits()));
        }
    }
}
