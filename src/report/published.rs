//! Measured beside published: iterations with a verdict, times and speedups without one, since the
//! machines differ.

use serde_json::{Map, Value};

use crate::case::Case;
use crate::config::published::{Device, PublishedRow};
use crate::config::sweep::Axis;
use crate::config::{Experiment, Published};
use crate::report::runs::{common_settings, devices, head, speedup, status, varying};
use crate::report::units::{grouped, percent, plural, seconds, significant};
use crate::report::{Head, Report, Sheet};
use crate::result::table::fields;
use crate::result::{Record, Status};

/// What the table says about one measured iteration count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Within the tolerance; the deviation in percent of the published count.
    Ok(f64),
    /// Outside it.
    Off(f64),
    /// The run did not converge.
    Failed,
    /// Nothing is published for this case, or another matrix was run.
    None,
}

impl Verdict {
    /// Judges `measured` against `published` iterations.
    pub fn of(record: &Record, published: Option<&PublishedRow>, tolerance_percent: f64) -> Self {
        let Some(row) = published else { return Self::None };
        if record.status != Status::Converged {
            return Self::Failed;
        }
        let published = row.iterations as f64;
        let deviation = (record.convergence.iterations as f64 - published) / published * 100.0;
        // as exact as the counts: 21 * 1.05 is no iteration count, 100 * 1.05 is one
        if deviation.abs() <= tolerance_percent + 1e-9 {
            Self::Ok(deviation)
        } else {
            Self::Off(deviation)
        }
    }

    fn deviation(self) -> Option<f64> {
        match self {
            Self::Ok(deviation) | Self::Off(deviation) => Some(deviation),
            Self::Failed | Self::None => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Ok(_) => "ok".into(),
            Self::Off(deviation) => percent(deviation),
            Self::Failed => "failed".into(),
            Self::None => String::new(),
        }
    }
}

/// One line of the table: the records of a case on the slow and the fast backend.
struct Line<'a> {
    slow: Option<&'a Record>,
    fast: Option<&'a Record>,
    published: Option<&'a PublishedRow>,
    verdict: Verdict,
}

impl<'a> Line<'a> {
    /// The record that speaks for the line.
    fn record(&self) -> &'a Record {
        self.slow.or(self.fast).expect("a line has a record")
    }
}

/// The table of `records` beside what `experiment` has as published. `not_comparable` says why
/// there are no verdicts, when another matrix than the paper's was run.
pub fn report(
    name: &str,
    experiment: &Experiment,
    published: &Published,
    records: &[Record],
    not_comparable: Option<&str>,
) -> Report {
    let sides = Sides::of(published, records);
    let lines = lines(published, &sides, records, not_comparable.is_some());
    let sheet = sheet(experiment, published, &sides, &lines, records, not_comparable);
    let rows = records
        .iter()
        .map(|record| machine_row(name, published, &sides, record, not_comparable.is_some()))
        .collect();
    Report { sheets: vec![sheet], rows }
}

/// The backends that stand for the two devices.
struct Sides {
    slow: Option<(Device, String)>,
    fast: Option<(Device, String)>,
}

impl Sides {
    /// The backends that the experiment names; when another one ran instead of the fast one, that.
    fn of(published: &Published, records: &[Record]) -> Self {
        let ran = |name: &str| records.iter().any(|r| r.case.backend == name);
        let slow = published.slow.as_ref().map(|d| (d.clone(), d.backend.clone()));
        let fast = published.fast.as_ref().map(|device| {
            let other = records
                .iter()
                .map(|r| &r.case.backend)
                .find(|backend| slow.as_ref().is_none_or(|(_, slow)| slow != *backend));
            let backend = if ran(&device.backend) { None } else { other };
            (device.clone(), backend.unwrap_or(&device.backend).clone())
        });
        Self { slow, fast }
    }
}

fn lines<'a>(
    published: &'a Published,
    sides: &Sides,
    records: &'a [Record],
    scaled: bool,
) -> Vec<Line<'a>> {
    let anywhere = |case: &Case| Case { backend: String::new(), ..case.clone() };
    let mut cases: Vec<Case> = Vec::new();
    for record in records {
        let case = anywhere(&record.case);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
        .iter()
        .map(|case| {
            let on = |side: &Option<(Device, String)>| {
                let (_, backend) = side.as_ref()?;
                records.iter().find(|r| r.case.backend == *backend && anywhere(&r.case) == *case)
            };
            let (slow, fast) = (on(&sides.slow), on(&sides.fast));
            let slow = slow.or_else(|| {
                if fast.is_some() {
                    None
                } else {
                    records.iter().find(|r| anywhere(&r.case) == *case)
                }
            });
            let row = published.find(case);
            let record = slow.or(fast).expect("the case comes from a record");
            let judged = if scaled { None } else { row };
            let verdict = Verdict::of(record, judged, published.tolerance_percent);
            Line { slow, fast, published: row, verdict }
        })
        .collect()
}

