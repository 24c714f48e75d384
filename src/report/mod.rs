//! Reports: tables for people, rows for programs.
//!
//! A [`Report`] holds both; each output format is one small file.

pub mod advice;
pub mod batch;
pub(crate) mod build;
pub mod cells;
pub mod claims;
pub mod columns;
pub mod compare;
pub mod csv;
mod fastest;
mod frontier;
mod heading;
pub mod history;
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
mod sequences;
pub mod shares;
pub mod table;
pub mod versus;

use itertools::Itertools as _;
use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
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
pub(crate) fn of_experiment(
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

impl ReportFormat {
    /// `report` in this format, as text that ends in a newline.
    pub(crate) fn render(self, report: &Report) -> Result<String> {
        match self {
            Self::Table => Ok(table::text(report)),
            Self::Markdown => Ok(report.markdown()),
            Self::Csv => csv::rows(report),
            Self::Json => serde_json::to_string_pretty(&report.rows)
                .map(|text| text + "\n")
                .map_err(|e| Error::run(format!("cannot write JSON: {e}"))),
        }
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
        self.rows.iter().flat_map(Map::keys).map(String::as_str).unique().collect()
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
    pub(crate) fn drop_empty_columns(&mut self) {
        let used = |i: usize| self.rows.iter().any(|row| !row[i].is_empty());
        self.keep(&(0..self.columns.len()).map(used).collect_vec());
    }

    /// Removes the columns that are not `used`.
    fn keep(&mut self, used: &[bool]) {
        fn keep<T>(items: &mut Vec<T>, used: &[bool]) {
            let mut used = used.iter();
            items.retain(|_| used.next() == Some(&true));
        }
        keep(&mut self.columns, used);
        self.rows.iter_mut().for_each(|row| keep(row, used));
    }

    /// Adds a footnote once and returns its mark, `[1]` for the first note.
    pub(crate) fn footnote(notes: &mut Vec<String>, text: &str) -> String {
        let position = notes.iter().position(|n| n == text).unwrap_or_else(|| {
            notes.push(text.to_owned());
            notes.len() - 1
        });
        format!("[{}]", position + 1)
    }

    /// Footnotes with their marks, to go below the table.
    pub(crate) fn marked(notes: &[String]) -> impl Iterator<Item = String> + '_ {
        notes.iter().enumerate().map(|(i, text)| format!("[{}] {text}", i + 1))
    }

    #[cfg(test)]
    pub(crate) fn heads(&self) -> Vec<&str> {
        self.columns.iter().map(|head| head.text.as_str()).collect()
    }

    /// The cells under a head.
    #[cfg(test)]
    pub(crate) fn column(&self, head: &str) -> Vec<&str> {
        let at = self.heads().iter().position(|own| *own == head).expect(head);
        self.rows.iter().map(|row| row[at].as_str()).collect()
    }
}
