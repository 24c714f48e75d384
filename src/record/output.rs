//! Result files that grow by one record at a time and are complete after each.
//!
//! What a file holds is read and checked by [`Outputs::check`], which changes nothing; [`Outputs::start`]
//! creates missing files. A file that is to be overwritten, or that needs further columns, is replaced
//! together with the first new record: written to a temporary file, then renamed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::files::Replacement;
use crate::base::units::plural;
use crate::record::columns::SCHEMA_VERSION;
use crate::record::lines::Layout;
use crate::record::read::{Contents, FileFormat, read_rows_from, without_bom};
use crate::record::schema::Record;
use crate::record::table::{Row, fields};

/// What to do with a file that already holds something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Refuse it.
    #[default]
    Refuse,
    /// Keep its records and add the missing ones.
    Resume,
    /// Replace it as soon as there is a record.
    Overwrite,
}

/// One result file.
#[derive(Debug)]
struct Output<R> {
    path: PathBuf,
    format: FileFormat,
    /// Locked against other processes as long as it is open; none before the file is made.
    file: Option<File>,
    /// The records that it holds.
    records: Vec<R>,
    /// How it holds them.
    layout: Layout<R>,
    /// The records of a JSON file with all their keys, also those that this version does not know.
    objects: Vec<Map<String, Value>>,
    next: Next,
}

/// How the next record is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    /// It is appended behind so many bytes and what is missing there: a line end, or a header.
    Append(u64, Vec<u8>),
    /// The file is replaced by these lines and the record.
    Replace(Vec<u8>),
}

/// All result files of a run.
#[derive(Debug, Default)]
pub struct Outputs<R = Record> {
    files: Vec<Output<R>>,
    /// The records that were there, each once.
    earlier: Vec<R>,
    /// Records that were added.
    added: usize,
    /// Remarks about reading them.
    pub remarks: Vec<String>,
}

impl<R: Row> Outputs<R> {
    /// Reads, checks and locks what is there, and changes nothing: an output that cannot be written or
    /// continued is known before the first case runs.
    ///
    /// # Errors
    /// When a file exists and must not, is damaged, is written by another process or cannot be made.
    pub fn check(paths: &[PathBuf], existing: Existing) -> Result<Self> {
        let mut outputs = Self::default();
        files::refuse_overlap(paths, &[])?;
        for path in paths {
            if outputs.files.iter().any(|o| o.path == *path) {
                outputs.remarks.push(format!("{}: given more than once", path.display()));
                continue;
            }
            let file = Output::check(path, existing, &mut outputs.remarks)?;
            outputs.files.push(file);
        }
        let readable = |o: &Output<R>| o.format != FileFormat::Markdown;
        if existing == Existing::Resume && !outputs.files.iter().any(readable) {
            return Err(Error::input("--resume needs an --output that can be read back")
                .hint("give one that ends in .csv, .jsonl or .json"));
        }
        for record in outputs.files.iter().flat_map(|o| &o.records) {
            if !contains(&outputs.earlier, record) {
                outputs.earlier.push(record.clone());
            }
        }
        // a table cannot be read back: it is taken for one of these records only where there are some
        let foreign = |o: &&Output<R>| o.file.is_some() && o.holds_something() && !readable(o);
        let foreign = outputs.files.iter().find(foreign);
        if let Some(output) =
            foreign.filter(|_| existing == Existing::Resume && outputs.earlier.is_empty())
        {
            return Err(files::exists(&output.path).hint(
                "the other files hold no record that it could be of; --force overwrites it",
            ));
        }
        Ok(outputs)
    }

