//! Files of any size and kind over the binary: what is read takes bounded memory, what has no end is refused,
//! Ctrl-C works while a file is read, and `-` is standard input.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use bilu_bench::base::status::Status;
use bilu_bench::case::ReadAs;
use bilu_bench::record::read::read;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common;
use crate::common::program::{program, ran, text};

const HEAD: &str = "%%MatrixMarket matrix coordinate real general\n";
/// 0.8 GB of addresses, of which threads take a part.
const LIMIT: &str = "-v 800000";

/// The program with little memory and few threads.
fn limited(limit: &str, arguments: &[&str]) -> Command {
    let mut command = common::program::limited(limit, arguments);
    command.env("RAYON_NUM_THREADS", "2").env("BILU_BENCH_CACHE", "off");
    command
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

/// A gzipped file: a head, and the same lines many times; members of gzip may follow each other.
fn repeated(path: &Path, head: &str, lines: &str, times: usize) {
    let mut file = File::create(path).unwrap();
    file.write_all(&gzipped(head)).unwrap();
    let member = gzipped(lines);
    (0..times).for_each(|_| file.write_all(&member).unwrap());
}

#[test]
fn tens_of_millions_of_duplicates_take_the_memory_of_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx.gz");
    // 64 million entries: 768 MB in the arrays of a matrix, 1 GB when they wait out of order
    for (lines, sums) in [("1 1 1\n2 2 1\n", [32, 32]), ("2 2 1\n1 1 1\n", [32, 32])] {
        let million = lines.repeat(500_000);
        repeated(&path, &format!("{HEAD}2 2 64000000\n"), &million, 64);
        let out = folder.path().join("b.mtx");
        let arguments = ["matrix", "convert", &name(&path), &name(&out), "--force"];
        let output = ran(&mut limited(LIMIT, &arguments), 0);
        assert_eq!(text(&output.stderr), "remark: 63999998 duplicate entries summed\n");
        let written = std::fs::read_to_string(&out).unwrap();
        let [a, b] = sums.map(|s| f64::from(s) * 1e6);
        let matrix =
            bilu_bench::matrix::market::read_matrix(&out, ReadAs::Expanded).unwrap().matrix;
        assert_eq!((matrix.get(0, 0), matrix.get(1, 1)), (Some(a), Some(b)), "{written}");
    }
}

#[test]
fn what_is_declared_beyond_the_memory_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx.gz");
    // random bytes do not shrink: the file could hold 4 billion entries
    let head = format!("{HEAD}3000000 3000000 4000000000\n");
    repeated(&path, &head, &"1 1 1\n".repeat(100_000), 1);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&vec![7; 16 << 20]).unwrap();
    let output = ran(&mut limited(LIMIT, &["matrix", "info", &name(&path)]), 1);
    let said = text(&output.stderr);
    let start = format!("error: {}:2: the matrix takes 48.0 GB, but only 0.", name(&path));
    assert!(said.starts_with(&start), "{said}");
    let hint = "hint: the size line declares 4000000000 entries; is that right?\n";
    assert!(said.ends_with(hint), "{said}");
    // a case of it is a record
    let records = folder.path().join("a.csv");
    let arguments = ["run", "--matrix", &name(&path), "-q", "-o", &name(&records)];
    let output = limited(LIMIT, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(read(&records).unwrap().records[0].status, Status::OutOfMemory);
}

#[test]
fn the_first_surplus_entry_of_an_endless_file_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx.gz");
    repeated(&path, &format!("{HEAD}2 2 3\n"), &"1 1 1\n".repeat(1_000_000), 2000);
    let output = ran(&mut limited(LIMIT, &["matrix", "info", &name(&path)]), 2);
    assert_eq!(
        text(&output.stderr),
        format!(
            "error: {}:6:1: more entries than the size line declares\n\
             hint: the size line is wrong, or lines were added\n",
            name(&path)
        )
    );
}

