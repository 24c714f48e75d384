//! The order in which products and triangular solves add up a row of numbers. One sum is a chain of additions, each of
//! which waits for the one before: long rows have four, the lanes of a register. The order follows from the length of a
//! row alone, so that rows by themselves, in supernodes, in runs, on any threads and with several right-hand sides have
//! the same bits.

use super::entry::Entry;
use super::groups::MOST;
use super::simd::Simd;

/// Sums of a long row.
pub(super) const SUMS: usize = 4;
/// Entries of a row from which on a product has four sums.
const LONG: usize = 8;
/// Entries of a row that a solve takes last, in one sum: those of its own [group](MOST) and of the one before, whose
/// unknowns are ready last.
const NEAR: usize = 2 * MOST;

/// Entries at the head of a row of `len` that a product takes to four sums in turn, which then are [added](added); the
/// others follow in this sum.
#[inline(always)]
pub(super) const fn in_four_sums(len: usize) -> usize {
    if len >= LONG { len / SUMS * SUMS } else { 0 }
}

/// The same of a solve.
#[inline(always)]
pub(super) const fn far_in_four_sums(len: usize) -> usize {
    len.saturating_sub(NEAR) / SUMS * SUMS
}

/// The sum of four, added pair by pair.
#[inline(always)]
pub(super) fn added<T>([a, b, c, d]: [T; SUMS], plus: impl Fn(T, T) -> T) -> T {
    plus(plus(a, c), plus(b, d))
}

/// Adds `count` entries to `start` by `add(sum, entry)`, the first `four` in four sums: for counts known to the compiler.
#[inline(always)]
pub(super) fn row_sum(
    [four, count]: [usize; 2],
    start: f64,
    add: impl Fn(f64, usize) -> f64,
) -> f64 {
    let mut sums = [0.0; SUMS];
    for at in 0..four {
        sums[at % SUMS] = add(sums[at % SUMS], at);
    }
    let start = if four > 0 { start + added(sums, |a, b| a + b) } else { start };
    (four..count).fold(start, add)
}

/// So many entries at the head of `N` rows times the numbers `x` at their columns, subtracted from or added to zero in
/// four sums, which are added. The counts are multiples of [`SUMS`] and ascend, by [`SUMS`] in all at most.
///
/// # Safety
/// The rows have that many entries, and `x` may be asked for the places of the last count.
#[inline(always)]
#[allow(unsafe_code, reason = "rows that are long enough")]
pub(super) unsafe fn four_sums<const N: usize, const MINUS: bool, T: Entry, S: Simd>(
    s: S,
    rows: [&[T]; N],
    counts: [usize; N],
    x: impl Fn(usize) -> f64,
) -> [f64; N] {
    let (least, most) = (counts[0], counts[N - 1]);
    let mut sums = [s.splat4(0.0); N];
    let quad = |at: usize| {
        let x: [f64; SUMS] = std::array::from_fn(|lane| x(at + lane));
        s.load4::<SUMS>(&x)
    };
    let add = |sum: S::F4, row: usize, at: usize, x: S::F4| {
        // SAFETY: by the caller's promise.
        let v = T::load4::<S, SUMS>(s, unsafe { rows[row].get_unchecked(at..at + SUMS) });
        if MINUS { s.msub4(v, x, sum) } else { s.madd4(v, x, sum) }
    };
    for at in (0..least).step_by(SUMS) {
        let x = quad(at);
        for row in 0..N {
            sums[row] = add(sums[row], row, at, x);
        }
    }
    if N > 1 && most > least {
        let x = quad(least);
        for row in 0..N {
            if counts[row] > least {
                sums[row] = add(sums[row], row, least, x);
            }
        }
    }
    sums.map(|sum| {
        let mut lanes = [0.0; SUMS];
        s.store4::<SUMS>(sum, &mut lanes);
        added(lanes, |a, b| a + b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What solves by supernodes rely on.
    #[test]
    fn rows_of_a_group_take_none_of_each_other_to_four_sums() {
        for common in 0..100 {
            for row in 0..MOST {
                let far = far_in_four_sums(common + row);
                assert!(far <= common && far.is_multiple_of(SUMS), "{common} {row}");
                assert!(far <= far_in_four_sums(common) + SUMS);
            }
            assert!(in_four_sums(common) <= common);
        }
        assert_eq!([7, 11, 12, 15, 16].map(far_in_four_sums), [0, 0, 4, 4, 8]);
        assert_eq!([7, 8, 11, 12].map(in_four_sums), [0, 8, 8, 12]);
    }
}
