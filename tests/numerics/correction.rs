//! Iterative correction against plain dense arithmetic, and how it ends.

use std::sync::Arc;

use bilu_bench::base::status::Status;
use bilu_bench::case::{Case, Format};
use bilu_bench::compute;
use bilu_bench::compute::krylov::{Outcome, Settings, Stop, System};
use bilu_bench::compute::{Backend, Visitor};
use bilu_bench::matrix::Csr;
use bilu_bench::methods::precond::{Phase, Phases, Setup};
use bilu_bench::methods::{precond, solver};
use bilu_bench::problem::Problem;

use crate::cases::{load, of, run};
use crate::common;

fn correction(precond: &str, block_size: usize) -> Case {
    Case { solver: "correction".into(), precond: precond.into(), block_size, ..Case::default() }
}

/// Solves on a backend and keeps the residual of every correction.
struct Corrections<'a> {
    problem: &'a Problem,
    b: &'a [f64],
    case: &'a Case,
}

impl Phases for Corrections<'_> {
    fn begin(&mut self, _: Phase) {}
}

impl Visitor for Corrections<'_> {
    type Output = (Outcome, Vec<f64>, Vec<f64>);

    fn visit<K: Backend + 'static>(mut self, k: &K) -> Self::Output {
        let case = self.case;
        let a = &Arc::new(self.problem.matrix.in_blocks(case.block_size));
        let n = a.rows();
        let matrix = k.matrix(a, Format::Auto).unwrap();
        let setup = precond::lookup::<K>(&case.precond).unwrap();
        let Ok(m) = setup(Setup { k, a, settings: &case.preconditioning(), phases: &mut self })
        else {
            panic!("no setup")
        };
        let stop =
            Stop { rtol: case.rtol, max_iterations: case.max_iterations, time_limit_s: None };
        let settings = Settings::new(stop);
        let (mut b, mut x) = (k.vector(n).unwrap(), k.vector(n).unwrap());
        k.upload(self.b, &mut b);
        let mut solver = solver::lookup::<K>("correction").unwrap()(k, &settings, n).unwrap();
        let mut history = Vec::new();
        let system = System { a: &matrix, m: &*m, b: &b, transposed: None, deflation: None };
        let outcome = solver.solve(k, &system, &mut x, &mut history);
        let mut solution = vec![0.0; n];
        k.download(&x, &mut solution);
        (outcome, solution, history)
    }
}

/// The same with dense rows: M is the point factorisation inside the blocks of A (Saad, Algorithm
/// 10.4), which is the block one, or the block diagonal of A factored in full.
fn dense_corrections(a: &Csr, b: &[f64], case: &Case) -> (Vec<f64>, Vec<f64>) {
    let n = a.rows();
    let block = |i: usize| i / case.block_size;
    let dense: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| a.get(i, j).unwrap_or(0.0)).collect()).collect();
    let mut kept = vec![vec![false; n]; n];
    for i in 0..n {
        for &j in a.row(i).0 {
            let j = block(j as usize);
            if case.precond != "jacobi" || j == block(i) {
                let columns = j * case.block_size..(j + 1) * case.block_size;
                for row in block(i) * case.block_size..(block(i) + 1) * case.block_size {
                    kept[row][columns.clone()].fill(true);
                }
            }
        }
    }
    let mut lu = dense.clone();
    for i in 0..n {
        for k in (0..i).filter(|&k| kept[i][k]) {
            let l = lu[i][k] / lu[k][k];
            lu[i][k] = l;
            for j in (k + 1..n).filter(|&j| kept[i][j]) {
                lu[i][j] -= l * lu[k][j];
            }
        }
    }
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let (mut x, mut r, mut history) = (vec![0.0; n], b.to_vec(), Vec::new());
    while history.len() < case.max_iterations && history.last().is_none_or(|&h| h > case.rtol) {
        let mut xi = r.clone();
        for i in 0..n {
            let known: f64 = (0..i).filter(|&j| kept[i][j]).map(|j| lu[i][j] * xi[j]).sum();
            xi[i] -= known;
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).filter(|&j| kept[i][j]).map(|j| lu[i][j] * xi[j]).sum();
            xi[i] = (xi[i] - known) / lu[i][i];
        }
        for i in 0..n {
            x[i] += xi[i];
        }
        for i in 0..n {
            r[i] = b[i] - dense[i].iter().zip(&x).map(|(a, x)| a * x).sum::<f64>();
        }
        history.push(norm(&r) / norm(b));
    }
    (x, history)
}

