//! Comparison of measured residual histories with a published one.

use itertools::Itertools as _;

use crate::base::units::significant;
use crate::config::sweep::Axis;
use crate::config::{Experiment, History};
use crate::record::Record;
use crate::report::build::Columns;
use crate::report::cells::{devices, execution, shown};
use crate::report::heading::{self, failures, opened, without_records};
use crate::report::{Report, Sheet};

/// Digits that are printed, as many as the paper has.
const PRINTED: usize = 12;

/// The sums of squares per correction of `records` beside the published ones. `not_comparable` says
/// why their decline is not, when another matrix than the paper's was run.
pub fn report(
    name: &str,
    experiment: &Experiment,
    history: &History,
    records: &[Record],
    not_comparable: Option<&str>,
) -> Report {
    let row = |record| {
        let digits = first(records).and_then(|base| agreement(history, base, record));
        heading::row(name, record, [("digits-of-history", digits.into())])
    };
    let sheet = sheet(experiment, history, records, not_comparable);
    Report { sheets: vec![sheet], rows: records.iter().map(row).collect() }
}

fn sheet(
    experiment: &Experiment,
    history: &History,
    records: &[Record],
    not_comparable: Option<&str>,
) -> Sheet {
    let Some((mut sheet, varying)) = opened(experiment, &history.citation, records) else {
        return without_records(experiment.title.as_deref());
    };
    sheet.preamble.extend(devices(records));
    sheet
        .preamble
        .push("sum of squares of the residual; correction 0 is the first estimate".into());
    let mut columns = Columns::new().number("correction", usize::to_string);
    for (place, name) in history.names.iter().enumerate() {
        columns = columns.number(format!("{name} paper"), move |correction| {
            let published = history.rows.iter().find(|(own, _)| own == correction);
            shown(published, |(_, values)| printed(values[place]))
        });
    }
    for record in records {
        let squares = squares(record);
        columns = columns.number(execution(&record.case, &varying), move |correction| {
            shown(squares.get(*correction).copied(), printed)
        });
    }
    let most = records.iter().map(|r| squares(r).len()).max().unwrap_or(0);
    let last = history.rows.last().map_or(0, |(l, _)| l + 1).max(most);
    let Sheet { columns, rows, .. } = columns.whole(0..last);
    let mut notes = Vec::new();
    sheet.notes = failures(records, &varying, &mut notes);
    sheet.notes.extend(Sheet::marked(&notes));
    sheet.notes.extend(agreements(history, records, &varying));
    sheet.notes.extend(declines(history, records, &varying, not_comparable));
    Sheet { columns, rows, ..sheet }
}

/// Sums of squares from correction 0 on: the history of the record starts one application earlier.
fn squares(record: &Record) -> Vec<f64> {
    record.convergence.residual_history.iter().skip(1).map(|norm| norm * norm).collect()
}

fn printed(value: f64) -> String {
    format!("{value:.0$e}", PRINTED - 1)
}

/// The reference record: the one on one thread, else the first.
fn first(records: &[Record]) -> Option<&Record> {
    records.iter().find(|r| r.case.backend == "cpu").or(records.first())
}

/// Digits to which the first corrections agree at least, counted as the logarithm of the relative
/// difference, at most 16; `None` when either history is shorter.
fn agreement(history: &History, base: &Record, record: &Record) -> Option<f64> {
    let (base, own) = (squares(base), squares(record));
    let pairs = base.iter().zip(&own).take(history.corrections + 1);
    if pairs.len() <= history.corrections {
        return None;
    }
    let worst = pairs.map(|(a, b)| ((a - b) / a).abs()).fold(0.0, f64::max);
    Some((-worst.log10()).clamp(0.0, 16.0))
}

fn agreements(history: &History, records: &[Record], varying: &[&Axis]) -> Vec<String> {
    let Some(base) = first(records) else { return Vec::new() };
    let against = execution(&base.case, varying);
    let others = records.iter().filter(|r| !std::ptr::eq(*r, base));
    let line = |record: &Record| {
        let name = execution(&record.case, varying);
        let digits = agreement(history, base, record)?;
        let verdict = if digits >= history.digits as f64 { "ok" } else { "not" };
        let (wanted, l) = (history.digits, history.corrections);
        Some(format!(
            "{name} equals {against} to {digits:.1} digits up to correction {l}; {wanted} wanted: \
             {verdict}"
        ))
    };
    others.filter_map(line).collect()
}

/// Orders of magnitude from the first published correction to the last.
fn declines(
    history: &History,
    records: &[Record],
    varying: &[&Axis],
    not_comparable: Option<&str>,
) -> Vec<String> {
    let ends = history.rows.first().zip(history.rows.last());
    let Some(((from, first), (to, last))) = ends else { return Vec::new() };
    let orders = |first: f64, last: f64| significant((first / last).log10(), 3);
    let paper = first.first().zip(last.first());
    let paper = paper.map(|(first, last)| format!("paper {}", orders(*first, *last)));
    let here = records.iter().filter_map(|record| {
        let squares = squares(record);
        let orders = orders(*squares.get(*from)?, *squares.get(*to)?);
        Some(format!("{} {orders}", execution(&record.case, varying)))
    });
    let parts = paper.into_iter().chain(here).join(", ");
    let what = format!("orders of magnitude from correction {from} to {to}: {parts}");
    let why = not_comparable.map(|why| format!("not comparable with the paper: {why}"));
    std::iter::once(what).chain(why).collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
