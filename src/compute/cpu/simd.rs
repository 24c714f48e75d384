//! Explicit vectors of 4 and 8 doubles, and loops compiled once per instruction set.
//!
//! A loop body is generic over `Simd` and marked `#[inline(always)]`; `multiversion!` compiles
//! it for each instruction set and picks one at run time. A value of `Avx2` or `Avx512` is
//! proof that the processor has the instructions: only [`isa`]'s answer creates one.

#![allow(unsafe_code, reason = "instruction sets chosen at run time")]

mod halves;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

use crate::base::error::{Error, Result};
use halves::Halves;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// Instruction sets with a version of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// What the target guarantees: no fused multiply-add.
    Baseline,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, DQ, VL.
    Avx512,
}

impl Isa {
    /// Name for `doctor` and the records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Environment variable that asks for less than the processor has.
const ISA: &str = "BILU_BENCH_ISA";

/// The best instruction set of this processor. `BILU_BENCH_ISA=baseline|avx2` asks for less.
pub fn isa() -> Isa {
    static CHOSEN: OnceLock<Isa> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let best = detect();
        match std::env::var(ISA).as_deref() {
            Ok("baseline") => Isa::Baseline,
            Ok("avx2") if best == Isa::Avx512 => Isa::Avx2,
            _ => best,
        }
    })
}

/// Refuses a value of `BILU_BENCH_ISA` that names no instruction set.
///
/// # Errors
/// Names the value and those that there are.
pub(crate) fn check_environment() -> Result<()> {
    let known = [Isa::Baseline, Isa::Avx2, Isa::Avx512].map(Isa::name);
    let Some(value) = std::env::var_os(ISA) else { return Ok(()) };
    let value = value.to_string_lossy();
    if value.is_empty() || known.contains(&&*value) {
        return Ok(());
    }
    Err(Error::unknown("instruction set", &value, &known).in_file(ISA))
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        Isa::Avx512
    } else if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
    {
        Isa::Avx2
    } else {
        Isa::Baseline
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Baseline
}

