//! `run` and `reproduce` with the real solvers: result files, resuming, Ctrl-C, full disks, reports.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use bilu_bench::base::status::Status;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;
use bilu_bench::record::schema::SystemSize;

use crate::common::program::text;

fn bilu() -> Command {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1").args(["run", "--max-repetitions", "1"]);
    command
}

fn ran(command: &mut Command, code: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    output
}

fn records(path: &Path) -> Vec<Record> {
    let contents = read(path).unwrap();
    assert!(!contents.cut_off, "{}", path.display());
    contents.records
}

/// What must not depend on how a run went.
fn stable(records: &[Record]) -> Vec<(String, usize, Status, Option<usize>)> {
    let of = |r: &Record| {
        (format!("{:?}", r.case), r.convergence.iterations, r.status, r.factor.factor_blocks)
    };
    records.iter().map(of).collect()
}

#[test]
fn every_file_holds_every_case_and_the_table_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        ["a.csv", "a.jsonl", "a.json", "a.md"].iter().map(|n| folder.path().join(n)).collect();
    let mut command = bilu();
    command.args(["--matrix", "poisson3d:12", "--fill", "0..1", "--block-size", "1,2"]);
    for path in &paths {
        command.arg("-o").arg(path);
    }
    let output = ran(&mut command, 0);
    let rows = records(&paths[0]);
    let cases: Vec<_> = rows.iter().map(|r| (r.case.block_size, r.case.fill)).collect();
    assert_eq!(cases, [(1, 0), (1, 1), (2, 0), (2, 1)]);
    assert!(rows.iter().all(|r| r.status == Status::Converged && r.size.n == 1728));
    assert!(rows[1].convergence.iterations < rows[0].convergence.iterations);
    assert!(rows.iter().all(|r| !r.environment.cpu.is_empty() && r.environment.threads == 1));
    // storing the matrix is timed apart; a CPU compiles no kernels and has one algorithm of triangular solves
    assert!(rows.iter().all(|r| r.times.compile_s.is_none()));
    assert!(rows.iter().all(|r| r.times.matrix_s.is_some_and(|s| s > 0.0)));
    assert!(rows.iter().all(|r| r.factor.trisolve_used.is_none()));
    let setup = |r: &Record| [r.times.symbolic_s, r.times.analysis_s, r.times.numeric_s];
    assert!(rows.iter().all(|r| r.times.setup_s == Some(setup(r).into_iter().flatten().sum())));
    assert_eq!(rows, records(&paths[1]));
    assert_eq!(rows, records(&paths[2]));
    let markdown = std::fs::read_to_string(&paths[3]).unwrap();
    assert_eq!(markdown.lines().filter(|l| l.starts_with('|')).count(), 6, "{markdown}");
    let table = text(&output.stdout);
    assert!(table.starts_with("poisson3d:12, n = 1,728, nnz = 11,232, rhs ones, gmres(20), bilu"));
    assert_eq!(text(&output.stderr).lines().count(), 4, "one line per case");
    let first = format!(
        "[1/4] poisson3d:12, gmres, bilu, block size 1, k = 0, cpu: {} iterations",
        rows[0].convergence.iterations
    );
    assert!(text(&output.stderr).starts_with(&first), "{}", text(&output.stderr));
}

#[test]
fn a_reordered_system_is_the_same_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let mut command = bilu();
    command.args([
        "--matrix",
        "poisson3d:12",
        "--ordering",
        "natural,random:3",
        "--block-size",
        "1,5",
    ]);
    command.args(["--rhs", "random", "--precond", "none,bilu", "--rtol", "1e-9"]);
    let output = ran(command.arg("-o").arg(&path), 0);
    let rows = records(&path);
    let orders: Vec<String> = rows.iter().map(|r| r.case.ordering.to_string()).collect();
    assert_eq!(orders, [["natural"; 4], ["random:3"; 4]].concat());
    for (natural, random) in rows[..4].iter().zip(&rows[4..]) {
        let without = natural.case.precond == "none";
        // the Krylov space does not know the order: rounding alone may cost an iteration
        let iterations = [natural, random].map(|r| r.convergence.iterations);
        let differ = iterations[0].abs_diff(iterations[1]);
        assert!(if without { differ <= 1 } else { differ > 1 }, "{iterations:?}");
        let levels = [natural, random].map(|r| r.factor.levels_lower);
        assert!(without || levels[1] < levels[0], "{levels:?}");
        assert_eq!(
            natural.size,
            SystemSize { matrix_blocks: natural.size.matrix_blocks, ..random.size.clone() }
        );
    }
    assert!(text(&output.stdout).contains("random:3"), "{}", text(&output.stdout));
}

