//! The records in `results` are readable by this version.

#[path = "common/results.rs"]
mod results;

use std::path::Path;

use bilu_bench::record::read::{read, read_rows};
use bilu_bench::record::{Record, obstacle};

#[test]
fn every_committed_record_is_readable() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let mut found = Vec::new();
    results::files(&folder, &mut found);
    let (mut solves, mut obstacles) = (0, 0);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let header: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
        // summaries of several records have no revision
        if !header.contains(&"revision") {
            continue;
        }
        let lines = text.lines().count() - 1;
        let name = path.display();
        let count = if header.contains(&"precond") {
            let contents = read(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
            let times = |r: &Record| r.times.matrix_s.into_iter().chain(r.times.solve_s);
            assert!(contents.records.iter().flat_map(times).all(|s| s > 0.0), "{name}");
            solves += contents.records.len();
            contents.records.len()
        } else {
            let contents = read_rows::<obstacle::Record>(&path);
            let count = contents.unwrap_or_else(|e| panic!("{name}: {e}")).records.len();
            obstacles += count;
            count
        };
        assert_eq!(count, lines, "{name}");
    }
    assert!(solves > 2000 && obstacles > 100, "{solves} and {obstacles} records");
}
