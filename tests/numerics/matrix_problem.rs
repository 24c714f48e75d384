//! Generated matrices against reference values, sources by name and path, right-hand sides.

use std::path::{Path, PathBuf};

use bilu_bench::base::error::Error;
use bilu_bench::case::ReadAs;
use bilu_bench::matrix::cache::Cache;
use bilu_bench::matrix::market::{self, Symmetry};
use bilu_bench::matrix::{Csr, lower_triangle};
use bilu_bench::problem::{Folders, Problem, Source, right_hand_side};
use serde::Deserialize;

#[derive(Deserialize)]
struct References {
    case: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    spec: String,
    n: usize,
    nnz: usize,
    frobenius: f64,
    row_ptr_sum: u64,
    col_sum: u64,
    weighted_col_sum: u64,
    y: Vec<(usize, f64)>,
    y_norm: f64,
}

fn load_in(spec: &str, read_as: ReadAs, folders: &Folders) -> Result<Problem, Error> {
    Source::find(spec, folders)?.load(read_as, &Cache::off())
}

fn load(spec: &str) -> Result<Problem, Error> {
    load_in(spec, ReadAs::Expanded, &Folders::default())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-13 * b.abs().max(1e-3)
}

#[test]
fn generators_agree_with_the_reference() {
    let text = std::fs::read_to_string("tests/data/generators.toml").unwrap();
    let references: References = toml::from_str(&text).unwrap();
    assert_eq!(references.case.len(), 14);
    for r in references.case {
        let a = load(&r.spec).unwrap().matrix;
        let spec = &r.spec;
        assert_eq!((a.rows(), a.cols(), a.nnz()), (r.n, r.n, r.nnz), "{spec}");
        let sum = |v: &[u32]| v.iter().map(|&v| u64::from(v)).sum::<u64>();
        assert_eq!(sum(a.row_ptr()), r.row_ptr_sum, "{spec}");
        assert_eq!(sum(a.col_ind()), r.col_sum, "{spec}");
        let weighted =
            a.col_ind().iter().enumerate().map(|(k, &j)| u64::from(j) * (k as u64 % 1009));
        assert_eq!(weighted.sum::<u64>(), r.weighted_col_sum, "{spec}");
        let frobenius = a.values().iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!((frobenius / r.frobenius - 1.0).abs() < 1e-10, "{spec}: {frobenius}");
        let x: Vec<f64> = (0..r.n).map(|i| ((i * 7919 % 1000) as f64 - 500.0) / 256.0).collect();
        let mut y = vec![0.0; r.n];
        a.multiply(&x, &mut y);
        for (i, value) in r.y {
            assert!(close(y[i], value), "{spec}: y[{i}] = {} and not {value}", y[i]);
        }
        let norm = y.iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!((norm / r.y_norm - 1.0).abs() < 1e-10, "{spec}: {norm}");
    }
}

fn dense(a: &Csr) -> Vec<Vec<f64>> {
    let value = |i, j| a.get(i, j).unwrap_or(0.0);
    (0..a.rows()).map(|i| (0..a.cols()).map(|j| value(i, j)).collect()).collect()
}