#[test]
fn files_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let link = |ending: &str| {
        let path = folder.path().join(format!("zero.{ending}"));
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        name(&path)
    };
    let (toml, csv, mtx) = (link("toml"), link("csv"), link("mtx"));
    for (arguments, message) in [
        (&["run", "/dev/zero"][..], "/dev/zero: is a device, not an experiment".to_owned()),
        (&["run", &toml], format!("{toml}: is a device, not an experiment")),
        (&["obstacle", &toml], format!("{toml}: is a device, not an experiment")),
        (&["compare", &csv, &csv], format!("{csv}: is a device, not a result file")),
        (&["matrix", "info", &mtx], format!("{mtx}:1: line longer than 1048576 bytes")),
    ] {
        let output = ran(&mut limited(LIMIT, arguments), 2);
        let said = text(&output.stderr);
        assert_eq!(said.lines().next(), Some(&*format!("error: {message}")), "{said}");
    }
    let large = folder.path().join("large.toml");
    File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let output = ran(&mut limited(LIMIT, &["run", &name(&large)]), 2);
    let message = "is larger than 16 MiB, the limit of an experiment";
    assert_eq!(text(&output.stderr), format!("error: {}: {message}\n", name(&large)));
    // a pipe that does not end
    let script = "yes '# nothing' | \"$0\" run /dev/stdin";
    let mut piped = Command::new("sh");
    piped.args(["-c", script, env!("CARGO_BIN_EXE_bilu-bench")]).env("NO_COLOR", "1");
    let output = ran(&mut piped, 2);
    assert_eq!(text(&output.stderr), format!("error: /dev/stdin: {message}\n"));
}

#[test]
fn other_compressions_are_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (file, start, how, unpack) in [
        ("a.mtx.lz4", &b"\x04\x22\x4d\x18more"[..], "is compressed by LZ4", "lz4 -dk"),
        ("a.mtx.Z", b"\x1f\x9dmore", "is compressed by compress", "uncompress -k"),
        ("a.mtx.7z", b"7z\xbc\xaf\x27\x1cmore", "is an archive of 7-Zip", "7z x"),
        ("named.mtx", b"7z\xbc\xaf\x27\x1cmore", "is an archive of 7-Zip", "7z x"),
    ] {
        let path = folder.path().join(file);
        std::fs::write(&path, start).unwrap();
        let path = name(&path);
        let expected = format!(
            "error: {path}: {how}, which is not read here\n\
             hint: unpack it: `{unpack} {path}`; of compressions gzip, xz, zstd and bzip2 are read\n"
        );
        for arguments in [["matrix", "info", &path], ["run", "--matrix", &path]] {
            assert_eq!(text(&ran(&mut program(&arguments), 2).stderr), expected);
        }
    }
    // by its name, in a folder of matrices
    let mut command = program(&["matrix", "info", "a"]);
    let output = ran(command.env("BILU_BENCH_MATRICES", folder.path()), 2);
    let path = name(&folder.path().join("a.mtx.7z"));
    let said = text(&output.stderr);
    assert!(said.starts_with(&format!("error: {path}: is an archive of 7-Zip")), "{said}");
    let output = ran(&mut program(&["matrix", "info", "no.mtx.xz"]), 2);
    let said = text(&output.stderr);
    assert!(said.contains("`no.mtx.xz`: No such file or directory"), "{said}");
    // SuiteSparse's archives hold a tar
    let tar = folder.path().join("a.tar.gz");
    let mut bytes = vec![0; 1024];
    bytes[257..262].copy_from_slice(b"ustar");
    std::fs::write(&tar, gzipped(&text(&bytes))).unwrap();
    let said = text(&ran(&mut program(&["matrix", "info", &name(&tar)]), 2).stderr);
    assert!(said.starts_with(&format!("error: {}: is an archive of tar", name(&tar))), "{said}");
}

#[test]
fn a_byte_order_mark_is_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let content = format!("\u{feff}{HEAD}2 2 2\n1 1 4\n2 2 4\n");
    let plain = folder.path().join("a.mtx");
    std::fs::write(&plain, &content).unwrap();
    let gz = folder.path().join("b.mtx.gz");
    std::fs::write(&gz, gzipped(&content)).unwrap();
    for path in [plain, gz] {
        let output = ran(&mut program(&["matrix", "info", &name(&path), "--fill", "none"]), 0);
        assert!(
            text(&output.stdout).contains("entries            2, "),
            "{}",
            text(&output.stdout)
        );
    }
    let wide = folder.path().join("c.mtx");
    std::fs::write(&wide, b"\xff\xfe%\0%\0").unwrap();
    let said = text(&ran(&mut program(&["matrix", "info", &name(&wide)]), 2).stderr);
    let message =
        format!("error: {}: is text in UTF-16\nhint: save it as ASCII or UTF-8\n", name(&wide));
    assert_eq!(said, message);
}

