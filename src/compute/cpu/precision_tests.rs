//! Factors of 16 bits and of rows in their own precision against dense arithmetic.

use rand::{Rng, SeedableRng};

use super::adaptive::{Adaptive, Kind, condition};
use super::entry::{Entry, lengthen, scale, shorten};
use super::ilu::BlockIlu;
use super::narrow::{Bfloat16, Float16, Short};
use super::parts::{Blocks, places};
use super::trsv;
use crate::base::choices::FactorPrecision;
use crate::matrix::Csr;
use crate::problem::samples::{matrix, pattern};
use crate::symbolic::FillPattern;

fn random() -> rand_chacha::ChaCha8Rng {
    rand_chacha::ChaCha8Rng::seed_from_u64(30)
}

/// `x` with so many significant bits, as far as multiples of `2^least` go.
fn rounded(x: f64, bits: i32, least: i32) -> f64 {
    if x == 0.0 {
        return x;
    }
    let mut exponent = x.abs().log2().floor() as i32;
    while 2f64.powi(exponent) > x.abs() {
        exponent -= 1;
    }
    while 2f64.powi(exponent + 1) <= x.abs() {
        exponent += 1;
    }
    let spacing = 2f64.powi((exponent - bits + 1).max(least));
    (x / spacing).round_ties_even() * spacing
}

/// Blocks of a block row, rounded after its scalar rows were divided by powers of two.
fn rounded_row(blocks: &mut [f64], b: usize, bits: i32, least: i32) {
    for r in 0..b {
        let at: Vec<usize> = (r..blocks.len()).step_by(b).collect();
        let most = at.iter().fold(0.0, |m: f64, &i| m.max(blocks[i].abs()));
        if most == 0.0 {
            continue;
        }
        let mut scale = 1.0;
        while most / scale >= 32768.0 {
            scale *= 2.0;
        }
        while most / scale < 16384.0 {
            scale /= 2.0;
        }
        for i in at {
            blocks[i] = rounded(blocks[i] / scale, bits, least) * scale;
        }
    }
}

/// `(L D U')^-1 r` of factors whose numbers are given.
fn solved(pattern: &FillPattern, f: &Blocks<f64>, r: &[f64]) -> Vec<f64> {
    let (b, n, mut z) = (pattern.block_size(), pattern.rows(), r.to_vec());
    let bb = b * b;
    for i in 0..n {
        let at = places(pattern, i)[0].start;
        for (e, &j) in pattern.lower.row(i).iter().enumerate() {
            let block = &f.lower[at + e * bb..][..bb];
            for (p, v) in block.iter().enumerate() {
                z[i * b + p % b] -= v * z[j as usize * b + p / b];
            }
        }
    }
    for i in (0..n).rev() {
        let inverse = &f.inverse_diagonal[i * bb..(i + 1) * bb];
        let y: Vec<f64> = z[i * b..(i + 1) * b].to_vec();
        for p in 0..b {
            z[i * b + p] = (0..b).map(|c| inverse[c * b + p] * y[c]).sum();
        }
        let at = places(pattern, i)[2].start;
        for (e, &j) in pattern.upper.row(i).iter().rev().enumerate() {
            let block = &f.upper[at + e * bb..][..bb];
            for (p, v) in block.iter().enumerate() {
                z[i * b + p % b] -= v * z[j as usize * b + p / b];
            }
        }
    }
    z
}

fn copied(of: &Blocks<f64>, pattern: &FillPattern) -> Blocks<f64> {
    let mut to = Blocks::zeros(pattern);
    to.lower.copy_from_slice(&of.lower);
    to.inverse_diagonal.copy_from_slice(&of.inverse_diagonal);
    to.upper.copy_from_slice(&of.upper);
    to
}

/// Factors in a precision, with the same in float64.
fn factors(
    a: &Csr,
    (b, fill): (usize, usize),
    precision: FactorPrecision,
) -> (BlockIlu, Blocks<f64>) {
    let pattern = pattern(&a.in_blocks(b), fill);
    let made = |precision| {
        let mut ilu = BlockIlu::new(&pattern, precision, false);
        ilu.factor(a, 0.0, true).unwrap();
        ilu
    };
    let double = made(FactorPrecision::Float64);
    let of = double.values.in_float64(&pattern, |blocks| copied(blocks, &pattern));
    (made(precision), of)
}

