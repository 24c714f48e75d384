//! Shared by the tests of methods: problems, and runs of one case.

use bilu_bench::bench::run::run_case;
use bilu_bench::case::{Case, ReadAs};
use bilu_bench::config::sampling::Measure;
use bilu_bench::matrix::Csr;
use bilu_bench::problem::{self, Problem};
use bilu_bench::record::Record;

/// The problem of a matrix alone.
pub(crate) fn of(matrix: Csr) -> Problem {
    let (name, matrix) = ("test".into(), matrix.into());
    Problem { name, matrix, grid: None, own_rhs: None, remarks: Vec::new() }
}

/// A generated problem.
pub(crate) fn load(spec: &str) -> Problem {
    problem::load(spec, ReadAs::Expanded).expect("generator")
}

pub(crate) fn poisson() -> Problem {
    load("poisson3d:9x10x11")
}

/// Solves once.
pub(crate) fn run(problem: &Problem, b: &[f64], case: &Case) -> Record {
    run_with_history(problem, b, case, 0)
}

/// The same, with so many residuals in the record.
pub(crate) fn run_with_history(
    problem: &Problem,
    b: &[f64],
    case: &Case,
    history: usize,
) -> Record {
    let measure = Measure { max_repetitions: 1, history, ..Measure::default() };
    run_case(case, problem, b, &measure, &mut |_| true).expect("not cancelled")
}
