//! `results/STATUS.md` has a line for every table of records with its revisions, and README says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::results;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// State and revisions by table.
fn listed() -> BTreeMap<String, (String, String)> {
    let text = std::fs::read_to_string(root().join("results/STATUS.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| results/"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0].to_owned(), (cells[1].to_owned(), cells[2].to_owned()))
    })
    .collect()
}

/// The revisions in a file of records, as they stand in its cells; none of other files.
fn revisions(path: &Path) -> Option<BTreeSet<String>> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    let column = header.iter().position(|name| ["revision", "version"].contains(&name))?;
    let word = |cell: &str| {
        let words = cell.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let hash = |word: &&str| {
            let bare = word.trim_end_matches("-dirty");
            bare.len() == 12 && bare.bytes().all(|b| b.is_ascii_hexdigit())
        };
        words.filter(hash).map(str::to_owned).next()
    };
    Some(reader.records().filter_map(|row| word(&row.unwrap()[column])).collect())
}

#[test]
fn every_table_is_listed_with_its_revisions() {
    let mut all = Vec::new();
    results::files(&root().join("results"), &mut all);
    let mut listed = listed();
    for path in all {
        let Some(found) = revisions(&path).filter(|found| !found.is_empty()) else { continue };
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let row = listed.remove(&name);
        let (state, said) = row.unwrap_or_else(|| panic!("{name}: run scripts/results-status.py"));
        let said: BTreeSet<String> = said.split_whitespace().map(str::to_owned).collect();
        assert_eq!(said, found, "{name}: run scripts/results-status.py");
        assert_eq!(state.contains("mixed"), found.len() > 1, "{name}");
        assert_eq!(state.contains("dirty"), found.iter().any(|r| r.ends_with("-dirty")), "{name}");
    }
    // those that were made of others have no revisions of their own
    for table in listed.keys() {
        assert!(root().join(table).is_file(), "{table}");
    }
}

#[test]
fn the_readme_marks_the_tables_that_it_quotes() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let listed = listed();
    let marks: Vec<&str> = readme.split("<!-- status: ").skip(1).collect();
    assert!(marks.len() >= 2);
    for mark in marks {
        let (table, rest) = mark.split_once(" -->").unwrap();
        let said = rest.split_once("<!-- /status -->").unwrap().0;
        let (state, revisions) = &listed[table];
        assert_eq!(said, format!("{state}, {revisions}"), "{table}: run scripts/results-status.py");
    }
}

/// A repository with `scripts/results.sh` and stand-ins for what it runs.
fn repository(folder: &Path) {
    let write = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in ["results.sh", "programs.sh"] {
        let text = std::fs::read_to_string(root().join("scripts").join(name)).unwrap();
        write(&format!("scripts/{name}"), &text);
    }
    write("scripts/luo-results.sh", "#!/bin/sh\necho a >\"$2/table1.csv\"\nexit 1\n");
    write("scripts/results-status.py", "#!/bin/sh\n");
    write(
        "bin/bilu-bench",
        "#!/bin/sh\necho '  device 0  NVIDIA H9, compute capability 9.0, 1 GiB'\n",
    );
}

fn program(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn results_are_made_from_a_clean_tree_and_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, out) = (folder.path().join("tree"), folder.path().join("out"));
    repository(&tree);
    let run = || program(&tree, &["scripts/results.sh", "luo", "bin", out.to_str().unwrap()]);
    assert_eq!(program(&tree, &["git", "init", "-q"]).0, Some(0));
    let (code, said) = run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.starts_with("results: the tree is not clean"), "{said}");
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    program(&tree, &["git", "add", "-A"]);
    let commit = [&["git"], &who[..], &["commit", "-q", "-m", "all"]].concat();
    assert_eq!(program(&tree, &commit).0, Some(0));
    // the exit code is that of the paper's script
    assert_eq!(run().0, Some(1));
    let machine = std::fs::read_to_string(out.join("machine.txt")).unwrap();
    for part in ["revision: ", "before: ", "load of the host", "after: ", "exit code 1"] {
        assert!(machine.contains(part), "{part}: {machine}");
    }
    let (code, said) = run();
    assert_eq!(code, Some(2));
    assert!(said.contains("holds records"), "{said}");
    let (code, said) = program(&tree, &["scripts/results.sh", "lou"]);
    assert_eq!(code, Some(2));
    assert!(said.starts_with("results: no paper `lou`"), "{said}");
}
