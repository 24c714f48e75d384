//! Vectors of AVX2 and AVX-512.

#![allow(unsafe_code, reason = "instruction sets chosen at run time")]
#![allow(clippy::wildcard_imports, reason = "the module is made of intrinsics")]

use std::arch::x86_64::*;

use super::Simd;

/// Proof of AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// Proof of AVX-512 F, DQ and VL, and of F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx2 {
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self(())
    }
}

impl Avx512 {
    /// # Safety
    /// The processor has AVX-512 F, DQ and VL, AVX2, FMA and F16C.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self(())
    }
}

/// The first `N` of four lanes. Without masks: what a masked store has written goes to a load only by way
/// of the cache, and blocks are read again soon.
///
/// # Safety
/// The processor has AVX2, and `N` numbers are at `p`.
#[inline(always)]
unsafe fn load_lanes<const N: usize>(p: *const f64) -> __m256d {
    // SAFETY: promised by the caller
    unsafe {
        match N {
            1 => _mm256_zextpd128_pd256(_mm_load_sd(p)),
            2 => _mm256_zextpd128_pd256(_mm_loadu_pd(p)),
            3 => _mm256_set_m128d(_mm_load_sd(p.add(2)), _mm_loadu_pd(p)),
            _ => _mm256_loadu_pd(p),
        }
    }
}

/// Stores the first `N` of four lanes.
///
/// # Safety
/// As for [`load_lanes`].
#[inline(always)]
unsafe fn store_lanes<const N: usize>(v: __m256d, p: *mut f64) {
    // SAFETY: promised by the caller
    unsafe {
        match N {
            1 => _mm_store_sd(p, _mm256_castpd256_pd128(v)),
            2 => _mm_storeu_pd(p, _mm256_castpd256_pd128(v)),
            3 => {
                _mm_storeu_pd(p, _mm256_castpd256_pd128(v));
                _mm_store_sd(p.add(2), _mm256_extractf128_pd::<1>(v));
            }
            _ => _mm256_storeu_pd(p, v),
        }
    }
}

/// Four rows by columns. Loads put two rows beside each other, which leaves two shuffles for two columns.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn columns4([a, b, c, d]: [&[f64; 4]; 4]) -> [__m256d; 4] {
    // SAFETY: promised by the caller; pairs of numbers lie within the rows
    unsafe {
        let (a, b, c, d) = (a.as_ptr(), b.as_ptr(), c.as_ptr(), d.as_ptr());
        let ac = _mm256_set_m128d(_mm_loadu_pd(c), _mm_loadu_pd(a));
        let bd = _mm256_set_m128d(_mm_loadu_pd(d), _mm_loadu_pd(b));
        let far_ac = _mm256_set_m128d(_mm_loadu_pd(c.add(2)), _mm_loadu_pd(a.add(2)));
        let far_bd = _mm256_set_m128d(_mm_loadu_pd(d.add(2)), _mm_loadu_pd(b.add(2)));
        [
            _mm256_unpacklo_pd(ac, bd),
            _mm256_unpackhi_pd(ac, bd),
            _mm256_unpacklo_pd(far_ac, far_bd),
            _mm256_unpackhi_pd(far_ac, far_bd),
        ]
    }
}

// SAFETY of every block below: `self` proves the instruction set, and the slice is cut to the
// N lanes that are touched before its pointer is used.
impl Simd for Avx2 {
    type F4 = __m256d;
    type F8 = (__m256d, __m256d);
    const EIGHTS: usize = 8;