/// Largest difference, relative to the largest magnitude.
fn off(a: &[f64], b: &[f64]) -> f64 {
    let most = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / most
}

#[test]
fn solves_are_those_with_the_rounded_factors() {
    let mut random = random();
    for (spec, b) in [
        ("convdiff3d:5x4x3,px=0.3", 1),
        ("fem-p1:9x8", 1), // supernodes
        ("blockpoisson3d:4x3x3,b=2", 2),
        ("blockpoisson3d:4x3x3,b=3", 3),
        ("blockpoisson3d:3x3x2,b=4", 4),
        ("blockpoisson3d:3x3x2,b=5", 5),
        ("blockpoisson3d:3x3x2,b=6", 6),
        ("blockpoisson3d:3x3x2,b=7", 7),
        ("blockpoisson3d:3x3x2,b=8", 8),
        ("blockpoisson3d:3x2x2,b=11", 11),
    ] {
        let mut a = Csr::clone(&matrix(spec));
        // no entry is a number of few bits
        a.values_mut().iter_mut().for_each(|v| *v *= 1.0 + 0.2 * random.random_range(-1.0..1.0));
        for (precision, bits, least) in
            [(FactorPrecision::Float16, 11, -24), (FactorPrecision::Bfloat16, 8, -133)]
        {
            let (ilu, mut want) = factors(&a, (b, 1), precision);
            let exact = copied(&want, &ilu.pattern);
            for row in 0..ilu.pattern.rows() {
                let [l, d, u] = places(&ilu.pattern, row);
                rounded_row(&mut want.lower[l], b, bits, least);
                rounded_row(&mut want.inverse_diagonal[d], b, bits, least);
                rounded_row(&mut want.upper[u], b, bits, least);
            }
            ilu.values.in_float64(&ilu.pattern, |got| {
                assert_eq!(got.lower[..], want.lower[..], "{spec}");
                assert_eq!(got.inverse_diagonal[..], want.inverse_diagonal[..], "{spec}");
                assert_eq!(got.upper[..], want.upper[..], "{spec}");
            });
            let r: Vec<f64> = (0..a.rows()).map(|_| random.random_range(-1.0..1.0)).collect();
            let mut z = vec![0.0; a.rows()];
            trsv::apply(&ilu, &r, &mut z, true);
            assert!(off(&z, &solved(&ilu.pattern, &want, &r)) < 1e-13, "{spec} {precision:?}");
            let beside = off(&z, &solved(&ilu.pattern, &exact, &r));
            assert!((1e-5..0.1).contains(&beside), "{spec} {precision:?}: {beside}");
            // rows in parts, as the stages of ranks have them
            let (n, mut parts) = (ilu.pattern.rows(), vec![0.0; a.rows()]);
            trsv::forward_part(&ilu, 0..n / 2, &r, &mut parts);
            trsv::forward_part(&ilu, n / 2..n, &r[n / 2 * b..], &mut parts);
            trsv::backward_part(&ilu, n / 2..n, &mut parts);
            trsv::backward_part(&ilu, 0..n / 2, &mut parts);
            assert_eq!(parts, z, "{spec}");
        }
    }
}

#[test]
fn any_magnitudes_and_zeros_keep_their_digits() {
    fn check<T: Short + Entry>(bits: i32, below: f64) {
        let mut random = random();
        for (b, blocks) in [(1, 1), (1, 7), (3, 1), (3, 4), (5, 2), (9, 2)] {
            let mut from = vec![0.0; blocks * b * b];
            for (at, v) in from.iter_mut().enumerate() {
                let spread: f64 = random.random_range(-1.0..1.0);
                // rows of their own magnitudes, from 1e-300 to 1e300; a column of another
                let of = (at % b) as f64 / b.max(2) as f64 * 590.0 - 295.0;
                *v = spread * 10f64.powf(of) * if at / b == 1 { 1e-9 } else { 1.0 };
            }
            // a row of zeros
            if b > 1 {
                from.iter_mut().skip(1).step_by(b).for_each(|v| *v = 0.0);
            }
            let (mut to, mut scales) = (vec![T::rounded(0.0); from.len()], vec![7; b]);
            shorten(&from, b, &mut to, &mut scales);
            let mut back = vec![1.0; from.len()];
            lengthen(&to, &scales, &mut back);
            for r in 0..b {
                let row = || (r..from.len()).step_by(b);
                let most = row().fold(0.0, |m: f64, at| m.max(from[at].abs()));
                for at in row() {
                    let allowed = (from[at].abs() * 2f64.powi(-bits)).max(most * below);
                    assert!((from[at] - back[at]).abs() <= allowed, "{b}: {}", from[at]);
                }
            }
            if b > 1 {
                assert_eq!(scale(scales[1]), 1.0);
            }
        }
        let mut to = [T::rounded(0.0)];
        shorten(&[f64::NAN], 1, &mut to, &mut [0]);
        assert!(to[0].wide().is_nan());
        shorten(&[f64::NEG_INFINITY], 1, &mut to, &mut [0]);
        assert_eq!(to[0].wide(), f64::NEG_INFINITY);
    }
    // half the spacing of subnormal numbers, beside a largest of 2^14 at least
    check::<Float16>(11, 2f64.powi(-25 - 14));
    check::<Bfloat16>(8, 0.0);
}

