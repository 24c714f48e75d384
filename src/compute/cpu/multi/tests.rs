use std::sync::Arc;

use super::super::block::tests::random;
use super::*;
use crate::case::{FactorPrecision, Format, Trisolve};
use crate::compute::{Factors as _, Products as _, Storage as _, Vectors as _};
use crate::matrix::Csr;
use crate::problem::samples::{self, pattern};

const COLUMNS: [usize; 8] = [1, 2, 3, 4, 5, 8, 11, 17];

fn uploaded(k: &Cpu, v: &[f64]) -> Buffer<f64> {
    let mut to = k.vector(v.len()).unwrap();
    k.upload(v, &mut to);
    to
}

fn column(k: &Cpu, columns: usize, j: usize, v: &Buffer<f64>) -> Buffer<f64> {
    let mut to = k.vector(v.len() / columns).unwrap();
    k.column(columns, j, v, &mut to);
    to
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

fn backends() -> [Cpu; 2] {
    [Cpu::sequential(), Cpu::parallel(Some(3)).unwrap()]
}

/// Above the size from which several threads are used.
fn matrix(block_size: usize) -> Arc<Csr> {
    Arc::new(crate::matrix::bsr::pad(&samples::matrix("blockpoisson3d:18,b=2"), block_size))
}

#[test]
fn every_column_of_a_product_has_the_bits_of_a_single_one() {
    for k in backends() {
        let of_three = Arc::new(samples::matrix("blockpoisson3d:16,b=3").in_blocks(1));
        for (a, format) in [
            (matrix(1), Format::Csr),
            (of_three, Format::Csr),
            (matrix(2), Format::Bsr),
            (matrix(3), Format::Bsr),
            (matrix(1), Format::Sell),
        ] {
            let stored = k.matrix(&a, format).unwrap();
            let n = a.rows();
            for columns in COLUMNS {
                let x = uploaded(&k, &random(n * columns, 1));
                let b = uploaded(&k, &random(n * columns, 2));
                let (mut y, mut r) = (uploaded(&k, &b), uploaded(&k, &b));
                k.product(&stored, columns, &x, None, &mut y);
                k.product(&stored, columns, &x, Some(&b), &mut r);
                let mut want = k.vector(n).unwrap();
                for j in 0..columns {
                    let (of_x, of_b) = (column(&k, columns, j, &x), column(&k, columns, j, &b));
                    k.spmv(&stored, &of_x, &mut want);
                    assert!(same(&column(&k, columns, j, &y), &want), "{format:?} {columns} {j}");
                    k.residual(&stored, &of_x, &of_b, &mut want);
                    assert!(same(&column(&k, columns, j, &r), &want), "{format:?} {columns} {j}");
                }
            }
        }
    }
}

/// A result that goes past the caches.
#[test]
fn a_large_product_has_the_bits_of_a_single_one() {
    let n = (1 << 19) + 5;
    let columns: Vec<u32> = (0..n as u32).flat_map(|i| [i.saturating_sub(7), i]).skip(1).collect();
    let ptr: Vec<u32> = (0..=n as u32).map(|i| (2 * i).saturating_sub(1)).collect();
    let a = Arc::new(Csr::new(n, n, ptr, columns, random(2 * n - 1, 8)).unwrap());
    for k in backends() {
        let stored = k.matrix(&a, Format::Csr).unwrap();
        let x = uploaded(&k, &random(n * 8, 9));
        let (mut y, mut want) = (uploaded(&k, &x), k.vector(n).unwrap());
        k.product(&stored, 8, &x, None, &mut y);
        for j in [0, 3, 7] {
            k.spmv(&stored, &column(&k, 8, j, &x), &mut want);
            assert!(same(&column(&k, 8, j, &y), &want), "{j}");
        }
    }
}

#[test]
fn every_column_of_a_solve_has_the_bits_of_a_single_one() {
    for k in backends() {
        for (block_size, precision) in [
            (1, FactorPrecision::Float64),
            (2, FactorPrecision::Float64),
            (3, FactorPrecision::Float64),
            (1, FactorPrecision::Float32),
        ] {
            let a = matrix(block_size);
            // rows of one sum and of four
            let pattern = pattern(&a, if block_size == 1 { 2 } else { 1 });
            let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, precision).unwrap();
            k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
            let n = a.rows();
            for columns in COLUMNS {
                let r = uploaded(&k, &random(n * columns, 3));
                let mut z = uploaded(&k, &r);
                k.solve(&ilu, columns, &r, &mut z);
                let mut want = k.vector(n).unwrap();
                for j in 0..columns {
                    k.ilu_apply(&ilu, &column(&k, columns, j, &r), &mut want);
                    let of_z = column(&k, columns, j, &z);
                    assert!(same(&of_z, &want), "{block_size} {precision:?} {columns} {j}");
                }
            }
        }
    }
}

