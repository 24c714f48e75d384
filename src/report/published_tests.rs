use super::speed::verdict;
use super::*;
use crate::config::library::experiment;
use crate::record::samples::{record, repeated};
use crate::report::ReportFormat;

/// Records of the first rows of Table 1 on `cpu` and `cpu-mt`, with these iterations.
fn records(iterations: &[usize]) -> Vec<Record> {
    on(&["cpu", "cpu-mt"], iterations)
}

/// Records of the first rows of Table 1 on `backends`, with these iterations.
fn on(backends: &[&str], iterations: &[usize]) -> Vec<Record> {
    let (cases, _) = experiment("yang/table1").cases().unwrap();
    let rows = cases.into_iter().filter(|case| case.backend == "cpu").zip(iterations);
    let records = rows.flat_map(|(case, &count)| {
        backends.iter().map(move |backend| {
            let (seconds, setup, device) = match *backend {
                "cpu" => (8.0, 0.04, "Some CPU"),
                "cpu-mt" => (5.0, 0.04, "Some CPU"),
                "cuda" => (0.8, 0.02, "Some GPU, sm_90, CUDA 13.0"),
                _ => (1.0, 0.03, "Some GPU, sm_90, CUDA 13.0, cuSPARSE 12.6"),
            };
            let mut record = repeated(case.on(backend), count, seconds, 1.0);
            record.times.setup_s = Some(setup);
            record.environment.device = device.into();
            record
        })
    });
    records.collect()
}

fn rendered(records: &[Record], not_comparable: Option<&str>) -> (String, Report) {
    let experiment = experiment("yang/table1");
    let paper = experiment.published.clone().unwrap();
    let report = report("yang/table1", &experiment, &paper, records, not_comparable);
    (ReportFormat::Table.render(&report).unwrap(), report)
}

#[test]
fn verdicts_turn_at_the_tolerance() {
    let row = PublishedRow { key: vec![], iterations: 100, slow_s: None, fast_s: None };
    let of = |count| Verdict::of(&record(Case::default(), count, 1.0), Some(&row), 5.0);
    assert_eq!(of(105), Verdict::Ok(5.0));
    assert_eq!(of(95), Verdict::Ok(-5.0));
    assert_eq!(of(106), Verdict::Off(6.0));
    assert_eq!(of(94).text(), "-6.0 %");
    let mut diverged = record(Case::default(), 100, 1.0);
    diverged.status = Status::Diverged;
    assert_eq!(Verdict::of(&diverged, Some(&row), 5.0), Verdict::Failed);
    assert_eq!(Verdict::of(&diverged, None, 5.0), Verdict::None);
}

#[test]
fn published_and_measured_stand_side_by_side() {
    let (text, report) = rendered(&records(&[240, 132]), None);
    insta::assert_snapshot!(text);
    let row = &report.rows[3];
    assert_eq!(row["experiment"], "yang/table1");
    assert_eq!(row["published-iterations"], 120);
    assert_eq!(row["published-s"], 3.2824);
    assert_eq!((&row["deviation-percent"], &row["verdict"]), (&10.0.into(), &"off".into()));
}

#[test]
fn another_grid_has_published_columns_and_no_verdict() {
    let (text, report) = rendered(&records(&[60]), Some("the grid is a, the paper's is b"));
    assert!(text.ends_with("\nno verdict: the grid is a, the paper's is b\n"), "{text}");
    assert!(!text.contains("verdict |") && text.contains("240"), "{text}");
    assert_eq!(report.rows[0]["verdict"], Value::Null);
}

#[test]
fn failed_rows_stand_out_and_count() {
    let mut records = records(&[240, 121]);
    for record in &mut records[2..] {
        record.status = Status::Breakdown;
        record.reason = Some("singular block in row 7".into());
    }
    let (text, _) = rendered(&records, None);
    assert!(text.contains("failed") && text.contains("! breakdown [1]"), "{text}");
    assert!(text.contains("\n[1] singular block in row 7\n"), "{text}");
    assert!(
        text.contains("iterations: 1 of 2 rows within 5 %, rms deviation 0.0 %, worst +0.0 % (block 1, k 0), 1 failed\n"),
        "{text}"
    );
}

#[test]
fn variants_are_summed_up_apart() {
    use crate::case::LevelRule;
    let mut records = records(&[240, 120, 191]);
    let mut textbook = records.clone();
    for record in &mut textbook {
        record.case.level_rule = LevelRule::Min;
    }
    textbook[4].convergence.iterations = 65;
    textbook[5].convergence.iterations = 65;
    records.extend(textbook);
    let (text, _) = rendered(&records, None);
    assert!(text.contains("level-rule overwrite: iterations: 3 of 3 rows within 5 %"), "{text}");
    assert!(
        text.contains("level-rule min: iterations: 2 of 3 rows within 5 %, rms deviation 38.1 %, worst -66.0 % (block 1, k 2)"),
        "{text}"
    );
}

/// The first cells of the columns called `heads`.
fn first<'a>(report: &'a Report, heads: &[&str]) -> Vec<&'a str> {
    heads.iter().map(|head| report.sheets[0].column(head)[0]).collect()
}

