use super::*;
use crate::base::status::Status;
use crate::case::{FgbiluStyle, Format, RunKind};
use crate::config::library::experiment;
use crate::record::samples::record;

/// A record of `points` points whose phases take `us` microseconds per point.
fn timed(case: Case, points: usize, us: [f64; 3]) -> Record {
    let seconds = |us: f64| Some(1e-6 * us * points as f64);
    let mut r = record(case, 4, 1e-6 * points as f64);
    r.status = Status::Complete;
    r.size.block_rows = points;
    r.times.numeric_kernel_s = seconds(us[0]);
    r.traffic.apply_s = seconds(us[1]);
    r.traffic.residual_s = seconds(us[2]);
    r.environment.revision = "0.2.0 (abc)".into();
    r.environment.date = "2026-11-21T22:03:09Z".into();
    r
}

fn rounded(points: &Points) -> Vec<(f64, f64)> {
    match points {
        Points::Pairs(points) => {
            points.iter().map(|(x, y)| (*x, (1e6 * y).round() / 1e6)).collect()
        }
        Points::Level(value) => vec![(f64::NAN, *value)],
    }
}

#[test]
fn series_are_executions_over_points_beside_the_published() {
    let experiment = experiment("luo/figure9");
    let of = |edge: usize, backend: &str, style, us| {
        let case = Case {
            matrix: format!("channel3d:{edge}"),
            precond: "fgbilu".into(),
            fgbilu_style: style,
            ..Case::default()
        };
        timed(case.on(backend), edge.pow(3), us)
    };
    let mut records = vec![
        of(20, "cpu", FgbiluStyle::Auto, [4.0, 2.0, 1.0]),
        of(20, "cuda", FgbiluStyle::Cl, [0.4, 0.2, 0.1]),
        of(10, "cpu", FgbiluStyle::Auto, [5.0, 2.5, 1.5]),
        of(10, "cuda", FgbiluStyle::Acc, [9.0, 9.0, 9.0]),
    ];
    records[3].status = Status::Breakdown;
    let figure = figure(
        experiment.figure.as_ref().unwrap(),
        experiment.title.as_deref(),
        &records,
        Some("a remark"),
    );
    let titles: Vec<&str> = figure.panels.iter().map(|p| p.title.as_str()).collect();
    assert_eq!(titles, ["overall", "factorisation", "solve", "residual"]);
    let factorisation = &figure.panels[1];
    assert_eq!(factorisation.y.label, "factorisation (µs per point)");
    let series: Vec<_> = factorisation
        .series
        .iter()
        .map(|s| (s.name.as_str(), s.origin, rounded(&s.points)))
        .collect();
    let (measured, published) = (Origin::Measured, Origin::Published);
    assert_eq!(
        series,
        [
            ("cpu", measured, vec![(1000.0, 5.0), (8000.0, 4.0)]),
            ("cuda cl", measured, vec![(8000.0, 0.4)]),
            ("Xeon E5645, 1 core (paper)", published, vec![(274_625.0, 3.48)]),
            ("M2050, CUDA (paper)", published, vec![(274_625.0, 0.122)]),
        ]
    );
    // the factorisation and a solve of a microsecond per point
    assert_eq!(rounded(&figure.panels[0].series[0].points), [(1000.0, 6.0), (8000.0, 5.0)]);
    assert_eq!(
        figure.source,
        [
            "measured on cpu: Some CPU, 1 thread; cuda: Some CPU",
            "bilu-bench 0.2.0 (abc), 2026-11-21",
            "published: the paper's Table 3, whose values are those of the largest grid of Figure 9",
            "not shown: 1 case that failed",
            "a remark",
        ]
    );
}

