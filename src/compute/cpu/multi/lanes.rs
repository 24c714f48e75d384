//! Columns of a multivector that a register holds.

use super::super::simd::Simd;

/// Whether vectors of so many numbers stream from memory: their lines are asked for before they are read. What stays in
/// the second-level cache is slower with that.
pub(super) fn from_memory(numbers: usize) -> bool {
    numbers * size_of::<f64>() >= 4 << 20
}

/// A strip of columns: the first of them, and the columns of the whole multivector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strip {
    pub(super) at: usize,
    pub(super) columns: usize,
}

impl Strip {
    /// The place of the strip in a row.
    #[inline(always)]
    pub(super) fn of_row(self, row: usize) -> usize {
        row * self.columns + self.at
    }

    /// All columns of `count` rows from `first` on.
    #[inline(always)]
    pub(super) fn rows(self, first: usize, count: usize) -> std::ops::Range<usize> {
        first * self.columns..(first + count) * self.columns
    }
}

/// Strips of 8, 4, 2 and 1 columns that make up `columns`, with their widths.
pub(super) fn strips(columns: usize) -> impl Iterator<Item = (Strip, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let width = match columns - at {
            0 => return None,
            1 => 1,
            2 | 3 => 2,
            4..8 => 4,
            _ => 8,
        };
        let strip = Strip { at, columns };
        at += width;
        Some((strip, width))
    })
}

/// Arithmetic on the columns of a strip.
pub(super) trait Lanes: Copy + Send + Sync {
    /// How many there are.
    const COUNT: usize;
    /// A number of each.
    type Of<S: Simd>: Copy;
    /// Zeros.
    fn zero<S: Simd>(s: S) -> Self::Of<S>;
    /// The head of `x`.
    fn load<S: Simd>(s: S, x: &[f64]) -> Self::Of<S>;
    /// Writes to the head of `x`.
    fn store<S: Simd>(s: S, v: Self::Of<S>, x: &mut [f64]);
    /// `a x + y`.
    fn madd<S: Simd>(s: S, a: f64, x: Self::Of<S>, y: Self::Of<S>) -> Self::Of<S>;
}

/// A strip of one column.
#[derive(Clone, Copy)]
pub(super) struct One;

impl Lanes for One {
    const COUNT: usize = 1;
    type Of<S: Simd> = f64;

    #[inline(always)]
    fn zero<S: Simd>(_: S) -> f64 {
        0.0
    }
    #[inline(always)]
    fn load<S: Simd>(_: S, x: &[f64]) -> f64 {
        x[0]
    }
    #[inline(always)]
    fn store<S: Simd>(_: S, v: f64, x: &mut [f64]) {
        x[0] = v;
    }
    #[inline(always)]
    fn madd<S: Simd>(s: S, a: f64, x: f64, y: f64) -> f64 {
        s.madd(a, x, y)
    }
}

macro_rules! in_a_register {
    ($($name:ident: $count:literal $register:ident $splat:ident $load:ident $store:ident $madd:ident)*) => {$(
        #[doc = concat!("A strip of ", $count, " columns.")]
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Lanes for $name {
            const COUNT: usize = $count;
            type Of<S: Simd> = S::$register;

            #[inline(always)]
            fn zero<S: Simd>(s: S) -> S::$register {
                s.$splat(0.0)
            }
            #[inline(always)]
            fn load<S: Simd>(s: S, x: &[f64]) -> S::$register {
                s.$load::<$count>(x)
            }
            #[inline(always)]
            fn store<S: Simd>(s: S, v: S::$register, x: &mut [f64]) {
                s.$store::<$count>(v, x);
            }
            #[inline(always)]
            fn madd<S: Simd>(s: S, a: f64, x: S::$register, y: S::$register) -> S::$register {
                s.$madd(s.$splat(a), x, y)
            }
        }
    )*};
}

in_a_register! {
    Two: 2 F4 splat4 load4 store4 madd4
    Four: 4 F4 splat4 load4 store4 madd4
    Eight: 8 F8 splat8 load8 store8 madd8
}

/// Calls `$f::<Lanes>(lanes, args)` for a strip of that width.
macro_rules! with_lanes {
    ($width:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match $width {
            1 => $f($crate::compute::cpu::multi::lanes::One, $($arg),*),
            2 => $f($crate::compute::cpu::multi::lanes::Two, $($arg),*),
            4 => $f($crate::compute::cpu::multi::lanes::Four, $($arg),*),
            _ => $f($crate::compute::cpu::multi::lanes::Eight, $($arg),*),
        }
    };
}
pub(super) use with_lanes;
