//! Numeric factorisation, solves and products of the CPU backend against dense arithmetic.

use bilu_bench::compute::{Backend, Breakdown, Factors, Products, SingularBlock, Storage, Vectors};
use std::sync::Arc;

use bilu_bench::case::{FactorPrecision, Format, LevelRule, ReadAs, Trisolve};
use bilu_bench::compute::cpu::Cpu;
use bilu_bench::matrix::pattern::block_pattern;
use bilu_bench::matrix::{Csr, bsr};
use bilu_bench::symbolic::{FillPattern, iluk};

use crate::common;
use crate::common::{random_csr, random_vector, relative_difference};

/// Block sizes with a register kernel, and some without.
const BLOCK_SIZES: [usize; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 25, 32, 33];

fn pattern(a: &Csr, b: usize, k: usize) -> Arc<FillPattern> {
    Arc::new(iluk(&block_pattern(&a.in_blocks(b)), k, LevelRule::Min, usize::MAX).expect("small"))
}

fn apply<K: Backend>(k: &K, ilu: &K::BlockIlu, r: &[f64]) -> Vec<f64> {
    let (mut from, mut to) = (k.vector(r.len()).unwrap(), k.vector(r.len()).unwrap());
    k.upload(r, &mut from);
    k.ilu_apply(ilu, &from, &mut to);
    let mut z = vec![f64::NAN; r.len()];
    k.download(&to, &mut z);
    z
}

fn factors<K: Backend>(k: &K, a: &Csr, b: usize, fill: usize) -> K::BlockIlu {
    let mut ilu =
        k.ilu_analyse(&pattern(a, b, fill), Trisolve::AUTO, FactorPrecision::Float64).unwrap();
    k.ilu_factor(&mut ilu, a, 0.0).expect("regular");
    ilu
}

/// Textbook block ILU on dense blocks: `A_ip <- A_ip A_pp^-1`, `A_ij <- A_ij - A_ip A_pj` inside
/// the pattern (Yang et al., Algorithm 4), then `L U z = r`.
fn dense_block_ilu_solve(a: &Csr, b: usize, p: &FillPattern, r: &[f64]) -> Vec<f64> {
    let n = p.rows();
    let kept = |i: usize, j: usize| {
        i == j || p.lower.row(i).contains(&(j as u32)) || p.upper.row(i).contains(&(j as u32))
    };
    let mut f = common::dense(a);
    for i in 0..n {
        for q in 0..i {
            if !kept(i, q) {
                continue;
            }
            // X D_q = A_iq, row by row: solve D_q^T x = a
            let d: Vec<Vec<f64>> =
                (0..b).map(|c| (0..b).map(|s| f[q * b + s][q * b + c]).collect()).collect();
            for s in 0..b {
                let row: Vec<f64> = (0..b).map(|c| f[i * b + s][q * b + c]).collect();
                let x = gauss(d.clone(), row);
                f[i * b + s][q * b..(q + 1) * b].copy_from_slice(&x);
            }
            for j in q + 1..n {
                if !kept(i, j) {
                    continue;
                }
                for s in 0..b {
                    for c in 0..b {
                        let sum: f64 =
                            (0..b).map(|t| f[i * b + s][q * b + t] * f[q * b + t][j * b + c]).sum();
                        f[i * b + s][j * b + c] -= sum;
                    }
                }
            }
        }
    }
    let mut z = r.to_vec();
    for i in 0..n * b {
        for j in 0..(i / b) * b {
            z[i] -= f[i][j] * z[j];
        }
    }
    for i in (0..n).rev() {
        let mut rhs: Vec<f64> = z[i * b..(i + 1) * b].to_vec();
        for (s, rhs) in rhs.iter_mut().enumerate() {
            for j in (i + 1) * b..n * b {
                *rhs -= f[i * b + s][j] * z[j];
            }
        }
        let d = (0..b).map(|s| f[i * b + s][i * b..(i + 1) * b].to_vec()).collect();
        z[i * b..(i + 1) * b].copy_from_slice(&gauss(d, rhs));
    }
    z
}

