//! Over the program: files that are never lost, records that are never mixed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bilu_bench::record::Record;
use bilu_bench::record::read::read;

use crate::common::program::text;

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    command.env("NO_COLOR", "1").stdin(Stdio::null()).current_dir(folder);
    command
}

/// Runs the words in `folder`; they are split at spaces.
fn ran(folder: &Path, words: &str, code: i32) -> Output {
    let output = program(folder).args(words.split(' ')).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{words}: {}", text(&output.stderr));
    output
}

fn error(folder: &Path, words: &str) -> String {
    text(&ran(folder, words, 2).stderr)
}

fn records(path: &Path) -> Vec<Record> {
    read(path).unwrap().records
}

/// A folder with a matrix, a broken one and results in three forms.
struct Place {
    folder: tempfile::TempDir,
}

const FORMS: [&str; 4] = ["good.csv", "good.jsonl", "good.json", "good.md"];

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        ran(place.path(), "matrix generate poisson3d:4 -o a.mtx", 0);
        let a = std::fs::read_to_string(place.at("a.mtx")).unwrap();
        std::fs::write(place.at("broken.mtx"), &a[..a.len() / 2]).unwrap();
        std::fs::write(
            place.at("short.mtx"),
            "%%MatrixMarket matrix array real general\n2 1\n1\n1\n",
        )
        .unwrap();
        let outputs = FORMS.map(|name| format!(" -o {name}")).concat();
        ran(place.path(), &format!("run --matrix a.mtx --max-repetitions 1 -q{outputs}"), 0);
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// All files and what is in them.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = std::fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    }
}

#[test]
fn a_run_that_cannot_begin_leaves_every_file_as_it_was() {
    let place = Place::new();
    let before = place.files();
    let no_gpu = bilu_bench::compute::available("cuda").err();
    let wrong = [
        ("--matrix broken.mtx", "broken.mtx:", 2),
        ("--matrix a.mtx,broken.mtx", "broken.mtx:", 2),
        ("--matrix broken.mtx,a.mtx", "broken.mtx:", 2),
        ("--matrix a.mtx --rhs own", "`a` has no right-hand side of its own", 2),
        ("--matrix poisson3d:4,poisson3d:50 --rhs own", "`poisson3d:50` has no right-hand side", 2),
        (
            "--matrix a.mtx --rhs ones,file:short.mtx",
            "short.mtx: 2 values for a matrix of 64 rows",
            2,
        ),
        ("--matrix poisson3d:50 --rhs file:short.mtx", "short.mtx: 2 values for a matrix of", 2),
        (
            "--matrix a.mtx --block-size 1,65",
            "block size 65 is above the 64 unknowns of `a.mtx`",
            2,
        ),
        ("--matrix a.mtx,convdiff3d:80,cx=-1", "`convdiff3d`: `cx=-1` must be positive", 2),
        // made in small before the run
        ("--matrix a.mtx,poisson3d:1000", "6994000000 entries: the limit is 4294967295", 2),
        ("--matrix a.mtx,obstacle:60x60x61", "`obstacle`: 60x60x61 is no cube", 2),
        (
            "--matrix a.mtx,permeability:40,field=absent",
            "`permeability`: no permeability field `absent`",
            2,
        ),
        ("--matrix a.mtx,layered:4,layers=9", "`layers=9` is not a whole number from 1 to 4", 2),
        ("--matrix a.mtx --read-as as-stored", "a general file cannot be read as stored", 2),
        ("--matrix a.mtx --backend cuda", "", 1),
    ];
    for (words, why, code) in wrong {
        if code == 1 && no_gpu.is_none() {
            continue;
        }
        for how in ["--force", "--resume"] {
            for form in FORMS {
                if (form, how) == ("good.md", "--resume") || (code, how) == (1, "--resume") {
                    continue;
                }
                let command = format!("run {words} --isolate {how} -o new.csv -o {form}");
                for command in [command.replace("--isolate ", ""), command] {
                    let output = ran(place.path(), &command, code);
                    let message = text(&output.stderr);
                    assert!(message.contains(why), "{command}: {message}");
                    assert!(place.files() == before, "{command}: a file is another one");
                }
            }
        }
    }
}

