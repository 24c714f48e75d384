//! Backends that are not there. The tests expect a machine without a GPU; with one they say that
//! they were skipped.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use bilu_bench::base::status::Status;
use bilu_bench::case::{Case, Trisolve};
use bilu_bench::compute;
use bilu_bench::record::Record;
use bilu_bench::record::output::{Existing, Outputs};
use bilu_bench::record::read::read;
use bilu_bench::record::schema::Environment;

use crate::common::program::text;

/// Why `cuda` cannot compute here; `None`, with a word about it, where it can.
fn reason() -> Option<bilu_bench::Error> {
    let error = compute::available("cuda").err();
    if error.is_none() {
        eprintln!("skipped: there is a GPU");
    }
    error
}

fn bilu(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    let (name, rest) = arguments.split_first().unwrap();
    command.env("NO_COLOR", "1").args([name, "--max-repetitions=1"]).args(rest);
    command
}

fn ran(command: &mut Command, code: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    output
}

/// What `error` looks like on standard error.
fn printed(error: &bilu_bench::Error) -> String {
    let hint = error.hint_text().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
    format!("error: {error}\n{hint}")
}

fn backends(path: &Path) -> Vec<String> {
    read(path).unwrap().records.into_iter().map(|r| r.case.backend).collect()
}

#[test]
fn cpu_backends_are_always_there() {
    assert_eq!(compute::available("cpu"), Ok(()));
    assert_eq!(compute::available("cpu-mt"), Ok(()));
}

#[test]
fn threads_are_a_setting_of_cases_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let words = ["run", "poisson3d:8", "--threads", "2,1", "--backend", "cpu,cpu-mt", "-q", "-o"];
    ran(bilu(&words).arg(&path), 0);
    let ran_with = |r: &Record| {
        let Environment { threads, placement, .. } = &r.environment;
        let placed = placement.as_ref().map_or(0, |on| on.split(' ').count());
        (r.case.backend.clone(), r.case.threads, *threads, placed, r.reason.clone())
    };
    let of = read(&path).unwrap().records.iter().map(ran_with).collect::<Vec<_>>();
    let pinned = if cores() < 2 { 0 } else { 2 };
    let one = ("cpu-mt".to_owned(), 1, 1, 0, None);
    let two = ("cpu-mt".to_owned(), 2, 2, pinned, None);
    assert_eq!(of, [("cpu".to_owned(), 0, 1, 0, None), two, one]);
}

#[test]
fn small_systems_have_one_thread_unless_more_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let words = ["run", "poisson3d:8,poisson3d:36", "--backend", "cpu-mt", "--max-iterations=1"];
    ran(bilu(&words).args(["-q", "-o"]).arg(&path), 1);
    let [small, large] = &read(&path).unwrap().records[..] else { panic!("two records") };
    assert_eq!([small, large].map(|r| r.environment.threads), [1, cores()]);
    let remark = "one thread: several are slower for a system of this size";
    let said = |r: &Record| r.reason.as_ref().is_some_and(|said| said.contains(remark));
    assert_eq!([said(small), said(large)], [cores() > 1, false]);
}

/// Cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

#[test]
fn without_a_usable_backend_nothing_runs() {
    let Some(error) = reason() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    for list in ["cuda", "cuda,cusparse"] {
        let mut command = bilu(&["run", "--matrix", "poisson3d:8", "--backend", list, "-o"]);
        let output = ran(command.arg(&path), 1);
        assert_eq!(text(&output.stderr), printed(&error));
        assert_eq!(text(&output.stdout), "");
        assert!(!path.exists());
    }
}

#[cfg(all(target_os = "linux", feature = "cuda"))]
#[test]
fn a_missing_driver_is_named() {
    let Some(error) = reason() else { return };
    if Path::new("/proc/driver/nvidia").exists() {
        return;
    }
    assert_eq!(error.to_string(), "no CUDA driver found (libcuda.so)");
    assert_eq!(
        error.hint_text(),
        Some("`bilu-bench doctor` shows what is there; the CPU backends need none")
    );
}

#[cfg(feature = "cuda")]
#[test]
fn tuning_needs_a_gpu_and_says_so() {
    let Some(error) = reason() else { return };
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    let output = ran(command.env("NO_COLOR", "1").args(["tune", "--budget", "1"]), 1);
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), printed(&error)));
}

#[test]
fn missing_backends_are_left_out_with_one_line() {
    let Some(error) = reason() else { return };
    let folder = tempfile::tempdir().unwrap();
    let toml = folder.path().join("x.toml");
    std::fs::write(
        &toml,
        "[[sweep]]\nmatrix = 'poisson3d:8'\nbackend = ['cuda', 'cpu', 'cusparse']\n",
    )
    .unwrap();
    let path = folder.path().join("a.csv");
    let mut command = bilu(&["run"]);
    let output = ran(command.arg(&toml).arg("-o").arg(&path), 0);
    let lines: Vec<String> = text(&output.stderr).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], format!("note: cuda, cusparse left out: {error}"));
    assert!(lines[1].starts_with("[1/1] poisson3d:8, gmres, bilu, block size 1, k = 0, cpu: "));
    assert_eq!(backends(&path), ["cpu"]);
}

