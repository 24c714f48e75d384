//! Bad input through the program: one error line that names it, a hint, exit code 2, nothing on
//! standard output, and no record lost.

use std::path::Path;
use std::process::{Command, Output};

use bilu_bench::record::read::read;

use crate::common::refused::{FOLDER, REFUSED};

/// Runs `bilu-bench run ARGUMENTS` with 4 GB of address space: what is declared but not there must
/// not be allocated.
fn run(arguments: &[&str]) -> Output {
    Command::new("sh")
        .args([
            "-c",
            "ulimit -v 4000000 && exec \"$0\" run \"$@\"",
            env!("CARGO_BIN_EXE_bilu-bench"),
        ])
        .args(arguments)
        .args(["--max-repetitions", "1", "-q"])
        .env("NO_COLOR", "1")
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .unwrap()
}

/// Standard error of a run that must be refused.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    text
}

/// `error: MESSAGE`, and `hint: HINT` when there is one.
fn error(message: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("hint: {hint}\n") };
    format!("error: {message}\n{hint}")
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn every_broken_matrix_file_is_refused_in_one_line() {
    for (file, place, hint) in REFUSED {
        let path = format!("{FOLDER}/{file}");
        assert_eq!(refused(&["--matrix", &path]), error(&format!("{path}{place}"), hint));
    }
}

#[test]
fn shapes_that_are_no_square_system_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let head = "%%MatrixMarket matrix coordinate real general\n";
    let wide = write(folder.path(), "wide.mtx", &format!("{head}2 3 1\n1 3 1.0\n"));
    let text = refused(&["--matrix", &wide]);
    assert!(text.starts_with(&format!("error: {wide}")) && text.contains("2 x 3"), "{text}");
    assert!(text.lines().count() <= 2, "{text}");

    let here = folder.path().display().to_string();
    assert_eq!(
        refused(&["--matrix", &here]),
        error(&format!("{here}: is a directory, not a file of a matrix"), "name the file in it")
    );
    let empty = write(folder.path(), "empty.mtx.gz", "");
    assert_eq!(refused(&["--matrix", &empty]), error(&format!("{empty}: the file is empty"), ""));
}

#[test]
fn sizes_of_generators_are_checked_before_memory_is_taken() {
    let usage = "write `poisson3d:N|NXxNYxNZ`";
    for (spec, message, hint) in [
        ("poisson3d:0", "`poisson3d`: the size in `0` must be positive", usage),
        ("poisson3d:-3", "`poisson3d`: `-3` in the size `-3` is not a positive integer", usage),
        ("poisson3d:4x0x4", "`poisson3d`: the size in `4x0x4` must be positive", usage),
        ("poisson3d:3x3", "`poisson3d`: `3x3` has 2 directions, not 3", usage),
        ("poisson3d:", "`poisson3d`: the size is missing", usage),
        ("poisson3d:4000", "`poisson3d`: 64000000000 unknowns: the limit is 4294967295", usage),
        ("poisson3d:1600", "28656640000 entries: the limit is 4294967295", "choose a smaller grid"),
        (
            "blockpoisson3d:400,b=9",
            "36210240000 entries: the limit is 4294967295",
            "choose a smaller grid",
        ),
        (
            "blockpoisson3d:4,b=129",
            "`blockpoisson3d`: `b=129` is not a whole number from 1 to 128",
            "",
        ),
        (
            "channel3d:8x1x8",
            "`channel3d`: 1 cell in y: at least 2 are needed",
            "write `channel3d:N|NXxNYxNZ[,n=..][,seed=..][,cfl=..][,retau=..]`",
        ),
        (
            "channel3d:8,n=9",
            "`channel3d`: `n=9` is no sum of fours and sixes",
            "choose an even number from 4 to 32",
        ),
        (
            "reservoir:1600,k=1",
            "28656640000 entries: the limit is 4294967295",
            "choose a smaller grid",
        ),
        (
            "reservoir:4,wells=2,at=9x1",
            "`reservoir`: the well `9x1` is outside the grid of 4 x 4 columns",
            "",
        ),
        ("convdiff3d:4,px=nan", "`convdiff3d`: `px=nan` is not a finite number", ""),
        (
            "blockpoisson3d:4,b=0.00000000000000000000000000000000000000000000001",
            "`blockpoisson3d`: `b=1e-47` is not a whole number from 1 to 128",
            "",
        ),
    ] {
        assert_eq!(refused(&["--matrix", spec]), error(message, hint));
    }
}

