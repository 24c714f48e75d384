//! Replays the corpus of the fuzz targets through the readers, and mutations of it: none may panic.
//!
//! `FUZZ_MUTATIONS=1000000 cargo test --test repository fuzz_corpus` looks further, and needs no nightly compiler as
//! the targets in `fuzz/` do; `FUZZ_SEED` begins elsewhere. What panics is kept in `fuzz/artifacts`.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "../../fuzz/readers.rs"]
mod readers;

fn files(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn replay(target: &str, read: fn(&[u8])) {
    let files = files(target);
    assert!(files.len() >= 20, "{target}: {} files", files.len());
    for path in files {
        // printed when the reader panics
        println!("{}", path.display());
        read(&std::fs::read(&path).unwrap());
    }
}

/// What readers look for.
const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    ",",
    " ",
    "\"",
    "-",
    "0",
    "1",
    "-1",
    "4294967295",
    "4294967296",
    "1e308",
    "1e-400",
    "nan",
    "inf",
    "%",
    "%%MatrixMarket matrix coordinate real general\n",
    "symmetric",
    "array",
    "pattern",
    "[[sweep]]\n",
    "[settings]\n",
    "=",
    "[",
    "]",
    "{",
    "}",
    "null",
    "true",
    "0..3",
    "all",
    "random:",
    "mcilu:p=1",
    "\0",
    "18446744073709551615",
    "é",
    "\u{93}NUMPY",
    "PK\u{3}\u{4}",
    "(2, 3)",
    "<i8",
];

/// A few changes to one input, with pieces of another.
fn mutate(rng: &mut ChaCha8Rng, data: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=data.len());
        let end = (at + rng.random_range(0..40)).min(data.len());
        match rng.random_range(0..7) {
            0 => drop(data.drain(at..end)),
            1 => data[at..end].reverse(),
            2 if at < data.len() => data[at] = rng.random(),
            3 if at < data.len() => data[at] ^= 1 << rng.random_range(0..8),
            4 => {
                let word = WORDS.choose(rng).expect("there are words");
                drop(data.splice(at..at, word.bytes()));
            }
            5 => {
                let again = data[at..end].to_vec();
                drop(data.splice(at..at, again));
            }
            _ if !other.is_empty() => {
                let from = rng.random_range(0..other.len());
                let to = (from + rng.random_range(0..80)).min(other.len());
                drop(data.splice(at..end, other[from..to].iter().copied()));
            }
            _ => {}
        }
    }
    data.truncate(20_000);
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a whole number"))
}

fn search(target: &str, read: fn(&[u8])) {
    let files: Vec<Vec<u8>> =
        files(target).iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(number("FUZZ_SEED", 0));
    for _ in 0..number("FUZZ_MUTATIONS", 200) {
        let mut data = files.choose(&mut rng).expect("the corpus is not empty").clone();
        let other = files.choose(&mut rng).expect("the corpus is not empty");
        mutate(&mut rng, &mut data, other);
        if catch_unwind(|| read(&data)).is_err() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/artifacts").join(target);
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("panic-{}", rng.random::<u32>()));
            std::fs::write(&path, &data).unwrap();
            panic!("{}", path.display());
        }
    }
}

#[test]
fn matrix_market_files() {
    replay("market", readers::market);
    search("market", readers::market);
}

#[test]
fn files_of_other_formats() {
    replay("formats", readers::formats);
    search("formats", readers::formats);
}

#[test]
fn experiments() {
    replay("experiment", readers::experiment);
    search("experiment", readers::experiment);
}

#[test]
fn result_files() {
    replay("results", readers::results);
    search("results", readers::results);
}
