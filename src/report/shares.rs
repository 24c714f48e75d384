//! What products, preconditioner, inner products and vector updates take of an iteration.

use crate::base::units::{seconds, significant};
use crate::case::Case;
use crate::methods::solver;
use crate::methods::solver::Steps;
use crate::record::Record;
use crate::report::cells::{head, varying};
use crate::report::{Head, Sheet};

/// A row per record whose steps were timed apart; `None` when there is none.
pub fn sheet(records: &[Record]) -> Option<Sheet> {
    let records: Vec<(&Record, Steps)> = records
        .iter()
        .filter(|r| r.traffic.dot_s.is_some() && r.traffic.axpy_s.is_some())
        .filter_map(|r| Some((r, solver::steps(&r.case.solver)?)))
        .collect();
    let cases: Vec<&Case> = records.iter().map(|(r, _)| &r.case).collect();
    cases.first()?;
    let varying = varying(&cases);
    let mut sheet = Sheet { title: Some("Steps of an iteration".into()), ..Sheet::default() };
    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    let parts = ["product", "preconditioner", "inner product", "update"];
    sheet.columns.extend(parts.map(Head::number));
    sheet.columns.extend(parts.map(|part| Head::number(format!("% {part}"))));
    sheet.columns.push(Head::number("steps/iteration"));
    for (record, steps) in records {
        let mut row: Vec<String> = varying.iter().map(|axis| (axis.text)(&record.case)).collect();
        row.extend(cells(record, steps));
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = vec![
        "each step timed apart, back to back; %: its time by its number in an iteration, of the \
         sum; steps/iteration: that sum over the time of an iteration, in percent"
            .into(),
    ];
    Some(sheet)
}

fn cells(record: &Record, steps: Steps) -> Vec<String> {
    let t = &record.traffic;
    let each = [t.spmv_s, t.apply_s, t.dot_s, t.axpy_s];
    let counts = [steps.products, steps.applications, steps.dots, steps.updates];
    let parts: Vec<f64> =
        each.iter().zip(counts).map(|(s, count)| s.unwrap_or(0.0) * count as f64).collect();
    let sum: f64 = parts.iter().sum();
    let percent = |part: f64| significant(100.0 * part, 3);
    let times = each.iter().map(|s| s.map(seconds).unwrap_or_default());
    let shares = each.iter().zip(&parts).map(|(s, part)| s.map(|_| percent(part / sum)));
    let iteration = record.times.ms_per_iteration.map(|ms| percent(1e3 * sum / ms));
    times
        .chain(shares.map(Option::unwrap_or_default))
        .chain([iteration.unwrap_or_default()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let heads: Vec<&str> = sheet.columns.iter().map(|h| h.text.as_str()).collect();
        let want = [
            ("product", "20.00 µs"),
            ("inner product", "2.000 µs"),
            ("update", "5.000 µs"),
            ("% product", "50.0"),
            ("% inner product", "12.5"),
            ("% update", "37.5"),
            ("steps/iteration", "80.0"),
        ];
        assert_eq!(heads, want.map(|w| w.0));
        assert_eq!(sheet.rows, [want.map(|w| w.1.to_owned()).to_vec()]);
    }

    #[test]
    fn other_runs_have_none() {
        assert_eq!(sheet(&[Record::default()]), None);
    }
}