#[test]
fn a_block_above_the_order_is_refused_before_any_case_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let output = path.display().to_string();
    let matrices = "poisson3d:5,poisson3d:2";
    let arguments = ["--matrix", matrices, "--block-size", "2,9", "-o", &output];
    let done = run(&arguments);
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(done.stderr).unwrap(),
        error("block size 9 is above the 8 unknowns of `poisson3d:2`", "use block sizes up to 8")
    );
    assert!(!path.exists(), "known before a file is opened");
}

#[test]
fn wrong_settings_in_a_file_name_line_column_and_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    for (text, place, message, hint) in [
        (
            "[[sweep]]\nsolver = \"gmres\"\nblocksize = 4\n",
            ":3:1",
            "unknown setting `blocksize`",
            "did you mean `block-size`?",
        ),
        (
            "[[sweep]]\nfill = 0\n\n[[sweeps]]\n",
            ":4:3",
            "unknown key `sweeps`",
            "did you mean `sweep`?",
        ),
        (
            "[[sweep]]\nbackend = [\"cpu\", \"cpu-tm\"]\n",
            ":2:19",
            "unknown backend `cpu-tm`",
            "did you mean `cpu-mt`?",
        ),
        ("[[sweep]]\nblock-size = -4\n", ":2:14", "`-4` is outside 1 to 128", ""),
        ("[[sweep]]\nblock-size = 129\n", ":2:14", "`129` is outside 1 to 128", ""),
        ("[[sweep]]\nrestart = 507\n", ":2:11", "`507` is outside 1 to 506", ""),
        ("[[sweep]]\nrestart = 0\n", ":2:11", "`0` is outside 1 to 506", ""),
    ] {
        let path = write(folder.path(), "x.toml", text);
        let said = refused(&[&path]);
        assert!(said.starts_with(&format!("error: {path}{place}: {message}\n")), "{said}");
        let second = said.lines().nth(1).unwrap_or_default();
        let expected = if hint.is_empty() { hint.to_owned() } else { format!("hint: {hint}") };
        assert!(second.starts_with(&expected), "{said}");
        assert!(said.lines().count() <= 2, "{said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_written_leaves_earlier_rows_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let rows = path.display().to_string();
    assert_eq!(run(&["--matrix", "poisson3d:6", "-o", &rows]).status.code(), Some(0));
    let before = std::fs::read(&path).unwrap();

    let full = folder.path().join("full.jsonl");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let full = full.display().to_string();
    let more = ["--matrix", "poisson3d:6,poisson3d:7", "--resume", "-o", &rows, "-o"];
    assert_eq!(
        refused(&[&more[..], &[&full]].concat()),
        error(
            &format!("cannot write `{full}`: No space left on device (os error 28)"),
            "the disk is full; records written before are whole, continue with --resume"
        )
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let taken = folder.path().join("d.json");
    std::fs::create_dir(&taken).unwrap();
    let taken = taken.display().to_string();
    assert_eq!(
        refused(&[&more[..], &[&taken]].concat()),
        error(
            &format!("cannot write `{taken}`: Is a directory (os error 21)"),
            "it is a folder; name a file in it"
        )
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);

    // with room the same command goes on
    let code = run(&[&more[..5]].concat()).status.code();
    assert_eq!((code, read(&path).unwrap().records.len()), (Some(0), 2));
}

#[test]
fn parameters_of_preconditioners_and_deflation_are_checked_before_anything_runs() {
    let cases = [
        (
            "--precond",
            "fsai:power=9",
            "`fsai`: `power=9` is outside the range: whole numbers from 1 to 8",
            "",
        ),
        (
            "--precond",
            "mcsgs:omega=2",
            "`mcsgs`: `omega=2` is outside the range: above 0 and below 2",
            "",
        ),
        ("--precond", "jacobi:p=1", "`jacobi` has no parameters", ""),
        (
            "--precond",
            "meilu:lasts=ilu",
            "unknown parameter of `meilu` `lasts`",
            "did you mean `last`? known: levels, last, colouring",
        ),
        ("--deflation", "subdomain:0", "deflation `subdomain:0`: `0` is outside 1 to 4096", ""),
        (
            "--deflation",
            "levels",
            "unknown deflation `levels`",
            "did you mean `levelset`? known: none, subdomain:KxLxM, levelset, levelset-subdomain:KxLxM, subdomains, subdomains:M",
        ),
    ];
    for (flag, word, message, hint) in cases {
        let expected = error(&format!("{flag}: {message}"), hint);
        assert_eq!(refused(&["--matrix", "poisson3d:4", flag, word]), expected);
    }
}
