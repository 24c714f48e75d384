//! Our kernels against cuSPARSE, system by system: the best of each side for the application of
//! the preconditioner, the factorisation on the device, and both phases that a new matrix of a
//! known pattern costs.

mod algorithms;

use itertools::Itertools as _;
use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::base::parse::choice_name;
use crate::base::status::Status;
use crate::base::units::plural;
use crate::case::{Case, Trisolve};
use crate::config::sweep::AXES;
use crate::methods::precond::kept;
use crate::record::Record;
use crate::report::batch::key;
use crate::report::build::Columns;
use crate::report::cells::{
    above, apply_share, by_key, common_settings, devices, geometric_mean, hundredths, in_cache,
    levels, marked, shown, speedup, time, varying,
};
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
    /// Whether a solution to the tolerance is a part of it.
    solution: bool,
}

const METRICS: [Metric; 4] = [
    Metric {
        name: "solve",
        key: "apply",
        seconds: |r| r.traffic.apply_s,
        side: solver,
        solution: false,
    },
    Metric {
        name: "factor",
        key: "numeric-kernel",
        seconds: |r| r.times.numeric_kernel_s,
        side: factoriser,
        solution: false,
    },
    Metric {
        name: "numeric + Krylov",
        key: "numeric-and-solve",
        seconds: both,
        side: pipeline,
        solution: true,
    },
    Metric { name: "total", key: "total", seconds: total, side: pipeline, solution: true },
];

/// Conversion, numeric phase and solve, where that converged.
fn both(record: &Record) -> Option<f64> {
    let seconds = record.times.to_solution_of_known_pattern(kept(&record.case.precond))?;
    (record.status == Status::Converged).then_some(seconds)
}

