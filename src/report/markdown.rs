//! Markdown tables.

use std::fmt::Write;

use crate::base::error::Result;
use crate::report::{Export, Report, Sheet};

/// A heading, the common settings as a list, a pipe table, the notes as a list.
pub struct Markdown;

impl Export for Markdown {
    fn render(&self, report: &Report) -> Result<String> {
        Ok(text(report))
    }
}

/// The report as Markdown.
pub fn text(report: &Report) -> String {
    let sheets: Vec<String> = report.sheets.iter().map(sheet).collect();
    sheets.join("\n")
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
    (!lines.is_empty()).then(|| {
        lines.iter().fold(String::new(), |mut out, line| {
            let _ = writeln!(out, "- {}", escape(line));
            out
        })
    })
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.map(escape).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A cell is one line, and a bar in it is no border.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace(['\r', '\n'], " ")
}