    /// Makes the files that are not there, drops a last record that was cut off and gives every file the
    /// records that another one holds and it lacks. Files that are to be overwritten stay as they are.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn start(&mut self) -> Result<()> {
        let Self { files, earlier, .. } = self;
        for output in files {
            output.start()?;
            let lacking: Vec<R> =
                earlier.iter().filter(|r| !contains(&output.records, r)).cloned().collect();
            if !lacking.is_empty() {
                let staged = output.stage(&lacking)?;
                output.commit(&lacking, staged)?;
            }
        }
        Ok(())
    }

    /// [`check`](Self::check) and [`start`](Self::start), where nothing lies between.
    ///
    /// # Errors
    /// Those of both.
    pub fn open(paths: &[PathBuf], existing: Existing) -> Result<Self> {
        let mut outputs = Self::check(paths, existing)?;
        outputs.start()?;
        Ok(outputs)
    }

    /// As [`check`](Self::check), where having no file to resume is no error: another process has it.
    pub(crate) fn check_or_none(paths: &[PathBuf], existing: Existing) -> Result<Self> {
        if paths.is_empty() { Ok(Self::default()) } else { Self::check(paths, existing) }
    }

    /// The records that the files held when they were opened.
    pub fn records(&self) -> Vec<R> {
        self.earlier.clone()
    }

    /// The paths, for messages.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|o| o.path.as_path())
    }

    /// Records that were added.
    pub fn added(&self) -> usize {
        self.added
    }

    /// Adds a record to every file; it is on disk when this returns. Files that are replaced get their
    /// names when all of them are whole.
    ///
    /// # Errors
    /// When a file cannot be written; every file holds whole records still.
    pub fn add(&mut self, record: &R) -> Result<()> {
        let new = std::slice::from_ref(record);
        let staged =
            self.files.iter().map(|output| output.stage(new)).collect::<Result<Vec<_>>>()?;
        for (output, staged) in self.files.iter_mut().zip(staged) {
            output.commit(new, staged)?;
        }
        self.added += 1;
        Ok(())
    }
}

/// Whether a file holds a record already: one of the same case.
fn contains<R: Row>(records: &[R], record: &R) -> bool {
    records.iter().any(|r| r.case() == record.case() && r.round() == record.round())
}

impl<R: Row> Output<R> {
    fn check(path: &Path, existing: Existing, remarks: &mut Vec<String>) -> Result<Self> {
        let format = FileFormat::of(path)?;
        let layout = Layout::default();
        let next = Next::Append(0, layout.start(format));
        let path = path.to_owned();
        let (records, objects) = (Vec::new(), Vec::new());
        let mut output = Self { path, format, file: None, records, layout, objects, next };
        let path = &output.path;
        if files::leads_to_stream(path) {
            if output.is_rewritten() {
                let message =
                    "is a device or a pipe, and this form is rewritten after every record";
                return Err(Error::input(format!("`{}` {message}", path.display()))
                    .hint("give it a name that ends in .csv or .jsonl, which are appended to"));
            }
            return Ok(output);
        }
        let Some(file) = locked(path, false)? else {
            files::probe(path).map_err(|e| cannot("write", path, &e))?;
            return Ok(output);
        };
        output.file = Some(file);
        if output.holds_something() {
            match existing {
                Existing::Refuse => {
                    return Err(files::exists(path)
                        .hint("--resume adds what is missing to it, --force overwrites it"));
                }
                Existing::Overwrite => output.next = Next::Replace(output.layout.start(format)),
                // rewritten from the records of the other files
                Existing::Resume if format == FileFormat::Markdown => {}
                Existing::Resume => output.resume(remarks)?,
            }
        }
        Ok(output)
    }

