//! The methods through the case runner: agreement with each other and with the truth, and every
//! way a solve can end.

use bilu_bench::base::status::Status;
use bilu_bench::bench::run::{Stage, run_case};
use bilu_bench::case::{
    Case, Execution, Format, LevelRule, Orthogonalisation, ReadAs, RunKind, Setting, Side,
};
use bilu_bench::config::sampling::Measure;
use bilu_bench::matrix::Csr;
use bilu_bench::methods::registry;
use bilu_bench::problem::{self, Problem};
use bilu_bench::record::Record;

use crate::common;

fn of(matrix: Csr) -> Problem {
    Problem {
        name: "test".into(),
        matrix: matrix.into(),
        grid: None,
        own_rhs: None,
        remarks: Vec::new(),
    }
}

fn run(problem: &Problem, b: &[f64], case: &Case) -> Record {
    let measure = Measure { max_repetitions: 1, ..Measure::default() };
    run_case(case, problem, b, &measure, &mut |_| true).expect("not cancelled")
}

fn poisson() -> Problem {
    problem::load("poisson3d:9x10x11", ReadAs::Expanded).expect("generator")
}

#[test]
fn every_combination_solves_poisson_to_the_same_truth() {
    let p = poisson();
    let b = common::random_vector(990, 3);
    let mut runs = 0;
    for solver in ["gmres", "bicgstab", "cg", "qmr", "pipelined-cg", "pipelined-bicgstab"] {
        for precond in ["none", "jacobi", "bilu"] {
            for backend in ["cpu", "cpu-mt"] {
                for (side, orthogonalisation) in [
                    (Side::Right, Orthogonalisation::Cgs),
                    (Side::Left, Orthogonalisation::Cgs2),
                    (Side::Right, Orthogonalisation::Mgs),
                    (Side::Left, Orthogonalisation::OneReduce),
                ] {
                    // 7 does not divide 990: the system is padded
                    for (block_size, format) in
                        [(1, Format::Csr), (5, Format::Bsr), (7, Format::Auto)]
                    {
                        let case = Case {
                            solver: solver.into(),
                            precond: precond.into(),
                            backend: backend.into(),
                            threads: 2,
                            side,
                            orthogonalisation,
                            block_size,
                            format,
                            fill: 1,
                            rtol: 1e-10,
                            ..Case::default()
                        };
                        let r = run(&p, &b, &case);
                        assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
                        assert!(r.convergence.true_residual.unwrap() < 1e-9, "{case:?}");
                        assert_eq!(r.size.padding, if block_size == 7 { 4 } else { 0 });
                        runs += 1;
                    }
                }
            }
        }
    }
    assert_eq!(runs, 432);
}

#[test]
fn one_thread_and_many_count_alike() {
    let p = problem::load("convdiff3d:40x40x40,cx=3,pz=0.5", ReadAs::Expanded).expect("generator");
    let b = vec![1.0; 64_000];
    for solver in ["gmres", "bicgstab", "qmr", "pipelined-bicgstab"] {
        for block_size in [1, 4] {
            let case = |backend: &str| Case {
                backend: backend.into(),
                threads: 3,
                solver: solver.into(),
                block_size,
                ..Case::default()
            };
            let (one, many) = (run(&p, &b, &case("cpu")), run(&p, &b, &case("cpu-mt")));
            // sums are taken in the same order: the same bits
            assert_eq!(one.convergence, many.convergence, "{solver}");
            assert_eq!(one.factor, many.factor);
        }
    }
}

#[test]
fn coupled_species_take_few_iterations_and_fewer_with_fill() {
    for b in [3, 4, 8] {
        let spec = format!("blockpoisson3d:16,b={b}");
        let p = problem::load(&spec, ReadAs::Expanded).expect("generator");
        let rhs = vec![1.0; p.matrix.rows()];
        let iterations = |block_size, fill| {
            let r = run(&p, &rhs, &Case { block_size, fill, rtol: 1e-8, ..Case::default() });
            assert_eq!(r.status, Status::Converged, "{spec}: {:?}", r.reason);
            r.convergence.iterations
        };
        let whole = iterations(b, 0);
        assert!((10..=40).contains(&whole), "{spec}: {whole}");
        assert!(iterations(b, 1) < whole, "{spec}");
    }
}

