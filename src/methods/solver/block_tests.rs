use std::sync::Arc;

use super::{lookup, method};
use crate::base::choices::{Format, Side};
use crate::case::Case;
use crate::compute::cpu::Cpu;
use crate::compute::krylov::{Outcome, Settings, SolveEnd, Stop, System};
use crate::compute::{Storage as _, Vectors as _};
use crate::matrix::Csr;
use crate::methods::precond::{self, Setup};
use crate::problem;
use crate::problem::samples::matrix;

const RTOL: f64 = 1e-11;

/// Rows of numbers between -1 and 1.
fn random(n: usize, columns: usize, seed: u64) -> Vec<f64> {
    problem::rhs::random(0..(n * columns) as u64, seed).iter().map(|v| 2.0 * v - 1.0).collect()
}

fn of_dense(dense: &[f64], n: usize) -> Arc<Csr> {
    let row_ptr = (0..=n).map(|i| (i * n) as u32).collect();
    let col_ind = (0..n * n).map(|at| (at % n) as u32).collect();
    Csr::new(n, n, row_ptr, col_ind, dense.to_vec()).unwrap().into()
}

/// A dense matrix, diagonally dominant, and symmetric if asked for.
fn dense(n: usize, symmetric: bool) -> Vec<f64> {
    let mut a = random(n, n, 17);
    for i in 0..n {
        for j in 0..i {
            if symmetric {
                a[i * n + j] = a[j * n + i];
            }
        }
        a[i * n + i] = 0.6 * n as f64;
    }
    a
}

/// Gaussian elimination without pivoting.
fn eliminated(a: &[f64], b: &[f64], n: usize, columns: usize) -> Vec<f64> {
    let (mut a, mut x) = (a.to_vec(), b.to_vec());
    for p in 0..n {
        for i in p + 1..n {
            let factor = a[i * n + p] / a[p * n + p];
            for j in p..n {
                a[i * n + j] -= factor * a[p * n + j];
            }
            for j in 0..columns {
                x[i * columns + j] -= factor * x[p * columns + j];
            }
        }
    }
    for i in (0..n).rev() {
        for j in 0..columns {
            let known: f64 = (i + 1..n).map(|l| a[i * n + l] * x[l * columns + j]).sum();
            x[i * columns + j] = (x[i * columns + j] - known) / a[i * n + i];
        }
    }
    x
}

pub(super) fn solved(case: &Case, a: &Arc<Csr>, b: &[f64]) -> (Outcome, Vec<f64>) {
    let (outcome, x, _) = solved_on(&Cpu::sequential(), case, a, b);
    (outcome, x)
}

/// The same on `k`, with the residuals.
pub(super) fn solved_on(
    k: &Cpu,
    case: &Case,
    a: &Arc<Csr>,
    b: &[f64],
) -> (Outcome, Vec<f64>, Vec<f64>) {
    let a = &Arc::new(a.in_blocks(case.block_size));
    let setup = precond::lookup::<Cpu>(&case.precond).unwrap();
    let settings_of_m = case.preconditioning();
    let m = setup(Setup { k, a, settings: &settings_of_m, phases: &mut () }).unwrap();
    let matrix = k.matrix(a, Format::Auto).unwrap();
    let columns = b.len() / a.rows();
    let (mut of_b, mut x) = (k.vector(b.len()).unwrap(), k.vector(b.len()).unwrap());
    k.upload(b, &mut of_b);
    let stop = Stop { rtol: case.rtol, max_iterations: 500, time_limit_s: None };
    let settings = Settings { columns, ..case.solver_settings(stop) };
    let mut solver = lookup::<Cpu>(&case.solver).unwrap()(k, &settings, a.rows()).unwrap();
    let system = System { a: &matrix, m: &*m, b: &of_b, transposed: None, deflation: None };
    let mut residuals = Vec::new();
    let outcome = solver.solve(k, &system, &mut x, &mut residuals);
    (outcome, x.to_vec(), residuals)
}

