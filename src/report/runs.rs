//! The table of a run: settings that differ between the rows, and what was measured.

use std::collections::HashMap;

use crate::base::units::{grouped, residual, seconds, significant};
use crate::case::{Case, RunKind};
use crate::config::sweep::{AXES, Axis};
use crate::record::table::{Rendered, fields};
use crate::record::{Record, rounds};
use crate::report::batch::key;
use crate::report::cells::{
    common_settings, devices, head, head_name, marks, solve, speedup, status, varying,
};
use crate::report::{Head, Report, Sheet, fastest, frontier, products, roofs, shares};

/// Heads of what was measured, in the order of the table.
const MEASURED: [&str; 14] = [
    "ordering time",
    "levels L/U",
    "rows/level",
    "factor blocks",
    "fill",
    "vectors",
    "symbolic",
    "numeric",
    "setup",
    "solve",
    "total",
    "iterations",
    "ms/iter",
    "residual",
];

/// Heads of speedups.
const SPEEDUPS: [&str; 2] = ["setup speedup", "solve speedup"];

/// All heads of the tables that have a row for each record.
pub fn heads() -> Vec<&'static str> {
    let settings = AXES.iter().map(|axis| head_name(axis));
    settings.chain(MEASURED).chain(SPEEDUPS).chain(products::MEASURED).chain(["status"]).collect()
}

/// The table of `records`, a second one of the triangular solves of a GPU, one of products that were
/// measured alone, and which case is the fastest.
pub fn report(records: &[Record], title: Option<&str>) -> Report {
    let mut report = tables(records, title);
    conclude(&mut report, records);
    report
}

/// [`report`] without its end.
pub(super) fn tables(records: &[Record], title: Option<&str>) -> Report {
    let of_kind = |alone: bool| -> (Vec<usize>, Vec<Record>) {
        let own = |(_, r): &(usize, &Record)| (r.case.kind == RunKind::Spmv) == alone;
        records.iter().enumerate().filter(own).map(|(i, r)| (i, r.clone())).unzip()
    };
    let ((of_alone, alone), (of_solves, solves)) = (of_kind(true), of_kind(false));
    let mut sheets = Vec::new();
    if alone.is_empty() || !solves.is_empty() {
        sheets.push(Sheet { records: of_solves, ..sheet(&solves, title) });
    }
    sheets.extend(frontier::sheets(&solves));
    sheets.extend(roofs::sheet(records));
    sheets.extend(shares::sheet(records));
    let of_products = products::sheet(&alone, title);
    sheets.extend(of_products.map(|sheet| Sheet { records: of_alone, ..sheet }));
    Report { sheets, rows: records.iter().map(fields).collect() }
}

/// Says below the last table which case is the fastest.
pub(super) fn conclude(report: &mut Report, records: &[Record]) {
    if let Some(sheet) = report.sheets.last_mut() {
        sheet.notes.extend(fastest::lines(records));
    }
}