#[test]
fn ends_are_named() {
    let p = poisson();
    let b = vec![1.0; 990];
    let limited = run(&p, &b, &Case { max_iterations: 3, ..Case::default() });
    assert_eq!((limited.status, limited.convergence.iterations), (Status::NotConverged, 3));
    assert_eq!(limited.reason.as_deref(), Some("iteration limit 3 reached"));

    // a cyclic shift: GMRES(m) makes no progress before the n-th step
    let n = 50;
    let shift = Csr::new(
        n,
        n,
        (0..=n as u32).collect(),
        (0..n as u32).map(|i| (i + 1) % n as u32).collect(),
        vec![1.0; n],
    );
    let mut e1 = vec![0.0; n];
    e1[0] = 1.0;
    let case = Case { precond: "none".into(), restart: 5, ..Case::default() };
    let stalled = run(&of(shift.unwrap()), &e1, &case);
    assert_eq!(stalled.status, Status::Stagnated);
    assert_eq!(stalled.reason.as_deref(), Some("the residual no longer falls over 8 restarts"));

    for solver in ["cg", "pipelined-cg"] {
        without_definiteness(&Case { solver: solver.into(), ..Case::default() });
    }

    // singular and inconsistent: the Krylov space is exhausted, nothing converges
    let singular = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 0.0]).unwrap();
    for orthogonalisation in [Orthogonalisation::Cgs, Orthogonalisation::OneReduce] {
        let none = Case { precond: "none".into(), orthogonalisation, ..Case::default() };
        let record = run(&of(singular.clone()), &[1.0, 1.0], &none);
        assert_eq!(record.status, Status::Breakdown, "{:?}", record.reason);
    }

    // a zero pivot
    let pivot = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 1.0]).unwrap();
    let record = run(&of(pivot), &[1.0, 2.0], &Case::default());
    assert_eq!(record.status, Status::Breakdown);
    assert_eq!(record.reason.as_deref(), Some("zero pivot: block row 0 has no diagonal entry"));

    let slow = Measure { time_limit_s: Some(0.0), ..Measure::default() };
    let record = run_case(&Case::default(), &p, &b, &slow, &mut |_| true).unwrap();
    assert_eq!(record.status, Status::TimeLimit);

    let record = run(&p, &b, &Case { backend: "tpu".into(), ..Case::default() });
    assert_eq!(record.reason.as_deref(), Some("there is no backend `tpu`"));
}

/// Conjugate gradients of some kind where the matrix or the preconditioner is indefinite.
fn without_definiteness(method: &Case) {
    let indefinite = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, -3.0]).unwrap();
    let cg = Case { precond: "none".into(), ..method.clone() };
    let broken = run(&of(indefinite), &[1.0, 1.0], &cg);
    assert_eq!(broken.status, Status::Breakdown);
    assert!(broken.reason.unwrap().contains("not positive definite"));

    // CG and a factorisation that is indefinite, as the matrix is not (Kershaw 1978): its last pivot is -5
    let rows = [
        [3.0, -2.0, 0.0, 2.0],
        [-2.0, 3.0, -2.0, 0.0],
        [0.0, -2.0, 3.0, -2.0],
        [2.0, 0.0, -2.0, 3.0],
    ];
    let entries = |row: &[f64; 4]| -> Vec<(u32, f64)> {
        (0..4).zip(row.iter().copied()).filter(|(_, v)| *v != 0.0).collect()
    };
    let cols = rows.iter().flat_map(entries).map(|(j, _)| j).collect();
    let values = rows.iter().flat_map(entries).map(|(_, v)| v).collect();
    let kershaw = of(Csr::new(4, 4, vec![0, 3, 6, 9, 12], cols, values).unwrap());
    let case = Case { precond: "bilu".into(), ..cg.clone() };
    let broken = run(&kershaw, &[0.0, 0.0, 0.0, 1.0], &case);
    assert_eq!((broken.status, broken.convergence.iterations), (Status::Breakdown, 0));
    let reason = "(r, M^-1 r) is negative: the preconditioner is not positive definite";
    assert_eq!(broken.reason.as_deref(), Some(reason));
    let solved = run(&kershaw, &[0.0, 0.0, 0.0, 1.0], &cg);
    assert_eq!((solved.status, solved.convergence.iterations), (Status::Converged, 2));
}

