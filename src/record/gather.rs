//! Gathers results of every kind from files and folders, for reports; damaged ones are skipped and listed.

mod rows;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::units::plural;
use crate::record::read::FileFormat;
use crate::record::{Record, contents, obstacle, rounds};

/// Largest file that is read.
pub(crate) const LARGEST_FILE: u64 = 256 << 20;

/// Largest number of rows, over all files.
pub(crate) const MOST_ROWS: usize = 100_000;

/// Largest number of files in a folder tree.
const MOST_FILES: usize = 10_000;

/// Largest depth of nested folders.
const DEEPEST: usize = 16;

/// Name of the file with the output of `bilu-bench doctor`.
const DOCTOR: &str = "environment.txt";

/// Name of the file with the states of tables, which `scripts/results-status.py` writes.
const STATUS: &str = "STATUS.md";

/// All results found.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The files that hold rows, in the order of their names.
    pub sets: Vec<Set>,
    /// Where a file `environment.txt` lies, and its text.
    pub doctor: Vec<(String, String)>,
    /// Tables by their path in the repository, each with its state: `mixed, stale`.
    pub states: Vec<(String, String)>,
    /// Every file that was read.
    pub paths: Vec<PathBuf>,
    /// What was skipped, and why.
    pub notes: Vec<String>,
}

impl Gathered {
    /// The state of a table, by its path with or without what leads to the repository.
    pub(crate) fn state(&self, table: &str) -> Option<&str> {
        let known = self.states.iter().find(|(own, _)| Path::new(table).ends_with(own));
        known.map(|(_, state)| state.as_str())
    }

    /// The folder that holds `results`, of whose files some were read.
    pub(crate) fn root(&self) -> Option<PathBuf> {
        let root = |path: &PathBuf| {
            let above = path.ancestors().find(|above| is(above, "results"))?;
            above.parent().map(Path::to_owned)
        };
        self.paths.iter().find_map(root)
    }

    /// Gives runs of one name but other systems names of their own; see [`contents::set_apart`] and
    /// [`obstacle::set_apart`].
    pub(crate) fn set_apart(&mut self) {
        let (mut runs, mut problems) = (Vec::new(), Vec::new());
        for set in &mut self.sets {
            match &mut set.rows {
                Rows::Runs(records) => runs.extend(records),
                Rows::Obstacle(records) => problems.extend(records),
                Rows::Tuning(_) | Rows::Derived(..) => {}
            }
        }
        self.notes.extend(contents::set_apart(&mut runs));
        self.notes.extend(obstacle::set_apart(&mut problems));
    }
}

/// The rows of a file. A CSV file and a JSON file with the same rows are one set.
#[derive(Clone, Debug)]
pub struct Set {
    /// Path without the extension.
    pub name: String,
    pub files: Vec<String>,
    pub rows: Rows,
}

/// Rows of one kind.
#[derive(Clone, Debug)]
pub enum Rows {
    /// Solves and products.
    Runs(Vec<Record>),
    /// Obstacle problems.
    Obstacle(Vec<obstacle::Record>),
    /// Trials of `tune`.
    Tuning(Vec<Trial>),
    /// Rows of `compare` or `versus`: columns and cells.
    Derived(Vec<String>, Vec<Vec<String>>),
}

impl Rows {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Runs(rows) => rows.len(),
            Self::Obstacle(rows) => rows.len(),
            Self::Tuning(rows) => rows.len(),
            Self::Derived(_, rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their kind, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Runs(_) => "solves and products",
            Self::Obstacle(_) => "obstacle problems",
            Self::Tuning(_) => "tuning",
            Self::Derived(..) => "comparisons",
        }
    }
}

/// A trial of `tune`: a kernel with certain parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Trial {
    pub system: String,
    /// The kernel with what it is compiled for.
    pub kernel: String,
    pub rows: usize,
    pub choices: String,
    /// Median time of a product; none where it does not run.
    pub seconds: Option<f64>,
    /// Least memory traffic divided by that time.
    pub gbps: Option<f64>,
    /// That as a percentage of the copy bandwidth.
    pub percent_of_copy: Option<f64>,
    /// Whether the search was completed.
    pub search: String,
}

/// Reads `paths`, files or folders. In folders files of other kinds are passed over.
///
/// # Errors
/// When a path that was named cannot be read, or when no row was found at all.
pub(crate) fn gather(paths: &[PathBuf]) -> Result<Gathered> {
    let mut gathering = Gathering::default();
    for path in paths {
        let data = std::fs::metadata(path).map_err(|e| Error::io("read", path, &e))?;
        if data.is_dir() {
            gathering.folder(path)?;
        } else {
            if !is_other(path) && FileFormat::of(path)? == FileFormat::Markdown {
                return Err(Error::input("a Markdown table cannot be read back")
                    .in_file(path.display().to_string())
                    .hint("keep a .csv, .jsonl or .json beside it"));
            }
            gathering.file(path)?;
        }
    }
    let Gathering { mut found, left, .. } = gathering;
    for set in &mut found.sets {
        if let Rows::Runs(rows) = &mut set.rows {
            *rows = rounds::aggregated(rows);
        }
    }
    if found.sets.is_empty() {
        let why = found.notes.first().map(|note| format!("left out: {note}"));
        let hint =
            why.unwrap_or_else(|| "give .csv, .jsonl or .json files, or their folder".into());
        return Err(Error::input("no results were found").hint(hint));
    }
    if left > 0 {
        found
            .notes
            .push(format!("{} beyond the first {MOST_ROWS} were left out", plural(left, "row")));
    }
    Ok(found)
}

