//! Files of `SciPy`, `NumPy` and PETSc, and compressed ones: what is read from them, what is refused, and that other
//! programs read what is written. `tests/data/formats/make.py` made the files.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Output};

use bilu_bench::case::ReadAs;
use bilu_bench::matrix::Csr;
use bilu_bench::matrix::file::{read_matrix, read_matrix_from, read_vector, write_matrix};
use bilu_bench::matrix::market::Symmetry;
use bilu_bench::problem::load;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;
use proptest::prelude::*;

use crate::common::program::{limited, program, ran, text};
use crate::common::refused::{FORMATS, FORMATS_REFUSED, VECTORS_REFUSED};

/// Row, column and value of the matrix in the files.
const ENTRIES: [(usize, usize, f64); 20] = [
    (0, 0, 9.0),
    (0, 1, 1.0),
    (0, 2, -1.0),
    (1, 0, 0.5),
    (1, 1, 8.0),
    (1, 3, -1.5),
    (2, 0, -2.0),
    (2, 2, 9.0),
    (2, 3, 1.0),
    (2, 4, -1.0),
    (3, 1, -2.5),
    (3, 2, 0.25),
    (3, 3, 8.0),
    (3, 5, -1.5),
    (4, 2, -2.0),
    (4, 4, 9.0),
    (4, 5, 1.0),
    (5, 3, -2.5),
    (5, 4, 0.0),
    (5, 5, 8.0),
];
const N: usize = 6;
const B: [f64; N] = [1.0, -2.0, 0.5, 4.0, 1e-3, 7.0];

/// A row, a column and a value.
type Entry = (usize, usize, f64);

pub(super) fn path(file: &str) -> String {
    format!("{FORMATS}/{file}")
}

fn entries(a: &Csr) -> Vec<Entry> {
    let row = |i: usize| {
        let (cols, values) = a.row(i);
        cols.iter().zip(values).map(move |(&j, &v)| (i, j as usize, v)).collect::<Vec<_>>()
    };
    (0..a.rows()).flat_map(row).collect()
}

/// The records of `run MATRIX ARGUMENTS`.
fn records(matrix: &str, arguments: &[&str]) -> Vec<Record> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.csv").display().to_string();
    let options = ["--max-repetitions", "1", "-q", "-o", &out];
    ran(&mut program(&[&["run", matrix][..], arguments, &options].concat()), 0);
    read(Path::new(&out)).unwrap().records
}

