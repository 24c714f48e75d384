//! Real systems that the literature's claims about block ILU rest on. They are read from
//! `BILU_BENCH_MATRICES` or `../shared/matrices`; without them the tests say that they are skipped.

use std::path::{Path, PathBuf};

use bilu_bench::base::status::Status;
use bilu_bench::case::{Case, Orthogonalisation, ReadAs, Side};
use bilu_bench::methods::precond;
use bilu_bench::problem::{self, Problem};
use bilu_bench::record::Record;

use crate::cases;

fn folder() -> Option<PathBuf> {
    let given = std::env::var_os("BILU_BENCH_MATRICES").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/matrices");
    given.into_iter().chain([beside]).find(|f| f.is_dir())
}

fn load(name: &str) -> Option<Problem> {
    let Some(folder) = folder() else {
        eprintln!("skipped: no folder of real matrices");
        return None;
    };
    let path = folder.join(format!("{name}.mtx.gz"));
    Some(problem::load(path.to_str().expect("a readable path"), ReadAs::Expanded).expect(name))
}

fn run(problem: &Problem, rhs: &str, case: &Case) -> Record {
    let b = problem::right_hand_side(problem, rhs).expect("right-hand side");
    cases::run(problem, &b, case)
}

fn case(block_size: usize, fill: usize) -> Case {
    Case { block_size, fill, rtol: 1e-8, restart: 30, ..Case::default() }
}

#[test]
fn zero_scalar_diagonals_break_scalar_ilu_and_not_block_ilu() {
    let Some(stored) = load("spe10m1_b3") else { return };
    let zeros = |p: &Problem| {
        (0..p.matrix.rows()).filter(|&i| p.matrix.get(i, i).unwrap_or(0.0) == 0.0).count()
    };
    assert_eq!(zeros(&stored), 1985);
    let nonzeros = stored.clone().without_zeros();
    // on the pattern of the nonzeros a diagonal that is not there stays zero
    let scalar = run(&nonzeros, "ones", &case(1, 0));
    assert_eq!(scalar.status, Status::Breakdown);
    let reason = scalar.reason.expect("says why");
    assert!(reason.contains("has no diagonal entry"), "{reason}");
    for problem in [&stored, &nonzeros] {
        let block = run(problem, "ones", &case(3, 0));
        assert_eq!(block.status, Status::Converged);
        assert!(block.convergence.true_residual.unwrap() < 1e-8);
    }
    // the stored zeros give scalar elimination room inside the blocks: the same factors, PETSc's count
    let settings = Case { restart: 20, ..case(1, 0) };
    assert_eq!(run(&stored, "ones", &settings).convergence.iterations, 418);
}

#[test]
fn one_pass_of_gram_schmidt_is_repeated_often_enough_for_long_restarts() {
    for (name, precond, fill, rtol, restarts) in [
        ("orsreg_1", "jacobi", 0, 1e-8, &[100, 200, 300][..]),
        ("sherman1", "jacobi", 0, 1e-8, &[100, 300]),
        ("bcsstk16", "bilu", 1, 1e-8, &[300]),
    ] {
        let Some(problem) = load(name) else { return };
        for &restart in restarts {
            let iterations = |orthogonalisation| {
                let precond = precond.to_owned();
                let case = Case {
                    precond,
                    restart,
                    orthogonalisation,
                    max_iterations: 2000,
                    rtol,
                    ..case(1, fill)
                };
                let record = run(&problem, "ones", &case);
                assert_eq!(record.status, Status::Converged, "{case:?}: {:?}", record.reason);
                record.convergence.iterations
            };
            let cgs2 = iterations(Orthogonalisation::Cgs2);
            for other in [Orthogonalisation::Cgs, Orthogonalisation::OneReduce] {
                let count = iterations(other);
                let said = format!("{name} restart {restart} {other:?}: {count} beside {cgs2}");
                assert!(count.abs_diff(cgs2) <= 2, "{said}");
            }
        }
    }
}

#[test]
fn one_reduction_a_step_costs_no_iterations() {
    let poisson = cases::load("poisson3d:64");
    let iterations = |orthogonalisation| {
        let settings = Case { orthogonalisation, restart: 20, ..case(1, 0) };
        let record = run(&poisson, "ones", &settings);
        assert_eq!(record.status, Status::Converged, "{:?}", record.reason);
        record.convergence.iterations
    };
    let [one, two] = [Orthogonalisation::OneReduce, Orthogonalisation::Cgs2].map(iterations);
    assert!(one.abs_diff(two) <= 2, "{one} beside {two}");
}

