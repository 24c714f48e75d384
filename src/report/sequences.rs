//! Totals of sequences: a row for each case, over all of its steps.

use crate::case::{Case, Refactor};
use crate::record::Record;
use crate::record::schema::SetupDone;
use crate::report::Sheet;
use crate::report::batch::key_without;
use crate::report::build::Columns;
use crate::report::cells::{by_key, count, shown, time, varying};

/// Whether a record is of a step.
pub(crate) fn is_step(record: &Record) -> bool {
    !record.case.sequence.is_empty()
}

/// The steps of a case.
type Steps<'a> = Vec<&'a Record>;

/// The steps of each case, in the order of their numbers.
pub(crate) fn runs(records: &[Record]) -> Vec<Steps<'_>> {
    let steps = records.iter().filter(|r| is_step(r));
    let mut runs = by_key(steps, |r| key_without(&r.case, &["matrix"]));
    for (_, steps) in &mut runs {
        steps.sort_by_key(|r| r.step);
    }
    runs.into_iter().map(|(_, steps)| steps).collect()
}

/// The sum of what some steps took; `None` where none has it.
fn sum(steps: &[&Record], of: fn(&Record) -> Option<f64>) -> Option<f64> {
    steps.iter().filter_map(|r| of(r)).reduce(|a, b| a + b)
}

/// Seconds from the first matrix in memory to the last solution.
pub(crate) fn total(steps: &[&Record]) -> Option<f64> {
    sum(steps, |r| r.times.to_solution(1))
}

/// Steps with a preconditioner of their own values.
fn made(steps: &[&Record]) -> usize {
    let own = |r: &&&Record| r.setup_done.is_some_and(|done| done != SetupDone::None);
    steps.iter().filter(own).count()
}

/// The table of totals; `None` without a sequence.
pub(super) fn sheet(records: &[Record]) -> Option<Sheet> {
    let runs = runs(records);
    let cases = runs.iter().map(|steps| &steps[0].case);
    let mut settings = varying(cases);
    settings.retain(|axis| axis.name != "matrix");
    let always = |case: &Case| {
        let key = |case: &Case| key_without(case, &["matrix", "refactor"]);
        let own = |steps: &&Steps| {
            steps[0].case.refactor == Refactor::Always && key(&steps[0].case) == key(case)
        };
        runs.iter().find(own).filter(|_| case.refactor != Refactor::Always)
    };
    let failed = |steps: &Steps| steps.iter().filter(|r| !r.status.succeeded()).count();
    // of runs that have all solutions
    let saved = |steps: &Steps| {
        let other = always(&steps[0].case).filter(|other| other.len() == steps.len())?;
        let complete = failed(steps) == 0 && failed(other) == 0;
        complete.then_some(1.0 - total(steps)? / total(other)?)
    };
    let mut sheet = Columns::settings(&settings, |steps: &&Steps| &steps[0].case)
        .number("steps", |steps| count(Some(steps.len())))
        .number("factorisations", |steps| count(Some(made(steps))))
        .number("ordering time", |steps| time(sum(steps, |r| r.times.ordering_s)))
        .number("matrix time", |steps| time(sum(steps, |r| r.times.matrix_s)))
        .number("symbolic", |steps| time(sum(steps, |r| r.times.symbolic_s)))
        .number("analysis", |steps| time(sum(steps, |r| r.times.analysis_s)))
        .number("numeric", |steps| time(sum(steps, |r| r.times.numeric_s)))
        .number("deflation time", |steps| time(sum(steps, |r| r.times.deflation_s)))
        .number("solve", |steps| time(sum(steps, |r| r.times.solve_s)))
        .number("total", |steps| time(total(steps)))
        .number("saved", |steps| shown(saved(steps), |part| format!("{:.1} %", 100.0 * part)))
        .number("iterations", |steps| {
            count(Some(steps.iter().map(|r| r.convergence.iterations).sum()))
        })
        .number("failed", |steps| count(Some(failed(steps)).filter(|failed| *failed > 0)))
        .sheet(&runs);
    if sheet.rows.is_empty() {
        return None;
    }
    sheet.title = Some("Totals over the steps of a sequence".into());
    if runs.iter().any(|steps| saved(steps).is_some()) {
        sheet.notes.push("saved: of the total of the same case with `--refactor always`".into());
    }
    Some(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::status::Status;
    use crate::record::samples::record;

    /// Three steps, with a preconditioner of their own where `made` says so.
    fn steps(refactor: Refactor, made: [SetupDone; 3], solves: [f64; 3]) -> Vec<Record> {
        let step = |i: usize| {
            let case = Case {
                matrix: format!("d_{i}.mtx"),
                sequence: "d_*.mtx".into(),
                refactor,
                ..Case::default()
            };
            let mut r = record(case, 10 + i, solves[i]);
            (r.step, r.setup_done) = (Some(i + 1), Some(made[i]));
            (r.times.ordering_s, r.times.matrix_s, r.times.deflation_s) = (None, Some(0.5), None);
            let first = |s: f64| (made[i] == SetupDone::All).then_some(s);
            (r.times.symbolic_s, r.times.analysis_s) = (first(2.0), first(1.0));
            r.times.numeric_s = (made[i] != SetupDone::None).then_some(0.25);
            let phases = [r.times.symbolic_s, r.times.analysis_s, r.times.numeric_s];
            r.times.setup_s = Some(phases.into_iter().flatten().sum());
            r
        };
        (0..3).map(step).collect()
    }

    #[test]
    fn totals_are_sums_over_the_steps() {
        use SetupDone::{All, None as Nothing, Numeric};
        let mut records = steps(Refactor::Every(3), [All, Nothing, Nothing], [1.0, 1.0, 1.25]);
        records.extend(steps(Refactor::Always, [All, Numeric, Numeric], [1.0; 3]));
        records.push(record(Case::default(), 9, 1.0));
        // whatever the order of the rows
        records.swap(0, 2);
        let all = sheet(&records).unwrap();
        let column = |head| all.column(head);
        assert_eq!(column("refactor"), ["every:3", "always"]);
        assert_eq!(column("steps"), ["3", "3"]);
        assert_eq!(column("factorisations"), ["1", "3"]);
        assert_eq!(column("matrix time"), ["1.500 s", "1.500 s"]);
        assert_eq!(column("symbolic"), ["2.000 s", "2.000 s"]);
        assert_eq!(column("analysis"), ["1.000 s", "1.000 s"]);
        assert_eq!(column("numeric"), ["250.0 ms", "750.0 ms"]);
        assert_eq!(column("solve"), ["3.250 s", "3.000 s"]);
        // 1.5 + 2 + 1 + 0.25 + 3.25 and 1.5 + 2 + 1 + 0.75 + 3
        assert_eq!(column("total"), ["8.000 s", "8.250 s"]);
        assert_eq!(column("saved"), ["3.0 %", ""]);
        assert_eq!(column("iterations"), ["33", "33"]);
        assert_eq!(all.notes.len(), 1);
        // a run that lacks a solution saves nothing
        records[0].status = Status::NotConverged;
        let failed = sheet(&records).unwrap();
        assert_eq!((failed.column("failed"), failed.notes.len()), (vec!["1", ""], 0));
        assert!(!failed.heads().contains(&"saved"));
        let numbers: Vec<_> = runs(&records)[0].iter().map(|r| r.step).collect();
        assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn without_a_sequence_there_is_none() {
        assert_eq!(sheet(&[record(Case::default(), 9, 1.0)]), None);
    }
}
