//! Heading, notes and rows of every table that compares records with published values.

use serde_json::{Map, Value};

use crate::case::Case;
use crate::config::Experiment;
use crate::config::sweep::Axis;
use crate::record::Record;
use crate::record::table::fields;
use crate::report::Sheet;
use crate::report::cells::{common_settings, execution, status, varying};

/// Citation, settings but for those `shown` in the table, and what was inferred and noted.
pub(super) fn heading(
    experiment: &Experiment,
    citation: &str,
    case: &Case,
    shown: &[&Axis],
) -> Vec<String> {
    let paper = (!citation.is_empty()).then(|| format!("paper: {citation}"));
    let run = format!("run: {}", common_settings(case, shown).join(", "));
    let inferred = experiment.inferred.iter().map(|text| format!("inferred: {text}"));
    let notes = experiment.notes.iter().map(|text| format!("note: {text}"));
    paper.into_iter().chain([run]).chain(inferred).chain(notes).collect()
}

/// An empty sheet of `experiment`, which says that there are no records.
pub(super) fn without_records(title: Option<&str>) -> Sheet {
    let preamble = vec!["no records".into()];
    Sheet { title: title.map(str::to_owned), preamble, ..Sheet::default() }
}

/// Title and heading of a sheet of `records`, and the settings in which they differ; `None` without
/// records.
pub(super) fn opened(
    experiment: &Experiment,
    citation: &str,
    records: &[Record],
) -> Option<(Sheet, Vec<&'static Axis>)> {
    let first = records.first()?;
    let varying = varying(records.iter().map(|r| &r.case));
    let preamble = heading(experiment, citation, &first.case, &varying);
    Some((Sheet { title: experiment.title.clone(), preamble, ..Sheet::default() }, varying))
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

/// The columns of a record between the name of its experiment and those `added`.
pub(super) fn row(
    experiment: &str,
    record: &Record,
    added: impl IntoIterator<Item = (impl Into<String>, Value)>,
) -> Map<String, Value> {
    let mut row = Map::from_iter([("experiment".to_owned(), experiment.into())]);
    row.extend(fields(record));
    row.extend(added.into_iter().map(|(name, value)| (name.into(), value)));
    row
}