/// Orthogonalisation with one reduction ends as the others do where the space is exhausted, in either norm, and where
/// its vectors are nothing but rounding.
#[test]
fn one_reduction_ends_as_two_passes_do() {
    let p = poisson();
    let n = p.matrix.rows();
    // three eigenvectors of the diagonal matrix
    let diagonal = Csr::new(
        n,
        n,
        (0..=n as u32).collect(),
        (0..n as u32).collect(),
        (0..n).map(|i| [1.0, 3.0, 1e4][i % 3]).collect(),
    );
    let few = of(diagonal.unwrap());
    let b = common::random_vector(n, 11);
    for side in [Side::Left, Side::Right] {
        for (problem, precond, rtol) in
            [(&few, "none", 1e-10), (&few, "jacobi", 1e-10), (&p, "bilu", 1e-14)]
        {
            let ended = |orthogonalisation| {
                let precond = precond.into();
                let case = Case { precond, orthogonalisation, side, rtol, ..Case::default() };
                let r = run(problem, &b, &case);
                assert!(r.convergence.true_residual.unwrap() < 10.0 * rtol.max(1e-14), "{case:?}");
                (r.status, r.convergence.iterations)
            };
            let [one, two] = [Orthogonalisation::OneReduce, Orthogonalisation::Cgs2].map(ended);
            assert_eq!(one, two, "{precond} {rtol:e} {side:?}");
        }
    }
}

/// With few iterations more or less, and with a residual as small.
#[test]
fn pipelined_methods_are_the_plain_ones() {
    let p = problem::load("poisson3d:32", ReadAs::Expanded).expect("generator");
    let b = vec![1.0; p.matrix.rows()];
    for backend in ["cpu", "cpu-mt"] {
        for precond in ["ic", "bilu"] {
            let iterations = |solver: &str| {
                let solver = solver.into();
                let (precond, backend) = (precond.into(), backend.into());
                let case =
                    Case { solver, precond, backend, threads: 2, rtol: 1e-10, ..Case::default() };
                let r = run(&p, &b, &case);
                assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
                assert!(r.convergence.true_residual.unwrap() <= 1e-10, "{:?}", r.convergence);
                r.convergence.iterations
            };
            let [cg, pipelined] = ["cg", "pipelined-cg"].map(iterations);
            assert!(cg.abs_diff(pipelined) <= 2, "{precond}: {pipelined} beside {cg}");
            let [plain, pipelined] = ["bicgstab", "pipelined-bicgstab"].map(iterations);
            assert!(
                10 * plain.abs_diff(pipelined) <= plain,
                "{precond}: {pipelined} beside {plain}"
            );
        }
    }
}

#[test]
fn exact_and_zero_right_hand_sides_end_at_once() {
    let identity = Csr::new(3, 3, vec![0, 1, 2, 3], vec![0, 1, 2], vec![2.0; 3]).unwrap();
    let p = of(identity);
    for (solver, _) in registry::SOLVERS {
        for (b, iterations) in [([0.0; 3], 0), ([1.0, 2.0, 3.0], 1)] {
            let case = Case { solver: (*solver).into(), ..Case::default() };
            let r = run(&p, &b, &case);
            assert_eq!(r.status, Status::Converged, "{solver} {b:?}");
            assert_eq!(r.convergence.iterations, iterations, "{solver} {b:?}");
            // corrections of iterative refinement are rounded to float32, bases of block methods are scaled
            let unit =
                if case.uses(Setting::InnerRtol) { f32::EPSILON.into() } else { f64::EPSILON };
            let most = if iterations == 0 { 0.0 } else { 2.0 * unit };
            assert!(r.convergence.true_residual.unwrap() <= most, "{solver}: {:?}", r.convergence);
        }
    }
}

#[test]
fn what_the_deflation_vectors_solve_takes_no_iterations() {
    let p = problem::load("poisson3d:8", ReadAs::Expanded).expect("generator");
    // one constant vector, and A times it
    let b = problem::right_hand_side(&p, "a-ones").expect("right-hand side");
    let deflation = "subdomain:1".parse().expect("a choice");
    for solver in ["cg", "gmres", "bicgstab"] {
        let case =
            Case { solver: solver.into(), precond: "jacobi".into(), deflation, ..Case::default() };
        let r = run(&p, &b, &case);
        assert_eq!(r.status, Status::Converged, "{solver}: {:?}", r.reason);
        assert!(r.convergence.true_residual.unwrap() < 1e-14, "{solver}: {:?}", r.convergence);
        assert_eq!(r.convergence.iterations, usize::from(solver != "cg"), "{solver}");
    }
    let case =
        Case { solver: "cg".into(), deflation, rtol: 0.0, max_iterations: 9, ..Case::default() };
    let r = run(&p, &b, &case);
    assert_eq!((r.status, r.convergence.iterations), (Status::Complete, 0), "{:?}", r.reason);
}

