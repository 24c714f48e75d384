use super::*;
use crate::case::{Case, FgbiluStyle};
use crate::config::library::experiment;
use crate::record::samples::record;
use crate::report::ReportFormat;

fn case() -> Case {
    experiment("luo/table1").cases().unwrap().0.remove(0)
}

fn reported(records: &[Record], not_comparable: Option<&str>) -> Report {
    let experiment = experiment("luo/table1");
    let history = experiment.history.clone().unwrap();
    report("luo/table1", &experiment, &history, records, not_comparable)
}

/// A record whose sums of squares fall by a factor of 10 from 100, with `error` in correction 4.
fn falling(case: &Case, backend: &str, error: f64) -> Record {
    let mut r = record(case.on(backend), 20, 1.0);
    r.environment.device = format!("device of {backend}");
    let squares = (0..=20).map(|l| {
        let exact = 10.0_f64.powi(3 - l);
        if l == 5 { exact * (1.0 + error) } else { exact }
    });
    r.convergence.residual_history = squares.map(f64::sqrt).collect();
    r
}

fn rendered(error: f64, not_comparable: Option<&str>) -> (String, Report) {
    let styled = Case { fgbilu_style: FgbiluStyle::Cl, ..case() };
    let records = [falling(&case(), "cpu", 0.0), falling(&styled, "cuda", error)];
    let report = reported(&records, not_comparable);
    (ReportFormat::Table.render(&report).unwrap(), report)
}

#[test]
fn histories_stand_beside_the_published_ones() {
    let (text, report) = rendered(1e-11, None);
    insta::assert_snapshot!(text);
    assert_eq!(report.rows[0]["digits-of-history"], 16.0);
    let digits = report.rows[1]["digits-of-history"].as_f64().unwrap();
    assert!((digits - 11.0).abs() < 1e-3, "{digits}");
}

#[test]
fn histories_that_differ_are_told() {
    let (text, _) = rendered(1e-7, Some("the grid is a, the paper's is b"));
    assert!(
        text.contains("\ncuda cl equals cpu to 7.0 digits up to correction 10; 10 wanted: not\n"),
        "{text}"
    );
    assert!(
        text.ends_with("\nnot comparable with the paper: the grid is a, the paper's is b\n"),
        "{text}"
    );
}

#[test]
fn a_history_that_is_too_short_is_not_judged() {
    let mut short = falling(&case(), "cpu-mt", 0.0);
    short.convergence.residual_history.truncate(11);
    let report = reported(&[falling(&case(), "cpu", 0.0), short], None);
    assert!(report.rows[1]["digits-of-history"].is_null());
    assert!(report.sheets[0].notes.iter().all(|note| !note.contains("equals")));
}
