//! Measured beside published: iterations with a verdict, times and speedups without one, since the
//! machines differ.

mod speed;

use serde_json::{Map, Value};

use crate::base::status::Status;
use crate::base::units::{grouped, percent, plural, seconds, significant};
use crate::case::{Case, Trisolve};
use crate::compute;
use crate::config::published::{Device, PublishedRow};
use crate::config::sweep::Axis;
use crate::config::{Experiment, Published};
use crate::record::Record;
use crate::record::table::fields;
use crate::report::cells::{devices, head, speedup, status, varying};
use crate::report::heading::heading;
use crate::report::{Head, Report, Sheet};
use speed::{Reached, converged, solved, speed_summary, time_cells, time_heads};

/// Heads that every table beside published numbers has between its settings and the times measured here.
pub const HEADS: [&str; 6] =
    ["iterations paper", "iterations here", "verdict", "slow paper", "fast paper", "speedup paper"];

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
    /// Verdict on `measured` against `published` iterations.
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

/// One line of the table: the records of a case on the slow and the fast backends.
struct Line<'a> {
    slow: Option<&'a Record>,
    /// One place for each fast side.
    fast: Vec<Option<&'a Record>>,
    /// The record that made the line.
    first: &'a Record,
    published: Option<&'a PublishedRow>,
    verdict: Verdict,
    /// Whether the speedup of the first fast side reaches the published one.
    reached: Option<Reached>,
    /// Whether the first fast side is at least as fast as the second.
    ahead: Option<Reached>,
}

impl<'a> Line<'a> {
    /// The record that speaks for the line.
    fn record(&self) -> &'a Record {
        self.slow.or_else(|| self.fast.iter().find_map(|r| *r)).unwrap_or(self.first)
    }

    /// Speedup of a fast side.
    fn speedup(&self, side: usize) -> Option<f64> {
        speedup(solved(self.slow), solved(self.fast[side]))
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
        .map(|record| {
            machine_row(name, published, &sides, records, record, not_comparable.is_some())
        })
        .collect();
    Report { sheets: vec![sheet], rows }
}

/// The backends that stand for the two devices.
struct Sides {
    slow: Option<(Device, String)>,
    /// Backends in place of the fast device, the one to be judged first.
    fast: Vec<(Device, String)>,
    /// Whether speedups are judged: a paper's GPU is no measure of processor cores.
    judged: bool,
}

impl Sides {
    /// The backends that the experiment names. In place of the fast one stand all GPU backends that
    /// ran, if it is one of them; another one when it did not run.
    fn of(published: &Published, records: &[Record]) -> Self {
        let slow = published.slow.as_ref().map(|d| (d.clone(), d.backend.clone()));
        let mut ran: Vec<&str> = Vec::new();
        for record in records {
            let name = record.case.backend.as_str();
            if slow.as_ref().is_none_or(|(_, slow)| slow != name) && !ran.contains(&name) {
                ran.push(name);
            }
        }
        let fast = published.fast.iter().flat_map(|device| {
            let named = device.backend.as_str();
            let on_gpu = ran.iter().copied().filter(|name| compute::on_gpu(name));
            let mut chosen: Vec<&str> = on_gpu.collect();
            chosen.sort_by_key(|name| *name != named);
            if ran.contains(&named) && !compute::on_gpu(named) {
                chosen = vec![named];
            } else if chosen.is_empty() {
                chosen.push(ran.first().copied().unwrap_or(named));
            }
            chosen.into_iter().map(|name| (device.clone(), name.to_owned()))
        });
        let fast: Vec<_> = fast.collect();
        let judged = fast
            .first()
            .is_some_and(|(_, name)| compute::on_gpu(name) && ran.contains(&name.as_str()));
        Self { slow, fast, judged }
    }

    fn slow_name(&self) -> &str {
        self.slow.as_ref().map_or("", |(_, backend)| backend)
    }

    /// Names of the fast backends.
    fn fast_names(&self) -> impl Iterator<Item = &str> {
        self.fast.iter().map(|(_, backend)| backend.as_str())
    }

    /// The record of `case` on the slow backend.
    fn slow_record<'a>(&self, records: &'a [Record], case: &Case) -> Option<&'a Record> {
        let (_, backend) = self.slow.as_ref()?;
        find(records, case, backend)
    }
}