#[test]
fn what_is_read_is_not_written() {
    let place = Place::new();
    let link = |from: &str, to: &str| std::fs::hard_link(place.at(from), place.at(to)).unwrap();
    let toml = "[[sweep]]\nmatrix = \"poisson3d:4\"\n";
    std::fs::write(place.at("o.toml"), "[[sweep]]\nm = 8\n").unwrap();
    link("o.toml", "o.json");
    std::fs::write(place.at("e.toml"), toml).unwrap();
    link("e.toml", "e.json");
    link("a.mtx", "a.csv");
    link("short.mtx", "a_rhs.mtx");
    link("a_rhs.mtx", "rhs.jsonl");
    link("good.csv", "page.html");
    link("good.csv", "other.csv");
    std::os::unix::fs::symlink("good.csv", place.at("figure.csv")).unwrap();
    std::fs::create_dir(place.at("sub")).unwrap();
    let before = place.files();
    for (words, why) in [
        ("run e.toml -o e.json --force", "`e.json` is the same file as `e.toml`, which is read"),
        (
            "run --matrix a.mtx -o a.csv --force",
            "`a.csv` is the same file as `a.mtx`, which is read",
        ),
        ("run --matrix a.mtx -o rhs.jsonl --force", "`rhs.jsonl` is the same file as `a_rhs.mtx`"),
        (
            "run --matrix poisson3d:4 --rhs file:a.csv -o sub/../a.csv --force",
            "`sub/../a.csv` is the same file as `a.csv`, which is read",
        ),
        (
            "run --matrix poisson3d:4 -o good.csv -o other.csv --force",
            "`other.csv` is the same file",
        ),
        (
            "run --matrix poisson3d:4 -o good.csv -o ./good.csv --force",
            "is the same file as `good.csv`",
        ),
        ("obstacle ./o.toml -o o.json --force", "`o.json` is the same file"),
        ("matrix convert a.mtx a.mtx --force", "`a.mtx` is read, and cannot be written as well"),
        ("report good.csv -o page.html --force", "`page.html` is the same file as `good.csv`"),
        ("plot good.csv -o figure.csv --force --kind phases", "`figure.csv` is the same file"),
    ] {
        let message = error(place.path(), words);
        assert!(message.contains(why), "{words}: {message}");
        assert!(place.files() == before, "{words}: a file is another one");
    }
}

#[test]
fn records_of_another_matrix_are_not_added_to() {
    let place = Place::new();
    let hash = |name: &str| {
        let hash = records(&place.at(name))[0].hash.clone();
        (hash.matrix_hash.unwrap(), hash.rhs_hash.unwrap())
    };
    let (matrix, ones) = hash("good.csv");
    assert_eq!((matrix.len(), ones.len()), (16, 16));
    // the file and the generator make the same system
    ran(place.path(), "run --matrix poisson3d:4 --max-repetitions 1 -q -o p.csv", 0);
    assert_eq!(hash("p.csv"), (matrix.clone(), ones.clone()));
    // so does a process of its own
    ran(place.path(), "run --matrix a.mtx --max-repetitions 1 -q -o i.csv --isolate", 0);
    assert_eq!(hash("i.csv"), (matrix.clone(), ones));

    let a = std::fs::read_to_string(place.at("a.mtx")).unwrap();
    std::fs::write(place.at("a.mtx"), a.replacen(" 6.0", " 7.0", 1)).unwrap();
    let before = place.files();
    for form in ["good.csv", "good.jsonl", "good.json"] {
        for fill in ["0", "0..1"] {
            let words = format!("run --matrix a.mtx --fill {fill} --resume -o {form}");
            let message = error(place.path(), &words);
            let start = format!(
                "error: {form}: `a.mtx` is not the system of its records: n = 64, nnz = 352, hash {matrix} in \
                 the file, n = 64, nnz = 352, hash "
            );
            assert!(message.starts_with(&start), "{message}");
            assert!(message.contains("hint: write to another file, or start over with --force"));
        }
    }
    assert!(place.files() == before);

    // side by side they are shown and not judged
    ran(place.path(), "run --matrix a.mtx --max-repetitions 1 -q -o new.csv", 0);
    let output = ran(place.path(), "compare good.csv new.csv", 0);
    let table = text(&output.stdout);
    assert!(table.contains("| other matrix"), "{table}");
    assert!(table.contains("no case can be compared"), "{table}");
    let output = ran(place.path(), "compare good.csv new.csv --fail-on-regression", 1);
    assert!(text(&output.stderr).contains("1 case of another matrix"), "{}", text(&output.stderr));
    let output = ran(place.path(), "compare good.csv new.csv --format json", 0);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows[0]["verdict"], "other matrix");
    assert!(rows[0]["ratio"].is_null() && rows[0]["differs"].is_null(), "{rows}");
    // a page and figures tell them apart
    let output = ran(place.path(), "report good.csv new.csv -o page.html", 0);
    let note = format!("a.mtx: 2 matrices under one name are set apart: #{}, #", &matrix[..8]);
    assert!(text(&output.stderr).contains(&note), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(place.at("page.html")).unwrap();
    assert!(page.contains(&format!("a.mtx#{}", &matrix[..8])), "no name of its own");
}

