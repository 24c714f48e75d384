//! Every way a solve can end: exactly, at a limit, in a breakdown, refused or abandoned.

use bilu_bench::base::status::Status;
use bilu_bench::bench::run::{Stage, run_case};
use bilu_bench::case::{Case, Execution, Orthogonalisation, Setting, Side};
use bilu_bench::config::sampling::Measure;
use bilu_bench::matrix::Csr;
use bilu_bench::methods::registry;
use bilu_bench::problem;

use crate::cases::{load, of, poisson, run};
use crate::common;

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
    let p = load("poisson3d:8");
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