#[test]
fn small_cases_by_hand() {
    let p = load("poisson3d:2x2x1").unwrap();
    assert_eq!(p.grid, Some([2, 2, 1]));
    assert_eq!(
        dense(&p.matrix),
        [
            [6.0, -1.0, -1.0, 0.0],
            [-1.0, 6.0, 0.0, -1.0],
            [-1.0, 0.0, 6.0, -1.0],
            [0.0, -1.0, -1.0, 6.0]
        ]
    );
    let c = load("convdiff3d:1x1x3,cx=1,cy=2,cz=4,pz=0.5,sigma=3").unwrap();
    assert_eq!(dense(&c.matrix), [[17.0, -2.0, 0.0], [-6.0, 17.0, -2.0], [0.0, -6.0, 17.0]]);
    // one cell of side 1: area 1/2, so masses of 1/12 and 1/24 and stiffness 1 and -1/2
    let f = load("fem-p1:2x2,dt=1").unwrap();
    let m = 1.0 / 24.0;
    let expected = [
        [4.0 * m + 1.0, m - 0.5, m - 0.5, 2.0 * m],
        [m - 0.5, 2.0 * m + 1.0, 0.0, m - 0.5],
        [m - 0.5, 0.0, 2.0 * m + 1.0, m - 0.5],
        [2.0 * m, m - 0.5, m - 0.5, 4.0 * m + 1.0],
    ];
    for (row, expected) in dense(&f.matrix).iter().zip(expected) {
        assert!(row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{row:?}");
    }
}

#[test]
fn presets_are_remarked_and_can_be_changed() {
    let p = load("fem-p1:parabolic_fem,dt=1").unwrap();
    assert_eq!((p.matrix.nnz(), p.grid), (3_674_625, Some([1025, 513, 1])));
    assert_eq!(p.remarks, ["twin of parabolic_fem: its size and entry count with made-up values"]);
    let same = load("fem-p1:1025x513,dt=1").unwrap();
    assert_eq!(same.matrix, p.matrix);
    assert!(same.remarks.is_empty());
}

#[test]
fn as_stored_is_the_lower_triangle_of_symmetric_sources_only() {
    let stored = |spec| load_in(spec, ReadAs::AsStored, &Folders::default());
    let fem = stored("fem-p1:parabolic_fem").unwrap().matrix;
    assert_eq!(fem.nnz(), 2_100_225);
    assert!((0..fem.rows()).all(|i| fem.row(i).0.last() == Some(&(i as u32))));
    let poisson = stored("poisson3d:4").unwrap().matrix;
    assert_eq!(*poisson, lower_triangle(&load("poisson3d:4").unwrap().matrix));
    assert_eq!(stored("convdiff3d:4").unwrap().matrix, poisson);
    let error = stored("convdiff3d:4,px=0.1").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`convdiff3d:4,px=0.1` is not symmetric: nothing to read as stored"
    );
    let hint = "only symmetric matrices store a triangle; read it expanded";
    assert_eq!((error.hint_text(), error.exit_code()), (Some(hint), 2));
    let error = stored("tests/data/mm/integer.mtx").unwrap_err();
    assert_eq!(
        error.to_string(),
        "tests/data/mm/integer.mtx: a general file cannot be read as stored"
    );
}

#[test]
fn bad_arguments_are_named() {
    let poisson = "write `poisson3d:N|NXxNYxNZ`";
    let fem = "write `fem-p1:N|NXxNY[,dt=..]` or `fem-p1:parabolic_fem`";
    for (spec, message, hint) in [
        ("poisson3d", "`poisson3d` needs a size", poisson),
        ("poisson3d:", "`poisson3d`: the size is missing", poisson),
        ("poisson3d:0", "`poisson3d`: the size in `0` must be positive", poisson),
        ("poisson3d:-3", "`poisson3d`: `-3` in the size `-3` is not a positive integer", poisson),
        ("poisson3d:2x", "`poisson3d`: `2x` has 2 directions, not 3", poisson),
        (
            "poisson3d:2x2xa",
            "`poisson3d`: `a` in the size `2x2xa` is not a positive integer",
            poisson,
        ),
        (
            "poisson3d:99999999999",
            "`poisson3d`: `99999999999` in the size `99999999999` is too large",
            poisson,
        ),
        ("poisson3d:2000", "`poisson3d`: 8000000000 unknowns: the limit is 4294967295", poisson),
        ("poisson3d:1600", "28656640000 entries: the limit is 4294967295", "choose a smaller grid"),
        ("poisson3d:4,dt=1", "`poisson3d` has no parameter `dt`", poisson),
        ("fem-p1:4,td=1", "unknown parameter of `fem-p1` `td`", "known: dt"),
        ("fem-p1:4,dt", "`fem-p1`: `dt` is not of the form key=value", fem),
        ("fem-p1:4,dt=x", "`fem-p1`: `dt=x` is not a finite number", ""),
        ("fem-p1:4,dt=inf", "`fem-p1`: `dt=inf` is not a finite number", ""),
        ("fem-p1:4,dt=1,dt=2", "`fem-p1`: `dt` is given twice", ""),
        ("fem-p1:4,dt=-1", "`fem-p1`: `dt=-1` must not be negative", ""),
        ("fem-p1:1x4", "`fem-p1`: 1 x 4 nodes hold no triangle", "at least 2x2 nodes are needed"),
        ("fem-p1:2x2x2", "`fem-p1`: `2x2x2` has 3 directions, not 2", fem),
        (
            "fem-p1:parabolic_fen",
            "unknown preset of `fem-p1` `parabolic_fen`",
            "did you mean `parabolic_fem`? known: parabolic_fem",
        ),
        ("convdiff3d:4,cy=0", "`convdiff3d`: `cy=0` must be positive", ""),
        (
            "convdiff3d:4,sigm=0",
            "unknown parameter of `convdiff3d` `sigm`",
            "did you mean `sigma`? known: cx, cy, cz, px, py, pz, sigma",
        ),
    ] {
        let error = load(spec).expect_err(spec);
        assert_eq!(error.to_string(), message, "{spec}");
        assert_eq!(error.hint_text().unwrap_or_default(), hint, "{spec}");
        assert_eq!(error.exit_code(), 2, "{spec}");
    }
}

