//! Times of phases per grid point, compared with published ones.

use crate::base::units::{grouped, percent, significant};
use crate::compute;
use crate::config::phases::{PublishedTask, Show, TASKS, Task, overall_s};
use crate::config::sweep::Axis;
use crate::config::{Experiment, Phases};
use crate::record::Record;
use crate::report::build::Columns;
use crate::report::cells::{above, count, devices, execution, speedup, status, three};
use crate::report::heading::{self, failures, opened, without_records};
use crate::report::{Head, Report, Sheet};

/// The table of `records`. `not_comparable` says why there are no verdicts, when another matrix than
/// the paper's was run.
pub fn report(
    name: &str,
    experiment: &Experiment,
    phases: &Phases,
    records: &[Record],
    not_comparable: Option<&str>,
) -> Report {
    let row = |record| {
        let overall = ("overall-us-per-point".to_owned(), overall(record));
        let of = |(task, name)| (format!("{name}-us-per-point"), per_point(task, record));
        let added = std::iter::once(overall).chain(TASKS.map(of));
        heading::row(name, record, added.map(|(name, us)| (name, us.into())))
    };
    let sheet = sheet(experiment, phases, records, not_comparable);
    Report { sheets: vec![sheet], rows: records.iter().map(row).collect() }
}

/// Microseconds per grid point of a phase.
fn per_point(task: Task, record: &Record) -> Option<f64> {
    task.seconds(record).map(|s| 1e6 * s / record.size.block_rows as f64)
}

/// Microseconds per grid point of the factorisation and all corrections.
fn overall(record: &Record) -> Option<f64> {
    overall_s(record).map(|s| 1e6 * s / record.size.block_rows as f64)
}

fn sheet(
    experiment: &Experiment,
    phases: &Phases,
    records: &[Record],
    not_comparable: Option<&str>,
) -> Sheet {
    let Some((mut sheet, varying)) = opened(experiment, &phases.citation, records) else {
        return without_records(experiment.title.as_deref());
    };
    let slow = phases.slow.iter().map(|(device, backend)| format!("{device} for {backend}"));
    let fast = phases.fast.iter().map(|device| format!("{device} for every GPU"));
    let paper: Vec<String> = slow.chain(fast).collect();
    if !paper.is_empty() {
        sheet.preamble.push(format!("devices of the paper: {}", paper.join(", ")));
    }
    sheet.preamble.extend(devices(records));
    let table = Table { phases, records, varying: &varying, judged: not_comparable.is_none() };
    let mut notes = Vec::new();
    match phases.show {
        Show::Series => table.series(&mut sheet, &mut notes),
        Show::Times => table.times(&mut sheet),
        Show::Work => table.work(&mut sheet),
    }
    if phases.show != Show::Series {
        sheet.notes.extend(failures(records, &varying, &mut notes));
    }
    sheet.drop_empty_columns();
    sheet.notes.extend(Sheet::marked(&notes).chain(above(records)));
    sheet.notes.extend(not_comparable.map(|why| format!("no verdict: {why}")));
    sheet
}

/// What a factorisation and one solve on a GPU are compared with, in microseconds per point: levels of the three
/// phases at the measured CTA-to-CTA latency, and, a lower bound, least memory traffic at copy bandwidth.
fn roofs(record: &Record) -> Option<[f64; 2]> {
    let (t, f) = (&record.traffic, &record.factor);
    let levels = 2 * f.levels_lower? + f.levels_upper?;
    let bytes = t.numeric_bytes? + t.apply_bytes?;
    let latency_us = t.handover_us? * levels as f64;
    let transfer_us = bytes as f64 / (1e3 * t.copy_gbps?);
    Some([latency_us, transfer_us].map(|us| us / record.size.block_rows as f64))
}

/// Input of the three kinds of table.
struct Table<'a> {
    phases: &'a Phases,
    records: &'a [Record],
    varying: &'a [&'static Axis],
    /// Whether speedups have a verdict.
    judged: bool,
}

