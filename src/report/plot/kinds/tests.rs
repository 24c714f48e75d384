use super::*;
use crate::case::{Case, Format, RunKind};
use crate::compute::Trisolve;
use crate::config::library::experiment;
use crate::config::marks::Marks;
use crate::record::Record;
use crate::record::samples::{record, repeated};
use crate::report::batch::Batch;
use crate::report::plot::{Origin, Series, numbers_of};

/// Plots of a kind for runs of one file.
fn plots(name: &str, records: Vec<Record>) -> Vec<Plot> {
    let batch = Batch { name: "f".into(), records, ..Batch::default() };
    (kind(name).unwrap().draw)(&Batches { runs: vec![batch], ..Batches::default() })
}

/// The series of the first panel of the first of these plots.
fn first_series(name: &str, records: Vec<Record>) -> Vec<Series> {
    plots(name, records).remove(0).figure.panels.remove(0).series
}

fn on(backend: &str, fill: usize) -> Case {
    Case { backend: backend.into(), fill, ..Case::default() }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs()
}

#[test]
fn names_are_unique_and_nothing_is_drawn_of_nothing() {
    for kind in KINDS {
        assert_eq!(super::kind(kind.name).unwrap().title, kind.title);
        assert!(plots(kind.name, Vec::new()).is_empty(), "{}", kind.name);
    }
    assert_eq!(kind("sped").unwrap_err().to_string(), "unknown kind of figure `sped`");
}

#[test]
fn speedups_are_ratios_of_twins_with_both_intervals() {
    let records = vec![
        repeated(on("cpu", 0), 9, 8.0, 10.0),
        repeated(on("cuda", 0), 9, 2.0, 5.0),
        record(on("cpu", 1), 9, 6.0),
        record(on("cuda", 1), 9, 2.0),
        // no twin
        record(on("cuda", 2), 9, 2.0),
    ];
    let plots = plots("speedup", records);
    let panels = &plots[0].figure.panels;
    assert_eq!(panels[0].x.categories, ["k 0", "k 1"]);
    let solve = &panels[0].series[0];
    assert_eq!((solve.name.as_str(), solve.pairs()), ("cuda", &[(0.0, 4.0), (1.0, 3.0)][..]));
    let (low, high) = solve.spread[0];
    assert!(close(low, 7.2 / 2.1) && close(high, 8.8 / 1.9), "{low} {high}");
    assert!(solve.spread[1].0.is_nan());
    // setup takes 0.04 s on both
    assert!(close(panels[1].series[0].pairs()[0].1, 8.04 / 2.04));
    assert_eq!(plots[0].figure.title, "Speedup over cpu: f");
}

#[test]
fn published_speedups_stand_beside_those_of_the_same_case() {
    let experiment = experiment("yang/table1");
    let case = &experiment.cases().unwrap().0[0];
    let records = vec![record(case.on("cpu"), 240, 10.0), record(case.on("cuda"), 240, 0.1)];
    let published = experiment.published.as_ref().unwrap().find(case).unwrap().speedup().unwrap();
    let experiment = Some(("yang/table1".to_owned(), experiment));
    let batch = Batch { name: "f".into(), records, experiment, not_comparable: None };
    let batches = Batches { runs: vec![batch], ..Batches::default() };
    let series = &(speedup::KIND.draw)(&batches)[0].figure.panels[0].series;
    let paper = series.iter().find(|s| s.origin == Origin::Published).unwrap();
    assert_eq!(paper.pairs(), [(0.0, published)]);
    assert!(close(series[0].pairs()[0].1, 100.0));
}

#[test]
fn the_frontier_is_what_no_other_beats_in_both() {
    let of = |precond: &str, iterations, solve| {
        record(Case { precond: precond.into(), ..Case::default() }, iterations, solve)
    };
    let records = vec![
        of("jacobi", 100, 0.1),
        of("bilu", 30, 0.09),
        of("fsai", 50, 0.04),
        of("tns", 60, 0.12),
    ];
    let series = first_series("frontier", records);
    // 3 ms in 30, 0.8 in 50; 1 ms in 100 and 2 ms in 60 are beaten by the latter
    assert_eq!(series[0].labels, ["bilu", "fsai"]);
    assert!(close(series[0].pairs()[0].1, 3.0) && close(series[0].pairs()[1].1, 0.8));
    assert_eq!(series[1].labels, ["tns", "jacobi"]);
    // the axes reach from 20 to 100 iterations and from 0.5 to 5 ms: 10 ms is a corner
    let times = series[2..].iter().map(|s| s.labels[1].as_str()).collect::<Vec<_>>();
    assert_eq!(times, ["100.0 ms"]);
    for line in &series[2..] {
        let products: Vec<f64> = line.pairs().iter().map(|(x, y)| x * y).collect();
        assert!(close(products[0], products[1]));
    }
}

