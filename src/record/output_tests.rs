use proptest::prelude::*;

use super::*;
use crate::case::Case;
use crate::record::read::{read, read_rows_from};
use crate::record::samples::{any_record, record};
use crate::record::table::COLUMNS;

fn cases() -> Vec<Record> {
    (0..3).map(|fill| record(Case { fill, ..Case::default() }, 40 - fill, 1.5)).collect()
}

fn open(paths: &[PathBuf], existing: Existing) -> Result<Outputs> {
    Outputs::open(paths, existing)
}

fn resume(path: &Path) -> Result<Outputs> {
    open(&[path.to_owned()], Existing::Resume)
}

fn write(path: &Path, records: &[Record]) {
    let mut outputs = open(&[path.to_owned()], Existing::Refuse).unwrap();
    for record in records {
        outputs.add(record).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_record_survives_every_format(first in any_record(), second in any_record()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.csv", "a.jsonl", "a.json"] {
            let path = folder.path().join(name);
            let records = [first.clone(), second.clone()];
            write(&path, &records);
            let contents = read(&path).unwrap();
            prop_assert!(!contents.cut_off);
            prop_assert_eq!(contents.records.as_slice(), &records, "{}", name);
        }
    }
}

#[test]
fn a_record_that_was_cut_off_is_dropped_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = cases();
    records[2].reason = Some("two\nlines, \"quoted\"".into());
    for name in ["a.csv", "a.jsonl"] {
        let whole = folder.path().join(name);
        write(&whole, &records);
        let bytes = std::fs::read(&whole).unwrap();
        let two = folder.path().join(format!("two-{name}"));
        write(&two, &records[..2]);
        let start = std::fs::metadata(&two).unwrap().len() as usize;
        let cut = folder.path().join(format!("cut-{name}"));
        // a line of JSON is whole without its end, a CSV row shows it by its date
        let last = bytes.len() - usize::from(name == "a.jsonl");
        for end in start + 1..last {
            std::fs::write(&cut, &bytes[..end]).unwrap();
            let mut outputs = resume(&cut).unwrap();
            assert_eq!(outputs.records(), records[..2], "{name} cut at {end}");
            assert_eq!(outputs.remarks.len(), 1);
            outputs.add(&records[2]).unwrap();
            assert_eq!(std::fs::read(&cut).unwrap(), bytes, "{name} cut at {end}");
        }
    }
}

#[test]
fn a_cut_off_header_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "matrix,sequ").unwrap();
    let mut outputs = resume(&path).unwrap();
    outputs.add(&cases()[0]).unwrap();
    assert_eq!(read(&path).unwrap().records, cases()[..1]);
}

#[test]
fn damage_before_the_end_is_an_error_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let message = |name: &str, damage: &dyn Fn(String) -> String| {
        let path = folder.path().join(name);
        let _ = std::fs::remove_file(&path);
        write(&path, &cases());
        let text = damage(std::fs::read_to_string(&path).unwrap());
        std::fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err();
        error.to_string().replace(&folder.path().display().to_string(), "DIR")
    };
    let truncate_line_two = |text: String| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines[1] = &lines[1][..9];
        lines.join("\n") + "\n"
    };
    assert_eq!(
        message("a.csv", &truncate_line_two),
        format!("DIR/a.csv:2: 1 values under {} columns", COLUMNS.len())
    );
    assert_eq!(
        message("a.jsonl", &truncate_line_two),
        "DIR/a.jsonl:2: EOF while parsing an object"
    );
    assert_eq!(
        message("a.csv", &|t| t.replacen("converged", "fine", 1)),
        "DIR/a.csv:2: unknown variant `fine`, expected one of `converged`, `measured`, `not-converged`, \
         `stagnated`, `false-convergence`, `preconditioned-only`, `diverged`, `breakdown`, `time-limit`, `out-of-memory`, `complete`, `unsupported`, `failed`"
    );
}

