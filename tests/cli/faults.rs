//! Faults that a long run meets, over the binary: what dies, hangs, fills up or gets in the way costs a
//! record or ends with one clear line. `docs/faults.md` is the list, with the tests that are elsewhere.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bilu_bench::base::status::Status;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;

use crate::common::program::{limited, ran, text};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn records(path: &Path) -> Vec<Record> {
    read(path).unwrap().records
}

/// Starts a sweep of many short cases and waits for its first records.
fn started(path: &Path) -> Child {
    let mut command = program();
    command.args(["run", "--matrix", "poisson3d:10", "--restart", "5..304"]);
    command.args(["--max-repetitions", "1", "-q", "-o"]).arg(path);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while read(path).map_or(0, |c| c.records.len()) < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "no record in a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn a_second_process_is_kept_off_a_result_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.json"] {
        let path = folder.path().join(name);
        let mut child = started(&path);
        for how in ["--resume", "--force"] {
            let mut second = program();
            second.args(["run", "--matrix", "poisson3d:5", how, "-o"]).arg(&path);
            let output = ran(&mut second, 2);
            assert_eq!(
                text(&output.stderr),
                format!(
                    "error: `{}` is being written by another run\n\
                     hint: wait for it, or write to another file\n",
                    path.display()
                )
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(records(&path).len() >= 3);
        // the lock went with its process
        let mut third = program();
        third.args(["run", "--matrix", "poisson3d:5", "-q", "--force", "-o"]).arg(&path);
        ran(&mut third, 0);
        assert_eq!(records(&path).len(), 1);
    }
}

#[test]
fn isolated_cases_give_the_same_records() {
    let folder = tempfile::tempdir().unwrap();
    let stable = |isolate: bool| {
        let path = folder.path().join(format!("{isolate}.csv"));
        let mut command = program();
        command.args(["run", "--matrix", "convdiff3d:6x5x4,px=0.3", "--fill", "0..2", "-q"]);
        command.args(["--ordering", "natural,rcm", "--history", "3", "--max-repetitions", "1"]);
        if isolate {
            command.arg("--isolate");
        }
        ran(command.arg("-o").arg(&path), 0);
        let of = |r: Record| {
            (format!("{:?}", r.case), r.convergence.iterations, r.factor, r.convergence)
        };
        records(&path).into_iter().map(of).collect::<Vec<_>>()
    };
    let apart = stable(true);
    assert_eq!(apart.len(), 6);
    assert_eq!(apart, stable(false));
}

#[test]
fn a_case_that_does_not_end_is_a_record_and_the_next_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut command = program();
    // of the large one, 100,000 solves take an hour; of the small one, no second
    command.args(["run", "--matrix", "poisson3d:30,poisson3d:1", "--case-limit", "8", "-q"]);
    command.args(["--min-repetitions", "100000", "-o"]).arg(&path);
    ran(&mut command, 1);
    let records = records(&path);
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].status, Status::TimeLimit);
    assert_eq!(records[0].reason.as_deref(), Some("time limit of a case, 8 s, reached"));
    assert_eq!((records[1].status, records[1].times.repetitions), (Status::Converged, 100_000));
}

#[cfg(target_os = "linux")]
#[test]
fn a_case_without_memory_is_a_record_and_the_next_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let output = path.display().to_string();
    // 2 GB of addresses: no room for 64 million rows
    let mut command = limited(
        "-v 2000000",
        &["run", "--matrix", "poisson3d:400,poisson3d:6", "--isolate", "-q", "-o", &output],
    );
    ran(command.env("RAYON_NUM_THREADS", "2"), 1);
    let records = records(&path);
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].status, Status::OutOfMemory, "{:?}", records[0].reason);
    let reason = records[0].reason.as_deref().unwrap();
    assert!(reason.starts_with("the matrix takes 5.6 GB, but only "), "{reason}");
    assert_eq!(records[1].status, Status::Converged);
    // what is not known is no number
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().next().unwrap().contains("\"n\":null,\"nnz\":null,"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_is_seen_to_be_too_little_is_a_record_without_a_process_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let output = path.display().to_string();
    let arguments = ["--matrix", "poisson3d:60,poisson3d:6", "--fill", "8", "-q", "-o", &output];
    let mut command = limited("-v 600000", &[&["run"], &arguments[..]].concat());
    ran(command.env("RAYON_NUM_THREADS", "2"), 1);
    let records = records(&path);
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].status, records[0].size.n), (Status::OutOfMemory, 216_000));
    let reason = records[0].reason.as_deref().unwrap();
    assert!(reason.contains(" GiB needed"), "{reason}");
    assert_eq!(records[1].status, Status::Converged);

    let obstacle = |backend: &[&str], status: &str| {
        let path = folder.path().join("b.csv");
        let output = path.display().to_string();
        let arguments = ["obstacle", "-q", "--m", "512", "--max-relaxations", "2", "--force", "-o"];
        let mut command = limited("-v 600000", &[&arguments[..], &[&output], backend].concat());
        let output = ran(&mut command, 1);
        let rows = std::fs::read_to_string(&path).unwrap();
        assert!(rows.contains(&format!(",{status},")), "{rows}");
        text(&output.stderr)
    };
    for backend in [&["--backend", "cpu"][..], &["--backend", "cpu-mt", "--split", "2x1"]] {
        assert!(!obstacle(backend, "out-of-memory").contains("panicked"));
    }
}

