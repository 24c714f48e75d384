//! Scaling, dropping and shifts through the program: what is solved is another system, what is recorded is of the one
//! that is given.

use std::path::Path;
use std::process::Command;

use bilu_bench::base::status::Status;
use bilu_bench::case::ReadAs;
use bilu_bench::matrix::{Csr, market};
use bilu_bench::problem::load;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;

/// Runs the program in a folder; its exit code and what it printed.
fn program(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The records of short runs.
fn ran(folder: &Path, arguments: &[&str]) -> Vec<Record> {
    let more = ["--max-repetitions", "1", "-q", "--force", "-o", "r.csv"];
    let (_, said) = program(folder, &[&["run"][..], arguments, &more].concat());
    read(&folder.join("r.csv")).unwrap_or_else(|e| panic!("{e}: {said}")).records
}

fn write(folder: &Path, name: &str, a: &Csr) {
    market::write_matrix(&folder.join(name), a, market::Symmetry::General).unwrap();
}

/// `R A C` for powers of two far apart.
fn badly_scaled(a: &Csr) -> Csr {
    let mut scaled = a.clone();
    let power = |i: usize, by: usize| 2.0_f64.powi((i * by % 31) as i32 - 15);
    for i in 0..a.rows() {
        for at in a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize {
            scaled.values_mut()[at] *= power(i, 7) * power(a.col_ind()[at] as usize, 11);
        }
    }
    scaled
}

#[test]
fn a_scaled_system_has_the_solution_and_the_residual_of_the_given_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let a = badly_scaled(&load("convdiff3d:9x8x7,px=0.3", ReadAs::Expanded).unwrap().matrix);
    write(at, "a.mtx", &a);
    let settings =
        ["--matrix", "a.mtx", "--rhs", "a-ones", "--rtol", "1e-13", "--block-size", "1,4"];
    let scalings = ["--scaling", "none,rows,ruiz", "--backend", "cpu,cpu-mt,mpi"];
    let rest = ["--subdomains", "3", "--solution", "x-{scaling}-{block-size}-{backend}.mtx"];
    let records = ran(at, &[&settings[..], &scalings, &rest].concat());
    assert_eq!(records.len(), 3 * 2 * 3);
    for record in records.iter().filter(|r| r.times.scaling_s.is_some()) {
        let Record { case, status, reason, convergence, .. } = record;
        let reason = reason.clone().unwrap_or_default();
        assert!(reason.starts_with("rows scaled by 2^"), "{case:?}: {reason}");
        let (b, backend) = (case.block_size, &case.backend);
        let scaling = format!("{:?}", case.scaling).to_lowercase();
        let file = at.join(format!("x-{scaling}-{b}-{backend}.mtx"));
        let x = market::read_vector(&file, None).unwrap().values;
        let mut r = vec![0.0; a.rows()];
        a.multiply(&vec![1.0; a.rows()], &mut r);
        let rhs = r.clone();
        a.multiply(&x, &mut r);
        let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
        let found =
            norm(&mut rhs.iter().zip(&r).map(|(b, r)| b - r)) / norm(&mut rhs.iter().copied());
        let recorded = convergence.true_residual.unwrap();
        assert!((found / recorded - 1.0).abs() < 1e-6, "{case:?}: {found:e} {recorded:e}");
        if scaling == "ruiz" {
            assert!(*status == Status::Converged, "{case:?}: {reason}");
            let worst = x.iter().map(|v| (v - 1.0).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-4, "{case:?}: {worst:e}");
        }
    }
    assert!(records.iter().filter(|r| r.times.scaling_s.is_none()).count() == 6);
}