    #[inline(always)]
    fn madd(self, a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn splat4(self, v: f64) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_set1_pd(v) }
    }
    #[inline(always)]
    fn load4<const N: usize>(self, x: &[f64]) -> __m256d {
        let p = x[..N].as_ptr();
        // SAFETY: see above
        unsafe { load_lanes::<N>(p) }
    }
    #[inline(always)]
    fn widen4<const N: usize>(self, x: &[f32]) -> __m256d {
        let p = x[..N].as_ptr();
        // SAFETY: see above; a load with a mask takes twice the time
        unsafe {
            let two = || _mm_castpd_ps(_mm_load_sd(p.cast()));
            _mm256_cvtps_pd(match N {
                1 => _mm_load_ss(p),
                2 => two(),
                3 => _mm_movelh_ps(two(), _mm_load_ss(p.add(2))),
                _ => _mm_loadu_ps(p),
            })
        }
    }
    #[inline(always)]
    fn store4<const N: usize>(self, v: __m256d, x: &mut [f64]) {
        let p = x[..N].as_mut_ptr();
        // SAFETY: see above
        unsafe { store_lanes::<N>(v, p) }
    }
    #[inline(always)]
    fn madd4(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn msub4(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_fnmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn turned4(self, v: __m256d) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_permute4x64_pd::<0b00_11_10_01>(v) }
    }
    #[inline(always)]
    fn splat8(self, v: f64) -> Self::F8 {
        (self.splat4(v), self.splat4(v))
    }
    #[inline(always)]
    fn load8<const N: usize>(self, x: &[f64]) -> Self::F8 {
        (
            self.load4::<4>(x),
            match N {
                5 => self.load4::<1>(&x[4..]),
                6 => self.load4::<2>(&x[4..]),
                7 => self.load4::<3>(&x[4..]),
                _ => self.load4::<4>(&x[4..]),
            },
        )
    }
    #[inline(always)]
    fn widen8<const N: usize>(self, x: &[f32]) -> Self::F8 {
        (
            self.widen4::<4>(x),
            match N {
                5 => self.widen4::<1>(&x[4..]),
                6 => self.widen4::<2>(&x[4..]),
                7 => self.widen4::<3>(&x[4..]),
                _ => self.widen4::<4>(&x[4..]),
            },
        )
    }
    #[inline(always)]
    fn store8<const N: usize>(self, v: Self::F8, x: &mut [f64]) {
        self.store4::<4>(v.0, x);
        match N {
            5 => self.store4::<1>(v.1, &mut x[4..]),
            6 => self.store4::<2>(v.1, &mut x[4..]),
            7 => self.store4::<3>(v.1, &mut x[4..]),
            _ => self.store4::<4>(v.1, &mut x[4..]),
        }
    }
    #[inline(always)]
    fn madd8(self, a: Self::F8, b: Self::F8, c: Self::F8) -> Self::F8 {
        (self.madd4(a.0, b.0, c.0), self.madd4(a.1, b.1, c.1))
    }
    #[inline(always)]
    fn msub8(self, a: Self::F8, b: Self::F8, c: Self::F8) -> Self::F8 {
        (self.msub4(a.0, b.0, c.0), self.msub4(a.1, b.1, c.1))
    }
    #[inline(always)]
    fn columns8(self, [a, b, c, d, e, f, g, h]: [&[f64; 4]; 8]) -> [Self::F8; 4] {
        // SAFETY: see above
        let ([i, j, k, l], [m, n, o, p]) =
            unsafe { (columns4([a, b, c, d]), columns4([e, f, g, h])) };
        [(i, m), (j, n), (k, o), (l, p)]
    }
    #[inline(always)]
    fn narrowed8(self, v: Self::F8) -> [f32; 8] {
        // SAFETY: see above; two times four numbers are eight
        unsafe { std::mem::transmute([_mm256_cvtpd_ps(v.0), _mm256_cvtpd_ps(v.1)]) }
    }
}

/// Two rows, one behind the other.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn pair(a: &[f64; 4], b: &[f64; 4]) -> __m512d {
    // SAFETY: promised by the caller
    unsafe {
        let low = _mm512_castpd256_pd512(_mm256_loadu_pd(a.as_ptr()));
        _mm512_insertf64x4::<1>(low, _mm256_loadu_pd(b.as_ptr()))
    }
}

// SAFETY of every block below: as for `Avx2`.
impl Simd for Avx512 {
    type F4 = __m256d;
    type F8 = __m512d;
    const EIGHTS: usize = 32;

