//! Arrays that are streamed through: stores past the caches, and what the bandwidth of memory is measured
//! with.

#![allow(unsafe_code, reason = "instruction sets chosen at run time")]

use super::multiversion::multiversion;
use super::simd::{Avx2, Avx512, Baseline, Simd};

/// Lanes of a vector: a cache line.
pub(crate) const LANES: usize = 8;

/// Stores that leave the caches alone.
pub(crate) trait Stream: Simd {
    /// Writes a cache line; `to` begins on one.
    fn stream(self, v: &[f64; LANES], to: &mut [f64; LANES]);
}

impl Stream for Baseline {
    #[inline(always)]
    fn stream(self, v: &[f64; LANES], to: &mut [f64; LANES]) {
        *to = *v;
    }
}

impl Stream for Avx2 {
    #[inline(always)]
    fn stream(self, v: &[f64; LANES], to: &mut [f64; LANES]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the type is proof of AVX; 8 numbers each, and `to` begins on a cache line.
        unsafe {
            use std::arch::x86_64::{_mm256_loadu_pd, _mm256_stream_pd};
            debug_assert!(to.as_ptr().addr().is_multiple_of(64));
            _mm256_stream_pd(to.as_mut_ptr(), _mm256_loadu_pd(v.as_ptr()));
            _mm256_stream_pd(to.as_mut_ptr().add(4), _mm256_loadu_pd(v.as_ptr().add(4)));
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            *to = *v;
        }
    }
}

impl Stream for Avx512 {
    #[inline(always)]
    fn stream(self, v: &[f64; LANES], to: &mut [f64; LANES]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the type is proof of AVX-512; 8 numbers, and `to` begins on a cache line.
        unsafe {
            use std::arch::x86_64::{_mm512_loadu_pd, _mm512_stream_pd};
            debug_assert!(to.as_ptr().addr().is_multiple_of(64));
            _mm512_stream_pd(to.as_mut_ptr(), _mm512_loadu_pd(v.as_ptr()));
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            *to = *v;
        }
    }
}

/// Waits until streamed stores can be seen by others.
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of the target.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Whether [`flush`] does anything here.
pub(crate) fn can_flush() -> bool {
    cfg!(target_arch = "x86_64")
}

/// Takes `x` out of all caches: what reads it next reads memory.
pub fn flush(x: &[f64]) {
    #[cfg(target_arch = "x86_64")]
    {
        let unordered = raw_cpuid::CpuId::new()
            .get_extended_feature_info()
            .is_some_and(|features| features.has_clflushopt());
        for line in x.chunks(LANES) {
            let line = line.as_ptr();
            // SAFETY: the line is readable; SSE2 is part of the target, the other instruction was found
            unsafe {
                if unordered {
                    std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                } else {
                    std::arch::x86_64::_mm_clflush(line.cast());
                }
            }
        }
        // SAFETY: SSE2 is part of the target
        unsafe { std::arch::x86_64::_mm_mfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

multiversion! {
    /// `y = x` with stores past the caches where the processor has them. Others see it after [`fence`].
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn copy[](x: &[u8], y: &mut [u8]) = copy_body
}

multiversion! {
    /// The sum of the entries, in the order in which they are fastest added.
    pub fn sum[](x: &[f64]) -> f64 = sum_body
}

#[inline(always)]
fn copy_body<S: Stream>(s: S, x: &[u8], y: &mut [u8]) {
    const LINE: usize = 8 * LANES;
    assert_eq!(x.len(), y.len());
    // a streamed store is one of a whole cache line
    let before = y.as_ptr().align_offset(LINE).min(y.len());
    let ((first, x), (to, y)) = (x.split_at(before), y.split_at_mut(before));
    to.copy_from_slice(first);
    let (xs, rest) = x.as_chunks::<LINE>();
    let (ys, to) = y.as_chunks_mut::<LINE>();
    // an empty rest may begin where no number does
    let ys: &mut [[f64; LANES]] =
        if ys.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(ys) };
    for (x, y) in xs.iter().zip(ys) {
        s.stream(&bytemuck::pod_read_unaligned(x), y);
    }
    to.copy_from_slice(rest);
}

#[inline(always)]
fn sum_body<S: Simd>(s: S, x: &[f64]) -> f64 {
    let (wide, rest) = x.as_chunks::<{ 4 * LANES }>();
    let one = s.splat8(1.0);
    let mut sums = [s.splat8(0.0); 4];
    for x in wide {
        for (v, sum) in sums.iter_mut().enumerate() {
            *sum = s.madd8(s.load8::<LANES>(&x[v * LANES..]), one, *sum);
        }
    }
    sums.into_iter().map(|sum| s.sum8(sum)).sum::<f64>() + rest.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::memory::Buffer;

    #[test]
    fn copies_and_sums_of_any_length_are_those_of_plain_loops() {
        for n in [0, 1, 7, 8, 9, 31, 32, 33, 1000] {
            let x: Vec<f64> = (0..n).map(|i| ((i * 37) % 101) as f64 - 50.0).collect();
            flush(&x);
            let bytes: &[u8] = bytemuck::cast_slice(&x);
            // also where x begins in the middle of a number, and y not on a cache line
            for x in [bytes, bytes.get(3..).unwrap_or_default()] {
                for before in [0, 1, 16, 63, 64] {
                    let mut y = Buffer::<f64>::zeros(n + 16);
                    let y: &mut [u8] = bytemuck::cast_slice_mut(&mut y[..]);
                    copy(x, &mut y[before..before + x.len()]);
                    fence();
                    let (head, rest) = y.split_at(before);
                    assert_eq!(&rest[..x.len()], x);
                    assert!(head.iter().chain(&rest[x.len()..]).all(|&byte| byte == 0));
                }
            }
            // whole numbers: no order rounds
            assert_eq!(sum(&x), x.iter().sum::<f64>(), "{n}");
        }
    }
}