#[test]
fn both_gpu_backends_stand_beside_the_papers_gpu() {
    let mut records = on(&["cpu", "cpu-mt", "cuda", "cusparse"], &[240, 120, 191]);
    // below the paper's 4.28, and behind cuSPARSE
    records[6].times.solve_s = Some(2.5);
    // one iteration more on a GPU
    records[10].convergence.iterations = 192;
    let (text, report) = rendered(&records, None);
    insta::assert_snapshot!(text);
    let of = |i: usize| {
        let row = &report.rows[i];
        let keys = ["published-s", "published-speedup", "speedup", "speedup-over-cusparse"];
        keys.map(|key| row[key].as_f64().map(|v| (v * 1e3).round() / 1e3))
    };
    assert_eq!(of(0), [Some(26.128), None, None, None]);
    assert_eq!(of(1), [None, None, Some(1.6), None]);
    assert_eq!(of(2), [Some(3.803), Some(6.871), Some(10.0), Some(1.25)]);
    assert_eq!(of(3), [Some(3.803), Some(6.871), Some(8.0), None]);
}

#[test]
fn one_gpu_backend_has_a_verdict_on_its_speedup() {
    let (text, report) = rendered(&on(&["cpu", "cuda"], &[240, 120]), None);
    let heads = ["cpu here", "cuda here", "speedup here", "speedup verdict", "setup cuda"];
    assert_eq!(first(&report, &heads), ["8.000 s", "800.0 ms", "10.0", "ok", "20.00 ms"]);
    assert!(!text.contains("cusparse"), "{text}");
    assert!(text.contains("\nspeedup: cuda reaches the paper's in 2 of 2 rows\n"), "{text}");
    let (_, vendor) = rendered(&on(&["cpu", "cusparse"], &[240]), None);
    assert_eq!(first(&vendor, &["cusparse here", "speedup verdict"]), ["1.000 s", "ok"]);
}

#[test]
fn speedups_of_few_samples_are_marked() {
    let mut records = on(&["cpu", "cuda", "cusparse"], &[240, 120]);
    let heads = ["speedup cuda/cusparse", "total speedup cuda/cusparse", "speedup verdict"];
    let (text, report) = rendered(&records, None);
    assert_eq!(first(&report, &heads), ["10.0/8.00", "9.80/7.81", "ok"]);
    assert!(!text.contains('‡'), "{text}");
    records[2].times.repetitions = 5;
    let (_, of_one) = rendered(&records, None);
    assert_eq!(first(&of_one, &heads), ["10.0/8.00‡", "9.80/7.81‡", "ok"]);
    records[0].times.repetitions = 1;
    let (text, of_both) = rendered(&records, None);
    assert_eq!(of_both.sheets[0].column(heads[0]), ["10.0‡/8.00‡", "10.0/8.00"]);
    assert!(text.contains("\n‡ a solve has fewer than six samples, too few for"), "{text}");
}

#[test]
fn without_a_gpu_nothing_is_said_of_its_speed() {
    for backends in [&["cpu"][..], &["cpu", "cpu-mt"]] {
        let (text, _) = rendered(&on(backends, &[240]), None);
        assert!(!text.contains("speedup verdict") && !text.contains("cusparse"), "{text}");
    }
}

#[test]
fn each_algorithm_of_triangular_solves_has_a_line_beside_the_same_cpu() {
    let mut records = on(&["cpu", "cusparse"], &[240]);
    for (trisolve, seconds) in [(Trisolve::LEVELS, 4.0), (Trisolve::SYNCFREE, 0.5)] {
        let mut variant = on(&["cuda"], &[240]).remove(0);
        variant.case.trisolve = trisolve;
        variant.times.solve_s = Some(seconds);
        records.push(variant);
    }
    let (text, report) = rendered(&records, None);
    for (head, cells) in [
        ("trisolve", ["levels", "syncfree"]),
        ("cpu here", ["8.000 s", "8.000 s"]),
        ("cuda here", ["4.000 s", "500.0 ms"]),
        ("speedup cuda/cusparse", ["2.00/8.00", "16.0/8.00"]),
        ("speedup verdict", ["-70.9 %", "ok"]),
        ("cuda against cusparse", ["-75.0 %", "ok"]),
    ] {
        assert_eq!(report.sheets[0].column(head), cells);
    }
    assert!(
        text.contains(
            "\ntrisolve levels: speedup: cuda reaches the paper's in 0 of 1 row, worst -70.9 % (block 1, k 0)\n"
        ),
        "{text}"
    );
}

#[test]
fn what_did_not_converge_has_no_speed_verdict() {
    let mut records = on(&["cpu", "cuda", "cusparse"], &[240]);
    records[1].status = Status::Diverged;
    let (text, _) = rendered(&records, None);
    assert!(
        !text.contains("reaches the paper's in") && !text.contains("at least as fast as"),
        "{text}"
    );
    // on another grid speeds are compared on this machine alone
    let small = on(&["cpu", "cuda", "cusparse"], &[60]);
    let (text, _) = rendered(&small, Some("the grid is a, the paper's is b"));
    assert!(
        text.ends_with(
            "\nno verdict: the grid is a, the paper's is b\n\
             cuda at least as fast as cusparse in 1 of 1 row\n"
        ),
        "{text}"
    );
}

#[test]
fn a_deviation_that_would_not_show_is_none() {
    assert_eq!(deviation(Some(0.9996), Some(1.0)).map(verdict).unwrap(), "ok");
    assert_eq!(deviation(Some(0.999), Some(1.0)).map(verdict).unwrap(), "-0.1 %");
    assert_eq!(deviation(None, Some(1.0)), None);
}
