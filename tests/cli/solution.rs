//! `--solution`: the x that a file holds solves the system of the file that was read.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use bilu_bench::case::ReadAs;
use bilu_bench::matrix::{Csr, market};
use bilu_bench::problem::{load, right_hand_side};
use bilu_bench::record::read::read;

use crate::common::program::text;

fn program(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1").current_dir(folder).args(arguments).output().unwrap()
}

/// Standard error of a call that must end with `code`.
fn said(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = program(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    text(&output.stderr)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The numbers of a `.npy` file behind its head.
fn npy(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap();
    let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[head..].chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
}

fn residual(a: &Csr, b: &[f64], x: &[f64]) -> f64 {
    let mut product = vec![0.0; b.len()];
    a.multiply(x, &mut product);
    let largest = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    // squares of small numbers are zero
    let norm =
        |v: &mut dyn Iterator<Item = f64>| v.map(|v| (v / largest).powi(2)).sum::<f64>().sqrt();
    norm(&mut b.iter().zip(&product).map(|(b, p)| b - p)) / norm(&mut b.iter().copied())
}

#[test]
fn a_solution_is_that_of_the_source_whatever_the_order_the_blocks_and_the_scale() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let problem = load("convdiff3d:7", ReadAs::Expanded).unwrap();
    let mut b = right_hand_side(&problem, "random").unwrap();
    // the methods see it times a power of two
    for v in &mut b {
        *v *= 1e-170;
    }
    market::write_vector(&at.join("b.mtx"), &b).unwrap();
    let sweep = ["run", "--matrix", "convdiff3d:7", "--rhs", "file:b.mtx", "--rtol", "1e-9", "-q"];
    let axes = ["--ordering", "natural,random:2,rcm", "--block-size", "1,5", "-o", "r.csv"];
    let pattern = ["--solution", "x-{ordering}-b{block-size}.npy", "--max-repetitions", "1"];
    said(at, &[&sweep[..], &axes, &pattern].concat(), 0);
    let records = read(&at.join("r.csv")).unwrap().records;
    assert_eq!(records.len(), 6);
    for record in &records {
        let (order, block) = (record.case.ordering.to_string(), record.case.block_size);
        let x = npy(&at.join(format!("x-{order}-b{block}.npy")));
        assert_eq!(x.len(), 343, "no padding");
        let found = residual(&problem.matrix, &b, &x);
        assert!(found > 0.0 && found < 2e-9, "{order} {block}: {found:e}");
        // that of the record but for rounding: there it is worked out in the other order
        let recorded = record.convergence.true_residual.unwrap();
        assert!((found / recorded - 1.0).abs() < 1e-3, "{found:e} {recorded:e}");
    }
    // a process of its own writes the same bits, in the other form too
    let child = ["--isolate", "--ordering", "rcm", "--block-size", "5", "--max-repetitions", "1"];
    for name in ["y{{}}.npy", "y.mtx"] {
        said(at, &[&sweep[..], &child, &["--solution", name]].concat(), 0);
    }
    let bits = |x: &[f64]| x.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let whole = bits(&npy(&at.join("x-rcm-b5.npy")));
    assert_eq!(bits(&npy(&at.join("y{}.npy"))), whole);
    assert_eq!(bits(&market::read_vector(&at.join("y.mtx"), None).unwrap().values), whole);
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run = |more: &[&str]| {
        let base = ["run", "--matrix", "poisson3d:4", "--max-repetitions", "1"];
        said(at, &[&base[..], more].concat(), 2)
    };
    assert_eq!(
        run(&["--fill", "0..1", "--solution", "x.npy", "-o", "a.csv"]),
        "error: --solution: one file, `x.npy`, for the solutions of 2 cases\n\
         hint: name what varies, `x-{fill}.npy`, or number them, `x-{case}.npy`\n"
    );
    assert_eq!(
        run(&["--fill", "0..1", "--solution", "x-{precond}.mtx", "-o", "a.csv"]),
        "error: --solution: cases 1 and 2 would both be written to `x-bilu.mtx`\n\
         hint: name what varies, `x-{fill}.mtx`, or number them, `x-{case}.mtx`\n"
    );
    assert_eq!(
        run(&["--solution", "x.dat"]),
        "error: --solution: `x.dat` has no ending of a solution\n\
         hint: `.npy` is an array of NumPy, `.mtx` or `.mtx.gz` one of Matrix Market\n"
    );
    assert!(files(at).is_empty(), "{:?}", files(at));
    std::fs::write(at.join("x.npy"), "mine").unwrap();
    assert_eq!(
        run(&["--solution", "x.npy"]),
        "error: --solution: `x.npy` exists already\nhint: --force overwrites it\n"
    );
    said(at, &["matrix", "generate", "poisson3d:4", "-o", "a.mtx", "--rhs", "ones"], 0);
    let before = std::fs::read(at.join("a_rhs.mtx")).unwrap();
    let own = ["run", "--matrix", "a.mtx", "--rhs", "own", "--solution", "a_rhs.mtx", "--force"];
    assert_eq!(
        said(at, &own, 2),
        "error: --solution: `a_rhs.mtx` is read by this run\nhint: write to another file\n"
    );
    assert_eq!(std::fs::read(at.join("a_rhs.mtx")).unwrap(), before);
    assert_eq!(files(at), ["a.mtx", "a_rhs.mtx", "x.npy"]);
    let force = ["run", "--matrix", "poisson3d:4", "--solution", "x.npy", "--force", "-q"];
    said(at, &force, 0);
    assert_eq!(npy(&at.join("x.npy")).len(), 64);
}

#[test]
fn a_case_without_a_solution_writes_none_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // the second block of rows has no pivot: block Jacobi breaks down, no preconditioner does not
    let entries = "1 1 2.0\n2 3 1.0\n3 2 1.0\n";
    let file = format!("%%MatrixMarket matrix coordinate real general\n3 3 3\n{entries}");
    std::fs::write(at.join("a.mtx"), file).unwrap();
    for more in [&[][..], &["--isolate"]] {
        let base = ["run", "--matrix", "a.mtx", "--precond", "jacobi,none", "-q", "-o", "r.csv"];
        let files_of = ["--solution", "x-{precond}.npy", "--max-repetitions", "1", "--force"];
        let said = said(at, &[&base[..], &files_of, more].concat(), 1);
        assert!(said.starts_with("note: no solution for `x-jacobi.npy`: breakdown: "), "{said}");
        assert_eq!(files(at), ["a.mtx", "r.csv", "x-none.npy"]);
        let x = npy(&at.join("x-none.npy"));
        assert!(x.iter().zip([0.5, 1.0, 1.0]).all(|(x, y)| (x - y).abs() < 1e-14), "{x:?}");
        std::fs::remove_file(at.join("x-none.npy")).unwrap();
    }
    // finished cases are not run again for the sake of a file
    let again = ["run", "--matrix", "a.mtx", "--precond", "none", "-q", "-o", "r.csv", "--resume"];
    let said = said(at, &[&again[..], &["--solution", "x.npy"]].concat(), 0);
    assert!(
        said.contains("note: `x.npy`: not written, the case is finished and not run again\n"),
        "{said}"
    );
    assert_eq!(files(at), ["a.mtx", "r.csv"]);
}