#[test]
fn shares_of_phases_add_up_to_all_of_the_time() {
    let mut r = record(on("cpu", 0), 9, 0.06);
    r.times.analysis_s = Some(0.01);
    let plots = plots("phases", vec![r, record(on("cpu", 1), 9, 0.07)]);
    let panel = &plots[0].figure.panels[0];
    assert_eq!(panel.y.categories, ["k 0: 100.0 ms", "k 1: 100.0 ms"]);
    let shares: Vec<(&str, f64)> =
        panel.series.iter().map(|s| (s.name.as_str(), s.pairs()[0].1)).collect();
    let wanted = [("symbolic", 10.0), ("analysis", 10.0), ("numeric", 20.0), ("solve", 60.0)];
    for ((name, share), wanted) in shares.iter().zip(wanted) {
        assert!(*name == wanted.0 && close(*share, wanted.1), "{shares:?}");
    }
}

#[test]
fn roofs_are_medians_over_a_file() {
    let with = |percent: f64| {
        let mut r = record(on("cpu", 0), 9, 1.0);
        r.traffic.percent_of_bandwidth = Some(percent);
        r.traffic.copy_gbps = Some(50.0);
        r.traffic.spmv_gbps = Some(percent);
        r
    };
    let plots = plots("roof", vec![with(10.0), with(40.0), with(90.0)]);
    let panels = &plots[0].figure.panels;
    let series = |i: usize| &panels[i].series[0];
    assert_eq!((series(0).pairs(), series(0).spread[0]), (&[(0.0, 80.0)][..], (20.0, 180.0)));
    assert_eq!((series(1).pairs(), series(1).spread[0]), (&[(0.0, 40.0)][..], (10.0, 90.0)));
}

#[test]
fn rooflines_are_operations_over_bytes_and_seconds() {
    let mut r = record(on("cpu", 0), 9, 1.0);
    r.size.nnz = 500_000_000;
    r.traffic.spmv_bytes = Some(4_000_000_000);
    r.traffic.spmv_s = Some(0.5);
    r.traffic.copy_gbps = Some(10.0);
    let series = first_series("roofline", vec![r]);
    assert_eq!(series[0].pairs(), [(0.25, 2.0)]);
    assert!(series[1].pairs().iter().all(|(x, y)| close(*y, 10.0 * x)));
}

#[test]
fn histories_are_norms_by_iteration() {
    let mut r = record(on("cpu", 0), 3, 1.0);
    r.convergence.residual_history = vec![8.0, 4.0, 0.5];
    let series = first_series("history", vec![r]);
    assert_eq!(series[0].pairs(), [(0.0, 1.0), (1.0, 0.5), (2.0, 0.0625)]);
    assert_eq!(series[1], Series::limit("tolerance 1e-6", 1e-6));
}

#[test]
fn histories_of_all_runs_are_drawn_or_named() {
    let run = |matrix: &str, restart| {
        let case = Case { matrix: matrix.into(), restart, ..on("cpu", 0) };
        let mut r = record(case, 3, 1.0);
        r.convergence.residual_history = vec![8.0, 4.0];
        r
    };
    let mut records: Vec<Record> = (1..=50).map(|i| run("/long/way/a.mtx.gz", i)).collect();
    records.push(run("/another/way/b.mtx", 1));
    let figure = &plots("history", records)[0].figure;
    let titles: Vec<&str> = figure.panels.iter().map(|p| p.title.as_str()).collect();
    assert_eq!(titles, ["a", "b"]);
    assert_eq!(figure.panels[0].series.len(), 48 + 1);
    let line = "not drawn: restart 49 of a; restart 50 of a";
    assert_eq!(figure.left_out_line().as_deref(), Some(line));
    let csv = crate::report::plot::numbers([figure]).unwrap();
    assert!(csv.contains("Convergence: f,a,restart 50,left out,,,,,,,,\n"), "{csv}");
}