    #[inline(always)]
    fn madd(self, a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn splat4(self, v: f64) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_set1_pd(v) }
    }
    #[inline(always)]
    fn load4<const N: usize>(self, x: &[f64]) -> __m256d {
        let p = x[..N].as_ptr();
        // SAFETY: see above
        unsafe { load_lanes::<N>(p) }
    }
    #[inline(always)]
    fn widen4<const N: usize>(self, x: &[f32]) -> __m256d {
        let p = x[..N].as_ptr();
        // SAFETY: see above
        unsafe {
            _mm256_cvtps_pd(if N == 4 {
                _mm_loadu_ps(p)
            } else {
                _mm_maskz_loadu_ps((1 << N) - 1, p)
            })
        }
    }
    #[inline(always)]
    fn store4<const N: usize>(self, v: __m256d, x: &mut [f64]) {
        let p = x[..N].as_mut_ptr();
        // SAFETY: see above
        unsafe { store_lanes::<N>(v, p) }
    }
    #[inline(always)]
    fn madd4(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn msub4(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_fnmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn turned4(self, v: __m256d) -> __m256d {
        // SAFETY: see above
        unsafe { _mm256_permute4x64_pd::<0b00_11_10_01>(v) }
    }
    #[inline(always)]
    fn splat8(self, v: f64) -> __m512d {
        // SAFETY: see above
        unsafe { _mm512_set1_pd(v) }
    }
    #[inline(always)]
    fn load8<const N: usize>(self, x: &[f64]) -> __m512d {
        let p = x[..N].as_ptr();
        // SAFETY: see above
        unsafe {
            let low = _mm256_loadu_pd(p);
            let high = match N {
                5 => load_lanes::<1>(p.add(4)),
                6 => load_lanes::<2>(p.add(4)),
                7 => load_lanes::<3>(p.add(4)),
                _ => return _mm512_loadu_pd(p),
            };
            _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high)
        }
    }
    #[inline(always)]
    fn widen8<const N: usize>(self, x: &[f32]) -> __m512d {
        let p = x[..N].as_ptr();
        // SAFETY: see above
        unsafe {
            _mm512_cvtps_pd(if N == 8 {
                _mm256_loadu_ps(p)
            } else {
                _mm256_maskz_loadu_ps(((1_u16 << N) - 1) as u8, p)
            })
        }
    }
    #[inline(always)]
    fn store8<const N: usize>(self, v: __m512d, x: &mut [f64]) {
        let p = x[..N].as_mut_ptr();
        // SAFETY: see above
        unsafe {
            let high = _mm512_extractf64x4_pd::<1>(v);
            match N {
                5 => store_lanes::<1>(high, p.add(4)),
                6 => store_lanes::<2>(high, p.add(4)),
                7 => store_lanes::<3>(high, p.add(4)),
                _ => return _mm512_storeu_pd(p, v),
            }
            _mm256_storeu_pd(p, _mm512_castpd512_pd256(v));
        }
    }
    #[inline(always)]
    fn madd8(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: see above
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn msub8(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: see above
        unsafe { _mm512_fnmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn columns8(self, [a, b, c, d, e, f, g, h]: [&[f64; 4]; 8]) -> [__m512d; 4] {
        // SAFETY: see above
        unsafe {
            let ae = pair(a, e);
            let bf = pair(b, f);
            let cg = pair(c, g);
            let dh = pair(d, h);
            // columns 0 and 2 of two rows, in turn, and columns 1 and 3
            let even = [_mm512_unpacklo_pd(ae, bf), _mm512_unpacklo_pd(cg, dh)];
            let odd = [_mm512_unpackhi_pd(ae, bf), _mm512_unpackhi_pd(cg, dh)];
            let near = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            let far = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            [
                _mm512_permutex2var_pd(even[0], near, even[1]),
                _mm512_permutex2var_pd(odd[0], near, odd[1]),
                _mm512_permutex2var_pd(even[0], far, even[1]),
                _mm512_permutex2var_pd(odd[0], far, odd[1]),
            ]
        }
    }
    #[inline(always)]
    fn narrowed8(self, v: __m512d) -> [f32; 8] {
        // SAFETY: see above; both types are eight numbers
        unsafe { std::mem::transmute(_mm512_cvtpd_ps(v)) }
    }
}
