use super::*;
use crate::record::samples::record;
use crate::report::ReportFormat;

/// A record of a GPU: seconds of an application, of the factorisation and of the solve; the
/// numeric phase takes twice as long as the factorisation.
fn gpu(case: &Case, backend: &str, algorithm: Trisolve, seconds: [f64; 3]) -> Record {
    let [apply, factor, solve] = seconds;
    let trisolve = if backend == "cuda" { algorithm } else { Trisolve::AUTO };
    let mut r = record(Case { trisolve, ..case.on(backend) }, 50, solve);
    r.factor.trisolve_used =
        Some(if algorithm == Trisolve::AUTO { Trisolve::LEVELS } else { algorithm });
    r.traffic.apply_s = Some(apply);
    r.traffic.percent_of_bandwidth = Some(12.345);
    r.times.numeric_kernel_s = Some(factor);
    r.times.numeric_s = Some(2.0 * factor);
    r.environment.device = format!("Some GPU of {backend}");
    r
}

fn system(matrix: &str, fill: usize) -> Case {
    Case { matrix: matrix.into(), fill, ..Case::default() }
}

/// One system of ours against cuSPARSE, `faster` times as fast in everything.
fn pair(case: &Case, faster: f64) -> [Record; 2] {
    [
        gpu(case, "cuda", Trisolve::SYNCFREE, [1e-3, 2e-3, 0.1]),
        gpu(case, "cusparse", Trisolve::CUSPARSE, [1e-3 * faster, 2e-3 * faster, 0.1 * faster]),
    ]
}

