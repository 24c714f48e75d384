//! The Matrix Market reader and writer on good, odd, bad and large files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Cursor;
use std::path::Path;

use bilu_bench::base::error::Error;
use bilu_bench::case::ReadAs;
use bilu_bench::matrix::Csr;
use bilu_bench::matrix::market::{self, Symmetry};
use matrix_market_rs::{MtxData, SymInfo};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::refused::{FOLDER, REFUSED};

/// File, order, entries (row, column, value) from 0, remark.
type Accepted = (&'static str, usize, &'static [(usize, usize, f64)], &'static str);

const SYM: &[(usize, usize, f64)] =
    &[(0, 0, 2.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 2.0), (2, 2, 2.0)];
const ONE_DUPLICATE: &str = "1 duplicate entry summed";

const ACCEPTED: &[Accepted] = &[
    ("arraycolumns.mtx", 2, &[(0, 0, 1.0), (0, 1, 3.0), (1, 0, 2.0), (1, 1, 40.0)], ""),
    ("arraysymmetric.mtx", 1, &[(0, 0, 1.0)], ""),
    ("case.mtx", 3, &[(0, 0, 1.0)], ""),
    ("comments.mtx", 3, &[(0, 0, 1.0), (1, 1, 3.0), (2, 1, -0.25)], ""),
    ("crlf.mtx", 3, &[(0, 0, 1.0)], ""),
    ("crlfspaces.mtx", 2, &[(0, 0, 1.0), (1, 1, 2.0)], ""),
    ("double.mtx", 2, &[(1, 0, 0.5)], ""),
    ("dup.mtx", 3, &[(0, 0, 3.0), (1, 1, 3.0)], ONE_DUPLICATE),
    ("dupcancel.mtx", 2, &[(0, 0, 4.0), (1, 0, 0.0)], ONE_DUPLICATE),
    ("dupsym.mtx", 2, &[(0, 0, 4.0), (0, 1, 3.0), (1, 0, 3.0)], ONE_DUPLICATE),
    ("fortranD.mtx", 3, &[(0, 0, 1.0)], ""),
    ("hermitian.mtx", 2, &[(0, 0, 3.0), (0, 1, -1.0), (1, 0, -1.0)], ""),
    ("integer.mtx", 3, &[(0, 0, 5.0), (1, 2, 7.0)], ""),
    ("nonewline.mtx", 2, &[(0, 0, 1.0), (1, 1, 2.0)], ""),
    ("pattern.mtx", 3, &[(0, 0, 1.0), (1, 2, 1.0)], ""),
    ("skew.mtx", 3, &[(0, 1, -5.0), (1, 0, 5.0)], ""),
    ("sym.mtx", 3, SYM, ""),
    ("sym.mtx.gz", 3, SYM, ""),
];

fn path(file: &str) -> String {
    format!("{FOLDER}/{file}")
}

fn read(file: &str, read_as: ReadAs) -> Result<market::Matrix, Error> {
    market::read_matrix(Path::new(&path(file)), read_as)
}

/// Reads text with the given number of threads.
fn read_text(text: &str, threads: usize) -> Result<market::Matrix, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let text = Cursor::new(text.to_owned());
    pool.install(|| market::read_matrix_from("text", text, ReadAs::Expanded))
}

/// All entries in the order of rows and columns.
fn triplets(a: &Csr) -> Vec<(usize, usize, f64)> {
    let row = |i: usize| {
        let (cols, values) = a.row(i);
        cols.iter().zip(values).map(move |(&j, &v)| (i, j as usize, v)).collect::<Vec<_>>()
    };
    (0..a.rows()).flat_map(row).collect()
}

#[test]
fn bad_files_are_refused_with_place_and_hint() {
    for &(file, message, hint) in REFUSED {
        let error = read(file, ReadAs::Expanded).expect_err(file);
        assert_eq!(error.to_string(), format!("{}{message}", path(file)));
        assert_eq!(error.hint_text().unwrap_or_default(), hint, "{file}");
        assert_eq!(error.exit_code(), 2, "{file}");
    }
}

