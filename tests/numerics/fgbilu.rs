//! FGBILU of Luo et al. 2015 on the CPU: the factors of block ILU(0), the same on one thread and on
//! many, and what it says where it cannot be.

use bilu_bench::base::status::Status;
use bilu_bench::case::{Case, FgbiluStyle};
use bilu_bench::matrix::Csr;
use bilu_bench::problem::Problem;
use bilu_bench::record::Record;

use crate::cases::{load, of, run_with_history};

fn run(problem: &Problem, case: &Case) -> Record {
    let b = vec![1.0; problem.matrix.rows()];
    run_with_history(problem, &b, case, 10)
}

/// Eleven corrections: the first estimate and ten more.
fn correction(precond: &str, backend: &str, block_size: usize) -> Case {
    Case {
        precond: precond.into(),
        backend: backend.into(),
        threads: 3,
        block_size,
        solver: "correction".into(),
        rtol: 0.0,
        max_iterations: 11,
        ..Case::default()
    }
}

/// Whether two histories agree to ten digits, but for `rounding` of the first residual.
fn agree(x: &[f64], y: &[f64], rounding: f64) -> bool {
    assert_eq!((x.len(), y.len()), (11, 11));
    x.iter().zip(y).all(|(a, b)| (a - b).abs() <= 1e-10 * b + rounding * y[0])
}

#[test]
fn histories_agree_to_ten_digits() {
    for (spec, b) in
        [("channel3d:17x33x21", 6), ("channel3d:15x12x9,n=4", 4), ("channel3d:9x8x7,n=16", 16)]
    {
        let problem = load(spec);
        let sequential = run(&problem, &correction("fgbilu", "cpu", b));
        assert_eq!(sequential.status, Status::Complete, "{:?}", sequential.reason);
        let history = &sequential.convergence.residual_history;
        assert!(history[1..].windows(2).all(|p| p[1] < 0.6 * p[0]), "{spec}: {history:?}");
        let n = problem.matrix.rows() as f64;
        assert!((history[0] / n.sqrt() - 1.0).abs() < 1e-14, "the norm of ones");
        let (iterations, last) =
            (sequential.convergence.iterations, sequential.convergence.monitored_residual);
        assert_eq!(iterations, 11);
        assert!(last.unwrap() < history[10] / history[0]);
        let parallel = run(&problem, &correction("fgbilu", "cpu-mt", b));
        assert!(agree(&parallel.convergence.residual_history, history, 0.0), "{spec}");
        for backend in ["cpu", "cpu-mt"] {
            let pivoted = run(&problem, &correction("bilu", backend, b));
            assert!(agree(&pivoted.convergence.residual_history, history, 1e-15), "{spec}");
        }
    }
}

#[test]
fn krylov_methods_take_it_as_block_ilu() {
    for (spec, b) in [("channel3d:12x10x9,cfl=100", 6), ("poisson3d:20x14x11", 2)] {
        let problem = load(spec);
        for (solver, backend) in
            [("gmres", "cpu"), ("gmres", "cpu-mt"), ("bicgstab", "cpu"), ("bicgstab", "cpu-mt")]
        {
            let iterations = |precond: &str| {
                let case = correction(precond, backend, b);
                let case = Case { solver: solver.into(), rtol: 1e-9, max_iterations: 200, ..case };
                let record = run(&problem, &case);
                assert_eq!(record.status, Status::Converged, "{spec} {solver} {precond}");
                record.convergence.iterations
            };
            let (own, pivoted) = (iterations("fgbilu"), iterations("bilu"));
            // the residual of BiCGStab jumps about the tolerance with every rounding
            let slack = usize::from(solver == "bicgstab");
            assert!(own.abs_diff(pivoted) <= slack, "{spec} {solver} {backend}: {own} {pivoted}");
        }
    }
}

#[test]
fn boxes_one_point_thin_are_boxes() {
    for grid in ["1x9x7", "8x1x6", "7x5x1"] {
        let problem = load(&format!("blockpoisson3d:{grid},b=3"));
        for backend in ["cpu", "cpu-mt"] {
            let own = run(&problem, &correction("fgbilu", backend, 3));
            let pivoted = run(&problem, &correction("bilu", backend, 3));
            assert_eq!((own.status, pivoted.status), (Status::Complete, Status::Complete));
            let (x, y) = (own.convergence.residual_history, pivoted.convergence.residual_history);
            assert!(agree(&x, &y, 1e-14), "{grid}: {x:?} {y:?}");
        }
    }
}