#[test]
fn pipelined_methods_need_few_iterations_more() {
    for (name, [plain, pipelined], precond, rtol) in [
        ("bcsstk16", ["cg", "pipelined-cg"], "ic", 1e-8),
        ("orsreg_1", ["bicgstab", "pipelined-bicgstab"], "bilu", 1e-8),
    ] {
        let Some(problem) = load(name) else { return };
        let iterations = |solver: &str| {
            let (solver, precond) = (solver.into(), precond.into());
            let settings = Case { solver, precond, rtol, ..case(1, 0) };
            let record = run(&problem, "ones", &settings);
            assert_eq!(record.status, Status::Converged, "{settings:?}: {:?}", record.reason);
            record.convergence.iterations
        };
        let [plain, pipelined] = [plain, pipelined].map(iterations);
        assert!(10 * plain.abs_diff(pipelined) <= plain + 20, "{name}: {pipelined} beside {plain}");
    }
}

#[test]
fn a_preconditioned_residual_that_met_its_tolerance_says_so() {
    let Some(problem) = load("orsreg_1") else { return };
    let case = |side| Case { side, rtol: 1e-6, ..case(5, 0) };
    let left = run(&problem, "ones", &case(Side::Left));
    // PETSc's count
    assert_eq!((left.status, left.convergence.iterations), (Status::PreconditionedOnly, 20));
    let [monitored, real] = [left.convergence.monitored_residual, left.convergence.true_residual];
    assert!(monitored.unwrap() <= 1e-6 && real.unwrap() > 1e-4, "{:?}", left.convergence);
    let said = format!(
        "true residual {:.1e} where {:.1e} was monitored, preconditioned",
        real.unwrap(),
        monitored.unwrap()
    );
    assert_eq!(left.reason, Some(said));
    let right = run(&problem, "ones", &case(Side::Right));
    assert_eq!((right.status, right.reason), (Status::Converged, None));
}

#[test]
fn the_norne_box_converges_with_its_own_right_hand_side() {
    let Some(problem) = load("nornebox_b3") else { return };
    for fill in [1, 3] {
        let record = run(&problem, "own", &case(3, fill));
        assert_eq!(record.status, Status::Converged, "k {fill}: {:?}", record.reason);
        assert_eq!((record.size.n, record.size.block_rows), (134_781, 44_927));
        assert!(record.convergence.true_residual.unwrap() < 1e-8);
    }
}

#[test]
fn every_method_solves_the_spe9_system() {
    let Some(problem) = load("spe9cp_b3") else { return };
    for solver in ["gmres", "bicgstab"] {
        for backend in ["cpu", "cpu-mt"] {
            let settings = Case { solver: solver.into(), backend: backend.into(), ..case(3, 0) };
            let record = run(&problem, "own", &settings);
            assert_eq!(record.status, Status::Converged, "{solver} {backend}");
        }
    }
}

#[test]
fn a_matrix_that_is_symmetric_but_for_rounding_is_taken_by_conjugate_gradients() {
    let Some(beam) = load("hypre_beam_hex459_b3") else { return };
    let found = beam.matrix.asymmetry().expect("its entries differ in their last bits");
    assert!(found.relative < 1e-14, "{found}");
    let remark = found.accepted("the matrix is used as it is");
    let mut indefinite = Vec::new();
    let (symmetric, others): (Vec<_>, Vec<_>) =
        precond::all().partition(|spec| precond::symmetric(spec));
    assert_eq!(others, ["ilut", "cpr"]);
    for spec in &symmetric {
        let case = Case { solver: "cg".into(), precond: spec.clone(), ..case(3, 0) };
        let record = run(&beam, "ones", &case);
        let reason = record.reason.unwrap_or_default();
        println!("{spec}: {:?} {} {reason}", record.status, record.convergence.iterations);
        assert!(reason.starts_with(&remark), "{spec}: {reason}");
        if record.status == Status::Breakdown {
            assert!(reason.ends_with("the preconditioner is not positive definite"), "{reason}");
            indefinite.push(spec.clone());
        } else {
            assert_eq!(record.status, Status::Converged, "{spec}: {reason}");
        }
    }
    // incomplete factors of a definite matrix need not be definite
    assert_eq!(indefinite, ["mcilu:p=1"]);
    let strict = Case { solver: "cg".into(), symmetry_tolerance: 0.0, ..case(3, 0) };
    let record = run(&beam, "ones", &strict);
    assert_eq!(
        (record.status, record.reason),
        (Status::Unsupported, Some(format!("`cg`: {found}")))
    );
}
