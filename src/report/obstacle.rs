//! Tables of runs of the obstacle problem, compared with the published values.

use crate::base::units::{grouped, percent, residual, seconds, significant};
use crate::config::obstacle::axes::AXES;
use crate::config::obstacle::{Experiment, Published, PublishedRow};
use crate::obstacle::case::{Case, Mode};
use crate::record::obstacle::Record;
use crate::record::table::{Rendered, fields};
use crate::report::{Head, Report, Sheet};

/// Cell of a missing value.
const NOTHING: &str = "-";

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

fn head(text: &str, words: bool) -> Head {
    Head { text: text.to_owned(), words }
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NOTHING.to_owned(), show)
}

/// Heads of what was measured, in the order of the table.
const MEASURED: [&str; 11] = [
    "nodes",
    "sweeps",
    "relaxations",
    "step norm",
    "min(AU-G, U-Phi)",
    "contact",
    "solve",
    "a sweep",
    "GB/s",
    "of copy",
    "status",
];

/// All heads of the table that has a row for each record.
pub fn heads() -> Vec<&'static str> {
    AXES.iter().map(|axis| axis.name).chain(MEASURED).collect()
}

/// Settings that change from row to row have a column; the others are named once.
fn runs(experiment: Option<&Experiment>, records: &[Record], title: Option<&str>) -> Sheet {
    let varies =
        |text: fn(&Case) -> String| records.iter().any(|r| text(&r.case) != text(&records[0].case));
    let (moving, fixed): (Vec<_>, Vec<_>) = AXES.iter().partition(|a| varies(a.text));
    let mut sheet = Sheet {
        title: title.map(str::to_owned).or_else(|| experiment.and_then(|e| e.title.clone())),
        notes: experiment.map(|e| e.notes.clone()).unwrap_or_default(),
        ..Sheet::default()
    };
    let Some(first) = records.first() else { return sheet };
    let default = Case::default();
    let constants: Vec<String> = fixed
        .iter()
        .filter(|a| a.name == "m" || (a.text)(&first.case) != (a.text)(&default))
        .map(|a| format!("{} {}", a.name, (a.text)(&first.case)))
        .collect();
    if !constants.is_empty() {
        sheet.preamble.push(constants.join(", "));
    }
    let mut devices: Vec<&str> = Vec::new();
    for r in records {
        if !devices.contains(&r.environment.device.as_str()) {
            devices.push(&r.environment.device);
        }
    }
    sheet.preamble.push(format!("on {}", devices.join("; ")));
    sheet.columns.extend(moving.iter().map(|a| head(a.name, !(a.choices)().is_empty())));
    sheet.columns.extend(MEASURED.map(|text| head(text, text == "status")));
    sheet.records = (0..records.len()).collect();
    for r in records {
        let (i, c) = (&r.iteration, &r.cost);
        let mut row: Vec<String> = moving.iter().map(|a| (a.text)(&r.case)).collect();
        let ran = i.sweeps_per_node > 0.0;
        let share = 100.0 * i.contact_points as f64 / i.points.max(1) as f64;
        row.extend([
            i.split_used.map_or_else(|| NOTHING.into(), |s| s.to_string()),
            grouped(i.sweeps_per_node.round() as usize),
            grouped(i.relaxations as usize),
            optional(i.step_norm.filter(|_| ran), residual),
            optional(i.complementarity.filter(|_| ran), residual),
            if ran { format!("{share:.1} %") } else { NOTHING.into() },
            optional(c.solve_s, seconds),
            optional(c.ms_per_sweep, |ms| seconds(ms / 1e3)),
            optional(c.sweep_gbps, |v| significant(v, 4)),
            optional(c.percent_of_bandwidth, |v| format!("{v:.0} %")),
            match &r.reason {
                Some(why) => format!("{}: {why}", r.status.name()),
                None => r.status.name().to_owned(),
            },
        ]);
        sheet.rows.push(row);
    }
    sheet
}