#[test]
fn gmres_keeps_its_basis_orthogonal_over_long_restarts() {
    // rows of very different size make the norm fall by little in each of many steps
    for (spec, precond, restart) in [
        ("convdiff3d:12x11x10,cx=40,pz=0.5", "none", 300),
        ("reservoir:10x9x8,k=1", "jacobi", 200),
        ("reservoir:10x9x8,k=1", "jacobi", 300),
    ] {
        let p = problem::load(spec, ReadAs::Expanded).expect("generator");
        let b = common::random_vector(p.matrix.rows(), 7);
        let iterations = |orthogonalisation| {
            let case = Case {
                precond: precond.into(),
                orthogonalisation,
                restart,
                rtol: 1e-10,
                max_iterations: 3000,
                ..Case::default()
            };
            let r = run(&p, &b, &case);
            assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
            r.convergence.iterations
        };
        let cgs2 = iterations(Orthogonalisation::Cgs2);
        for other in [Orthogonalisation::Cgs, Orthogonalisation::OneReduce] {
            let count = iterations(other);
            assert!(count.abs_diff(cgs2) <= 2, "{spec} {restart} {other:?}: {count} beside {cgs2}");
        }
    }
}

#[test]
fn a_case_can_be_abandoned_at_every_stage() {
    let p = poisson();
    let b = vec![1.0; 990];
    let measure = Measure { repeat_values: 1, ..Measure::default() };
    for stop in [
        Stage::Symbolic,
        Stage::Numeric,
        Stage::WarmUp,
        Stage::Solve(1),
        Stage::Traffic,
        Stage::NewValues(1),
    ] {
        let mut seen = false;
        let record = run_case(&Case::default(), &p, &b, &measure, &mut |stage| {
            seen |= stage == stop;
            stage != stop
        });
        assert!(seen && record.is_none(), "{stop:?}");
    }
}

#[test]
fn new_values_are_timed_only_when_asked_for_and_where_there_are_factors() {
    let p = poisson();
    let b = vec![1.0; 990];
    for (precond, repeat_values, factors) in
        [("bilu", 0, false), ("bilu", 3, true), ("jacobi", 1, true), ("none", 2, false)]
    {
        let measure = Measure { max_repetitions: 1, repeat_values, ..Measure::default() };
        let case = Case { precond: precond.into(), block_size: 3, ..Case::default() };
        let mut stages = 0;
        let r = run_case(&case, &p, &b, &measure, &mut |stage| {
            stages += usize::from(matches!(stage, Stage::NewValues(_)));
            true
        })
        .expect("not cancelled");
        assert_eq!(stages, repeat_values, "{precond}");
        assert_eq!(r.times.rematrix_s.is_some(), repeat_values > 0, "{precond}");
        assert_eq!(r.times.renumeric_s.is_some_and(|s| s > 0.0), factors, "{precond}");
        assert_eq!((r.status, r.reason), (Status::Converged, None), "{precond}");
    }
}

#[test]
fn records_hold_sizes_phases_and_traffic() {
    let p = poisson();
    let r = run(&p, &vec![1.0; 990], &Case { block_size: 2, fill: 1, ..Case::default() });
    assert_eq!(
        (r.size.n, r.size.nnz, r.size.block_rows),
        (990, 7 * 990 - 2 * (90 + 99 + 110), 495)
    );
    let blocks = r.factor.factor_blocks.unwrap();
    assert_eq!(r.factor.factor_entries, Some(4 * blocks));
    assert_eq!(r.factor.fill_ratio, Some(blocks as f64 / r.size.matrix_blocks as f64));
    let t = &r.times;
    let phases = t.symbolic_s.unwrap() + t.analysis_s.unwrap() + t.numeric_s.unwrap();
    assert!((t.setup_s.unwrap() - phases).abs() < 1e-12);
    let (matrix, setup, solve) = (t.matrix_s.unwrap(), t.setup_s.unwrap(), t.solve_s.unwrap());
    assert!(matrix > 0.0);
    assert_eq!(t.total_s, Some(matrix + setup + solve));
    let traffic = &r.traffic;
    // factors, their indices and row pointers once; four passes over a vector
    let indices = 4 * (blocks - 495) + 2 * 4 * 496;
    assert_eq!(traffic.apply_bytes, Some(8 * 4 * blocks + indices + 4 * 8 * 990));
    assert!(traffic.copy_gbps.unwrap() > 0.1 && traffic.percent_of_bandwidth.unwrap() > 0.0);
    // no hand-over is measured on a CPU
    assert_eq!(traffic.handover_us, None);
    // and its numeric phase is the factorisation alone: A's indices and values in, factors out
    assert_eq!(t.numeric_kernel_s, t.numeric_s);
    assert_eq!(traffic.numeric_bytes, Some(indices + 2 * 8 * 4 * blocks));
    let gbps = traffic.numeric_bytes.unwrap() as f64 / t.numeric_s.unwrap() / 1e9;
    assert!((traffic.numeric_gbps.unwrap() / gbps - 1.0).abs() < 1e-12);
    let share = 100.0 * gbps / traffic.copy_gbps.unwrap();
    assert!((traffic.numeric_percent_of_bandwidth.unwrap() / share - 1.0).abs() < 1e-12);
}