#[test]
fn existing_files_are_refused_resumed_or_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.jsonl", "a.json"] {
        let path = folder.path().join(name);
        write(&path, &cases()[..2]);
        let paths = [path.clone()];
        let error = open(&paths, Existing::Refuse).unwrap_err();
        assert_eq!(error.to_string(), format!("`{}` exists already", path.display()));
        assert_eq!(
            error.hint_text(),
            Some("--resume adds what is missing to it, --force overwrites it")
        );
        let mut outputs = open(&paths, Existing::Resume).unwrap();
        assert_eq!(outputs.records(), cases()[..2]);
        outputs.add(&cases()[2]).unwrap();
        assert_eq!(read(&path).unwrap().records, cases());
        let twice = open(&paths, Existing::Overwrite).unwrap_err();
        let message = format!("`{}` is being written by another run", path.display());
        assert_eq!(twice.to_string(), message);
        drop(outputs);
        let mut outputs = open(&paths, Existing::Overwrite).unwrap();
        assert_eq!(outputs.records(), []);
        outputs.add(&cases()[1]).unwrap();
        assert_eq!(read(&path).unwrap().records, cases()[1..2]);
    }
}

#[test]
fn files_that_lag_behind_are_brought_level() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        ["a.csv", "b.jsonl", "c.json", "d.md"].iter().map(|n| folder.path().join(n)).collect();
    write(&paths[0], &cases()[..1]);
    write(&paths[1], &cases()[..3]);
    let outputs = open(&paths, Existing::Resume).unwrap();
    assert_eq!(outputs.records(), cases());
    for path in &paths[..3] {
        assert_eq!(read(path).unwrap().records, cases());
    }
    let table = std::fs::read_to_string(&paths[3]).unwrap();
    assert_eq!(table.lines().filter(|l| l.starts_with('|')).count(), 2 + 3, "{table}");
}

#[test]
fn outputs_that_cannot_work_are_known_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str, existing| {
        let error = open(&[folder.path().join(name)], existing).unwrap_err();
        error.to_string().replace(&folder.path().display().to_string(), "DIR")
    };
    std::fs::write(folder.path().join("file"), "").unwrap();
    std::fs::create_dir(folder.path().join("folder.csv")).unwrap();
    assert_eq!(open("a.txt", Existing::Refuse), "result file `DIR/a.txt` has the extension `.txt`");
    assert_eq!(open("a", Existing::Refuse), "result file `DIR/a` has no extension");
    assert_eq!(
        open("no/a.csv", Existing::Refuse),
        "cannot write `DIR/no/a.csv`: No such file or directory (os error 2)"
    );
    assert_eq!(
        open("file/a.csv", Existing::Refuse),
        "cannot write `DIR/file/a.csv`: Not a directory (os error 20)"
    );
    assert_eq!(
        open("folder.csv", Existing::Refuse),
        "cannot write `DIR/folder.csv`: Is a directory (os error 21)"
    );
    assert_eq!(open("a.md", Existing::Resume), "--resume needs an --output that can be read back");
}

/// Resumes a file with this text, adds the third case, and yields the file, the records that were there and
/// what was said.
fn resumed(name: &str, text: &[u8]) -> Result<(Vec<u8>, Vec<Record>, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let short = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    let checked = Outputs::<Record>::check(std::slice::from_ref(&path), Existing::Resume);
    assert_eq!(std::fs::read(&path).unwrap(), text, "{name}: changed before it is accepted");
    let mut outputs = checked?;
    let before = outputs.records();
    outputs.start()?;
    outputs.add(&dated()[2]).unwrap();
    let after = std::fs::read(&path).unwrap();
    let records = read(&path).unwrap().records;
    assert_eq!(records, [&before[..], &dated()[2..]].concat(), "{name}");
    Ok((after, before, short(outputs.remarks.join("\n"))))
}

/// Records with a date, as all that are written have one.
fn dated() -> Vec<Record> {
    let mut records = cases();
    for record in &mut records {
        record.environment.date = "2026-01-02T03:04:05Z".into();
    }
    records
}

/// The first two records in a file of this name, and the lines of all three.
fn two(name: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write(&path, &dated()[..2]);
    let two = std::fs::read_to_string(&path).unwrap();
    let mut outputs = resume(&path).unwrap();
    outputs.add(&dated()[2]).unwrap();
    (two, std::fs::read_to_string(&path).unwrap())
}

