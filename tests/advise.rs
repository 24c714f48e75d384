//! `advise` over the binary: what it prints, and that `run` repeats it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use bilu_bench::compute;
use bilu_bench::config::Experiment;
use bilu_bench::record::read::read;

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    command.env("NO_COLOR", "1").stdin(Stdio::null()).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(arguments: &[&str]) -> String {
    let output = program(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    text(&output.stderr).lines().next().unwrap().to_owned()
}

/// The settings that the table calls the best: the winner, or those that cannot be told apart.
fn equals(table: &str) -> Vec<String> {
    let words = |names: &str| names.split(" or ").map(str::to_owned).collect::<Vec<_>>();
    for line in table.lines() {
        if let Some(rest) = line.strip_prefix("sure: ") {
            return words(rest.split_once("; the second takes ").unwrap().0);
        }
        if let Some(rest) = line.strip_prefix("alone: ") {
            return words(rest.split_once("; in single trials ").unwrap().0);
        }
        if let Some(rest) = line.strip_prefix("cannot tell ") {
            let (best, rest) = rest.split_once(" from ").unwrap();
            let (others, _) = rest.rsplit_once(" here, after ").unwrap();
            return [words(best), words(others)].concat();
        }
    }
    Vec::new()
}

#[test]
fn three_runs_name_the_same_winner_or_say_that_they_are_equal() {
    let set = [
        "precond=jacobi,bilu",
        "fill=0..1",
        "solver=cg",
        "block-size=1",
        "ordering=natural",
        "level-rule=min",
        "factor-precision=float64",
        "backend=cpu",
    ];
    let set = set.map(|word| ["--set", word]).concat();
    let run = || {
        let words = ["advise", "poisson3d:10", "-q", "--time-budget", "5"];
        let output = program(&[&words[..], &set].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let table = text(&output.stdout);
        // a matrix of one block size and cg: neither restart nor side has a part in it
        let why = table.lines().find(|line| line.starts_with("why")).unwrap();
        assert!(!why.contains("restart") && !why.contains("side"), "{why}");
        let found = equals(&table);
        assert!(!found.is_empty(), "{table}");
        found
    };
    let runs = [run(), run(), run()];
    let shared = runs[0].iter().any(|name| runs[1..].iter().all(|run| run.contains(name)));
    assert!(shared, "{runs:?}");
}

/// What the program leaves when Ctrl-C comes after the line with `sign`, and what it says after it.
#[cfg(unix)]
fn stopped_at(sign: &str, arguments: &[&str]) -> (Output, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bilu-bench"))
        .env("NO_COLOR", "1")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(sign) {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "there was no line with `{sign}`");
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest}");
    (output, rest)
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_the_rounds_ends_with_130_too() {
    let set = ["precond=jacobi", "solver=cg,bicgstab", "block-size=1", "factor-precision=float64"];
    let set = [&set.map(|word| ["--set", word]).concat()[..], &["--set", "backend=cpu"]].concat();
    let words = [&["advise", "poisson3d:45", "--time-budget", "1000"], &set[..]].concat();
    let (output, _) = stopped_at("2 finalists measured in rounds", &words);
    let table = text(&output.stdout);
    assert!(table.contains("stopped: the best so far, "), "{table}");
}

#[test]
fn the_best_is_written_and_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let [toml, csv] =
        ["best.toml", "best.csv"].map(|n| folder.path().join(n).display().to_string());
    let output = program(&[
        "advise",
        "convdiff3d:7x6x5,px=0.3",
        "--time-budget",
        "5",
        "--set",
        "precond=jacobi,bilu",
        "--set",
        "backend=cpu",
        "--set",
        "rtol=1e-8",
        "-o",
        &toml,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.starts_with("Advice for convdiff3d:7x6x5,px=0.3\nn = 210, nnz = "), "{table}");
    for line in ["why: ", " tried of "] {
        assert!(table.contains(line), "{line} in {table}");
    }
    assert!(!equals(&table).is_empty(), "{table}");
    assert_eq!(
        refused(&["advise", "poisson3d:4", "-o", &toml]),
        format!("error: `{toml}` exists already")
    );
    let experiment = Experiment::open(std::path::Path::new(&toml)).unwrap();
    let (cases, _) = experiment.cases().unwrap();
    assert_eq!((cases.len(), cases[0].rtol, cases[0].backend.as_str()), (1, 1e-8, "cpu"));
    assert_eq!(cases[0].matrix, "convdiff3d:7x6x5,px=0.3");
    let again = program(&["run", &toml, "-q", "--max-repetitions", "1", "-o", &csv]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(read(std::path::Path::new(&csv)).unwrap().records[0].case, cases[0]);
}

#[test]
fn wrong_settings_are_refused_before_anything_is_tried() {
    assert_eq!(
        refused(&["advise", "poisson3d:4", "--set", "fill"]),
        "error: --set: `fill` is not SETTING=VALUES"
    );
    assert_eq!(
        refused(&["advise", "poisson3d:4", "--set", "fil=1"]),
        "error: --set: unknown setting `fil`"
    );
    assert_eq!(
        refused(&["advise", "poisson3d:4", "--set", "matrix=a"]),
        "error: --set: `matrix` is not searched"
    );
    assert_eq!(
        refused(&["advise", "poisson3d:4", "--set", "fill=-1"]),
        "error: --set: `-1` is outside 0 to 120"
    );
    assert_eq!(
        refused(&["advise", "poisson3d:4", "-o", "a.txt"]),
        "error: `a.txt` does not end in .toml"
    );
    assert_eq!(
        refused(&["advise", "convdiff3d:4,px=0.3", "--set", "precond=ic"]),
        "error: 0 combinations of settings to try"
    );
    assert_eq!(
        refused(&["advise", "/no/such.mtx"]),
        "error: cannot open `/no/such.mtx`: No such file or directory (os error 2)"
    );
}

#[test]
fn what_cannot_be_solved_ends_with_1_and_the_reasons() {
    let output = program(&[
        "advise",
        "poisson3d:6",
        "--time-budget",
        "3",
        "--set",
        "max-iterations=1",
        "--set",
        "precond=jacobi",
        "--set",
        "backend=cpu",
        "--quiet",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("nothing was solved; "), "{table}");
    assert!(table.contains("iteration limit 1 reached"), "{table}");
}

#[test]
fn backends_that_are_not_there_are_not_searched() {
    let Err(why) = compute::available("cuda") else {
        eprintln!("skipped: there is a GPU");
        return;
    };
    let advise = |set: &str| program(&["advise", "poisson3d:4", "-q", "--set", set]);
    for gone in ["backend=cuda", "backend=cusparse,cuda"] {
        let output = advise(gone);
        assert_eq!(output.status.code(), Some(i32::from(why.exit_code())));
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).starts_with(&format!("error: {why}\n")));
    }
    let set = ["precond=jacobi", "backend=cuda,cpu"].map(|word| ["--set", word]).concat();
    let words = ["advise", "poisson3d:4", "--time-budget", "3"];
    let output = program(&[&words[..], &set].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(&format!("cuda left out: {why}")));
    let trials = text(&output.stderr);
    assert!(!trials.contains(&why.to_string()), "{trials}");
}

#[test]
fn a_budget_that_is_over_is_named() {
    let words = ["advise", "poisson3d:4", "-q", "--time-budget", "1e-9", "--set", "backend=cpu"];
    let output = program(&words);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("nothing was tried: the time budget of 1e-9 s was over"), "{table}");
    assert!(table.contains("; 0 not worth a trial"), "{table}");
    let left = table.lines().find(|l| l.starts_with("not tried for lack of time: ")).unwrap();
    assert!(left.ends_with("; --time-budget above 1e-9 tries more"), "{left}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_shows_the_best_so_far() {
    let words = ["advise", "poisson3d:12", "--time-budget", "1000", "--set", "backend=cpu"];
    let (output, rest) = stopped_at("(best ", &words);
    assert!(rest.ends_with("stopped\n"), "{rest}");
    let table = text(&output.stdout);
    assert!(table.starts_with("Advice for poisson3d:12\n"), "{table}");
    assert!(table.contains("stopped: the best so far, by single trials"), "{table}");
}
