//! Our kernels against cuSPARSE, system by system: the best of each side for the application of
//! the preconditioner, the factorisation on the device, and both phases that a new matrix of a
//! known pattern costs.

mod ways;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::base::parse::choice_name;
use crate::base::status::Status;
use crate::base::units::{grouped, plural, seconds, significant};
use crate::case::{Case, Trisolve};
use crate::config::sweep::{AXES, Axis};
use crate::record::Record;
use crate::report::batch::key;
use crate::report::cells::{common_settings, devices, head, speedup, varying};
use crate::report::{Head, Report, Sheet};

/// Who competes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ours,
    Library,
}

/// What is compared.
#[derive(Debug)]
struct Metric {
    /// Head of its columns.
    name: &'static str,
    /// Start of the names of its values in rows.
    key: &'static str,
    /// Seconds of a record.
    seconds: fn(&Record) -> Option<f64>,
    /// Whose work these seconds are.
    side: fn(&Record) -> Option<Side>,
}

const METRICS: [Metric; 3] = [
    Metric { name: "solve", key: "apply", seconds: |r| r.traffic.apply_s, side: solver },
    Metric {
        name: "factor",
        key: "numeric-kernel",
        seconds: |r| r.times.numeric_kernel_s,
        side: factoriser,
    },
    Metric { name: "numeric + Krylov", key: "numeric-and-solve", seconds: both, side: pipeline },
];

/// Conversion, numeric phase and solve, where that converged.
fn both(record: &Record) -> Option<f64> {
    let seconds = record.times.to_solution_of_known_pattern()?;
    (record.status == Status::Converged).then_some(seconds)
}

/// Who solves with the triangles: cuSPARSE may do so with our factors too.
fn solver(record: &Record) -> Option<Side> {
    match (&*record.case.backend, record.factor.trisolve_used) {
        ("cusparse", _) => Some(Side::Library),
        ("cuda", Some(by)) if by.is(|about| about.library) => Some(Side::Library),
        ("cuda", _) => Some(Side::Ours),
        _ => None,
    }
}

/// Who factorises.
fn factoriser(record: &Record) -> Option<Side> {
    match &*record.case.backend {
        "cusparse" => Some(Side::Library),
        "cuda" => Some(Side::Ours),
        _ => None,
    }
}

/// Who does all of it; a mixture is nobody's.
fn pipeline(record: &Record) -> Option<Side> {
    factoriser(record).filter(|side| solver(record) == Some(*side))
}

/// Systems that belong together.
const GROUPS: [&str; 3] = ["7-point grids, k = 0", "7-point grids, k > 0", "general"];

/// The records of one system: everything but triangular solves and backend is the same.
struct System<'a> {
    case: Case,
    records: Vec<&'a Record>,
}

impl<'a> System<'a> {
    /// The systems, in the order of their first records.
    fn all(records: &'a [Record]) -> Vec<Self> {
        let mut systems: Vec<Self> = Vec::new();
        let mut places = HashMap::new();
        for record in records {
            let trisolve = Trisolve::AUTO;
            let case = Case { trisolve, backend: String::new(), ..record.case.clone() };
            let at = *places.entry(key(&case)).or_insert_with(|| {
                systems.push(Self { case, records: Vec::new() });
                systems.len() - 1
            });
            systems[at].records.push(record);
        }
        systems
    }

    /// Place in [`GROUPS`]. Of a grid is what a generator in three directions made, in its order.
    fn group(&self) -> usize {
        let name = self.case.matrix.split(':').next().unwrap_or_default();
        let grid = crate::problem::generators::find(name).is_some_and(|g| g.dimensions == 3);
        match (grid && self.case.ordering.is_natural(), self.case.fill) {
            (true, 0) => 0,
            (true, _) => 1,
            (false, _) => 2,
        }
    }