/// Published sweeps and times, each with the records of its m and mode.
fn beside(published: &Published, records: &[Record]) -> Sheet {
    let mut sheet = Sheet {
        title: Some(format!("Beside the published values ({})", published.device)),
        columns: ["m", "mode", "nodes"].map(|t| head(t, t == "mode")).to_vec(),
        notes: vec![
            published.citation.clone(),
            "sweeps: relaxations over nodes, for all time steps".into(),
        ],
        ..Sheet::default()
    };
    for text in ["published sweeps", "ours", "difference", "published", "ours", "speed-up"] {
        sheet.columns.push(head(text, false));
    }
    sheet.columns.push(head("where", true));
    for row in &published.rows {
        let sweeps = row.relaxations.map(|r| r as f64 / row.nodes as f64);
        for r in records.iter().filter(|r| belongs(row, &r.case)) {
            let ours = r.iteration.sweeps_per_node;
            let converged = r.status.succeeded();
            let own = |v: Option<f64>| v.filter(|_| converged);
            sheet.rows.push(vec![
                row.m.to_string(),
                name(row.mode).into(),
                row.nodes.to_string(),
                optional(sweeps, |v| grouped(v.round() as usize)),
                optional(own(Some(ours)), |v| grouped(v.round() as usize)),
                optional(own(sweeps), |v| percent(100.0 * (ours / v - 1.0))),
                optional(row.seconds, seconds),
                optional(own(r.cost.solve_s), seconds),
                optional(own(row.seconds.zip(r.cost.solve_s).map(|(a, b)| a / b)), |v| {
                    significant(v, 3)
                }),
                format!("{} {}", r.case.backend, label(&r.case)),
            ]);
        }
    }
    sheet
}

/// Whether a case stands beside a published row: its m and mode, the norm over as many parts.
fn belongs(row: &PublishedRow, case: &Case) -> bool {
    let parts = case.norm_split.count();
    case.m == row.m && case.mode == row.mode && (parts == row.nodes || parts == 1)
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Sync => "sync",
        Mode::Async => "async",
    }
}

/// Label that distinguishes runs of the same m and mode.
fn label(case: &Case) -> String {
    let default = Case::default();
    let names = ["method", "split", "transport", "sweeps-per-pass", "norm-split"];
    let texts = AXES.iter().filter(|a| names.contains(&a.name));
    let texts = texts.filter(|a| (a.text)(case) != (a.text)(&default));
    texts.map(|a| format!("{} {}", a.name, (a.text)(case))).collect::<Vec<_>>().join(", ")
}

/// Asynchronous runs beside the synchronous ones of the same case: `100 (T_sync - T_async) / T_sync`.
fn gains(records: &[Record]) -> Option<Sheet> {
    let mut sheet = Sheet {
        title: Some("Gain of the asynchronous method".into()),
        columns: vec![head("m", false), head("where", true)],
        ..Sheet::default()
    };
    for text in ["synchronous", "asynchronous", "gain"] {
        sheet.columns.push(head(text, false));
    }
    let time = |r: &Record| r.cost.solve_s.filter(|_| r.status.succeeded());
    for r in records.iter().filter(|r| r.case.mode == Mode::Async) {
        let waiting = Case { mode: Mode::Sync, ..r.case.clone() };
        let twin = records.iter().find(|other| other.case == waiting).and_then(time);
        if let Some((sync, own)) = twin.zip(time(r)) {
            sheet.rows.push(vec![
                r.case.m.to_string(),
                format!("{} {}", r.case.backend, label(&r.case)),
                seconds(sync),
                seconds(own),
                percent(100.0 * (sync - own) / sync),
            ]);
        }
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}

/// Points of a node that count as the same: with a whole m the grids of several nodes are not exactly as
/// many times as large.
const SAME_SHARE: f64 = 0.02;

/// Runs on several nodes beside one node with the same grid (strong) or as many points (weak): points
/// relaxed per second and node over those of the one.
fn efficiency(records: &[Record]) -> Option<Sheet> {
    let mut sheet = Sheet {
        title: Some("Parallel efficiency".into()),
        columns: vec![head("scaling", true), head("m", false), head("where", true)],
        ..Sheet::default()
    };
    for text in ["nodes", "a sweep", "on one", "efficiency"] {
        sheet.columns.push(head(text, false));
    }
    let rate = |r: &Record| {
        let share = r.iteration.points as f64 / r.iteration.nodes as f64;
        r.cost.ms_per_sweep.map(|ms| (ms, share, share / ms))
    };
    for r in records.iter().filter(|r| r.iteration.nodes > 1) {
        let alike = |one: &&Record| {
            let at_its_size = Case { m: r.case.m, split: r.case.split, ..one.case.clone() };
            one.iteration.nodes == 1 && at_its_size == r.case
        };
        for one in records.iter().filter(alike) {
            let (Some((ms, share, own)), Some((ms_of_one, points, base))) = (rate(r), rate(one))
            else {
                continue;
            };
            let scaling = if one.case.m == r.case.m {
                "strong"
            } else if (share / points - 1.0).abs() < SAME_SHARE {
                "weak"
            } else {
                continue;
            };
            sheet.rows.push(vec![
                scaling.into(),
                r.case.m.to_string(),
                format!("{} {}", r.case.backend, name(r.case.mode)),
                r.iteration.nodes.to_string(),
                seconds(ms / 1e3),
                seconds(ms_of_one / 1e3),
                significant(own / base, 3),
            ]);
        }
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