#[test]
fn odd_files_are_read_by_their_meaning() {
    for &(file, n, entries, remark) in ACCEPTED {
        let read = read(file, ReadAs::Expanded).expect(file);
        assert_eq!((read.matrix.rows(), read.matrix.cols()), (n, n), "{file}");
        assert_eq!(triplets(&read.matrix), entries, "{file}");
        assert_eq!(read.remarks.concat(), remark, "{file}");
    }
}

#[test]
fn every_file_of_the_folder_is_in_a_table() {
    let refused = REFUSED.iter().map(|f| f.0);
    let known: BTreeSet<&str> = refused.chain(ACCEPTED.iter().map(|f| f.0)).collect();
    let files = std::fs::read_dir(FOLDER).unwrap();
    let found: Vec<_> = files.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
}

#[test]
fn as_stored_keeps_the_lower_triangle() {
    let stored = |file| triplets(&read(file, ReadAs::AsStored).unwrap().matrix);
    assert_eq!(stored("sym.mtx"), [(0, 0, 2.0), (1, 0, -1.0), (1, 1, 2.0), (2, 2, 2.0)]);
    assert_eq!(stored("skew.mtx"), [(1, 0, 5.0)]);
    assert_eq!(read("skew.mtx", ReadAs::AsStored).unwrap().symmetry, Symmetry::SkewSymmetric);
}

#[test]
fn directories_and_missing_files_are_named() {
    let error = |p: &str| market::read_matrix(Path::new(p), ReadAs::Expanded).unwrap_err();
    assert_eq!(
        error(FOLDER).to_string(),
        format!("{FOLDER}: is a directory, not a file of a matrix")
    );
    assert_eq!(error(FOLDER).hint_text(), Some("name the file in it"));
    assert_eq!(
        error("no/such.mtx").to_string(),
        "cannot open `no/such.mtx`: No such file or directory (os error 2)"
    );
}

#[test]
fn vectors_are_read_from_arrays_and_sparse_columns() {
    let vector = |file: &str, column| market::read_vector(Path::new(&path(file)), column);
    let values = |file, column| vector(file, column).unwrap().values;
    assert_eq!(values("array.mtx", None), [1.0, 2.0, 3.0]);
    assert_eq!(values("arrayinteger.mtx", None), [1.0, -7.0]);
    assert_eq!(values("arraycolumns.mtx", Some(1)), [3.0, 40.0]);
    assert_eq!(values("sym.mtx", Some(1)), [-1.0, 2.0, 0.0]);
    let first = vector("arraycolumns.mtx", None).unwrap();
    assert_eq!((first.values, first.columns), (vec![1.0, 2.0], 2));
    assert_eq!(first.remarks, ["column 1 of 2 taken"]);
    for (file, column, message) in [
        ("arraycolumns.mtx", Some(2), ":2: there is no column 3 in 2 x 2"),
        ("arraylong.mtx", None, ":4:1: more entries than the size line declares"),
        ("arraysymmetric.mtx", None, ":2:1: a symmetric array is a matrix, not a vector"),
        ("arrayshort.mtx", None, ":4: the file ends after 2 of 3 entries"),
        ("arraynan.mtx", None, ":4:1: `nan` is not finite"),
    ] {
        let error = vector(file, column).unwrap_err();
        assert_eq!(error.to_string(), format!("{}{message}", path(file)));
    }
}

