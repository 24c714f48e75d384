use super::*;
use crate::case::{Case, FgbiluStyle};
use crate::config::library::experiment;
use crate::record::samples::record;
use crate::report::ReportFormat;

/// A record of 1000 points with times of `us` microseconds per point for each task.
fn timed(case: Case, us: [f64; 3]) -> Record {
    let mut r = record(case, 4, 4e-3);
    r.status = crate::base::status::Status::Complete;
    r.size.block_rows = 1000;
    r.environment.device = "some device".into();
    r.times.numeric_kernel_s = Some(1e-3 * us[0]);
    r.traffic.apply_s = Some(1e-3 * us[1]);
    r.traffic.residual_s = Some(1e-3 * us[2]);
    r
}

fn rendered(name: &str, not_comparable: Option<&str>) -> (String, Report) {
    let experiment = experiment(name);
    let case = experiment.cases().unwrap().0.remove(0);
    let styled = |style| Case { fgbilu_style: style, ..case.clone() }.on("cuda");
    let records = [
        timed(case.on("cpu"), [3.48, 0.84, 0.51]),
        timed(case.on("cpu-mt"), [1.0, 0.5, 0.3]),
        // 58, 14 and 8 times as fast: the paper's are 28.5, 13.9 and 15.7
        timed(styled(FgbiluStyle::Cl), [0.06, 0.06, 0.06375]),
    ];
    let phases = experiment.phases.clone().unwrap();
    let report = report(name, &experiment, &phases, &records, not_comparable);
    (ReportFormat::Table.render(&report).unwrap(), report)
}

#[test]
fn times_have_speedups_and_verdicts() {
    let (text, report) = rendered("luo/table3", None);
    insta::assert_snapshot!(text);
    assert_eq!(report.rows[2]["factorisation-us-per-point"], 0.06);
    let overall = report.rows[0]["overall-us-per-point"].as_f64().unwrap();
    assert!((overall - 7.48).abs() < 1e-12, "{overall}");
}

#[test]
fn work_is_counted_as_published() {
    let (text, _) = rendered("luo/table4", None);
    insta::assert_snapshot!(text);
}

#[test]
fn series_have_a_row_per_run() {
    let (text, report) = rendered("luo/figure9", Some("the grid is a, the paper's is b"));
    insta::assert_snapshot!(text);
    assert_eq!(report.sheets[0].rows.len(), 3);
}

#[test]
fn roofs_are_levels_at_latency_and_bytes_at_bandwidth() {
    let mut r = timed(Case::default(), [1.0, 1.0, 1.0]);
    assert_eq!(roofs(&r), None);
    r.factor.levels_lower = Some(43);
    r.factor.levels_upper = Some(43);
    r.traffic.handover_us = Some(0.25);
    r.traffic.copy_gbps = Some(4000.0);
    r.traffic.numeric_bytes = Some(5_000_000);
    r.traffic.apply_bytes = Some(3_000_000);
    // 129 levels of a quarter of a microsecond, 2 us of bytes, on 1000 points
    assert_eq!(roofs(&r), Some([0.03225, 0.002]));
}

#[test]
fn another_grid_has_no_verdict() {
    let (text, _) = rendered("luo/table3", Some("the grid is a, the paper's is b"));
    assert!(!text.contains("verdict |") && text.contains("28.5"), "{text}");
    assert!(text.ends_with("\nno verdict: the grid is a, the paper's is b\n"), "{text}");
}