/// Whether it is a file of that name.
fn is(path: &Path, own: &str) -> bool {
    path.file_name().is_some_and(|name| name == own)
}

/// Whether it is read, though it has no rows.
fn is_other(path: &Path) -> bool {
    is(path, DOCTOR) || is(path, STATUS)
}

/// Tables and their states in the text of a file of states.
fn states(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?.to_owned(), cells.next()?.to_owned()))
    });
    rows.filter(|(table, _)| FileFormat::of(Path::new(table)) == Ok(FileFormat::Csv))
}

#[derive(Default)]
struct Gathering {
    found: Gathered,
    /// Rows that are kept.
    rows: usize,
    /// Rows that no longer fit.
    left: usize,
    /// Fingerprints of rows, so that a file in two forms counts once.
    seen: HashSet<u64>,
    files: usize,
}

impl Gathering {
    /// All files below `folder`, in the order of their names.
    fn folder(&mut self, folder: &Path) -> Result<()> {
        let mut folders = vec![(folder.to_owned(), 0)];
        let mut files = Vec::new();
        while let Some((folder, depth)) = folders.pop() {
            let entries = std::fs::read_dir(&folder).map_err(|e| Error::io("read", &folder, &e))?;
            for entry in entries {
                let entry = entry.map_err(|e| Error::io("read", &folder, &e))?;
                // links are not followed, so that no folder is met twice
                let kind = entry.file_type().map_err(|e| Error::io("read", &entry.path(), &e))?;
                if kind.is_dir() && depth < DEEPEST {
                    folders.push((entry.path(), depth + 1));
                } else if kind.is_file() && (is_other(&entry.path()) || readable(&entry.path())) {
                    files.push(entry.path());
                }
            }
        }
        files.sort();
        for file in files {
            self.file(&file)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        self.files += 1;
        self.found.paths.push(path.to_owned());
        if self.files > MOST_FILES {
            return Err(Error::input(format!("there are more than {MOST_FILES} result files"))
                .hint("name the folders that the report is to be of"));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|e| Error::io("read", path, &e))?;
        file.take(LARGEST_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| Error::io("read", path, &e))?;
        if bytes.len() as u64 > LARGEST_FILE {
            let megabytes = LARGEST_FILE >> 20;
            self.found.notes.push(format!("{name}: larger than {megabytes} MiB, not read"));
        } else if is_other(path) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if is(path, STATUS) {
                self.found.states.extend(states(&text));
            } else {
                self.found.doctor.push((name, text));
            }
        } else {
            self.add(path, &name, &bytes);
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, name: &str, bytes: &[u8]) {
        let (rows, notes) = rows::read(FileFormat::of(path).ok(), name, bytes);
        self.found.notes.extend(notes);
        let Some(mut rows) = rows else { return };
        let before = rows.len();
        match &mut rows {
            Rows::Runs(rows) => self.keep(rows),
            Rows::Obstacle(rows) => self.keep(rows),
            Rows::Tuning(rows) => self.keep(rows),
            Rows::Derived(_, rows) => self.keep(rows),
        }
        let set_name = path.with_extension("").display().to_string();
        if let Some(set) = self.found.sets.iter_mut().find(|set| set.name == set_name)
            && rows.is_empty()
            && before == set.rows.len()
        {
            set.files.push(name.to_owned());
        } else if !rows.is_empty() {
            self.found.sets.push(Set { name: set_name, files: vec![name.to_owned()], rows });
        }
    }

    /// Drops duplicate rows, and those beyond [`MOST_ROWS`].
    fn keep<T: std::fmt::Debug>(&mut self, rows: &mut Vec<T>) {
        rows.retain(|row| {
            if !self.seen.insert(fingerprint(row)) {
                return false;
            }
            let fits = self.rows < MOST_ROWS;
            self.rows += usize::from(fits);
            self.left += usize::from(!fits);
            fits
        });
    }
}

/// Whether the extension is that of records.
fn readable(path: &Path) -> bool {
    FileFormat::of(path).is_ok_and(|format| format != FileFormat::Markdown)
}

/// Hash of a row.
fn fingerprint(row: &impl std::fmt::Debug) -> u64 {
    struct Sink(DefaultHasher);
    impl std::fmt::Write for Sink {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            text.hash(&mut self.0);
            Ok(())
        }
    }
    let mut sink = Sink(DefaultHasher::new());
    // writing to a hash cannot fail
    let _ = write!(sink, "{row:?}");
    sink.0.finish()
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
