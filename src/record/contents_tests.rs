use super::*;
use crate::case::{Case, ReadAs};
use crate::matrix::Csr;
use crate::matrix::hash::{matrix_hash, vector_hash};
use crate::record::samples::record;
use crate::record::schema::SystemHash;

fn of(matrix: &str, n: usize, hash: Option<&str>, rhs: Option<&str>) -> Record {
    let mut record = record(Case { matrix: matrix.into(), ..Case::default() }, 5, 1.0);
    (record.size.n, record.size.nnz) = (n, 3 * n);
    let own = |text: &str| text.to_owned();
    record.hash = SystemHash { matrix_hash: hash.map(own), rhs_hash: rhs.map(own) };
    record
}

fn system(values: [f64; 3]) -> Csr {
    Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], values.to_vec()).unwrap()
}

#[test]
fn the_hash_is_that_of_pattern_and_bits() {
    let a = system([1.0, 2.0, 3.0]);
    let hash = matrix_hash(&a);
    assert_eq!(hash, matrix_hash(&system([1.0, 2.0, 3.0])));
    assert_ne!(hash, matrix_hash(&system([1.0, 2.0, 3.0 + f64::EPSILON * 2.0])));
    let moved = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![1.0, 2.0, 3.0]).unwrap();
    assert_ne!(hash, matrix_hash(&moved));
    let rows = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![1.0, 2.0, 3.0]).unwrap();
    assert_ne!(matrix_hash(&moved), matrix_hash(&rows));
    assert_ne!(vector_hash(&[0.0]), vector_hash(&[-0.0]));
    assert_ne!(vector_hash(&[0.0]), vector_hash(&[0.0, 0.0]));
    // that of the bytes in one piece, also where they are hashed in several
    let long: Vec<f64> = (0..20_000).map(f64::from).collect();
    let bytes: Vec<u8> = long.iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(vector_hash(&long), format!("{:016x}", twox_hash::XxHash3_64::oneshot(&bytes)));
    // of XXH3's published vectors: nothing, without a seed
    assert_eq!(vector_hash(&[]), "2d06800538d394c2");
}

#[test]
fn what_is_not_known_does_not_differ() {
    let a = of("a", 8, Some("1"), Some("2"));
    let differ = |b: &Record| difference(&a, b);
    assert_eq!(differ(&of("a", 8, Some("1"), Some("2"))), None);
    assert_eq!(differ(&of("a", 8, None, None)), None);
    assert_eq!(differ(&of("a", 0, None, None)), None, "it ended before there was a matrix");
    assert_eq!(differ(&of("a", 9, None, None)), Some(Difference::Matrix));
    assert_eq!(differ(&of("a", 8, Some("3"), Some("2"))), Some(Difference::Matrix));
    assert_eq!(differ(&of("a", 8, Some("1"), Some("3"))), Some(Difference::RightHandSide));
    assert_eq!(differ(&of("b", 9, Some("3"), Some("3"))), None, "another name");
    let mut read = of("a", 8, Some("3"), Some("2"));
    read.case.read_as = ReadAs::AsStored;
    assert_eq!(differ(&read), None, "read in another way");
    let mut rhs = of("a", 8, Some("1"), Some("3"));
    rhs.case.rhs = "random".into();
    assert_eq!(differ(&rhs), None, "another right-hand side by name");
}

#[test]
fn other_contents_are_refused_with_both() {
    let new = of("a", 8, Some("1"), Some("2"));
    let refused = |old: Record| refuse_others("f.csv", std::iter::once(&old), &new).err();
    assert_eq!(refused(of("a", 8, None, None)), None);
    let error = refused(of("a", 1000, None, None)).unwrap();
    assert_eq!(
        error.to_string(),
        "f.csv: `a` is not the system of its records: n = 1,000, nnz = 3,000 in the file, n = 8, nnz = 24, \
         hash 1 now"
    );
    assert_eq!(error.hint_text(), Some("write to another file, or start over with --force"));
    let error = refused(of("a", 8, Some("1"), Some("7"))).unwrap();
    assert_eq!(
        error.to_string(),
        "f.csv: `ones` of `a` is not the system of its records: hash 7 in the file, hash 2 now"
    );
    let old = [of("a", 8, None, None), of("b", 8, None, None), of("a", 0, None, None), new.clone()];
    assert_eq!(unchecked(old.iter(), &new), 1);
}

#[test]
fn records_of_one_name_get_names_of_their_own() {
    let mut records: Vec<Record> = [
        ("a", 8, Some("0123456789"), Some("5")),
        ("a", 9, None, None),
        ("a", 8, Some("0123456789"), Some("5")),
        ("a", 0, None, None),
        ("b", 8, Some("9"), Some("5")),
        ("b", 8, Some("9"), Some("6")),
        ("c", 8, Some("9"), Some("5")),
        ("c", 8, None, None),
    ]
    .into_iter()
    .map(|(matrix, n, hash, rhs)| of(matrix, n, hash, rhs))
    .collect();
    let notes = set_apart(&mut records.iter_mut().collect::<Vec<_>>());
    let names: Vec<String> =
        records.iter().map(|r| format!("{} {}", r.case.matrix, r.case.rhs)).collect();
    assert_eq!(
        names,
        [
            "a#01234567 ones",
            "a#n=9,nnz=27 ones",
            "a#01234567 ones",
            "a ones",
            "b ones#5",
            "b ones#6",
            "c ones",
            "c ones"
        ]
    );
    assert_eq!(
        notes,
        [
            "a: 2 matrices under one name are set apart: #01234567, #n=9,nnz=27",
            "b, ones: 2 right-hand sides under one name are set apart: #5, #6"
        ]
    );
}