#[test]
fn agrees_with_sprs_and_matrix_market_rs() {
    let folder = tempfile::tempdir().unwrap();
    let random = folder.path().join("random.mtx");
    let mut entries = random_entries(400, 5000);
    entries.sort_by_key(|e| (e.1, e.0));
    entries.dedup_by_key(|e| (e.1, e.0));
    std::fs::write(&random, text_of(400, "general", &entries)).unwrap();
    let given = ["sym.mtx", "crlf.mtx", "nonewline.mtx"].map(|f| Path::new(FOLDER).join(f));
    for file in given.iter().chain([&random]) {
        let name = file.display();
        let ours = triplets(&market::read_matrix(file, ReadAs::Expanded).unwrap().matrix);
        let theirs: sprs::TriMat<f64> = sprs::io::read_matrix_market(file).unwrap();
        let theirs: sprs::CsMat<f64> = theirs.to_csr();
        let mut all: Vec<_> = theirs.iter().map(|(v, (i, j))| (i, j, *v)).collect();
        all.sort_by_key(|e| (e.0, e.1));
        assert_eq!(ours, all, "{name}: sprs");
        let MtxData::Sparse(_, places, values, symmetry) = MtxData::<f64>::from_file(file).unwrap()
        else {
            panic!("{name} is sparse")
        };
        let mut all = Vec::new();
        for ([i, j], v) in places.into_iter().zip(values) {
            all.push((i, j, v));
            if symmetry == SymInfo::Symmetric && i != j {
                all.push((j, i, v));
            }
        }
        all.sort_by_key(|e| (e.0, e.1));
        assert_eq!(ours, all, "{name}: matrix-market-rs");
    }
}

#[test]
fn transposes_and_products_agree_with_sprs() {
    let mut entries = random_entries(300, 4000);
    // exact in any order of summation
    for e in &mut entries {
        e.2 = (e.2 * 64.0).round();
    }
    let ours = read_text(&text_of(300, "general", &entries), 1).unwrap().matrix;
    let (i, j) = entries.iter().map(|e| (e.0, e.1)).unzip();
    let values = entries.iter().map(|e| e.2).collect();
    let theirs: sprs::CsMat<f64> = sprs::TriMat::from_triplets((300, 300), i, j, values).to_csr();
    let all = |a: &sprs::CsMat<f64>| -> Vec<_> {
        let mut all: Vec<_> = a.iter().map(|(v, (i, j))| (i, j, *v)).collect();
        all.sort_by_key(|e| (e.0, e.1));
        all
    };
    assert_eq!(triplets(&ours), all(&theirs));
    assert_eq!(triplets(&ours.transposed()), all(&theirs.transpose_view().to_csr()));
    let x: Vec<f64> = (0..300).map(|i| f64::from(i % 17) - 8.0).collect();
    let (mut y, mut want) = (vec![0.0; 300], vec![0.0; 300]);
    ours.multiply(&x, &mut y);
    sprs::prod::mul_acc_mat_vec_csr(theirs.view(), &x[..], &mut want[..]);
    assert_eq!(y, want);
}

/// Random entries, of which some share a place.
fn random_entries(n: usize, count: usize) -> Vec<(usize, usize, f64)> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut entry = || (rng.random_range(0..n), rng.random_range(0..n), rng.random::<f64>() - 0.5);
    (0..count).map(|_| entry()).collect()
}

fn text_of(n: usize, symmetry: &str, entries: &[(usize, usize, f64)]) -> String {
    let count = entries.len();
    let mut text = format!("%%MatrixMarket matrix coordinate real {symmetry}\n{n} {n} {count}\n");
    for (i, j, v) in entries {
        _ = writeln!(text, "{} {} {v}", i + 1, j + 1);
    }
    text
}

/// The same matrix built without any of the code under test; duplicates in the order of the file.
fn reference(entries: &[(usize, usize, f64)]) -> Vec<(usize, usize, f64)> {
    let mut map = BTreeMap::new();
    for &(i, j, v) in entries {
        map.entry((i, j)).and_modify(|sum| *sum += v).or_insert(v);
    }
    map.into_iter().map(|((i, j), v)| (i, j, v)).collect()
}

