//! Arithmetic on dense b x b blocks, column-major (Yang et al., Figure 2).
//!
//! [`Fixed`] knows its size at compile time and is unrolled and vectorised; [`Runtime`] serves
//! every other size with the same operations.

mod runtime;

use super::entry::{Entry, scale};
use super::simd::{Baseline, Simd};

/// Size of the blocks a loop works on, and its arithmetic.
pub(crate) trait BlockSize: Copy + Send + Sync {
    /// A block's worth of a vector, in registers where the size allows.
    type Segment<S: Simd>: Copy;
    /// A block that multiplies several others: its columns in registers where the size allows.
    type Factor<'a, S: Simd>: Copy;

    /// Rows and columns of a block.
    fn b(self) -> usize;
    /// A segment of zeros.
    fn zero<S: Simd>(self, s: S) -> Self::Segment<S>;
    /// The head of `x`.
    fn load<S: Simd>(self, s: S, x: &[f64]) -> Self::Segment<S>;
    /// Writes the segment to the head of `x`.
    fn store<S: Simd>(self, s: S, v: Self::Segment<S>, x: &mut [f64]);
    /// `y + A x`.
    fn gemv_add<S: Simd, T: Entry>(
        self,
        s: S,
        a: &[T],
        x: &[f64],
        y: Self::Segment<S>,
    ) -> Self::Segment<S>;
    /// `y - A x`.
    fn gemv_sub<S: Simd, T: Entry>(
        self,
        s: S,
        a: &[T],
        x: &[f64],
        y: Self::Segment<S>,
    ) -> Self::Segment<S>;

    /// `y + diag(scales) x`, for scales as [`Entry::SCALED`] has them.
    fn scale_add<S: Simd>(
        self,
        s: S,
        scales: &[u16],
        x: Self::Segment<S>,
        y: Self::Segment<S>,
    ) -> Self::Segment<S>;

