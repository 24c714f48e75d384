//! Factors stored in float32: what that does to solvers, to memory, and to factors that do not fit.

use bilu_bench::base::status::Status;
use bilu_bench::bench::run::run_case;
use bilu_bench::case::{Case, FactorPrecision, ReadAs};
use bilu_bench::config::sampling::Measure;
use bilu_bench::matrix::Csr;
use bilu_bench::problem::{self, Problem};
use bilu_bench::record::Record;

fn run(case: &Case, problem: &Problem) -> Record {
    let measure = Measure { max_repetitions: 1, ..Measure::default() };
    let b = vec![1.0; problem.matrix.rows()];
    run_case(case, problem, &b, &measure, &mut |_| true).expect("not abandoned")
}

/// The same in both precisions.
fn both(case: &Case, problem: &Problem) -> [Record; 2] {
    [FactorPrecision::Float64, FactorPrecision::Float32]
        .map(|factor_precision| run(&Case { factor_precision, ..case.clone() }, problem))
}

#[test]
fn iterations_stay_and_bytes_halve() {
    let problem = problem::load("poisson3d:20", ReadAs::Expanded).unwrap();
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
fn diagonal_blocks_alone_are_stored_in_float32_too() {
    let problem = problem::load("poisson3d:12", ReadAs::Expanded).unwrap();
    let case = Case { precond: "jacobi".into(), block_size: 3, ..Case::default() };
    let [double, single] = both(&case, &problem);
    assert_eq!([&double, &single].map(|r| r.status), [Status::Converged; 2]);
    let bytes = [double, single].map(|r| r.traffic.apply_bytes.unwrap());
    assert_eq!(bytes[0] - bytes[1], 4 * 12 * 12 * 12 * 3);
}

#[test]
fn factors_beyond_float32_end_the_run_and_name_their_row() {
    let mut problem = problem::load("poisson3d:8", ReadAs::Expanded).unwrap();
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