#[test]
fn order_of_the_file_and_threads_do_not_change_the_matrix() {
    let (n, count) = (3000, 200_000);
    let mut entries = random_entries(n, count);
    let check = |what: &str, entries: &[(usize, usize, f64)]| {
        let text = text_of(n, "general", entries);
        assert!(text.len() > 4 << 20, "must span several blocks");
        let expected = reference(entries);
        for threads in [1, 3] {
            let read = read_text(&text, threads).unwrap();
            assert_eq!(triplets(&read.matrix), expected, "{what}, {threads} threads");
            let summed = format!("{} duplicate entries summed", count - expected.len());
            assert_eq!(read.remarks, [summed], "{what}");
        }
    };
    check("random", &entries);
    entries.sort_by_key(|e| e.0);
    check("rows in order, columns not", &entries);
    entries.sort_by_key(|e| e.1);
    check("columns in order, rows not", &entries);
    entries.sort_by_key(|e| (e.0, e.1));
    check("rows and columns in order", &entries);
    let tail = entries.len() - 20_000;
    entries[tail..].shuffle(&mut ChaCha8Rng::seed_from_u64(3));
    check("rows in order up to a shuffled tail", &entries);
    entries.rotate_left(50_000);
    check("in order but for one step back", &entries);
}

#[test]
fn large_symmetric_files_are_mirrored() {
    let entries: Vec<_> = random_entries(5000, 150_000)
        .into_iter()
        .map(|(i, j, v)| (i.max(j), i.min(j), v))
        .collect();
    let mirror = |&(i, j, v): &(usize, usize, f64)| (i != j).then_some((j, i, v));
    let mut both = entries.clone();
    both.extend(entries.iter().filter_map(mirror));
    let read = read_text(&text_of(5000, "symmetric", &entries), 2).unwrap();
    assert_eq!(triplets(&read.matrix), reference(&both));
}

#[test]
fn lines_of_faults_are_exact_in_large_files() {
    let text = text_of(3000, "general", &random_entries(3000, 200_000));
    let lines: Vec<&str> = text.lines().collect();
    let with = |changes: &[(usize, &str)]| {
        let mut lines = lines.clone();
        for &(at, line) in changes {
            lines[at - 1] = line;
        }
        lines.join("\n")
    };
    let message = |text: &str, threads| read_text(text, threads).unwrap_err().to_string();
    for threads in [1, 3] {
        let two_bad = with(&[(150_001, "1 1 x"), (199_999, "9999 1 1")]);
        assert_eq!(message(&two_bad, threads), "text:150001:5: `x` is not a number");
        let surplus = text.replace("3000 3000 200000", "3000 3000 123456");
        assert_eq!(
            message(&surplus, threads),
            "text:123459:1: more entries than the size line declares"
        );
        // the fault comes before the first entry too many in the one, after it in the other
        let early = surplus.replacen(lines[123_400], "0 1 1", 1);
        assert_eq!(message(&early, threads), "text:123401:1: row 0 is outside 1..=3000");
        let late = surplus.replacen(lines[123_500], "0 1 1", 1);
        assert_eq!(
            message(&late, threads),
            "text:123459:1: more entries than the size line declares"
        );
        let long = with(&[(100_000, &" ".repeat(3 << 20))]);
        assert_eq!(message(&long, threads), "text:100000: line longer than 1048576 bytes");
        let short = text.replace("3000 3000 200000", "3000 3000 200001");
        assert_eq!(
            message(&short, threads),
            "text:200002: the file ends after 200000 of 200001 entries"
        );
    }
}