#[test]
fn another_right_hand_side_is_another_system() {
    let place = Place::new();
    let vector = |value: &str| {
        let head = "%%MatrixMarket matrix array real general\n64 1\n";
        std::fs::write(place.at("b.mtx"), head.to_owned() + &value.repeat(64)).unwrap();
    };
    vector("1\n");
    let run = "run --matrix poisson3d:4 --rhs file:b.mtx --max-repetitions 1 -q";
    ran(place.path(), &format!("{run} -o b.csv"), 0);
    vector("2\n");
    let before = place.files();
    let message = error(place.path(), &format!("{run} --fill 1 --resume -o b.csv"));
    let why = "b.csv: `file:b.mtx` of `poisson3d:4` is not the system of its records: hash ";
    assert!(message.contains(why), "{message}");
    assert!(place.files() == before);
}

#[test]
fn records_without_a_hash_are_continued_with_a_note() {
    let place = Place::new();
    let path = place.at("good.csv");
    // as an earlier version wrote it: without the columns of this one
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let kept: Vec<usize> = reader
        .headers()
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, name)| !["matrix-hash", "rhs-hash", "schema"].contains(name))
        .map(|(i, _)| i)
        .collect();
    let mut old = csv::Writer::from_writer(Vec::new());
    let header = reader.headers().unwrap().clone();
    for row in std::iter::once(header).chain(reader.records().map(Result::unwrap)) {
        old.write_record(kept.iter().map(|&i| &row[i])).unwrap();
    }
    let old = old.into_inner().unwrap();
    std::fs::write(&path, &old).unwrap();
    let before = records(&path);
    let run = "run --matrix a.mtx --fill 0..1 --max-repetitions 1 --resume -o good.csv";
    let message = text(&ran(place.path(), run, 0).stderr);
    let note = "note: good.csv: 1 record of `a.mtx` without a hash: of the matrix only n and nnz are compared";
    assert!(message.contains(note), "{message}");
    assert!(
        message.contains("note: good.csv: gets 3 columns that an earlier version"),
        "{message}"
    );
    let after = records(&path);
    assert_eq!((after.len(), &after[..1]), (2, &before[..]));
    assert!(after[0].hash.matrix_hash.is_none() && after[1].hash.matrix_hash.is_some());

    std::fs::write(&path, &old).unwrap();
    ran(place.path(), "matrix generate poisson3d:5 -o a.mtx --force", 0);
    let message = error(place.path(), run);
    assert!(
        message.contains("n = 64, nnz = 352 in the file, n = 125, nnz = 725, hash "),
        "{message}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), old);
}

