//! Triangular solves with block ILU factors (Yang et al., Algorithms 6 and 7).

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

mod diagonal;
mod rows;
mod runs;
mod supernodes;
mod uniform;

use std::ops::Range;

use super::block::{BlockSize, with_block_size, with_small_block_size};
use super::groups::Groups;
use super::ilu::{BlockIlu, Plan};
use super::multiversion::multiversion;
use super::shared::Shared;
use super::simd::Simd;
use super::values::Values;
use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;
use diagonal::diagonal_alone;
use rows::Numbers;
use uniform::Uniform;

/// Calls `$f(size, factors, args)` with the size of the blocks and the factors in their precision.
macro_rules! with_factors {
    ($ilu:expr, $f:ident ( $($arg:expr),* )) => {{
        let (ilu, b): (&BlockIlu, usize) = ($ilu, $ilu.pattern.block_size());
        match &ilu.values {
            Values::Double(of) => {
                with_block_size!(b, $f(Factors::new(ilu, Uniform::plain(of)), $($arg),*));
            }
            Values::Single(of) => {
                with_block_size!(b, $f(Factors::new(ilu, Uniform::plain(of)), $($arg),*));
            }
            Values::Bfloat16(of) => {
                with_small_block_size!(b, $f(Factors::new(ilu, Uniform::scaled(of)), $($arg),*));
            }
            Values::Float16(of) => {
                with_small_block_size!(b, $f(Factors::new(ilu, Uniform::scaled(of)), $($arg),*));
            }
            Values::Adaptive(of) => {
                with_small_block_size!(b, $f(Factors::new(ilu, of), $($arg),*));
            }
        }
    }};
}

/// Solves by `runs::$by_runs(runs, factors, args)` where the factors have runs, else by `$by_rows(size, factors, args)`.
macro_rules! solve {
    ($ilu:expr, $by_runs:ident or $by_rows:ident ( $($arg:expr),* )) => {{
        let ilu: &BlockIlu = $ilu;
        match (&ilu.runs, &ilu.values) {
            (Some(runs), Values::Double(of)) => {
                runs::$by_runs(runs, Factors::new(ilu, Uniform::plain(of)), $($arg),*);
            }
            (Some(runs), Values::Single(of)) => {
                runs::$by_runs(runs, Factors::new(ilu, Uniform::plain(of)), $($arg),*);
            }
            (Some(runs), Values::Bfloat16(of)) => {
                runs::$by_runs(runs, Factors::new(ilu, Uniform::scaled(of)), $($arg),*);
            }
            (Some(runs), Values::Float16(of)) => {
                runs::$by_runs(runs, Factors::new(ilu, Uniform::scaled(of)), $($arg),*);
            }
            _ => with_factors!(ilu, $by_rows($($arg),*)),
        }
    }};
}

/// `z = (L D U')^-1 r`: `L y = r`, then `U' z = D^-1 y`, y and z in the same place. On the threads of the
/// plan, where there is one, or on the calling thread `alone`.
pub(super) fn apply(ilu: &BlockIlu, r: &[f64], z: &mut [f64], alone: bool) {
    let plan = ilu.plan.as_ref().filter(|_| !alone);
    if ilu.pattern.is_diagonal() {
        let threads = Threads::when(plan.is_some());
        return with_factors!(ilu, diagonal_alone(threads, r, z));
    }
    solve!(ilu, apply or sized(plan, r, z));
}

/// `L z = r` in some rows; `r` begins with the first of them.
pub(super) fn forward_part(ilu: &BlockIlu, rows: Range<usize>, r: &[f64], z: &mut [f64]) {
    solve!(ilu, forward or forward(rows, r, z));
}

/// `U' z = D^-1 z` in some rows.
pub(super) fn backward_part(ilu: &BlockIlu, rows: Range<usize>, z: &mut [f64]) {
    solve!(ilu, backward or backward(rows, z));
}

/// Factors as plain slices.
#[derive(Clone, Copy)]
struct Factors<'a, N> {
    lower: PatternView<'a>,
    upper: PatternView<'a>,
    numbers: N,
    supernodes: Option<&'a Groups>,
    long_rows: [bool; 2],
}

impl<'a, N: Numbers> Factors<'a, N> {
    fn new(ilu: &'a BlockIlu, numbers: N) -> Self {
        Self {
            lower: ilu.pattern.lower.view(),
            upper: ilu.pattern.upper.view(),
            numbers,
            supernodes: ilu.supernodes.as_ref().filter(|_| N::ALIKE),
            long_rows: ilu.long_rows,
        }
    }

    fn rows(self) -> usize {
        self.lower.row_ptr.len() - 1
    }
}

