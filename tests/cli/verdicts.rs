//! What `run` and `advise` call solved: true residuals, right-hand sides of any size, no tolerance.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use bilu_bench::base::status::Status;
use bilu_bench::config::Experiment;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;

use crate::common::program::text;

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    command.env("NO_COLOR", "1").stdin(Stdio::null()).args(arguments).output().unwrap()
}

/// Records of `run` with one repetition, which ends with `code`.
fn records(folder: &Path, arguments: &[&str], code: i32) -> Vec<Record> {
    let file = folder.join("records.csv");
    if file.exists() {
        std::fs::remove_file(&file).unwrap();
    }
    let path = file.display().to_string();
    let mut all = vec!["run", "-q", "--max-repetitions", "1", "-o", &path];
    all.extend(arguments);
    let output = program(&all);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    read(&file).unwrap().records
}

/// A matrix whose rows have sizes from 1 to 1e12: its preconditioned residual is not its true one.
fn scaled(folder: &Path) -> String {
    let n: i32 = 40;
    let mut entries = String::new();
    for i in 0..n {
        for j in (i - 1).max(0)..=(i + 1).min(n - 1) {
            let value = if i == j { 2.5 } else { -1.0 };
            writeln!(entries, "{} {} {value}e{}", i + 1, j + 1, i * 12 / (n - 1)).unwrap();
        }
    }
    let head = "%%MatrixMarket matrix coordinate real general";
    let path = folder.join("scaled.mtx");
    std::fs::write(&path, format!("{head}\n{n} {n} {}\n{entries}", 3 * n - 2)).unwrap();
    path.display().to_string()
}

/// The right-hand side whose 125 entries are all `value`, for `poisson3d:5`.
fn all_of(folder: &Path, value: &str) -> String {
    let path = folder.join("rhs.mtx");
    let head = "%%MatrixMarket matrix array real general\n125 1\n";
    std::fs::write(&path, format!("{head}{}", format!("{value}\n").repeat(125))).unwrap();
    format!("file:{}", path.display())
}

#[test]
fn a_preconditioned_residual_far_from_the_true_one_is_no_convergence() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = scaled(folder.path());
    let case = ["--matrix", &matrix, "--precond", "jacobi", "--side", "left,right"];
    let rows = records(folder.path(), &case, 1);
    let statuses: Vec<Status> = rows.iter().map(|r| r.status).collect();
    assert_eq!(statuses, [Status::FalseConvergence, Status::Converged]);
    let left = &rows[0].convergence;
    assert!(left.true_residual.unwrap() > 1.0 && left.monitored_residual.unwrap() < 1e-6);
    let reason = rows[0].reason.as_deref().unwrap();
    assert!(reason.starts_with("true residual 4.1e0 where "), "{reason}");
    assert!(reason.ends_with("was monitored, preconditioned"), "{reason}");
    assert!(rows[1].convergence.true_residual.unwrap() < 1e-6);
}

#[test]
fn advice_is_as_accurate_as_the_tolerance() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = scaled(folder.path());
    let toml = folder.path().join("best.toml");
    let output = toml.display().to_string();
    let mut all = vec!["advise", &matrix, "-q", "--time-budget", "5", "-o", &output];
    // on the left it needs a ninth of the iterations
    let set = ["side=left,right", "solver=gmres", "precond=jacobi", "backend=cpu", "block-size=1"];
    all.extend(set.iter().flat_map(|word| ["--set", word]));
    let output = program(&all);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (cases, _) = Experiment::open(&toml).unwrap().cases().unwrap();
    assert_eq!(cases[0].side, bilu_bench::case::Side::Right);
}

#[test]
fn right_hand_sides_of_any_size_have_the_same_iterations() {
    let folder = tempfile::tempdir().unwrap();
    let solve = |value: &str| {
        let rhs = all_of(folder.path(), value);
        let solvers = "gmres,cg,bicgstab,qmr,correction";
        let case = ["--matrix", "poisson3d:5", "--rhs", &rhs, "--history", "1"];
        records(folder.path(), &[&case[..], &["--solver", solvers]].concat(), 0)
    };
    let of =
        |rows: &[Record]| -> Vec<usize> { rows.iter().map(|r| r.convergence.iterations).collect() };
    let plain = solve("1");
    assert!(plain.iter().all(|r| r.reason.is_none()));
    for value in ["1e-162", "1e-160", "5e-324", "1e155", "1.7e308"] {
        let rows = solve(value);
        assert_eq!(of(&rows), of(&plain), "{value}");
        let one: f64 = value.parse().unwrap();
        for row in &rows {
            assert_eq!(row.status, Status::Converged, "{value}: {:?}", row.reason);
            let residual = row.convergence.true_residual.unwrap();
            assert!(residual > 0.0 && residual < 1e-5, "{value}: {residual:e}");
            assert!(row.reason.as_deref().unwrap().starts_with("right-hand side scaled by 2^"));
            // the norm of what was given, where there is one
            let first = row.convergence.residual_history.first();
            match first {
                Some(norm) => assert!((norm / one / 125_f64.sqrt() - 1.0).abs() < 0.2, "{norm:e}"),
                None => assert_eq!(value, "1.7e308"),
            }
        }
    }
}

