//! Tables of runs of the obstacle problem, compared with the published values.

use itertools::Itertools as _;

use crate::base::parse::choice_name;
use crate::base::units::{grouped, percent, residual, seconds, significant};
use crate::config::obstacle::axes::{AXES, Axis};
use crate::config::obstacle::{Experiment, Published, PublishedRow};
use crate::obstacle::case::{Case, Mode};
use crate::record::obstacle::Record;
use crate::record::table::{Rendered, fields};
use crate::report::build::Columns;
use crate::report::{Head, Report, Sheet};

/// The records as a table, and beside the published values where `experiment` has some.
pub fn report(experiment: Option<&Experiment>, records: &[Record], title: Option<&str>) -> Report {
    let mut sheets = vec![runs(experiment, records, title)];
    if let Some(published) = experiment.and_then(|e| e.published.as_ref()) {
        sheets.push(beside(published, records));
    }
    sheets.extend(gains(records));
    sheets.extend(efficiency(records));
    Report { sheets, rows: records.iter().map(fields).collect() }
}

/// A value as a cell; a dash for a missing one.
fn optional<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// All heads of the table that has a row for each record.
pub fn heads() -> Vec<String> {
    let settings = AXES.iter().map(|axis| axis.name.to_owned());
    settings.chain(measured().into_heads().map(|head| head.text)).collect()
}