#[test]
fn tables_of_a_paper_number_their_solutions_through() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let table = ["reproduce", "yang/table1", "--scale", "5", "--backend", "cpu", "-q"];
    let error = said(at, &[&table[..], &["--solution", "x.npy"]].concat(), 2);
    assert!(error.contains("one file, `x.npy`, for the solutions of "), "{error}");
    let only = ["--only", "fill=0..1", "--max-repetitions", "1", "-o", "r.csv"];
    let output = program(at, &[&table[..], &only, &["--solution", "x-{case}.npy"]].concat());
    let records = read(&at.join("r.csv")).unwrap().records;
    assert!(records.len() > 1, "{}", text(&output.stderr));
    for (i, record) in records.iter().enumerate() {
        let problem = load(&record.case.matrix, ReadAs::Expanded).unwrap();
        let b = right_hand_side(&problem, &record.case.rhs).unwrap();
        let x = npy(&at.join(format!("x-{}.npy", i + 1)));
        let recorded = record.convergence.true_residual.unwrap();
        let found = residual(&problem.matrix, &b, &x);
        assert!((found / recorded - 1.0).abs() < 1e-6, "{found:e} {recorded:e}");
    }
}

#[test]
fn obstacle_problems_have_solutions_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let base = ["obstacle", "-q", "--m", "9", "--epsilon", "1e-9", "--obstacle", "flat:-0.0001"];
    let two = ["--backend", "cpu,cpu-mt"];
    let error = said(at, &[&base[..], &two, &["--solution", "u.npy"]].concat(), 2);
    assert_eq!(
        error,
        "error: --solution: one file, `u.npy`, for the solutions of 2 cases\n\
         hint: name what varies, `u-{backend}.npy`, or number them, `u-{case}.npy`\n"
    );
    said(at, &[&base[..], &two, &["--solution", "u-{backend}.npy"]].concat(), 0);
    let (one, all) = (npy(&at.join("u-cpu.npy")), npy(&at.join("u-cpu-mt.npy")));
    assert_eq!(one.len(), 729);
    // each in its own parts, with the same bits; some points lie on the obstacle, others do not
    assert_eq!(one, all);
    let contact = one.iter().filter(|u| **u == -1e-4).count();
    assert!(contact > 0 && contact < 729, "{contact}");
    assert!(one.iter().all(|u| *u >= -1e-4));
    let error = said(at, &[&base[..], &["--backend", "mpi", "--solution", "u.mtx"]].concat(), 2);
    assert_eq!(
        error,
        "error: --solution: the ranks of `mpi` keep no solution\n\
         hint: `cpu`, `cpu-mt` and `cuda` do\n"
    );
}

/// The code of the documentation in these fences.
fn example(language: &str) -> String {
    let page = include_str!("../../docs/usage.md");
    let (_, section) = page.split_once("\n## Solutions\n").expect("a section of solutions");
    let (_, code) = section.split_once(&format!("```{language}\n")).expect("an example");
    code.split_once("```").expect("an end").0.to_owned()
}

#[test]
fn scipy_finds_the_residual_that_the_documentation_promises() {
    let python = std::env::var("BILU_BENCH_PYTHON").unwrap_or_else(|_| "python3".into());
    let scipy = std::process::Command::new(&python).args(["-c", "import scipy.io"]).output();
    if !scipy.is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("BILU_BENCH_REQUIRE_SCIPY").is_none(),
            "BILU_BENCH_REQUIRE_SCIPY is set, and {python} has no SciPy"
        );
        eprintln!("skipped: {python} has no SciPy");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for line in example("sh").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[0], "bilu-bench");
        said(at, &words[1..], 0);
    }
    let script: PathBuf = at.join("check.py");
    std::fs::write(&script, example("python")).unwrap();
    let output = std::process::Command::new(&python).arg(&script).current_dir(at).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: f64 = text(&output.stdout).trim().parse().unwrap();
    assert!(found > 1e-9 && found <= 1e-6, "{found:e}");
}