impl Table<'_> {
    /// The record of the slow backend on the same system.
    fn slow(&self, record: &Record) -> Option<&Record> {
        let (_, backend) = self.phases.slow.as_ref()?;
        let case = record.case.on(backend);
        self.records.iter().find(|r| r.case == case)
    }

    fn is_slow(&self, record: &Record) -> bool {
        self.phases.slow.as_ref().is_some_and(|(_, backend)| *backend == record.case.backend)
    }

    /// Rows of every task and record: `cells(task, published, record)` after both names.
    fn rows(
        &self,
        sheet: &mut Sheet,
        heads: &[&str],
        cells: impl Fn(Task, PublishedTask, &Record) -> Vec<String>,
    ) {
        sheet.columns.extend(["task", "execution"].map(Head::words));
        sheet.columns.extend(heads.iter().map(|text| Head::number(*text)));
        for (task, name) in TASKS {
            let published = self.phases.tasks.get(&task).copied().unwrap_or_default();
            for record in self.records {
                let mut row = vec![name.to_owned(), execution(&record.case, self.varying)];
                row.extend(cells(task, published, record));
                sheet.rows.push(row);
            }
        }
    }

    fn times(&self, sheet: &mut Sheet) {
        let heads = ["µs/point paper", "µs/point here", "speedup paper", "speedup here", "verdict"];
        self.rows(sheet, &heads, |task, published, record| {
            let on_gpu = compute::on_gpu(&record.case.backend);
            let slow_paper = published.slow_us.filter(|_| self.is_slow(record));
            let fast_paper = published.fast_us.filter(|_| on_gpu);
            let wanted = fast_paper.and_then(|fast| Some(published.slow_us? / fast));
            let own = per_point(task, record);
            let base = self.slow(record).filter(|_| !self.is_slow(record));
            let reached = speedup(base.and_then(|base| per_point(task, base)), own);
            let verdict = wanted.zip(reached).filter(|_| self.judged).map(|(wanted, own)| {
                if own >= wanted { "ok".to_owned() } else { percent(100.0 * (own / wanted - 1.0)) }
            });
            vec![
                three(slow_paper.or(fast_paper)),
                three(own),
                three(wanted),
                three(reached),
                verdict.unwrap_or_default(),
            ]
        });
        sheet.notes.push(
            "speedup: over one thread of the CPU; verdict: ok when it reaches the paper's".into(),
        );
    }

    fn work(&self, sheet: &mut Sheet) {
        let heads = [
            "threads/point",
            "FLOP/thread",
            "bytes/thread",
            "bytes/FLOP",
            "ns/thread paper",
            "ns/thread here",
            "GB/s paper",
            "GB/s here",
            "GFLOPS paper",
            "GFLOPS here",
        ];
        self.rows(sheet, &heads, |task, published, record| {
            let work = task.work(record.case.block_size);
            let paper = if compute::on_gpu(&record.case.backend) {
                published
            } else {
                PublishedTask::default()
            };
            let each = |total: usize| total as f64 / work.threads as f64;
            let seconds = per_point(task, record).map(|us| 1e-6 * us);
            let rate = |count: usize| seconds.map(|s| 1e-9 * count as f64 / s);
            vec![
                grouped(work.threads),
                significant(each(work.flop), 3),
                significant(each(work.bytes), 3),
                significant(work.bytes as f64 / work.flop as f64, 3),
                three(paper.ns_per_thread),
                three(seconds.map(|s| 1e9 * s / work.threads as f64)),
                three(paper.gbps),
                three(rate(work.bytes)),
                three(paper.gflops),
                three(rate(work.flop)),
            ]
        });
    }

    fn series(&self, sheet: &mut Sheet, notes: &mut Vec<String>) {
        let mut columns = Columns::settings(self.varying, |r: &&Record| &r.case)
            .number("points", |r| grouped(r.size.block_rows))
            .number("overall µs/point", |r| three(overall(r)));
        for (task, name) in TASKS {
            columns =
                columns.number(format!("{name} µs/point"), move |r| three(per_point(task, r)));
        }
        let table = columns
            .number("levels", |r| count(r.factor.levels_lower.filter(|_| roofs(r).is_some())))
            .number("levels by CTAs µs/point", |r| three(roofs(r).map(|roofs| roofs[0])))
            .number("roof of bytes µs/point", |r| three(roofs(r).map(|roofs| roofs[1])))
            .words("status", |r| status(r, notes))
            .whole(self.records);
        (sheet.columns, sheet.rows) = (table.columns, table.rows);
        sheet.notes.push(
            "overall: the factorisation and all solves and residuals of the corrections".into(),
        );
        if self.records.iter().any(|record| roofs(record).is_some()) {
            sheet.notes.push(
                "roofs of a factorisation and one solve: the levels of the three phases at \
                 CTA-to-CTA latency, the memory traffic at copy bandwidth"
                    .into(),
            );
        }
    }
}

#[cfg(test)]
#[path = "phases_tests.rs"]
mod tests;
