//! Stored numbers of factors, and the scales of those with 16 bits.

use bytemuck::Pod;

use super::narrow::{Bfloat16, Float16, Short, brains, exponent, power_of_two};
use super::simd::Simd;

/// A stored number; arithmetic is in float64.
pub(crate) trait Entry: Pod + Send + Sync {
    /// Whether what is stored is to be multiplied by a power of two that its row has: the upper 16 bits of it in
    /// float64, see [`scale`].
    const SCALED: bool = false;
    /// The number in float64.
    fn wide(self) -> f64;
    /// First `N` of `x`, the other lanes being zero.
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4;
    /// The same for eight lanes.
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8;
}

impl Entry for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4 {
        s.load4::<N>(x)
    }
    #[inline(always)]
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8 {
        s.load8::<N>(x)
    }
}

impl Entry for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4 {
        s.widen4::<N>(x)
    }
    #[inline(always)]
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8 {
        s.widen8::<N>(x)
    }
}

impl Entry for Float16 {
    const SCALED: bool = true;
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self.single())
    }
    #[inline(always)]
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4 {
        s.widen4::<4>(&s.halves::<N>(x))
    }
    #[inline(always)]
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8 {
        s.widen8::<8>(&s.halves8::<N>(x))
    }
}

impl Entry for Bfloat16 {
    const SCALED: bool = true;
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self.single())
    }
    #[inline(always)]
    fn load4<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F4 {
        s.widen4::<4>(&brains::<N, 4>(x))
    }
    #[inline(always)]
    fn load8<S: Simd, const N: usize>(s: S, x: &[Self]) -> S::F8 {
        s.widen8::<8>(&brains::<N, 8>(x))
    }
}

/// The power of two whose upper 16 bits in float64 these are; the others are zero.
#[inline(always)]
pub(super) fn scale(bits: u16) -> f64 {
    f64::from_bits(u64::from(bits) << 48)
}

/// The scale of a row of stored numbers, with which the largest, `most`, becomes less than 2^15. Without one that
/// is finite it is 1.
pub(super) fn scale_for(most: f64) -> u16 {
    let of = if most.is_finite() && most > 0.0 { (exponent(most) - 14).max(-1022) } else { 0 };
    (power_of_two(of).to_bits() >> 48) as u16
}

/// Rounds blocks of `b x b` numbers of one block row, each scalar row by its scale; the scales go to `scales`.
pub(super) fn shorten<T: Short>(from: &[f64], b: usize, to: &mut [T], scales: &mut [u16]) {
    for (r, of) in scales.iter_mut().enumerate() {
        let row = from[r.min(from.len())..].iter().step_by(b);
        *of = scale_for(row.fold(0.0, |m: f64, v| m.max(v.abs())));
        let inverse = 1.0 / scale(*of);
        for at in (r..from.len()).step_by(b) {
            to[at] = T::rounded(from[at] * inverse);
        }
    }
}

/// All in float64.
pub(super) fn widen<T: Entry>(from: &[T], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(to, v)| *to = v.wide());
}

/// The numbers of blocks of `b x b` in a block row, with the scales of its scalar rows.
pub(super) fn lengthen<T: Entry>(from: &[T], scales: &[u16], to: &mut [f64]) {
    widen(from, to);
    let b = scales.len();
    to.iter_mut().enumerate().for_each(|(at, to)| *to *= scale(scales[at % b]));
}
