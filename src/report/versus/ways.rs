//! Comparison of all algorithms of the triangular solves, where more than one was measured.

use crate::base::parse::choice_name;
use crate::base::units::{seconds, significant};
use crate::case::Trisolve;
use crate::config::sweep::Axis;
use crate::record::Record;
use crate::report::cells::{head, speedup};
use crate::report::{Head, Sheet};

use super::{METRICS, Side, System, levels};

/// Our algorithms that were measured for some system.
pub(super) fn measured(systems: &[System<'_>]) -> Vec<Trisolve> {
    Trisolve::which(|about| !about.library)
        .filter(|algorithm| systems.iter().any(|s| asked(s, *algorithm).is_some()))
        .collect()
}

/// The record of an algorithm requested by name, if it has a time.
fn asked<'a>(system: &System<'a>, algorithm: Trisolve) -> Option<&'a Record> {
    let matches =
        |r: &&Record| r.case.backend == "cuda" && r.case.trisolve == algorithm && time(r).is_some();
    system.records.iter().copied().find(matches)
}

/// Seconds of one application.
fn time(record: &Record) -> Option<f64> {
    (METRICS[0].seconds)(record)
}

/// Time of an application by cuSPARSE divided by that of an algorithm.
pub(super) fn ratio(system: &System<'_>, algorithm: Trisolve) -> Option<f64> {
    let library = system.best(&METRICS[0], Side::Library).map(|(_, s)| s);
    speedup(library, asked(system, algorithm).and_then(time))
}

/// A row per system and a column per algorithm; none for fewer than two algorithms.
pub(super) fn sheet(systems: &[System<'_>], varying: &[&'static Axis]) -> Option<Sheet> {
    let algorithms = measured(systems);
    if algorithms.len() < 2 {
        return None;
    }
    let mut sheet =
        Sheet { title: Some("All algorithms of the triangular solves".into()), ..Sheet::default() };
    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    sheet.columns.push(Head::number("levels L/U"));
    sheet.columns.extend(
        algorithms.iter().map(|algorithm| Head::number(format!("by {}", choice_name(algorithm)))),
    );
    sheet.columns.push(Head::number("cuSPARSE"));
    for system in systems {
        let mut row: Vec<String> = varying.iter().map(|axis| (axis.text)(&system.case)).collect();
        row.push(
            system
                .records
                .iter()
                .find_map(|r| Some(levels(r)).filter(|l| !l.is_empty()))
                .unwrap_or_default(),
        );
        row.extend(
            algorithms
                .iter()
                .map(|algorithm| asked(system, *algorithm).map(cell).unwrap_or_default()),
        );
        let library = system.best(&METRICS[0], Side::Library).map(|(record, _)| record);
        row.push(library.map(cell).unwrap_or_default());
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = vec![
        "one application of L and U; in brackets the percentage of the roofline, the larger of bytes over \
         bandwidth and levels times CTA-to-CTA latency. An algorithm that passes many levels inside a \
         thread block can exceed 100 %"
            .into(),
    ];
    Some(sheet)
}

/// Time and percent of the roof: `186.0 µs (104 %)`.
fn cell(record: &Record) -> String {
    let share = record.traffic.percent_of_roof;
    let share = share.map(|p| format!(" ({} %)", significant(p, 3))).unwrap_or_default();
    time(record).map(|s| seconds(s) + &share).unwrap_or_default()
}
