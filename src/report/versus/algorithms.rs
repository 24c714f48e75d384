//! Comparison of all algorithms of the triangular solves, where more than one was measured.

use itertools::Itertools as _;

use crate::base::parse::choice_name;
use crate::case::Trisolve;
use crate::record::Record;
use crate::report::Sheet;
use crate::report::build::Columns;
use crate::report::cells::{apply_share, in_cache, levels, shown, speedup, time};

use super::{METRICS, Side, System};

/// Our algorithms that were measured for some system.
pub(super) fn measured(systems: &[System<'_>]) -> Vec<Trisolve> {
    let known = |algorithm: &_| systems.iter().any(|s| asked(s, *algorithm).is_some());
    Trisolve::which(|about| !about.library).filter(known).collect_vec()
}

/// The record of an algorithm requested by name, if it has a time.
fn asked<'a>(system: &System<'a>, algorithm: Trisolve) -> Option<&'a Record> {
    let own = |r: &&Record| r.case.backend == "cuda" && r.case.trisolve == algorithm;
    system.records.iter().copied().find(|r| own(r) && r.traffic.apply_s.is_some())
}

/// Time of an application by cuSPARSE divided by that of an algorithm.
pub(super) fn ratio(system: &System<'_>, algorithm: Trisolve) -> Option<f64> {
    let own = asked(system, algorithm).and_then(|r| r.traffic.apply_s);
    speedup(system.seconds(&METRICS[0], Side::Library), own)
}

/// A row per system behind its settings, and a column per algorithm; none for fewer than two algorithms.
pub(super) fn sheet<'a>(
    systems: &'a [System<'a>],
    settings: Columns<'a, &'a System<'a>>,
) -> Option<Sheet> {
    let algorithms = measured(systems);
    if algorithms.len() < 2 {
        return None;
    }
    let mut columns = settings.number("levels L/U", |s| {
        let mut known = s.records.iter().map(|r| levels(&r.factor));
        known.find(|levels| !levels.is_empty()).unwrap_or_default()
    });
    for algorithm in algorithms {
        let head = format!("by {}", choice_name(&algorithm));
        columns = columns.number(head, move |s| shown(asked(s, algorithm), cell));
    }
    let library = |s: &System<'a>| s.best(&METRICS[0], Side::Library).map(|(record, _)| record);
    let mut sheet = columns.number("cuSPARSE", |s| shown(library(s), cell)).sheet(systems);
    sheet.title = Some("All algorithms of the triangular solves".into());
    sheet.notes = vec![
        "one application of L and U; in brackets its bytes at copy bandwidth, in percent".into(),
    ];
    let records = systems.iter().flat_map(|s| s.records.iter().copied());
    sheet.notes.extend(in_cache(records, |t| [t.apply_bytes, None]));
    Some(sheet)
}

/// Time and percent of the copy bandwidth: `186.0 µs (34 %)`.
fn cell(record: &Record) -> String {
    let t = &record.traffic;
    let share = shown(t.percent_of_bandwidth, |_| format!(" ({} %)", apply_share(t)));
    shown(t.apply_s, |s| time(Some(s)) + &share)
}