#[test]
fn absent_and_unknown_matrices_say_what_to_do() {
    for (spec, message, hint) in [
        (
            "parabolic_fem",
            "matrix `parabolic_fem` is not on this machine",
            "fetch it with `bilu-bench matrix get parabolic_fem`, or use its twin `fem-p1:parabolic_fem`",
        ),
        (
            "atmosmodd",
            "matrix `atmosmodd` is not on this machine",
            "fetch it with `bilu-bench matrix get atmosmodd`, or use its twin `convdiff3d:atmosmodd`",
        ),
        (
            "thermal2",
            "matrix `thermal2` is not on this machine",
            "fetch it with `bilu-bench matrix get thermal2`",
        ),
        (
            "nornebox_b3",
            "matrix `nornebox_b3` is not on this machine",
            "put `nornebox_b3.mtx.gz` in a folder named by BILU_BENCH_MATRICES",
        ),
        (
            "poison3d:60",
            "unknown matrix `poison3d:60`",
            "did you mean `poisson3d`? `bilu-bench matrix list` shows all",
        ),
        (
            "qqq",
            "unknown matrix `qqq`",
            "`bilu-bench matrix list` shows all; a file is named by its path",
        ),
        ("no/such.mtx", "cannot open `no/such.mtx`: No such file or directory (os error 2)", ""),
    ] {
        let error = load(spec).expect_err(spec);
        assert_eq!(error.to_string(), message, "{spec}");
        assert_eq!(error.hint_text().unwrap_or_default(), hint, "{spec}");
    }
}

/// Three rows, with files of right-hand sides as given.
fn system(folder: &Path, files: &[(&str, &[f64])]) -> PathBuf {
    let a = Csr::new(3, 3, vec![0, 2, 3, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let path = folder.join("a.mtx.gz");
    market::write_matrix(&path, &a, Symmetry::General).unwrap();
    for (name, values) in files {
        market::write_vector(&folder.join(name), values).unwrap();
    }
    path
}

#[test]
fn files_are_found_by_path_and_name_with_their_right_hand_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = system(folder.path(), &[("a_b.mtx.gz", &[1.0, 2.0, 3.0]), ("b.mtx", &[0.0])]);
    let by_path = load(path.to_str().unwrap()).unwrap();
    assert_eq!((by_path.name.as_str(), by_path.matrix.nnz(), by_path.grid), ("a", 4, None));
    assert_eq!(right_hand_side(&by_path, "own").unwrap(), [1.0, 2.0, 3.0]);

    let search = vec![folder.path().join("none"), folder.path().into()];
    let folders = Folders { search, data: None };
    let by_name = load_in("a", ReadAs::Expanded, &folders).unwrap();
    assert_eq!(by_name.matrix, by_path.matrix);
    let folders = Folders { search: Vec::new(), data: Some(folder.path().into()) };
    assert_eq!(load_in("a", ReadAs::Expanded, &folders).unwrap().own_rhs, by_path.own_rhs);

    // `_rhs` goes before `_b`
    market::write_vector(&folder.path().join("a_rhs.mtx"), &[7.0; 3]).unwrap();
    assert_eq!(load(path.to_str().unwrap()).unwrap().own_rhs, Some(vec![7.0; 3]));
}

#[test]
fn right_hand_sides_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = system(folder.path(), &[("other.mtx", &[5.0, 6.0, 7.0])]);
    let p = load(path.to_str().unwrap()).unwrap();
    assert_eq!(right_hand_side(&p, "ones").unwrap(), [1.0; 3]);
    assert_eq!(right_hand_side(&p, "a-ones").unwrap(), [3.0, 3.0, 4.0]);
    let file = format!("file:{}", folder.path().join("other.mtx").display());
    assert_eq!(right_hand_side(&p, &file).unwrap(), [5.0, 6.0, 7.0]);
    let random = right_hand_side(&p, "random").unwrap();
    assert_eq!(random, right_hand_side(&p, "random:1").unwrap());
    assert_ne!(random, right_hand_side(&p, "random:2").unwrap());
    assert_eq!(random.len(), 3);
    let many = load("poisson3d:20").unwrap();
    let many = right_hand_side(&many, "random").unwrap();
    assert_eq!(many[..3], random[..]);
    assert!(many.iter().all(|v| (0.0..1.0).contains(v)));
    let mean = many.iter().sum::<f64>() / many.len() as f64;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
}

