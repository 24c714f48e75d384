//! Columns of a multivector that a register holds.

use super::super::row_sums::SUMS;
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

    /// The strip, with what L knows of it.
    #[inline(always)]
    pub(super) fn known<L: Lanes>(self) -> Self {
        if L::ALONE { Self { at: 0, columns: L::COUNT } } else { self }
    }

    /// All columns of `count` rows from `first` on.
    #[inline(always)]
    pub(super) fn rows(self, first: usize, count: usize) -> std::ops::Range<usize> {
        first * self.columns..(first + count) * self.columns
    }
}

/// How wide a strip is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// One column.
    One,
    /// Two columns.
    Two,
    /// Four columns.
    Four,
    /// Eight columns of more.
    Eight,
    /// Eight columns that are all.
    Alone,
}

impl Width {
    /// Whether a strip of this width has all columns.
    pub(super) fn takes(self, columns: usize) -> bool {
        let count = match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight | Self::Alone => 8,
        };
        count == columns
    }
}

/// Strips of 8, 4, 2 and 1 columns that make up `columns`, with their widths.
pub(super) fn strips(columns: usize) -> impl Iterator<Item = (Strip, Width)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (width, count) = match columns - at {
            0 => return None,
            1 => (Width::One, 1),
            2 | 3 => (Width::Two, 2),
            4..8 => (Width::Four, 4),
            8 if at == 0 => (Width::Alone, 8),
            _ => (Width::Eight, 8),
        };
        let strip = Strip { at, columns };
        at += count;
        Some((strip, width))
    })
}

/// Arithmetic on the columns of a strip.
pub(super) trait Lanes: Copy + Send + Sync {
    /// How many there are.
    const COUNT: usize;
    /// Whether there are no other columns.
    const ALONE: bool;
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
    const ALONE: bool = false;
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
    ($($name:ident: $count:literal $alone:literal $register:ident $splat:ident $load:ident $store:ident $madd:ident)*) => {$(
        #[doc = concat!("A strip of ", $count, " columns.")]
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Lanes for $name {
            const COUNT: usize = $count;
            const ALONE: bool = $alone;
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
    Two: 2 false F4 splat4 load4 store4 madd4
    Four: 4 false F4 splat4 load4 store4 madd4
    Eight: 8 false F8 splat8 load8 store8 madd8
    Alone: 8 true F8 splat8 load8 store8 madd8
}

/// `start` and four sums, added in the order of [`added`](super::super::row_sums::added).
#[inline(always)]
pub(super) fn joined<L: Lanes, S: Simd>(
    s: S,
    start: L::Of<S>,
    [a, b, c, d]: [L::Of<S>; SUMS],
) -> L::Of<S> {
    let (even, odd) = (L::madd(s, 1.0, a, c), L::madd(s, 1.0, b, d));
    L::madd(s, 1.0, start, L::madd(s, 1.0, even, odd))
}

/// Calls `$f::<Lanes>(lanes, args)` for a strip of that width.
macro_rules! with_lanes {
    ($width:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match $width {
            $crate::compute::cpu::multi::lanes::Width::One => {
                $f($crate::compute::cpu::multi::lanes::One, $($arg),*)
            }
            $crate::compute::cpu::multi::lanes::Width::Two => {
                $f($crate::compute::cpu::multi::lanes::Two, $($arg),*)
            }
            $crate::compute::cpu::multi::lanes::Width::Four => {
                $f($crate::compute::cpu::multi::lanes::Four, $($arg),*)
            }
            $crate::compute::cpu::multi::lanes::Width::Eight => {
                $f($crate::compute::cpu::multi::lanes::Eight, $($arg),*)
            }
            $crate::compute::cpu::multi::lanes::Width::Alone => {
                $f($crate::compute::cpu::multi::lanes::Alone, $($arg),*)
            }
        }
    };
}
pub(super) use with_lanes;