#[test]
fn corrections_are_those_of_dense_arithmetic() {
    for (spec, precond, b, count) in [
        ("channel3d:4x5x3", "bilu", 6, 9),
        ("channel3d:4x5x3,n=4", "bilu", 4, 8),
        ("channel3d:3x4x3,n=10", "bilu", 10, 8),
        ("channel3d:4x5x3", "fgbilu", 6, 9),
        ("channel3d:4x5x3,n=4", "fgbilu", 4, 8),
        ("channel3d:3x4x3,n=10", "fgbilu", 10, 8),
        ("channel3d:4x5x3,cfl=2", "jacobi", 6, 18),
        ("poisson3d:4x5x3", "bilu", 1, 18),
        ("poisson3d:4x5x3", "bilu", 5, 12),
        ("poisson3d:4x5x3", "fgbilu", 1, 18),
        ("poisson3d:4x5x3", "jacobi", 4, 56),
    ] {
        let problem = load(spec);
        let rhs = common::random_vector(problem.matrix.rows(), 3);
        let case = Case { rtol: 1e-9, ..correction(precond, b) };
        let (x, history) = dense_corrections(&problem.matrix, &rhs, &case);
        assert_eq!(history.len(), count, "{spec} {precond}");
        for backend in ["cpu", "cpu-mt"] {
            let job = Corrections { problem: &problem, b: &rhs, case: &case };
            let (outcome, solution, residuals) = compute::with(backend, job).unwrap().unwrap();
            assert_eq!(outcome.iterations, count, "{spec} {precond}");
            let largest = x.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            for (a, b) in solution.iter().zip(&x) {
                assert!((a - b).abs() <= 1e-12 * largest, "{spec} {precond}: {a} and not {b}");
            }
            assert_eq!(residuals.len(), count);
            for (a, b) in residuals.iter().zip(&history) {
                assert!((a - b).abs() <= 1e-12 * history[0], "{spec} {precond}: {a} and not {b}");
            }
        }
    }
}

#[test]
fn a_channel_converges_as_fast_as_the_published_one() {
    // Luo et al., Table 1: the sum of squares falls by 17.6 orders of magnitude in 19 corrections
    let problem = load("channel3d:17x33x21");
    let rhs = vec![1.0; problem.matrix.rows()];
    let case = Case { rtol: 0.0, max_iterations: 20, ..correction("bilu", 6) };
    let job = Corrections { problem: &problem, b: &rhs, case: &case };
    let (_, _, residuals) = compute::with("cpu-mt", job).unwrap().unwrap();
    assert!(residuals.windows(2).all(|pair| pair[1] < 0.6 * pair[0]), "{residuals:?}");
    let orders = 2.0 * (residuals[0] / residuals[19]).log10();
    assert!((17.0..30.0).contains(&orders), "{orders}");
}

#[test]
fn the_own_block_of_a_cell_outweighs_its_neighbours() {
    // the spectral radius of I - D^-1 A, D the diagonal blocks, is below one
    for n in [4, 6] {
        let problem = load(&format!("channel3d:15x21x17,n={n}"));
        let rhs = vec![1.0; problem.matrix.rows()];
        let case = Case { rtol: 0.0, max_iterations: 80, ..correction("jacobi", n) };
        let job = Corrections { problem: &problem, b: &rhs, case: &case };
        let (_, _, residuals) = compute::with("cpu-mt", job).unwrap().unwrap();
        let factor = (residuals[79] / residuals[39]).powf(1.0 / 40.0);
        assert!((0.5..0.85).contains(&factor), "{n}: {factor}");
    }
}

#[test]
fn stacked_systems_are_corrected_each_on_its_own() {
    let case = |n| Case { rtol: 0.0, max_iterations: 6, ..correction("bilu", n) };
    let solve = |spec: &str, n: usize| {
        let problem = load(spec);
        let rhs = vec![1.0; problem.matrix.rows()];
        let job = Corrections { problem: &problem, b: &rhs, case: &case(n) };
        compute::with("cpu", job).unwrap().unwrap().1
    };
    let (stack, four, six) = (
        solve("channel3d:5x6x4,n=10,seed=8", 10),
        solve("channel3d:5x6x4,n=4,seed=8", 4),
        solve("channel3d:5x6x4,n=6,seed=9", 6),
    );
    for cell in 0..120 {
        for i in 0..10 {
            let alone = if i < 4 { four[4 * cell + i] } else { six[6 * cell + i - 4] };
            let both = stack[10 * cell + i];
            assert!((both - alone).abs() < 1e-12 * (1.0 + alone.abs()), "{cell} {i}");
        }
    }
}

#[test]
fn ends_are_named() {
    let diagonal = |value: f64| {
        Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![value; 2]).expect("a diagonal matrix")
    };
    // I - A = -2 I: the residual doubles, and 2^34 is the first power above 1e10
    let grows = run(&of(diagonal(3.0)), &[1.0, 1.0], &correction("none", 1));
    assert_eq!((grows.status, grows.convergence.iterations), (Status::Diverged, 34));
    assert_eq!(grows.reason.as_deref(), Some("the residual grew without bound"));
    // I - A = -I: it stays; nine spans of 50 corrections are compared
    let stays = run(&of(diagonal(2.0)), &[1.0, 1.0], &correction("none", 1));
    assert_eq!((stays.status, stays.convergence.iterations), (Status::Stagnated, 450));
    // I - A = I / 2: one bit each, 2^-20 is the first below 1e-6
    let halves = run(&of(diagonal(0.5)), &[1.0, 1.0], &correction("none", 1));
    assert_eq!((halves.status, halves.convergence.iterations), (Status::Converged, 20));
    assert_eq!(halves.convergence.monitored_residual, Some(0.5_f64.powi(20)));
    assert_eq!(halves.convergence.true_residual, Some(0.5_f64.powi(20)));
    let limited = Case { max_iterations: 7, ..correction("none", 1) };
    let limited = run(&of(diagonal(0.5)), &[1.0, 1.0], &limited);
    assert_eq!((limited.status, limited.convergence.iterations), (Status::NotConverged, 7));
}
