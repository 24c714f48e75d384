//! Numbers in decimal text: integers eight digits per machine word, others by the crate `fast-float2`.

// the functions are a few instructions each and run for every number of a file
#![allow(clippy::inline_always)]

/// Powers of ten up to eight digits.
const SHIFT: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Value and number of the decimal digits at the start of `text`, at most eight of them.
///
/// The word is compared with `'0'` byte by byte; the first byte of ten or more ends the number.
/// The digits are then moved to the top of the word, which leaves zeros in front of them, and
/// added in pairs, fours and eights (Lemire, *Quickly parsing eight digits*, 2018).
#[inline(always)]
fn eight_digits(text: [u8; 8]) -> (u64, usize) {
    let v = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    let other = (v.wrapping_add(0x7676_7676_7676_7676) | v) & 0x8080_8080_8080_8080;
    let count = (other.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    let v = v << (64 - 8 * count);
    let v = v.wrapping_mul(2561) >> 8 & 0x00ff_00ff_00ff_00ff;
    let v = v.wrapping_mul(6_553_601) >> 16 & 0x0000_ffff_0000_ffff;
    (v.wrapping_mul(42_949_672_960_001) >> 32, count)
}

/// The eight bytes at `at`, zeros beyond the end.
#[inline(always)]
fn word(text: &[u8], at: usize) -> [u8; 8] {
    match text.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => *bytes,
        None => last_word(text, at),
    }
}

/// As [`word`], near the end of the text.
#[cold]
fn last_word(text: &[u8], at: usize) -> [u8; 8] {
    let mut padded = [0; 8];
    if let Some(rest) = text.get(at..) {
        padded[..rest.len()].copy_from_slice(rest);
    }
    padded
}

/// The unsigned integer at `at` and the place after it; `None` without digits or beyond ten of
/// them.
#[inline(always)]
pub(super) fn index(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, count) = eight_digits(word(text, at));
    if count < 8 {
        return (count > 0).then_some((value, at + count));
    }
    let (low, more) = eight_digits(word(text, at + 8));
    (more <= 2).then(|| (value * SHIFT[more] + low, at + 8 + more))
}

/// Digits of an exponent from which on it is taken for a fault.
const LONG_EXPONENT: usize = 8;

/// The number at `at`, rounded to the nearest float64, and the place after it.
///
/// The exponent may be marked by `e`, `E`, `d` or `D` (Fortran). `None` where there is no number;
/// the words `nan` and `inf` are none. A number beyond the range of float64 yields an infinity.
#[inline(always)]
pub(super) fn real(text: &[u8], at: usize) -> Option<(f64, usize)> {
    let rest = text.get(at..)?;
    let signed = matches!(rest.first(), Some(b'-' | b'+'));
    let first = *rest.get(usize::from(signed))?;
    if !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    let (value, length) = fast_float2::parse_partial::<f64, _>(rest).ok()?;
    let (value, length) = match rest.get(length).map_or(0, |byte| byte | 0x20) {
        b'd' => fortran(rest, length)?,
        // an exponent without digits
        b'e' => return None,
        _ => (value, length),
    };
    if (value == 0.0 || value.is_infinite()) && long_exponent(&rest[..length]) {
        return None;
    }
    Some((value, at + length))
}

/// The number at the start of `text` whose exponent is marked by the `d` at `mark`; and its length.
#[cold]
#[inline(never)]
fn fortran(text: &[u8], mark: usize) -> Option<(f64, usize)> {
    let exponent = &text[mark + 1..];
    let signed = usize::from(matches!(exponent.first(), Some(b'-' | b'+')));
    let digits = exponent.iter().skip(signed).take_while(|byte| byte.is_ascii_digit()).count();
    let mut token = text[..mark + 1 + signed + digits].to_vec();
    token[mark] = b'e';
    Some((fast_float2::parse(&token).ok()?, token.len()))
}

#[cold]
#[inline(never)]
fn long_exponent(token: &[u8]) -> bool {
    let mark = token.iter().position(|byte| matches!(byte | 0x20, b'd' | b'e'));
    let exponent = mark.map_or(&[][..], |mark| &token[mark + 1..]);
    exponent.iter().filter(|byte| byte.is_ascii_digit()).count() >= LONG_EXPONENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Option<f64> {
        real(text.as_bytes(), 0).filter(|&(_, end)| end == text.len()).map(|(v, _)| v)
    }

    #[test]
    fn reads_every_spelling() {
        for (text, value) in [
            ("0", 0.0),
            ("-0", -0.0),
            ("+7", 7.0),
            ("12345678", 12_345_678.0),
            ("123456789.5", 123_456_789.5),
            ("1.", 1.0),
            (".5", 0.5),
            ("1.0D+00", 1.0),
            ("2.5d-3", 2.5e-3),
            ("-1.25E2", -125.0),
            ("0.1000000000000000055511151231257827", 0.1),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("2.2250738585072014e-308", f64::MIN_POSITIVE),
            ("1e400", f64::INFINITY),
            ("1e-400", 0.0),
        ] {
            assert_eq!(all(text).map(f64::to_bits), Some(value.to_bits()), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_number() {
        for text in ["", "-", ".", "e5", "1e", "1e+", "1e123456789", "nan", "inf", "0x1", "1.2.3"] {
            assert_eq!(all(text), None, "{text}");
        }
    }

    #[test]
    fn integers_end_at_the_first_other_byte() {
        assert_eq!(index(b"1234567890 ", 0), Some((1_234_567_890, 10)));
        assert_eq!(index(b"42\t7", 0), Some((42, 2)));
        assert_eq!(index(b"00000001", 0), Some((1, 8)));
        assert_eq!(index(b"12345678901", 0), None);
        assert_eq!(index(b"-1", 0), None);
        assert_eq!(index(b"", 0), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(v in any::<f64>().prop_filter("finite", |v| v.is_finite()), digits in 0_usize..20) {
            for text in [format!("{v}"), format!("{v:e}"), format!("{v:.digits$e}"), format!("{v:.digits$}")] {
                let expected: f64 = text.parse().unwrap();
                prop_assert_eq!(all(&text).map(f64::to_bits), Some(expected.to_bits()), "{}", text);
            }
        }
    }
}