fn sheet(records: &[Record], title: Option<&str>) -> Sheet {
    let mut sheet = Sheet { title: title.map(str::to_owned), ..Sheet::default() };
    if records.is_empty() {
        sheet.preamble.push("no records".into());
        return sheet;
    }
    let cases: Vec<&Case> = records.iter().map(|r| &r.case).collect();
    let varying = varying(&cases);
    let sizes_vary = records.iter().any(|r| r.size.n != records[0].size.n);
    sheet.preamble = preamble(records, &varying);
    let backends = Speedup::of(records);

    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    if sizes_vary {
        sheet.columns.push(Head::number("n"));
    }
    sheet.columns.extend(MEASURED.map(Head::number));
    sheet.columns.extend(SPEEDUPS.map(Head::number));
    sheet.columns.push(Head::words("status"));

    let ordered = varying.iter().any(|axis| axis.name == "ordering");
    let mut notes = Vec::new();
    for record in records {
        let mut row: Vec<String> = varying.iter().map(|axis| (axis.text)(&record.case)).collect();
        if sizes_vary {
            row.push(grouped(record.size.n));
        }
        row.extend(measurements(record, ordered));
        let (setup, solve) = backends.as_ref().map(|s| s.cells(record)).unwrap_or_default();
        row.extend([setup, solve, status(record, &mut notes)]);
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = Sheet::marked(&notes).collect();
    sheet.notes.extend(marks(records));
    if let Some(speedup) = backends {
        sheet
            .notes
            .push(format!("speedup: time on {} over time on the row's backend", speedup.base));
    }
    sheet
}

/// What all rows have in common: settings, sizes, devices.
fn preamble(records: &[Record], varying: &[&Axis]) -> Vec<String> {
    let first = &records[0];
    let mut settings = common_settings(&first.case, varying);
    if first.size.n > 0
        && records.iter().all(|r| r.size.n == first.size.n && r.size.nnz == first.size.nnz)
    {
        let size = format!("n = {}, nnz = {}", grouped(first.size.n), grouped(first.size.nnz));
        settings.insert(usize::from(!varying.iter().any(|a| a.name == "matrix")), size);
    }
    let mut lines = vec![settings.join(", ")];
    lines.extend(devices(records));
    lines
}

/// The cells of what was measured; where records have several orderings (`ordered`), with what that costs
/// and with the rows of a level.
fn measurements(record: &Record, ordered: bool) -> [String; 14] {
    let Record { factor, times, convergence, .. } = record;
    let time = |s: Option<f64>| s.map(seconds).unwrap_or_default();
    let levels = match (factor.levels_lower, factor.levels_upper) {
        (Some(l), Some(u)) => format!("{}/{}", grouped(l), grouped(u)),
        (Some(one), None) | (None, Some(one)) => grouped(one),
        (None, None) => String::new(),
    };
    let ran = times.solve_s.is_some() || convergence.iterations > 0;
    let of_order = |cell: Option<String>| cell.filter(|_| ordered).unwrap_or_default();
    [
        of_order(times.ordering_s.map(seconds)),
        levels,
        of_order(factor.rows_per_level.map(|rows| significant(rows, 3))),
        factor.factor_blocks.map(grouped).unwrap_or_default(),
        factor.fill_ratio.map(|f| format!("{f:.2}")).unwrap_or_default(),
        factor.deflation_vectors.map(grouped).unwrap_or_default(),
        time(times.symbolic_s),
        time(times.numeric_s),
        time(times.setup_s),
        solve(record),
        time(times.to_solution(1)),
        if ran { grouped(convergence.iterations) } else { String::new() },
        times.ms_per_iteration.map(|ms| significant(ms, 3)).unwrap_or_default(),
        convergence.true_residual.map(residual).unwrap_or_default(),
    ]
}

/// Speedups of the other backends over a base one, for cases that are otherwise the same.
struct Speedup<'a> {
    /// Records of the base by their case.
    twins: HashMap<String, &'a Record>,
    base: String,
}

impl<'a> Speedup<'a> {
    /// `None` when there is one backend only. The base is `cpu` when it is there, else the first.
    fn of(records: &'a [Record]) -> Option<Self> {
        let first = &records[0].case.backend;
        if records.iter().all(|r| r.case.backend == *first) {
            return None;
        }
        let cpu = records.iter().any(|r| r.case.backend == "cpu");
        let base = if cpu { "cpu".to_owned() } else { first.clone() };
        let mut twins = HashMap::new();
        for record in records.iter().filter(|r| r.case.backend == base) {
            twins.entry(key(&record.case.on(&base))).or_insert(record);
        }
        Some(Self { twins, base })
    }

    /// Speedup of setup and solve; empty for the base itself and where a time is missing.
    fn cells(&self, record: &Record) -> (String, String) {
        if record.case.backend == self.base {
            return Default::default();
        }
        let Some(base) = self.twins.get(&key(&record.case.on(&self.base))) else {
            return Default::default();
        };
        let text = |base: Option<f64>, own: Option<f64>| {
            speedup(base, own).map(|s| significant(s, 3)).unwrap_or_default()
        };
        (
            text(base.times.setup_s, record.times.setup_s),
            text(base.times.solve_s, record.times.solve_s),
        )
    }
}

impl Rendered for Record {
    fn markdown(records: &[Self]) -> String {
        report(&rounds::aggregated(records), None).markdown()
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