#[test]
fn profiles_are_of_the_systems_that_every_configuration_was_tried_on() {
    let mut records = Vec::new();
    for (i, (cpu, cuda)) in [(4.0, 1.0), (2.0, 2.0), (1.0, 4.0), (8.0, 1.0)].iter().enumerate() {
        for (backend, seconds) in [("cpu", cpu), ("cuda", cuda)] {
            let mut r = record(on(backend, i), 9, *seconds);
            r.times.setup_s = Some(0.0);
            records.push(r);
        }
    }
    records.push(record(on("cpu", 9), 9, 1.0));
    let plots = plots("profile", records);
    let figure = &plots[0].figure;
    assert_eq!(figure.marks, Marks::Steps);
    let series = &figure.panels[0].series;
    assert_eq!(series[0].name, "cpu");
    let wanted = [(1.0, 50.0), (4.0, 75.0), (8.0, 100.0), (8.8, 100.0)];
    assert!(series[0].pairs().iter().zip(wanted).all(|(a, b)| close(a.0, b.0) && a.1 == b.1));
    assert_eq!(series[1].pairs()[..2], [(1.0, 75.0), (4.0, 100.0)]);
    let worst =
        "cuda, the fastest most often, takes at most 4.00 times as long as the fastest: k 2.";
    assert!(plots[0].caption.ends_with(worst), "{}", plots[0].caption);
    assert_eq!(plots.len(), 1, "one variant of triangular solves is not compared");
}

#[test]
fn variants_of_triangular_solves_are_compared_by_one_application() {
    let mut records = Vec::new();
    for (fill, seconds) in [[3.0, 1.0, 2.0], [1.5, 1.0, 3.0], [1.0, 2.0, 8.0]].iter().enumerate() {
        let variants = [Trisolve::LEVELS, Trisolve::SYNCFREE, Trisolve::AUTO];
        for (trisolve, seconds) in variants.into_iter().zip(seconds) {
            let backend = if trisolve == Trisolve::AUTO { "cusparse" } else { "cuda" };
            // all take the same time in all
            let mut r = record(Case { trisolve, ..on(backend, fill) }, 9, 1.0);
            r.traffic.apply_s = Some(*seconds);
            records.push(r);
        }
    }
    let plots = plots("profile", records);
    let plot = plots.iter().find(|plot| plot.figure.title.contains("triangular solves")).unwrap();
    let series = &plot.figure.panels[0].series;
    let names: Vec<&str> = series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["levels, cuda", "syncfree, cuda", "cusparse"]);
    assert!(close(series[1].pairs()[0].1, 200.0 / 3.0), "{:?}", series[1].pairs());
    let worst = "syncfree, cuda, the fastest most often, takes at most 2.00 times as long as the fastest: k 2.";
    assert!(plot.caption.ends_with(worst), "{}", plot.caption);
}

#[test]
fn sizes_and_threads_scale() {
    let of = |edge: usize, threads: usize, seconds| {
        let matrix = format!("poisson3d:{edge}");
        let mut r = record(Case { matrix, ..on("cpu-mt", 0) }, 10, seconds);
        r.size.n = edge.pow(3);
        r.environment.threads = threads;
        r
    };
    let plotted = plots("size", vec![of(20, 2, 0.2), of(10, 2, 0.1), of(30, 2, 0.9)]);
    let panels = &plotted[0].figure.panels;
    assert_eq!(panels[0].series[0].pairs(), [(1000.0, 100.0), (8000.0, 200.0), (27_000.0, 900.0)]);
    // 0.1 s for 10 iterations of 1000 unknowns
    assert!(close(panels[1].series[0].pairs()[0].1, 10_000.0));

    let series = first_series("threads", vec![of(10, 4, 0.5), of(10, 1, 1.0), of(10, 2, 0.8)]);
    assert_eq!(series[0].pairs(), [(1.0, 1.0), (2.0, 1.25), (4.0, 2.0)]);
    assert_eq!(
        (series[1].origin, series[1].pairs()),
        (Origin::Limit, &[(1.0, 1.0), (4.0, 4.0)][..])
    );
}

#[test]
fn products_are_shown_by_format() {
    let of = |format, gflops| {
        let case = Case { kind: RunKind::Spmv, format, ..on("cpu", 0) };
        let mut r = record(case, 0, 1.0);
        r.traffic.spmv_gflops = Some(gflops);
        r.traffic.spmv_percent_of_bandwidth = Some(10.0 * gflops);
        r
    };
    let plots = plots("product", vec![of(Format::Csr, 2.0), of(Format::Bsr, 3.0)]);
    let numbers = numbers_of(&plots[0].figure);
    let text: Vec<String> = numbers.iter().map(|n| format!("{} {}", n.series, n.y)).collect();
    assert_eq!(text, ["csr 2", "bsr 3", "csr 20", "bsr 30", "copy 100"]);
}