#[test]
fn marks_and_ends_of_other_editors_are_accepted() {
    for name in ["a.csv", "a.jsonl"] {
        let (text, all) = two(name);
        let of = |text: &str| {
            let (after, before, said) = resumed(name, text.as_bytes()).unwrap();
            assert_eq!((before.as_slice(), said.as_str()), (&dated()[..2], ""), "{name}");
            String::from_utf8(after).unwrap()
        };
        assert_eq!(of(text.trim_end()), all, "no line end");
        assert_eq!(of(&format!("\u{feff}{text}")), format!("\u{feff}{all}"));
        let [crlf, all_crlf] = [&text, &all].map(|text| text.replace('\n', "\r\n"));
        if name == "a.csv" {
            assert_eq!(of(&crlf), all_crlf);
            assert_eq!(of(crlf.trim_end()), all_crlf);
            assert_eq!(of(crlf.strip_suffix('\n').unwrap()), all_crlf, "half a line end");
            assert_eq!(of(&format!("\u{feff}{}", crlf.trim_end())), format!("\u{feff}{all_crlf}"));
        } else {
            let last = all.lines().last().unwrap();
            assert_eq!(of(&crlf), format!("{crlf}{last}\n"));
            assert_eq!(of(crlf.trim_end()), format!("{}\n{last}\n", crlf.trim_end()));
        }
    }
    let (text, all) = two("a.json");
    let (after, before, _) = resumed("a.json", format!("\u{feff}{text}").as_bytes()).unwrap();
    assert_eq!((String::from_utf8(after).unwrap(), before.len()), (all, 2));
}

/// The lines of a CSV file with its cells changed.
fn changed(text: &str, change: impl Fn(usize, Vec<String>) -> Vec<String>) -> String {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (i, row) in reader.records().enumerate() {
        let row = row.unwrap().iter().map(str::to_owned).collect();
        writer.write_record(change(i, row)).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

#[test]
fn columns_in_another_order_and_further_ones_are_kept() {
    let (text, all) = two("a.csv");
    let reversed = |_: usize, row: Vec<String>| row.into_iter().rev().collect();
    let (after, before, said) = resumed("a.csv", changed(&text, reversed).as_bytes()).unwrap();
    assert_eq!((before.as_slice(), said.as_str()), (&dated()[..2], ""));
    assert_eq!(String::from_utf8(after).unwrap(), changed(&all, reversed));

    let further = |i: usize, mut row: Vec<String>| {
        let cell = ["my notes", "one, two", "", ""][i];
        row.insert(3, cell.into());
        row
    };
    let (after, before, said) = resumed("a.csv", changed(&text, further).as_bytes()).unwrap();
    assert_eq!(before, dated()[..2]);
    assert_eq!(said, "a.csv: unknown column `my notes` is kept, and empty in new records");
    assert_eq!(String::from_utf8(after).unwrap(), changed(&all, further));

    // keys of JSON likewise
    let (text, _) = two("a.json");
    let mut objects: Vec<Map<String, Value>> = serde_json::from_str(&text).unwrap();
    objects[1].insert("mine".into(), "kept".into());
    let text = serde_json::to_string(&objects).unwrap();
    let (after, ..) = resumed("a.json", text.as_bytes()).unwrap();
    let after: Vec<Map<String, Value>> = serde_json::from_slice(&after).unwrap();
    assert_eq!((&after[..2], after.len()), (&objects[..], 3));
}

#[test]
fn columns_that_an_earlier_version_lacked_are_put_before_the_last_one() {
    let (text, all) = two("a.csv");
    let names: Vec<String> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let at = |name: &str| names.iter().position(|n| n == name).unwrap();
    let (hash, schema) = (at("matrix-hash"), at("schema"));
    let earlier = |_: usize, mut row: Vec<String>| {
        row.remove(schema);
        row.remove(hash);
        row
    };
    let old = changed(&text, earlier);
    let (after, before, said) = resumed("a.csv", old.as_bytes()).unwrap();
    assert_eq!(before, dated()[..2]);
    assert_eq!(said, "a.csv: gets 2 columns that an earlier version did not write");
    let moved = |i: usize, mut row: Vec<String>| {
        let (schema, hash) = (row.remove(schema), row.remove(hash));
        let last = row.pop().unwrap();
        row.extend([hash, schema, last]);
        assert!(i == 0 || row.len() == names.len());
        row
    };
    assert_eq!(String::from_utf8(after).unwrap(), changed(&all, moved));
    // until there is a new record nothing is changed
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, &old).unwrap();
    drop(resume(&path).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), old);
}