/// Dense solve with partial pivoting.
fn gauss(mut a: Vec<Vec<f64>>, mut x: Vec<f64>) -> Vec<f64> {
    let n = x.len();
    for k in 0..n {
        let p = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, p);
        x.swap(k, p);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            x[i] -= factor * x[k];
        }
    }
    for i in (0..n).rev() {
        for j in i + 1..n {
            x[i] -= a[i][j] * x[j];
        }
        x[i] /= a[i][i];
    }
    x
}

#[test]
fn factors_solve_like_textbook_block_ilu() {
    for b in BLOCK_SIZES {
        for fill in 0..4 {
            let a = random_csr(7 * b, 2, 1.2, (b + 100 * fill) as u64);
            let r = random_vector(7 * b, 5);
            let want = dense_block_ilu_solve(&a, b, &pattern(&a, b, fill), &r);
            let k = Cpu::sequential();
            let got = apply(&k, &factors(&k, &a, b, fill), &r);
            let error = relative_difference(&got, &want);
            assert!(error < 1e-11, "b {b}, k {fill}: {error:e}");
        }
    }
}

#[test]
fn full_fill_is_a_direct_solver() {
    for b in [1, 3, 4, 8, 11] {
        // no dominance: pivoting inside the blocks has to do its part
        let n = 6 * b;
        let a = random_csr(n, 4, 0.6, 3 + b as u64);
        let x = random_vector(n, 9);
        let mut r = vec![0.0; n];
        a.multiply(&x, &mut r);
        let k = Cpu::sequential();
        let got = apply(&k, &factors(&k, &a, b, 50), &r);
        let error = relative_difference(&got, &x);
        assert!(error < 1e-9, "b {b}: {error:e}");
    }
}

#[test]
fn many_threads_give_the_same_bits_as_one() {
    let many = Cpu::parallel(Some(3)).unwrap();
    let one = Cpu::sequential();
    for b in [1, 2, 3, 4, 8, 9] {
        // large enough for shared levels, chunks and tasks
        let n = 30_000 / b * b;
        let a = random_csr(n, 3, 1.5, b as u64);
        let r = random_vector(n, 2);
        let z = apply(&one, &factors(&one, &a, b, 0), &r);
        assert_eq!(z, apply(&many, &factors(&many, &a, b, 0), &r), "b {b}");
        let a = Arc::new(a.in_blocks(b));
        for format in [Format::Csr, Format::Bsr] {
            let product = |k: &Cpu| {
                let (mut x, mut y) = (k.vector(n).unwrap(), k.vector(n).unwrap());
                k.upload(&r, &mut x);
                k.spmv(&k.matrix(&a, format).unwrap(), &x, &mut y);
                let mut out = vec![0.0; n];
                k.download(&y, &mut out);
                out
            };
            let mut want = vec![0.0; n];
            a.multiply(&r, &mut want);
            let got = product(&one);
            assert!(relative_difference(&got, &want) < 1e-14, "b {b} {format:?}");
            assert_eq!(got, product(&many), "b {b} {format:?}");
        }
    }
}

#[test]
fn many_threads_give_the_same_bits_as_one_on_a_grid() {
    let a = bilu_bench::problem::load("poisson3d:40", ReadAs::default()).unwrap().matrix;
    let r = random_vector(a.rows(), 5);
    let one = Cpu::sequential();
    for threads in [2, 5] {
        let many = Cpu::parallel(Some(threads)).unwrap();
        for (b, fill) in [(1, 0), (1, 2), (4, 1), (8, 0), (8, 3)] {
            let z = apply(&one, &factors(&one, &a, b, fill), &r);
            let got = apply(&many, &factors(&many, &a, b, fill), &r);
            assert_eq!(z, got, "{threads} threads, b {b}, k {fill}");
        }
    }
}

