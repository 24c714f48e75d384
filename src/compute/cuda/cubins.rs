//! Compiled kernels kept on disk, so that a program is compiled once for each block size and
//! architecture.
//!
//! The key is the SHA-256 of everything that decides what the compiler makes: source, headers,
//! options and its version. Entries lie in `cubins` below the folder of
//! [`matrix::cache`](crate::matrix::cache), and like that cache this one never causes an error: what
//! is damaged is compiled anew and replaced, what cannot be written is left out, with a remark.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::nvrtc;
use super::sources::{HEADERS, Source, Variant};
use crate::base::error::Result;
use crate::base::files::temporary_in;
use crate::base::input::say;
use crate::matrix::cache::{Cache, damaged, hex, prune};

/// First bytes of an entry, before the SHA-256 of the rest and the rest; the digit is the version of
/// the format.
const MAGIC: [u8; 8] = *b"BILUCUB1";
/// Ending of entries.
const ENDING: &str = "cubin";
/// Bytes the cache may hold; the entries that were not used for longest are dropped.
const LARGEST: u64 = 64 << 20;

/// Machine code of a `variant` of `source` for the compute capability `arch`:
/// from the cache, or compiled and put there.
///
/// # Errors
/// Those of [`nvrtc::compile`].
pub fn cubin(source: &Source, variant: &Variant, arch: (i32, i32)) -> Result<Vec<u8>> {
    static REMARK: Once = Once::new();
    let key = key(source, &nvrtc::options(source, variant.clone(), arch), nvrtc::version()?);
    Store::from_env().get(
        &key,
        || nvrtc::compile(source, variant.clone(), arch).map(|compiled| compiled.cubin),
        |remark| REMARK.call_once(|| say(&format!("note: compiled kernels: {remark}"))),
    )
}

/// What names an entry. Every part goes in with its length, so that no two lists of parts are alike.
fn key(source: &Source, options: &[String], version: (i32, i32)) -> String {
    let version = format!("{}.{}", version.0, version.1);
    let mut hasher = Sha256::new();
    let mut part = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    part(&version);
    part(source.name);
    part(source.text());
    for (name, text) in HEADERS.iter() {
        part(name);
        part(text);
    }
    for option in options {
        part(option);
    }
    hex(&hasher.finalize())
}

/// Where compiled kernels lie below the folder of the cache.
pub fn folder(cache: &Path) -> PathBuf {
    cache.join("cubins")
}

/// Where entries are kept.
struct Store {
    folder: Option<PathBuf>,
}

impl Store {
    fn from_env() -> Self {
        Self { folder: Cache::from_env().folder().map(folder) }
    }

    /// The entry called `key`, else what `compile` yields. `remark` hears of what went wrong with
    /// the cache.
    fn get(
        &self,
        key: &str,
        compile: impl FnOnce() -> Result<Vec<u8>>,
        mut remark: impl FnMut(String),
    ) -> Result<Vec<u8>> {
        let Some(folder) = &self.folder else { return compile() };
        let entry = folder.join(format!("{key}.{ENDING}"));
        match load(&entry) {
            Ok(cubin) => return Ok(cubin),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => remark(format!("cache entry not used: {e}")),
        }
        let cubin = compile()?;
        if let Err(e) = store(folder, &entry, &cubin) {
            remark(format!("cache not written: {e}"));
        }
        Ok(cubin)
    }
}

/// Reads an entry and checks it.
fn load(entry: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(entry)?;
    let mut bytes = Vec::new();
    (&file).take(LARGEST).read_to_end(&mut bytes)?;
    let rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| damaged("another format or version"))?;
    let (sum, cubin) = rest.split_at_checked(32).ok_or_else(|| damaged("it is cut off"))?;
    if Sha256::digest(cubin)[..] != *sum {
        return Err(damaged("its checksum is wrong"));
    }
    // the last use, for the choice of what to drop
    _ = file.set_modified(SystemTime::now());
    Ok(cubin.to_vec())
}