    /// The block `a`, to multiply others.
    fn factor<S: Simd>(self, s: S, a: &[f64]) -> Self::Factor<'_, S>;
    /// `C = A B`.
    fn gemm<S: Simd>(self, s: S, a: Self::Factor<'_, S>, b: &[f64], c: &mut [f64]);
    /// `C -= A B`.
    fn gemm_sub<S: Simd>(self, s: S, a: Self::Factor<'_, S>, b: &[f64], c: &mut [f64]);

    /// Replaces the block by its inverse: Gauss-Jordan by columns with column pivoting, so that
    /// every inner loop runs along a stored column.
    ///
    /// A pivot is compared with the largest entry its row had at the start, so that rows of
    /// different scale (pressures beside saturations) do not look singular.
    ///
    /// # Errors
    /// Step at which no pivot was found, and the best candidate relative to its row. A block with
    /// a NaN or infinite entry is singular at step 0.
    fn invert<S: Simd>(self, s: S, a: &mut [f64]) -> Result<(), (usize, f64)>;
}

/// Block size B, known at compile time.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<const B: usize>;

/// Block size known at run time.
#[derive(Clone, Copy)]
pub(crate) struct Runtime(pub(crate) usize);

impl BlockSize for Fixed<1> {
    type Segment<S: Simd> = f64;
    type Factor<'a, S: Simd> = f64;

    #[inline(always)]
    fn b(self) -> usize {
        1
    }
    #[inline(always)]
    fn zero<S: Simd>(self, _: S) -> f64 {
        0.0
    }
    #[inline(always)]
    fn load<S: Simd>(self, _: S, x: &[f64]) -> f64 {
        x[0]
    }
    #[inline(always)]
    fn store<S: Simd>(self, _: S, v: f64, x: &mut [f64]) {
        x[0] = v;
    }
    #[inline(always)]
    fn gemv_add<S: Simd, T: Entry>(self, s: S, a: &[T], x: &[f64], y: f64) -> f64 {
        s.madd(a[0].wide(), x[0], y)
    }
    #[inline(always)]
    fn gemv_sub<S: Simd, T: Entry>(self, s: S, a: &[T], x: &[f64], y: f64) -> f64 {
        s.madd(-a[0].wide(), x[0], y)
    }
    #[inline(always)]
    fn scale_add<S: Simd>(self, s: S, scales: &[u16], x: f64, y: f64) -> f64 {
        s.madd(scale(scales[0]), x, y)
    }
    #[inline(always)]
    fn factor<S: Simd>(self, _: S, a: &[f64]) -> f64 {
        a[0]
    }
    #[inline(always)]
    fn gemm<S: Simd>(self, _: S, a: f64, b: &[f64], c: &mut [f64]) {
        c[0] = a * b[0];
    }
    #[inline(always)]
    fn gemm_sub<S: Simd>(self, s: S, a: f64, b: &[f64], c: &mut [f64]) {
        c[0] = s.madd(-a, b[0], c[0]);
    }
    #[inline(always)]
    fn invert<S: Simd>(self, _: S, a: &mut [f64]) -> Result<(), (usize, f64)> {
        let inverse = 1.0 / a[0];
        if !(a[0].is_finite() && inverse.is_finite()) {
            return Err((0, 0.0));
        }
        a[0] = inverse;
        Ok(())
    }
}

/// Block sizes whose segment fits one register of four or eight lanes.
macro_rules! in_one_register {
    ($lanes:literal $register:ident, $splat:ident, $load:ident, $store:ident, $madd:ident, $msub:ident: $($b:literal)*) => {$(
        impl BlockSize for Fixed<$b> {
            type Segment<S: Simd> = S::$register;
            type Factor<'a, S: Simd> = [S::$register; $b];

            #[inline(always)]
            fn b(self) -> usize {
                $b
            }
            #[inline(always)]
            fn zero<S: Simd>(self, s: S) -> S::$register {
                s.$splat(0.0)
            }
            #[inline(always)]
            fn load<S: Simd>(self, s: S, x: &[f64]) -> S::$register {
                s.$load::<$b>(x)
            }
            #[inline(always)]
            fn store<S: Simd>(self, s: S, v: S::$register, x: &mut [f64]) {
                s.$store::<$b>(v, x);
            }
            #[inline(always)]
            fn gemv_add<S: Simd, T: Entry>(self, s: S, a: &[T], x: &[f64], mut y: S::$register) -> S::$register {
                let (a, x) = (&a[..$b * $b], &x[..$b]);
                for c in 0..$b {
                    y = s.$madd(T::$load::<S, $b>(s, &a[c * $b..]), s.$splat(x[c]), y);
                }
                y
            }
            #[inline(always)]
            fn gemv_sub<S: Simd, T: Entry>(self, s: S, a: &[T], x: &[f64], mut y: S::$register) -> S::$register {
                let (a, x) = (&a[..$b * $b], &x[..$b]);
                for c in 0..$b {
                    y = s.$msub(T::$load::<S, $b>(s, &a[c * $b..]), s.$splat(x[c]), y);
                }
                y
            }
            #[inline(always)]
            fn scale_add<S: Simd>(self, s: S, scales: &[u16], x: S::$register, y: S::$register) -> S::$register {
                let scales = &scales[..$b];
                let wide: [f64; $b] = std::array::from_fn(|r| scale(scales[r]));
                s.$madd(s.$load::<$b>(&wide), x, y)
            }
            #[inline(always)]
            fn factor<S: Simd>(self, s: S, a: &[f64]) -> [S::$register; $b] {
                let a = &a[..$b * $b];
                let mut columns = [s.$splat(0.0); $b];
                for k in 0..$b {
                    columns[k] = s.$load::<$b>(&a[k * $b..]);
                }
                columns
            }
            #[inline(always)]
            fn gemm<S: Simd>(self, s: S, a: [S::$register; $b], b: &[f64], c: &mut [f64]) {
                let (b, c) = (&b[..$b * $b], &mut c[..$b * $b]);
                for j in 0..$b {
                    let mut y = s.$splat(0.0);
                    for k in 0..$b {
                        y = s.$madd(a[k], s.$splat(b[j * $b + k]), y);
                    }
                    s.$store::<$b>(y, &mut c[j * $b..]);
                }
            }
            #[inline(always)]
            fn gemm_sub<S: Simd>(self, s: S, a: [S::$register; $b], b: &[f64], c: &mut [f64]) {
                let (b, c) = (&b[..$b * $b], &mut c[..$b * $b]);
                for j in 0..$b {
                    let mut y = s.$load::<$b>(&c[j * $b..]);
                    for k in 0..$b {
                        y = s.$msub(a[k], s.$splat(b[j * $b + k]), y);
                    }
                    s.$store::<$b>(y, &mut c[j * $b..]);
                }
            }
            /// Columns are padded to whole registers, so that what was stored whole is loaded whole.
            #[inline(always)]
            fn invert<S: Simd>(self, s: S, a: &mut [f64]) -> Result<(), (usize, f64)> {
                const ZERO_AT_LANES: [f64; 2 * $lanes] = {
                    let mut v = [1.0; 2 * $lanes];
                    v[$lanes] = 0.0;
                    v
                };
                let a = &mut a[..$b * $b];
                let zero = s.$splat(0.0);
                let mut m = [[0.0; $lanes]; $b];
                let mut row_max = [0.0f64; $lanes];
                let mut sum = zero;
                for c in 0..$b {
                    let column = s.$load::<$b>(&a[c * $b..]);
                    sum = s.$madd(column, zero, sum);
                    s.$store::<$lanes>(column, &mut m[c]);
                    for r in 0..$lanes {
                        row_max[r] = row_max[r].max(m[c][r].abs());
                    }
                }
                let mut sums = [0.0; $lanes];
                s.$store::<$lanes>(sum, &mut sums);
                if sums != [0.0; $lanes] {
                    return Err((0, 0.0)); // a NaN or infinite entry
                }
                let mut swaps = [0; $b];
                let mut swapped = false;
                for k in 0..$b {
                    let (mut p, mut best) = (k, m[k][k].abs());
                    for c in k + 1..$b {
                        let candidate = m[c][k].abs();
                        if candidate > best {
                            (p, best) = (c, candidate);
                        }
                    }
                    check_pivot(k, best, row_max[k])?;
                    swaps[k] = p;
                    if p != k {
                        m.swap(k, p);
                        swapped = true;
                    }
                    let inverse = s.$splat(1.0 / m[k][k]);
                    let keep = s.$load::<$lanes>(&ZERO_AT_LANES[$lanes - k..]);
                    // the pivot becomes 1 before the division
                    let one = s.$msub(keep, s.$splat(1.0), s.$splat(1.0));
                    let column = s.$madd(s.$load::<$lanes>(&m[k]), keep, one);
                    let pivot = s.$madd(column, inverse, zero);
                    for c in 0..$b {
                        if c != k {
                            let factor = s.$splat(m[c][k]);
                            let column = s.$madd(s.$load::<$lanes>(&m[c]), keep, zero);
                            s.$store::<$lanes>(s.$msub(pivot, factor, column), &mut m[c]);
                        }
                    }
                    s.$store::<$lanes>(pivot, &mut m[k]);
                }
                if swapped {
                    // swapped columns of A are swapped rows of the inverse
                    for k in (0..$b).rev() {
                        for column in &mut m {
                            column.swap(k, swaps[k]);
                        }
                    }
                }
                for c in 0..$b {
                    s.$store::<$b>(s.$load::<$lanes>(&m[c]), &mut a[c * $b..]);
                }
                Ok(())
            }
        }
    )*};
}

in_one_register! { 4 F4, splat4, load4, store4, madd4, msub4: 2 3 4 }
in_one_register! { 8 F8, splat8, load8, store8, madd8, msub8: 5 6 7 8 }

/// Calls `$f::<BlockSize>(size, args)` with the compile-time size where there is one.
macro_rules! with_block_size {
    ($b:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match $b {
            5 => $f($crate::compute::cpu::block::Fixed::<5>, $($arg),*),
            6 => $f($crate::compute::cpu::block::Fixed::<6>, $($arg),*),
            7 => $f($crate::compute::cpu::block::Fixed::<7>, $($arg),*),
            8 => $f($crate::compute::cpu::block::Fixed::<8>, $($arg),*),
            b => $crate::compute::cpu::block::with_small_block_size!(b, $f($($arg),*)),
        }
    };
}
pub(super) use with_block_size;

/// The same with compile-time sizes up to 4, for kernels that are not used enough to be compiled for more.
macro_rules! with_small_block_size {
    ($b:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match $b {
            1 => $f($crate::compute::cpu::block::Fixed::<1>, $($arg),*),
            2 => $f($crate::compute::cpu::block::Fixed::<2>, $($arg),*),
            3 => $f($crate::compute::cpu::block::Fixed::<3>, $($arg),*),
            4 => $f($crate::compute::cpu::block::Fixed::<4>, $($arg),*),
            b => $f($crate::compute::cpu::block::Runtime(b), $($arg),*),
        }
    };
}
pub(crate) use with_small_block_size;

/// Replaces a dense matrix of order n, by rows or by columns, by its inverse.
///
/// # Errors
/// The step at which no pivot was found, and the best candidate relative to the largest entry of its row.
pub(crate) fn invert_block(a: &mut [f64], n: usize) -> Result<(), (usize, f64)> {
    fn sized<K: BlockSize>(size: K, a: &mut [f64]) -> Result<(), (usize, f64)> {
        size.invert(Baseline, a)
    }
    with_block_size!(n, sized(a))
}

/// A pivot below this part of its row's largest entry counts as zero: a few roundings.
pub(super) const SINGULAR: f64 = 16.0 * f64::EPSILON;

/// Refuses a pivot that is zero beside the largest entry of its row.
#[inline(always)]
fn check_pivot(step: usize, best: f64, row_max: f64) -> Result<(), (usize, f64)> {
    if best <= SINGULAR * row_max {
        return Err((step, if row_max > 0.0 { best / row_max } else { 0.0 }));
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    /// Numbers in [-1, 1), of a seed always the same.
    pub(in crate::compute::cpu) fn random(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    fn naive(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
        let mut c = vec![0.0; n * n];
        for j in 0..n {
            for k in 0..n {
                for r in 0..n {
                    c[j * n + r] += a[k * n + r] * b[j * n + k];
                }
            }
        }
        c
    }

    fn check<K: BlockSize>(size: K) {
        let s = Baseline;
        let n = size.b();
        let (a, b) = (random(n * n, 1), random(n * n, 2));
        let product = naive(&a, &b, n);
        let mut c = random(n * n, 3);
        let before = c.clone();
        size.gemm_sub(s, size.factor(s, &a), &b, &mut c);
        for i in 0..n * n {
            assert!((c[i] - (before[i] - product[i])).abs() < 1e-13, "b {n} entry {i}");
        }
        size.gemm(s, size.factor(s, &a), &b, &mut c);
        for i in 0..n * n {
            assert!((c[i] - product[i]).abs() < 1e-13);
        }
        let y = size.gemv_add(s, &a, &b[..n], size.zero(s));
        let y = size.gemv_sub(s, &a, &b[..n], y);
        let mut out = vec![1.0; n];
        size.store(s, y, &mut out);
        assert!(out.iter().all(|v| v.abs() < 1e-14));
    }

    fn check_size(size: impl BlockSize) {
        check(size);
    }

    #[test]
    fn every_block_size_multiplies_like_the_naive_loop() {
        for b in [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 25, 32, 33] {
            with_block_size!(b, check_size());
        }
    }

    fn check_inverse(size: impl BlockSize) {
        let b = size.b();
        let mut a = random(b * b, b as u64);
        for i in 0..b {
            a[i * b + i] = if b > 1 { 0.0 } else { 2.0 };
        }
        let mut inverse = a.clone();
        size.invert(Baseline, &mut inverse).expect("regular");
        let product = naive(&a, &inverse, b);
        for j in 0..b {
            for r in 0..b {
                let want = f64::from(u8::from(r == j));
                assert!((product[j * b + r] - want).abs() < 1e-10, "b {b}");
            }
        }
        let mut same = a.clone();
        Runtime(b).invert(Baseline, &mut same).expect("regular");
        for (x, y) in inverse.iter().zip(&same) {
            assert!((x - y).abs() <= 1e-12 * y.abs(), "b {b}: {x} beside {y}");
        }
    }

    #[test]
    fn inverse_times_block_is_identity_also_with_zero_diagonal() {
        for b in [1, 2, 3, 4, 5, 6, 7, 8, 13, 32] {
            with_block_size!(b, check_inverse());
        }
    }

    #[test]
    fn singular_blocks_name_the_step() {
        let s = Baseline;
        let mut a = vec![1.0, 2.0, 2.0, 4.0];
        assert_eq!(Fixed::<2>.invert(s, &mut a), Err((1, 0.0)));
        let mut a = vec![1e20, 1.0, 2e20, 2.5];
        assert_eq!(Fixed::<2>.invert(s, &mut a), Ok(()));
        assert!((a[3] - 2.0).abs() < 1e-12 && (a[0] - 5e-20).abs() < 1e-30, "{a:?}");
        for bad in [0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Fixed::<1>.invert(s, &mut [bad]), Err((0, 0.0)));
            let a = [1.0, bad, bad, 0.0];
            assert!(Fixed::<2>.invert(s, &mut a.clone()).is_err(), "{bad}");
            assert_eq!(Fixed::<2>.invert(s, &mut a.clone()), Runtime(2).invert(s, &mut a.clone()));
        }
    }
}
