//! Measured beside published: iterations with a verdict, times and speedups without one, since the
//! machines differ.

mod speed;

use itertools::Itertools as _;
use serde_json::{Map, Value};

use crate::base::status::Status;
use crate::base::units::{grouped, percent, plural};
use crate::case::{Case, Trisolve};
use crate::compute;
use crate::config::published::{Device, PublishedRow};
use crate::config::sweep::{Axis, axis};
use crate::config::{Experiment, Published};
use crate::record::Record;
use crate::report::build::Columns;
use crate::report::cells::{
    OF_FEW, above, by_key, count, devices, named, of_few, settings, speedup, status, three, time,
    varying,
};
use crate::report::heading::{self, heading, without_records};
use crate::report::{Report, Sheet, runs};
use speed::{converged, deviation, solved, speed_summary, times};

/// All heads of the tables of runs and of those beside published numbers.
pub fn heads() -> Vec<String> {
    let beside = counts().into_heads().map(|head| head.text);
    runs::heads().into_iter().chain(beside).collect()
}

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
    /// Deviation of the speedup of the first fast side from the published one, in percent.
    reached: Option<f64>,
    /// That of the time of the second fast side from the time of the first.
    ahead: Option<f64>,
}

impl<'a> Line<'a> {
    /// The record that speaks for the line.
    fn record(&self) -> &'a Record {
        self.slow.or_else(|| self.fast.iter().find_map(|r| *r)).unwrap_or(self.first)
    }

    /// What a fast side is compared with, and its record.
    fn sides(&self, side: usize) -> [Option<&'a Record>; 2] {
        [self.slow, self.fast[side]]
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
    let judged = not_comparable.is_none();
    let row = |record| machine_row(name, published, &sides, records, record, judged);
    Report { sheets: vec![sheet], rows: records.iter().map(row).collect() }
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
        let others = records.iter().map(|r| r.case.backend.as_str());
        let others = others.filter(|name| slow.as_ref().is_none_or(|(_, slow)| slow != name));
        let ran = others.unique().collect_vec();
        let fast = published.fast.iter().flat_map(|device| {
            let named = device.backend.as_str();
            let mut chosen = ran.iter().copied().filter(|name| compute::on_gpu(name)).collect_vec();
            chosen.sort_by_key(|name| *name != named);
            if ran.contains(&named) && !compute::on_gpu(named) {
                chosen = vec![named];
            } else if chosen.is_empty() {
                chosen.push(ran.first().copied().unwrap_or(named));
            }
            chosen.into_iter().map(|name| (device.clone(), name.to_owned()))
        });
        let fast = fast.collect_vec();
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
        let mut line = Line {
            slow: sides.slow_record(records, case),
            fast: sides.fast_names().map(|name| find(records, case, name)).collect(),
            first,
            published: published.find(case),
            verdict: Verdict::None,
            reached: None,
            ahead: None,
        };
        let judged = line.published.filter(|_| !scaled);
        line.verdict = Verdict::of(line.record(), judged, published.tolerance_percent);
        if sides.judged {
            let of_side = |i: usize| converged(line.fast.get(i).copied().flatten());
            let measured = speedup(converged(line.slow), of_side(0));
            line.reached = deviation(measured, judged.and_then(PublishedRow::speedup));
            line.ahead = deviation(of_side(1), of_side(0));
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
    let title = experiment.title.as_deref();
    let Some(first) = lines.first() else { return without_records(title) };
    let varying = varying(lines.iter().map(|line| &line.first.case));
    let in_group = |axis: &Axis| axis.name != "backend" && !published.keys.contains(&axis);
    let groups = varying.into_iter().filter(|axis| in_group(axis)).collect_vec();
    let shown = [&groups[..], &published.keys[..]].concat();
    let mut notes = Vec::new();
    let mut sheet = Columns::settings(&shown, |line: &&Line<'_>| &line.first.case)
        .and(counts())
        .and(times(sides))
        .words("status", |line| {
            let own = line.record();
            let fast = || line.fast.iter().flatten();
            let other = fast().find(|f| f.status != own.status);
            let above = || fast().find(|f| f.above_tolerance().is_some());
            status(other.or_else(above).unwrap_or(&own), &mut notes)
        })
        .sheet(lines);
    sheet.title.clone_from(&experiment.title);
    sheet.preamble = preamble(experiment, published, sides, &first.first.case, &shown, records);
    sheet.notes = Sheet::marked(&notes).chain(above(records)).collect();
    let few = |line: &Line<'_>| (0..line.fast.len()).any(|side| of_few(line.sides(side)));
    sheet.notes.extend(lines.iter().any(few).then(|| OF_FEW.to_owned()));
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
    let hidden = shown.iter().copied().chain(axis("backend").ok()).collect_vec();
    let mut lines = heading(experiment, &published.citation, case, &hidden);
    let slow = sides.slow.iter().map(|side| ("slow", side));
    let fast = sides.fast.iter().map(|side| ("fast", side));
    for (name, (device, backend)) in slow.chain(fast) {
        let mut known = devices(records).into_iter();
        let own = known.find(|line| line.split_once(':').is_some_and(|(name, _)| name == backend));
        let own = own.unwrap_or_else(|| format!("{backend}: not run"));
        lines.push(format!("{name}: in the paper {}; here {own}", device.device));
    }
    lines.push("times: solve, without setup; speedup: slow over fast".into());
    let names = sides.fast_names().filter(|_| sides.judged).collect_vec();
    if let [first, ..] = names[..] {
        lines.push(format!(
            "speedup verdict: ok when the speedup of {first} reaches the paper's, else by how much not"
        ));
    }
    if let [first, second, ..] = names[..] {
        lines.push(format!(
            "{first} against {second}: ok when {first} solves at least as fast, else by how \
             much not"
        ));
    }
    lines
}

/// The columns that every table beside published numbers has between its settings and the times
/// measured here.
fn counts<'a, 'l>() -> Columns<'a, &'l Line<'l>> {
    Columns::new()
        .number("iterations paper", |l: &&Line<'_>| count(l.published.map(|p| p.iterations)))
        .number("iterations here", |l| iterations(l))
        .number("verdict", |l| l.verdict.text())
        .number("slow paper", |l| time(l.published.and_then(|p| p.slow_s)))
        .number("fast paper", |l| time(l.published.and_then(|p| p.fast_s)))
        .number("speedup paper", |l| three(l.published.and_then(PublishedRow::speedup)))
}

/// Iterations on all backends, once when they agree.
fn iterations(line: &Line<'_>) -> String {
    let records = std::iter::once(&line.slow).chain(&line.fast).flatten();
    let counts = records.map(|r| r.convergence.iterations);
    if counts.clone().all_equal() {
        return grouped(line.record().convergence.iterations);
    }
    counts.map(grouped).join("/")
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
    let mut notes: Vec<String> =
        not_comparable.iter().map(|r| format!("no verdict: {r}")).collect();
    for (words, members) in by_key(lines, |line| settings(groups, &line.first.case)) {
        let prefix = if words.is_empty() { words } else { format!("{words}: ") };
        let iterations = not_comparable.is_none().then(|| summary(published, &members));
        let all = iterations.into_iter().chain(speed_summary(published, sides, &members));
        notes.extend(all.map(|text| format!("{prefix}{text}")));
    }
    if not_comparable.is_some() {
        return notes;
    }
    let is_there = |row| lines.iter().any(|line| line.published == Some(row));
    let missing = published.rows.iter().filter(|row| !is_there(*row)).count();
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
    let worst = judged.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    if let Some((line, deviation)) = worst {
        let squares: f64 = judged.iter().map(|(_, d)| d * d).sum();
        parts.push(format!("rms deviation {:.1} %", (squares / judged.len() as f64).sqrt()));
        parts.push(format!("worst {} ({})", percent(*deviation), place(published, line)));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.join(", ")
}

/// `block 2, k 0`: the row of a line.
fn place(published: &Published, line: &Line<'_>) -> String {
    named(&published.keys, &line.first.case)
}

/// The record with the published values of its case and backend.
fn machine_row(
    name: &str,
    published: &Published,
    sides: &Sides,
    records: &[Record],
    record: &Record,
    judged: bool,
) -> Map<String, Value> {
    let row = published.find(&record.case);
    let backend = record.case.backend.as_str();
    let is_slow = sides.slow_name() == backend;
    let is_fast = sides.fast_names().any(|name| name == backend);
    let seconds = row.and_then(|row| if is_slow { row.slow_s } else { row.fast_s });
    let seconds = seconds.filter(|_| is_slow || is_fast);
    let slow = sides.slow_record(records, &record.case).filter(|_| !is_slow);
    let rival = sides.fast_names().nth(1).filter(|_| sides.fast_names().next() == Some(backend));
    let rival = rival.and_then(|name| solved(find(records, &record.case, name)));
    let own = solved(Some(record));
    let verdict = Verdict::of(record, row.filter(|_| judged), published.tolerance_percent);
    let word = match verdict {
        Verdict::Ok(_) => Some("ok"),
        Verdict::Off(_) => Some("off"),
        Verdict::Failed => Some("failed"),
        Verdict::None => None,
    };
    let wanted = row.filter(|_| is_fast).and_then(PublishedRow::speedup);
    let added: [(&str, Value); 7] = [
        ("published-iterations", row.map(|r| r.iterations).into()),
        ("published-s", seconds.into()),
        ("deviation-percent", verdict.deviation().into()),
        ("verdict", word.into()),
        ("published-speedup", wanted.into()),
        ("speedup", speedup(solved(slow), own).into()),
        ("speedup-over-cusparse", speedup(rival, own).into()),
    ];
    heading::row(name, record, added)
}

#[cfg(test)]
#[path = "published_tests.rs"]
mod tests;