#[test]
fn qmr_solves_a_reservoir_with_its_wells_on_either_side() {
    let p = problem::load("reservoir:6x8x7,k=2,wells=3", ReadAs::Expanded).expect("generator");
    let b = problem::right_hand_side(&p, "own").expect("a reservoir has its own");
    for side in [Side::Left, Side::Right] {
        for (precond, fill, level_rule) in [
            ("jacobi", 0, LevelRule::Min),
            ("bilu", 0, LevelRule::Min),
            ("bilu", 1, LevelRule::Min),
            ("bilu", 2, LevelRule::Overwrite),
        ] {
            for format in [Format::Bsr, Format::Bdia, Format::Hyb] {
                let case = Case {
                    solver: "qmr".into(),
                    precond: precond.into(),
                    fill,
                    level_rule,
                    side,
                    format,
                    block_size: 2,
                    rtol: 1e-9,
                    ..Case::default()
                };
                let r = run(&p, &b, &case);
                assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
                assert!(r.convergence.true_residual.unwrap() < 1e-8, "{case:?}");
                let own = run(&p, &b, &Case { solver: "bicgstab".into(), ..case });
                assert_eq!(own.status, Status::Converged, "{:?}", own.reason);
                // matrix and factors are there twice
                assert_eq!(r.traffic.memory_bytes.map(|m| m / 2), own.traffic.memory_bytes);
            }
        }
    }
}

