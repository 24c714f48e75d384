//! Result files that grow by one record at a time and are whole after each.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files;
use crate::result::read::{FileFormat, read_rows};
use crate::result::record::Record;
use crate::result::table::{self, Row};

/// What to do with a file that already holds something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Refuse it.
    #[default]
    Refuse,
    /// Keep its records and add those that are missing.
    Resume,
    /// Empty it.
    Overwrite,
}

/// One result file.
#[derive(Debug)]
struct Output<R> {
    path: PathBuf,
    format: FileFormat,
    /// Open for appending, or the last version of a file that is rewritten; locked against other
    /// processes as long as it is open.
    file: File,
    records: Vec<R>,
}

/// All result files of a run.
#[derive(Debug)]
pub struct Outputs<R = Record> {
    files: Vec<Output<R>>,
    /// What was noticed while opening them.
    pub remarks: Vec<String>,
}

impl<R> Default for Outputs<R> {
    fn default() -> Self {
        Self { files: Vec::new(), remarks: Vec::new() }
    }
}

impl<R: Row> Outputs<R> {
    /// Opens or creates every file, so that an output that cannot be written is known before the
    /// first case runs.
    pub fn open(paths: &[PathBuf], existing: Existing) -> Result<Self> {
        let mut outputs = Self::default();
        for path in paths {
            if outputs.files.iter().any(|o| o.path == *path) {
                outputs.remarks.push(format!("{}: given more than once", path.display()));
                continue;
            }
            let file = Output::open(path, existing, &mut outputs.remarks)?;
            outputs.files.push(file);
        }
        let readable = |o: &Output<R>| o.format != FileFormat::Markdown;
        if existing == Existing::Resume && !outputs.files.iter().any(readable) {
            return Err(Error::input("--resume needs an --output that can be read back")
                .hint("give one that ends in .csv, .jsonl or .json"));
        }
        outputs.align()?;
        Ok(outputs)
    }

    /// As [`open`](Self::open), where having no file to resume is no error: another process has it.
    pub fn open_or_none(paths: &[PathBuf], existing: Existing) -> Result<Self> {
        if paths.is_empty() { Ok(Self::default()) } else { Self::open(paths, existing) }
    }

    /// The records that the files held when they were opened.
    pub fn records(&self) -> Vec<R> {
        self.files.first().map(|o| o.records.clone()).unwrap_or_default()
    }

    /// The paths, for messages.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|o| o.path.as_path())
    }

    /// Adds a record to every file; it is on disk when this returns.
    pub fn add(&mut self, record: &R) -> Result<()> {
        self.files.iter_mut().try_for_each(|output| output.add(record))
    }

    /// Gives every file the records that another one holds and it lacks.
    fn align(&mut self) -> Result<()> {
        let mut all: Vec<R> = Vec::new();
        for record in self.files.iter().flat_map(|o| &o.records) {
            if !contains(&all, record) {
                all.push(record.clone());
            }
        }
        for output in &mut self.files {
            for record in &all {
                if !contains(&output.records, record) {
                    output.add(record)?;
                }
            }
        }
        Ok(())
    }
}

fn contains<R: Row>(records: &[R], record: &R) -> bool {
    records.iter().any(|r| r.case() == record.case() && r.round() == record.round())
}

impl<R: Row> Output<R> {
    fn open(path: &Path, existing: Existing, remarks: &mut Vec<String>) -> Result<Self> {
        let format = FileFormat::of(path)?;
        if matches!(format, FileFormat::Json | FileFormat::Markdown) && files::leads_to_stream(path)
        {
            let message = "is a device or a pipe, and this form is rewritten after every record";
            return Err(Error::input(format!("`{}` {message}", path.display()))
                .hint("give it a name that ends in .csv or .jsonl, which are appended to"));
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|e| cannot("write", path, &e))?;
        lock(&file, path)?;
        let length = file.metadata().map_err(|e| cannot("read", path, &e))?.len();
        let mut records = Vec::new();
        if length > 0 {
            match existing {
                Existing::Refuse => {
                    return Err(files::exists(path)
                        .hint("--resume adds what is missing to it, --force overwrites it"));
                }
                Existing::Overwrite => file.set_len(0).map_err(|e| cannot("empty", path, &e))?,
                // rewritten from the records of the other files
                Existing::Resume if format == FileFormat::Markdown => {}
                Existing::Resume => {
                    let contents = read_rows(path)?;
                    if contents.cut_off {
                        remarks.push(format!(
                            "{}: the last record was cut off and is dropped",
                            path.display()
                        ));
                        file.set_len(contents.valid_bytes).map_err(|e| cannot("cut", path, &e))?;
                    }
                    if format == FileFormat::Csv && contents.valid_bytes > 0 {
                        same_columns::<R>(path)?;
                    }
                    records = contents.records;
                }
            }
        }
        let mut output = Self { path: path.to_owned(), format, file, records };
        output.start()?;
        Ok(output)
    }