fn number(row: &Map<String, Value>, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

#[test]
fn each_side_competes_with_its_best() {
    let case = system("poisson3d:64", 0);
    let records = [
        gpu(&case, "cuda", Trisolve::LEVELS, [4e-3, 3e-3, 0.4]),
        gpu(&case, "cuda", Trisolve::SYNCFREE, [1e-3, 2e-3, 0.1]),
        // chosen, but not the best
        gpu(&case, "cuda", Trisolve::AUTO, [2e-3, 2.5e-3, 0.2]),
        // its solve with our factors counts for cuSPARSE, its factorisation for us, all of it for
        // nobody
        gpu(&case, "cuda", Trisolve::CUSPARSE, [5e-3, 1e-3, 0.01]),
        gpu(&case, "cusparse", Trisolve::CUSPARSE, [6e-3, 8e-3, 0.6]),
    ];
    let report = report(&records).unwrap();
    let [row] = &report.rows[..] else { panic!("one system") };
    assert_eq!(
        (row["trisolve-used"].as_str(), row["group"].as_str()),
        (Some("syncfree"), Some(GROUPS[0]))
    );
    let near = |key, want: f64| {
        let got = number(row, key);
        assert!((got / want - 1.0).abs() < 1e-12, "{key}: {got}");
    };
    near("apply-cuda-s", 1e-3);
    near("apply-cusparse-s", 5e-3);
    near("apply-ratio", 5.0);
    near("apply-auto-ratio", 2.5);
    near("numeric-kernel-ratio", 8.0);
    near("numeric-and-solve-cuda-s", 0.104);
    near("numeric-and-solve-ratio", 0.616 / 0.104);
    near("percent-of-bandwidth", 12.345);
}

#[test]
fn groups_have_geometric_means_and_name_their_worst() {
    let random = Case { ordering: "random:1".parse().unwrap(), ..system("poisson3d:64", 0) };
    let blocks = Case { block_size: 3, ..system("blockpoisson3d:64,b=3", 0) };
    let mut records = Vec::new();
    records.extend(pair(&system("poisson3d:64", 0), 8.0));
    records.extend(pair(&blocks, 2.0));
    records.extend(pair(&system("poisson3d:64", 2), 9.0));
    records.extend(pair(&random, 1.0));
    records.extend(pair(&system("fem-p1:parabolic_fem", 1), 4.0));
    let report = report(&records).unwrap();
    let groups: Vec<&str> = report.rows.iter().map(|r| r["group"].as_str().unwrap()).collect();
    assert_eq!(groups, [GROUPS[0], GROUPS[0], GROUPS[1], GROUPS[2], GROUPS[2]]);
    let means: Vec<String> = report.sheets[1].rows.iter().map(|r| r[1..].join("; ")).collect();
    assert_eq!(means.len(), 16);
    let block = "blockpoisson3d:64,b=3, b = 3, k = 0";
    let moved = "poisson3d:64, order random:1, b = 1, k = 0";
    assert_eq!(means[0], format!("solve; 2 of 2; 4.00; 2.00; {block}"));
    assert_eq!(means[1], format!("factor; 2 of 2; 4.00; 2.00; {block}"));
    assert_eq!(means[2], format!("numeric + Krylov; 2 of 2; 4.00; 2.00; {block}"));
    // 8 times 0.1 s, twice 0.1 s, and 40 ms of setup with each
    assert_eq!(means[3], format!("total; 2 of 2; 3.21; 1.71; {block}"));
    assert_eq!(means[4], "solve; 1 of 1; 9.00; 9.00; poisson3d:64, b = 1, k = 2");
    assert_eq!(means[8], format!("solve; 2 of 2; 2.00; 1.00; {moved}"));
    // (8 2 9 1 4)^(1/5)
    assert_eq!(means[12], format!("solve; 5 of 5; 3.57; 1.00; {moved}"));
    insta::assert_snapshot!(ReportFormat::Markdown.render(&report).unwrap());
}

#[test]
fn solves_to_less_than_the_tolerance_are_marked() {
    let mut records = pair(&system("poisson3d:64", 0), 2.0);
    records[1].convergence.true_residual = Some(3.195e-6);
    let sheet = &report(&records).unwrap().sheets[0];
    assert_eq!(sheet.column("factor cuSPARSE"), ["4.000 ms"]);
    assert_eq!(sheet.column("numeric + Krylov ours"), ["104.0 ms"]);
    assert_eq!(sheet.column("numeric + Krylov cuSPARSE"), ["208.0 ms†"]);
    let note = "the true residual is above rtol, at most 3.20 times";
    assert!(sheet.notes[2].ends_with(note), "{:?}", sheet.notes);
}

#[test]
fn what_is_missing_is_named() {
    let case = system("poisson3d:64", 3);
    let mut failed = gpu(&case, "cusparse", Trisolve::CUSPARSE, [1.0, 1.0, 1.0]);
    failed.status = Status::NotConverged;
    let mut absent = gpu(&system("poisson3d:200", 3), "cusparse", Trisolve::CUSPARSE, [1.0; 3]);
    absent.status = Status::OutOfMemory;
    (absent.traffic.apply_s, absent.times.numeric_kernel_s) = (None, None);
    let ours = gpu(&case, "cuda", Trisolve::LEVELS, [0.5, 0.25, 1.0]);
    let report = report(&[ours, failed, absent]).unwrap();
    assert_eq!(
        report.sheets[1].notes,
        [
            "poisson3d:64, b = 1, k = 3: no ratio of numeric + Krylov, total (1 record: \
             cusparse not-converged)",
            "poisson3d:200, b = 1, k = 3: no ratio of solve, factor, numeric + Krylov, total \
             (1 record: cusparse out-of-memory)",
        ]
    );
    assert_eq!(report.sheets[1].rows[0][2], "1 of 2");
    assert_eq!(number(&report.rows[0], "apply-ratio"), 2.0);
    assert!(report.rows[0]["numeric-and-solve-ratio"].is_null());
}

#[test]
fn every_algorithm_has_a_column_and_a_mean() {
    let (near, far) = (system("poisson3d:64", 0), system("poisson3d:120", 0));
    let mut absent = gpu(&far, "cuda", Trisolve::LEVELS, [1.0; 3]);
    absent.status = Status::Unsupported;
    absent.traffic.apply_s = None;
    let mut records = vec![
        gpu(&near, "cuda", Trisolve::LEVELS, [4e-3, 3e-3, 0.4]),
        gpu(&near, "cuda", Trisolve::WAVEFRONT, [1e-3, 3e-3, 0.4]),
        // what was chosen is not an algorithm of its own
        gpu(&near, "cuda", Trisolve::AUTO, [9e-3, 3e-3, 0.4]),
        gpu(&near, "cusparse", Trisolve::CUSPARSE, [8e-3, 8e-3, 0.6]),
        absent,
        gpu(&far, "cuda", Trisolve::WAVEFRONT, [2e-3, 3e-3, 0.4]),
        gpu(&far, "cusparse", Trisolve::CUSPARSE, [4e-3, 8e-3, 0.6]),
    ];
    for record in &mut records {
        (record.factor.levels_lower, record.factor.levels_upper) = (Some(190), Some(191));
        if record.status == Status::Converged {
            record.status = Status::Complete;
        }
    }
    let told = report(&records).unwrap();
    let [_, algorithms, means] = &told.sheets[..] else { panic!("three sheets") };
    assert_eq!(
        algorithms.heads(),
        ["matrix", "levels L/U", "by levels", "by wavefront", "cuSPARSE"]
    );
    assert_eq!(
        algorithms.rows[0][1..],
        ["190/191", "4.000 ms (12.3 %)", "1.000 ms (12.3 %)", "8.000 ms (12.3 %)"]
    );
    assert_eq!(algorithms.rows[1][2..], ["", "2.000 ms (12.3 %)", "4.000 ms (12.3 %)"]);
    let of = |name: &str| means.rows.iter().find(|r| r[0] == "all" && r[1] == name).unwrap();
    // sqrt(8 x 2), and the one algorithm that the second system lacks
    assert_eq!(of("solve, wavefront")[2..5], ["2 of 2", "4.00", "2.00"]);
    assert_eq!(of("solve, levels")[2..5], ["1 of 2", "2.00", "2.00"]);
    // nothing was to converge
    assert_eq!(means.notes, [""; 0]);
    // one algorithm is no comparison
    records.retain(|r| r.case.trisolve != Trisolve::LEVELS);
    assert_eq!(report(&records).unwrap().sheets.len(), 2);
}

#[test]
fn both_sides_are_needed_and_each_case_once() {
    let [ours, theirs] = pair(&system("poisson3d:64", 0), 2.0);
    let error = report(std::slice::from_ref(&ours)).unwrap_err();
    assert_eq!(error.to_string(), "no system has records of both `cuda` and `cusparse`");
    let error = report(&[ours.clone(), theirs, ours]).unwrap_err();
    assert_eq!(error.to_string(), "two records of one case (`poisson3d:64` on `cuda`)");
}