/// `poisson3d:6` and a right-hand side with A times `factor`, and 1 for each row of the latter.
fn times(folder: &Path, factor: f64) -> String {
    let p = bilu_bench::problem::load("poisson3d:6", bilu_bench::case::ReadAs::Expanded).unwrap();
    let a = p.matrix;
    let mut text = format!(
        "%%MatrixMarket matrix coordinate real general\n{} {} {}\n",
        a.rows(),
        a.cols(),
        a.nnz()
    );
    for i in 0..a.rows() {
        let (cols, values) = a.row(i);
        for (j, v) in cols.iter().zip(values) {
            writeln!(text, "{} {} {:e}", i + 1, j + 1, v * factor).unwrap();
        }
    }
    let path = folder.join("times.mtx");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn matrices_of_any_size_have_the_same_iterations() {
    let folder = tempfile::tempdir().unwrap();
    let solve = |factor: f64, more: &[&str]| {
        let matrix = times(folder.path(), factor);
        let case = ["--matrix", &matrix, "--history", "1"];
        records(folder.path(), &[&case[..], more].concat(), 0)
    };
    let sweeps: [&[&str]; 2] = [
        &["--solver", "gmres,cg,bicgstab,qmr", "--precond", "none,bilu", "--shift", "0.01"],
        &["--solver", "gmres", "--side", "left", "--precond", "jacobi", "--rhs", "a-ones"],
    ];
    for sweep in sweeps {
        let plain = solve(1.0, sweep);
        assert!(plain.iter().all(|r| r.reason.is_none()));
        for factor in [1e-160, 1e200, 2.0_f64.powi(600), 2.0_f64.powi(-1000)] {
            let rows = solve(factor, sweep);
            assert_eq!(rows.len(), plain.len());
            for (row, plain) in rows.iter().zip(&plain) {
                let what = format!("{} {} {factor:e}", row.case.solver, row.case.precond);
                let of = |r: &Record| (r.status, r.convergence.iterations);
                assert_eq!(of(row), of(plain), "{what}");
                let [scaled, one] = [row, plain].map(|r| r.convergence.true_residual.unwrap());
                // other factors round the entries
                let off = if factor.log2().fract() == 0.0 { 1.000_001 } else { 10.0 };
                assert!(scaled / one < off && one / scaled < off, "{what}: {scaled:e} {one:e}");
                let reason = row.reason.as_deref().unwrap();
                assert!(reason.starts_with("matrix scaled by 2^"), "{what}: {reason}");
                // the norm of b, or of M^-1 b = 1 on the left
                let [scaled, one] = [row, plain].map(|r| r.convergence.residual_history[0]);
                assert!((scaled / one - 1.0).abs() < 1e-12, "{what}: {scaled:e} {one:e}");
            }
        }
    }
}

#[test]
fn without_a_tolerance_iterations_go_on_while_there_is_anything_left() {
    let folder = tempfile::tempdir().unwrap();
    let solvers = "gmres,cg,bicgstab,qmr,correction";
    let case = ["--matrix", "poisson3d:6", "--rtol", "0", "--solver", solvers];
    let rows = records(folder.path(), &[&case[..], &["--max-iterations", "300"]].concat(), 0);
    assert_eq!(rows.len(), 5);
    for row in rows {
        let of = &row.convergence;
        assert_eq!(row.status, Status::Complete, "{}: {:?}", row.case.solver, row.reason);
        assert!(of.true_residual.unwrap() < 1e-13);
        if of.iterations < 300 {
            let said = format!("nothing left to iterate after {} of 300 it", of.iterations);
            assert!(row.reason.unwrap().starts_with(&said));
            assert!(of.monitored_residual.unwrap() < 1e-15);
        } else {
            assert_eq!(row.reason, None);
        }
    }
    let refused = program(&["run", "--rtol", "1e-400"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("`1e-400` is too small for float64"));
}