/// The record of `case` on `backend`.
fn find<'a>(records: &'a [Record], case: &Case, backend: &str) -> Option<&'a Record> {
    let case = case.on(backend);
    records.iter().find(|r| r.case.backend == backend && r.case.on(backend) == case)
}

/// One record for each line: what differs only in the backend shares a line. Where a backend has
/// several algorithms of triangular solves, each has a line.
fn line_records(records: &[Record]) -> Vec<&Record> {
    let mut firsts: Vec<&Record> = Vec::new();
    for record in records {
        let case = &record.case;
        let of_line = case.on(&case.backend);
        let twin = |other: &Record| other.case.on(&case.backend) == of_line;
        let covered = match case.trisolve {
            // by any line, and any case of a GPU that is to come
            Trisolve::AUTO => {
                firsts.iter().any(|r| twin(r))
                    || records.iter().any(|r| r.case.trisolve != Trisolve::AUTO && twin(r))
            }
            _ => firsts.iter().any(|r| r.case.trisolve == case.trisolve && twin(r)),
        };
        if !covered {
            firsts.push(record);
        }
    }
    firsts
}

fn lines<'a>(
    published: &'a Published,
    sides: &Sides,
    records: &'a [Record],
    scaled: bool,
) -> Vec<Line<'a>> {
    let of = |first: &'a Record| {
        let case = &first.case;
        let slow = sides.slow_record(records, case);
        let fast: Vec<_> = sides.fast_names().map(|name| find(records, case, name)).collect();
        let row = published.find(case);
        let judged = if scaled { None } else { row };
        let mut line = Line {
            slow,
            fast,
            first,
            published: row,
            verdict: Verdict::None,
            reached: None,
            ahead: None,
        };
        line.verdict = Verdict::of(line.record(), judged, published.tolerance_percent);
        if sides.judged {
            let of_side = |i: usize| converged(line.fast.get(i).copied().flatten());
            let measured = speedup(converged(line.slow), of_side(0));
            line.reached = Reached::of(measured, judged.and_then(PublishedRow::speedup));
            line.ahead = Reached::of(of_side(1), of_side(0));
        }
        line
    };
    line_records(records).into_iter().map(of).collect()
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
    let cases: Vec<&Case> = lines.iter().map(|line| &line.first.case).collect();
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
    sheet.columns.extend(HEADS.map(Head::number));
    sheet.columns.extend(time_heads(sides).into_iter().map(Head::number));
    sheet.columns.push(Head::words("status"));

    let mut notes = Vec::new();
    for line in lines {
        let mut row: Vec<String> = shown.iter().map(|axis| (axis.text)(&line.first.case)).collect();
        row.extend(cells(line));
        let own = line.record();
        let other = line.fast.iter().flatten().find(|f| f.status != own.status);
        row.push(status(other.unwrap_or(&own), &mut notes));
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = Sheet::marked(&notes).collect();
    sheet.notes.extend(foot(published, sides, &groups, lines, not_comparable));
    sheet
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
    let backends = crate::config::sweep::axis("backend").ok();
    let hidden: Vec<&Axis> = shown.iter().copied().chain(backends).collect();
    let mut lines = heading(experiment, &published.citation, case, &hidden);
    let slow = sides.slow.iter().map(|side| ("slow", side));
    let fast = sides.fast.iter().map(|side| ("fast", side));
    for (name, (device, backend)) in slow.chain(fast) {
        let own = devices(records)
            .into_iter()
            .find(|line| line.split_once(':').is_some_and(|(name, _)| name == backend));
        let own = own.unwrap_or_else(|| format!("{backend}: not run"));
        lines.push(format!("{name}: in the paper {}; here {own}", device.device));
    }
    lines.push("times: solve, without setup; speedup: slow over fast".into());
    if sides.judged {
        let names: Vec<&str> = sides.fast_names().collect();
        lines.push(format!(
            "speedup verdict: ok when the speedup of {} reaches the paper's, else by how much not",
            names[0]
        ));
        if let [first, second, ..] = names[..] {
            lines.push(format!(
                "{first} against {second}: ok when {first} solves at least as fast, else by how \
                 much not"
            ));
        }
    }
    lines
}

