use std::fs;

use super::*;
use crate::case::Case;
use crate::record::samples::record;
use crate::record::table::{Row, fields, to_cells};

fn cases(count: usize) -> Vec<Record> {
    let of = |fill| record(Case { fill, ..Case::default() }, 9 + fill, 1.0);
    (0..count).map(of).collect()
}

fn csv_text<R: Row>(records: &[R]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(R::schema().iter().map(|c| c.name.as_str())).unwrap();
    for record in records {
        writer.write_record(to_cells(record)).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

/// Gathers files of a new folder; its name is left out of what is said.
fn gathered(files: &[(&str, &[u8])]) -> Result<Gathered> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let mut found = gather(&[folder.path().to_owned()])?;
    let prefix = format!("{}/", folder.path().display());
    for note in &mut found.notes {
        *note = note.replace(&prefix, "");
    }
    for set in &mut found.sets {
        set.name = set.name.replace(&prefix, "");
    }
    Ok(found)
}

#[test]
fn every_kind_of_rows_is_known_by_its_columns() {
    let runs = cases(3);
    let obstacle = [crate::record::obstacle::Record::default()];
    let tuning = r#"[{"system":"s","kernel":"k","rows":9,"choices":"c","seconds":1e-3,"gbps":2.0,
        "percent-of-copy":50.0,"search":"finished"}]"#;
    let mut published = fields(&runs[0]);
    published.insert("published-iterations".into(), 9.into());
    let lines: Vec<String> = runs.iter().map(|r| serde_json::to_string(r).unwrap()).collect();
    let lines = lines.join("\n") + "\n";
    let found = gathered(&[
        ("a/lines.jsonl", lines.as_bytes()),
        ("a/o.csv", csv_text(&obstacle).as_bytes()),
        ("a/t.json", tuning.as_bytes()),
        ("a/t.csv", b"system,kernel,rows,choices,seconds,gbps,percent-of-copy,search\ns,k,9,d,,,,finished\n"),
        ("a/v.csv", b"matrix,apply-ratio\nm,2.5\n"),
        ("a/environment.txt", b"a machine"),
        ("a/table.md", b"| not read |"),
    ])
    .unwrap();
    assert_eq!(found.notes, [""; 0]);
    let kinds: Vec<(&str, &str, usize)> =
        found.sets.iter().map(|s| (s.name.as_str(), s.rows.kind(), s.rows.len())).collect();
    let wanted = [
        ("a/lines", "solves and products", 3),
        ("a/o", "obstacle problems", 1),
        ("a/t", "tuning", 1),
        ("a/t", "tuning", 1),
        ("a/v", "comparisons", 1),
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(found.doctor[0].1, "a machine");
    let Rows::Tuning(trials) = &found.sets[2].rows else { panic!("tuning") };
    assert_eq!((trials[0].rows, trials[0].seconds, &*trials[0].choices), (9, None, "d"));
    // what `reproduce` adds is dropped
    let with = serde_json::to_string(&[published]).unwrap();
    let found = gathered(&[("p.json", with.as_bytes())]).unwrap();
    let Rows::Runs(rows) = &found.sets[0].rows else { panic!("runs") };
    assert_eq!(rows[0], runs[0]);
}

#[test]
fn the_same_rows_in_two_forms_count_once() {
    let runs = cases(4);
    let json = serde_json::to_string(&runs).unwrap();
    let found = gathered(&[
        ("x.csv", csv_text(&runs).as_bytes()),
        ("x.json", json.as_bytes()),
        ("y.csv", csv_text(&runs[..2]).as_bytes()),
    ])
    .unwrap();
    assert_eq!(found.sets.len(), 1);
    assert_eq!((found.sets[0].files.len(), found.sets[0].rows.len()), (2, 4));
}

#[test]
fn damaged_rows_are_named_and_left_out() {
    let good = csv_text(&cases(9));
    let lines: Vec<&str> = good.lines().collect();
    let mut bad: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
    bad[2] = bad[2].replace("converged", "fine");
    bad[4] = "1,2,3".into();
    let cut = &lines[9][..40];
    bad[9] = cut.into();
    let mut bytes = bad.join("\n").into_bytes();
    // a row of bytes that are no text
    bytes.extend(b"\n\xff\xfe\n");
    let found = gathered(&[("a.csv", &bytes)]).unwrap();
    let columns = lines[0].split(',').count();
    let of_cut = cut.split(',').count();
    assert_eq!(
        found.notes[..3],
        [
            format!("a.csv:5: 3 values under {columns} columns"),
            format!("a.csv:10: {of_cut} values under {columns} columns"),
            format!("a.csv:11: 1 values under {columns} columns"),
        ]
    );
    assert!(found.notes[3].starts_with("a.csv:3: unknown variant `fine`"), "{}", found.notes[3]);
    assert_eq!(found.sets[0].rows.len(), 6);
    // many are counted
    let many = format!("{}\n{}", lines[0], "1,2\n".repeat(30));
    let found = gathered(&[("a.csv", many.as_bytes()), ("b.csv", good.as_bytes())]).unwrap();
    assert_eq!((found.notes.len(), found.notes[5].as_str()), (6, "a.csv: 25 damaged rows more"));
}

#[test]
fn files_that_are_no_results_are_named() {
    let good = csv_text(&cases(1));
    let found = gathered(&[
        ("a.csv", good.as_bytes()),
        ("b.json", b"{\"some\": \"settings\"}"),
        ("c.csv", b"x,y\n1,2\n"),
        ("d.json", b"[1, 2"),
        ("e.csv", b""),
        ("f.csv", good.replace("nnz", "nzn").as_bytes()),
    ])
    .unwrap();
    assert_eq!(found.notes.len(), 4, "{:?}", found.notes);
    assert!(found.notes[0].starts_with("b.json: invalid type: map"), "{}", found.notes[0]);
    assert_eq!(found.notes[1], "c.csv: its columns are of no rows that this program writes");
    assert_eq!(found.notes[2], "d.json: EOF while parsing a list at line 1 column 5");
    assert_eq!(found.notes[3], "f.csv: unknown column `nzn` is passed over");

    let error = gathered(&[("c.csv", b"x,y\n1,2\n")]).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.exit_code()), ("no results were found", 2));
    assert!(
        error
            .hint_text()
            .unwrap()
            .ends_with("c.csv: its columns are of no rows that this program writes")
    );
    let error = gather(&[PathBuf::from("/nowhere/at/all.csv")]).unwrap_err();
    assert!(error.to_string().starts_with("cannot read `/nowhere/at/all.csv`"), "{error}");
}

#[test]
fn damaged_rows_have_the_lines_of_an_editor_whatever_ends_them() {
    let text = csv_text(&cases(3));
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    rows[2] = rows[2].replacen("converged", "fine", 1);
    for ends in ["\n", "\r\n"] {
        let text = rows.join(ends) + ends;
        let notes = gathered(&[("a.csv", text.as_bytes())]).unwrap().notes.join("\n");
        assert!(notes.contains("a.csv:3: unknown variant `fine`"), "{ends:?}: {notes}");
    }
}