#[test]
fn what_cannot_be_continued_is_refused_and_left_alone() {
    let (text, _) = two("a.csv");
    let refused = |name: &str, text: &str| resumed(name, text.as_bytes()).unwrap_err();
    let last = |_: usize, mut row: Vec<String>| {
        row.push("x".into());
        row
    };
    // its last cell could have been longer
    let error = refused("a.csv", changed(&text, last).trim_end());
    assert_eq!(error.message(), "the last line has no end, and may have been cut off");
    let twice = text.replacen("solve-low-s", "solve-s", 1);
    assert_eq!(refused("a.csv", &twice).message(), "column `solve-s` is there twice");
    let error = refused("a.csv", "shopping list");
    assert_eq!(error.message(), "its only line has no end and is no header of records");
    let error = refused("a.csv", "shopping,list\neggs,6\n");
    assert_eq!(error.message(), "there is no column `status`");
    assert!(refused("a.jsonl", "shopping list").message().starts_with("expected value"));
    let columns = COLUMNS.len();
    let error = refused("a.csv", &format!("{text}1,2\n"));
    assert_eq!(error.message(), format!("2 values under {columns} columns"));
    let mut newer = dated()[0].clone();
    newer.environment.schema = Some(99);
    let error = refused("a.jsonl", &(serde_json::to_string(&newer).unwrap() + "\n"));
    let why =
        format!("its records have the columns of a newer version (99, here {SCHEMA_VERSION})");
    assert_eq!(error.message(), why);

    // a table that is of other records
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.csv", "a.md"].map(|name| folder.path().join(name));
    std::fs::write(&paths[1], "my notes").unwrap();
    let error = Outputs::<Record>::check(&paths, Existing::Resume).unwrap_err();
    assert_eq!(error.message(), format!("`{}` exists already", paths[1].display()));
    assert!(!paths[0].exists());
}

#[test]
fn files_that_are_overwritten_stay_until_there_is_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        ["a.csv", "b.jsonl", "c.json", "d.md"].iter().map(|n| folder.path().join(n)).collect();
    for path in &paths {
        write(path, &cases());
    }
    let all = || paths.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    let before = all();
    let mut outputs = open(&paths, Existing::Overwrite).unwrap();
    assert!(all() == before && outputs.records().is_empty());
    for count in 1..=2 {
        outputs.add(&cases()[count]).unwrap();
        assert_eq!(outputs.added(), count);
        for path in &paths[..3] {
            assert_eq!(read(path).unwrap().records, cases()[1..=count]);
            // the file under the name is the one that is locked
            let paths = std::slice::from_ref(path);
            let error = Outputs::<Record>::check(paths, Existing::Resume).unwrap_err();
            assert!(error.message().ends_with("is being written by another run"), "{error}");
        }
    }
    let table = std::fs::read_to_string(&paths[3]).unwrap();
    assert_eq!(table.lines().filter(|l| l.starts_with('|')).count(), 2 + 2, "{table}");
}

