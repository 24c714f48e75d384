//! Tables for the terminal.

use itertools::Itertools as _;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Padding, Style};

use crate::report::{Report, Sheet};

/// Aligned columns under a ruled head.
pub(super) fn text(report: &Report) -> String {
    report.sheets.iter().map(sheet).join("\n")
}

fn sheet(sheet: &Sheet) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    if let Some(title) = &sheet.title {
        line(title);
    }
    sheet.preamble.iter().for_each(|text| line(text));
    if !sheet.rows.is_empty() {
        if sheet.title.is_some() || !sheet.preamble.is_empty() {
            line("");
        }
        body(sheet).lines().for_each(&mut line);
    }
    if !sheet.notes.is_empty() {
        line("");
        sheet.notes.iter().for_each(|text| line(text));
    }
    out
}

fn body(sheet: &Sheet) -> String {
    let mut builder = Builder::with_capacity(sheet.rows.len() + 1, sheet.columns.len());
    builder.push_record(sheet.columns.iter().map(|c| c.text.clone()));
    for row in &sheet.rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    table.with(Style::psql().remove_verticals()).with(Alignment::right());
    table.with(Padding::new(1, 1, 0, 0));
    for (i, column) in sheet.columns.iter().enumerate() {
        if column.words {
            table.modify(Columns::one(i), Alignment::left());
        }
    }
    table.to_string()
}