    /// The fastest record of a side, with its seconds.
    fn best(&self, metric: &Metric, side: Side) -> Option<(&'a Record, f64)> {
        let of_side = self.records.iter().filter(|r| (metric.side)(r) == Some(side));
        of_side
            .filter_map(|r| Some((*r, (metric.seconds)(r)?)))
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// Seconds of cuSPARSE over ours.
    fn ratio(&self, metric: &Metric) -> Option<f64> {
        let seconds = |side| self.best(metric, side).map(|(_, s)| s);
        speedup(seconds(Side::Library), seconds(Side::Ours))
    }

    /// Time of cuSPARSE's solves divided by that of the algorithm that `auto` chose.
    fn automatic(&self) -> Option<f64> {
        let [apply, ..] = &METRICS;
        let chosen = self
            .records
            .iter()
            .find(|r| r.case.backend == "cuda" && r.case.trisolve == Trisolve::AUTO)?;
        speedup(self.best(apply, Side::Library).map(|(_, s)| s), (apply.seconds)(chosen))
    }

    /// Its name in notes.
    fn name(&self) -> String {
        let Case { matrix, ordering, block_size, fill, .. } = &self.case;
        let order =
            if ordering.is_natural() { String::new() } else { format!(", order {ordering}") };
        format!("{matrix}{order}, b = {block_size}, k = {fill}")
    }
}

/// Compares our fastest algorithm with cuSPARSE's, for each system of `records`.
///
/// # Errors
/// When a case has two records, or no system has both sides.
pub fn report(records: &[Record]) -> Result<Report> {
    let mut seen = HashSet::new();
    if let Some(twin) = records.iter().find(|r| !seen.insert(format!("{:?}", r.case))) {
        let Case { matrix, backend, .. } = &twin.case;
        return Err(Error::input(format!("two records of one case (`{matrix}` on `{backend}`)"))
            .hint("keep one of them"));
    }
    let systems = System::all(records);
    if !systems.iter().any(|s| METRICS.iter().any(|m| s.ratio(m).is_some())) {
        return Err(Error::input("no system has records of both `cuda` and `cusparse`")
            .hint("`bilu-bench run --backend cuda,cusparse --trisolve all -o FILE` makes them"));
    }
    let cases: Vec<&Case> = systems.iter().map(|s| &s.case).collect();
    let varying = varying(&cases);
    let mut sheet = table(&systems, &varying);
    sheet.preamble = vec![common_settings(&systems[0].case, &varying).join(", ")];
    sheet.preamble.extend(devices(records));
    let rows = systems.iter().map(machine_row).collect();
    let mut sheets = vec![sheet];
    sheets.extend(ways::sheet(&systems, &varying));
    sheets.push(summary(&systems));
    Ok(Report { sheets, rows })
}

/// A row per system.
fn table(systems: &[System<'_>], varying: &[&'static Axis]) -> Sheet {
    let mut sheet = Sheet { title: Some("cuda against cuSPARSE".into()), ..Sheet::default() };
    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    sheet.columns.extend([Head::number("levels L/U"), Head::words("way")]);
    for metric in &METRICS {
        let columns = ["ours", "cuSPARSE", "ratio"].map(|of| format!("{} {of}", metric.name));
        sheet.columns.extend(columns.map(Head::number));
        if metric.key == "apply" {
            sheet.columns.extend(["auto ratio", "% of roof"].map(Head::number));
        }
    }
    for system in systems {
        let mut row: Vec<String> = varying.iter().map(|axis| (axis.text)(&system.case)).collect();
        let ours = system.best(&METRICS[0], Side::Ours).map(|(record, _)| record);
        row.push(ours.map(levels).unwrap_or_default());
        row.push(
            ours.and_then(|r| r.factor.trisolve_used.as_ref())
                .map_or_else(String::new, choice_name),
        );
        for metric in &METRICS {
            for side in [Side::Ours, Side::Library] {
                let best = system.best(metric, side);
                row.push(best.map(|(_, s)| seconds(s)).unwrap_or_default());
            }
            let ratio = |r: Option<f64>| r.map(|r| format!("{r:.2}")).unwrap_or_default();
            row.push(ratio(system.ratio(metric)));
            if metric.key == "apply" {
                row.push(ratio(system.automatic()));
                let share = ours.and_then(|r| r.traffic.percent_of_roof);
                row.push(share.map(|p| significant(p, 3)).unwrap_or_default());
            }
        }
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = vec![
        "ratio: cuSPARSE's time over ours, the fastest algorithm of each; auto ratio: over the algorithm that \
         `--trisolve auto` takes"
            .into(),
        "solve: L and U once; factor: the factorisation on the device; numeric + Krylov: matrix-s, \
         numeric-s and solve-s, transfers included, of cuSPARSE alone against ours alone"
            .into(),
    ];
    sheet
}

fn levels(record: &Record) -> String {
    let f = &record.factor;
    f.levels_lower
        .zip(f.levels_upper)
        .map(|(l, u)| format!("{}/{}", grouped(l), grouped(u)))
        .unwrap_or_default()
}

/// Geometric means and worst systems of the groups, and of all.
fn summary(systems: &[System<'_>]) -> Sheet {
    let mut sheet = Sheet { title: Some("Geometric means".into()), ..Sheet::default() };
    sheet.columns = vec![
        Head::words("systems"),
        Head::words("of"),
        Head::number("ratios"),
        Head::number("geometric mean"),
        Head::number("least"),
        Head::words("at"),
    ];
    let everything = GROUPS.len();
    let algorithms = ways::measured(systems);
    for group in 0..=everything {
        let members = || systems.iter().filter(move |s| group == everything || s.group() == group);
        let mut line = |of: String, ratio: &dyn Fn(&System<'_>) -> Option<f64>| {
            let ratios: Vec<_> = members().filter_map(|s| Some((ratio(s)?, s))).collect();
            let Some((least, at)) = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else {
                return;
            };
            sheet.rows.push(vec![
                GROUPS.get(group).copied().unwrap_or("all").into(),
                of,
                format!("{} of {}", ratios.len(), members().count()),
                format!("{:.2}", geometric_mean(ratios.iter().map(|r| r.0))),
                format!("{least:.2}"),
                at.name(),
            ]);
        };
        for metric in &METRICS {
            line(metric.name.into(), &|s| s.ratio(metric));
        }
        for algorithm in algorithms.iter().filter(|_| algorithms.len() > 1) {
            line(format!("solve, {}", choice_name(algorithm)), &|s| ways::ratio(s, *algorithm));
        }
    }
    // with a fixed number of iterations nothing converges, and no system has this ratio
    let fixed = systems.iter().flat_map(|s| &s.records).any(|r| r.status == Status::Complete);
    let wanted = |m: &Metric| !fixed || systems.iter().any(|s| s.ratio(m).is_some());
    let compared: Vec<&Metric> = METRICS.iter().filter(|m| wanted(m)).collect();
    for system in systems {
        let lacking: Vec<&str> =
            compared.iter().filter(|m| system.ratio(m).is_none()).map(|m| m.name).collect();
        if !lacking.is_empty() {
            sheet.notes.push(format!(
                "{}: no ratio of {}{}",
                system.name(),
                lacking.join(", "),
                failures(system)
            ));
        }
    }
    sheet
}

/// The geometric mean; 1 of nothing.
fn geometric_mean(ratios: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = ratios.len().max(1) as f64;
    (ratios.map(f64::ln).sum::<f64>() / count).exp()
}

/// How the records of a system ended that did not converge: ` (2 records: out-of-memory, ...)`.
fn failures(system: &System<'_>) -> String {
    let mut ends = Vec::new();
    let failed = system.records.iter().filter(|r| !r.status.succeeded());
    let count = failed.clone().count();
    for record in failed {
        let end = format!("{} {}", record.case.backend, record.status.name());
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    if count == 0 {
        return String::new();
    }
    format!(" ({}: {})", plural(count, "record"), ends.join(", "))
}

fn machine_row(system: &System<'_>) -> Map<String, Value> {
    let mut row = Map::new();
    for axis in AXES.iter().filter(|axis| !["trisolve", "backend"].contains(&axis.name)) {
        row.insert(axis.name.into(), (axis.text)(&system.case).into());
    }
    let mut put = |name: String, value: Value| row.insert(name, value);
    put("group".into(), GROUPS[system.group()].into());
    let ours = system.best(&METRICS[0], Side::Ours).map(|(record, _)| record);
    put("n".into(), system.records[0].size.n.into());
    put("levels-lower".into(), ours.and_then(|r| r.factor.levels_lower).into());
    put("levels-upper".into(), ours.and_then(|r| r.factor.levels_upper).into());
    put("rows-per-level".into(), ours.and_then(|r| r.factor.rows_per_level).into());
    let used = ours.and_then(|r| r.factor.trisolve_used.as_ref()).map(choice_name);
    put("trisolve-used".into(), used.into());
    for metric in &METRICS {
        for (side, name) in [(Side::Ours, "cuda"), (Side::Library, "cusparse")] {
            let best = system.best(metric, side).map(|(_, s)| s);
            put(format!("{}-{name}-s", metric.key), best.into());
        }
        put(format!("{}-ratio", metric.key), system.ratio(metric).into());
    }
    put("apply-auto-ratio".into(), system.automatic().into());
    let share = ours.map(|r| &r.traffic);
    put("percent-of-bandwidth".into(), share.and_then(|t| t.percent_of_bandwidth).into());
    put("percent-of-latency".into(), share.and_then(|t| t.percent_of_latency).into());
    put("percent-of-roof".into(), share.and_then(|t| t.percent_of_roof).into());
    row
}

#[cfg(test)]
#[path = "versus_tests.rs"]
mod tests;