#[test]
fn records_hold_hyperplanes_and_phases() {
    let problem = load("channel3d:5x4x3");
    let record = run(&problem, &correction("fgbilu", "cpu", 6));
    let blocks = 60 + 2 * (4 * 12 + 3 * 15 + 2 * 20);
    let (f, t) = (&record.factor, &record.times);
    assert_eq!(f.factor_blocks, Some(blocks));
    assert_eq!(f.factor_entries, Some(36 * blocks));
    assert_eq!((f.levels_lower, f.levels_upper), (Some(10), Some(10)));
    assert_eq!((f.fill_ratio, f.rows_per_level), (Some(1.0), Some(6.0)));
    assert_eq!(t.numeric_kernel_s, t.numeric_s);
    // both triangles, d twice, indices, four passes over a vector
    let indices = 4 * (blocks - 60) + 2 * 4 * 61;
    let moved = 8 * 36 * (blocks + 60) + indices + 4 * 8 * 360;
    assert_eq!(record.traffic.apply_bytes, Some(moved));
    assert!(record.traffic.residual_s.unwrap() > 0.0);
}

/// A box of 2 x 3 x 2 points with 2 x 2 blocks: couplings of a tenth, `diagonal` on the diagonal but
/// at the point number `special`, which has `block` there.
fn small_box(special: usize, block: [[f64; 2]; 2]) -> Problem {
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    let place = |p: usize| [p % 2, p / 2 % 3, p / 6];
    for p in 0..12 {
        for r in 0..2 {
            for q in 0..12 {
                let steps: usize = (0..3).map(|d| place(p)[d].abs_diff(place(q)[d])).sum();
                for c in 0..2 {
                    let value = match steps {
                        0 if p == special => block[r][c],
                        0 => [[3.0, 0.2], [-0.1, 2.0]][r][c],
                        1 => 0.1,
                        _ => continue,
                    };
                    col_ind.push((2 * q + c) as u32);
                    values.push(value);
                }
            }
            row_ptr.push(col_ind.len() as u32);
        }
    }
    of(Csr::new(24, 24, row_ptr, col_ind, values).expect("valid by construction"))
}

#[test]
fn a_block_without_a_pivot_is_named_by_its_subscripts() {
    // regular, but its first pivot is zero: rows are not exchanged
    let swapped = small_box(0, [[0.0, 1.0], [1.0, 0.0]]);
    // singular: point number 7 is (2, 1, 2), and its second row has no coupling
    let mut singular = (*small_box(7, [[1.0, 0.0], [0.0, 0.0]]).matrix).clone();
    let row = 2 * 7 + 1;
    let range = singular.row_ptr()[row] as usize..singular.row_ptr()[row + 1] as usize;
    singular.values_mut()[range].fill(0.0);
    let singular = of(singular);
    for backend in ["cpu", "cpu-mt"] {
        let reason = |problem: &Problem| {
            let record = run(problem, &correction("fgbilu", backend, 2));
            assert_eq!(record.status, Status::Breakdown);
            record.reason.unwrap()
        };
        assert_eq!(
            reason(&swapped),
            "no pivot in row 1 of the diagonal block at (i, j, k) = (1, 1, 1)"
        );
        assert_eq!(
            reason(&singular),
            "no pivot in row 2 of the diagonal block at (i, j, k) = (2, 1, 2)"
        );
        let pivoted = run(&swapped, &correction("bilu", backend, 2));
        assert_eq!(pivoted.status, Status::Complete, "{:?}", pivoted.reason);
    }
}

#[test]
fn a_missing_diagonal_block_is_named() {
    let problem = small_box(5, [[0.0; 2]; 2]).without_zeros();
    let record = run(&problem, &correction("fgbilu", "cpu", 2));
    assert_eq!(record.status, Status::Breakdown);
    assert_eq!(
        record.reason.as_deref(),
        Some("there is no diagonal block at (i, j, k) = (2, 3, 1)")
    );
}

#[test]
fn what_is_no_grid_is_refused() {
    let reason = |problem: &Problem, b| {
        let record = run(problem, &correction("fgbilu", "cpu", b));
        assert_eq!(record.status, Status::Unsupported);
        record.reason.unwrap()
    };
    assert_eq!(
        reason(&load("fem-p1:12x9"), 1),
        "`fgbilu` needs a matrix of seven points on a box: its blocks of 1 have other neighbours"
    );
    // 4 unknowns of 6 in a block
    assert_eq!(
        reason(&load("channel3d:4x4x4"), 4),
        "`fgbilu` needs a matrix of seven points on a box: its blocks of 4 have other neighbours"
    );
    let styled = Case { fgbilu_style: FgbiluStyle::Acc, ..correction("fgbilu", "cpu", 6) };
    let record = run(&load("channel3d:3"), &styled);
    assert_eq!(record.reason.as_deref(), Some("the CPU has one execution of fgbilu"));
}
