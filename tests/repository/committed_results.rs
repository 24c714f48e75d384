//! The records in `results` are readable by this version.

use std::path::Path;

use bilu_bench::record::read::{read, read_rows};
use bilu_bench::record::{Record, obstacle};
use serde::Deserialize;

use crate::results;

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

/// `results/above-copy.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Above {
    cache: Vec<Cache>,
    reason: Vec<Reason>,
}

/// Last-level cache of a device.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cache {
    device: String,
    bytes: usize,
}

/// Why an operation may be faster than its bytes at copy bandwidth.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    tables: String,
    operation: String,
    backend: String,
    precond: Option<String>,
    why: String,
}

/// An operation of a record: its name, percent of the copy bandwidth and bytes.
type Operation = (&'static str, Option<f64>, Option<usize>);

/// What takes less time than its bytes at copy bandwidth, with the reason: the place of one in `above`, or none
/// for data in cache.
fn reason(
    above: &Above,
    table: &str,
    device: &str,
    (backend, precond): (&str, Option<&str>),
    (operation, bytes): (&str, Option<usize>),
) -> Result<Option<usize>, String> {
    let cache = above.cache.iter().find(|cache| device.starts_with(&cache.device));
    if cache.zip(bytes).is_some_and(|(cache, bytes)| bytes <= cache.bytes) {
        return Ok(None);
    }
    let fits = |reason: &Reason| {
        table.starts_with(&reason.tables)
            && reason.operation == operation
            && reason.backend == backend
            && reason.precond.as_deref().is_none_or(|of| Some(of) == precond)
    };
    let of = (operation, backend, precond, bytes);
    above.reason.iter().position(fits).map(Some).ok_or_else(|| format!("{table}: {of:?}"))
}

#[test]
fn nothing_is_faster_than_copying_without_a_reason() {
    const MOST: f64 = 105.0;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("results/above-copy.toml")).unwrap();
    let above: Above = toml::from_str(&text).unwrap();
    assert!(above.reason.iter().all(|reason| !reason.why.is_empty()));
    let mut needed = vec![false; above.reason.len()];
    let (mut faults, mut rows) = (Vec::new(), 0);
    let mut found = Vec::new();
    results::files(&root.join("results"), &mut found);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let header: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
        if !header.contains(&"revision") {
            continue;
        }
        let table = path.strip_prefix(root).unwrap().display().to_string();
        let mut check = |device: &str, of: (&str, Option<&str>), operations: &[Operation]| {
            for &(operation, percent, bytes) in operations {
                rows += usize::from(percent.is_some());
                if percent.is_some_and(|percent| percent > MOST) {
                    match reason(&above, &table, device, of, (operation, bytes)) {
                        Ok(place) => place.into_iter().for_each(|place| needed[place] = true),
                        Err(fault) => faults.push(fault),
                    }
                }
            }
        };
        if header.contains(&"precond") {
            for r in read(&path).unwrap().records {
                let t = &r.traffic;
                let operations: [Operation; 3] = [
                    ("spmv", t.spmv_percent_of_bandwidth, t.spmv_bytes),
                    ("apply", t.percent_of_bandwidth, t.apply_bytes),
                    ("numeric", t.numeric_percent_of_bandwidth, t.numeric_bytes),
                ];
                let slow = operations.map(|(name, percent, bytes)| {
                    (name, percent.filter(|_| !t.in_cache(bytes)), bytes)
                });
                check(&r.environment.device, (&r.case.backend, Some(&r.case.precond)), &slow);
            }
        } else {
            for r in read_rows::<obstacle::Record>(&path).unwrap().records {
                let sweep = ("sweep", r.cost.percent_of_bandwidth, r.cost.sweep_bytes);
                check(&r.environment.device, (&r.case.backend, None), &[sweep]);
            }
        }
    }
    assert!(faults.is_empty(), "without a reason:\n{}", faults.join("\n"));
    assert!(rows > 3000, "{rows} percentages");
    for (reason, needed) in above.reason.iter().zip(needed) {
        assert!(needed, "no row needs the reason of {}: {}", reason.tables, reason.why);
    }
}
