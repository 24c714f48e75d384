//! Several right-hand sides at once, with the real solvers.

use std::fmt::Write as _;
use std::path::Path;

use assert_cmd::Command;
use bilu_bench::base::status::Status;
use bilu_bench::case::ReadAs;
use bilu_bench::matrix::file::read_matrix;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;

/// Standard error of a run that ends with `code`.
fn ran(arguments: &[&str], code: i32) -> String {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    let output = command.env("NO_COLOR", "1").arg("run").args(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    err
}

fn records(arguments: &[&str], folder: &Path) -> Vec<Record> {
    let file = folder.join("a.csv");
    let path = file.to_str().unwrap();
    ran(&[arguments, &["-q", "--max-repetitions", "1", "--force", "-o", path]].concat(), 0);
    read(&file).unwrap().records
}

/// Rows of an array in a file.
fn rows(path: &Path) -> Vec<Vec<f64>> {
    let a = read_matrix(path, ReadAs::Expanded).unwrap().matrix;
    (0..a.rows()).map(|i| (0..a.cols()).map(|j| a.get(i, j).unwrap_or(0.0)).collect()).collect()
}

/// An array of n rows, of which column j counts up in steps of j + 1.
fn array(n: usize, columns: usize) -> String {
    let mut text = format!("%%MatrixMarket matrix array real general\n{n} {columns}\n");
    for j in 0..columns {
        (0..n).for_each(|i| writeln!(text, "{}", 1 + i * (j + 1) % 7).unwrap());
    }
    text
}

#[test]
fn several_at_once_are_solved_for_as_each_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (count, solver, precond, more) in [
        (8, "block-cg", "ic", &["--ordering", "red-black"][..]),
        (5, "block-cg", "ic", &["--fill", "1", "--backend", "cpu-mt"]),
        (7, "block-gmres", "bilu", &["--side", "left", "--scaling", "ruiz"]),
        (
            8,
            "block-gmres",
            "jacobi",
            &["--block-size", "5", "--matrix-format", "bsr", "--backend", "cpu-mt"],
        ),
    ] {
        let case = ["--matrix", "poisson3d:9", "--rtol", "1e-10", "--precond", precond];
        let case = [&case[..], more, &["--solver", solver, "--rhs"]].concat();
        let (of_all, of_count) = (at("all.npy"), format!("random*{count}"));
        let several =
            records(&[&case[..], &[&of_count, "--solution", &of_all]].concat(), folder.path());
        let [record] = &several[..] else { panic!("{several:?}") };
        assert_eq!((record.status, record.size.rhs_count), (Status::Converged, Some(count)));
        let widened = record.reason.as_deref().is_some_and(|reason| {
            reason.contains(&format!("in 8 columns, {} of them zero: faster", 8 - count))
        });
        assert_eq!(widened, count < 8, "{record:?}");
        assert!(record.convergence.true_residual.unwrap() < 1e-9, "{record:?}");
        let (one, all) = (record.times.solve_s_per_rhs.unwrap(), record.times.solve_s.unwrap());
        assert!((count as f64 * one - all).abs() < 1e-12 * all);
        let traffic = &record.traffic;
        assert!(traffic.memory_bytes.is_some() && traffic.dot_s.or(traffic.axpy_s).is_none());
        assert!(traffic.spmv_s.zip(traffic.apply_s).is_some());
        let all = rows(Path::new(&of_all));
        assert_eq!((all.len(), all[0].len()), (729, count));
        for j in [0, count - 1] {
            let (of_one, rhs) = (at("one.mtx"), format!("random:{}", j + 1));
            let alone =
                records(&[&case[..], &[&rhs, "--solution", &of_one]].concat(), folder.path());
            assert_eq!((alone[0].size.rhs_count, alone[0].times.solve_s_per_rhs), (None, None));
            let text = std::fs::read_to_string(&of_one).unwrap();
            for (line, row) in text.lines().skip(2).zip(&all) {
                let x: f64 = line.parse().unwrap();
                assert!((x - row[j]).abs() < 1e-6 * x.abs().max(1.0), "{solver} {j}: {x} {row:?}");
            }
            std::fs::remove_file(of_one).unwrap();
        }
        std::fs::remove_file(of_all).unwrap();
    }
}

#[test]
fn the_columns_of_a_file_are_right_hand_sides() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("b.mtx"), array(64, 3)).unwrap();
    let base =
        ["--matrix", "poisson3d:4", "--precond", "ic", "--solver", "block-cg", "--rtol", "1e-9"];
    let run = |rhs: &str| {
        let x = at("x.npy");
        let all = records(&[&base[..], &["--rhs", rhs, "--solution", &x]].concat(), folder.path());
        std::fs::copy(&x, at("b.npy")).unwrap();
        let x = if all[0].size.rhs_count.is_some() { rows(Path::new(&x)) } else { Vec::new() };
        std::fs::remove_file(at("x.npy")).unwrap();
        (all[0].clone(), x)
    };
    let (three, x) = run(&at("b.mtx"));
    assert_eq!((three.size.rhs_count, three.status), (Some(3), Status::Converged));
    // in the arithmetic of this test, b - A x of the first row
    let first = |j: usize| 6.0 * x[0][j] - x[1][j] - x[4][j] - x[16][j];
    for j in 0..3 {
        assert!((first(j) - 1.0).abs() < 1e-6, "{}", first(j));
    }
    let (two, of_two) = run(&format!("{}*2", at("b.mtx")));
    assert_eq!(two.size.rhs_count, Some(2));
    assert_ne!(two.hash.rhs_hash, three.hash.rhs_hash);
    for (two, three) in of_two.iter().zip(&x) {
        assert!((two[0] - three[0]).abs() < 1e-7 && (two[1] - three[1]).abs() < 1e-7);
    }
    // what was written last has two columns
    let (of_array, _) = run(&at("b.npy"));
    assert_eq!(of_array.size.rhs_count, Some(2));
    let (one, _) = run(&format!("{}*1", at("b.mtx")));
    assert_eq!((one.size.rhs_count, one.status), (None, Status::Converged));
}