/// The inverse by elimination with pivots, column-major.
fn inverse(a: &[f64], b: usize) -> Vec<f64> {
    let at = |r: usize, c: usize| c * b + r;
    let mut m = a.to_vec();
    let mut x = vec![0.0; b * b];
    (0..b).for_each(|i| x[at(i, i)] = 1.0);
    for k in 0..b {
        let p = (k..b).max_by(|&p, &q| m[at(p, k)].abs().total_cmp(&m[at(q, k)].abs())).unwrap();
        for c in 0..b {
            m.swap(at(k, c), at(p, c));
            x.swap(at(k, c), at(p, c));
        }
        let pivot = m[at(k, k)];
        for c in 0..b {
            m[at(k, c)] /= pivot;
            x[at(k, c)] /= pivot;
        }
        for r in (0..b).filter(|&r| r != k) {
            let factor = m[at(r, k)];
            for c in 0..b {
                m[at(r, c)] -= factor * m[at(k, c)];
                x[at(r, c)] -= factor * x[at(k, c)];
            }
        }
    }
    x
}

fn norm(a: &[f64], b: usize) -> f64 {
    a.chunks_exact(b).map(|c| c.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max)
}

#[test]
fn adaptive_rows_have_the_precision_that_dense_condition_numbers_say() {
    let mut random = random();
    let (b, rows) = (3, 60);
    let bb = b * b;
    // a chain of blocks: row i is coupled to its neighbours; conditions from 1 to 1e9
    let part = |row_ptr: Vec<u32>, col_ind: Vec<u32>| {
        crate::matrix::pattern::Pattern::new(row_ptr, col_ind).in_blocks(b)
    };
    let n = rows as u32;
    let pattern = FillPattern::new(
        part((0..=n).map(|i| i.saturating_sub(1)).collect(), (0..n - 1).collect()),
        part((0..=n).map(|i| i.min(n - 1)).collect(), (1..n).collect()),
        Vec::new(),
    );
    let mut blocks = Blocks::<f64>::zeros(&pattern);
    let mut number = || random.random_range(-1.0..1.0);
    blocks.lower.iter_mut().for_each(|v| *v = number());
    blocks.upper.iter_mut().for_each(|v| *v = number());
    let mut wanted = Vec::new();
    for row in 0..rows {
        let small = 10f64.powf(-9.0 * (row as f64 * 0.618).fract());
        let d = &mut blocks.inverse_diagonal[row * bb..(row + 1) * bb];
        // nearly singular: the last column is close to the sum of the others
        d.fill_with(&mut number);
        (0..b).for_each(|r| d[2 * b + r] = d[r] + d[b + r] + small * d[2 * b + r]);
        // units of unknowns, which do not count
        (0..b).for_each(|c| d[c * b + row % b] *= 1e8);
        let mut scaled = d.to_vec();
        for r in 0..b {
            let most = (0..b).fold(0.0, |m: f64, c| m.max(d[c * b + r].abs()));
            (0..b).for_each(|c| scaled[c * b + r] /= 2f64.powi(most.log2().floor() as i32));
        }
        let dense = norm(&scaled, b) * norm(&inverse(&scaled, b), b);
        assert!((condition(d, b) / dense - 1.0).abs() < 1e-5, "{dense}");
        wanted.push(dense);
    }
    let kind = |condition: f64| match condition {
        c if c <= 204.8 => Kind::Half,
        c if c <= 1_677_721.6 => Kind::Single,
        _ => Kind::Double,
    };
    let mut counts = [0; 3];
    for parallel in [false, true] {
        let stored = Adaptive::of(&blocks, &pattern, parallel);
        counts = [0; 3];
        for row in 0..rows {
            let own = kind(wanted[row]);
            let lower = if row == 0 { Kind::Half } else { kind(wanted[row - 1]) };
            assert_eq!(stored.upper.row(row).0, own, "{row}");
            assert_eq!(stored.lower.row(row).0, lower, "{row}");
            counts[own as usize] += 1 + usize::from(row + 1 < rows);
            counts[lower as usize] += usize::from(row > 0);
        }
        let mut back = Blocks::zeros(&pattern);
        stored.widen(&pattern, &mut back);
        for row in 0..rows {
            let [l, d, u] = places(&pattern, row);
            let same = |at: std::ops::Range<usize>, a: &[f64], b: &[f64], kind: Kind| {
                let unit = [2f64.powi(-11), 2f64.powi(-24), 0.0][kind as usize];
                // entries below 2^-28 of their row lose digits in float16
                let least = if kind == Kind::Half { 1e-9 } else { 0.0 };
                let most = a[at.clone()].iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                at.into_iter().all(|i| (a[i] - b[i]).abs() <= unit * a[i].abs() + least * most)
            };
            let (lower, own) = (stored.lower.row(row).0, stored.upper.row(row).0);
            assert!(same(l, &blocks.lower, &back.lower, lower));
            assert!(same(d, &blocks.inverse_diagonal, &back.inverse_diagonal, own));
            assert!(same(u, &blocks.upper, &back.upper, own));
        }
    }
    assert!(counts.iter().all(|&count| count > 10), "{counts:?}");
    let all = counts.iter().sum::<usize>() as f64;
    let [half, single, double] = counts.map(|count| count as f64 / all);
    let text = format!("float16 {half:.4}, float32 {single:.4}, float64 {double:.4}");
    assert_eq!(Adaptive::of(&blocks, &pattern, false).shares(), text);
}