#[test]
fn bad_right_hand_sides_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = system(folder.path(), &[("a_rhs.mtx", &[1.0]), ("short.mtx", &[1.0, 2.0])]);
    let p = load(path.to_str().unwrap()).unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let error = right_hand_side(&p, "own").unwrap_err();
    assert_eq!(error.to_string(), "`a` has no right-hand side of its own");
    let why =
        format!("right-hand side not used: {}: 1 value for a matrix of 3 rows", at("a_rhs.mtx"));
    assert_eq!(error.hint_text(), Some(why.as_str()));
    assert_eq!(p.remarks, [why]);

    // a matrix beside a matrix is no right-hand side either; one sparse column is
    let other = folder.path().join("a_rhs.mtx");
    std::fs::copy("tests/data/mm/sym.mtx", &other).unwrap();
    let remarks = load(path.to_str().unwrap()).unwrap().remarks;
    let why = "3 x 3 numbers: a right-hand side has one column";
    assert_eq!(remarks, [format!("right-hand side not used: {}: {why}", at("a_rhs.mtx"))]);
    let column = "%%MatrixMarket matrix coordinate real general\n3 1 1\n2 1 7\n";
    std::fs::write(&other, column).unwrap();
    let file = format!("file:{}", other.display());
    assert_eq!(right_hand_side(&p, &file).unwrap(), [0.0, 7.0, 0.0]);

    let generated = load("poisson3d:2").unwrap();
    let own = right_hand_side(&generated, "own").unwrap_err();
    assert_eq!(own.hint_text(), Some("choose `ones`, `a-ones`, `random[:SEED]` or `file:PATH`"));
    for (spec, message, hint) in [
        (
            "one",
            "unknown right-hand side `one`".into(),
            "did you mean `ones`? known: ones, a-ones, random, random:SEED, own, file:PATH, random*COUNT",
        ),
        (
            "random:x",
            "right-hand side `random:x`: `x` is not a seed".into(),
            "a seed is an integer from 0 to 2^64 - 1",
        ),
        ("file:", "right-hand side `file` without a path".into(), "write `file:PATH`"),
        (
            "file:no/b.mtx",
            "cannot open `no/b.mtx`: No such file or directory (os error 2)".into(),
            "",
        ),
        (
            &format!("file:{}", at("short.mtx")),
            format!("{}: 2 values for a matrix of 3 rows", at("short.mtx")),
            "",
        ),
        (
            "file:tests/data/mm/arraycolumns.mtx",
            "tests/data/mm/arraycolumns.mtx: 2 x 2 numbers: a right-hand side has one column"
                .into(),
            "",
        ),
        (
            "file:tests/data/mm/sym.mtx",
            "tests/data/mm/sym.mtx: 3 x 3 numbers: a right-hand side has one column".into(),
            "",
        ),
        (
            "file:tests/data/mm/arraynan.mtx",
            "tests/data/mm/arraynan.mtx:4:1: `nan` is not finite".into(),
            "the system cannot be solved with it",
        ),
    ] {
        let error = right_hand_side(&p, spec).expect_err(spec);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.hint_text().unwrap_or_default(), hint, "{spec}");
    }
}

#[test]
fn rectangular_matrices_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.mtx");
    let a = Csr::new(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
    market::write_matrix(&path, &a, Symmetry::General).unwrap();
    let error = load(path.to_str().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: the matrix is 1 x 2, not square", path.display()));
}
