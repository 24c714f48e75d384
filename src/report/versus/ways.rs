//! Every way of the triangular solves beside each other, where more than one was measured.

use crate::base::parse::choice_name;
use crate::base::units::{seconds, significant};
use crate::case::Trisolve;
use crate::config::sweep::Axis;
use crate::record::Record;
use crate::report::cells::{head, speedup};
use crate::report::{Head, Sheet};

use super::{METRICS, Side, System, levels};

/// Our ways, in the order of their columns.
const WAYS: [Trisolve; 6] = [
    Trisolve::Wavefront,
    Trisolve::Pencils,
    Trisolve::Partitioned,
    Trisolve::Syncfree,
    Trisolve::Levels,
    Trisolve::Pointwise,
];

/// Those of [`WAYS`] that some system was solved by.
pub(super) fn measured(systems: &[System<'_>]) -> Vec<Trisolve> {
    WAYS.into_iter().filter(|way| systems.iter().any(|s| asked(s, *way).is_some())).collect()
}

/// The record of a way that was asked for by name, if it gave a time.
fn asked<'a>(system: &System<'a>, way: Trisolve) -> Option<&'a Record> {
    let of_way =
        |r: &&Record| r.case.backend == "cuda" && r.case.trisolve == way && time(r).is_some();
    system.records.iter().copied().find(of_way)
}

/// Seconds of one application.
fn time(record: &Record) -> Option<f64> {
    (METRICS[0].seconds)(record)
}

/// cuSPARSE's time of an application over that of a way.
pub(super) fn ratio(system: &System<'_>, way: Trisolve) -> Option<f64> {
    let library = system.best(&METRICS[0], Side::Library).map(|(_, s)| s);
    speedup(library, asked(system, way).and_then(time))
}

/// A row per system and a column per way; none where there are fewer than two ways.
pub(super) fn sheet(systems: &[System<'_>], varying: &[&'static Axis]) -> Option<Sheet> {
    let ways = measured(systems);
    if ways.len() < 2 {
        return None;
    }
    let mut sheet = Sheet { title: Some("Every way of the solves".into()), ..Sheet::default() };
    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    sheet.columns.push(Head::number("levels L/U"));
    sheet.columns.extend(ways.iter().map(|way| Head::number(format!("by {}", choice_name(way)))));
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
        row.extend(ways.iter().map(|way| asked(system, *way).map(cell).unwrap_or_default()));
        let library = system.best(&METRICS[0], Side::Library).map(|(record, _)| record);
        row.push(library.map(cell).unwrap_or_default());
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = vec![
        "L and U once; in brackets the percent of the larger of bytes over bandwidth and levels times \
         the latency of a hand-over between thread blocks, which a way that passes many levels inside \
         one of them can exceed"
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