#[test]
fn flags_and_file_run_the_same_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let toml = folder.path().join("x.toml");
    std::fs::write(
        &toml,
        "title = 'Same'\n[[sweep]]\nmatrix = 'poisson3d:8'\nfill = '0..2'\nsolver = ['gmres', 'cg']\n",
    )
    .unwrap();
    let (a, b) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    let output = ran(bilu().arg(&toml).arg("-o").arg(&a).arg("-q"), 0);
    assert!(text(&output.stdout).starts_with("Same\n"));
    assert_eq!(text(&output.stderr), "");
    let flags = ["--matrix", "poisson3d:8", "--fill", "0..2", "--solver", "gmres,cg", "-q", "-o"];
    ran(bilu().args(flags).arg(&b), 0);
    assert_eq!(stable(&records(&a)), stable(&records(&b)));
}

#[test]
fn only_keeps_cases_of_each_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let (experiment, path) = (folder.path().join("a.toml"), folder.path().join("a.csv"));
    let sweeps = "[[sweep]]\nmatrix = \"poisson3d:4\"\nfill = \"0..1\"\n\
                  [[sweep]]\nmatrix = \"poisson3d:5\"\nfill = 1\nsolver = [\"cg\", \"gmres\"]\n";
    std::fs::write(&experiment, sweeps).unwrap();
    let only = |word: &str| {
        let mut command = bilu();
        command.arg(&experiment).args(["--only", word, "--force", "-o"]).arg(&path);
        command
    };
    ran(&mut only("fill=1,2"), 0);
    let cases = |r: &Record| (r.case.matrix.clone(), r.case.fill, r.case.solver.clone());
    let found: Vec<_> = records(&path).iter().map(cases).collect();
    let of = |matrix: &str, solver: &str| (matrix.to_owned(), 1, solver.to_owned());
    let all = [of("poisson3d:4", "gmres"), of("poisson3d:5", "cg"), of("poisson3d:5", "gmres")];
    assert_eq!(found, all);
    for (word, why) in [
        ("fill=3", "--only: none of the 4 cases has these values"),
        ("fill", "--only: `fill` is not SETTING=VALUES"),
        ("filll=3", "--only: unknown setting `filll`"),
    ] {
        let output = ran(&mut only(word), 2);
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    assert_eq!(records(&path).len(), 3, "nothing was overwritten");
}

#[test]
fn resume_runs_only_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.jsonl"] {
        let path = folder.path().join(name);
        let command = |fills: &str, more: &[&str]| {
            let mut command = bilu();
            command.args(["--matrix", "poisson3d:8", "--fill", fills, "-o"]).arg(&path).args(more);
            command
        };
        ran(&mut command("0..2", &[]), 0);
        let before = records(&path);
        ran(&mut command("0..2", &[]), 2);
        assert_eq!(records(&path), before);
        // cut the last record in half, as a crash might
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
        let output = ran(&mut command("0..3", &["--resume"]), 0);
        let message = text(&output.stderr);
        assert!(message.contains("the last record was cut off and is dropped"), "{message}");
        assert!(message.contains("2 of 4 cases are finished already"), "{message}");
        let after = records(&path);
        assert_eq!(after[..2], before[..2]);
        assert_eq!(after.iter().map(|r| r.case.fill).collect::<Vec<_>>(), [0, 1, 2, 3]);
        ran(&mut command("0..1", &["--force"]), 0);
        assert_eq!(records(&path).len(), 2);
    }
}

#[test]
fn failed_cases_are_rows_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let mut command = bilu();
    command.args(["--matrix", "poisson3d:12", "--max-iterations", "3,500", "-o"]).arg(&path);
    let output = ran(&mut command, 1);
    let rows = records(&path);
    assert_eq!(rows[0].status, Status::NotConverged);
    assert_eq!((rows[0].convergence.iterations, rows[1].status), (3, Status::Converged));
    assert!(text(&output.stdout).contains("! not-converged"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).ends_with("1 of 2 cases did not converge\n"));
}

#[test]
fn a_matrix_that_does_not_exist_is_known_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let mut command = bilu();
    command.args(["--matrix", "poisson3d:8,no/such.mtx", "-o"]).arg(&path);
    let output = ran(&mut command, 2);
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("no/such.mtx"), "{}", text(&output.stderr));
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_run_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (full, good) = (folder.path().join("full.jsonl"), folder.path().join("good.jsonl"));
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let mut command = bilu();
    command.args(["--matrix", "poisson3d:8", "-q", "-o"]).arg(&good).arg("-o").arg(&full);
    let output = ran(&mut command, 2);
    assert_eq!(
        text(&output.stderr),
        format!(
            "error: cannot write `{}`: No space left on device (os error 28)\n\
             hint: the disk is full; records written before are whole, continue with --resume\n",
            full.display()
        )
    );
    assert_eq!(records(&good).len(), 1);
}

