//! Markdown tables.

use itertools::Itertools as _;

use crate::report::{Report, Sheet};

/// Headings, the common settings as lists, pipe tables, the notes as lists.
pub(super) fn text(report: &Report) -> String {
    report.sheets.iter().map(sheet).join("\n")
}

fn sheet(sheet: &Sheet) -> String {
    let mut blocks = Vec::new();
    if let Some(title) = &sheet.title {
        blocks.push(format!("## {}\n", escape(title)));
    }
    blocks.extend(list(&sheet.preamble));
    if !sheet.rows.is_empty() {
        let mut table = row(sheet.columns.iter().map(|c| c.text.as_str()));
        table += &row(sheet.columns.iter().map(|c| if c.words { "---" } else { "--:" }));
        for cells in &sheet.rows {
            table += &row(cells.iter().map(String::as_str));
        }
        blocks.push(table);
    }
    blocks.extend(list(&sheet.notes));
    blocks.join("\n")
}

fn list(lines: &[String]) -> Option<String> {
    let line = |line: &String| format!("- {}\n", escape(line));
    (!lines.is_empty()).then(|| lines.iter().map(line).collect())
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    format!("| {} |\n", cells.map(escape).join(" | "))
}

/// A cell is one line, and a bar in it is no border.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace(['\r', '\n'], " ")
}
