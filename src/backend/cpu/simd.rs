//! One generic loop body, compiled once per instruction set and chosen at run time.

use std::sync::OnceLock;

/// Instruction sets with a version of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// What the target guarantees: no fused multiply-add.
    Baseline,
    /// AVX2 with FMA.
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

/// The best instruction set of this processor. `BILU_BENCH_ISA=baseline|avx2` asks for less.
pub fn isa() -> Isa {
    static ISA: OnceLock<Isa> = OnceLock::new();
    *ISA.get_or_init(|| {
        let best = detect();
        match std::env::var("BILU_BENCH_ISA").as_deref() {
            Ok("baseline") => Isa::Baseline,
            Ok("avx2") if best == Isa::Avx512 => Isa::Avx2,
            _ => best,
        }
    })
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        Isa::Avx512
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        Isa::Avx2
    } else {
        Isa::Baseline
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Baseline
}

/// `a * b + c`, fused where the instruction set of the caller has it. Without the hardware
/// instruction `mul_add` would be a library call.
#[inline(always)]
pub(super) fn madd<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Declares `fn $name<...>(args)` that runs `$body::<..., FMA>(args)` compiled for the best
/// instruction set of the processor. The body must be `#[inline(always)]` and take `FMA: bool` as
/// its last generic parameter.
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $name:ident [$($gen:ident : $bound:path),*] ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<$($gen: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx2<$($gen: $bound),*>($($arg: $ty),*) $(-> $ret)? {
                    $body::<$($gen,)* true>($($arg),*)
                }
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx512<$($gen: $bound),*>($($arg: $ty),*) $(-> $ret)? {
                    $body::<$($gen,)* true>($($arg),*)
                }
                match $crate::backend::cpu::simd::isa() {
                    // SAFETY: `isa` found these features on this processor.
                    $crate::backend::cpu::simd::Isa::Avx512 => return unsafe { avx512::<$($gen),*>($($arg),*) },
                    // SAFETY: as above.
                    $crate::backend::cpu::simd::Isa::Avx2 => return unsafe { avx2::<$($gen),*>($($arg),*) },
                    $crate::backend::cpu::simd::Isa::Baseline => {}
                }
            }
            $body::<$($gen,)* false>($($arg),*)
        }
    };
}
pub(super) use multiversion;