#[test]
fn a_file_that_must_not_grow_ends_the_run_and_can_be_resumed_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let output = path.display().to_string();
    let arguments =
        ["run", "--matrix", "poisson3d:6", "--fill", "0..9", "--max-repetitions", "1", "-q", "-o"];
    let arguments = [&arguments[..], &[&output]].concat();
    // 4 blocks of 512 or 1024 bytes: the header and a few records
    let cut = limited("-f 4", &arguments).output().unwrap();
    assert!(!cut.status.success(), "{}", text(&cut.stderr));
    let before = records(&path);
    assert!(before.len() < 10);
    ran(program().args(&arguments).arg("--resume"), 0);
    let after = records(&path);
    assert_eq!((after.len(), &after[..before.len()]), (10, &before[..]));
}

#[test]
fn names_with_spaces_and_other_letters_are_names() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("ein Ordner é 矩阵");
    std::fs::create_dir(&inside).unwrap();
    let matrix = inside.join("ma trix ü.mtx");
    ran(program().args(["matrix", "generate", "poisson3d:6", "-o"]).arg(&matrix), 0);
    let result = inside.join("ergeb nis ✓.csv");
    let mut command = program();
    ran(command.arg("run").arg("--matrix").arg(&matrix).arg("-q").arg("-o").arg(&result), 0);
    assert_eq!(records(&result)[0].case.matrix, matrix.display().to_string());
    ran(program().arg("compare").arg(&result).arg(&result), 0);
    // and one that is no text at all
    let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"r\xff\xfe.csv"));
    ran(program().args(["run", "--matrix", "poisson3d:5", "-q", "-o"]).arg(&odd), 0);
    assert_eq!(records(&odd).len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_no_obstacle_but_for_results() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = folder.path().join("a.mtx.gz");
    ran(program().args(["matrix", "generate", "poisson3d:30", "-o"]).arg(&matrix), 0);
    assert!(std::fs::metadata(&matrix).unwrap().len() > 128 << 10, "worth caching");
    // nobody may write there, not even root; no cache either
    let mut command = program();
    command.current_dir("/proc").env("BILU_BENCH_CACHE", "/proc/nowhere");
    let output = ran(command.arg("run").arg("--matrix").arg(&matrix), 0);
    assert!(text(&output.stderr).contains("cache not written: "), "{}", text(&output.stderr));
    let mut command = program();
    command.current_dir("/proc").args(["run", "--matrix", "poisson3d:5", "-o", "a.csv"]);
    let output = ran(&mut command, 2);
    assert!(text(&output.stderr).starts_with("error: cannot write `a.csv`: "));
}

#[test]
fn a_damaged_cache_is_read_past_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let (matrix, cache) = (folder.path().join("a.mtx.gz"), folder.path().join("cache"));
    ran(program().args(["matrix", "generate", "poisson3d:30", "-o"]).arg(&matrix), 0);
    let run = || {
        let mut command = program();
        command.env("BILU_BENCH_CACHE", &cache).arg("run").arg("--matrix").arg(&matrix);
        text(&ran(&mut command, 0).stderr)
    };
    assert!(!run().contains("cache"));
    let entries = || -> Vec<PathBuf> {
        std::fs::read_dir(&cache).unwrap().map(|e| e.unwrap().path()).collect()
    };
    let [entry] = &entries()[..] else { panic!("{:?}", entries()) };
    let whole = std::fs::read(entry).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"BILUCSR1", b""] {
        std::fs::write(entry, damaged).unwrap();
        assert!(run().contains("cache entry not used: "));
        assert_eq!(std::fs::read(entry).unwrap(), whole, "it is written anew");
    }
}

#[test]
fn damaged_result_files_are_told_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let mut command = program();
    ran(
        command.args(["run", "--matrix", "poisson3d:5", "--fill", "0..1", "-q", "-o"]).arg(&path),
        0,
    );
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, whole.replacen("converged", "konvergiert", 1)).unwrap();
    let mut command = program();
    command.args(["run", "--matrix", "poisson3d:5", "--resume", "-o"]).arg(&path);
    let output = ran(&mut command, 2);
    let start = format!("error: {}:2: unknown variant `konvergiert`", path.display());
    assert!(text(&output.stderr).starts_with(&start), "{}", text(&output.stderr));
    let damaged = std::fs::read_to_string(&path).unwrap();
    assert!(damaged.contains("konvergiert"), "nothing was overwritten");
}