#[test]
fn adaptive_solves_are_those_with_its_numbers() {
    let mut random = random();
    for (spec, b, fill) in [
        ("convdiff3d:5x4x3,px=0.3", 1, 1),
        ("blockpoisson3d:4x3x3,b=2", 2, 0),
        ("blockpoisson3d:4x3x3,b=3", 3, 1),
        ("blockpoisson3d:3x2x2,b=9", 9, 0),
        ("blockpoisson3d:3x3x3,b=5", 5, 1),
    ] {
        let a = Csr::clone(&matrix(spec));
        let (ilu, _) = factors(&a, (b, fill), FactorPrecision::Adaptive);
        let r: Vec<f64> = (0..a.rows()).map(|_| random.random_range(-1.0..1.0)).collect();
        let mut z = vec![0.0; a.rows()];
        trsv::apply(&ilu, &r, &mut z, true);
        let want = ilu.values.in_float64(&ilu.pattern, |f| solved(&ilu.pattern, f, &r));
        assert!(off(&z, &want) < 1e-10, "{spec}: {}", off(&z, &want));
    }
}

#[test]
fn numbers_beyond_float32_stay_in_float64_where_rows_choose() {
    // condition numbers of 1e4 ask for float32; the second block is beyond it
    let pattern = FillPattern::diagonal(2, 2);
    let mut blocks = Blocks::<f64>::zeros(&pattern);
    let d = [1.0, 1.0, 1.0, 1.0001];
    for (at, v) in d.iter().enumerate() {
        blocks.inverse_diagonal[at] = *v;
        blocks.inverse_diagonal[4 + at] = v * 1e200;
    }
    let stored = Adaptive::of(&blocks, &pattern, false);
    assert_eq!(stored.upper.row(0).0, Kind::Single);
    assert_eq!(stored.upper.row(1).0, Kind::Double);
    assert_eq!(stored.shares(), "float32 0.5000, float64 0.5000");
    // without a condition number float64 is left
    blocks.inverse_diagonal[..4].fill(1.0);
    assert_eq!(Adaptive::of(&blocks, &pattern, false).upper.row(0).0, Kind::Double);
}
