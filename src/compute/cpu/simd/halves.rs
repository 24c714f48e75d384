//! float16 in registers.

#![allow(unsafe_code, reason = "instruction sets chosen at run time")]

use super::super::narrow::Float16;
use super::Baseline;
#[cfg(target_arch = "x86_64")]
use super::{Avx2, Avx512};

/// The first `N` of four numbers of 16 bits, the others zero.
#[inline(always)]
fn first<const N: usize>(x: &[Float16]) -> [u16; 4] {
    let x = &x[..N];
    std::array::from_fn(|l| if l < N { x[l].0 } else { 0 })
}

/// float16 to float32 with the instructions there are.
pub(crate) trait Halves: Copy {
    /// The first `N` of `x`, the other lanes being zero.
    fn halves<const N: usize>(self, x: &[Float16]) -> [f32; 4];

    /// The same for eight lanes.
    #[inline(always)]
    fn halves8<const N: usize>(self, x: &[Float16]) -> [f32; 8] {
        let low = self.halves::<4>(x);
        let high = match N {
            5 => self.halves::<1>(&x[4..]),
            6 => self.halves::<2>(&x[4..]),
            7 => self.halves::<3>(&x[4..]),
            _ => self.halves::<4>(&x[4..]),
        };
        std::array::from_fn(|l| if l < 4 { low[l] } else { high[l - 4] })
    }
}

impl Halves for Baseline {
    #[inline(always)]
    fn halves<const N: usize>(self, x: &[Float16]) -> [f32; 4] {
        first::<N>(x).map(|bits| Float16(bits).single())
    }
}

/// Four of them by F16C.
///
/// # Safety
/// The processor has F16C.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn converted(x: [u16; 4]) -> [f32; 4] {
    use std::arch::x86_64::{_mm_cvtph_ps, _mm_cvtsi64_si128};
    // SAFETY: promised by the caller; both types are 128 bits of float32
    unsafe { std::mem::transmute(_mm_cvtph_ps(_mm_cvtsi64_si128(bytemuck::cast(x)))) }
}

#[cfg(target_arch = "x86_64")]
impl Halves for Avx2 {
    #[inline(always)]
    fn halves<const N: usize>(self, x: &[Float16]) -> [f32; 4] {
        // SAFETY: `self` proves F16C
        unsafe { converted(first::<N>(x)) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Halves for Avx512 {
    #[inline(always)]
    fn halves<const N: usize>(self, x: &[Float16]) -> [f32; 4] {
        // SAFETY: `self` proves F16C
        unsafe { converted(first::<N>(x)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::multiversion::multiversion;
    use super::super::Simd;
    use super::*;

    multiversion! { fn four[](x: &[Float16], to: &mut [f32]) = four_body }

    #[inline(always)]
    fn four_body<S: Simd>(s: S, x: &[Float16], to: &mut [f32]) {
        to[..4].copy_from_slice(&s.halves::<3>(x));
        to[4..].copy_from_slice(&s.halves8::<7>(x));
    }

    #[test]
    fn registers_get_what_the_portable_conversion_yields() {
        let bits = |v: &f32| if v.is_nan() { 0 } else { v.to_bits() };
        for code in (0..=u16::MAX).step_by(8) {
            let x: Vec<Float16> = (code..code + 7).map(Float16).collect();
            let (mut got, mut want) = ([1.0; 12], [1.0; 12]);
            four(&x, &mut got);
            four_body(Baseline, &x, &mut want);
            assert_eq!(got.each_ref().map(bits), want.each_ref().map(bits), "{code:#x}");
            assert_eq!([want[3], want[11]], [0.0; 2]);
            assert!((0..7).all(|at| bits(&want[4 + at]) == bits(&x[at].single())));
        }
    }
}