fn cells(line: &Line<'_>) -> Vec<String> {
    let time = |s: Option<f64>| s.map(seconds).unwrap_or_default();
    let paper = line.published;
    let mut cells = vec![
        paper.map(|p| grouped(p.iterations)).unwrap_or_default(),
        iterations(line),
        line.verdict.text(),
        time(paper.and_then(|p| p.slow_s)),
        time(paper.and_then(|p| p.fast_s)),
        paper
            .and_then(PublishedRow::speedup)
            .map(|ratio| significant(ratio, 3))
            .unwrap_or_default(),
    ];
    cells.extend(time_cells(line));
    cells
}

/// Iterations on all backends, once when they agree.
fn iterations(line: &Line<'_>) -> String {
    let records = std::iter::once(&line.slow).chain(&line.fast).flatten();
    let counts: Vec<usize> = records.map(|r| r.convergence.iterations).collect();
    match counts.first() {
        Some(first) if counts.iter().any(|count| count != first) => {
            counts.into_iter().map(grouped).collect::<Vec<_>>().join("/")
        }
        _ => grouped(line.record().convergence.iterations),
    }
}

/// Per group of rows: how many agree, the root mean square and the worst deviation; how many reach
/// the speedup that is wanted.
fn foot(
    published: &Published,
    sides: &Sides,
    groups: &[&Axis],
    lines: &[Line<'_>],
    not_comparable: Option<&str>,
) -> Vec<String> {
    let group = |line: &Line<'_>| -> Vec<String> {
        let words = groups.iter().map(|a| format!("{} {}", a.name, (a.text)(&line.first.case)));
        words.collect()
    };
    let mut seen: Vec<Vec<String>> = Vec::new();
    for line in lines {
        let words = group(line);
        if !seen.contains(&words) {
            seen.push(words);
        }
    }
    let mut notes: Vec<String> =
        not_comparable.iter().map(|r| format!("no verdict: {r}")).collect();
    for words in &seen {
        let members: Vec<&Line<'_>> = lines.iter().filter(|l| group(l) == *words).collect();
        let prefix =
            if words.is_empty() { String::new() } else { format!("{}: ", words.join(", ")) };
        let iterations = not_comparable.is_none().then(|| summary(published, &members));
        let all = iterations.into_iter().chain(speed_summary(published, sides, &members));
        notes.extend(all.map(|text| format!("{prefix}{text}")));
    }
    if not_comparable.is_some() {
        return notes;
    }
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
        parts.push(format!("rms deviation {rms:.1} %"));
        parts.push(format!("worst {} ({})", percent(*deviation), place(published, line)));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.join(", ")
}

/// `block 2, k 0`: the row of a line.
fn place(published: &Published, line: &Line<'_>) -> String {
    let case = &line.first.case;
    let words =
        published.keys.iter().map(|axis| format!("{} {}", head(axis).text, (axis.text)(case)));
    words.collect::<Vec<_>>().join(", ")
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
    records: &[Record],
    record: &Record,
    scaled: bool,
) -> Map<String, Value> {
    let row = published.find(&record.case);
    let backend = record.case.backend.as_str();
    let is_slow = sides.slow_name() == backend;
    let is_fast = sides.fast_names().any(|name| name == backend);
    let seconds = row.and_then(|row| if is_slow { row.slow_s } else { row.fast_s });
    let seconds = seconds.filter(|_| is_slow || is_fast);
    let slow = sides.slow_record(records, &record.case);
    let own_speedup = if is_slow { None } else { speedup(solved(slow), solved(Some(record))) };
    let rival = sides.fast_names().nth(1).filter(|_| sides.fast_names().next() == Some(backend));
    let rival = rival.and_then(|name| solved(find(records, &record.case, name)));
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
    let wanted = row.filter(|_| is_fast).and_then(PublishedRow::speedup);
    map.insert("published-speedup".into(), wanted.into());
    map.insert("speedup".into(), own_speedup.into());
    map.insert("speedup-over-cusparse".into(), speedup(rival, solved(Some(record))).into());
    map
}

#[cfg(test)]
#[path = "published_tests.rs"]
mod tests;