/// A record of `backend` that another machine made.
fn elsewhere(path: &Path, backend: &str) {
    let case = Case { matrix: "poisson3d:8".into(), backend: backend.into(), ..Case::default() };
    let mut record = Record { case, status: Status::Converged, ..Record::default() };
    record.convergence.iterations = 11;
    let mut outputs = Outputs::open(&[path.to_owned()], Existing::Refuse).unwrap();
    outputs.add(&record).unwrap();
}

#[test]
fn finished_cases_of_a_missing_backend_are_kept_and_shown() {
    let Some(error) = reason() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    elsewhere(&path, "cuda");
    let resume = |list: &str| {
        let mut command = bilu(&["run", "--matrix", "poisson3d:8", "--backend", list, "--resume"]);
        command.arg("-o").arg(&path);
        command
    };
    // everything is there already
    let output = ran(&mut resume("cuda"), 0);
    assert!(!text(&output.stderr).contains("left out"), "{}", text(&output.stderr));
    // one is missing and cannot be made, one can
    let output = ran(&mut resume("cpu,cuda,cusparse"), 0);
    let stderr = text(&output.stderr);
    let why = compute::available("cusparse").unwrap_err();
    assert!(stderr.contains(&format!("note: cusparse left out: {why}\n")), "{stderr}");
    assert_eq!(backends(&path), ["cuda", "cpu"]);
    assert!(text(&output.stdout).contains(" cuda "), "{}", text(&output.stdout));
    // nothing can be made
    let mut command = bilu(&["run", "--matrix", "poisson3d:9", "--backend", "cuda", "--resume"]);
    let output = ran(command.arg("-o").arg(&path), 1);
    assert!(text(&output.stderr).ends_with(&printed(&error)), "{}", text(&output.stderr));
    assert_eq!(backends(&path), ["cuda", "cpu"]);
}

#[test]
fn settings_that_nothing_uses_are_said() {
    let run = |more: &[&str]| {
        let mut command = bilu(&["run", "--matrix", "poisson3d:5", "--quiet"]);
        text(&ran(command.args(more), 0).stderr)
    };
    let trisolve = "note: `trisolve` levels,spsv: nothing that is run uses it\n";
    assert_eq!(run(&["--backend", "cpu", "--trisolve", "levels,spsv"]), trisolve);
    let style = "note: `fgbilu-style` cl: nothing that is run uses it\n";
    assert_eq!(run(&["--fgbilu-style", "cl", "--precond", "jacobi"]), style);
    assert_eq!(run(&["--trisolve", "auto", "--fill", "0,1"]), "");
}

#[test]
fn the_variant_of_triangular_solves_is_recorded() {
    if let Err(why) = compute::available("cuda") {
        eprintln!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let mut command = bilu(&["run", "--matrix", "poisson3d:8", "--precond", "bilu,jacobi"]);
    command.args(["--trisolve", "auto,levels,syncfree", "--backend", "cuda", "-o"]).arg(&path);
    ran(&mut command, 0);
    let records = read(&path).unwrap().records;
    let of = |precond: &str| -> Vec<Option<Trisolve>> {
        let chosen = records.iter().filter(|r| r.case.precond == precond);
        chosen.map(|r| r.factor.trisolve_used).collect()
    };
    let used = of("bilu");
    assert!(used[0].is_some_and(|variant| variant != Trisolve::AUTO), "{used:?}");
    assert_eq!(used[1..], [Some(Trisolve::LEVELS), Some(Trisolve::SYNCFREE)]);
    assert_eq!(of("jacobi"), [None; 3]);
    assert!(records.iter().all(|r| r.environment.device.contains("CUDA ")));
}

#[test]
fn a_wrong_limit_of_the_gpu_memory_is_an_input_error() {
    if cfg!(not(feature = "cuda")) {
        return;
    }
    for arguments in [
        &["run", "--matrix", "poisson3d:5", "--backend", "cpu,cuda"][..],
        &["doctor", "--self-test", "--backend", "cuda"],
    ] {
        let mut command = Command::cargo_bin("bilu-bench").unwrap();
        command.env("NO_COLOR", "1").env("BILU_BENCH_GPU_MEMORY", "2 GiB").args(arguments);
        let output = ran(&mut command, 2);
        assert_eq!(
            text(&output.stderr),
            "error: BILU_BENCH_GPU_MEMORY: `2 GiB` is not a whole number of MiB\n\
             hint: it is the most that the program may hold on the GPU; unset, there is no limit\n"
        );
        assert!(output.stdout.is_empty());
    }
}
