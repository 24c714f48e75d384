//! `bilu-bench obstacle`: cases, files, bad input.

use std::path::Path;

use assert_cmd::Command;
use bilu_bench::base::status::Status;
use bilu_bench::record::obstacle::Record;
use bilu_bench::record::read::read_rows;

fn bilu(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1").arg("obstacle").args(arguments);
    command
}

/// Exit code, standard output and standard error.
fn outcome(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = bilu(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn records(path: &Path) -> Vec<Record> {
    read_rows(path).unwrap().records
}

#[test]
fn threads_and_one_core_yield_the_same_solution_in_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let files: Vec<String> = ["a.csv", "a.jsonl", "a.json", "a.md"]
        .iter()
        .map(|n| path(n).display().to_string())
        .collect();
    let mut arguments = vec!["--m", "24", "--backend", "cpu,cpu-mt", "--split", "auto"];
    for file in &files {
        arguments.extend(["-o", file]);
    }
    let (code, stdout, stderr) = outcome(&arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let rows = records(&path("a.csv"));
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|r| r.status == Status::Converged));
    assert_eq!(rows[0].iteration.fingerprint, rows[1].iteration.fingerprint);
    assert_eq!(rows[0].iteration.sweeps, rows[1].iteration.sweeps);
    assert_eq!(rows[0].iteration.points, 24 * 24 * 24);
    assert!(rows[0].iteration.complementarity.unwrap() < 1e-2);
    assert!(rows[0].cost.solve_s.unwrap() > 0.0 && rows[0].cost.copy_gbps.unwrap() > 0.0);
    assert_eq!(rows, records(&path("a.jsonl")));
    assert_eq!(rows, records(&path("a.json")));
    let markdown = std::fs::read_to_string(path("a.md")).unwrap();
    assert_eq!(markdown.lines().filter(|l| l.starts_with('|')).count(), 4, "{markdown}");
    assert!(stdout.starts_with("m 24\non "), "{stdout}");
    assert!(stderr.starts_with("[1/2] 24^3 jacobi sync, cpu: "), "{stderr}");
}

#[test]
fn a_run_is_resumed_and_what_is_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    let name = file.display().to_string();
    assert_eq!(outcome(&["--m", "8", "-o", &name]).0, Some(0));
    let first = records(&file);
    let (code, _, stderr) = outcome(&["--m", "8", "-o", &name]);
    assert_eq!(
        (code, stderr.lines().next().unwrap()),
        (Some(2), format!("error: `{name}` exists already").as_str())
    );
    let (code, _, stderr) = outcome(&["--m", "8,9", "-o", &name, "--resume"]);
    assert_eq!(code, Some(0), "{stderr}");
    let both = records(&file);
    assert_eq!((both.len(), &both[0], both[1].case.m), (2, &first[0], 9));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

/// A CSV file without the column of this name.
fn without(text: &str, column: &str) -> String {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = header.iter().position(|name| name == column).unwrap();
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(header).chain(reader.records().map(Result::unwrap)) {
        let kept = row.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, cell)| cell);
        writer.write_record(kept).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

#[test]
fn records_of_another_problem_are_not_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    let name = file.display().to_string();
    let run = ["--m", "8", "--obstacle", "flat:-0.1", "-q", "-o", &name];
    assert_eq!(outcome(&run).0, Some(0));
    let hash = records(&file)[0].problem_hash.clone().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let more =
        ["--m", "8", "--obstacle", "flat:-0.1", "--steps", "1", "-q", "-o", &name, "--resume"];
    // as a version wrote it that makes another problem of these settings
    let other = text.replace(&hash, "0123456789abcdef");
    std::fs::write(&file, &other).unwrap();
    let (code, _, stderr) = outcome(&more);
    let message = format!(
        "error: {name}: m 8, obstacle flat:-0.1 is not the problem of its records: hash \
         0123456789abcdef in the file, {hash} now\n\
         hint: write to another file, or start over with --force\n"
    );
    assert_eq!((code, stderr), (Some(2), message));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), other);
    // one that wrote no hash
    std::fs::write(&file, without(&text, "problem-hash")).unwrap();
    assert_eq!(records(&file)[0].problem_hash, None);
    let (code, _, stderr) = outcome(&more);
    assert_eq!(code, Some(0), "{stderr}");
    let hashes: Vec<_> = records(&file).into_iter().map(|r| r.problem_hash).collect();
    assert_eq!(hashes, [None, Some(hash)]);
}

