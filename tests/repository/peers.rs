//! `docs/peers.md` has a row for every peer that `scripts/peers` describes, as the records have it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::results;

/// Machines, and what the peer says of its version and device there, by peer.
fn measured(root: &Path) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let folder = root.join("results/peers");
    let mut files = Vec::new();
    results::files(&folder, &mut files);
    let mut found = BTreeMap::<String, (BTreeSet<String>, BTreeSet<String>)>::new();
    for path in files {
        let machine = path.strip_prefix(&folder).unwrap().iter().next().unwrap().to_string_lossy();
        let machine = machine.split('-').next().unwrap().to_owned();
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(&path).unwrap();
        let header = reader.headers().unwrap().clone();
        let at = |name| header.iter().position(|own| own == name).unwrap();
        let (backend, device) = (at("backend"), at("device"));
        for row in reader.records().map(Result::unwrap) {
            if let Some(peer) = row[backend].strip_prefix("external:") {
                let (machines, versions) = found.entry(peer.to_owned()).or_default();
                machines.insert(machine.clone());
                versions.insert(row[device].to_owned());
            }
        }
    }
    found
}

#[test]
fn every_peer_has_a_row_with_version_and_machines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/peers.md")).unwrap();
    let table = page.split_once("## What was measured").unwrap().1.split_once("\n## ").unwrap().0;
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut rows: BTreeMap<&str, &str> = rows.collect();
    let measured = measured(root);
    let mut described = 0;
    for entry in std::fs::read_dir(root.join("scripts/peers")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        described += 1;
        let peer = path.file_stem().unwrap().to_str().unwrap();
        let row = rows.remove(peer).unwrap_or_else(|| panic!("docs/peers.md has no row `{peer}`"));
        let (version, rest) = row.split_once(" | ").unwrap();
        let said = rest.split_once(" | ").unwrap().0.to_lowercase();
        let (machines, versions) = &measured[peer];
        assert!(versions.iter().any(|own| own.contains(version)), "{peer}: {versions:?}");
        let words = said.split(|c: char| !c.is_alphanumeric());
        let known = ["xeon", "epyc", "h100", "h200"];
        let said: BTreeSet<String> =
            words.filter(|word| known.contains(word)).map(str::to_owned).collect();
        assert_eq!(said, *machines, "{peer}");
    }
    assert!(rows.is_empty(), "without a description: {rows:?}");
    assert_eq!(described, 14);
}
