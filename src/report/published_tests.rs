use super::*;
use crate::config::library::Library;
use crate::report::ReportFormat;
use crate::result::samples::record;

fn table1() -> Experiment {
    let library = Library::Embedded;
    library.open(&library.find("yang/table1").unwrap()[0]).unwrap()
}

/// Records of the first cases of Table 1 (cpu and cpu-mt alternate) with these iterations.
fn records(iterations: &[usize]) -> Vec<Record> {
    let (cases, _) = table1().cases().unwrap();
    let records = iterations.iter().zip(cases.chunks(2)).flat_map(|(&count, pair)| {
        pair.iter().map(move |case| {
            let seconds = if case.backend == "cpu" { 8.0 } else { 5.0 };
            record(case.clone(), count, seconds)
        })
    });
    records.collect()
}

fn rendered(records: &[Record], not_comparable: Option<&str>) -> (String, Report) {
    let experiment = table1();
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

#[test]
fn root_mean_square_of_nothing_is_nothing() {
    assert_eq!(root_mean_square(&[]), None);
    assert_eq!(root_mean_square(&[3.0, -4.0, 0.0, 0.0]), Some(2.5));
}
