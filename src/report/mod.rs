//! Reports: tables for people, rows for programs.
//!
//! A [`Report`] holds both; each output format is one small file with an [`Export`].

pub mod advice;
pub mod batch;
pub mod cells;
pub mod columns;
pub mod compare;
pub mod csv;
mod fastest;
mod frontier;
mod heading;
pub mod history;
pub mod json;
pub mod markdown;
pub mod obstacle;
pub mod page;
pub mod phases;
pub mod places;
pub mod plot;
pub mod products;
pub mod published;
pub mod roofs;
pub mod runs;
pub mod shares;
pub mod table;
pub mod versus;

use serde_json::{Map, Value};

use crate::base::error::Result;
use crate::config::Experiment;
use crate::record::Record;

/// Format of a report on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// A table for the terminal.
    #[default]
    Table,
    /// A Markdown table.
    Markdown,
    /// Comma-separated values, one row per record.
    Csv,
    /// A JSON array of records.
    Json,
}

/// The records of an experiment compared with its published values, in the form that suits these.
/// `not_comparable` says why there are no verdicts, when another matrix than the paper's was run.
pub fn of_experiment(
    name: &str,
    experiment: &Experiment,
    records: &[Record],
    not_comparable: Option<&str>,
) -> Report {
    if let Some(paper) = &experiment.published {
        published::report(name, experiment, paper, records, not_comparable)
    } else if let Some(paper) = &experiment.history {
        history::report(name, experiment, paper, records, not_comparable)
    } else if let Some(paper) = &experiment.phases {
        phases::report(name, experiment, paper, records, not_comparable)
    } else {
        let mut report = runs::tables(records, experiment.title.as_deref());
        if let Some(sheet) = report.sheets.last_mut() {
            let inferred = experiment.inferred.iter().map(|text| format!("inferred: {text}"));
            sheet.notes.extend(experiment.notes.iter().cloned().chain(inferred));
        }
        runs::conclude(&mut report, records);
        report
    }
}

/// One output format.
pub trait Export {
    /// The report as text that ends in a newline.
    fn render(&self, report: &Report) -> Result<String>;
}

impl ReportFormat {
    /// Renders `report` in this format.
    pub fn render(self, report: &Report) -> Result<String> {
        let export: &dyn Export = match self {
            Self::Table => &table::Table,
            Self::Markdown => &markdown::Markdown,
            Self::Csv => &csv::Csv,
            Self::Json => &json::Json,
        };
        export.render(report)
    }
}

/// A result in two forms: tables for people, rows for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Tables, one below the other.
    pub sheets: Vec<Sheet>,
    /// The same as flat objects, which all have the same keys.
    pub rows: Vec<Map<String, Value>>,
}

impl Report {
    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        markdown::text(self)
    }

    /// Appends the tables and rows of `other`. Keys that only one of the two has are empty in the rows of the
    /// other.
    pub fn append(&mut self, other: Self) {
        self.sheets.extend(other.sheets);
        self.rows.extend(other.rows);
    }

    /// All keys of the rows, in the order of their first appearance.
    pub fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = Vec::new();
        for row in &self.rows {
            if row.len() != keys.len() || row.keys().zip(&keys).any(|(a, b)| a != b) {
                for key in row.keys() {
                    if !keys.contains(&key.as_str()) {
                        keys.push(key);
                    }
                }
            }
        }
        keys
    }
}

/// One table, with the lines above and below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Title.
    pub title: Option<String>,
    /// Lines above the table: the settings that all rows share.
    pub preamble: Vec<String>,
    /// Column heads.
    pub columns: Vec<Head>,
    /// Cells, as many per row as there are columns.
    pub rows: Vec<Vec<String>>,
    /// Lines below the table.
    pub notes: Vec<String>,
    /// For each row the record that it shows, as its place in [`Report::rows`]; empty where rows show
    /// something else.
    pub records: Vec<usize>,
}

/// Head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its text.
    pub text: String,
    /// Whether the cells are words (aligned left) and not numbers (aligned right).
    pub words: bool,
}

impl Head {
    /// Head of a column of numbers.
    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), words: false }
    }

    /// Head of a column of words.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), words: true }
    }
}

impl Sheet {
    /// Removes the columns that have no content in any row.
    pub fn drop_empty_columns(&mut self) {
        let used: Vec<bool> = (0..self.columns.len())
            .map(|i| self.rows.iter().any(|row| !row[i].is_empty()))
            .collect();
        self.keep(&used);
    }

    /// Removes the columns that are not `used`.
    fn keep(&mut self, used: &[bool]) {
        let keep = |i: &mut usize| {
            *i += 1;
            used[*i - 1]
        };
        let mut i = 0;
        self.columns.retain(|_| keep(&mut i));
        for row in &mut self.rows {
            let mut i = 0;
            row.retain(|_| keep(&mut i));
        }
    }

    /// Adds a footnote once and returns its mark, `[1]` for the first note.
    pub fn footnote(notes: &mut Vec<String>, text: &str) -> String {
        let position = notes.iter().position(|n| n == text).unwrap_or_else(|| {
            notes.push(text.to_owned());
            notes.len() - 1
        });
        format!("[{}]", position + 1)
    }

    /// Footnotes with their marks, to go below the table.
    pub fn marked(notes: &[String]) -> impl Iterator<Item = String> + '_ {
        notes.iter().enumerate().map(|(i, text)| format!("[{}] {text}", i + 1))
    }
}