#[test]
fn scaling_that_was_undone_leaves_the_bits_of_the_iterations() {
    // powers of two change no digit, so that both systems are the same to the last bit
    let folder = tempfile::tempdir().unwrap();
    let plain = load("poisson3d:9x8x7", ReadAs::Expanded).unwrap().matrix;
    let mut rows = Csr::clone(&plain);
    for i in 0..rows.rows() {
        let range = plain.row_ptr()[i] as usize..plain.row_ptr()[i + 1] as usize;
        let factor = 2.0_f64.powi((i * 5 % 23) as i32);
        rows.values_mut()[range].iter_mut().for_each(|v| *v *= factor);
    }
    write(folder.path(), "plain.mtx", &plain);
    write(folder.path(), "rows.mtx", &rows);
    let settings = ["--matrix", "plain.mtx,rows.mtx", "--rhs", "a-ones", "--history", "100"];
    let records = ran(
        folder.path(),
        &[&settings[..], &["--scaling", "rows", "--precond", "bilu,ilut"]].concat(),
    );
    let [one, two, three, four] = &records[..] else { panic!("{}", records.len()) };
    for (one, other) in [(one, three), (two, four)] {
        assert_eq!(one.convergence.residual_history, other.convergence.residual_history);
        assert!(one.convergence.residual_history.len() > 5);
        assert_eq!(one.quality, other.quality);
    }
}

#[test]
fn what_keeps_no_symmetry_is_refused_where_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let reason = |arguments: &[&str]| {
        let records = ran(folder.path(), &[&["--matrix", "poisson3d:5"][..], arguments].concat());
        assert_eq!(records.len(), 1);
        (records[0].status, records[0].reason.clone().unwrap_or_default())
    };
    let unsupported = |text: &str| (Status::Unsupported, text.to_owned());
    assert_eq!(
        reason(&["--solver", "cg", "--scaling", "rows"]),
        unsupported(
            "`cg` needs a symmetric matrix, and scaling by `rows` leaves none; `ruiz` does"
        )
    );
    assert_eq!(
        reason(&["--precond", "ic", "--scaling", "rows"]).1,
        "`ic` needs a symmetric matrix, and scaling by `rows` leaves none; `ruiz` does"
    );
    assert_eq!(
        reason(&["--solver", "cg", "--precond", "ic", "--scaling", "ruiz"]).0,
        Status::Converged
    );
    assert_eq!(
        reason(&["--solver", "cg", "--drop-tolerance", "0.1"]),
        unsupported(
            "`cg` needs a symmetric preconditioner, and with a drop tolerance there is none"
        )
    );
    assert_eq!(
        reason(&["--solver", "qmr", "--drop-tolerance", "0.1"]),
        unsupported(
            "`qmr` needs the transposed preconditioner, and with a drop tolerance there is none"
        )
    );
    assert_eq!(reason(&["--solver", "cg", "--precond", "ilut"]).0, Status::Unsupported);
}

#[test]
fn tolerances_that_drop_everything_leave_the_diagonal_and_a_remark() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = ["--matrix", "poisson3d:6", "--rhs", "ones", "--history", "100"];
    let of = |more: &[&str]| ran(folder.path(), &[&sweep[..], more].concat()).remove(0);
    let jacobi = of(&["--precond", "jacobi"]);
    for more in [
        &["--drop-tolerance", "1e6"][..],
        &["--precond", "ilut:tau=1000"],
        &["--precond", "ilut:p=0"],
    ] {
        let record = of(more);
        assert_eq!(record.status, Status::Converged);
        assert_eq!(record.factor.factor_blocks, Some(216));
        assert_eq!(
            record.reason.as_deref(),
            Some("all but the diagonal of the factors was dropped")
        );
        let [one, other] = [&record, &jacobi].map(|r| &r.convergence.residual_history);
        assert_eq!(one, other);
    }
}