#[test]
fn residual_is_b_minus_product() {
    let n = 999;
    for b in [1, 3, 9] {
        let a = Arc::new(random_csr(n, 5, 0.0, 77).in_blocks(b));
        let (x, rhs) = (random_vector(n, 1), random_vector(n, 2));
        let mut want = vec![0.0; n];
        a.multiply(&x, &mut want);
        want.iter_mut().zip(&rhs).for_each(|(w, b)| *w = b - *w);
        let k = Cpu::sequential();
        let mut v: Vec<_> = (0..3).map(|_| k.vector(n).unwrap()).collect();
        k.upload(&x, &mut v[0]);
        k.upload(&rhs, &mut v[1]);
        let [x, rhs, r] = &mut v[..] else { unreachable!() };
        k.residual(&k.matrix(&a, Format::Bsr).unwrap(), x, rhs, r);
        let mut got = vec![0.0; n];
        k.download(r, &mut got);
        assert!(relative_difference(&got, &want) < 1e-14, "b {b}");
    }
}

#[test]
fn singular_blocks_are_reported_with_the_first_row() {
    for k in [Cpu::sequential(), Cpu::parallel(Some(2)).unwrap()] {
        for b in [1, 2, 8] {
            let n = 400 * b;
            let mut a = random_csr(n, 2, 1.5, 21);
            // block rows 11 and 300 become zero
            let (row_ptr, values) = (a.row_ptr().to_vec(), a.values_mut());
            for row in [11, 300] {
                values[row_ptr[row * b] as usize..row_ptr[(row + 1) * b] as usize].fill(0.0);
            }
            let mut ilu = k
                .ilu_analyse(&pattern(&a, b, 0), Trisolve::AUTO, FactorPrecision::Float64)
                .unwrap();
            let broken = k.ilu_factor(&mut ilu, &a, 0.0).unwrap_err();
            let Breakdown::Singular(SingularBlock { row, within, absent, .. }) = broken else {
                panic!("{broken}");
            };
            assert_eq!((row, within, absent), (11, 0, false), "b {b}");
            // a shift of the diagonal repairs it
            assert_eq!(k.ilu_factor(&mut ilu, &a, 0.1), Ok(()), "b {b}");
        }
    }
}

#[test]
fn zero_scalar_diagonals_break_scalar_ilu_but_not_block_ilu() {
    // blocks [0 1; 1 0] coupled weakly
    let n = 40;
    let (mut rp, mut ci, mut v) = (vec![0u32], vec![], vec![]);
    for i in 0..n {
        let partner = i ^ 1;
        let far = (i + 2) % n;
        let mut row = vec![(partner, 1.0), (far, 0.1)];
        row.sort_by_key(|e| e.0);
        for (j, x) in row {
            ci.push(j as u32);
            v.push(x);
        }
        rp.push(ci.len() as u32);
    }
    let a = Csr::new(n, n, rp, ci, v).unwrap();
    let k = Cpu::sequential();
    let mut ilu =
        k.ilu_analyse(&pattern(&a, 1, 0), Trisolve::AUTO, FactorPrecision::Float64).unwrap();
    let broken = k.ilu_factor(&mut ilu, &a, 0.0).unwrap_err();
    assert_eq!(broken.to_string(), "zero pivot: block row 0 has no diagonal entry");
    let mut ilu =
        k.ilu_analyse(&pattern(&a, 2, 0), Trisolve::AUTO, FactorPrecision::Float64).unwrap();
    assert_eq!(k.ilu_factor(&mut ilu, &a, 0.0), Ok(()));
}

#[test]
fn padded_rows_leave_the_solution_alone() {
    let a = random_csr(10, 3, 1.5, 4);
    let p = bsr::pad(&a, 4);
    let k = Cpu::sequential();
    let mut r = random_vector(10, 8);
    r.resize(12, 0.0);
    let z = apply(&k, &factors(&k, &p, 4, 50), &r);
    assert_eq!(z[10..], [0.0, 0.0]);
    let mut back = vec![0.0; 10];
    a.multiply(&z[..10], &mut back);
    assert!(relative_difference(&back, &r[..10]) < 1e-12);
}
