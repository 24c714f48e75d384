//! The real matrices, where their folder is at hand: the first folder of `BILU_BENCH_MATRICES`,
//! else `../shared/matrices` beside the project.

use std::path::PathBuf;

use bilu_bench::case::ReadAs;
use bilu_bench::matrix::cache::Cache;
use bilu_bench::problem::{Folders, Source, catalogue, right_hand_side};

/// The folder, or nothing and a word about it.
fn folder() -> Option<PathBuf> {
    let listed = std::env::var_os("BILU_BENCH_MATRICES").unwrap_or_default();
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/matrices");
    let folder = std::env::split_paths(&listed)
        .chain([PathBuf::from(beside)])
        .find(|f| f.join("MANIFEST.csv").is_file());
    if folder.is_none() {
        println!("skipped: no folder with MANIFEST.csv in BILU_BENCH_MATRICES or at {beside}");
    }
    folder
}

#[test]
fn every_file_of_the_manifest_loads_with_its_counts() {
    let Some(folder) = folder() else { return };
    let folders = Folders { search: vec![folder.clone()], data: None };
    let mut manifest = csv::Reader::from_path(folder.join("MANIFEST.csv")).unwrap();
    let headers = manifest.headers().unwrap().clone();
    let mut seen = 0;
    for row in manifest.records() {
        let row = row.unwrap();
        let field = |name: &str| &row[headers.iter().position(|h| h == name).unwrap()];
        let count = |name: &str| field(name).parse::<usize>().unwrap();
        let name = field("file").strip_suffix(".mtx.gz").unwrap();
        let source = Source::find(name, &folders).unwrap();
        let p = source.load(ReadAs::Expanded, &Cache::off()).unwrap();
        assert_eq!((p.matrix.rows(), p.matrix.nnz()), (count("n"), count("stored")), "{name}");
        let nonzero = p.matrix.values().iter().filter(|v| **v != 0.0).count();
        assert_eq!(nonzero, count("nonzero"), "{name}");
        // some right-hand sides are listed but not kept in the folder
        let has_rhs = folder.join(field("rhs_file")).is_file();
        assert_eq!(p.own_rhs.is_some(), has_rhs, "{name}: {:?}", p.remarks);
        if has_rhs {
            assert_eq!(right_hand_side(&p, "own").unwrap().len(), count("n"), "{name}");
        }
        let entry = catalogue::find(name).expect(name);
        assert_eq!((entry.n, entry.block), (count("n"), Some(count("natural_block"))), "{name}");
        assert!(entry.fits(count("n"), count("n"), count("stored"), false), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 21);
}