#[test]
fn bicgstab_begins_anew_after_a_breakdown_and_says_so() {
    let solve = |rows: [[f64; 3]; 3], b: [f64; 3], [solver, backend]: [&str; 2]| {
        let cols = (0..3).flat_map(|_| 0..3).collect();
        let p = of(Csr::new(3, 3, vec![0, 3, 6, 9], cols, rows.concat()).unwrap());
        let case = Case {
            solver: solver.into(),
            precond: "none".into(),
            backend: backend.into(),
            threads: 2,
            ..Case::default()
        };
        let r = run(&p, &b, &case);
        (r.status, r.convergence.iterations, r.reason.unwrap())
    };
    for backend in ["cpu", "cpu-mt"] {
        let plain = ["bicgstab", backend];
        let pipelined = ["pipelined-bicgstab", backend];
        // alpha = 1, omega = 1/2, r = (-1, 1, 0) orthogonal to the first residual (0, 0, 2)
        let rows = [[1.0, -2.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let rho = "rho is zero: the shadow residual is orthogonal to the residual";
        for method in [plain, pipelined] {
            let (status, iterations, reason) = solve(rows, [0.0, 0.0, 2.0], method);
            assert_eq!((status, iterations), (Status::Converged, 3), "{method:?} {reason}");
            // the pipelined one finds its denominator zero before
            let why = if method == plain { rho } else { "(r0, A M^-1 p) is zero" };
            let said = format!("began anew after iteration 1: {why}");
            assert!(reason.starts_with(&said), "{reason}");
        }
        // a quarter turn: (r, A r) = 0 for every r
        let rows = [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        let rv = "(r0, A M^-1 p) is zero";
        assert_eq!(
            solve(rows, [1.0, 0.0, 0.0], plain),
            (Status::Breakdown, 2, format!("{rv}; began anew after iteration 1: {rv}"))
        );
        // it knows before the first step
        assert_eq!(
            solve(rows, [1.0, 0.0, 0.0], pipelined),
            (Status::Breakdown, 0, format!("{rv}; began anew after iteration 0: {rv}"))
        );
    }
}

#[test]
fn a_cpu_has_one_execution() {
    let case =
        Case { solver: "bicgstab".into(), execution: Execution::Persistent, ..Case::default() };
    let r = run(&poisson(), &common::random_vector(990, 3), &case);
    assert_eq!(r.status, Status::Unsupported);
    let reason = "there is no execution `persistent` here: the backend computes on a CPU";
    assert_eq!(r.reason.as_deref(), Some(reason));
    let case = Case { solver: "gmres".into(), execution: Execution::Graph, ..case };
    let r = run(&poisson(), &common::random_vector(990, 3), &case);
    assert_eq!(r.reason.as_deref(), Some("there is no replay of `gmres`"));
}

#[test]
fn qmr_has_no_run_with_a_preconditioner_that_has_no_transpose() {
    let case = Case { solver: "qmr".into(), precond: "fgbilu".into(), ..Case::default() };
    let r = run(&poisson(), &common::random_vector(990, 3), &case);
    assert_eq!(r.status, Status::Unsupported);
    let reason = "`qmr` needs the transposed preconditioner, and `fgbilu` has none";
    assert_eq!(r.reason.as_deref(), Some(reason));
}

#[test]
fn qmr_breaks_down_by_name() {
    let solve = |row_ptr: Vec<u32>, cols: Vec<u32>, values: Vec<f64>| {
        let n = row_ptr.len() - 1;
        let p = of(Csr::new(n, n, row_ptr, cols, values).unwrap());
        let mut b = vec![0.0; n];
        b[0] = 1.0;
        let case = Case { solver: "qmr".into(), precond: "none".into(), ..Case::default() };
        let r = run(&p, &b, &case);
        (r.status, r.reason.unwrap())
    };
    // a quarter turn: (q, A p) = (e1, A e1) = 0
    assert_eq!(
        solve(vec![0, 1, 2], vec![1, 0], vec![1.0, -1.0]),
        (Status::Breakdown, "epsilon is zero: (q, A p) vanishes".into())
    );
    // A e1 leaves e1 towards e2, A' e1 towards e3
    assert_eq!(
        solve(vec![0, 2, 4, 5], vec![0, 2, 0, 1, 2], vec![2.0, 1.0, 1.0, 2.0, 2.0]),
        (
            Status::Breakdown,
            "delta is zero: the Lanczos vectors are orthogonal to each other".into()
        )
    );
}

#[test]
fn products_alone_are_measured_in_every_format() {
    let p = problem::load("reservoir:6x8x7,k=2,wells=3", ReadAs::Expanded).expect("generator");
    for backend in ["cpu", "cpu-mt"] {
        for format in
            [Format::Csr, Format::Bsr, Format::Hyb, Format::Sell, Format::Dia, Format::Bdia]
        {
            let kind = RunKind::Spmv;
            let case = Case {
                kind,
                format,
                block_size: 2,
                backend: backend.into(),
                threads: 2,
                ..Case::default()
            };
            let r = run(&p, &[0.0; 675], &case);
            assert_eq!(r.status, Status::Measured, "{format:?}: {:?}", r.reason);
            let t = &r.traffic;
            let (held, moved) = (t.memory_bytes.unwrap(), t.spmv_bytes.unwrap());
            // one row of padding
            assert_eq!((moved - held, r.size.padding, r.times.solve_s), (16 * 676, 1, None));
            let seconds = t.spmv_s.unwrap();
            assert_eq!(t.spmv_gbps, Some(moved as f64 / seconds / 1e9));
            assert_eq!(t.spmv_gflops, Some(2.0 * r.size.nnz as f64 / seconds / 1e9));
            if format == Format::Bdia {
                // 336 cells of 7 blocks; 3 wells of 2 runs of 12; D with the padding, and their words
                let wells = 8 * (3 * 24 + 4) + 4 * (5 + 4 + 3);
                assert_eq!(held, 8 * 336 * 7 * 4 + wells);
            }
        }
    }
    let bad = Case { kind: RunKind::Spmv, format: Format::Bdia, block_size: 3, ..Case::default() };
    let r = run(&p, &[0.0; 675], &bad);
    assert_eq!(r.status, Status::Unsupported);
    assert!(r.reason.unwrap().starts_with("the matrix does not fit `bdia`: row "));
}