#[test]
fn every_format_gives_the_same_matrix() {
    let stored: Vec<Entry> = ENTRIES.to_vec();
    let without_zero: Vec<Entry> = ENTRIES.into_iter().filter(|e| e.2 != 0.0).collect();
    // four by four, rounded, as integers
    let integers: Vec<Entry> =
        without_zero.iter().map(|&(i, j, v)| (i, j, (4.0 * v).round())).collect();
    // blocks have all their entries
    let mut blocks: Vec<Entry> = Vec::new();
    for i in 0..N {
        let in_row = |j: usize| ENTRIES.iter().any(|e| (e.0 / 2, e.1 / 2) == (i / 2, j / 2));
        let value = |j: usize| ENTRIES.iter().find(|e| (e.0, e.1) == (i, j)).map_or(0.0, |e| e.2);
        blocks.extend((0..N).filter(|&j| in_row(j)).map(|j| (i, j, value(j))));
    }
    let mut sums = vec![[0.0; N]; N];
    for (i, j, v) in ENTRIES {
        sums[i][j] += v;
        sums[j][i] += v;
    }
    let symmetric: Vec<Entry> = (0..N * N)
        .map(|at| (at / N, at % N, sums[at / N][at % N]))
        .filter(|e| e.2 != 0.0)
        .collect();
    let zeros = "17 zeros of the 6 x 6 array left out";
    for (file, expected, remark) in [
        ("a.mtx", &stored, ""),
        ("a.mtx.xz", &stored, ""),
        ("a.mtx.bz2", &stored, ""),
        ("a.mtx.zst", &stored, ""),
        ("csr.npz", &stored, ""),
        ("plain.npz", &stored, ""),
        ("array.npz", &stored, ""),
        ("long.npz", &stored, ""),
        ("csc.npz", &stored, ""),
        ("coo.npz", &stored, "20 duplicate entries summed"),
        ("bsr.npz", &blocks, ""),
        ("dia.npz", &without_zero, "5 zeros of the stored diagonals left out"),
        ("integers.npz", &integers, ""),
        ("dense.mtx", &without_zero, zeros),
        ("densesym.mtx", &symmetric, "8 zeros of the 6 x 6 array left out"),
        ("dense.npy", &without_zero, zeros),
        ("fortran.npy", &without_zero, zeros),
        ("a.petsc", &stored, ""),
        ("system.petsc", &stored, ""),
        ("long.petsc", &stored, ""),
        ("several.petsc", &stored, "the first of several matrices in the file"),
        ("dense.petsc", &without_zero, "17 zeros of the dense 6 x 6 matrix left out"),
    ] {
        let read = read_matrix(Path::new(&path(file)), ReadAs::Expanded).expect(file);
        assert_eq!((read.matrix.rows(), read.matrix.cols()), (N, N), "{file}");
        assert_eq!(&entries(&read.matrix), expected, "{file}");
        assert_eq!(read.remarks.concat(), remark, "{file}");
    }
}

#[test]
fn vectors_are_read_from_every_format() {
    for file in ["b.npy", "column.npy", "big.npy", "b.petsc", "system.petsc", "long.petsc"] {
        let read = read_vector(Path::new(&path(file))).expect(file);
        assert_eq!((read.values, read.columns), (B.to_vec(), 1), "{file}");
    }
}

#[test]
fn every_file_of_the_folder_is_read_or_refused() {
    let files = std::fs::read_dir(FORMATS).unwrap();
    let found = files.map(|f| f.unwrap().file_name().into_string().unwrap());
    let bad: BTreeSet<String> = found.filter(|name| name.starts_with("bad_")).collect();
    let refused = FORMATS_REFUSED.iter().chain(VECTORS_REFUSED).map(|f| f.0.to_owned());
    let refused = refused.filter(|name| name.starts_with("bad_"));
    assert_eq!(bad, refused.collect());
}

#[test]
fn broken_files_are_refused_in_one_line() {
    let said = |arguments: &[&str]| {
        let mut command = limited("-v 4000000", arguments);
        text(&ran(command.env("RAYON_NUM_THREADS", "2"), 2).stderr)
    };
    let expected = |file: &str, message: &str, hint: &str| {
        let hint = if hint.is_empty() { String::new() } else { format!("hint: {hint}\n") };
        format!("error: {file}: {message}\n{hint}").replace("FILE", file)
    };
    for (file, message, hint) in FORMATS_REFUSED {
        let file = path(file);
        let run = ["run", "--matrix", &file, "-q"];
        assert_eq!(said(&run), expected(&file, message, hint));
        assert_eq!(said(&["matrix", "info", &file]), expected(&file, message, hint));
    }
    for (file, message, hint) in VECTORS_REFUSED {
        let (file, matrix) = (path(file), path("csr.npz"));
        let rhs = format!("file:{file}");
        let run = ["run", &matrix, "--rhs", &rhs, "-q"];
        assert_eq!(said(&run), expected(&file, message, hint));
    }
    let (matrix, rhs) = (path("csr.npz"), format!("file:{}", path("columns.npy")));
    let why = "2 right-hand sides, and `gmres` solves for one at a time: `block-cg` and `block-gmres` solve for several";
    assert_eq!(said(&["run", &matrix, "--rhs", &rhs, "-q"]), format!("error: `{rhs}`: {why}\n"));
}