#[test]
fn inner_products_and_updates_are_those_of_plain_loops() {
    let [one, several] = backends();
    for columns in COLUMNS {
        // chunks that are not whole, and several tasks
        let n = 40_000 / columns + 3;
        let (v, c) = (random(3 * n * columns, 4), random(3 * columns * columns, 5));
        let basis: Vec<_> = v.chunks_exact(n * columns).map(|v| uploaded(&one, v)).collect();
        let basis: Vec<&Buffer<f64>> = basis.iter().collect();
        let w = random(n * columns, 6);
        let mut grams = vec![0.0; 3 * columns * columns];
        one.grams(columns, &basis, &uploaded(&one, &w), &mut grams);
        let mut again = grams.clone();
        several.grams(columns, &basis, &uploaded(&one, &w), &mut again);
        assert!(same(&grams, &again), "{columns}");
        for (at, got) in grams.iter().enumerate() {
            let (i, p, q) = (at / columns / columns, at / columns % columns, at % columns);
            let of = |row: usize| basis[i][row * columns + p] * w[row * columns + q];
            let want: f64 = (0..n).map(of).sum();
            assert!((got - want).abs() < 1e-9, "{columns} {at}: {got} beside {want}");
        }
        let own = random(columns * columns, 7);
        for (before, name) in
            [(Own::Kept, "kept"), (Own::Zero, "zero"), (Own::Times(&own), "times")]
        {
            let mut new = uploaded(&one, &w);
            one.update(columns, before, &basis, &c, &mut new);
            let mut again = uploaded(&one, &w);
            several.update(columns, before, &basis, &c, &mut again);
            assert!(same(&new, &again), "{columns} {name}");
            for (at, got) in new.iter().enumerate().step_by(7) {
                let (row, q) = (at / columns, at % columns);
                let old: f64 = match before {
                    Own::Kept => w[at],
                    Own::Zero => 0.0,
                    Own::Times(own) => {
                        (0..columns).map(|p| w[row * columns + p] * own[p * columns + q]).sum()
                    }
                };
                let of = |i: usize, p: usize| {
                    basis[i][row * columns + p] * c[(i * columns + p) * columns + q]
                };
                let added: f64 = (0..3)
                    .flat_map(|i| (0..columns).map(move |p| (i, p)))
                    .map(|(i, p)| of(i, p))
                    .sum();
                assert!((got - old - added).abs() < 1e-12, "{columns} {name} {at}");
            }
        }
    }
}

/// Operations that are joined beside those that follow each other, bit by bit; rows of the grid are in runs.
#[test]
fn joined_passes_are_one_operation_after_the_other() {
    let grid = || samples::matrix("poisson3d:19x17x16");
    for (a, format, fill) in [
        (grid(), Format::Csr, 0),
        (grid(), Format::Csr, 2),
        (matrix(1), Format::Csr, 1),
        (matrix(2), Format::Bsr, 1),
        (matrix(3), Format::Bsr, 1),
        (matrix(1), Format::Sell, 0),
    ] {
        let (n, pattern) = (a.rows(), pattern(&a, fill));
        for columns in COLUMNS {
            let [one, several] = backends();
            let small = columns * columns;
            let c = random(3 * small, 11);
            let [first, second, third] = [0, 1, 2].map(|i| &c[i * small..(i + 1) * small]);
            let of = |k: &Cpu, add, own, symmetric| {
                let v = |seed| uploaded(k, &random(n * columns, seed));
                let stored = k.matrix(&a, format).unwrap();
                let precision = FactorPrecision::Float64;
                let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, precision).unwrap();
                k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
                let (mut x, mut p, mut z, mut w) = (v(1), v(2), v(3), v(4));
                let (mut gram, mut grams) = (vec![1.0; small], vec![1.0; 2 * small]);
                let step = Step { add, own, coef: second };
                k.directions(&stored, columns, step, [&mut x, &mut p, &mut z], &mut gram);
                let update = (Own::Times(third), first);
                k.residuals((&ilu, symmetric), columns, update, [&mut w, &mut z], &mut grams);
                [&x[..], &p, &z, &w, &gram, &grams].concat()
            };
            for (add, own) in [(None, Own::Zero), (Some(first), Own::Times(third))] {
                for symmetric in [false, true] {
                    let joined = of(&one, add, own, symmetric);
                    let apart = of(&several, add, own, symmetric);
                    assert!(joined.iter().all(|v| v.is_finite()));
                    assert!(same(&joined, &apart), "{format:?} {fill} {n} {columns}");
                }
            }
        }
    }
}

/// `Q' W` of factors of a symmetric matrix from the forward solve alone.
#[test]
fn symmetric_factors_tell_their_products_after_half_of_the_solve() {
    let grid = samples::matrix("poisson3d:12x11x10");
    for (size, fill, precision, close) in [
        (1, 0, FactorPrecision::Float64, 1e-13),
        (1, 2, FactorPrecision::Float64, 1e-13),
        (3, 1, FactorPrecision::Float64, 1e-13),
        (2, 0, FactorPrecision::Float32, 1e-6),
    ] {
        let a = Arc::new(crate::matrix::bsr::pad(&grid, size));
        let (n, pattern) = (a.rows(), pattern(&a, fill));
        for columns in COLUMNS {
            let small = columns * columns;
            let c = random(small, 11);
            for k in backends() {
                let of = |symmetric| {
                    let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, precision).unwrap();
                    k.ilu_factor(&mut ilu, &a, 0.0).unwrap();
                    let [mut w, mut q] =
                        [1, 2].map(|seed| uploaded(&k, &random(n * columns, seed)));
                    let (update, mut grams) = ((Own::Kept, &c[..]), vec![1.0; 2 * small]);
                    k.residuals((&ilu, symmetric), columns, update, [&mut w, &mut q], &mut grams);
                    (grams, q)
                };
                let ((half, q), (whole, again)) = (of(true), of(false));
                assert!(same(&q, &again) && same(&half[small..], &whole[small..]));
                let scale = whole[..small].iter().fold(0.0_f64, |most, v| most.max(v.abs()));
                for (half, whole) in half.iter().zip(&whole) {
                    assert!((half - whole).abs() <= close * scale, "{size} {fill} {columns}");
                }
            }
        }
    }
}

#[test]
fn columns_come_and_go() {
    let k = Cpu::sequential();
    let mut v = uploaded(&k, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(&column(&k, 3, 1, &v)[..], [2.0, 5.0]);
    k.set_column(3, 2, &uploaded(&k, &[-1.0, -2.0]), &mut v);
    assert_eq!(&v[..], [1.0, 2.0, -1.0, 4.0, 5.0, -2.0]);
}