#[test]
fn writing_fails_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
    let missing = folder.path().join("no/such/a.mtx");
    let error = market::write_matrix(&missing, &a, Symmetry::General).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot write `{}`", missing.display())));
    assert_eq!((error.exit_code(), error.hint_text()), (2, Some("create it first")));
    let error = market::write_matrix(folder.path(), &a, Symmetry::General).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot write `{}`: it is a directory", folder.path().display())
    );
    let unsymmetric =
        Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let to = folder.path().join("b.mtx");
    let error = market::write_matrix(&to, &unsymmetric, Symmetry::Symmetric).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot write `{}` as symmetric: entries (1, 2) and (2, 1) do not match",
            to.display()
        )
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn written_files_are_plain_text() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a.mtx");
    let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![0.1, -2e300, -2e300]).unwrap();
    market::write_matrix(&to, &a, Symmetry::General).unwrap();
    let text = std::fs::read_to_string(&to).unwrap();
    assert_eq!(
        text,
        "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 0.1\n1 2 -2e300\n2 1 -2e300\n"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let mode = |p: &Path| p.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&to), mode(&plain));
    }
    market::write_matrix(&to, &a, Symmetry::Symmetric).unwrap();
    let text = std::fs::read_to_string(&to).unwrap();
    assert_eq!(
        text,
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 0.1\n2 1 -2e300\n"
    );
    market::write_vector(&to, &[1.0, 2.5]).unwrap();
    let text = std::fs::read_to_string(&to).unwrap();
    assert_eq!(text, "%%MatrixMarket matrix array real general\n2 1\n1.0\n2.5\n");
}

/// Any finite number, by its bits.
fn finite() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |v| v.is_finite())
}

/// A matrix with any finite values.
fn matrix() -> impl Strategy<Value = Csr> {
    (1_usize..12).prop_flat_map(|n| {
        let entries = prop::collection::btree_map((0..n, 0..n), finite(), 0..40);
        entries.prop_map(move |entries| {
            let mut row_ptr = vec![0_u32; n + 1];
            for e in entries.keys() {
                row_ptr[e.0 + 1] += 1;
            }
            for i in 0..n {
                row_ptr[i + 1] += row_ptr[i];
            }
            let cols = entries.keys().map(|e| e.1 as u32).collect();
            Csr::new(n, n, row_ptr, cols, entries.into_values().collect()).unwrap()
        })
    })
}

fn bits(a: &Csr) -> Vec<(usize, usize, u64)> {
    triplets(a).into_iter().map(|(i, j, v)| (i, j, v.to_bits())).collect()
}

proptest! {
    #[test]
    fn written_matrices_read_back_bit_for_bit(a in matrix(), gz in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join(if gz { "a.mtx.gz" } else { "a.mtx" });
        market::write_matrix(&to, &a, Symmetry::General).unwrap();
        let read = market::read_matrix(&to, ReadAs::Expanded).unwrap();
        prop_assert_eq!(bits(&read.matrix), bits(&a));
        let start = std::fs::read(&to).unwrap();
        prop_assert_eq!(start.starts_with(&[0x1f, 0x8b]), gz);
    }

    #[test]
    fn written_vectors_read_back_bit_for_bit(v in prop::collection::vec(finite(), 1..50)) {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("b.mtx");
        market::write_vector(&to, &v).unwrap();
        let read = market::read_vector(&to, None).unwrap().values;
        let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&read), bits(&v));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), banner in any::<bool>()) {
        let mut text = if banner { b"%%MatrixMarket matrix coordinate real general\n3 3 2\n".to_vec() } else { Vec::new() };
        text.extend(bytes);
        _ = market::read_matrix_from("x", Cursor::new(text.clone()), ReadAs::Expanded);
        _ = market::read_vector_from("x", Cursor::new(text), None);
    }

    #[test]
    fn mutated_files_never_panic(
        file in 0..ACCEPTED.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), prop::sample::select(b"0123456789 \n\t.eEdD+-%".to_vec())]), 1..6),
    ) {
        let mut text = std::fs::read(path(ACCEPTED[file].0)).unwrap();
        for (at, byte) in edits {
            let at = at.index(text.len());
            text[at] = byte;
        }
        if let Ok(read) = market::read_matrix_from("x", Cursor::new(text), ReadAs::Expanded) {
            prop_assert!(read.matrix.values().iter().all(|v| !v.is_nan()));
        }
    }
}