#[test]
fn figures_are_overwritten_by_force_alone() {
    let folder = tempfile::tempdir().unwrap();
    let [figure, file] = ["f.svg", "a.csv"].map(|name| folder.path().join(name));
    let [name, rows] = [&figure, &file].map(|path| path.display().to_string());
    let run = |rest: &[&str]| outcome(&[&["--m", "6", "-q", "--figure", &name], rest].concat());
    std::fs::write(&figure, "mine").unwrap();
    let (code, _, stderr) = run(&["-o", &rows]);
    let message = format!("error: `{name}` exists already\nhint: --force overwrites it\n");
    assert_eq!((code, stderr), (Some(2), message));
    assert!(!file.exists() && std::fs::read(&figure).unwrap() == b"mine");
    assert_eq!(run(&["--force"]).0, Some(0));
    assert!(std::fs::read_to_string(&figure).unwrap().starts_with("<svg"));
    // a run that goes on draws its figure again
    assert_eq!(run(&["-o", &rows, "--force"]).0, Some(0));
    std::fs::write(&figure, "of before").unwrap();
    assert_eq!(run(&["-o", &rows, "--resume"]).0, Some(0));
    assert!(std::fs::read_to_string(&figure).unwrap().starts_with("<svg"));
}

#[test]
fn the_limit_of_relaxations_is_a_row() {
    let arguments = ["--m", "12", "--max-relaxations", "4", "--format", "csv", "--quiet"];
    let (code, stdout, stderr) = outcome(&arguments);
    assert_eq!((code, stderr.as_str()), (Some(1), "1 of 1 case did not converge\n"));
    assert!(stdout.contains("not-converged,limit of 4 relaxations of a node reached,"), "{stdout}");
    // asked for with epsilon 0 it is what was wanted
    let arguments = ["--m", "12", "--max-relaxations", "4", "--epsilon", "0", "--steps", "1", "-q"];
    let (code, stdout, _) = outcome(&arguments);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("complete"), "{stdout}");
}

#[test]
fn a_grid_too_small_for_its_nodes_is_refused() {
    let (code, _, stderr) = outcome(&["--m", "3", "--backend", "cpu-mt", "--split", "1x4"]);
    assert_eq!(
        (code, stderr.as_str()),
        (
            Some(2),
            "error: split 1x4 has more parts than the 3 grid points of a direction\n\
             hint: choose a larger m or fewer parts\n"
        )
    );
}

