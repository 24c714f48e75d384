//! What products, preconditioner, inner products and vector updates take of an iteration.

use crate::base::units::significant;
use crate::methods::solver;
use crate::methods::solver::Steps;
use crate::record::Record;
use crate::report::Sheet;
use crate::report::build::Columns;
use crate::report::cells::{shown, time, varying};

/// A step of an iteration: its head, its seconds in a record, and how often an iteration makes it.
type Part = (&'static str, fn(&Record) -> Option<f64>, fn(&Steps) -> usize);

const PARTS: [Part; 4] = [
    ("product", |r| r.traffic.spmv_s, |steps| steps.products),
    ("preconditioner", |r| r.traffic.apply_s, |steps| steps.applications),
    ("inner product", |r| r.traffic.dot_s, |steps| steps.dots),
    ("update", |r| r.traffic.axpy_s, |steps| steps.updates),
];

/// A row per record whose steps were timed apart; `None` when there is none.
pub(crate) fn sheet(records: &[Record]) -> Option<Sheet> {
    let timed = records.iter().filter(|r| r.traffic.dot_s.is_some() && r.traffic.axpy_s.is_some());
    let records: Vec<(&Record, Steps)> =
        timed.filter_map(|r| Some((r, solver::steps(&r.case.solver)?))).collect();
    records.first()?;
    let varying = varying(records.iter().map(|(r, _)| &r.case));
    let percent = |share: f64| significant(100.0 * share, 3);
    let part = |(record, steps): &(&Record, Steps), (_, seconds, count): &Part| {
        seconds(record).unwrap_or(0.0) * count(steps) as f64
    };
    let sum = move |row: &(&Record, Steps)| PARTS.iter().map(|own| part(row, own)).sum::<f64>();
    let mut columns = Columns::settings(&varying, |(r, _): &(&Record, Steps)| &r.case);
    for (name, seconds, _) in PARTS {
        columns = columns.number(name, move |(r, _)| time(seconds(r)));
    }
    for own in PARTS {
        let share = move |row: &_| percent(part(row, &own) / sum(row));
        columns =
            columns.number(format!("% {}", own.0), move |row| shown(own.1(row.0), |_| share(row)));
    }
    let mut sheet = columns
        .number("steps/iteration", move |row| {
            shown(row.0.times.ms_per_iteration, |ms| percent(1e3 * sum(row) / ms))
        })
        .sheet(records);
    sheet.title = Some("Steps of an iteration".into());
    sheet.notes = vec![
        "each step timed apart, back to back; %: its time by its number in an iteration, of the \
         sum; steps/iteration: that sum over the time of an iteration, in percent"
            .into(),
    ];
    Some(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::record::schema::{Times, Traffic};

    #[test]
    fn shares_are_those_of_the_steps_of_an_iteration() {
        let record = Record {
            case: Case { solver: "bicgstab".into(), precond: "none".into(), ..Case::default() },
            times: Times { ms_per_iteration: Some(0.1), ..Times::default() },
            traffic: Traffic {
                spmv_s: Some(20e-6),
                dot_s: Some(2e-6),
                axpy_s: Some(5e-6),
                ..Traffic::default()
            },
            ..Record::default()
        };
        let gmres = Record {
            case: Case { solver: "gmres".into(), ..record.case.clone() },
            ..record.clone()
        };
        let sheet = sheet(&[record, gmres]).unwrap();
        let want = [
            ("product", "20.00 µs"),
            ("inner product", "2.000 µs"),
            ("update", "5.000 µs"),
            ("% product", "50.0"),
            ("% inner product", "12.5"),
            ("% update", "37.5"),
            ("steps/iteration", "80.0"),
        ];
        assert_eq!(sheet.heads(), want.map(|w| w.0));
        assert_eq!(sheet.rows, [want.map(|w| w.1.to_owned()).to_vec()]);
    }

    #[test]
    fn other_runs_have_none() {
        assert_eq!(sheet(&[Record::default()]), None);
    }
}