fn sized<K: BlockSize, N: Numbers>(
    size: K,
    f: Factors<N>,
    plan: Option<&Plan>,
    r: &[f64],
    z: &mut [f64],
) {
    let n = f.rows() * size.b();
    assert!(r.len() == n && z.len() == n);
    // either way a row has the same operations in the same order
    let Some(plan) = plan else {
        forward(size, f, 0..f.rows(), r, z);
        backward(size, f, 0..f.rows(), z);
        return;
    };
    let z = Shared::new(z);
    plan.lower.run(&|rows| forward_rows(size, f, r, z, rows));
    plan.upper.run(&|rows| backward_rows(size, f, z, rows));
}

multiversion! { fn forward[K: BlockSize, N: Numbers](size: K, f: Factors<N>, rows: Range<usize>, r: &[f64], z: &mut [f64]) = forward_body }
multiversion! { fn backward[K: BlockSize, N: Numbers](size: K, f: Factors<N>, rows: Range<usize>, z: &mut [f64]) = backward_body }
multiversion! { fn forward_rows[K: BlockSize, N: Numbers](size: K, f: Factors<N>, r: &[f64], z: Shared, rows: &[u32]) = forward_rows_body }
multiversion! { fn backward_rows[K: BlockSize, N: Numbers](size: K, f: Factors<N>, z: Shared, rows: &[u32]) = backward_rows_body }

#[inline(always)]
fn forward_body<K: BlockSize, N: Numbers, S: Simd>(
    s: S,
    size: K,
    f: Factors<N>,
    rows: Range<usize>,
    r: &[f64],
    z: &mut [f64],
) {
    let (z, b, first) = (Shared::new(z), size.b(), rows.start);
    let Some(nodes) = f.supernodes.filter(|_| b == 1) else {
        let r = |i: usize| &r[(i - first) * b..(i - first + 1) * b];
        // rows that are all short have a loop of their own
        if f.long_rows[0] {
            for i in rows {
                forward_row_body::<true, K, N, S>(s, size, f, r(i), z, i);
            }
        } else {
            for i in rows {
                forward_row_body::<false, K, N, S>(s, size, f, r(i), z, i);
            }
        }
        return;
    };
    let mut i = rows.start;
    while i < rows.end {
        let (count, r) = (nodes.ahead(i..rows.end), &r[i - first..]);
        match count {
            1 => forward_row_body::<true, K, N, S>(s, size, f, &r[..1], z, i),
            2 => f.numbers.forward_together::<2, S>(s, f.lower, r, z, i),
            3 => f.numbers.forward_together::<3, S>(s, f.lower, r, z, i),
            _ => f.numbers.forward_together::<4, S>(s, f.lower, r, z, i),
        }
        i += count;
    }
}

#[inline(always)]
fn backward_body<K: BlockSize, N: Numbers, S: Simd>(
    s: S,
    size: K,
    f: Factors<N>,
    rows: Range<usize>,
    z: &mut [f64],
) {
    let z = Shared::new(z);
    let Some(nodes) = f.supernodes.filter(|_| size.b() == 1) else {
        let rows = rows.rev();
        if f.long_rows[1] {
            for i in rows {
                backward_row_body::<true, K, N, S>(s, size, f, z, i);
            }
        } else {
            for i in rows {
                backward_row_body::<false, K, N, S>(s, size, f, z, i);
            }
        }
        return;
    };
    let mut end = rows.end;
    while end > rows.start {
        let count = nodes.behind(rows.start..end);
        end -= count;
        match count {
            1 => backward_row_body::<true, K, N, S>(s, size, f, z, end),
            2 => f.numbers.backward_together::<2, S>(s, f.upper, z, end),
            3 => f.numbers.backward_together::<3, S>(s, f.upper, z, end),
            _ => f.numbers.backward_together::<4, S>(s, f.upper, z, end),
        }
    }
}

/// Rows of one task.
#[inline(always)]
fn forward_rows_body<K: BlockSize, N: Numbers, S: Simd>(
    s: S,
    size: K,
    f: Factors<N>,
    r: &[f64],
    z: Shared,
    rows: &[u32],
) {
    for &i in rows {
        let (i, b) = (i as usize, size.b());
        forward_row_body::<true, K, N, S>(s, size, f, &r[i * b..(i + 1) * b], z, i);
    }
}

/// As `forward_rows_body`, for the backward solve.
#[inline(always)]
fn backward_rows_body<K: BlockSize, N: Numbers, S: Simd>(
    s: S,
    size: K,
    f: Factors<N>,
    z: Shared,
    rows: &[u32],
) {
    for &i in rows {
        backward_row_body::<true, K, N, S>(s, size, f, z, i as usize);
    }
}