fn case(solver: &str, precond: &str) -> Case {
    Case { solver: solver.into(), precond: precond.into(), rtol: RTOL, ..Case::default() }
}

fn near(x: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(x.len(), want.len());
    for (i, (x, want)) in x.iter().zip(want).enumerate() {
        assert!((x - want).abs() <= tolerance, "{i}: {x} beside {want}");
    }
}

#[test]
fn with_one_right_hand_side_they_iterate_as_the_methods_of_one() {
    let spd = matrix("poisson3d:11");
    let general = matrix("convdiff3d:11");
    let n = spd.rows();
    let b = random(n, 1, 3);
    for (block, plain, a, preconds) in [
        ("block-cg", "cg", &spd, ["none", "jacobi", "ic"]),
        ("block-gmres", "gmres", &general, ["none", "jacobi", "bilu"]),
    ] {
        for precond in preconds {
            for side in [Side::Left, Side::Right] {
                let with = |solver| solved(&Case { side, ..case(solver, precond) }, a, &b);
                let ((of_block, x), (of_plain, want)) = (with(block), with(plain));
                let text = format!("{block} {precond} {side:?}: {of_block:?} {of_plain:?}");
                assert_eq!(of_block.end, SolveEnd::Converged, "{text}");
                assert!(of_block.iterations.abs_diff(of_plain.iterations) <= 1, "{text}");
                near(&x, &want, 1e-8);
            }
        }
    }
}

#[test]
fn solutions_are_those_of_elimination() {
    let n = 37;
    for columns in [1, 2, 3, 5, 8, 11] {
        let b = random(n, columns, columns as u64);
        for (solver, precond, symmetric) in [
            ("block-cg", "none", true),
            ("block-cg", "ic", true),
            ("block-cg", "mcsgs", true),
            ("block-gmres", "none", false),
            ("block-gmres", "jacobi", false),
            ("block-gmres", "mcilu", false),
        ] {
            for block_size in [1, 37] {
                let a = dense(n, symmetric);
                let case = Case { block_size, restart: 7, ..case(solver, precond) };
                let (outcome, x) = solved(&case, &of_dense(&a, n), &b);
                assert_eq!(outcome.end, SolveEnd::Converged, "{solver} {precond} {columns}");
                near(&x, &eliminated(&a, &b, n, columns), 1e-9);
                let single = precond.starts_with("mc") && columns > 1;
                assert_eq!(outcome.remark.is_some(), single, "{precond}: {:?}", outcome.remark);
            }
        }
    }
}

#[test]
fn equal_and_zero_columns_cost_no_iterations() {
    let a = matrix("poisson3d:9");
    let n = a.rows();
    let two = random(n, 2, 5);
    // columns 0 and 3 are the same, 1 is zero, 4 is a sum of others
    let five: Vec<f64> =
        two.chunks_exact(2).flat_map(|v| [v[0], 0.0, v[1], v[0], v[0] - 3.0 * v[1]]).collect();
    for (solver, precond) in [("block-cg", "ic"), ("block-gmres", "bilu")] {
        let case = case(solver, precond);
        let (of_two, x) = solved(&case, &a, &two);
        let (of_five, all) = solved(&case, &a, &five);
        assert_eq!((of_two.end, of_five.end), (SolveEnd::Converged, SolveEnd::Converged));
        let more = of_five.iterations.abs_diff(of_two.iterations);
        assert!(more <= 1, "{solver}: {of_two:?} {of_five:?}");
        for (x, all) in x.chunks_exact(2).zip(all.chunks_exact(5)) {
            let want = [x[0], 0.0, x[1], x[0], x[0] - 3.0 * x[1]];
            near(all, &want, 1e-8);
            assert_eq!(all[1], 0.0);
        }
    }
}

