//! Comparison of preconditioners on one system: iterations against time per iteration, and the number of solves
//! after which a more expensive setup pays off.

use itertools::Itertools as _;

use crate::base::parse::choice_name;
use crate::base::units::{grouped, significant};
use crate::case::{Case, Setting, Trisolve};
use crate::compute::on_gpu;
use crate::methods::precond::Phase;
use crate::methods::{deflation, precond};
use crate::record::Record;
use crate::report::Sheet;
use crate::report::build::Columns;
use crate::report::cells::{
    above, apply_share, by_key, count, in_cache, marked, shown, three, time,
};

/// Fewest kinds of preconditioners for a separate table.
const ENOUGH: usize = 3;

/// A table for each system and backend that several preconditioners solved, best first.
pub(super) fn sheets(records: &[Record]) -> Vec<Sheet> {
    let solved = records.iter().filter(|r| r.times.solve_s.is_some());
    let groups =
        by_key(solved, |Record { case: c, .. }| (&c.matrix, &c.rhs, &c.solver, &c.backend));
    let kinds = |group: &[&Record]| group.iter().map(|r| &r.case.precond).unique().count();
    let compared = groups.into_iter().filter(|(_, group)| kinds(group) >= ENOUGH);
    compared.map(|(_, group)| sheet(group)).collect()
}

/// The label of a preconditioner in its table.
fn name(case: &Case) -> String {
    let mut name = case.precond.clone();
    if precond::uses(&name, Setting::Fill) == Some(true) {
        name = format!("{name}, k = {}", case.fill);
    }
    if case.trisolve != Trisolve::AUTO {
        name = format!("{name}, {}", choice_name(&case.trisolve));
    }
    name
}

fn deflated(case: &Case) -> Option<String> {
    (case.deflation != deflation::Choice::None).then(|| case.deflation.to_string())
}

/// Time to solution.
fn total(record: &Record) -> f64 {
    record.times.to_solution(1).unwrap_or(f64::INFINITY)
}

/// The table of records that share system, solver and backend.
fn sheet(mut group: Vec<&Record>) -> Sheet {
    let converged = |r: &Record| r.status.succeeded();
    group.sort_by(|a, b| (!converged(a)).cmp(&!converged(b)).then(total(a).total_cmp(&total(b))));
    let cheapest =
        group.iter().filter(|r| converged(r)).min_by(|a, b| setup(a).total_cmp(&setup(b))).copied();
    let Case { matrix, rhs, solver, backend, .. } = &group[0].case;
    let mut sheet = Columns::new()
        .words("preconditioner", |r: &&Record| name(&r.case))
        .words("deflation", |r| deflated(&r.case).unwrap_or_default())
        .number("vectors", |r| count(r.factor.deflation_vectors))
        .number("iterations", |r| match grouped(r.convergence.iterations) {
            iterations if r.status.succeeded() => marked(r, iterations),
            iterations => format!("{iterations} ({})", r.status.name()),
        })
        .number("ms/iter", |r| three(r.times.ms_per_iteration))
        .number("application", |r| time(r.traffic.apply_s))
        .number("% of copy", |r| apply_share(&r.traffic))
        .number("setup", |r| time(r.times.before_solves()))
        .number("solve", |r| time(r.times.solve_s))
        .number("setup/solve", |r| {
            three(r.times.before_solves().zip(r.times.solve_s).map(|(setup, solve)| setup / solve))
        })
        .number("break-even", |r| break_even(r, cheapest))
        .words("most of setup", |r| longest_phase(r))
        .words("frontier", |r| shown(on_frontier(r, &group).then_some("yes"), str::to_owned))
        .sheet(group.iter().copied());
    sheet.title = Some(format!("Preconditioners of {matrix}, rhs {rhs}: {solver} on {backend}"));
    sheet.notes.extend(cheapest.map(|cheapest| {
        let with = shown(deflated(&cheapest.case), |some| format!(" with {some}"));
        format!(
            "break-even: solves of one matrix after which setup and solves are cheaper than those of \
             {}{with}, whose setup is the cheapest",
            name(&cheapest.case)
        )
    }));
    sheet.notes.extend(above(group.iter().copied()));
    sheet.notes.extend(in_cache(group.iter().copied(), |t| [t.apply_bytes, None]));
    sheet.notes.push("frontier: no other has fewer iterations and less time for each".into());
    sheet
}

