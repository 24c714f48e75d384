//! `results/STATUS.md` has a line for every table of records with its revisions, and pages say the same.

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

/// Commits to one backend make no record of another older.
#[test]
fn what_every_run_measures_is_of_no_backend() {
    let text = std::fs::read_to_string(root().join("scripts/results-status.toml")).unwrap();
    let settings: toml::Value = toml::from_str(&text).unwrap();
    let files = |part: &str| {
        let paths = settings["paths"][part].as_array().unwrap().iter();
        let paths = paths.map(|path| path.as_str().unwrap());
        let mut git = std::process::Command::new("git");
        let output = git.arg("-C").arg(root()).args(["ls-files", "--"]).args(paths).output();
        let found = String::from_utf8(output.unwrap().stdout).unwrap();
        found.lines().map(str::to_string).collect::<Vec<_>>()
    };
    let of_all = files("run");
    assert!(of_all.iter().any(|name| name == "src/compute/setup.rs"), "{of_all:?}");
    for part in ["cpu", "cuda", "cusparse"] {
        let own = files(part);
        assert!(own.len() > 2, "{part}: {own:?}");
        assert!(own.iter().all(|name| !of_all.contains(name)), "{part}");
    }
}

/// What `scripts/results-status.py` of a tree ends with and prints; none without Python.
fn marks(tree: &Path, words: &[&str]) -> Option<(Option<i32>, String)> {
    let python = std::env::var("BILU_BENCH_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = std::process::Command::new(&python);
    let Ok(output) = command.arg(tree.join("scripts/results-status.py")).args(words).output()
    else {
        eprintln!("skipped: no {python}");
        return None;
    };
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
fn pages_name_the_records_that_are_not_current() {
    let Some(found) = marks(root(), &["--pages", "--check"]) else { return };
    assert_eq!(found, (Some(0), String::new()), "run scripts/results-status.py --pages");
}

#[test]
fn a_page_changes_with_the_state_of_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        std::fs::write(at(name), text).unwrap();
    };
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    let script = "scripts/results-status.py";
    write(script, &std::fs::read_to_string(root().join(script)).unwrap());
    let status = |first: &str, second: &str, other: &str| {
        let row = |name: &str, state: &str| format!("| results/{name}.csv | {state} | 1 | 9 |\n");
        let rows = [row("a/m/t-1", first), row("a/m/t-2", second), row("b/m/u", other)];
        write("results/STATUS.md", &rows.concat());
    };
    write("README.md", "# A\n\nText.\n");
    let linked =
        "# B\n\nA [figure](../results/a/m/t.svg) and [u](../results/b/m/README.md).\n\nEnd.\n";
    write("docs/b.md", linked);
    write("results/a/m/README.md", "How.\n\nEnd.\n");
    status("stale", "current", "mixed, stale");
    let run = |words: &[&str]| marks(folder.path(), words);
    let Some(wrong) = run(&["--pages", "--check"]) else { return };
    let lines = "docs/b.md: marks are not current\nresults/a/m/README.md: marks are not current\n";
    assert_eq!(wrong, (Some(1), lines.into()));
    assert_eq!(run(&["--pages"]).unwrap(), (Some(0), String::new()));
    assert_eq!(run(&["--pages", "--check"]).unwrap().0, Some(0));
    let line = "*Records that are not [current](../results/STATUS.md): a/m `t-1` (stale); b/m all \
                (mixed, stale).*";
    let mark = format!("<!-- records -->\n{line}\n<!-- /records -->\n\n");
    assert_eq!(read("docs/b.md"), linked.replace("End.", &(mark + "End.")));
    assert!(read("results/a/m/README.md").contains("/STATUS.md): `t-1` (stale).*\n"));
    assert_eq!(read("README.md"), "# A\n\nText.\n");
    // an older age changes no page, another state does
    status("stale", "stale", "current");
    assert_eq!(run(&["--pages", "--check"]).unwrap(), (Some(1), lines.into()));
    run(&["--pages"]);
    assert!(read("docs/b.md").contains("STATUS.md): a/m all (stale).*\n"));
    status("current", "current", "current");
    run(&["--pages"]);
    assert_eq!(read("docs/b.md"), linked);
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