    /// Writes the header of an empty CSV file, or the file as a whole.
    fn start(&mut self) -> Result<()> {
        match self.format {
            FileFormat::JsonLines => Ok(()),
            FileFormat::Csv => {
                let end = self.file.seek(SeekFrom::End(0)).unwrap_or(0);
                if end > 0 {
                    return Ok(());
                }
                self.append(&header_line::<R>())
            }
            FileFormat::Json | FileFormat::Markdown => self.rewrite(),
        }
    }

    fn add(&mut self, record: &R) -> Result<()> {
        self.records.push(record.clone());
        match self.format {
            FileFormat::Csv => self.append(&csv_line(&table::to_cells(record))),
            FileFormat::JsonLines => {
                let mut line = json(record, false);
                line.push(b'\n');
                self.append(&line)
            }
            FileFormat::Json | FileFormat::Markdown => self.rewrite(),
        }
    }

    /// One write for a whole line, then on to the disk. A line that only went in part is taken
    /// back, so that a full disk leaves whole records.
    fn append(&mut self, line: &[u8]) -> Result<()> {
        let file = &mut self.file;
        let before = file.metadata().map_or(0, |m| m.len());
        let written = file.write_all(line).and_then(|()| match file.sync_data() {
            // pipes and character devices cannot be synchronised
            Err(e) if e.kind() == ErrorKind::InvalidInput => Ok(()),
            other => other,
        });
        written.map_err(|e| {
            let _ = file.set_len(before);
            cannot("write", &self.path, &e)
        })
    }

    /// Replaces the file.
    fn rewrite(&mut self) -> Result<()> {
        let text = if self.format == FileFormat::Markdown {
            R::markdown(&self.records).into_bytes()
        } else {
            let mut text = json(&self.records, true);
            text.push(b'\n');
            text
        };
        let replaced = files::replace(&self.path, |file| {
            // nobody else can have it yet; where there are no locks it goes without
            let _ = file.try_lock();
            file.write_all(&text)?;
            file.sync_data()
        });
        self.file = replaced.map_err(|e| cannot("write", &self.path, &e))?;
        Ok(())
    }
}

/// Refuses a file that another process writes. Pipes and devices are shared, and some file systems have
/// no locks.
fn lock(file: &File, path: &Path) -> Result<()> {
    let regular = file.metadata().is_ok_and(|m| m.is_file());
    match file.try_lock() {
        Err(TryLockError::WouldBlock) if regular => {
            Err(Error::input(format!("`{}` is being written by another run", path.display()))
                .hint("wait for it, or write to another file"))
        }
        _ => Ok(()),
    }
}

fn cannot(action: &str, path: &Path, error: &std::io::Error) -> Error {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk is full; records written before are whole, continue with --resume"
        }
        ErrorKind::NotFound => "its folder does not exist; create it first",
        ErrorKind::IsADirectory => "it is a folder; name a file in it",
        ErrorKind::NotADirectory => "part of the path is a file, not a folder",
        ErrorKind::PermissionDenied => "choose a place that you may write to",
        _ => return Error::io(action, path, error),
    };
    Error::io(action, path, error).hint(hint)
}

/// Rows can only be added under the columns that this version writes.
fn same_columns<R: Row>(path: &Path) -> Result<()> {
    let text = std::fs::read(path).map_err(|e| cannot("read", path, &e))?;
    if text.starts_with(&header_line::<R>()) {
        return Ok(());
    }
    Err(Error::input("its columns are not those that this version writes")
        .at(path.display().to_string(), 1, None)
        .hint("write to a new file"))
}

fn header_line<R: Row>() -> Vec<u8> {
    csv_line(&R::schema().iter().map(|c| c.name.clone()).collect::<Vec<_>>())
}

fn csv_line(cells: &[String]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells).expect("writing to memory");
    writer.into_inner().expect("writing to memory")
}

fn json<T: serde::Serialize>(value: &T, pretty: bool) -> Vec<u8> {
    let text = if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    text.expect("records are flat objects of strings and numbers")
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
