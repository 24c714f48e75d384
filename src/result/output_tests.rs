use proptest::prelude::*;

use super::*;
use crate::case::Case;
use crate::result::columns::COLUMNS;
use crate::result::read::{read, read_rows_from};
use crate::result::samples::{any_record, record};

fn cases() -> Vec<Record> {
    (0..3).map(|fill| record(Case { fill, ..Case::default() }, 40 - fill, 1.5)).collect()
}

fn write(path: &Path, records: &[Record]) {
    let mut outputs = Outputs::<Record>::open(&[path.to_owned()], Existing::Refuse).unwrap();
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
        for end in start + 1..bytes.len() {
            std::fs::write(&cut, &bytes[..end]).unwrap();
            let mut outputs =
                Outputs::<Record>::open(std::slice::from_ref(&cut), Existing::Resume).unwrap();
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
    std::fs::write(&path, "matrix,read-").unwrap();
    let mut outputs =
        Outputs::<Record>::open(std::slice::from_ref(&path), Existing::Resume).unwrap();
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
    assert_eq!(
        message("a.csv", &|t| t.replacen("nnz", "nzn", 1)),
        "DIR/a.csv:1: unknown column `nzn`"
    );
}

#[test]
fn existing_files_are_refused_resumed_or_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.jsonl", "a.json"] {
        let path = folder.path().join(name);
        write(&path, &cases()[..2]);
        let paths = [path.clone()];
        let error = Outputs::<Record>::open(&paths, Existing::Refuse).unwrap_err();
        assert_eq!(error.to_string(), format!("`{}` exists already", path.display()));
        assert_eq!(
            error.hint_text(),
            Some("--resume adds what is missing to it, --force overwrites it")
        );
        let mut outputs = Outputs::<Record>::open(&paths, Existing::Resume).unwrap();
        assert_eq!(outputs.records(), cases()[..2]);
        outputs.add(&cases()[2]).unwrap();
        assert_eq!(read(&path).unwrap().records, cases());
        let twice = Outputs::<Record>::open(&paths, Existing::Overwrite).unwrap_err();
        let message = format!("`{}` is being written by another run", path.display());
        assert_eq!(twice.to_string(), message);
        drop(outputs);
        let mut outputs = Outputs::<Record>::open(&paths, Existing::Overwrite).unwrap();
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
    let outputs = Outputs::<Record>::open(&paths, Existing::Resume).unwrap();
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
        let error = Outputs::<Record>::open(&[folder.path().join(name)], existing).unwrap_err();
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

#[test]
fn rows_are_not_added_under_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "matrix,fill,status\npoisson3d:8,1,converged\n").unwrap();
    let error = Outputs::<Record>::open(&[path], Existing::Resume).unwrap_err();
    assert_eq!(error.message(), "its columns are not those that this version writes");
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
            let error = Outputs::<Record>::open(std::slice::from_ref(&pipe), existing).unwrap_err();
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
    let other = crate::obstacle::record::Record::default();
    let header = String::from_utf8(header_line::<crate::obstacle::record::Record>()).unwrap();
    for (name, text) in [
        ("a.csv", header.clone()),
        ("a.jsonl", String::from_utf8(json(&other, false)).unwrap() + "\n"),
        ("a.json", String::from_utf8(json(&[&other], true)).unwrap()),
    ] {
        let format = FileFormat::of(Path::new(name)).unwrap();
        // a header that was cut off is written anew, so it needs a row
        let text = if name == "a.csv" { text + &header } else { text };
        let error = read_rows_from::<Record>(name, format, text.as_bytes()).unwrap_err();
        assert_eq!(error.message(), "these are records of `obstacle`, not of `run`", "{name}");
        assert_eq!(error.place().and_then(|p| p.line), Some(1), "{name}");
    }
    let run = String::from_utf8(header_line::<Record>()).unwrap().repeat(2);
    let error =
        read_rows_from::<crate::obstacle::record::Record>("a.csv", FileFormat::Csv, run.as_bytes());
    assert_eq!(error.unwrap_err().message(), "these are records of `run`, not of `obstacle`");
}

#[test]
fn a_json_file_that_was_cut_off_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write(&path, &cases());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 200]).unwrap();
    let error = Outputs::<Record>::open(std::slice::from_ref(&path), Existing::Resume).unwrap_err();
    assert!(error.message().starts_with("EOF while parsing "), "{error}");
    assert_eq!(error.place().and_then(|p| p.line), Some(text[..text.len() - 200].lines().count()));
    let hint = error.hint_text().unwrap();
    assert!(hint.starts_with("the file was cut off") && hint.contains("--force"), "{hint}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text[..text.len() - 200]);
}
