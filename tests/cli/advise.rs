//! `advise` over the binary: what it prints, and that `run` repeats it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use bilu_bench::compute;
use bilu_bench::config::Experiment;
use bilu_bench::record::read::read;

use crate::common::program::text;

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    command.env("NO_COLOR", "1").stdin(Stdio::null()).args(arguments).output().unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = program(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    text(&output.stderr).lines().next().unwrap().to_owned()
}

/// The settings that the table calls the best: the winner, and those that cannot be told from it by rounds or by
/// single trials.
fn equals(table: &str) -> Vec<String> {
    let words = |names: &str| names.split(" or ").map(str::to_owned).collect::<Vec<_>>();
    let mut found = Vec::new();
    for line in table.lines() {
        for begin in ["sure: ", "alone: ", "first in rounds: "] {
            let name = line.strip_prefix(begin).and_then(|rest| rest.split_once("; "));
            found.extend(name.map(|(name, _)| name.to_owned()));
        }
        if let Some(rest) = line.strip_prefix("cannot tell ") {
            let (best, rest) = rest.split_once(" from ").unwrap();
            let (others, _) = rest.rsplit_once(" here, ").unwrap();
            found.extend([words(best), words(others)].concat());
        }
    }
    found
}

#[test]
fn winners_are_among_the_settings_that_were_given() {
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
    let words = ["advise", "poisson3d:10", "-q", "--time-budget", "5"];
    let output = program(&[&words[..], &set].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    // a matrix of one block size and cg: neither restart nor side has a part in it
    let why = table.lines().find(|line| line.starts_with("why")).unwrap();
    assert!(!why.contains("restart") && !why.contains("side"), "{why}");
    // which one wins is a matter of the machine's load; `bench::advise::decision` has tests with given times
    let found = equals(&table);
    let known = ["jacobi b=1 cg cpu", "bilu k=0 b=1 natural cg cpu", "bilu k=1 b=1 natural cg cpu"];
    assert!(!found.is_empty() && found.iter().all(|name| known.contains(&&**name)), "{table}");
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

/// The settings that the experiment in this file states.
fn stated(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let sweep = text.lines().skip_while(|line| *line != "[[sweep]]").skip(1);
    let mut keys: Vec<String> =
        sweep.map(|line| line.split_once(" = ").unwrap().0.to_owned()).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn the_experiment_states_what_the_winner_uses_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (here, below) = (folder.path(), folder.path().join("below"));
    std::fs::create_dir(&below).unwrap();
    let in_it = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
        command.env("NO_COLOR", "1").current_dir(here).stdin(Stdio::null());
        let output = command.args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
    };
    in_it(&["matrix", "generate", "convdiff3d:5,px=0.3", "-o", "a.mtx"]);
    let of_all =
        ["matrix", "read-as", "zeros", "rhs", "kind", "precond", "deflation", "solver", "rtol"];
    let of_all = [&of_all[..], &["scaling", "max-iterations", "matrix-format", "backend"]].concat();
    let jacobi = ["block-size", "shift", "factor-precision"];
    let bilu = ["ordering", "fill", "level-rule", "side", "restart", "orthogonalisation"];
    let bilu = [&jacobi[..], &bilu, &["drop-tolerance"]].concat();
    for (name, precond, solver, own) in
        [("j", "jacobi", "bicgstab", &jacobi[..]), ("b", "bilu", "gmres", &bilu)]
    {
        let (toml, csv) = (format!("below/{name}.toml"), format!("{name}.csv"));
        let set = [format!("--set=precond={precond}"), format!("--set=solver={solver}")];
        let words =
            ["advise", "a.mtx", "-q", "--time-budget", "3", "--set=backend=cpu", "--set=fill=1"];
        in_it(&[&words[..], &[&set[0], &set[1], "-o", &toml]].concat());
        let mut expected = [&of_all[..], own].concat();
        expected.sort_unstable();
        assert_eq!(stated(&here.join(&toml)), expected);
        // the matrix is found from the folder of the experiment
        in_it(&["run", &toml, "-q", "--max-repetitions", "1", "-o", &csv]);
        let records = read(&here.join(&csv)).unwrap().records;
        let case = &records[0].case;
        assert_eq!((records.len(), &*case.precond, &*case.solver), (1, precond, solver));
    }
}

#[test]
fn an_experiment_in_a_folder_that_is_not_there_is_refused_before_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let (gone, toml) = (folder.path().join("gone"), folder.path().join("gone/x.toml"));
    let words =
        ["advise", "poisson3d:4", "--time-budget", "1000", "-o", &toml.display().to_string()];
    let output = program(&words);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    let expected = format!(
        "error: cannot write `{}`: there is no folder `{}`\n",
        toml.display(),
        gone.display()
    );
    let found = text(&output.stderr);
    assert!(found.starts_with(&expected) && found.contains("create it first"), "{found}");
    assert!(!gone.exists());
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
    assert!(table.contains("; 0 not expected to be worth a trial"), "{table}");
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
    assert!(table.contains("stopped: the best so far, by one measurement each"), "{table}");
}