/// Settings that change from row to row have a column; the others are named once.
fn runs(experiment: Option<&Experiment>, records: &[Record], title: Option<&str>) -> Sheet {
    let title = title.map(str::to_owned).or_else(|| experiment.and_then(|e| e.title.clone()));
    let notes = experiment.map(|e| e.notes.clone()).unwrap_or_default();
    let Some(first) = records.first() else { return Sheet { title, notes, ..Sheet::default() } };
    let varies = |axis: &&Axis| !records.iter().map(|r| (axis.text)(&r.case)).all_equal();
    let (moving, fixed): (Vec<&'static Axis>, Vec<_>) = AXES.iter().partition(varies);
    let default = Case::default();
    let named = |a: &&&Axis| a.name == "m" || (a.text)(&first.case) != (a.text)(&default);
    let constants = settings(fixed.into_iter().filter(|a| named(&a)), &first.case);
    let constants = Some(constants).filter(|text| !text.is_empty());
    let devices = records.iter().map(|r| &r.environment.device).filter(|name| !name.is_empty());
    let devices = Some(devices.unique().join("; ")).filter(|names| !names.is_empty());
    let mut columns = Columns::new();
    for axis in moving {
        let head = Head { text: axis.name.to_owned(), words: !(axis.choices)().is_empty() };
        columns = columns.column(head, |r: &&Record| (axis.text)(&r.case));
    }
    Sheet {
        title,
        notes,
        preamble: constants.into_iter().chain(devices.map(|names| format!("on {names}"))).collect(),
        records: (0..records.len()).collect(),
        ..columns.and(measured()).whole(records)
    }
}

/// The columns of what was measured.
fn measured<'a, 'r>() -> Columns<'a, &'r Record> {
    let ran = |r: &Record| r.iteration.sweeps_per_node > 0.0;
    Columns::new()
        .number("nodes", |r: &&Record| optional(r.iteration.split_used, |s| s.to_string()))
        .number("sweeps", |r| grouped(r.iteration.sweeps_per_node.round() as usize))
        .number("relaxations", |r| grouped(r.iteration.relaxations as usize))
        .number("step norm", move |r| optional(r.iteration.step_norm.filter(|_| ran(r)), residual))
        .number("min(AU-G, U-Phi)", move |r| {
            optional(r.iteration.complementarity.filter(|_| ran(r)), residual)
        })
        .number("contact", move |r| {
            let share = 100.0 * r.iteration.contact_points as f64;
            let share = share / r.iteration.points.max(1) as f64;
            optional(ran(r).then_some(share), |share| format!("{share:.1} %"))
        })
        .number("solve", |r| optional(r.cost.solve_s, seconds))
        .number("a sweep", |r| optional(r.cost.ms_per_sweep, |ms| seconds(ms / 1e3)))
        .number("GB/s", |r| optional(r.cost.sweep_gbps, |v| significant(v, 4)))
        .number("of copy", |r| optional(r.cost.percent_of_bandwidth, |v| format!("{v:.0} %")))
        .words("status", |r| match &r.reason {
            Some(why) => format!("{}: {why}", r.status.name()),
            None => r.status.name().to_owned(),
        })
}

/// Published sweeps and times, each with the records of its m and mode.
fn beside(published: &Published, records: &[Record]) -> Sheet {
    type Pair<'a> = (&'a PublishedRow, &'a Record);
    let whole = |v: f64| grouped(v.round() as usize);
    let sweeps = |row: &PublishedRow| row.relaxations.map(|r| r as f64 / row.nodes as f64);
    let ours = |r: &Record| Some(r.iteration.sweeps_per_node).filter(|_| r.status.succeeded());
    let pairs = published.rows.iter().flat_map(|row| {
        records.iter().filter(|r| belongs(row, &r.case)).map(move |record| (row, record))
    });
    let mut sheet = Columns::new()
        .number("m", |(row, _): &Pair<'_>| row.m.to_string())
        .words("mode", |(row, _)| choice_name(&row.mode))
        .number("nodes", |(row, _)| row.nodes.to_string())
        .number("published sweeps", move |(row, _)| optional(sweeps(row), whole))
        .number("ours", move |(_, r)| optional(ours(r), whole))
        .number("difference", move |(row, r)| {
            optional(sweeps(row).zip(ours(r)), |(paper, own)| percent(100.0 * (own / paper - 1.0)))
        })
        .number("published", |(row, _)| optional(row.seconds, seconds))
        .number("ours", |(_, r)| optional(time(r), seconds))
        .number("speed-up", |(row, r)| {
            optional(row.seconds.zip(time(r)), |(paper, own)| significant(paper / own, 3))
        })
        .words("where", |(_, r)| label(r))
        .whole(pairs);
    sheet.title = Some(format!("Beside the published values ({})", published.device));
    sheet.notes = vec![
        published.citation.clone(),
        "sweeps: relaxations over nodes, for all time steps".into(),
    ];
    sheet
}

/// Seconds of all time steps, where they converged.
fn time(record: &Record) -> Option<f64> {
    record.cost.solve_s.filter(|_| record.status.succeeded())
}

/// Whether a case stands beside a published row: its m and mode, the norm over as many parts.
fn belongs(row: &PublishedRow, case: &Case) -> bool {
    let parts = case.norm_split.count();
    case.m == row.m && case.mode == row.mode && (parts == row.nodes || parts == 1)
}

/// `eta 1, c 0`: the values of settings behind their names.
fn settings<'a>(axes: impl IntoIterator<Item = &'a Axis>, case: &Case) -> String {
    axes.into_iter().map(|axis| format!("{} {}", axis.name, (axis.text)(case))).join(", ")
}

/// Label that distinguishes runs of the same m and mode.
fn label(record: &Record) -> String {
    let (case, default) = (&record.case, Case::default());
    let names = ["method", "split", "transport", "sweeps-per-pass", "norm-split"];
    // an obstacle that was set apart from others of its name
    let apart = |a: &Axis| a.name == "obstacle" && case.obstacle.contains('#');
    let own = AXES.iter().filter(|a| names.contains(&a.name) || apart(a));
    let own = own.filter(|a| (a.text)(case) != (a.text)(&default));
    format!("{} {}", case.backend, settings(own, case))
}

/// Asynchronous runs beside the synchronous ones of the same case: `100 (T_sync - T_async) / T_sync`.
fn gains(records: &[Record]) -> Option<Sheet> {
    let pairs = records.iter().filter(|r| r.case.mode == Mode::Async).filter_map(|r| {
        let waiting = Case { mode: Mode::Sync, ..r.case.clone() };
        let twin = records.iter().find(|other| other.case == waiting)?;
        Some((r, time(twin)?, time(r)?))
    });
    let mut sheet = Columns::new()
        .number("m", |(r, ..): &(&Record, f64, f64)| r.case.m.to_string())
        .words("where", |(r, ..)| label(r))
        .number("synchronous", |(_, sync, _)| seconds(*sync))
        .number("asynchronous", |(.., own)| seconds(*own))
        .number("gain", |(_, sync, own)| percent(100.0 * (sync - own) / sync))
        .whole(pairs);
    sheet.title = Some("Gain of the asynchronous method".into());
    (!sheet.rows.is_empty()).then_some(sheet)
}

/// Points of a node that count as the same: with a whole m the grids of several nodes are not exactly as
/// many times as large.
const SAME_SHARE: f64 = 0.02;

/// Runs on several nodes beside one node with the same grid (strong) or as many points (weak): points
/// relaxed per second and node over those of the one.
fn efficiency(records: &[Record]) -> Option<Sheet> {
    let rate = |r: &Record| {
        let share = r.iteration.points as f64 / r.iteration.nodes as f64;
        r.cost.ms_per_sweep.map(|ms| (ms, share, share / ms))
    };
    let mut sheet = Sheet { title: Some("Parallel efficiency".into()), ..Sheet::default() };
    sheet.columns = vec![Head::words("scaling"), Head::number("m"), Head::words("where")];
    sheet.columns.extend(["nodes", "a sweep", "on one", "efficiency"].map(Head::number));
    for r in records.iter().filter(|r| r.iteration.nodes > 1) {
        let row = |one: &Record| {
            let at_its_size = Case { m: r.case.m, split: r.case.split, ..one.case.clone() };
            let alike = one.iteration.nodes == 1 && at_its_size == r.case;
            let ((ms, share, own), (ms_of_one, points, base)) =
                rate(r).zip(rate(one)).filter(|_| alike)?;
            let scaling = match (share / points - 1.0).abs() {
                _ if one.case.m == r.case.m => "strong",
                differs if differs < SAME_SHARE => "weak",
                _ => return None,
            };
            Some(vec![
                scaling.into(),
                r.case.m.to_string(),
                format!("{} {}", r.case.backend, choice_name(&r.case.mode)),
                r.iteration.nodes.to_string(),
                seconds(ms / 1e3),
                seconds(ms_of_one / 1e3),
                significant(own / base, 3),
            ])
        };
        sheet.rows.extend(records.iter().filter_map(row));
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}

impl Rendered for Record {
    fn markdown(records: &[Self]) -> String {
        report(None, records, None).markdown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::status::Status;
    use crate::obstacle::Split;

    fn record(mode: Mode, sweeps: f64, time: f64) -> Record {
        let mut r = Record {
            case: Case { m: 256, mode, backend: "cuda".into(), ..Case::default() },
            status: Status::Converged,
            ..Record::default()
        };
        r.iteration.points = 256 * 256 * 256;
        r.iteration.sweeps_per_node = sweeps;
        r.iteration.relaxations = sweeps as u64;
        r.cost.solve_s = Some(time);
        r
    }

    #[test]
    fn published_sweeps_times_and_gains_stand_beside_ours() {
        let row = |mode, seconds, relaxations| PublishedRow {
            m: 256,
            mode,
            nodes: 12,
            seconds: Some(seconds),
            relaxations: Some(relaxations),
        };
        let published = Published {
            citation: "Table 2".into(),
            device: "12 GPUs".into(),
            rows: vec![row(Mode::Sync, 29.67, 100_692), row(Mode::Async, 18.0, 94_215)],
        };
        let experiment = Experiment { published: Some(published), ..Experiment::default() };
        let records = [record(Mode::Sync, 8475.0, 0.8), record(Mode::Async, 5000.0, 0.5)];
        let report = report(Some(&experiment), &records, None);
        let row = |sheet: usize, row: usize| report.sheets[sheet].rows[row].join(" | ");
        assert_eq!(
            row(1, 0),
            "256 | sync | 12 | 8,391 | 8,475 | +1.0 % | 29.67 s | 800.0 ms | 37.1 | cuda "
        );
        assert_eq!(
            row(1, 1),
            "256 | async | 12 | 7,851 | 5,000 | -36.3 % | 18.00 s | 500.0 ms | 36.0 | cuda "
        );
        assert_eq!(row(2, 0), "256 | cuda  | 800.0 ms | 500.0 ms | +37.5 %");
        assert_eq!(report.rows.len(), 2);
    }

    #[test]
    fn several_nodes_are_compared_with_one_at_the_same_size_and_at_the_same_share() {
        let run = |m: usize, nodes: usize, ms: f64| {
            let mut r = record(Mode::Sync, 100.0, ms / 10.0);
            r.case.m = m;
            r.case.split = Some(Split { y: 1, z: nodes });
            r.iteration.points = m.pow(3);
            r.iteration.nodes = nodes;
            r.cost.ms_per_sweep = Some(ms);
            r
        };
        let records = [run(512, 1, 1.0), run(800, 1, 4.0), run(800, 4, 1.25), run(813, 4, 1.25)];
        let rows = efficiency(&records).unwrap().rows;
        let rows: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
        assert_eq!(
            rows,
            [
                "strong | 800 | cuda sync | 4 | 1.250 ms | 4.000 ms | 0.800",
                "weak | 813 | cuda sync | 4 | 1.250 ms | 1.000 ms | 0.801",
            ]
        );
        assert_eq!(efficiency(&records[..2]), None);
    }
}