/// The program with `content` on a pipe.
fn fed(arguments: &[&str], content: &[u8]) -> Output {
    let mut command = program(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    // it may not read it
    let _ = to.write_all(content);
    drop(to);
    child.wait_with_output().unwrap()
}

#[test]
fn standard_input_is_a_matrix_for_all_cases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    ran(&mut program(&["matrix", "generate", "poisson3d:6", "-o", &name(&path)]), 0);
    let content = std::fs::read(&path).unwrap();
    let out = folder.path().join("a.csv");
    // two readings of it in turn, each of several cases
    let words = ["run", "--matrix", "-,poisson3d:4", "--zeros", "keep,drop", "--fill", "0..1"];
    let file = name(&out);
    let arguments = [&words[..], &["-q", "--force", "-o", &file]].concat();
    for content in [content.clone(), gzipped(&text(&content))] {
        let output = fed(&arguments, &content);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let records = read(&out).unwrap().records;
        let sizes: Vec<_> = records.iter().map(|r| (r.case.matrix.as_str(), r.size.n)).collect();
        assert_eq!(sizes, [[("-", 216); 4], [("poisson3d:4", 64); 4]].concat());
        assert!(records.iter().all(|r| r.status == Status::Converged));
    }
    let output = fed(&["matrix", "info", "-", "--fill", "none"], &content);
    assert!(
        text(&output.stdout)
            .starts_with("matrix             standard input\nrows               216\n")
    );
    // from a file, which need not be copied
    let mut command = program(&["matrix", "info", "-", "--fill", "none"]);
    ran(command.stdin(File::open(&path).unwrap()), 0);
    let said = |arguments: &[&str], content: &[u8]| {
        let output = fed(arguments, content);
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(
        said(&["matrix", "info", "-"], b"hello\n").1.lines().next(),
        Some("error: standard input:1:1: not a Matrix Market file: its first line is `hello`")
    );
    assert_eq!(
        said(&["matrix", "info", "-"], b""),
        (Some(2), "error: standard input: the file is empty\n".into())
    );
    assert_eq!(
        said(&["run", "--matrix", "-", "--isolate"], &content),
        (
            Some(2),
            "error: cases with a process of their own cannot read standard input\n\
             hint: write it to a file and name that, or go without --isolate and --case-limit\n"
                .into()
        )
    );
}

/// A pipe in `folder`, and the program that reads it, once it has taken what was written first.
fn reading(folder: &Path, arguments: &[&str], first: &[u8]) -> (PathBuf, File, Child) {
    let pipe = folder.join("pipe.mtx");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = program(arguments);
    command.arg(&pipe).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // waits for the reader
    let mut to = OpenOptions::new().write(true).open(&pipe).unwrap();
    to.write_all(first).unwrap();
    (pipe, to, child)
}

#[test]
fn ctrl_c_stops_the_reading_of_a_file() {
    // more than a pipe holds: it has been read from when all is written
    let lines = format!("{HEAD}9 9 100000000\n{}", "1 1 1\n".repeat(100_000));
    for arguments in [
        &["run", "--matrix"][..],
        &["matrix", "info"],
        &["advise"],
        &["matrix", "convert", "--force"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.mtx");
        let convert = arguments.contains(&"convert");
        let pipe = folder.path().join("pipe.mtx");
        let (pipe, to, child) = if convert {
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let mut command = program(arguments);
            command.arg(&pipe).arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = command.spawn().unwrap();
            let mut to = OpenOptions::new().write(true).open(&pipe).unwrap();
            to.write_all(lines.as_bytes()).unwrap();
            (pipe, to, child)
        } else {
            reading(folder.path(), arguments, lines.as_bytes())
        };
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        drop(to);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{arguments:?}: {said}");
        let told = format!("stopped while reading `{}`", pipe.display());
        assert!(said.contains(&told), "{arguments:?}: {said}");
        assert!(!said.contains("error"), "{said}");
        assert!(!out.exists());
    }
}

#[test]
fn a_long_reading_has_a_bar_on_a_terminal() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `script` to make a terminal");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.mtx");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let bin = env!("CARGO_BIN_EXE_bilu-bench");
    let line = format!("'{bin}' matrix info --fill none '{}'", pipe.display());
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = OpenOptions::new().write(true).open(&pipe).unwrap();
    to.write_all(format!("{HEAD}2 2 2\n1 1 4\n").as_bytes()).unwrap();
    let (mut shown, mut out) = (Vec::new(), child.stdout.take().unwrap());
    let start = Instant::now();
    while !text(&shown).contains("pipe.mtx: 58 B") {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", text(&shown));
        let mut block = [0; 4096];
        let count = out.read(&mut block).unwrap();
        shown.extend_from_slice(&block[..count]);
    }
    to.write_all(b"2 2 4\n").unwrap();
    drop(to);
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    assert!(text(&rest).contains("entries            2, "), "{}", text(&rest));
    assert!(child.wait().unwrap().success());
}