#[test]
fn block_sizes_of_a_matrix_have_markers_of_their_own() {
    let of = |matrix: &str, block_size, format| {
        let case =
            Case { kind: RunKind::Spmv, matrix: matrix.into(), block_size, format, ..on("cpu", 0) };
        let mut r = record(case, 0, 1.0);
        r.traffic.spmv_gflops = Some(2.0);
        r
    };
    let names = |records| {
        first_series("product", records)
            .iter()
            .map(|s| (s.name.clone(), s.pairs().len()))
            .collect::<Vec<_>>()
    };
    let wanted = |names: &[(&str, usize)]| {
        names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
    };
    // each matrix in its own: they are apart on the axis
    let own = vec![of("a", 2, Format::Csr), of("b", 3, Format::Csr), of("b", 3, Format::Bsr)];
    assert_eq!(names(own), wanted(&[("csr", 2), ("bsr", 1)]));
    let several = vec![of("a", 2, Format::Bsr), of("a", 3, Format::Bsr), of("b", 3, Format::Bsr)];
    assert_eq!(names(several), wanted(&[("b 2", 1), ("b 3", 2)]));
}

#[test]
fn ten_thousand_runs_make_figures_of_bounded_size() {
    let mut records = Vec::new();
    for i in 0..10_000 {
        let backend = ["cpu", "cuda"][i % 2];
        let matrix = format!("poisson3d:{}", 10 + (i / 2) % 50);
        let precond = ["bilu", "jacobi", "fsai", "tns"][(i / 100) % 4];
        let case = Case {
            matrix,
            precond: precond.into(),
            block_size: 1 + (i / 400) % 25,
            ..on(backend, 0)
        };
        let mut r = record(case, 5 + i % 97, 0.01 * (1 + i % 89) as f64);
        r.convergence.residual_history = vec![1.0, 0.1];
        records.push(r);
    }
    let batch = Batch { name: "f".into(), records, ..Batch::default() };
    let batches = Batches { runs: vec![batch], ..Batches::default() };
    for kind in KINDS {
        for plot in (kind.draw)(&batches) {
            let points = numbers_of(&plot.figure).len();
            assert!(points <= 2000, "{} {points}", kind.name);
            assert!(plot.caption.contains("are shown") || points < 2000, "{}", plot.caption);
        }
    }
}

#[test]
fn efficiencies_are_strong_for_one_system_and_weak_for_systems_that_grow() {
    let of = |edge: usize, ranks: usize, seconds, iterations| {
        let case =
            Case { matrix: format!("poisson3d:{edge}"), backend: "mpi".into(), ..Case::default() };
        let mut r = record(case, iterations, seconds);
        r.size.n = edge.pow(3);
        r.division.ranks = Some(ranks);
        r.division.subdomains_used = Some(ranks);
        r
    };
    // setup takes 0.04 s of each
    let records = vec![of(20, 1, 0.96, 10), of(20, 4, 0.36, 15), of(40, 8, 1.56, 20)];
    let plots = plots("ranks", records.clone());
    let titles: Vec<_> = plots.iter().map(|p| p.figure.title.split(':').next().unwrap()).collect();
    assert_eq!(titles, ["Strong scaling with the ranks", "Weak scaling with the ranks"]);
    let pairs = |plot: usize, panel: usize| plots[plot].figure.panels[panel].series[0].pairs();
    let is = |found: &[(f64, f64)], wanted: [(f64, f64); 2]| {
        found.iter().zip(wanted).all(|(a, b)| a.0 == b.0 && close(a.1, b.1)) && found.len() == 2
    };
    assert!(is(pairs(0, 0), [(1.0, 1.0), (4.0, 1.0 / 1.6)]), "{:?}", pairs(0, 0));
    assert!(is(pairs(0, 1), [(1.0, 1.0), (4.0, 0.096 / (4.0 * 0.024))]), "{:?}", pairs(0, 1));
    assert!(is(pairs(1, 0), [(1.0, 1.0), (8.0, 1.0 / 1.6)]), "{:?}", pairs(1, 0));
    let series = &first_series("subdomains", records)[0];
    assert_eq!(series.pairs(), [(1.0, 10.0), (4.0, 15.0)]);
}