#[test]
fn bars_have_panels_by_setting_and_categories_by_size() {
    let experiment = experiment("almouhamed/fig8b");
    let of = |matrix: &str, format, backend: &str, gflops| {
        let case = Case {
            matrix: matrix.into(),
            kind: RunKind::Spmv,
            block_size: 2,
            format,
            backend: backend.into(),
            ..Case::default()
        };
        let mut r = record(case, 0, 1.0);
        r.status = Status::Measured;
        r.traffic.spmv_gflops = Some(gflops);
        r
    };
    let (plain, biased) = ("reservoir:20,k=2,wells=50", "reservoir:20,k=2,wells=50,bias=half");
    let records = [
        of(biased, Format::Csr, "cpu", 1.0),
        of(biased, Format::Csr, "cpu-mt", 2.0),
        of("reservoir:32,k=2,wells=50", Format::Csr, "cpu", 3.0),
        of(plain, Format::Bdia, "cpu", 4.0),
        of(plain, Format::Csr, "cpu-mt", 5.0),
    ];
    let figure = figure(experiment.figure.as_ref().unwrap(), None, &records, None);
    assert_eq!(figure.marks, Marks::Bars);
    let titles: Vec<&str> = figure.panels.iter().map(|p| p.title.as_str()).collect();
    // the backend is the outer setting
    assert_eq!(titles, ["cpu, bias=half", "cpu", "cpu-mt, bias=half", "cpu-mt"]);
    assert_eq!(figure.panels[1].x.categories, ["20", "32"]);
    let series: Vec<_> =
        figure.panels[1].series.iter().map(|s| (s.name.as_str(), rounded(&s.points))).collect();
    assert_eq!(series, [("csr", vec![(1.0, 3.0)]), ("bdia", vec![(0.0, 4.0)])]);
}

#[test]
fn files_are_called_by_their_base_names() {
    let mut spec = experiment("almouhamed/fig8b").figure.unwrap();
    spec.x = crate::config::quantity::quantity("points").unwrap();
    let of = |matrix: &str, rhs: &str| {
        let case =
            Case { matrix: matrix.into(), rhs: rhs.into(), kind: RunKind::Spmv, ..Case::default() };
        let mut r = record(case, 0, 1.0);
        r.traffic.spmv_gflops = Some(1.0);
        r
    };
    let records = [
        of("/a/long/way/watt_1.mtx.gz", "file:/a/b.mtx"),
        of("/a/long/way/watt_1.mtx.gz", "file:/a/c.mtx"),
        of("sub/orsreg_1.mtx", "ones"),
    ];
    let figure = |spec: &_| figure(spec, None, &records, None);
    let titles =
        |figure: &Figure| figure.panels.iter().map(|p| p.title.clone()).collect::<Vec<_>>();
    assert_eq!(titles(&figure(&spec)), ["cpu, watt_1", "cpu, orsreg_1"]);
    let names: Vec<String> =
        figure(&spec).panels[0].series.iter().map(|s| s.name.clone()).collect();
    assert_eq!(names, ["file:b", "file:c"]);
    spec.panels.retain(|setting| setting.name != "backend");
    spec.panels.push(crate::config::sweep::axis("rhs").unwrap());
    let wanted = ["watt_1, file:b", "watt_1, file:c", "orsreg_1, ones"];
    assert_eq!(titles(&figure(&spec)), wanted);
}

#[test]
fn levels_hold_for_every_size() {
    let experiment = experiment("almouhamed/fig7");
    let spec = experiment.figure.unwrap();
    let figure = figure(&spec, None, &[record(Case::default(), 1, 1.0)], None);
    assert_eq!(figure.panels.len(), 2);
    assert!(figure.panels[0].series.is_empty());
    let level = &figure.panels[1].series[0];
    assert_eq!((level.origin, &level.points), (Origin::Published, &Points::Level(60.0)));
}

#[test]
fn nothing_measured_is_no_panel() {
    let spec = experiment("luo/figure9").figure.unwrap();
    let figure = figure(&spec, Some("t"), &[], None);
    assert!(figure.panels.is_empty() && figure.source.len() == 1);
}