    /// Reads the records that are there and finds out how others are added.
    fn resume(&mut self, remarks: &mut Vec<String>) -> Result<()> {
        let path = &self.path;
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|e| cannot("read", path, &e))?;
        let contents: Contents<R> = read_rows_from(&name, self.format, &bytes)?;
        if contents.unsure {
            return Err(Error::input("the last line has no end, and may have been cut off")
                .in_file(name)
                .hint("end it, or remove it, and give the same command again"));
        }
        let kept = &bytes[..contents.valid_bytes as usize];
        if contents.cut_off {
            remarks.push(format!("{name}: the last record was cut off and is dropped"));
        }
        match self.format {
            FileFormat::Csv if without_bom(kept).trim_ascii().is_empty() => {
                let start = self.layout.start(self.format);
                // what is dropped must be of a file that this program began
                if contents.cut_off && !start.starts_with(without_bom(&bytes)) {
                    return Err(Error::input(
                        "its only line has no end and is no header of records",
                    )
                    .in_file(name)
                    .hint("write to another file, or overwrite this one with --force"));
                }
                self.next = Next::Append(0, start);
            }
            FileFormat::Csv => {
                self.layout = Layout::of(contents.header.clone(), kept);
                let lacking = self.layout.lacking();
                self.next = if lacking.is_empty() {
                    Next::Append(kept.len() as u64, self.layout.end_of(kept))
                } else {
                    let count = plural(lacking.len(), "column");
                    remarks.push(format!(
                        "{name}: gets {count} that an earlier version did not write"
                    ));
                    let text = self.layout.extended(without_bom(kept), &contents.records);
                    self.layout.grown();
                    Next::Replace(text)
                };
                let kept = |column| {
                    format!("{name}: unknown column `{column}` is kept, and empty in new records")
                };
                remarks.extend(contents.unknown.iter().map(kept));
            }
            FileFormat::JsonLines => {
                self.next = Next::Append(kept.len() as u64, self.layout.end_of(kept));
            }
            FileFormat::Json if kept.trim_ascii().is_empty() => {}
            FileFormat::Json => {
                self.objects = serde_json::from_slice(without_bom(kept))
                    .map_err(|e| Error::input(e.to_string()).in_file(&*name))?;
            }
            FileFormat::Markdown => {}
        }
        self.records = contents.records;
        let newer = |r: &R| fields(r).get("schema").and_then(Value::as_u64);
        match self.records.iter().filter_map(newer).max() {
            Some(newer) if newer > SCHEMA_VERSION as u64 => Err(Error::input(format!(
                "its records have the columns of a newer version ({newer}, here {SCHEMA_VERSION})"
            ))
            .in_file(name)
            .hint("continue it with that version, or write to another file")),
            _ => Ok(()),
        }
    }

    fn holds_something(&self) -> bool {
        self.file.as_ref().and_then(|file| file.metadata().ok()).is_some_and(|m| m.len() > 0)
    }

    /// Whether each record rewrites the file.
    fn is_rewritten(&self) -> bool {
        matches!(self.format, FileFormat::Json | FileFormat::Markdown)
    }

    /// Makes the file if it is not there; takes off what was cut off.
    fn start(&mut self) -> Result<()> {
        let path = &self.path;
        let is_new = !self.holds_something();
        if self.file.is_none() {
            self.file = locked(path, true)?;
            // another process may have made it since
            let made = self.file.as_ref().and_then(|file| file.metadata().ok());
            if made.is_some_and(|m| m.is_file() && m.len() > 0) {
                return Err(files::exists(path).hint("another run wrote it just now"));
            }
        }
        if self.is_rewritten() {
            return if is_new {
                let staged = self.stage(&[])?;
                self.commit(&[], staged)
            } else {
                Ok(())
            };
        }
        if let Next::Append(keep, first) = self.next.clone() {
            let file = self.file.as_ref().filter(|f| f.metadata().is_ok_and(|m| m.len() > keep));
            file.map_or(Ok(()), |f| f.set_len(keep)).map_err(|e| cannot("cut", path, &e))?;
            // a header shows at once that the file can be written
            if keep == 0 && !first.is_empty() {
                self.append(&first)?;
                self.next = Next::Append(0, Vec::new());
            }
        }
        Ok(())
    }

    /// Lines of new records.
    fn lines(&self, new: &[R]) -> Vec<u8> {
        new.iter().flat_map(|record| self.layout.line(self.format, record)).collect()
    }

    /// Writes the file with `new` records beside the present one, where it is not appended to.
    fn stage(&self, new: &[R]) -> Result<Option<Replacement>> {
        let text = match (self.format, &self.next) {
            (FileFormat::Json, _) => {
                let objects: Vec<_> =
                    self.objects.iter().cloned().chain(new.iter().map(fields)).collect();
                let mut text = serde_json::to_vec_pretty(&objects).expect("writing to memory");
                text.push(b'\n');
                text
            }
            (FileFormat::Markdown, _) => R::markdown(&[&self.records, new].concat()).into_bytes(),
            (_, Next::Replace(before)) => [before.as_slice(), &self.lines(new)].concat(),
            (_, Next::Append(..)) => return Ok(None),
        };
        let replacement = Replacement::new(&self.path, |file| {
            // nobody else can have it yet; where there are no locks it goes without
            let _ = file.try_lock();
            file.write_all(&text)?;
            file.sync_data()
        });
        replacement.map(Some).map_err(|e| cannot("write", &self.path, &e))
    }

    /// Puts what was staged in the place of the file, or appends the records.
    fn commit(&mut self, new: &[R], staged: Option<Replacement>) -> Result<()> {
        if let Some(replacement) = staged {
            let replaced = replacement.commit();
            self.file = Some(replaced.map_err(|e| cannot("write", &self.path, &e))?);
            if !self.is_rewritten() {
                self.next = Next::Append(0, Vec::new());
            }
        } else {
            let mut bytes = match &self.next {
                Next::Append(_, first) => first.clone(),
                Next::Replace(_) => Vec::new(),
            };
            bytes.extend(self.lines(new));
            self.append(&bytes)?;
            self.next = Next::Append(0, Vec::new());
        }
        if self.format == FileFormat::Json {
            self.objects.extend(new.iter().map(fields));
        }
        self.records.extend_from_slice(new);
        Ok(())
    }

    /// One write for whole lines, then on to the disk. Lines that only went in part are taken back, so
    /// that a full disk leaves whole records.
    fn append(&mut self, lines: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let before = file.metadata().map_or(0, |m| m.len());
        // a file that was replaced is not open for appending
        let _ = file.seek(SeekFrom::End(0));
        let written = file.write_all(lines).and_then(|()| files::synchronised(file));
        written.map_err(|e| {
            let _ = file.set_len(before);
            cannot("write", &self.path, &e)
        })
    }
}