/// Asks for the cache lines of `x` before they are needed.
#[inline(always)]
pub(crate) fn prefetch<T>(x: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in x.chunks(64 / size_of::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of the target, and a prefetch changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

/// Bytes by which memory is asked for before it is read: the hardware fetches ahead within a page only. One page is too
/// short for products by CSR, four are too long for rows of many entries (docs/notes/triangular-solve.md).
const AHEAD: isize = 8192;

/// Asks for the cache lines that lie so much behind those of `x`, of which there need not be any.
#[inline(always)]
pub(crate) fn prefetch_ahead<T>(x: &[T]) {
    prefetch_away(x, AHEAD);
}

/// The same for those before `x`, where memory is read from its end.
#[inline(always)]
pub(crate) fn prefetch_before<T>(x: &[T]) {
    prefetch_away(x, -AHEAD);
}

/// The same so many bytes behind `x`, or before it.
#[inline(always)]
pub(crate) fn prefetch_away<T>(x: &[T], bytes: isize) {
    // most rows are short: no loop for them
    let lines = 64 / size_of::<T>();
    prefetch_place(x.as_ptr().wrapping_byte_offset(bytes));
    if x.len() > lines {
        let others = (lines..x.len()).step_by(lines);
        others
            .for_each(|at| prefetch_place(x.as_ptr().wrapping_add(at).wrapping_byte_offset(bytes)));
    }
}

/// Asks for the cache line of a place, which there need not be.
#[inline(always)]
fn prefetch_place<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of the target, and a prefetch of any address changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Arithmetic on one, four and eight doubles. `N` of a load or store is the number of lanes that
/// touch memory; the others are zero.
pub(crate) trait Simd: Halves {
    /// Four doubles.
    type F4: Copy;
    /// Eight doubles.
    type F8: Copy;
    /// How many times eight doubles the registers hold.
    const EIGHTS: usize;

    /// `a * b + c`.
    fn madd(self, a: f64, b: f64, c: f64) -> f64;

    /// All lanes `v`.
    fn splat4(self, v: f64) -> Self::F4;
    /// First `N` of `x`.
    fn load4<const N: usize>(self, x: &[f64]) -> Self::F4;
    /// First `N` of `x`, converted.
    fn widen4<const N: usize>(self, x: &[f32]) -> Self::F4;
    /// First `N` to `x`.
    fn store4<const N: usize>(self, v: Self::F4, x: &mut [f64]);
    /// `a * b + c`.
    fn madd4(self, a: Self::F4, b: Self::F4, c: Self::F4) -> Self::F4;
    /// `c - a * b`.
    fn msub4(self, a: Self::F4, b: Self::F4, c: Self::F4) -> Self::F4;
    /// Lane l is lane l + 1 of `v`, the last one its first.
    fn turned4(self, v: Self::F4) -> Self::F4;

    /// All lanes `v`.
    fn splat8(self, v: f64) -> Self::F8;
    /// First `N` of `x`.
    fn load8<const N: usize>(self, x: &[f64]) -> Self::F8;
    /// First `N` of `x`, converted.
    fn widen8<const N: usize>(self, x: &[f32]) -> Self::F8;
    /// First `N` to `x`.
    fn store8<const N: usize>(self, v: Self::F8, x: &mut [f64]);
    /// `a * b + c`.
    fn madd8(self, a: Self::F8, b: Self::F8, c: Self::F8) -> Self::F8;
    /// `c - a * b`.
    fn msub8(self, a: Self::F8, b: Self::F8, c: Self::F8) -> Self::F8;
    /// Eight rows by columns: lane l of the c-th is number c of row l.
    fn columns8(self, rows: [&[f64; 4]; 8]) -> [Self::F8; 4];
    /// All lanes, rounded.
    fn narrowed8(self, v: Self::F8) -> [f32; 8];
    /// Sum of all lanes, in a fixed order.
    #[inline(always)]
    fn sum8(self, v: Self::F8) -> f64 {
        let mut l = [0.0; 8];
        self.store8::<8>(v, &mut l);
        ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
    }
}

/// Plain arrays; the compiler vectorises what the target guarantees.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

#[inline(always)]
fn partial<const L: usize, const N: usize>(x: &[f64]) -> [f64; L] {
    let mut v = [0.0; L];
    v[..N].copy_from_slice(&x[..N]);
    v
}

#[inline(always)]
fn widened<const L: usize, const N: usize>(x: &[f32]) -> [f64; L] {
    let x = &x[..N];
    std::array::from_fn(|l| if l < N { f64::from(x[l]) } else { 0.0 })
}

impl Simd for Baseline {
    type F4 = [f64; 4];
    type F8 = [f64; 8];
    const EIGHTS: usize = 4;

    #[inline(always)]
    fn madd(self, a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
    #[inline(always)]
    fn splat4(self, v: f64) -> [f64; 4] {
        [v; 4]
    }
    #[inline(always)]
    fn load4<const N: usize>(self, x: &[f64]) -> [f64; 4] {
        partial::<4, N>(x)
    }
    #[inline(always)]
    fn widen4<const N: usize>(self, x: &[f32]) -> [f64; 4] {
        widened::<4, N>(x)
    }
    #[inline(always)]
    fn store4<const N: usize>(self, v: [f64; 4], x: &mut [f64]) {
        x[..N].copy_from_slice(&v[..N]);
    }
    #[inline(always)]
    fn madd4(self, a: [f64; 4], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| a[l] * b[l] + c[l])
    }
    #[inline(always)]
    fn msub4(self, a: [f64; 4], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| c[l] - a[l] * b[l])
    }
    #[inline(always)]
    fn turned4(self, [a, b, c, d]: [f64; 4]) -> [f64; 4] {
        [b, c, d, a]
    }
    #[inline(always)]
    fn splat8(self, v: f64) -> [f64; 8] {
        [v; 8]
    }
    #[inline(always)]
    fn load8<const N: usize>(self, x: &[f64]) -> [f64; 8] {
        partial::<8, N>(x)
    }
    #[inline(always)]
    fn widen8<const N: usize>(self, x: &[f32]) -> [f64; 8] {
        widened::<8, N>(x)
    }
    #[inline(always)]
    fn store8<const N: usize>(self, v: [f64; 8], x: &mut [f64]) {
        x[..N].copy_from_slice(&v[..N]);
    }
    #[inline(always)]
    fn madd8(self, a: [f64; 8], b: [f64; 8], c: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|l| a[l] * b[l] + c[l])
    }
    #[inline(always)]
    fn msub8(self, a: [f64; 8], b: [f64; 8], c: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|l| c[l] - a[l] * b[l])
    }
    #[inline(always)]
    fn columns8(self, rows: [&[f64; 4]; 8]) -> [[f64; 8]; 4] {
        std::array::from_fn(|c| rows.map(|row| row[c]))
    }
    #[inline(always)]
    fn narrowed8(self, v: [f64; 8]) -> [f32; 8] {
        v.map(|v| v as f32)
    }
}