fn sheet(
    experiment: &Experiment,
    published: &Published,
    sides: &Sides,
    lines: &[Line<'_>],
    records: &[Record],
    not_comparable: Option<&str>,
) -> Sheet {
    let mut sheet = Sheet { title: experiment.title.clone(), ..Sheet::default() };
    let cases: Vec<&Case> = lines.iter().map(|line| &line.record().case).collect();
    if cases.is_empty() {
        sheet.preamble.push("no records".into());
        return sheet;
    }
    let varying: Vec<&Axis> =
        varying(&cases).into_iter().filter(|axis| axis.name != "backend").collect();
    let groups: Vec<&Axis> =
        varying.iter().copied().filter(|axis| !published.keys.contains(axis)).collect();
    let shown: Vec<&Axis> = groups.iter().copied().chain(published.keys.iter().copied()).collect();
    sheet.preamble = preamble(experiment, published, sides, cases[0], &shown, records);

    sheet.columns.extend(shown.iter().map(|axis| head(axis)));
    for text in ["iterations paper", "iterations here"] {
        sheet.columns.push(Head::number(text));
    }
    sheet.columns.push(Head::number("verdict"));
    let (slow, fast) = (backend(sides.slow.as_ref()), backend(sides.fast.as_ref()));
    for text in ["slow paper", "fast paper", "speedup paper"] {
        sheet.columns.push(Head::number(text));
    }
    for text in [&format!("{slow} here"), &format!("{fast} here"), "speedup here"] {
        sheet.columns.push(Head::number(text));
    }
    for text in [format!("setup {slow}"), format!("setup {fast}")] {
        sheet.columns.push(Head::number(text));
    }
    sheet.columns.push(Head::words("status"));

    let mut notes = Vec::new();
    for line in lines {
        let mut row: Vec<String> =
            shown.iter().map(|axis| (axis.text)(&line.record().case)).collect();
        row.extend(cells(line));
        let other = line.fast.filter(|f| f.status != line.record().status);
        let worst = other.unwrap_or(line.record());
        row.push(status(worst, &mut notes));
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = Sheet::marked(&notes).collect();
    sheet.notes.extend(foot(published, &groups, lines, not_comparable));
    sheet
}

fn backend(side: Option<&(Device, String)>) -> &str {
    side.map_or("", |(_, backend)| backend.as_str())
}

/// Citation, settings, what was inferred, and which device stands for which.
fn preamble(
    experiment: &Experiment,
    published: &Published,
    sides: &Sides,
    case: &Case,
    shown: &[&Axis],
    records: &[Record],
) -> Vec<String> {
    let mut lines = Vec::new();
    if !published.citation.is_empty() {
        lines.push(format!("paper: {}", published.citation));
    }
    let backends = crate::config::sweep::axis("backend").ok();
    let hidden: Vec<&Axis> = shown.iter().copied().chain(backends).collect();
    lines.push(format!("run: {}", common_settings(case, &hidden).join(", ")));
    lines.extend(experiment.inferred.iter().map(|text| format!("inferred: {text}")));
    lines.extend(experiment.notes.iter().map(|text| format!("note: {text}")));
    for (name, side) in [("slow", &sides.slow), ("fast", &sides.fast)] {
        let Some((device, backend)) = side else { continue };
        let own = devices(records)
            .into_iter()
            .find(|line| line.split_once(':').is_some_and(|(name, _)| name == backend));
        let own = own.unwrap_or_else(|| format!("{backend}: not run"));
        lines.push(format!("{name}: in the paper {}; here {own}", device.device));
    }
    lines.push("times: solve, without setup; speedup: slow over fast".into());
    lines
}

fn cells(line: &Line<'_>) -> Vec<String> {
    let solve = |record: Option<&Record>| record.and_then(|r| r.times.solve_s);
    let setup = |record: Option<&Record>| record.and_then(|r| r.times.setup_s);
    let time = |s: Option<f64>| s.map(seconds).unwrap_or_default();
    let ratio = |r: Option<f64>| r.map(|r| significant(r, 3)).unwrap_or_default();
    let paper = line.published;
    vec![
        paper.map(|p| grouped(p.iterations)).unwrap_or_default(),
        iterations(line),
        line.verdict.text(),
        time(paper.and_then(|p| p.slow_s)),
        time(paper.and_then(|p| p.fast_s)),
        ratio(paper.and_then(PublishedRow::speedup)),
        time(solve(line.slow)),
        time(solve(line.fast)),
        ratio(speedup(solve(line.slow), solve(line.fast))),
        time(setup(line.slow)),
        time(setup(line.fast)),
    ]
}

/// Iterations on both backends, once when they agree.
fn iterations(line: &Line<'_>) -> String {
    let count = |record: &Record| record.convergence.iterations;
    match (line.slow.map(count), line.fast.map(count)) {
        (Some(a), Some(b)) if a != b => format!("{}/{}", grouped(a), grouped(b)),
        _ => grouped(count(line.record())),
    }
}

/// Per group of rows: how many agree, the root mean square and the worst deviation.
fn foot(
    published: &Published,
    groups: &[&Axis],
    lines: &[Line<'_>],
    not_comparable: Option<&str>,
) -> Vec<String> {
    if let Some(reason) = not_comparable {
        return vec![format!("no verdict: {reason}")];
    }
    let group = |line: &Line<'_>| -> Vec<String> {
        let words = groups.iter().map(|a| format!("{} {}", a.name, (a.text)(&line.record().case)));
        words.collect()
    };
    let mut seen: Vec<Vec<String>> = Vec::new();
    for line in lines {
        let words = group(line);
        if !seen.contains(&words) {
            seen.push(words);
        }
    }
    let summaries = seen.iter().map(|words| {
        let members: Vec<&Line<'_>> = lines.iter().filter(|l| group(l) == *words).collect();
        let prefix =
            if words.is_empty() { String::new() } else { format!("{}: ", words.join(", ")) };
        prefix + &summary(published, &members)
    });
    let mut notes: Vec<String> = summaries.collect();
    let missing = published
        .rows
        .iter()
        .filter(|row| !lines.iter().any(|line| line.published == Some(row)))
        .count();
    if missing > 0 {
        notes.push(format!("{} not run", plural(missing, "published row")));
    }
    notes
}

fn summary(published: &Published, lines: &[&Line<'_>]) -> String {
    let judged: Vec<(&Line<'_>, f64)> =
        lines.iter().filter_map(|line| Some((*line, line.verdict.deviation()?))).collect();
    let failed = lines.iter().filter(|line| line.verdict == Verdict::Failed).count();
    let ok = judged.iter().filter(|(line, _)| matches!(line.verdict, Verdict::Ok(_))).count();
    let total = judged.len() + failed;
    let mut parts = vec![format!(
        "iterations: {ok} of {} within {} %",
        plural(total, "row"),
        published.tolerance_percent
    )];
    let deviations: Vec<f64> = judged.iter().map(|(_, d)| *d).collect();
    let worst = judged.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    if let (Some(rms), Some((line, deviation))) = (root_mean_square(&deviations), worst) {
        let place: Vec<String> = published
            .keys
            .iter()
            .map(|axis| format!("{} {}", head(axis).text, (axis.text)(&line.record().case)))
            .collect();
        parts.push(format!("rms deviation {rms:.1} %"));
        parts.push(format!("worst {} ({})", percent(*deviation), place.join(", ")));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.join(", ")
}

/// Root mean square; `None` of nothing.
fn root_mean_square(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    (count > 0.0).then(|| (values.iter().map(|v| v * v).sum::<f64>() / count).sqrt())
}

/// The record with the published values of its case and backend.
fn machine_row(
    name: &str,
    published: &Published,
    sides: &Sides,
    record: &Record,
    scaled: bool,
) -> Map<String, Value> {
    let row = published.find(&record.case);
    let runs_on = |side: &Option<(Device, String)>| {
        side.as_ref().is_some_and(|(_, backend)| *backend == record.case.backend)
    };
    let seconds = row.and_then(|row| {
        if runs_on(&sides.slow) {
            row.slow_s
        } else if runs_on(&sides.fast) {
            row.fast_s
        } else {
            None
        }
    });
    let judged = if scaled { None } else { row };
    let verdict = Verdict::of(record, judged, published.tolerance_percent);
    let word = match verdict {
        Verdict::Ok(_) => Some("ok"),
        Verdict::Off(_) => Some("off"),
        Verdict::Failed => Some("failed"),
        Verdict::None => None,
    };
    let mut map = Map::new();
    map.insert("experiment".into(), name.into());
    map.extend(fields(record));
    map.insert("published-iterations".into(), row.map(|r| r.iterations).into());
    map.insert("published-s".into(), seconds.into());
    map.insert("deviation-percent".into(), verdict.deviation().into());
    map.insert("verdict".into(), word.into());
    map
}

#[cfg(test)]
#[path = "published_tests.rs"]
mod tests;