/// A child process shares the lock between its fork and its exec: closing the file is not enough.
impl<R> Drop for Output<R> {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

/// Times that a file is opened again because another process replaced it meanwhile.
const REPLACED: usize = 100;

/// Opens a file for appending, and locks it; `None` where there is none and none is to be made.
fn locked(path: &Path, make: bool) -> Result<Option<File>> {
    for _ in 0..REPLACED {
        let file = match OpenOptions::new().create(make).append(true).open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound && !make => return Ok(None),
            opened => opened.map_err(|e| cannot("write", path, &e))?,
        };
        lock(&file, path)?;
        // the lock of a file that another one took the place of since is worth nothing
        if files::is_at(&file, path) || files::leads_to_stream(path) {
            return Ok(Some(file));
        }
    }
    Err(busy(path))
}

/// Refuses a file that another process writes. Pipes and devices are shared, and some file systems have
/// no locks.
fn lock(file: &File, path: &Path) -> Result<()> {
    let regular = file.metadata().is_ok_and(|m| m.is_file());
    match file.try_lock() {
        Err(TryLockError::WouldBlock) if regular => Err(busy(path)),
        _ => Ok(()),
    }
}

fn busy(path: &Path) -> Error {
    Error::input(format!("`{}` is being written by another run", path.display()))
        .hint("wait for it, or write to another file")
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

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