fn setup(record: &Record) -> f64 {
    record.times.before_solves().unwrap_or(0.0)
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
    let other = cheapest.filter(|own| record.status.succeeded() && !std::ptr::eq(record, *own));
    let Some(cheapest) = other else { return String::new() };
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
        let mut records = [
            of("jacobi", 100, 0.001, 0.1),
            of("bilu", 30, 0.021, 0.09),
            of("fsai", 50, 0.181, 0.04),
            of("tns", 60, 0.002, 0.12),
            diverged,
        ];
        records[3].convergence.true_residual = Some(2e-6);
        let sheets = sheets(&records);
        assert_eq!(sheets.len(), 1);
        let column = |head| sheets[0].column(head);
        assert_eq!(column("preconditioner"), ["jacobi", "bilu, k = 0", "tns", "fsai", "spai"]);
        assert_eq!(column("break-even"), ["", "2", "never", "3", ""]);
        // bilu has the fewest iterations, fsai less time for each, jacobi no less than fsai
        assert_eq!(column("frontier"), ["", "yes", "", "yes", ""]);
        assert_eq!(column("iterations"), ["100", "30", "60†", "50", "9 (diverged)"]);
        assert!(sheets[0].notes[0].ends_with("than those of jacobi, whose setup is the cheapest"));
    }

    #[test]
    fn the_longest_phase_is_named_and_of_a_long_setup_its_work() {
        assert_eq!(longest_phase(&of("bilu", 30, 0.021, 0.09)), "numeric 95 %");
        let mut phases = of("mcilu", 1, 0.2, 0.1);
        (phases.times.symbolic_s, phases.times.numeric_s) = (Some(0.05), Some(0.15));
        assert_eq!(longest_phase(&phases), "numeric 75 %");
        let long = |backend: &str, block_size, symbolic, deflation| {
            let mut r = of("mcilu:p=1", 30, 1.1, 0.1);
            (r.case.backend, r.case.block_size) = (backend.into(), block_size);
            (r.times.symbolic_s, r.times.deflation_s) = (Some(symbolic), deflation);
            r.times.numeric_s = Some(1.09 - symbolic);
            r
        };
        let text = |r: &Record| longest_phase(r);
        let (host, colours) = (", on the host's cores", "symbolic 90 %: colours, order and fill");
        assert_eq!(text(&long("cpu", 1, 0.99, None)), colours);
        assert_eq!(text(&long("cuda", 1, 0.99, None)), format!("{colours}{host}"));
        // the device puts A in order, for blocks of one
        let order = "numeric 90 %: A put in order, then factored";
        assert_eq!(text(&long("cuda", 1, 0.1, None)), order);
        assert_eq!(text(&long("cuda", 3, 0.1, None)), format!("{order}{host}"));
        let sums =
            "deflation 91 %: sums over A between the vectors and the inverse of their matrix";
        assert_eq!(text(&long("cuda", 3, 0.1, Some(1.0))), format!("{sums}{host}"));
        let mut short = long("cuda", 3, 0.99, None);
        short.times.setup_s = Some(1.0);
        assert_eq!(longest_phase(&short), "symbolic 99 %");
    }

    #[test]
    fn two_preconditioners_are_no_frontier() {
        assert!(super::sheets(&[of("jacobi", 1, 0.1, 0.1), of("bilu", 1, 0.1, 0.1)]).is_empty());
    }
}
