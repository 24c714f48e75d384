//! Runs of the program over ranks.

use std::path::Path;
use std::process::{Command, Output};

use bilu_bench::record::Record;
use bilu_bench::record::read::read;

pub(crate) use super::program::text;

/// Names the program, where that is not the one that was built.
const PROGRAM: &str = "BILU_BENCH_PROGRAM";

/// The program under test.
pub(crate) fn program() -> std::ffi::OsString {
    std::env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_bilu-bench").into())
}

/// `mpirun` on as many ranks; what they run is still to be added.
pub(crate) fn launcher(count: usize) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]);
    command.arg(count.to_string());
    // ranks that share a core give it to each other
    command.env("NO_COLOR", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}

/// `bilu-bench` on as many ranks.
pub(crate) fn command(count: usize, arguments: &[&str]) -> Command {
    let mut command = launcher(count);
    command.arg(program()).args(arguments);
    command
}

/// What a run on ranks that ends with `code` says.
pub(crate) fn said(count: usize, code: i32, arguments: &[&str]) -> String {
    let Output { status, stderr, stdout } = command(count, arguments).output().expect("mpirun");
    let text = text(&stdout) + &text(&stderr);
    assert_eq!(status.code(), Some(code), "{arguments:?} on {count}: {text}");
    text
}

pub(crate) fn records(path: &Path) -> Vec<Record> {
    read(path).unwrap().records
}

/// The records of a sweep of short measurements over ranks.
pub(crate) fn ran(count: usize, backend: &str, folder: &Path, arguments: &[&str]) -> Vec<Record> {
    let file = folder.join("records.jsonl");
    let name = file.display().to_string();
    let mut all = vec!["run", "--backend", backend, "-q", "-o", &name, "--force"];
    all.extend(["--history", "100", "--max-repetitions", "1"]);
    all.extend(arguments);
    said(count, 0, &all);
    records(&file)
}