#[cfg(target_os = "linux")]
#[test]
fn where_one_file_cannot_be_written_no_other_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (good, other) = (folder.path().join("a.csv"), folder.path().join("sub/b.json"));
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    write(&good, &cases());
    write(&other, &cases());
    let before = std::fs::read(&good).unwrap();
    let paths = [good.clone(), other];
    let mut outputs = open(&paths, Existing::Overwrite).unwrap();
    std::fs::remove_dir_all(folder.path().join("sub")).unwrap();
    outputs.add(&cases()[1]).unwrap_err();
    assert_eq!(std::fs::read(&good).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn files_that_are_rewritten_keep_permissions_and_links_and_leave_devices_alone() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    for name in ["a.json", "a.md"] {
        let (path, file) = (folder.path().join(name), folder.path().join(format!("{name}.file")));
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &path).unwrap();
        write(&path, &cases());
        assert!(path.is_symlink());
        let metadata = std::fs::metadata(&file).unwrap();
        assert_eq!((metadata.permissions().mode() & 0o777, metadata.len() > 100), (0o600, true));

        let pipe = folder.path().join(format!("other-{name}"));
        let _listener = std::os::unix::net::UnixListener::bind(&pipe).unwrap();
        for existing in [Existing::Refuse, Existing::Overwrite] {
            let error = open(std::slice::from_ref(&pipe), existing).unwrap_err();
            let message = "is a device or a pipe, and this form is rewritten after every record";
            assert_eq!(error.to_string(), format!("`{}` {message}", pipe.display()));
            assert!(std::fs::metadata(&pipe).unwrap().file_type().is_socket());
        }
    }
}

#[test]
fn lines_are_those_of_an_editor_whatever_ends_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    write(&path, &cases());
    let text = std::fs::read_to_string(&path).unwrap();
    // a reason of two lines in the first row, the damage in the second
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    rows[1] = rows[1].replacen("converged", "\"converged\"", 1);
    rows[2] = rows[2].replacen("converged", "NaN", 1);
    for (ends, line) in [("\n", 3), ("\r\n", 3), ("\n\n", 5), ("\r\n\r\n", 5)] {
        let text = rows.join(ends) + ends;
        let error =
            read_rows_from::<Record>("a.csv", FileFormat::Csv, text.as_bytes()).unwrap_err();
        assert_eq!(error.place().and_then(|p| p.line), Some(line), "{ends:?}: {error}");
        let mut bytes = text.into_bytes();
        let at = bytes.windows(3).position(|w| w == b"NaN").unwrap();
        bytes[at] = 0xff;
        let error = read_rows_from::<Record>("a.csv", FileFormat::Csv, &bytes).unwrap_err();
        assert_eq!(error.to_string(), format!("a.csv:{line}: not valid UTF-8"), "{ends:?}");
    }
}

#[test]
fn records_of_the_other_command_are_called_so() {
    fn header_line<R: Row>() -> String {
        String::from_utf8(Layout::<R>::default().start(FileFormat::Csv)).unwrap()
    }
    let other = crate::record::obstacle::Record::default();
    let json = |value: &dyn Fn() -> serde_json::Result<String>| value().unwrap();
    let header = header_line::<crate::record::obstacle::Record>();
    for (name, text) in [
        ("a.csv", header.clone()),
        ("a.jsonl", json(&|| serde_json::to_string(&other)) + "\n"),
        ("a.json", json(&|| serde_json::to_string_pretty(&[&other]))),
    ] {
        let format = FileFormat::of(Path::new(name)).unwrap();
        // a header that was cut off is written anew, so it needs a row
        let text = if name == "a.csv" { text + &header } else { text };
        let error = read_rows_from::<Record>(name, format, text.as_bytes()).unwrap_err();
        assert_eq!(error.message(), "these are records of `obstacle`, not of `run`", "{name}");
        assert_eq!(error.place().and_then(|p| p.line), Some(1), "{name}");
    }
    let run = header_line::<Record>().repeat(2);
    let error =
        read_rows_from::<crate::record::obstacle::Record>("a.csv", FileFormat::Csv, run.as_bytes());
    assert_eq!(error.unwrap_err().message(), "these are records of `run`, not of `obstacle`");
}

#[test]
fn a_json_file_that_was_cut_off_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write(&path, &cases());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 200]).unwrap();
    let error = resume(&path).unwrap_err();
    assert!(error.message().starts_with("EOF while parsing "), "{error}");
    assert_eq!(error.place().and_then(|p| p.line), Some(text[..text.len() - 200].lines().count()));
    let hint = error.hint_text().unwrap();
    assert!(hint.starts_with("the file was cut off") && hint.contains("--force"), "{hint}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text[..text.len() - 200]);
}
