//! Matrices that are symmetric but for rounding: who takes them, and what is said of it.

use std::path::Path;
use std::process::{Command, Output};

use bilu_bench::base::status::Status;
use bilu_bench::bench::run::run_case;
use bilu_bench::case::{Case, ReadAs};
use bilu_bench::config::sampling::Measure;
use bilu_bench::matrix::Csr;
use bilu_bench::matrix::market::{Symmetry, write_matrix};
use bilu_bench::problem;

/// A grid whose entries above the diagonal are larger by a part of themselves.
fn rounded(part: f64) -> Csr {
    let a = problem::load("poisson3d:5x4x3", ReadAs::Expanded).unwrap().matrix;
    let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.rows() {
        for (&j, &v) in a.row(i).0.iter().zip(a.row(i).1) {
            columns.push(j);
            values.push(if j as usize > i { v * (1.0 + part) } else { v });
        }
        row_ptr.push(columns.len() as u32);
    }
    Csr::new(a.rows(), a.cols(), row_ptr, columns, values).unwrap()
}

fn convert(from: &Path, to: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    command.args(["matrix", "convert"]).arg(from).arg(to).arg("--symmetric").args(more);
    command.env("NO_COLOR", "1").env("BILU_BENCH_CACHE", "off").output().unwrap()
}

#[test]
fn methods_for_symmetric_matrices_take_what_rounding_made_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    // one of 6 on the diagonal: relative to the row 1/6 of that
    write_matrix(&path, &rounded(6e-14), Symmetry::General).unwrap();
    let problem = problem::load(path.to_str().unwrap(), ReadAs::Expanded).unwrap();
    let b = vec![1.0; problem.matrix.rows()];
    let run = |solver: &str, precond: &str, symmetry_tolerance: f64| {
        let (solver, precond) = (solver.into(), precond.into());
        let case = Case { solver, precond, symmetry_tolerance, ..Case::default() };
        let measure = Measure { once: true, ..Measure::default() };
        let record = run_case(&case, &problem, &b, &measure, &mut |_| true).unwrap();
        (record.status, record.reason.unwrap_or_default())
    };
    let taken = "asymmetry of 1.0e-14 at (1, 2) taken for rounding, the matrix is used as it is";
    for (solver, precond) in [("cg", "jacobi"), ("gmres", "ic"), ("gmres", "fsai"), ("cg", "ic")] {
        let told = (Status::Converged, taken.to_owned());
        assert_eq!(run(solver, precond, 1e-12), told, "{solver} {precond}");
        let (status, reason) = run(solver, precond, 9e-15);
        assert_eq!(status, Status::Unsupported);
        let method = if solver == "cg" { solver } else { precond };
        let start = format!("`{method}`: the matrix is not symmetric: (1, 2) is -1.0000000000000");
        assert!(reason.starts_with(&start) && reason.ends_with(", 1.0e-14 apart"), "{reason}");
    }
    // who needs no symmetry says nothing of it
    assert_eq!(run("gmres", "bilu", 0.0), (Status::Converged, String::new()));
}

#[test]
fn conversion_averages_within_the_tolerance_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["a.mtx", "b.mtx"].map(|name| folder.path().join(name));
    write_matrix(&from, &rounded(0.25), Symmetry::General).unwrap();
    let refused = convert(&from, &to, &[]);
    assert_eq!((refused.status.code(), to.exists()), (Some(2), false));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(
        told.starts_with(
            "error: the matrix is not symmetric: (1, 2) is -1.25, (2, 1) is -1, 4.2e-2 apart, and the \
             tolerance is 1e-12\n"
        ),
        "{told}"
    );
    let averaged = convert(&from, &to, &["--symmetry-tolerance", "0.05"]);
    assert_eq!(averaged.status.code(), Some(0));
    assert_eq!(
        String::from_utf8(averaged.stderr).unwrap(),
        "remark: asymmetry of 4.2e-2 at (1, 2) taken for rounding, each entry is the mean of both\n"
    );
    let read = problem::load(to.to_str().unwrap(), ReadAs::Expanded).unwrap().matrix;
    assert_eq!((read.asymmetry(), read.get(0, 1)), (None, Some(-1.125)));
}