#[test]
fn a_shift_is_found_and_recorded_or_the_run_is_a_breakdown() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // a saddle point: no diagonal in the last row
    let a = Csr::new(3, 3, vec![0, 2, 4, 6], vec![0, 2, 1, 2, 0, 1], vec![2., 1., 2., 1., 1., 1.]);
    write(at, "saddle.mtx", &a.unwrap());
    let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 0], vec![1.0, 0.0]).unwrap();
    write(at, "nothing.mtx", &a);
    let sweep = ["--shift", "0,search", "--solver", "gmres,qmr"];
    // fill makes a pivot
    let records = ran(at, &[&sweep[..], &["--matrix", "saddle.mtx", "--fill", "1"]].concat());
    assert!(records.iter().all(|r| r.status == Status::Converged), "{records:?}");
    let used: Vec<Option<f64>> = records.iter().map(|r| r.factor.shift_used).collect();
    assert_eq!(used, [None, None, Some(0.0), Some(0.0)]);
    let records = ran(at, &["--shift", "search", "--matrix", "nothing.mtx"]);
    assert_eq!(records[0].status, Status::Breakdown);
    assert_eq!(
        records[0].reason.as_deref(),
        Some(
            "no shift up to 4 times the diagonal makes a usable preconditioner: singular diagonal \
             block in block row 1"
        )
    );
    // the last row comes first: no pivot without a shift
    let a = Csr::new(3, 3, vec![0, 2, 4, 6], vec![1, 2, 0, 1, 0, 2], vec![1., 1., 1., 2., 1., 2.]);
    write(at, "first.mtx", &a.unwrap());
    let records = ran(at, &[&sweep[..], &["--matrix", "first.mtx"]].concat());
    let ended: Vec<Status> = records.iter().map(|r| r.status).collect();
    let [broken, solved] = [Status::Breakdown, Status::Converged];
    assert_eq!(ended, [broken, broken, solved, solved]);
    let shift = 1.0 / 1024.0;
    for record in &records[2..] {
        assert_eq!(record.factor.shift_used, Some(shift));
        let reason = record.reason.as_deref().unwrap();
        assert!(reason.contains("factors of A + 0.0009765625 diag(A)"), "{reason}");
    }
}

#[test]
fn words_of_the_new_settings_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (
            ["--shift", "-1"],
            "error: --shift: `-1` is outside the range: 0 to 1e6\nhint: a number, or `search`\n",
        ),
        (
            ["--shift", "seek"],
            "error: --shift: `seek` is not a number\nhint: a number, or `search`\n",
        ),
        (
            ["--drop-tolerance", "nan"],
            "error: --drop-tolerance: `nan` is outside the range: 0 to 1e6\n",
        ),
        (
            ["--precond", "ilut:tau=-0.5"],
            "error: --precond: `ilut`: `tau=-0.5` is outside the range: above 0 and below 1000000\n",
        ),
        (
            ["--scaling", "row"],
            "error: --scaling: unknown scaling `row`\nhint: did you mean `rows`? known: none, rows, ruiz\n",
        ),
    ] {
        let all = [&["run", "--matrix", "poisson3d:3"][..], &arguments].concat();
        assert_eq!(program(folder.path(), &all), (Some(2), said.to_owned()), "{arguments:?}");
    }
}

#[test]
fn info_runs_ilu_and_says_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let a = Csr::new(3, 3, vec![0, 2, 4, 6], vec![1, 2, 0, 1, 0, 2], vec![1., 1., 1., 2., 1., 2.]);
    write(folder.path(), "first.mtx", &a.unwrap());
    let (code, text) =
        program(folder.path(), &["matrix", "info", "first.mtx", "--fill", "none", "--ilu"]);
    assert_eq!(code, Some(0), "{text}");
    let advice =
        text.lines().find(|line| line.starts_with("advice")).unwrap_or_else(|| panic!("{text}"));
    assert!(
        advice.contains("ILU fails as it is; what helps: ") && advice.contains("--shift search"),
        "{advice}"
    );
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(" bilu ") || line.starts_with(" ilut "))
        .collect();
    assert_eq!(rows.len(), 3 * 4 + 1, "{text}");
    assert!(rows[0].contains("breakdown") && rows[2].contains("converged"), "{text}");
    let poisson = ["matrix", "info", "poisson3d:6", "--fill", "none", "--ilu", "--json"];
    let (_, text) = program(folder.path(), &poisson);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["advice"].as_str().unwrap().starts_with("ILU works as it is: "), "{text}");
    assert_eq!(json["ilu"].as_array().unwrap().len(), 13);
    assert_eq!(json["ilu"][0]["status"], "converged");
    assert_eq!(json["ilu"][0]["growth"], 1.0);
}
