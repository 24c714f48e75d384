//! The tables of a page as CSV files.

use super::{Part, Section};
use crate::base::error::Result;
use crate::report::Sheet;
use crate::report::csv::text;

/// Columns of the list of all tables, with their meanings.
pub const COLUMNS: &[(&str, &str)] = &[
    ("file", "file of the table"),
    ("section", "heading of the section of the page"),
    ("heading", "subheading, if any"),
    ("title", "title of the table, if any"),
    ("rows", "number of rows"),
    ("settings", "settings that all rows share"),
    ("notes", "notes below the table"),
];

/// Names and contents of the files of all tables, the list of them first.
pub(super) fn all(sections: &[Section]) -> Result<Vec<(String, String)>> {
    let mut list = vec![COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()];
    let mut files = Vec::new();
    for section in sections {
        let (mut heading, mut number) = ("", 0);
        for part in &section.parts {
            match part {
                Part::Heading(text) => heading = text,
                Part::Table(sheet) if !sheet.rows.is_empty() => {
                    number += 1;
                    let name = format!("{}-{number}.csv", section.id);
                    list.push(vec![
                        name.clone(),
                        section.title.clone(),
                        heading.to_owned(),
                        sheet.title.clone().unwrap_or_default(),
                        sheet.rows.len().to_string(),
                        sheet.preamble.join("; "),
                        sheet.notes.join("; "),
                    ]);
                    files.push((name, text(lines(sheet))?));
                }
                Part::Table(_) | Part::Text(_) => {}
            }
        }
    }
    files.insert(0, ("tables.csv".to_owned(), text(list)?));
    Ok(files)
}

/// The heads of a table and its rows.
fn lines(sheet: &Sheet) -> impl Iterator<Item = Vec<String>> + '_ {
    let heads = sheet.columns.iter().map(|head| head.text.clone()).collect();
    std::iter::once(heads).chain(sheet.rows.iter().cloned())
}