/// Everything from the matrix in memory to its solution, where the solve converged.
fn total(record: &Record) -> Option<f64> {
    let seconds = record.times.to_solution(1)?;
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
        let of_system = |r: &Record| Case {
            trisolve: Trisolve::AUTO,
            backend: String::new(),
            ..r.case.clone()
        };
        let groups = by_key(records, |r| key(&of_system(r)));
        let system = |records: Vec<&'a Record>| Self { case: of_system(records[0]), records };
        groups.into_iter().map(|(_, records)| system(records)).collect()
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

    /// Seconds of the fastest record of a side.
    fn seconds(&self, metric: &Metric, side: Side) -> Option<f64> {
        self.best(metric, side).map(|(_, seconds)| seconds)
    }

    /// The cell of [`Self::seconds`], marked where they are those of a solve to less than the tolerance.
    fn cell(&self, metric: &Metric, side: Side) -> String {
        shown(self.best(metric, side), |(record, seconds)| {
            let cell = time(Some(seconds));
            if metric.solution { marked(record, cell) } else { cell }
        })
    }

    /// The fastest record of our solves.
    fn ours(&self) -> Option<&'a Record> {
        self.best(&METRICS[0], Side::Ours).map(|(record, _)| record)
    }

    /// The algorithm of [`Self::ours`].
    fn algorithm(&self) -> Option<String> {
        self.ours()?.factor.trisolve_used.as_ref().map(choice_name)
    }

    /// Seconds of cuSPARSE over ours.
    fn ratio(&self, metric: &Metric) -> Option<f64> {
        speedup(self.seconds(metric, Side::Library), self.seconds(metric, Side::Ours))
    }

    /// Time of cuSPARSE's solves divided by that of the algorithm that `auto` chose.
    fn automatic(&self) -> Option<f64> {
        let auto = |r: &&&Record| r.case.backend == "cuda" && r.case.trisolve == Trisolve::AUTO;
        let chosen = self.records.iter().find(auto)?;
        speedup(self.seconds(&METRICS[0], Side::Library), (METRICS[0].seconds)(chosen))
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
    if let Some(twin) = records.iter().duplicates_by(|r| format!("{:?}", r.case)).next() {
        let Case { matrix, backend, .. } = &twin.case;
        return Err(Error::input(format!("two records of one case (`{matrix}` on `{backend}`)"))
            .hint("keep one of them"));
    }
    let systems = System::all(records);
    if !systems.iter().any(|s| METRICS.iter().any(|m| s.ratio(m).is_some())) {
        return Err(Error::input("no system has records of both `cuda` and `cusparse`")
            .hint("`bilu-bench run --backend cuda,cusparse --trisolve all -o FILE` makes them"));
    }
    let varying = varying(systems.iter().map(|s| &s.case));
    let columns = || Columns::settings(&varying, |s: &&System<'_>| &s.case);
    let settings = common_settings(&systems[0].case, &varying).join(", ");
    let mut table = table(&systems, columns());
    table.preamble = std::iter::once(settings).chain(devices(records)).collect();
    let mut sheets = vec![table];
    sheets.extend(algorithms::sheet(&systems, columns()));
    sheets.push(summary(&systems));
    Ok(Report { sheets, rows: systems.iter().map(machine_row).collect() })
}

/// A row per system, behind its settings.
fn table<'a>(systems: &'a [System<'a>], settings: Columns<'a, &'a System<'a>>) -> Sheet {
    let mut columns = settings
        .number("levels L/U", |s| shown(s.ours(), |r| levels(&r.factor)))
        .words("variant", |s| s.algorithm().unwrap_or_default());
    for metric in &METRICS {
        columns = columns
            .number(format!("{} ours", metric.name), |s| s.cell(metric, Side::Ours))
            .number(format!("{} cuSPARSE", metric.name), |s| s.cell(metric, Side::Library))
            .number(format!("{} ratio", metric.name), |s| hundredths(s.ratio(metric)));
        if metric.key == "apply" {
            columns = columns
                .number("auto ratio", |s| hundredths(s.automatic()))
                .number("% bytes", |s| shown(s.ours(), |r| apply_share(&r.traffic)));
        }
    }
    let mut sheet = columns.sheet(systems);
    sheet.title = Some("cuda against cuSPARSE".into());
    sheet.notes = vec![
        "ratio: cuSPARSE's time over ours, the fastest algorithm of each; auto ratio: over the algorithm that \
         `--trisolve auto` takes"
            .into(),
        "solve: L and U once; factor: the factorisation on the device; numeric + Krylov: matrix-s, \
         numeric-s and solve-s, transfers included, of cuSPARSE alone against ours alone; total: the same \
         with ordering, symbolic phase and analysis"
            .into(),
    ];
    let solutions = METRICS.iter().filter(|m| m.solution);
    let sides = solutions.cartesian_product([Side::Ours, Side::Library]);
    let best = systems.iter().cartesian_product(sides).filter_map(|(s, (m, side))| s.best(m, side));
    sheet.notes.extend(above(best.map(|(record, _)| record)));
    let ours = systems.iter().filter_map(System::ours);
    sheet.notes.extend(in_cache(ours, |t| [t.apply_bytes, None]));
    sheet
}

/// The geometric mean of a ratio over those of `members` that have one, and the worst system.
fn mean(
    group: &str,
    of: String,
    members: &[&System<'_>],
    ratio: impl Fn(&System<'_>) -> Option<f64>,
) -> Option<Vec<String>> {
    let ratios = members.iter().filter_map(|s| Some((ratio(s)?, s))).collect_vec();
    let (least, at) = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let mean = geometric_mean(&ratios.iter().map(|r| r.0).collect_vec());
    let count = format!("{} of {}", ratios.len(), members.len());
    Some(vec![group.into(), of, count, hundredths(mean), hundredths(Some(*least)), at.name()])
}

/// Geometric means and worst systems of the groups, and of all.
fn summary(systems: &[System<'_>]) -> Sheet {
    let mut sheet = Sheet { title: Some("Geometric means".into()), ..Sheet::default() };
    sheet.columns.extend(["systems", "of"].map(Head::words));
    sheet.columns.extend(["ratios", "geometric mean", "least"].map(Head::number));
    sheet.columns.push(Head::words("at"));
    let measured = algorithms::measured(systems);
    for (place, group) in GROUPS.into_iter().chain(["all"]).enumerate() {
        let own = |s: &&System<'_>| place == GROUPS.len() || s.group() == place;
        let members = systems.iter().filter(own).collect_vec();
        let of_metric = |m: &Metric| mean(group, m.name.into(), &members, |s| s.ratio(m));
        sheet.rows.extend(METRICS.iter().filter_map(of_metric));
        let of_algorithm = |algorithm: &Trisolve| {
            let name = format!("solve, {}", choice_name(algorithm));
            mean(group, name, &members, |s| algorithms::ratio(s, *algorithm))
        };
        let several = measured.iter().filter(|_| measured.len() > 1);
        sheet.rows.extend(several.filter_map(of_algorithm));
    }
    // with a fixed number of iterations nothing converges, and no system has this ratio
    let fixed = systems.iter().flat_map(|s| &s.records).any(|r| r.status == Status::Complete);
    let wanted = |m: &&Metric| !fixed || systems.iter().any(|s| s.ratio(m).is_some());
    let compared = METRICS.iter().filter(wanted).collect_vec();
    sheet.notes.extend(systems.iter().filter_map(|system| {
        let lacking = compared.iter().filter(|m| system.ratio(m).is_none()).map(|m| m.name);
        let lacking = Some(lacking.collect_vec()).filter(|names| !names.is_empty())?.join(", ");
        Some(format!("{}: no ratio of {lacking}{}", system.name(), failures(system)))
    }));
    sheet
}

/// How the records of a system ended that did not converge: ` (2 records: out-of-memory, ...)`.
fn failures(system: &System<'_>) -> String {
    let failed = system.records.iter().filter(|r| !r.status.succeeded()).collect_vec();
    let end = |r: &&&Record| format!("{} {}", r.case.backend, r.status.name());
    let ends = failed.iter().map(end).unique().join(", ");
    if failed.is_empty() { ends } else { format!(" ({}: {ends})", plural(failed.len(), "record")) }
}

fn machine_row(system: &System<'_>) -> Map<String, Value> {
    let settings = AXES.iter().filter(|axis| !["trisolve", "backend"].contains(&axis.name));
    let mut row: Map<String, Value> =
        settings.map(|axis| (axis.name.into(), (axis.text)(&system.case).into())).collect();
    let mut put = |name: String, value: Value| row.insert(name, value);
    let ours = system.ours();
    put("group".into(), GROUPS[system.group()].into());
    put("n".into(), system.records[0].size.n.into());
    put("levels-lower".into(), ours.and_then(|r| r.factor.levels_lower).into());
    put("levels-upper".into(), ours.and_then(|r| r.factor.levels_upper).into());
    put("rows-per-level".into(), ours.and_then(|r| r.factor.rows_per_level).into());
    put("trisolve-used".into(), system.algorithm().into());
    for metric in &METRICS {
        for (side, name) in [(Side::Ours, "cuda"), (Side::Library, "cusparse")] {
            put(format!("{}-{name}-s", metric.key), system.seconds(metric, side).into());
        }
        put(format!("{}-ratio", metric.key), system.ratio(metric).into());
    }
    put("apply-auto-ratio".into(), system.automatic().into());
    let share = ours.and_then(|r| r.traffic.percent_of_bandwidth);
    put("percent-of-bandwidth".into(), share.into());
    row
}

#[cfg(test)]
#[path = "versus_tests.rs"]
mod tests;
