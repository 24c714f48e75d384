//! Functions compiled for several instruction sets.

/// Declares `fn $name<...>(args)` that runs `$body(simd, args)` compiled for the best instruction
/// set of the processor. The body must be `#[inline(always)]` and take `S: Simd` as its last
/// generic parameter and a value of it as its first argument.
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $name:ident [$($gen:ident : $bound:path),*] ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        #[allow(unsafe_code, reason = "instruction sets chosen at run time")]
        $vis fn $name<$($gen: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::compute::cpu::simd::{Avx2, Avx512, Isa, isa};
                #[target_feature(enable = "avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments)]
                fn avx2<$($gen: $bound),*>(s: Avx2, $($arg: $ty),*) $(-> $ret)? {
                    $body(s, $($arg),*)
                }
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments)]
                fn avx512<$($gen: $bound),*>(s: Avx512, $($arg: $ty),*) $(-> $ret)? {
                    $body(s, $($arg),*)
                }
                match isa() {
                    // SAFETY: `isa` found these features on this processor.
                    Isa::Avx512 => return unsafe { avx512(Avx512::new(), $($arg),*) },
                    // SAFETY: as above.
                    Isa::Avx2 => return unsafe { avx2(Avx2::new(), $($arg),*) },
                    Isa::Baseline => {}
                }
            }
            $body($crate::compute::cpu::simd::Baseline, $($arg),*)
        }
    };
}
pub(crate) use multiversion;
