//! Fine-grained preconditioners and deflation through the case runner: what is recorded, and what is
//! refused with the test that failed.

use bilu_bench::base::status::Status;
use bilu_bench::case::Case;
use bilu_bench::problem::right_hand_side;
use bilu_bench::record::Record;

use crate::cases::{self, load};

fn run(matrix: &str, rhs: &str, case: Case) -> Record {
    let p = load(matrix);
    let b = right_hand_side(&p, rhs).expect("known");
    let case = Case { matrix: matrix.into(), rhs: rhs.into(), ..case };
    cases::run(&p, &b, &case)
}

fn case(solver: &str, precond: &str, deflation: &str) -> Case {
    Case {
        solver: solver.into(),
        precond: precond.into(),
        deflation: deflation.parse().expect("valid"),
        ..Case::default()
    }
}

/// Status and reason.
fn ended(matrix: &str, case: Case) -> (Status, String) {
    let record = run(matrix, "ones", case);
    (record.status, record.reason.unwrap_or_default())
}

#[test]
fn both_levels_are_recorded_with_their_times() {
    for backend in ["cpu", "cpu-mt"] {
        let at = |precond, deflation| Case {
            backend: backend.into(),
            threads: 2,
            ..case("cg", precond, deflation)
        };
        let spec = "bubbly:20,bubbles=3,radius=0.12";
        for precond in ["mcsgs", "mcilu:p=1", "meilu:last=ilu", "fsai", "tns", "chebyshev", "isai"]
        {
            let plain = run(spec, "own", at(precond, "none"));
            let r = run(spec, "own", at(precond, "levelset-subdomain:2"));
            assert_eq!(
                (plain.status, r.status),
                (Status::Converged, Status::Converged),
                "{precond}"
            );
            assert!(r.convergence.iterations < plain.convergence.iterations, "{precond}");
            assert!(r.convergence.true_residual.unwrap() < 1e-5, "{precond}");
            assert_eq!(plain.factor.deflation_vectors, None);
            assert!(r.factor.deflation_vectors.unwrap() > 8);
            // a busy machine has a remark of its own
            assert!(r.reason.is_none_or(|said| said.starts_with("other processes")), "{precond}");
            let t = &r.times;
            let phases = [t.symbolic_s, t.analysis_s, t.numeric_s, t.deflation_s];
            let sum: f64 = phases.into_iter().flatten().sum();
            assert!(t.deflation_s.unwrap() > 0.0);
            assert!((t.setup_s.unwrap() - sum).abs() < 1e-12, "{precond}");
            assert!(r.traffic.apply_bytes.unwrap() > 0, "{precond}");
        }
    }
}

#[test]
fn quasi_minimal_residuals_take_what_has_a_transpose() {
    for precond in ["mcsgs", "mcilu:p=1", "meilu:last=ilu", "tns", "isai", "sweeps"] {
        let r = run("convdiff3d:8,px=0.5,py=-0.3", "random", case("qmr", precond, "none"));
        let none = run("convdiff3d:8,px=0.5,py=-0.3", "random", case("qmr", "none", "none"));
        assert_eq!((r.status, none.status), (Status::Converged, Status::Converged), "{precond}");
        assert!(r.convergence.true_residual.unwrap() < 1e-5, "{precond}");
        let (with, without) = (r.convergence.iterations, none.convergence.iterations);
        assert!(3 * with < 2 * without, "{precond}: {with} iterations, {without} without");
    }
}

#[test]
fn singular_systems_are_solved_and_say_what_was_left_out() {
    let spec = "bubbly:12,bubbles=1,radius=0.2,boundary=neumann";
    let r = run(spec, "own", case("cg", "mcsgs", "subdomain:2"));
    assert_eq!((r.status, r.factor.deflation_vectors), (Status::Converged, Some(7)));
    assert_eq!(r.reason.unwrap(), "A is singular: the last deflation vector is left out");
}

#[test]
fn what_does_not_suit_is_a_row_with_its_reason() {
    let unsupported = |reason: &str| (Status::Unsupported, reason.to_owned());
    let breakdown = |reason: &str| (Status::Breakdown, reason.to_owned());
    let (skew, indefinite) = ("convdiff3d:4,px=0.5", "convdiff3d:4,sigma=-6.5");
    let asymmetric = "the matrix is not symmetric: (1, 2) is -0.5, (2, 1) is -1.5, 1.7e-1 apart";
    assert_eq!(
        ended(skew, case("cg", "jacobi", "none")),
        unsupported(&format!("`cg`: {asymmetric}"))
    );
    for precond in ["fsai", "ic"] {
        let reason = format!("`{precond}`: {asymmetric}");
        assert_eq!(ended(skew, case("gmres", precond, "none")), unsupported(&reason));
    }
    assert_eq!(
        ended("poisson3d:4", case("cg", "spai", "none")),
        unsupported("`cg` needs a symmetric preconditioner, and `spai` is none")
    );
    assert_eq!(
        ended(indefinite, case("gmres", "fsai", "none")),
        breakdown(
            "the matrix is not positive definite: pivot -5.000e-1 of unknown 1 in the system of row 1"
        )
    );
    assert_eq!(
        ended(indefinite, case("gmres", "ic", "none")),
        breakdown("incomplete Cholesky is not positive definite: pivot -5.000e-1 of unknown 1")
    );
    assert_eq!(
        ended(indefinite, case("cg", "none", "none")),
        breakdown("(p, A p) is not positive: the matrix is not positive definite")
    );
    assert_eq!(
        ended("poisson3d:3", case("cg", "none", "subdomain:4")),
        unsupported("64 deflation vectors for 27 rows")
    );
    assert_eq!(
        ended("poisson3d:4", case("qmr", "none", "subdomain:2")),
        unsupported("`qmr` needs the transposed preconditioner, and deflation has none")
    );
    assert_eq!(
        ended("poisson3d:4", case("pipelined-cg", "none", "subdomain:2")),
        unsupported(
            "`pipelined-cg` needs a symmetric preconditioner, and with deflation there is none"
        )
    );
    assert_eq!(
        ended("poisson3d:4", case("qmr", "chebyshev", "none")),
        unsupported("`qmr` needs the transposed preconditioner, and `chebyshev` has none")
    );
}