/// Row i of the forward solve; r is `r_i`.
#[inline(always)]
fn forward_row_body<const LONG: bool, K: BlockSize, N: Numbers, S: Simd>(
    s: S,
    size: K,
    f: Factors<N>,
    r: &[f64],
    z: Shared,
    i: usize,
) {
    f.numbers.forward::<LONG, K, S>(s, size, f.lower, r, z, i);
}

/// Row i of the backward solve.
#[inline(always)]
fn backward_row_body<const LONG: bool, K: BlockSize, N: Numbers, S: Simd>(
    s: S,
    size: K,
    f: Factors<N>,
    z: Shared,
    i: usize,
) {
    f.numbers.backward::<LONG, K, S>(s, size, f.upper, z, i);
}

#[cfg(test)]
mod tests {
    use super::rows::far_of;
    use super::*;
    use crate::case::{FactorPrecision, Trisolve};
    use crate::compute::Factors as _;
    use crate::compute::cpu::Cpu;
    use crate::problem::samples::{matrix, pattern};

    #[test]
    fn one_thread_and_all_of_them_solve_to_the_same_bits() {
        let k = Cpu::parallel(Some(3)).unwrap();
        let a = matrix("blockpoisson3d:24,b=2");
        for (b, precision) in [
            (1, FactorPrecision::Float64),
            (2, FactorPrecision::Float64),
            (2, FactorPrecision::Float32),
            (1, FactorPrecision::Float16),
            (2, FactorPrecision::Bfloat16),
            (1, FactorPrecision::Adaptive),
            (2, FactorPrecision::Adaptive),
        ] {
            // rows of one sum and of four
            let pattern = pattern(&a.in_blocks(b), if b == 1 { 2 } else { 0 });
            let lengths = || (0..pattern.rows()).map(|i| pattern.lower.row(i).len());
            let longest = lengths().max().unwrap_or(0);
            assert_eq!(far_of(b, longest) > 0, b == 1, "{longest}");
            let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, precision).unwrap();
            k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
            assert!(ilu.plan.is_some());
            let r: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 1000) as f64 - 499.5).collect();
            let (mut together, mut alone) = (vec![0.0; a.rows()], vec![0.0; a.rows()]);
            k.pooled(|| apply(&ilu, &r, &mut together, false));
            apply(&ilu, &r, &mut alone, true);
            assert!(together.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{b}");
            assert!(alone.iter().all(|z| z.is_finite() && *z != 0.0));
            // so do factors that one thread made
            ilu.factor(&a, 0.0, true).unwrap();
            apply(&ilu, &r, &mut together, true);
            assert!(together.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{b}");
        }
    }

    /// Also where threads have parts of runs, and where several ranks do.
    #[test]
    fn runs_solve_to_the_bits_of_row_by_row() {
        let k = Cpu::parallel(Some(3)).unwrap();
        let a = matrix("poisson3d:101x13x12");
        let n = a.rows();
        let r: Vec<f64> = (0..n).map(|i| ((i * 7919) % 1000) as f64 - 499.5).collect();
        let bits = |of: &[f64]| of.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        for (fill, precision) in [
            (0, FactorPrecision::Float64),
            (1, FactorPrecision::Float64),
            (3, FactorPrecision::Float64),
            // rows have more columns than have a loop
            (5, FactorPrecision::Float64),
            (0, FactorPrecision::Float32),
            (1, FactorPrecision::Float16),
            (0, FactorPrecision::Bfloat16),
        ] {
            let pattern = pattern(&a, fill);
            let longest = (0..n).map(|i| pattern.lower.row(i).len()).max();
            assert_eq!(longest > Some(24), fill == 5, "{longest:?}");
            let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, precision).unwrap();
            k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
            let [mut alone, mut together, mut parts, mut by_rows] =
                std::array::from_fn(|_| vec![0.0; n]);
            apply(&ilu, &r, &mut alone, true);
            k.pooled(|| apply(&ilu, &r, &mut together, false));
            let ranges = [0..5, 5..6, 6..7001, 7001..n];
            for rows in ranges.clone() {
                forward_part(&ilu, rows.clone(), &r[rows.start..], &mut parts);
            }
            for rows in ranges.into_iter().rev() {
                backward_part(&ilu, rows, &mut parts);
            }
            assert!(ilu.plan.is_some() && ilu.runs.take().is_some());
            apply(&ilu, &r, &mut by_rows, true);
            let expected = bits(&by_rows);
            assert!(by_rows.iter().all(|z| z.is_finite()), "{fill} {precision:?}");
            for (found, how) in [(alone, "alone"), (together, "together"), (parts, "parts")] {
                assert!(bits(&found) == expected, "{fill} {precision:?} {how}");
            }
        }
    }
}
