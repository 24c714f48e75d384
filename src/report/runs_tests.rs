use super::*;
use crate::base::status::Status;
use crate::case::Case;
use crate::record::samples::{record, repeated};
use crate::report::ReportFormat;

fn case(fill: usize, backend: &str) -> Case {
    Case { fill, backend: backend.into(), ..Case::default() }
}

fn sweep() -> Vec<Record> {
    let mut slow = repeated(case(0, "cpu"), 61, 1.2, 1.0);
    slow.times.setup_s = Some(0.08);
    let mut broken = record(case(1, "cpu"), 3, 0.1);
    broken.status = Status::Breakdown;
    broken.reason = Some("singular block in row 7".into());
    broken.convergence.true_residual = None;
    vec![slow, repeated(case(0, "cpu-mt"), 61, 0.6, 2.0), broken]
}

#[test]
fn constants_go_above_the_table_and_failures_stand_out() {
    insta::assert_snapshot!(
        ReportFormat::Table.render(&report(&sweep(), Some("A sweep"))).unwrap()
    );
}

#[test]
fn markdown_has_the_same_cells() {
    insta::assert_snapshot!(ReportFormat::Markdown.render(&report(&sweep(), None)).unwrap());
}

/// A record whose true residual is this.
fn with_residual(fill: usize, true_residual: f64) -> Record {
    let mut r = record(case(fill, "cpu"), 61, 1.0);
    r.convergence.true_residual = Some(true_residual);
    r
}

#[test]
fn a_true_residual_above_the_tolerance_is_marked() {
    let mut records = [(0, 1e-6), (1, 1.02e-6), (2, 5.055e-6), (3, 9e-6)]
        .map(|(fill, residual)| with_residual(fill, residual));
    let times = |r: &Record| r.above_tolerance().map(|times| format!("{times:.3}"));
    assert_eq!(times(&records[0]), None);
    assert_eq!(times(&records[1]).unwrap(), "1.020");
    // one that did not converge has another word for it, and without a tolerance none is met
    records[3].status = Status::NotConverged;
    assert_eq!(times(&records[3]), None);
    let mut fixed = records[2].clone();
    fixed.case.rtol = 0.0;
    assert_eq!(times(&fixed), None);
    let sheet = &report(&records, None).sheets[0];
    let cells = ["converged", "converged†", "converged†", "! not-converged"];
    assert_eq!(sheet.column("status"), cells);
    let note = "† converged by the residual that the solver monitors; the true residual is above rtol, at \
                most 5.06 times";
    assert_eq!(sheet.notes[0], note);
    let sheet = &report(&records[..1], None).sheets[0];
    assert!(!sheet.notes.iter().any(|note| note.contains('†')), "{:?}", sheet.notes);
}

#[test]
fn csv_and_json_read_back() {
    let rows = report(&sweep(), None);
    let folder = tempfile::tempdir().unwrap();
    for (format, name) in [(ReportFormat::Csv, "a.csv"), (ReportFormat::Json, "a.json")] {
        let path = folder.path().join(name);
        std::fs::write(&path, format.render(&rows).unwrap()).unwrap();
        assert_eq!(crate::record::read::read(&path).unwrap().records, sweep());
    }
}

#[test]
fn one_row_has_its_settings_above() {
    let text = ReportFormat::Table.render(&report(&sweep()[..1], None)).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "poisson3d:60, n = 216,000, nnz = 1,490,400, rhs ones, gmres(20), bilu, block size 1, \
         k = 0, side right, rtol 1e-6"
    );
    assert!(!text.contains("speedup"), "{text}");
}

#[test]
fn nothing_is_said_of_nothing() {
    assert_eq!(ReportFormat::Table.render(&report(&[], None)).unwrap(), "no records\n");
    assert_eq!(ReportFormat::Json.render(&report(&[], None)).unwrap(), "[]\n");
}

#[test]
fn a_speedup_needs_both_times() {
    assert_eq!(speedup(Some(4.0), Some(2.0)), Some(2.0));
    assert_eq!(speedup(Some(4.0), Some(0.0)), None);
    assert_eq!(speedup(None, Some(2.0)), None);
}

#[test]
fn the_base_has_no_algorithm_of_triangular_solves() {
    use crate::case::Trisolve;
    let variant = |trisolve| Case { trisolve, ..case(0, "cuda") };
    let mut records = [
        repeated(case(0, "cpu"), 61, 1.0, 1.0),
        repeated(variant(Trisolve::LEVELS), 61, 0.25, 1.0),
        repeated(variant(Trisolve::SYNCFREE), 61, 0.125, 1.0),
    ];
    let sheet = &report(&records, None).sheets[0];
    assert_eq!(sheet.column("trisolve"), ["auto", "levels", "syncfree"]);
    assert_eq!(sheet.column("solve speedup"), ["", "4.00", "8.00"]);
    // fewer than six samples
    records[1].times.repetitions = 5;
    let sheet = &report(&records, None).sheets[0];
    assert_eq!(sheet.column("solve speedup"), ["", "4.00‡", "8.00"]);
    assert!(sheet.notes.iter().any(|note| note.starts_with("‡ a solve has fewer than six")));
}

#[test]
fn solves_are_shown_with_what_their_spread_is() {
    use crate::base::measure::median;
    let of = |samples: &[f64], of_rounds| {
        let mut r = record(Case::default(), 61, 1.0);
        r.times.set_solve(&median(samples).unwrap(), of_rounds);
        r
    };
    let six = of(&[1.0, 1.1, 1.2, 1.2, 1.3, 1.5], false);
    let three = of(&[1.0, 1.2, 1.5], false);
    let rounds = of(&[1.0, 1.2, 1.2, 1.3, 1.5], true);
    assert_eq!(solve(&six), "1.200 [1.000, 1.500] s");
    assert_eq!(solve(&three), "1.200 (3: 1.000–1.500) s");
    assert_eq!(solve(&rounds), "1.200 (5: 1.000–1.500) s");
    assert_eq!(solve(&of(&[1.2], false)), "1.200 s");
    let interval = "±, [low, high]: 95 % confidence interval of the median solve";
    let range = "(n: low–high): range of n solves, too few for a 95 % interval, which takes six";
    let of_rounds = "(n: low–high): range of the medians of n rounds, too few for a 95 % interval, which \
                     takes six";
    assert_eq!(marks(&[six.clone(), three, six, rounds]), [interval, range, of_rounds]);
    assert_eq!(marks(&[of(&[1.2], false)]), [""; 0]);
}