/// Writes an entry beside its final name and moves it there.
fn store(folder: &Path, entry: &Path, cubin: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = temporary_in(folder)?;
    for part in [&MAGIC[..], &Sha256::digest(cubin), cubin] {
        file.write_all(part)?;
    }
    file.persist(entry).map_err(|e| e.error)?;
    prune(folder, ENDING, LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;

    const CUBIN: &[u8] = b"\x7fELF and what a GPU executes";

    /// What was got, how often it was compiled, and the remarks.
    fn get(store: &Store, key: &str) -> (Vec<u8>, usize, Vec<String>) {
        let (mut compiled, mut remarks) = (0, Vec::new());
        let compile = || {
            compiled += 1;
            Ok(CUBIN.to_vec())
        };
        let cubin = store.get(key, compile, |remark| remarks.push(remark)).unwrap();
        (cubin, compiled, remarks)
    }

    fn got(compiled: usize, remarks: &[&str]) -> (Vec<u8>, usize, Vec<String>) {
        (CUBIN.to_vec(), compiled, remarks.iter().map(|&r| r.to_owned()).collect())
    }

    fn in_folder(folder: &Path) -> Store {
        Store { folder: Some(folder.to_owned()) }
    }

    #[test]
    fn an_entry_is_compiled_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = in_folder(&folder.path().join("not there yet"));
        assert_eq!(get(&store, "a"), got(1, &[]));
        assert_eq!(get(&store, "a"), got(0, &[]));
        assert_eq!(get(&store, "b"), got(1, &[]));
        let files = std::fs::read_dir(store.folder.unwrap()).unwrap();
        let mut names: Vec<_> = files.map(|f| f.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a.cubin", "b.cubin"]);
    }

    #[test]
    fn damaged_entries_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let store = in_folder(folder.path());
        get(&store, "a");
        let entry = folder.path().join("a.cubin");
        let good = std::fs::read(&entry).unwrap();
        let flipped = |at: usize| {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            bytes
        };
        for (bytes, why) in [
            (flipped(7), "another format or version"),
            (flipped(8), "its checksum is wrong"),
            (flipped(good.len() - 1), "its checksum is wrong"),
            (good[..good.len() - 1].to_vec(), "its checksum is wrong"),
            (good[..20].to_vec(), "it is cut off"),
            (Vec::new(), "another format or version"),
        ] {
            std::fs::write(&entry, bytes).unwrap();
            let remark = format!("cache entry not used: {why}");
            assert_eq!(get(&store, "a"), got(1, &[&remark]));
            assert_eq!(std::fs::read(&entry).unwrap(), good);
            assert_eq!(get(&store, "a"), got(0, &[]));
        }
    }

    #[test]
    fn works_without_a_folder_that_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let store = in_folder(&folder.path().join("file/below"));
        for _ in 0..2 {
            let (cubin, compiled, remarks) = get(&store, "a");
            assert_eq!((&cubin[..], compiled), (CUBIN, 1));
            let last = remarks.last().unwrap();
            assert!(last.starts_with("cache not written: "), "{last}");
            assert_eq!(get(&Store { folder: None }, "a"), got(1, &[]));
        }
    }

    #[test]
    fn errors_of_the_compiler_are_passed_on_and_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = in_folder(folder.path());
        let failed = store.get("a", || Err(Error::run("no")), |r| panic!("{r}"));
        assert_eq!(failed, Err(Error::run("no")));
        assert_eq!(get(&store, "a"), got(1, &[]));
    }

    #[test]
    fn everything_that_decides_the_code_is_in_the_key() {
        let source = |name, text, sized: bool| Source {
            name,
            text: Some(text),
            sizes: sized.then_some(1..=64),
        };
        let of = |source: &Source, size, arch, version| {
            key(source, &nvrtc::options(source, size, arch), version)
        };
        let k = source("k", "text", true);
        let mut keys = vec![
            of(&k, 4, (9, 0), (13, 0)),
            of(&k, 5, (9, 0), (13, 0)),
            of(&k, 4, (8, 0), (13, 0)),
            of(&k, 4, (9, 0), (13, 1)),
            of(&k, 4, (9, 0), (12, 9)),
            of(&source("k", "texts", true), 4, (9, 0), (13, 0)),
            of(&source("kt", "ext", true), 4, (9, 0), (13, 0)),
            of(&source("k", "text", false), 4, (9, 0), (13, 0)),
        ];
        assert_eq!(keys[0], of(&source("k", "text", true), 4, (9, 0), (13, 0)));
        assert!(keys.iter().all(|key| key.len() == 64));
        let unsized_source = source("k", "text", false);
        let [a, b] = [4, 5].map(|size| of(&unsized_source, size, (9, 0), (13, 0)));
        assert_eq!(a, b);
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 8);
    }
}