#[test]
fn bad_words_name_the_flag_or_the_line() {
    for (arguments, message) in [
        (vec!["--m", "0"], "--m: `0` is outside 1 to 4096"),
        (
            vec!["--obstacle", "flat:0.5"],
            "--obstacle: obstacle `flat:0.5` is above the boundary value 0",
        ),
        (vec!["--method", "jacoby"], "--method: unknown method `jacoby`"),
        (vec!["--time-limit", "-1"], "--time-limit: `-1` is outside the range: above 0"),
        (vec!["table3"], "unknown experiment `table3`"),
        (vec!["absent.toml"], "cannot read `absent.toml`: No such file or directory (os error 2)"),
        (vec!["--convection", "1:2"], "--convection: convection `1:2` is not of the form b1:b2:b3"),
    ] {
        let (code, _, stderr) = outcome(&arguments);
        assert_eq!(code, Some(2), "{stderr}");
        assert_eq!(stderr.lines().next().unwrap(), format!("error: {message}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    for (text, message) in [
        ("[[sweep]]\nm = 8\nmode = 'asink'\n", "x.toml:3:8: unknown mode `asink`"),
        ("[[sweep]]\nmm = 8\n", "x.toml:2:1: unknown setting `mm`"),
        ("title = 't'\n", "x.toml: no [[sweep]] table"),
        ("sweep = 3\n", "x.toml:1:9: expected a table, found integer"),
        ("[[sweep]]\nm = 8\n[published]\ncsv = 'no.csv'\n", "x.toml:4:7: cannot read"),
    ] {
        std::fs::write(&file, text).unwrap();
        let (code, _, stderr) = outcome(&[&file.display().to_string()]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
}

#[test]
fn experiments_of_the_paper_are_listed_and_belong_to_this_command() {
    let (code, stdout, _) = outcome(&["--list"]);
    assert_eq!(code, Some(0));
    let names: Vec<&str> = stdout.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(
        names,
        [
            "cores",
            "gpu-ranks",
            "red-black",
            "sweeps",
            "table1",
            "table2",
            "table2-fitted",
            "table2-gpus",
            "weak-scaling"
        ]
    );
    let mut other = Command::cargo_bin("bilu-bench").unwrap();
    let output =
        other.args(["reproduce", "obstacle/table2"]).env("NO_COLOR", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: `obstacle/table2` has a command of its own\n\
         hint: run `bilu-bench obstacle table2`; `--list` shows the names\n"
    );
}

#[test]
fn published_values_stand_beside_a_run_of_the_same_size() {
    // far too few relaxations for a result, but the rows are there
    let arguments = [
        "table2",
        "--m",
        "256",
        "--backend",
        "cpu",
        "--mode",
        "sync",
        "--sweeps-per-pass",
        "1",
        "--check-every",
        "1",
        "--steps",
        "1",
        "--epsilon",
        "0",
        "--max-relaxations",
        "1",
        "-q",
    ];
    let (code, stdout, stderr) = outcome(&arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let row =
        stdout.lines().find(|l| l.trim_start().starts_with("256 | sync")).unwrap_or_else(|| {
            panic!("{stdout}");
        });
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[3..5], ["8,391", "1"], "{row}");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_says_how_to_build_it() {
    let (code, _, stderr) = outcome(&["--backend", "mpi"]);
    assert_eq!(
        (code, stderr.as_str()),
        (
            Some(1),
            "error: this program was built without the feature `mpi`\n\
             hint: install Open MPI (`apt-get install libopenmpi-dev openmpi-bin libclang-dev`) and \
             build with `cargo build --release --features mpi`\n"
        )
    );
}

#[test]
fn the_matrix_of_a_time_step_can_be_solved() {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1").args(["run", "--matrix", "obstacle:12", "--rhs", "own"]);
    command.args(["--solver", "cg", "--max-repetitions", "1", "--format", "csv", "--quiet"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8(output.stdout).unwrap().contains("converged"));
}

#[test]
fn a_solution_without_a_finite_residual_has_not_converged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let file = path.display().to_string();
    let (code, _, stderr) = outcome(&["--m", "8", "--obstacle", "hill:1e308", "-q", "-o", &file]);
    assert_eq!(code, Some(1), "{stderr}");
    let [record] = &records(&path)[..] else { panic!("one record") };
    assert_eq!((record.status, record.iteration.complementarity), (Status::Diverged, None));
    assert_eq!(record.reason.as_deref(), Some("min(A u - g, u - phi) is not finite"));
}

#[test]
fn a_table_whose_settings_all_vary_has_no_empty_line_above() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.md");
    let (code, stdout, stderr) = outcome(&["--m", "8..9", "-q", "-o", &path.display().to_string()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("on "), "{stdout}");
    let table = std::fs::read_to_string(&path).unwrap();
    assert!(table.contains("- on ") && table.lines().all(|l| l.trim_end() != "-"), "{table}");
}

#[test]
fn figures_and_convection_are_checked_before_anything_runs() {
    let (code, stdout, stderr) = outcome(&["--m", "4", "--figure", "nodir/x.svg"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert_eq!(
        stderr,
        "error: --figure: cannot write `nodir/x.svg`: there is no folder `nodir`\n\
         hint: create it first\n"
    );
    let (_, _, stderr) = outcome(&["--convection", "1"]);
    let first = "error: --convection: convection `1` is not of the form b1:b2:b3\n";
    assert!(stderr.starts_with(first), "{stderr}");
}

#[test]
fn records_of_run_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.csv").display().to_string();
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.args(["run", "--matrix", "poisson3d:3", "-q", "-o", &file]).assert().success();
    let (code, _, stderr) = outcome(&["--resume", "-o", &file]);
    assert_eq!(code, Some(2));
    let first = format!("error: {file}:1: these are records of `run`, not of `obstacle`\n");
    assert!(stderr.starts_with(&first), "{stderr}");
}
