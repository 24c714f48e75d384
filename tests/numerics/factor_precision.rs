//! Factors stored in float32: what that does to solvers, to memory, and to factors that do not fit.

use bilu_bench::base::status::Status;
use bilu_bench::case::{Case, FactorPrecision};
use bilu_bench::matrix::Csr;
use bilu_bench::problem::Problem;
use bilu_bench::record::Record;

use crate::cases::{self, load};

fn run(case: &Case, problem: &Problem) -> Record {
    cases::run(problem, &vec![1.0; problem.matrix.rows()], case)
}

/// The same in both precisions.
fn both(case: &Case, problem: &Problem) -> [Record; 2] {
    [FactorPrecision::Float64, FactorPrecision::Float32]
        .map(|factor_precision| run(&Case { factor_precision, ..case.clone() }, problem))
}

#[test]
fn iterations_stay_and_bytes_halve() {
    let problem = load("poisson3d:20");
    for backend in ["cpu", "cpu-mt"] {
        for (block_size, fill) in [(1, 0), (1, 1), (1, 2), (4, 1), (10, 0)] {
            let case = Case {
                block_size,
                fill,
                rtol: 1e-10,
                backend: backend.into(),
                threads: 2,
                ..Case::default()
            };
            let [double, single] = both(&case, &problem);
            for record in [&double, &single] {
                assert_eq!(record.status, Status::Converged, "{record:?}");
                assert!(record.convergence.true_residual.unwrap() < 2e-10, "{record:?}");
            }
            let [many, few] = [&double, &single].map(|r| r.convergence.iterations);
            assert!(many.abs_diff(few) <= 1, "{case:?}: {many} iterations and {few}");
            // but for the indices, half the bytes
            let numbers = double.factor.factor_entries.unwrap();
            let less = |of: fn(&Record) -> usize| of(&double) - of(&single);
            assert_eq!(less(|r| r.traffic.apply_bytes.unwrap()), 4 * numbers);
            assert_eq!(less(|r| r.traffic.memory_bytes.unwrap()), 4 * numbers);
        }
    }
}

#[test]
fn numbers_of_16_bits_cost_two_bytes_and_a_scale_for_each_row() {
    let problem = load("poisson3d:15");
    let n = 15 * 15 * 15;
    for (precond, block_size, fill) in
        [("bilu", 1, 0), ("bilu", 1, 2), ("bilu", 3, 1), ("bilu", 9, 0), ("jacobi", 5, 0)]
    {
        let of = |factor_precision, backend: &str| {
            let (precond, backend) = (precond.into(), backend.into());
            let case = Case { precond, block_size, fill, factor_precision, ..Case::default() };
            run(&Case { backend, threads: 2, rtol: 1e-10, ..case }, &problem)
        };
        let double = of(FactorPrecision::Float64, "cpu");
        for precision in
            [FactorPrecision::Bfloat16, FactorPrecision::Float16, FactorPrecision::Adaptive]
        {
            let short = of(precision, "cpu");
            assert_eq!(short.status, Status::Converged, "{short:?}");
            assert!(short.convergence.true_residual.unwrap() < 2e-10, "{short:?}");
            let [many, few] = [&double, &short].map(|r| r.convergence.iterations);
            assert!(many.abs_diff(few) <= 2, "{block_size} {fill}: {many} and {few}");
            let together = of(precision, "cpu-mt");
            assert_eq!(together.convergence.residual_history, short.convergence.residual_history);
            let numbers = double.factor.factor_entries.unwrap();
            let less = |of: fn(&Record) -> usize| of(&double) - of(&short);
            let (apply, memory) = (
                less(|r| r.traffic.apply_bytes.unwrap()),
                less(|r| r.traffic.memory_bytes.unwrap()),
            );
            assert_eq!(apply, memory);
            if precision == FactorPrecision::Adaptive {
                let all = Some("float16 1.0000".to_owned());
                assert_eq!(short.factor.factor_precisions, all);
                // places, and words that are not full
                let rows = n / block_size;
                assert!(apply <= 6 * numbers - 6 * n - 8 * rows);
                assert!(apply >= 6 * numbers - 6 * n - 8 * rows - 12 * rows);
            } else {
                assert_eq!(apply, 6 * numbers - 6 * n);
                assert_eq!(short.factor.factor_precisions, None);
            }
        }
    }
}

#[test]
fn refinement_reaches_a_residual_that_one_correction_does_not() {
    let problem = load("convdiff3d:12,px=0.3");
    for factor_precision in [FactorPrecision::Float64, FactorPrecision::Float16] {
        for (inner_rtol, fewest) in [(1e-2, 6), (1e-6, 2)] {
            let (solver, rtol) = ("gmres-ir".into(), 1e-12);
            let case = Case { solver, rtol, inner_rtol, factor_precision, ..Case::default() };
            let record = run(&Case { restart: 60, ..case }, &problem);
            assert_eq!(record.status, Status::Converged, "{record:?}");
            assert!(record.convergence.true_residual.unwrap() <= 1.01e-12, "{record:?}");
            let reason = record.reason.unwrap();
            let count =
                reason.strip_suffix(" corrections in float32").unwrap().parse::<usize>().unwrap();
            assert!((fewest..fewest + 2).contains(&count), "{inner_rtol}: {reason}");
        }
    }
}

#[test]
fn diagonal_blocks_alone_are_stored_in_float32_too() {
    let problem = load("poisson3d:12");
    let case = Case { precond: "jacobi".into(), block_size: 3, ..Case::default() };
    let [double, single] = both(&case, &problem);
    assert_eq!([&double, &single].map(|r| r.status), [Status::Converged; 2]);
    let bytes = [double, single].map(|r| r.traffic.apply_bytes.unwrap());
    assert_eq!(bytes[0] - bytes[1], 4 * 12 * 12 * 12 * 3);
}

#[test]
fn factors_beyond_float32_end_the_run_and_name_their_row() {
    let mut problem = load("poisson3d:8");
    let mut a = Csr::clone(&problem.matrix);
    let row = a.row_ptr()[100] as usize..a.row_ptr()[101] as usize;
    a.values_mut()[row].iter_mut().for_each(|v| *v *= 1e-50);
    problem.matrix = a.into();
    for backend in ["cpu", "cpu-mt"] {
        for (block_size, at) in [(1, 100), (4, 25)] {
            let case = Case { block_size, backend: backend.into(), threads: 2, ..Case::default() };
            let [double, single] = both(&case, &problem);
            assert_eq!(single.status, Status::Breakdown);
            assert_ne!(double.reason, single.reason);
            let reason = format!("block row {at} of the factors leaves the range of float32");
            assert_eq!(single.reason, Some(reason));
        }
    }
}
