//! Heading and notes of every table that compares records with published values.

use crate::case::Case;
use crate::config::Experiment;
use crate::config::sweep::Axis;
use crate::record::Record;
use crate::report::Sheet;
use crate::report::cells::{common_settings, execution, status, varying};

/// Citation, settings but for those `shown` in the table, and what was inferred and noted.
pub(super) fn heading(
    experiment: &Experiment,
    citation: &str,
    case: &Case,
    shown: &[&Axis],
) -> Vec<String> {
    let mut lines = Vec::new();
    if !citation.is_empty() {
        lines.push(format!("paper: {citation}"));
    }
    lines.push(format!("run: {}", common_settings(case, shown).join(", ")));
    lines.extend(experiment.inferred.iter().map(|text| format!("inferred: {text}")));
    lines.extend(experiment.notes.iter().map(|text| format!("note: {text}")));
    lines
}

/// A sheet of `records` that begins with the heading, and the settings in which they differ; `None`
/// without records, which the sheet says.
pub(super) fn opened(
    experiment: &Experiment,
    citation: &str,
    records: &[Record],
) -> (Sheet, Option<Vec<&'static Axis>>) {
    let mut sheet = Sheet { title: experiment.title.clone(), ..Sheet::default() };
    let cases: Vec<&Case> = records.iter().map(|r| &r.case).collect();
    let Some(first) = cases.first() else {
        sheet.preamble.push("no records".into());
        return (sheet, None);
    };
    let varying = varying(&cases);
    sheet.preamble = heading(experiment, citation, first, &varying);
    (sheet, Some(varying))
}

/// A line for each record that did not succeed; reasons go to `notes`.
pub(super) fn failures(
    records: &[Record],
    varying: &[&Axis],
    notes: &mut Vec<String>,
) -> Vec<String> {
    let failed = records.iter().filter(|r| !r.status.succeeded());
    failed.map(|r| format!("{}: {}", execution(&r.case, varying), status(r, notes))).collect()
}