/// Starts a sweep of many short cases and waits until some of them are in `path`.
#[cfg(unix)]
fn started(path: &Path) -> std::process::Child {
    let program = Command::cargo_bin("bilu-bench").unwrap().get_program().to_owned();
    let child = std::process::Command::new(program)
        .env("NO_COLOR", "1")
        .args(long(path))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while read(path).map_or(0, |c| c.records.len()) < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "no record in a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[cfg(unix)]
const LONG: usize = 300;

#[cfg(unix)]
fn long(path: &Path) -> Vec<String> {
    let words = format!(
        "run --matrix poisson3d:10 --restart 5..304 --max-repetitions 1 -o {}",
        path.display()
    );
    words.split(' ').map(str::to_owned).collect()
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let status =
        std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_valid_file_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let child = started(&path);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    let last = message.lines().last().unwrap();
    assert_eq!(
        last,
        format!(
            "stopped; finished cases are in `{}`; the same command with --resume goes on",
            path.display()
        )
    );
    let before = records(&path);
    assert!(before.len() < LONG, "stopped before the end");
    let mut again = Command::cargo_bin("bilu-bench").unwrap();
    ran(again.args(long(&path)).args(["--resume", "-q"]), 0);
    let after = records(&path);
    assert_eq!((after.len(), &after[..before.len()]), (LONG, &before[..]));
}

#[cfg(unix)]
#[test]
fn a_killed_run_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut child = started(&path);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = read(&path).unwrap().records;
    assert!((3..LONG).contains(&before.len()));
    let mut again = Command::cargo_bin("bilu-bench").unwrap();
    ran(again.args(long(&path)).args(["--resume", "-q"]), 0);
    let after = records(&path);
    assert_eq!((after.len(), &after[..before.len()]), (LONG, &before[..]));
}

#[test]
fn a_paper_on_a_smaller_grid_is_shown_without_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.args(["reproduce", "yang/table1", "--scale", "12", "--max-repetitions", "1"]);
    command.args(["--backend", "cpu,cpu-mt", "-o"]);
    let output = ran(command.arg(&path), 0);
    let table = text(&output.stdout);
    assert!(table.starts_with("Yang et al. 2016, Table 1: "), "{table}");
    assert!(table.contains("\ninferred: rtol 4.8e-6: "), "{table}");
    assert!(
        table.contains("\nslow: in the paper Intel Xeon E5-2680, 1 thread; here cpu: "),
        "{table}"
    );
    assert!(
        table.ends_with("no verdict: the grid is poisson3d:12, the paper's is poisson3d:120\n"),
        "{table}"
    );
    let rows = records(&path);
    assert_eq!(rows.len(), 32);
    assert!(rows.iter().all(|r| r.status == Status::Converged));
    // both backends run the same iteration
    assert!(
        rows.chunks(2)
            .all(|p| p[0].convergence.iterations.abs_diff(p[1].convergence.iterations) <= 1)
    );
}

#[test]
fn tables_2_and_3_run_on_small_grids() {
    for (table, rows) in [("yang/table2", 24), ("yang/table3", 16)] {
        let mut command = Command::cargo_bin("bilu-bench").unwrap();
        command.args(["reproduce", table, "--scale", "20", "--backend", "cpu", "--format", "json"]);
        let output = command
            .args(["--min-repetitions", "1", "--max-repetitions", "1", "-q"])
            .output()
            .unwrap();
        let list: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(list.len(), rows, "{table}");
        assert!(list.iter().all(|row| row["published-iterations"].as_u64().is_some()));
        assert!(list.iter().all(|row| row["status"] == "converged"), "{table}");
    }
}

#[test]
fn what_does_not_apply_of_all_is_no_failure() {
    let run = |solver: &str, precond: &str, code: i32| {
        let matrix = ["--matrix", "convdiff3d:5,px=0.3", "--quiet"];
        let choice = ["--solver", solver, "--precond", precond];
        text(&ran(bilu().args(matrix).args(choice), code).stderr)
    };
    // the matrix is not symmetric: `ic` and two of `fsai` do not apply
    let note = "note: 3 cases of `all` left out: not applicable\n";
    assert_eq!(run("gmres", "all", 0), note);
    // a name of its own is asked for
    assert!(run("gmres", "all,ic", 1).ends_with("1 of 22 cases did not converge\n"));
    assert_eq!(run("gmres", "ic", 1), "1 of 1 case did not converge\n");
    // so is a solver
    assert_eq!(run("cg", "all", 1), "22 of 22 cases did not converge\n");
    assert_eq!(run("gmres,cg", "all", 1), format!("{note}22 of 44 cases did not converge\n"));
}