#[test]
fn numbers_of_threads_in_the_environment_are_bounded_and_checked() {
    let run = |value: &str, code| {
        let mut command = program(&["run", "--matrix", "poisson3d:4", "-q"]);
        text(&ran(command.env("RAYON_NUM_THREADS", value), code).stderr)
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = (4 * processors).max(16);
    assert_eq!(
        run("100000", 0),
        format!("note: RAYON_NUM_THREADS=100000: {most} threads on {processors} processors\n")
    );
    assert_eq!(run("3", 0), "");
    assert_eq!(
        run("many", 2),
        "error: RAYON_NUM_THREADS: `many` is not a number of threads\n\
         hint: a whole number; 0 or nothing for one of each processor\n"
    );
}

#[test]
fn paths_in_an_experiment_count_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let sub = folder.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let (a, b) = (sub.join("a.mtx"), sub.join("b.mtx"));
    ran(&mut program(&["matrix", "generate", "poisson3d:4", "-o", &name(&a)]), 0);
    let ones = format!("%%MatrixMarket matrix array real general\n64 1\n{}", "1\n".repeat(64));
    std::fs::write(&b, ones).unwrap();
    let toml =
        "[[sweep]]\nmatrix = [\"a.mtx\", \"poisson3d:4\"]\nrhs = [\"file:b.mtx\", \"ones\"]\n";
    std::fs::write(sub.join("x.toml"), toml).unwrap();
    for (here, experiment, matrix, extra) in [
        (folder.path(), "sub/x.toml", "sub/a.mtx", &[][..]),
        (&sub, "x.toml", "a.mtx", &[]),
        (folder.path(), "sub/x.toml", "sub/a.mtx", &["--isolate"]),
    ] {
        let mut command = program(&["run", experiment, "-q", "--force", "-o", "out.csv"]);
        ran(command.args(extra).current_dir(here), 0);
        // the result is in the working directory, the record names the file from there
        let records = read(&here.join("out.csv")).unwrap().records;
        let cases: Vec<_> =
            records.iter().map(|r| (r.case.matrix.as_str(), r.case.rhs.as_str())).collect();
        let file = format!("file:{}", matrix.replace("a.mtx", "b.mtx"));
        let wanted =
            [(matrix, &*file), (matrix, "ones"), ("poisson3d:4", &file), ("poisson3d:4", "ones")];
        assert_eq!(cases, wanted);
        let iterations: Vec<_> = records.iter().map(|r| r.convergence.iterations).collect();
        assert!(iterations.iter().all(|i| *i == iterations[0] && *i > 0), "{iterations:?}");
    }
    // a flag counts from the working directory
    let mut command = program(&["run", "sub/x.toml", "--matrix", "a.mtx", "-q"]);
    let output = ran(command.current_dir(folder.path()), 2);
    assert!(text(&output.stderr).starts_with("error: cannot read `a.mtx`: "));
    std::fs::write(sub.join("y.toml"), "[[sweep]]\nmatrix = \"no.mtx\"\n").unwrap();
    let output = ran(program(&["run", "sub/y.toml"]).current_dir(folder.path()), 2);
    assert_eq!(
        text(&output.stderr),
        "error: sub/y.toml:2:10: cannot read `sub/no.mtx`: No such file or directory (os error 2)\n\
         hint: relative paths in a TOML file count from its folder\n"
    );
}

#[test]
fn numbers_of_many_digits_have_short_names() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.csv");
    let digits = "0.1000000000000000055511151231257827021181583404541015625";
    let matrix = format!("convdiff3d:4,px={digits}");
    let precond = "mcsgs:omega=1.2500000000000000000000000000000000000000000000";
    let mut command = program(&["run", "--matrix", &matrix, "--precond", precond, "-q", "-o"]);
    ran(command.arg(&out), 0);
    let record = &read(&out).unwrap().records[0];
    assert_eq!(record.case.matrix, "convdiff3d:4,px=0.1");
    assert_eq!(record.case.precond, "mcsgs:omega=1.25");
}