#[test]
fn blocks_take_fewer_iterations_and_end_with_the_space() {
    let a = matrix("poisson3d:12");
    let b = random(a.rows(), 8, 2);
    let first: Vec<f64> = b.iter().step_by(8).copied().collect();
    for (block, plain) in [("block-cg", "cg"), ("block-gmres", "gmres")] {
        let of = |solver, b| solved(&Case { restart: 50, ..case(solver, "none") }, &a, b).0;
        let (eight, one) = (of(block, &b), of(plain, &first));
        assert_eq!(eight.end, SolveEnd::Converged);
        assert!(4 * eight.iterations <= 3 * one.iterations, "{eight:?} {one:?}");
    }
    // two steps of four columns are more than there are unknowns
    let n = 7;
    let b = random(n, 4, 9);
    for solver in ["block-cg", "block-gmres"] {
        let a = dense(n, true);
        let (outcome, x) = solved(&case(solver, "none"), &of_dense(&a, n), &b);
        assert_eq!((outcome.end, outcome.iterations), (SolveEnd::Converged, 2), "{solver}");
        near(&x, &eliminated(&a, &b, n, 4), 1e-10);
    }
}

#[test]
fn columns_of_different_size_converge_each() {
    let a = matrix("poisson3d:8");
    let n = a.rows();
    let scales = [1.0, 1e-9, 1e6];
    let b = random(n, 3, 8);
    let scaled: Vec<f64> = b.iter().enumerate().map(|(at, v)| v * scales[at % 3]).collect();
    for (solver, precond) in [("block-cg", "ic"), ("block-gmres", "bilu")] {
        let (outcome, x) = solved(&case(solver, precond), &a, &scaled);
        assert_eq!(outcome.end, SolveEnd::Converged);
        for j in 0..3 {
            let column = |v: &[f64]| -> Vec<f64> { v.iter().skip(j).step_by(3).copied().collect() };
            let (b, mut ax) = (column(&scaled), vec![0.0; n]);
            a.multiply(&column(&x), &mut ax);
            let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let r: Vec<f64> = b.iter().zip(&ax).map(|(b, ax)| b - ax).collect();
            assert!(norm(&r) <= 3.0 * RTOL * norm(&b), "{solver} {j}: {}", norm(&r) / norm(&b));
        }
    }
}

#[test]
fn powers_of_two_of_near_and_equal_columns_change_no_iteration() {
    let a = matrix("poisson3d:8");
    let three = random(a.rows(), 3, 4);
    // two columns that nearly are one, and one twice
    let columns = |v: &[f64]| [1.0 + 0.05 * v[0], 1.0 + 0.05 * v[1], v[2], v[2]];
    let b: Vec<f64> = three.chunks_exact(3).flat_map(columns).collect();
    for (solver, precond) in [("block-cg", "ic"), ("block-gmres", "bilu")] {
        let (of_one, want) = solved(&case(solver, precond), &a, &b);
        assert_eq!(of_one.end, SolveEnd::Converged, "{solver}");
        for power in [-60, -30, 30, 60] {
            let scale = 2.0_f64.powi(power);
            let scaled: Vec<f64> = b.iter().map(|v| v * scale).collect();
            let (outcome, x) = solved(&case(solver, precond), &a, &scaled);
            assert_eq!(
                (outcome.end, outcome.iterations),
                (of_one.end, of_one.iterations),
                "{power}"
            );
            let x: Vec<f64> = x.iter().map(|v| v / scale).collect();
            near(&x, &want, 1e-9);
        }
    }
}

#[test]
fn what_is_not_definite_breaks_block_cg_down() {
    let n = 5;
    let mut a = dense(n, true);
    for v in &mut a {
        *v = -*v;
    }
    let b = random(n, 2, 1);
    let (outcome, _) = solved(&case("block-cg", "none"), &of_dense(&a, n), &b);
    let why = "(p, A p) is not positive: the matrix is not positive definite";
    assert_eq!(outcome.end, SolveEnd::Breakdown(why));
    let (outcome, _) = solved(&case("block-cg", "jacobi"), &of_dense(&a, n), &b);
    let why = "(r, M^-1 r) is negative: the preconditioner is not positive definite";
    assert_eq!(outcome.end, SolveEnd::Breakdown(why));
    assert!(method("block-cg").is_some_and(|m| m.several && m.symmetric));
}
