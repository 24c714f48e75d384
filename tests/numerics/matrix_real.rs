//! The real matrices, where their folder is at hand: the first folder of `BILU_BENCH_MATRICES`,
//! else `../shared/matrices` beside the project.

use std::path::PathBuf;

use bilu_bench::case::ReadAs;
use bilu_bench::matrix::cache::Cache;
use bilu_bench::problem::info::inspect;
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

        let info = inspect(&p.matrix);
        let block = (info.block.size, info.block.blocks);
        assert_eq!(block, (count("natural_block"), count("blocks")), "{name}");
        assert_eq!(info.symmetry.pattern == 1.0, field("pattern_symmetric") == "yes", "{name}");
        let difference: f64 = field("asymmetry_rel").parse().unwrap();
        let rounded = format!("{:.2e}", info.symmetry.difference);
        assert_eq!(rounded.parse::<f64>().unwrap(), difference, "{name}");
        assert_eq!(
            info.diagonal.missing + info.diagonal.zero,
            count("zero_scalar_diagonals"),
            "{name}"
        );
        seen += 1;
    }
    assert_eq!(seen, 21);
}

#[test]
fn grids_of_reservoirs_are_recognised() {
    let Some(folder) = folder() else { return };
    let folders = Folders { search: vec![folder], data: None };
    for (name, grid) in [
        ("sherman1", Some(([10, 10, 10], 0))),
        ("orsreg_1", Some(([21, 21, 5], 0))),
        ("nos7", Some(([9, 9, 9], 0))),
        ("steam2", None),
        ("spe1_b3", Some(([10, 10, 3], 0))),
        ("spe9cp_b3", Some(([24, 25, 15], 62))),
        ("spe10m1_b3", Some(([100, 20, 1], 684))),
        ("jpwh_991", None),
        ("bcsstk16", None),
    ] {
        let source = Source::find(name, &folders).unwrap();
        let p = source.load(ReadAs::Expanded, &Cache::off()).unwrap();
        let found = inspect(&p.matrix).grid.map(|g| (g.size, g.others));
        assert_eq!(found, grid, "{name}");
    }
}
