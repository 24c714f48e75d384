//! `run --rounds` and `compare --run` with the real solvers.

use std::path::Path;

use assert_cmd::Command;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;
use serde_json::Value;

fn bilu(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1").args(arguments);
    command
}

/// Standard output and error of a run that ends with `code`.
fn ran(arguments: &[&str], code: i32) -> (String, String) {
    let output = bilu(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "{err}");
    (out, err)
}

fn rows(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

fn records(path: &Path) -> Vec<Record> {
    read(path).unwrap().records
}

fn turns(path: &Path) -> Vec<(usize, Option<usize>)> {
    records(path).iter().map(|r| (r.case.fill, r.round)).collect()
}

/// Three rounds of two fill levels.
const RUN: [&str; 8] =
    ["run", "--matrix", "poisson3d:8", "--fill", "0..1", "--max-repetitions", "3", "-q"];
const ALL: [(usize, Option<usize>); 6] =
    [(0, Some(1)), (1, Some(1)), (0, Some(2)), (1, Some(2)), (0, Some(3)), (1, Some(3))];

#[test]
fn files_have_a_row_per_round_and_tables_one_per_case() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let file = path.display().to_string();
    let (out, _) =
        ran(&[&RUN[..], &["--rounds", "3", "-o", &file, "--format", "json"]].concat(), 0);
    assert_eq!(turns(&path), ALL);
    // three solves in three rounds
    assert!(records(&path).iter().all(|r| r.times.repetitions == 1));
    // and the speed of the machine in each
    assert!(records(&path).iter().all(|r| r.times.reference_s.is_some_and(|s| s > 0.0)));
    let shown = rows(&out);
    assert_eq!(shown.len(), 2);
    for (row, fill) in shown.iter().zip([0, 1]) {
        let mut solves: Vec<f64> = records(&path)
            .iter()
            .filter(|r| r.case.fill == fill)
            .map(|r| r.times.solve_s.unwrap())
            .collect();
        solves.sort_by(f64::total_cmp);
        let number = |name: &str| row[name].as_f64().unwrap();
        assert_eq!(number("solve-s"), solves[1]);
        assert_eq!((number("solve-low-s"), number("solve-high-s")), (solves[0], solves[2]));
        assert_eq!(
            (&row["solve-interval"], &row["round"]),
            (&"range-of-rounds".into(), &Value::Null)
        );
        let parts = ["matrix-s", "setup-s", "solve-s"].map(number);
        assert!((number("total-s") - parts.iter().sum::<f64>()).abs() < 1e-12 * number("total-s"));
    }
    // a page and a table of the paper's kind have one row per case too
    let page = folder.path().join("a.html").display().to_string();
    let tables = folder.path().join("tables").display().to_string();
    ran(&["report", &file, "-o", &page, "--tables", &tables], 0);
    let table = std::fs::read_to_string(folder.path().join("tables/runs-1.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.contains("(3: "), "{table}");
}

#[test]
fn rounds_are_resumed_and_not_mixed_with_rows_that_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let file = path.display().to_string();
    let with = |rest: &[&'static str]| [&RUN[..], &["-o", &file], rest].concat();
    ran(&with(&["--rounds", "3"]), 0);
    let whole = std::fs::read_to_string(&path).unwrap();
    let kept: String = whole.split_inclusive('\n').take(4).collect();
    std::fs::write(&path, &kept).unwrap();
    ran(&with(&["--rounds", "3", "--resume"]), 0);
    assert_eq!(turns(&path), ALL);
    let resumed = std::fs::read_to_string(&path).unwrap();
    assert!(resumed.starts_with(&kept));
    let (_, err) = ran(&with(&["--resume"]), 2);
    assert_eq!(
        err,
        "error: the result file has records of these cases by rounds\n\
         hint: give --rounds as before, or write to another file\n"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), resumed);
}

#[test]
fn isolated_cases_have_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let file = path.display().to_string();
    ran(&[&RUN[..], &["--rounds", "3", "--isolate", "-o", &file]].concat(), 0);
    assert_eq!(turns(&path), ALL);
    assert!(records(&path).iter().all(|r| r.times.repetitions == 1));
}

#[test]
fn six_solves_are_made_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let file = path.display().to_string();
    ran(&["run", "--matrix", "poisson3d:6,poisson3d:12", "-q", "-o", &file], 0);
    for r in records(&path) {
        let solves = r.times.solve().unwrap();
        assert!(solves.count >= 6 && solves.interval().is_some(), "{solves:?}");
        // shorter ones more often: a hundredth of a millisecond at most a thousand times
        assert!(solves.value > 1e-2 || solves.count > 6, "{solves:?}");
    }
    let text = std::fs::read_to_string(&path).unwrap();
    // of the solves and of the products
    assert_eq!(text.matches(",95%,").count(), 4, "{text}");
}