#[test]
fn figures_pages_and_tuning_are_overwritten_by_force_alone() {
    let place = Place::new();
    ran(place.path(), "run --matrix poisson3d:5 --fill 0..1 --max-repetitions 1 -q -o p.csv", 0);
    for (words, name) in [
        ("report p.csv -o page.html", "page.html"),
        ("report p.csv -o other.html --tables tables", "tables/tables.csv"),
        ("plot p.csv --kind phases -o f.svg", "f.svg"),
        ("plot p.csv --kind phases -o f.csv", "f.csv"),
    ] {
        ran(place.path(), words, 0);
        let made = std::fs::read(place.at(name)).unwrap();
        std::fs::write(place.at(name), "mine").unwrap();
        let _ = std::fs::remove_file(place.at("other.html"));
        let message = error(place.path(), words);
        // of several tables the first one is named
        let named = if name.starts_with("tables/") { "tables/" } else { name };
        assert!(message.contains(&format!("error: `{named}")), "{message}");
        assert!(message.ends_with("` exists already\nhint: --force overwrites it\n"), "{message}");
        assert_eq!(std::fs::read(place.at(name)).unwrap(), b"mine");
        ran(place.path(), &format!("{words} --force"), 0);
        assert_eq!(std::fs::read(place.at(name)).unwrap().len(), made.len(), "{words}");
    }
    // known before a GPU is looked for
    let message = error(place.path(), "tune -o good.json");
    assert!(message.starts_with("error: `good.json` exists already\n"), "{message}");
}

/// The program where files may have so many blocks of 512 bytes and a write beyond is an error, as on a
/// full disk.
#[cfg(target_os = "linux")]
fn on_a_full_disk(folder: &Path, blocks: usize, words: &str) -> (Option<i32>, String) {
    let script = format!("trap '' XFSZ; ulimit -f {blocks} && exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_bilu-bench")])
        .args(words.split(' '))
        .env("NO_COLOR", "1")
        .env("BILU_BENCH_CACHE", "off")
        .stdin(Stdio::null())
        .current_dir(folder)
        .output()
        .unwrap();
    (output.status.code(), text(&output.stderr))
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_file_of_before() {
    let place = Place::new();
    // few combinations: what a busy machine tries of all in a few seconds may be none
    let advised = "advise poisson3d:4 --time-budget 100 --set backend=cpu --set precond=jacobi \
                   --set solver=cg --set matrix-format=csr -q -o advice.toml";
    ran(place.path(), advised, 0);
    ran(place.path(), "report good.csv -o page.html", 0);
    ran(place.path(), "plot good.csv --kind phases -o roof.csv -o roof.svg", 0);
    let before = place.files();
    for words in [
        "report good.csv -o page.html --force",
        "plot good.csv --kind phases -o roof.svg --force",
        "matrix generate poisson3d:9 -o a.mtx --force",
        "run --matrix poisson3d:5 -o good.csv --force",
        "run --matrix poisson3d:5 -o good.json --force",
        "run --matrix poisson3d:5 -o good.md -o good.jsonl --force",
        &format!("{advised} --force"),
    ] {
        let (code, message) = on_a_full_disk(place.path(), 0, words);
        assert_eq!(code, Some(2), "{words}: {message}");
        assert!(message.contains("error: cannot write `"), "{words}: {message}");
        assert!(place.files() == before, "{words}: a file is another one");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_stopped_before_its_first_record_leaves_the_old_ones() {
    let place = Place::new();
    let before = place.files();
    let mut command = program(place.path());
    command.args(["run", "--matrix", "poisson3d:60", "--fill", "3", "--precond", "none"]);
    command.args(["--rtol", "0", "--max-iterations", "100000000", "--force", "-o", "good.csv"]);
    let child = command.args(["-o", "good.json"]).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let open = || {
        let links = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        links.filter_map(|l| std::fs::read_link(l.path()).ok()).any(|to| to.ends_with("good.json"))
    };
    let start = std::time::Instant::now();
    while !open() {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "not begun in a minute");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    // well into the first case
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(
        message.ends_with(
            "stopped before the first case was finished; `good.csv`, `good.json` as before\n"
        ),
        "{message}"
    );
    assert!(place.files() == before);
}