#[test]
fn a_run_of_any_file_is_the_same() {
    let b = path("b.npy");
    let known = records(&path("a.mtx"), &["--rhs", &format!("file:{b}")]);
    assert_eq!(
        known[0].convergence.iterations,
        records(&path("a.mtx"), &["--rhs", &b])[0].convergence.iterations
    );
    for (file, rhs) in [
        ("csr.npz", b.as_str()),
        ("a.mtx.zst", &b),
        ("csc.npz", &path("big.npy")),
        ("a.petsc", &format!("file:{}", path("b.petsc"))),
        // the vector behind the matrix
        ("system.petsc", "own"),
        ("long.petsc", "own"),
    ] {
        let found = records(&path(file), &["--rhs", rhs]);
        assert!(found[0].status.succeeded(), "{file}");
        assert_eq!(found[0].hash, known[0].hash, "{file}");
        assert_eq!(found[0].convergence, known[0].convergence, "{file}");
        let spec = if rhs.contains('/') && !rhs.starts_with("file:") {
            format!("file:{rhs}")
        } else {
            rhs.into()
        };
        assert_eq!(found[0].case.rhs, spec);
    }
}

#[test]
fn a_right_hand_side_beside_the_matrix_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (matrix, rhs) in [("csr.npz", "b.npy"), ("a.petsc", "b.petsc"), ("a.mtx.xz", "b.npy")] {
        let stem = matrix.split('.').next().unwrap();
        let beside = at(&format!("{stem}_rhs.{}", rhs.split_once('.').unwrap().1));
        std::fs::copy(path(matrix), at(matrix)).unwrap();
        std::fs::copy(path(rhs), &beside).unwrap();
        let problem = load(&at(matrix).display().to_string(), ReadAs::Expanded).unwrap();
        assert_eq!((problem.name.as_str(), problem.own_rhs.as_deref()), (stem, Some(&B[..])));
        std::fs::remove_file(beside).unwrap();
    }
    // the names of files in a folder of matrices
    let mut command = program(&["matrix", "info", "csr", "--fill", "none"]);
    let output = ran(command.env("BILU_BENCH_MATRICES", folder.path()), 0);
    assert!(text(&output.stdout).starts_with("matrix             csr\nrows               6\n"));
    // one of another length is a remark
    std::fs::copy(path("column.npy"), at("p_rhs.npy")).unwrap();
    ran(
        &mut program(&[
            "matrix",
            "generate",
            "poisson3d:2",
            "-o",
            &at("p.npz").display().to_string(),
        ]),
        0,
    );
    let problem = load(&at("p.npz").display().to_string(), ReadAs::Expanded).unwrap();
    let beside = at("p_rhs.npy").display().to_string();
    let remark = format!("right-hand side not used: {beside}: 6 values for a matrix of 8 rows");
    assert_eq!((problem.own_rhs, problem.remarks), (None, vec![remark]));
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for ending in ["npz", "petsc"] {
        let (there, back) = (at(&format!("a.{ending}")), at("back.mtx"));
        ran(&mut program(&["matrix", "convert", &path("a.mtx"), &there]), 0);
        let mut command = program(&["matrix", "convert", &there, &back, "--force"]);
        assert_eq!(text(&ran(&mut command, 0).stderr), "");
        let again = std::fs::read_to_string(&back).unwrap();
        let expected = read_matrix(Path::new(&path("a.mtx")), ReadAs::Expanded).unwrap();
        write_matrix(Path::new(&at("c.mtx")), &expected.matrix, Symmetry::General, None).unwrap();
        assert_eq!(again, std::fs::read_to_string(at("c.mtx")).unwrap());
    }
    // the bytes of PETSc itself, with the right-hand side that belongs to the matrix
    std::fs::copy(path("a.mtx"), at("s.mtx")).unwrap();
    std::fs::copy(path("b.npy"), at("s_rhs.npy")).unwrap();
    ran(&mut program(&["matrix", "convert", &at("s.mtx"), &at("s.petsc")]), 0);
    assert_eq!(std::fs::read(at("s.petsc")).unwrap(), std::fs::read(path("system.petsc")).unwrap());
    // elsewhere it is beside the matrix, and overwrites nothing
    for (from, to, rhs) in [("s.petsc", "t.npz", "t_rhs.npy"), ("t.npz", "v.mtx", "v_rhs.mtx")] {
        let arguments = ["matrix", "convert", &at(from), &at(to)];
        let output = text(&ran(&mut program(&arguments), 0).stdout);
        assert_eq!(output, format!("{}\n{}\n", at(to), at(rhs)));
        let own = |name: &str| load(&at(name), ReadAs::Expanded).unwrap().own_rhs.unwrap();
        assert_eq!(own(to), own(from));
        std::fs::remove_file(at(to)).unwrap();
        let said = text(&ran(&mut program(&arguments), 2).stderr);
        assert!(said.contains(&format!("`{}`", at(rhs))), "{said}");
        ran(program(&arguments).arg("--force"), 0);
    }
    // what goes where
    for (file, beside) in
        [("g.npz", Some("g_rhs.npy")), ("g.petsc", None), ("g.mtx", Some("g_rhs.mtx"))]
    {
        let (file, beside) = (at(file), beside.map(at));
        let arguments = ["matrix", "generate", "poisson3d:2", "-o", &file, "--rhs", "random:3"];
        let output = text(&ran(&mut program(&arguments), 0).stdout);
        let files: Vec<String> = std::iter::once(file.clone()).chain(beside).collect();
        assert_eq!(output, format!("{}\n", files.join("\n")));
        let problem = load(&file, ReadAs::Expanded).unwrap();
        let b = bilu_bench::problem::right_hand_side(&problem, "random:3").unwrap();
        assert_eq!(problem.own_rhs, Some(b), "{file}");
    }
    for (arguments, said) in [
        (
            &["convert", &path("a.mtx"), &at("u.mtx.xz")][..],
            format!(
                "error: `{}` is not the name of a file of a matrix that is written\n\
                 hint: let it end in .mtx, .mtx.gz, .npz or .petsc\n",
                at("u.mtx.xz")
            ),
        ),
        (
            &["convert", &path("a.mtx"), &at("u.npz"), "--symmetric"],
            format!(
                "error: --symmetric: `{}` would have all entries\n\
                 hint: files of Matrix Market store a triangle\n",
                at("u.npz")
            ),
        ),
    ] {
        let arguments = [&["matrix"][..], arguments].concat();
        assert_eq!(text(&ran(&mut program(&arguments), 2).stderr), said);
    }
}

