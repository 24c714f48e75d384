//! Comparison of preconditioners on one system: iterations against time per iteration, and the number of solves
//! after which a more expensive setup pays off.

use crate::base::units::{grouped, seconds, significant};
use crate::case::{Case, Setting};
use crate::compute::on_gpu;
use crate::methods::precond::Phase;
use crate::methods::{deflation, precond};
use crate::record::Record;
use crate::report::{Head, Sheet};

/// Fewest kinds of preconditioners for a separate table.
const ENOUGH: usize = 3;

/// A table for each system and backend that several preconditioners solved, best first.
pub(super) fn sheets(records: &[Record]) -> Vec<Sheet> {
    let mut groups: Vec<(Of, Vec<&Record>)> = Vec::new();
    for record in records.iter().filter(|r| r.times.solve_s.is_some()) {
        let of = Of::new(&record.case);
        match groups.iter_mut().find(|(other, _)| *other == of) {
            Some((_, group)) => group.push(record),
            None => groups.push((of, vec![record])),
        }
    }
    let kinds = |group: &[&Record]| {
        let mut names: Vec<&str> = group.iter().map(|r| r.case.precond.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    };
    groups.retain(|(_, group)| kinds(group) >= ENOUGH);
    groups.into_iter().map(|(of, group)| sheet(&of, group)).collect()
}

/// The settings that the preconditioners of a table share.
#[derive(PartialEq)]
struct Of {
    matrix: String,
    rhs: String,
    solver: String,
    backend: String,
}

impl Of {
    fn new(case: &Case) -> Self {
        let Case { matrix, rhs, solver, backend, .. } = case.clone();
        Self { matrix, rhs, solver, backend }
    }
}

/// The label of a preconditioner in its table.
fn name(case: &Case) -> String {
    let mut name = case.precond.clone();
    if precond::uses(&name, Setting::Fill) == Some(true) {
        name = format!("{name}, k = {}", case.fill);
    }
    if case.trisolve != crate::case::Trisolve::AUTO {
        name = format!("{name}, {}", crate::base::parse::choice_name(&case.trisolve));
    }
    name
}

/// Time to solution.
fn total(record: &Record) -> f64 {
    record.times.to_solution(1).unwrap_or(f64::INFINITY)
}

fn sheet(of: &Of, mut group: Vec<&Record>) -> Sheet {
    let converged = |r: &Record| r.status.succeeded();
    group.sort_by(|a, b| (!converged(a)).cmp(&!converged(b)).then(total(a).total_cmp(&total(b))));
    let cheapest =
        group.iter().filter(|r| converged(r)).min_by(|a, b| setup(a).total_cmp(&setup(b))).copied();
    let Of { matrix, solver, backend, rhs } = of;
    let mut sheet = Sheet {
        title: Some(format!("Preconditioners of {matrix}, rhs {rhs}: {solver} on {backend}")),
        columns: vec![Head::words("preconditioner"), Head::words("deflation")],
        ..Sheet::default()
    };
    let numbers = [
        "vectors",
        "iterations",
        "ms/iter",
        "application",
        "% of copy",
        "setup",
        "solve",
        "setup/solve",
        "break-even",
    ];
    sheet.columns.extend(numbers.map(Head::number));
    sheet.columns.push(Head::words("most of setup"));
    sheet.columns.push(Head::words("frontier"));
    for record in &group {
        sheet.rows.push(row(record, cheapest, &group));
    }
    sheet.drop_empty_columns();
    if let Some(cheapest) = cheapest {
        let (name, deflation) = (name(&cheapest.case), cheapest.case.deflation);
        let with = match deflation {
            deflation::Choice::None => String::new(),
            some => format!(" with {some}"),
        };
        sheet.notes.push(format!(
            "break-even: solves of one matrix after which setup and solves are cheaper than those of \
             {name}{with}, whose setup is the cheapest"
        ));
    }
    sheet.notes.push("frontier: no other has fewer iterations and less time for each".into());
    sheet
}

fn setup(record: &Record) -> f64 {
    record.times.setup_s.unwrap_or(0.0)
}

fn row(record: &Record, cheapest: Option<&Record>, group: &[&Record]) -> Vec<String> {
    let (times, traffic) = (&record.times, &record.traffic);
    let time = |s: Option<f64>| s.map(seconds).unwrap_or_default();
    let percent = |v: f64| significant(v, 3);
    let solves = times.setup_s.zip(times.solve_s).map(|(setup, solve)| setup / solve);
    let deflation = match record.case.deflation {
        deflation::Choice::None => String::new(),
        some => some.to_string(),
    };
    let iterations = if record.status.succeeded() {
        grouped(record.convergence.iterations)
    } else {
        format!("{} ({})", grouped(record.convergence.iterations), record.status.name())
    };
    vec![
        name(&record.case),
        deflation,
        record.factor.deflation_vectors.map(grouped).unwrap_or_default(),
        iterations,
        times.ms_per_iteration.map(|ms| significant(ms, 3)).unwrap_or_default(),
        time(traffic.apply_s),
        traffic.percent_of_bandwidth.map(percent).unwrap_or_default(),
        time(times.setup_s),
        time(times.solve_s),
        solves.map(|s| significant(s, 3)).unwrap_or_default(),
        break_even(record, cheapest),
        longest_phase(record),
        if on_frontier(record, group) { "yes".into() } else { String::new() },
    ]
}

/// Setups that take longer than this number of solves are explained.
const LONG_SETUP: f64 = 10.0;

/// Work of the setup of deflation, on the host.
const DEFLATION: &str = "sums over A between the vectors and the inverse of their matrix";

/// The dominant phase of the setup and its share; for a long setup also its work.
fn longest_phase(record: &Record) -> String {
    let t = &record.times;
    let phases = [
        ("symbolic", Some(Phase::Symbolic), t.symbolic_s),
        ("analysis", Some(Phase::Analysis), t.analysis_s),
        ("numeric", Some(Phase::Numeric), t.numeric_s),
        ("deflation", None, t.deflation_s),
    ];
    let timed = phases.into_iter().filter_map(|(name, phase, s)| s.map(|s| (name, phase, s)));
    let longest = timed.max_by(|a, b| a.2.total_cmp(&b.2));
    let Some(((name, phase, s), setup)) = longest.zip(t.setup_s.filter(|s| *s > 0.0)) else {
        return String::new();
    };
    let share = format!("{name} {} %", significant(100.0 * s / setup, 2));
    if t.solve_s.is_none_or(|solve| setup <= LONG_SETUP * solve) {
        return share;
    }
    let Case { precond, backend, block_size, .. } = &record.case;
    let (work, by_host) = match phase.map(|phase| precond::work(precond, phase)) {
        Some(Some(work)) => (work.what, work.left_to_host(backend, *block_size)),
        // a record of another version
        Some(None) => return share,
        None => (DEFLATION, on_gpu(backend)),
    };
    let place = if by_host { ", on the host's cores" } else { "" };
    format!("{share}: {work}{place}")
}

/// Number of solves after which `record` is cheaper than the record with the cheapest setup.
fn break_even(record: &Record, cheapest: Option<&Record>) -> String {
    let Some(cheapest) = cheapest.filter(|_| record.status.succeeded()) else {
        return String::new();
    };
    if std::ptr::eq(record, cheapest) {
        return String::new();
    }
    let solve = |r: &Record| r.times.solve_s.unwrap_or(f64::INFINITY);
    let gain = solve(cheapest) - solve(record);
    if gain <= 0.0 {
        return "never".into();
    }
    let solves = (setup(record) - setup(cheapest)) / gain;
    grouped((solves.ceil() as usize).max(1))
}

/// Whether no other record is better in one measure and at least as good in the other.
fn on_frontier(record: &Record, group: &[&Record]) -> bool {
    let of = |r: &Record| Some((r.convergence.iterations, r.times.ms_per_iteration?));
    let Some((iterations, ms)) = of(record).filter(|_| record.status.succeeded()) else {
        return false;
    };
    !group
        .iter()
        .filter(|r| r.status.succeeded())
        .filter_map(|r| of(r))
        .any(|(i, m)| i <= iterations && m <= ms && (i < iterations || m < ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::status::Status;
    use crate::record::samples::record;

    fn of(precond: &str, iterations: usize, setup_s: f64, solve_s: f64) -> Record {
        let case = Case { precond: precond.into(), solver: "cg".into(), ..Case::default() };
        let mut r = record(case, iterations, solve_s);
        r.times.setup_s = Some(setup_s);
        r
    }

    #[test]
    fn preconditioners_stand_in_order_with_their_break_even() {
        let mut diverged = of("spai", 9, 0.0, 0.001);
        diverged.status = Status::Diverged;
        let records = [
            of("jacobi", 100, 0.001, 0.1),
            of("bilu", 30, 0.021, 0.09),
            of("fsai", 50, 0.181, 0.04),
            of("tns", 60, 0.002, 0.12),
            diverged,
        ];
        let sheets = sheets(&records);
        assert_eq!(sheets.len(), 1);
        assert_eq!(longest_phase(&records[1]), "numeric 95 %");
        let mut long = of("mcilu:p=1", 30, 1.1, 0.1);
        (long.times.numeric_s, long.times.symbolic_s) = (Some(0.1), Some(0.99));
        assert_eq!(longest_phase(&long), "symbolic 90 %: colours, order and fill");
        long.case.backend = "cuda".into();
        let text = "symbolic 90 %: colours, order and fill, on the host's cores";
        assert_eq!(longest_phase(&long), text);
        // the device puts A in order, for blocks of one
        (long.times.numeric_s, long.times.symbolic_s) = (Some(0.99), Some(0.1));
        let text = "numeric 90 %: A put in order, then factored";
        assert_eq!(longest_phase(&long), text);
        long.case.block_size = 3;
        assert_eq!(longest_phase(&long), format!("{text}, on the host's cores"));
        long.times.deflation_s = Some(1.0);
        let text =
            "deflation 91 %: sums over A between the vectors and the inverse of their matrix";
        assert_eq!(longest_phase(&long), format!("{text}, on the host's cores"));
        long.times.deflation_s = None;
        (long.times.numeric_s, long.times.symbolic_s) = (Some(0.1), Some(0.99));
        long.times.setup_s = Some(1.0);
        assert_eq!(longest_phase(&long), "symbolic 99 %");
        let mut phases = of("mcilu", 1, 0.2, 0.1);
        (phases.times.symbolic_s, phases.times.numeric_s) = (Some(0.05), Some(0.15));
        assert_eq!(longest_phase(&phases), "numeric 75 %");
        let column = |name: &str| {
            let at = sheets[0].columns.iter().position(|c| c.text == name).expect("a column");
            sheets[0].rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>()
        };
        assert_eq!(column("preconditioner"), ["jacobi", "bilu, k = 0", "tns", "fsai", "spai"]);
        assert_eq!(column("break-even"), ["", "2", "never", "3", ""]);
        // bilu has the fewest iterations, fsai less time for each, jacobi no less than fsai
        assert_eq!(column("frontier"), ["", "yes", "", "yes", ""]);
        assert_eq!(column("iterations")[4], "9 (diverged)");
        assert!(sheets[0].notes[0].ends_with("than those of jacobi, whose setup is the cheapest"));
    }

    #[test]
    fn two_preconditioners_are_no_frontier() {
        assert!(super::sheets(&[of("jacobi", 1, 0.1, 0.1), of("bilu", 1, 0.1, 0.1)]).is_empty());
    }
}
