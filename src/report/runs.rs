//! The table of a run: settings that differ between the rows, and what was measured.

use std::collections::HashMap;

use crate::base::units::{grouped, residual};
use crate::case::RunKind;
use crate::config::sweep::{AXES, Axis};
use crate::methods::precond::kept;
use crate::record::table::{Rendered, fields};
use crate::record::{Record, rounds};
use crate::report::batch::key;
use crate::report::build::Columns;
use crate::report::cells::{
    OF_FEW, above, common_settings, count, devices, head_name, hundredths, levels, marks, of_few,
    ratio_of, share, shown, solve, speedup, status, three, time, varying,
};
use crate::report::heading::without_records;
use crate::report::sequences::is_step;
use crate::report::{Report, Sheet, fastest, frontier, products, roofs, sequences, shares};

/// All heads of the tables that have a row for each record.
pub fn heads() -> Vec<String> {
    let settings = AXES.iter().map(|axis| head_name(axis).to_owned());
    let mut notes = Vec::new();
    let measured = measured(false).and(compared(None, &mut notes)).into_heads();
    let products = products::measured().into_heads();
    settings.chain(measured.chain(products).map(|head| head.text)).collect()
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
    sheets.extend(sequences::sheet(&solves));
    let single: Vec<Record> = solves.into_iter().filter(|r| !is_step(r)).collect();
    sheets.extend(frontier::sheets(&single));
    sheets.extend(roofs::sheet(records));
    sheets.extend(shares::sheet(records));
    let of_products = products::sheet(&alone, title);
    sheets.extend(of_products.map(|sheet| Sheet { records: of_alone, ..sheet }));
    Report { sheets, rows: records.iter().map(fields).collect() }
}

/// Says below the last table which case is the fastest.
pub(super) fn conclude(report: &mut Report, records: &[Record]) {
    if let Some(sheet) = report.sheets.last_mut() {
        let single: Vec<Record> = records.iter().filter(|r| !is_step(r)).cloned().collect();
        sheet.notes.extend(fastest::lines(&single));
    }
}

fn sheet(records: &[Record], title: Option<&str>) -> Sheet {
    let Some(first) = records.first() else { return without_records(title) };
    let varying = varying(records.iter().map(|r| &r.case));
    let mut columns = Columns::settings(&varying, |r: &&Record| &r.case);
    if records.iter().any(|r| r.size.n != first.size.n) {
        columns = columns.number("n", |r| grouped(r.size.n));
    }
    let backends = Speedup::of(records);
    let few = backends
        .as_ref()
        .is_some_and(|backends| records.iter().any(|r| of_few([backends.base_of(r), Some(r)])));
    let mut notes = Vec::new();
    let ordered = varying.iter().any(|axis| axis.name == "ordering");
    let columns = columns.and(measured(ordered)).and(compared(backends.as_ref(), &mut notes));
    let mut sheet = Sheet {
        title: title.map(str::to_owned),
        preamble: preamble(records, &varying),
        ..columns.sheet(records)
    };
    sheet.notes = Sheet::marked(&notes).chain(above(records)).chain(marks(records)).collect();
    let known = |r: &&Record| r.traffic.iteration_percent_of_bandwidth.is_some();
    let mut known = records.iter().filter(known).peekable();
    if known.peek().is_some() {
        let what = "% bytes/iter: what an iteration moves at copy bandwidth, in percent of ms/iter";
        let cached = known.any(|r| r.traffic.in_cache(r.traffic.memory_bytes));
        let mark = "; * the last-level cache has room for matrix and factors";
        sheet.notes.push(format!("{what}{}", if cached { mark } else { "" }));
    }
    sheet.notes.extend(backends.map(|speedup| {
        format!("speedup: time on {} over time on the row's backend", speedup.base)
    }));
    sheet.notes.extend(few.then(|| OF_FEW.to_owned()));
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
    std::iter::once(settings.join(", ")).chain(devices(records)).collect()
}

/// The columns of what was measured; where records have several orderings (`ordered`), with what that
/// costs and with the rows of a level.
fn measured<'a, 'r>(ordered: bool) -> Columns<'a, &'r Record> {
    Columns::new()
        .number("step", |r: &&Record| count(r.step))
        .words("setup done", |r| shown(r.setup_done, |done| done.name().to_owned()))
        .number("ordering time", move |r| time(r.times.ordering_s.filter(|_| ordered)))
        .number("levels L/U", |r| match (r.factor.levels_lower, r.factor.levels_upper) {
            (Some(_), Some(_)) => levels(&r.factor),
            (lower, upper) => count(lower.or(upper)),
        })
        .number("rows/level", move |r| three(r.factor.rows_per_level.filter(|_| ordered)))
        .number("factor blocks", |r| count(r.factor.factor_blocks))
        .number("fill", |r| hundredths(r.factor.fill_ratio))
        .number("vectors", |r| count(r.factor.deflation_vectors))
        .number("symbolic", |r| time(r.times.symbolic_s))
        .number("numeric", |r| time(r.times.numeric_s))
        .number("setup", |r| time(r.times.before_solves()))
        .number("solve", |r| solve(r))
        .number("solve/rhs", |r| time(r.times.solve_s_per_rhs))
        .number("total", |r| time(r.times.to_solution(1)))
        .number("10 systems", |r| {
            let seconds = r.times.to_solutions_of_one_pattern(10, kept(&r.case.precond));
            time(seconds.filter(|_| !is_step(r)))
        })
        .number("1000 solves", |r| time(r.times.to_solution(1000).filter(|_| !is_step(r))))
        .number("iterations", |r| {
            let ran = r.times.solve_s.is_some() || r.convergence.iterations > 0;
            count(ran.then_some(r.convergence.iterations))
        })
        .number("reductions/iter", |r| hundredths(r.division.reductions_per_iteration))
        .number("ms/iter", |r| three(r.times.ms_per_iteration))
        .number("% bytes/iter", |r| {
            let t = &r.traffic;
            share(t, t.iteration_percent_of_bandwidth, t.memory_bytes)
        })
        .number("residual", |r| shown(r.convergence.true_residual, residual))
}

/// The columns of speedups and status.
fn compared<'a, 'r>(
    backends: Option<&'a Speedup<'_>>,
    notes: &'a mut Vec<String>,
) -> Columns<'a, &'r Record> {
    let base = move |r: &Record| backends.and_then(|b| b.base_of(r));
    let of = move |r: &Record, seconds: fn(&Record) -> Option<f64>| {
        three(speedup(base(r).and_then(seconds), seconds(r)))
    };
    Columns::new()
        .number("setup speedup", move |r: &&Record| of(r, |r| r.times.before_solves()))
        .number("solve speedup", move |r| ratio_of([base(r), Some(*r)], of(r, |r| r.times.solve_s)))
        .words("status", |r| status(r, notes))
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

    /// What a record is compared with; none of the base itself.
    fn base_of(&self, record: &Record) -> Option<&'a Record> {
        let other = Some(record).filter(|r| r.case.backend != self.base)?;
        self.twins.get(&key(&other.case.on(&self.base))).copied()
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