/// `SciPy` reads what was written, and finds the same.
#[test]
fn scipy_reads_what_is_written() {
    let python = std::env::var("BILU_BENCH_PYTHON").unwrap_or_else(|_| "python3".into());
    let scipy = Command::new(&python).args(["-c", "import scipy.sparse"]).output();
    if !scipy.is_ok_and(|o| o.status.success()) {
        assert!(
            std::env::var_os("BILU_BENCH_REQUIRE_SCIPY").is_none(),
            "BILU_BENCH_REQUIRE_SCIPY is set, and {python} has no SciPy"
        );
        eprintln!("skipped: {python} has no SciPy");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let write = ["matrix", "generate", "convdiff3d:5x4x3,px=0.3", "-o"];
    for file in ["a.npz", "a.mtx"] {
        ran(&mut program(&[&write[..], &[&at(file), "--rhs", "random"]].concat()), 0);
    }
    let script = "\
import numpy, scipy.io, scipy.sparse
a, b = scipy.sparse.load_npz('a.npz'), numpy.load('a_rhs.npy')
m, r = scipy.io.mmread('a.mtx').tocsr(), scipy.io.mmread('a_rhs.mtx').ravel()
assert a.format == 'csr' and a.has_canonical_format
assert a.shape == m.shape and (a != m).nnz == 0 and (b == r).all()
for name in ['csr', 'csc', 'coo', 'bsr', 'dia']:
    scipy.sparse.save_npz(name + '.npz', a.asformat(name))
";
    let output = Command::new(&python).args(["-c", script]).current_dir(folder.path()).output();
    let output: Output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let known = read_matrix(Path::new(&at("a.mtx")), ReadAs::Expanded).unwrap().matrix;
    for name in ["csr", "csc", "coo", "bsr", "dia"] {
        let file = at(&format!("{name}.npz"));
        let found = read_matrix(Path::new(&file), ReadAs::Expanded).unwrap().matrix;
        assert_eq!(found.without_zeros(), known, "{name}");
    }
}

/// Sizes and entries of a matrix, of which several may be at one place.
fn any_matrix() -> impl Strategy<Value = (usize, usize, Vec<Entry>)> {
    (1_usize..12, 1_usize..12).prop_flat_map(|(rows, cols)| {
        let value = prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL;
        let entry = (0..rows, 0..cols, value);
        (Just(rows), Just(cols), prop::collection::vec(entry, 0..40))
    })
}

/// The matrix of entries, the last of each place.
fn csr(rows: usize, cols: usize, entries: &[Entry]) -> Csr {
    let places: std::collections::BTreeMap<(usize, usize), f64> =
        entries.iter().map(|&(i, j, v)| ((i, j), v)).collect();
    let row_ptr = (0..=rows).map(|i| places.range(..(i, 0)).count() as u32).collect();
    let (col_ind, values) = places.iter().map(|((_, j), v)| (*j as u32, *v)).unzip();
    Csr::new(rows, cols, row_ptr, col_ind, values).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_matrix_comes_back_bit_for_bit((rows, cols, of) in any_matrix()) {
        let folder = tempfile::tempdir().unwrap();
        let a = csr(rows, cols, &of);
        for name in ["a.npz", "a.petsc"] {
            let path = folder.path().join(name);
            write_matrix(&path, &a, Symmetry::General, None).unwrap();
            let read = read_matrix(&path, ReadAs::Expanded).unwrap();
            prop_assert_eq!(read.matrix.row_ptr(), a.row_ptr());
            prop_assert_eq!(read.matrix.col_ind(), a.col_ind());
            let bits = |a: &Csr| a.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&read.matrix), bits(&a));
            prop_assert!(read.remarks.is_empty());
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_panic(
        start in prop::sample::select(vec![
            &b"PK\x03\x04"[..], b"\x93NUMPY\x01\x00", b"\x00\x12\x7b\x50", b"\x00\x12\x7b\x4e",
            b"\xfd7zXZ\0", b"BZh9", b"\x28\xb5\x2f\xfd", b"",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let bytes = [start, &rest].concat();
        let _ = read_matrix_from("any", Cursor::new(bytes.clone()), ReadAs::Expanded);
        let _ = bilu_bench::matrix::file::read_vector_from("any", Cursor::new(bytes));
    }

    #[test]
    fn a_changed_or_cut_file_is_no_panic(
        file in prop::sample::select(vec![
            "csr.npz", "coo.npz", "bsr.npz", "dia.npz", "plain.npz", "system.petsc", "long.petsc",
            "dense.npy", "b.npy", "a.mtx.xz", "a.mtx.bz2", "a.mtx.zst",
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = std::fs::read(path(file)).unwrap();
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at.index(length)] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(read) = read_matrix_from("changed", Cursor::new(bytes.clone()), ReadAs::Expanded) {
            prop_assert!(read.matrix.values().iter().all(|v| v.is_finite()));
        }
        let _ = bilu_bench::matrix::file::read_vector_from("changed", Cursor::new(bytes));
    }
}