#[test]
fn what_cannot_be_solved_for_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("b.mtx"), array(64, 3)).unwrap();
    let file = format!("file:{}", at("b.mtx"));
    let (beyond, short) = (format!("{file}*4"), at("c.mtx"));
    std::fs::write(&short, array(63, 2)).unwrap();
    let many = at("m.mtx");
    std::fs::write(&many, array(64, 65)).unwrap();
    let across = at("t.mtx");
    std::fs::write(&across, array(2, 64)).unwrap();
    let solve_for_several = "`block-cg` and `block-gmres` solve for several";
    for (rhs, more, message) in [
        (
            "random*8",
            &["--solver", "cg"][..],
            format!(
                "`random*8`: 8 right-hand sides, and `cg` solves for one at a time: {solve_for_several}"
            ),
        ),
        (
            &file,
            &["--solver", "gmres"],
            format!(
                "`{file}`: 3 right-hand sides, and `gmres` solves for one at a time: {solve_for_several}"
            ),
        ),
        (
            "random*8",
            &["--backend", "mpi"],
            "`random*8`: 8 right-hand sides are solved for on `cpu` and `cpu-mt`, not on `mpi`"
                .into(),
        ),
        ("ones*2", &[], "right-hand side `ones*2`: all columns would be equal".into()),
        ("own*2", &[], "right-hand side `own*2`: `own` has one column".into()),
        ("random*8", &["--kind", "spmv"], "products alone have one vector".into()),
        ("random*65", &[], "right-hand side `random*65`: 1 to 64 can be solved for at once".into()),
        ("random*0", &[], "right-hand side `random*0`: 1 to 64 can be solved for at once".into()),
        ("random*x", &[], "unknown right-hand side `random*x`".into()),
        (&beyond, &[], format!("{}: 3 columns where 4 are asked for", at("b.mtx"))),
        (&short, &[], format!("{short}: 63 values for a matrix of 64 rows")),
        (&many, &[], format!("{many}: 65 columns for a matrix of 64 rows")),
        (&across, &[], "a row for each unknown is read: transpose the array".into()),
    ] {
        let out = at("no.csv");
        let base = ["--matrix", "poisson3d:4", "--solver", "block-gmres", "--rhs", rhs, "-o", &out];
        // a later flag overrides
        let base = if more.first() == Some(&"--solver") {
            [&["--matrix", "poisson3d:4", "--rhs", rhs, "-o", &out], more].concat()
        } else {
            [&base[..], more].concat()
        };
        let err = ran(&base, 2);
        assert!(err.contains(&message), "{rhs}: {err} lacks {message}");
        assert!(!Path::new(&out).exists());
    }
    let sequence =
        ["--sequence", "reservoir:4,steps=2", "--rhs", "random*2", "--solver", "block-gmres"];
    let err = ran(&sequence, 2);
    assert!(err.contains("2 right-hand sides, and a sequence has one for each step"), "{err}");
}

#[test]
fn one_and_several_are_cases_of_one_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let case = ["--matrix", "poisson3d:9", "--rhs", "random,random*8", "--solver", "cg,block-cg"];
    let more = ["--precond", "ic", "--max-repetitions", "1", "-q", "-o", path.to_str().unwrap()];
    ran(&[&case[..], &more].concat(), 1);
    let all = read(&path).unwrap().records;
    let of = |rhs: &str, solver: &str| {
        all.iter().find(|r| r.case.rhs == rhs && r.case.solver == solver).unwrap()
    };
    let refused = of("random*8", "cg");
    assert_eq!(refused.status, Status::Unsupported);
    assert!(refused.reason.as_ref().unwrap().contains("`cg` solves for one at a time"));
    let [one, eight] = [of("random", "block-cg"), of("random*8", "block-cg")];
    assert!([one, eight, of("random", "cg")].iter().all(|r| r.status == Status::Converged));
    // matrix and factors are read once, vectors eight times
    let vectors = 8 * 729;
    let more = |of: fn(&Record) -> Option<usize>| of(eight).unwrap() - of(one).unwrap();
    assert_eq!(more(|r| r.traffic.spmv_bytes), 7 * 2 * vectors);
    assert_eq!(more(|r| r.traffic.apply_bytes), 7 * 4 * vectors);
    let rate = |r: &Record| r.traffic.spmv_gflops.unwrap() * r.traffic.spmv_s.unwrap();
    assert!((rate(eight) / rate(one) - 8.0).abs() < 1e-6);
}

#[test]
fn a_process_of_its_own_solves_for_several_too() {
    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x.mtx");
    let of =
        ["--matrix", "poisson3d:5", "--rhs", "random*3", "--solver", "block-gmres", "--isolate"];
    let all = records(&[&of[..], &["--solution", x.to_str().unwrap()]].concat(), folder.path());
    assert_eq!((all[0].size.rhs_count, all[0].status), (Some(3), Status::Converged));
    assert!(
        std::fs::read_to_string(x)
            .unwrap()
            .starts_with("%%MatrixMarket matrix array real general\n125 3\n")
    );
}
