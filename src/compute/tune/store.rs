//! What tuning found on a device, kept beside the compiled kernels: one JSON file for each device in
//! `tuning` below the folder of [`matrix::cache`](crate::matrix::cache).
//!
//! As the caches, the file never causes an error where it is only read: what is damaged is not used.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Choices;
use super::descent::{Descent, Trial};
use crate::base::error::{Error, Result};
use crate::base::files;
use crate::matrix::cache::Cache;

/// Version of the file: that of the choices and of the kernels that they are for.
const VERSION: u32 = 1;

/// A choice holds for sizes up to so many times larger or smaller.
const REACH: f64 = 4.0;

/// Largest file that is read.
const LARGEST: u64 = 16 << 20;

/// Everything that was found on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Store {
    version: u32,
    /// What the device calls itself, with its driver.
    device: String,
    entries: Vec<Entry>,
}

/// What was found for a kernel and a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The kernel, with all that it is compiled for.
    pub kernel: String,
    /// Scalar rows.
    pub rows: usize,
    /// The system that was measured.
    pub system: String,
    /// Whether the search came to its end.
    pub finished: bool,
    /// Every point that was tried, the usual one first.
    pub trials: Vec<Trial>,
}

impl Entry {
    /// The fastest choices.
    pub fn best(&self) -> Option<Trial> {
        self.descent().best().cloned()
    }

    /// To go on with.
    pub(crate) fn descent(&self) -> Descent {
        Descent { trials: self.trials.clone(), finished: self.finished }
    }
}

impl Store {
    /// Nothing yet.
    pub fn new(device: &str) -> Self {
        Self { version: VERSION, device: device.to_owned(), entries: Vec::new() }
    }

    /// The file of `device`; `None` when there is no folder for caches.
    pub fn file(device: &str) -> Option<PathBuf> {
        let name: String =
            device
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' }
                })
                .collect();
        Some(folder(Cache::from_env().folder()?).join(format!("{name}.json")))
    }

    /// What the file of `device` holds; nothing where there is none, or where it is of another version
    /// or device.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged; the message names it.
    pub fn load(device: &str) -> Result<Self> {
        let new = Self::new(device);
        let Some(path) = Self::file(device) else { return Ok(new) };
        let stored = match read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(new),
            read => read.map_err(|e| Error::io("read", &path, &e))?,
        };
        Ok(if (stored.version, &stored.device) == (VERSION, &new.device) { stored } else { new })
    }

    /// Writes the file; the one before stays until all is written.
    ///
    /// # Errors
    /// When there is no folder for caches, or it cannot be written.
    pub fn save(&self) -> Result<PathBuf> {
        let path = Self::file(&self.device).ok_or_else(|| {
            Error::input("the cache is off, and nowhere to keep what tuning finds")
                .in_file(crate::matrix::cache::CACHE)
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|e| Error::io("write", &path, &e))?;
        let mut text = serde_json::to_vec_pretty(self).expect("writing to memory");
        text.push(b'\n');
        files::write(&path, &text)?;
        Ok(path)
    }

    /// The entries, in the order in which they were made.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of a kernel and a size, if that was searched.
    pub fn entry(&self, kernel: &str, rows: usize) -> Option<&Entry> {
        self.entries.iter().find(|e| e.kernel == kernel && e.rows == rows)
    }

    /// Puts `entry` in the place of the one of its kernel and size.
    pub fn put(&mut self, entry: Entry) {
        let same = |e: &&mut Entry| e.kernel == entry.kernel && e.rows == entry.rows;
        match self.entries.iter_mut().find(same) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
    }

    /// The choices for `rows` rows: those of the nearest size that is at most four times larger or
    /// smaller.
    pub fn choices(&self, kernel: &str, rows: usize) -> Option<Choices> {
        let distance = |e: &Entry| (e.rows.max(1) as f64 / rows.max(1) as f64).ln().abs();
        let near = self.entries.iter().filter(|e| e.kernel == kernel && distance(e) <= REACH.ln());
        let nearest = near.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        nearest.best().map(|best| best.choices)
    }
}

/// Where the files lie below the folder of the cache.
pub fn folder(cache: &Path) -> PathBuf {
    cache.join("tuning")
}

fn read(path: &Path) -> io::Result<Store> {
    let file = File::open(path)?;
    if file.metadata()?.len() > LARGEST {
        return Err(crate::matrix::cache::damaged("it is too large"));
    }
    Ok(serde_json::from_reader(io::BufReader::new(file))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(rows: usize, seconds: Option<f64>) -> Trial {
        Trial { choices: [("ROWS".to_owned(), rows)].into(), seconds }
    }

    fn entry(kernel: &str, rows: usize, trials: &[Trial]) -> Entry {
        let system = format!("{kernel} {rows}");
        Entry { kernel: kernel.into(), rows, system, finished: true, trials: trials.to_vec() }
    }

    fn store() -> Store {
        let mut store = Store::new("GPU");
        store.put(entry("a", 1000, &[trial(1, Some(2.0)), trial(2, Some(1.0)), trial(4, None)]));
        store.put(entry("a", 100_000, &[trial(1, Some(1.0)), trial(2, Some(2.0))]));
        store.put(entry("b", 1000, &[trial(4, None)]));
        store
    }

    #[test]
    fn the_nearest_size_within_reach_decides() {
        let store = store();
        let rows = |kernel: &str, n: usize| store.choices(kernel, n).map(|c| c["ROWS"]);
        assert_eq!([1000, 3999, 251].map(|n| rows("a", n)), [Some(2); 3]);
        assert_eq!([30_000, 399_000].map(|n| rows("a", n)), [Some(1); 2]);
        assert_eq!([249, 5000, 20_000, 500_000].map(|n| rows("a", n)), [None; 4]);
        // one for which nothing works has no choices
        assert_eq!((rows("b", 1000), rows("c", 1000)), (None, None));
    }

    #[test]
    fn an_entry_takes_the_place_of_the_one_before() {
        let mut store = store();
        store.put(entry("a", 1000, &[trial(8, Some(0.5))]));
        assert_eq!(store.entries().len(), 3);
        assert_eq!(store.entry("a", 1000).unwrap().best().unwrap().choices["ROWS"], 8);
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let text = serde_json::to_string(&store()).unwrap();
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read(&path).unwrap(), store());
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert!(read(&path).is_err());
    }
}