#[test]
fn products_have_their_interval_and_count() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = |name: &str| at(name).display().to_string();
    let run = ["run", "--matrix", "poisson3d:6", "--kind", "spmv", "-q", "-o"];
    ran(&[&run[..], &[&file("a.csv")]].concat(), 0);
    let record = &records(&at("a.csv"))[0];
    let product = record.traffic.spmv().unwrap();
    let (low, high) = product.interval().unwrap();
    assert!(low <= product.value && product.value <= high, "{product:?}");
    assert!(product.count >= 6 && product.count == record.times.repetitions, "{product:?}");
    let text = std::fs::read_to_string(at("a.csv")).unwrap();
    assert!(text.contains(",spmv-low-s,spmv-high-s,spmv-interval,spmv-samples,"), "{text}");
    let rounds = ["--rounds", "3", "--format", "json"];
    let (out, _) = ran(&[&run[..], &[&file("r.csv")], &rounds].concat(), 0);
    let row = &rows(&out)[0];
    assert_eq!(
        (&row["spmv-interval"], &row["spmv-samples"]),
        (&"range-of-rounds".into(), &3.into())
    );
}

#[test]
fn two_experiments_are_measured_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept").display().to_string();
    let one = "run --matrix poisson3d:8 --max-repetitions 1";
    let program = assert_cmd::cargo::cargo_bin("bilu-bench").display().to_string();
    let other = format!("'{program}' {one} --solver bicgstab");
    let (out, err) = ran(
        &["compare", "--run", one, &other, "--rounds", "3", "--keep", &keep, "--format", "json"],
        0,
    );
    let said: Vec<&str> = err.lines().collect();
    let turn = |round: usize, command: &str| format!("round {round}/3: {command}");
    let wanted = [
        turn(1, one),
        turn(1, &other),
        turn(2, &other),
        turn(2, one),
        turn(3, one),
        turn(3, &other),
    ];
    assert_eq!(said, wanted);
    let shown = rows(&out);
    assert_eq!((shown.len(), &shown[0]["verdict"]), (1, &"unclear".into()));
    let files = ["old.csv", "new.csv"].map(|name| folder.path().join("kept").join(name));
    let [old, new] = files.each_ref().map(|path| records(path));
    assert_eq!(old.iter().map(|r| r.round).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    assert!(new.iter().all(|r| r.case.solver == "bicgstab"));
    // the median of the ratios of turns
    let mut ratios: Vec<f64> = old
        .iter()
        .zip(&new)
        .map(|(old, new)| new.times.solve_s.unwrap() / old.times.solve_s.unwrap())
        .collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = shown[0]["ratio"].as_f64().unwrap();
    assert!((ratio / ratios[1] - 1.0).abs() < 1e-12);
    let [a, b] = files.each_ref().map(|path| path.display().to_string());
    let again = ["compare", &a, &b, "--paired", "--ignore", "solver", "--format", "json"];
    assert_eq!(rows(&ran(&again, 0).0)[0]["ratio"].as_f64(), Some(ratio));
    // what is kept is not overwritten
    let (_, err) = ran(&["compare", "--run", one, &other, "--keep", &keep], 2);
    assert!(err.starts_with("error: `"), "{err}");
}

#[test]
fn a_regression_between_commands_is_an_exit_code() {
    let one = "run --matrix poisson3d:6 --max-repetitions 1";
    let broken = format!("{one} --max-iterations 1");
    let compare = |old: &str, new: &str, code| {
        let rest = ["--rounds", "1", "--fail-on-regression", "--format", "json"];
        ran(&[&["compare", "--run", old, new][..], &rest].concat(), code)
    };
    assert_eq!(rows(&compare(one, &broken, 1).0)[0]["verdict"], "broken");
    assert_eq!(rows(&compare(&broken, one, 0).0)[0]["verdict"], "fixed");
    let wrong = "run --matrix poisson4d:6";
    let (_, err) = compare(one, wrong, 2);
    let line = err.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(
        line.starts_with("error: `run --matrix poisson4d:6` left no records: unknown"),
        "{line}"
    );
    let (_, err) = compare(one, "/no/such/program run", 1);
    assert!(err.contains("error: `/no/such/program run`: No such file"), "{err}");
}
