//! Reads result files back: CSV, JSON lines and JSON.

use std::path::Path;

use serde_json::{Map, Value};

use crate::base::error::{Error, Result, nearest};
use crate::base::input;
use crate::record::schema::Record;
use crate::record::table;
use crate::record::table::Row;

/// Format of a result file, determined by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One row per record under a header; appended to.
    Csv,
    /// One JSON object per line; appended to.
    JsonLines,
    /// An array of objects; rewritten after every record.
    Json,
    /// A table to read; rewritten after every record, never read back.
    Markdown,
}

impl FileFormat {
    /// The format that the extension of `path` names.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).unwrap_or_default() {
            "csv" => Ok(Self::Csv),
            "jsonl" => Ok(Self::JsonLines),
            "json" => Ok(Self::Json),
            "md" => Ok(Self::Markdown),
            other => {
                let what = match other {
                    "" => "has no extension".to_owned(),
                    other => format!("has the extension `.{other}`"),
                };
                Err(Error::input(format!("result file `{}` {what}", path.display()))
                    .hint("known: .csv, .jsonl, .json, .md"))
            }
        }
    }
}

/// The column that says how a record ended.
const STATUS: &str = "status";
/// The last column, whose cells show whether they are whole.
const DATE: &str = "date";

/// Bytes of a result file at most.
const LARGEST: u64 = 2 << 30;

/// The records of a file.
#[derive(Clone, Debug, Default)]
pub struct Contents<R = Record> {
    /// Its records, in order.
    pub records: Vec<R>,
    /// Bytes that hold them. When the file is longer, a last record was cut off while it was
    /// being written.
    pub valid_bytes: u64,
    /// Whether a last record that has no line end was left out: it was cut off, or may have been.
    pub cut_off: bool,
    /// Whether that record has all its cells, and only its last one may have been cut.
    pub unsure: bool,
    /// Of a CSV file, its header as it stands there.
    pub header: Vec<String>,
    /// Columns that this version does not know, which are passed over.
    pub unknown: Vec<String>,
}

impl<R: Row> Contents<R> {
    /// What a reader should know: a record that is left out, columns that are passed over.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.cut_off {
            remarks.push("the last record is cut off and left out".to_owned());
        }
        let known: Vec<&str> = R::schema().iter().map(|c| c.name.as_str()).collect();
        for name in &self.unknown {
            let meant =
                nearest(name, &known).filter(|known| !self.header.iter().any(|n| n == known));
            let meant = meant.map(|m| format!(" (did you mean `{m}`?)")).unwrap_or_default();
            remarks.push(format!("unknown column `{name}`{meant} is passed over"));
        }
        remarks
    }
}

/// Reads the records in `path`. A last record that was cut off is left out.
pub fn read(path: &Path) -> Result<Contents> {
    read_rows(path)
}

/// As [`read`] for records of another kind.
pub fn read_rows<R: Row>(path: &Path) -> Result<Contents<R>> {
    let format = FileFormat::of(path)?;
    let bytes = input::whole(path, "a result file", LARGEST)?;
    read_rows_from(&path.display().to_string(), format, &bytes)
}

/// As [`read_rows`] from memory; `name` stands for the file in messages.
pub fn read_rows_from<R: Row>(name: &str, format: FileFormat, bytes: &[u8]) -> Result<Contents<R>> {
    let text = without_bom(bytes);
    let mark = (bytes.len() - text.len()) as u64;
    let mut contents = rows(name, format, text)?;
    contents.valid_bytes += mark;
    Ok(contents)
}

/// Without the mark that some editors put before UTF-8.
pub(super) fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn rows<R: Row>(name: &str, format: FileFormat, bytes: &[u8]) -> Result<Contents<R>> {
    match format {
        FileFormat::Csv => csv(name, bytes),
        FileFormat::JsonLines => json_lines(name, bytes),
        FileFormat::Json => json(name, bytes),
        FileFormat::Markdown => Err(Error::input("a Markdown table cannot be read back")
            .in_file(name)
            .hint("keep a .csv, .jsonl or .json beside it")),
    }
}

/// What to do with a JSON file that ends too early: it is rewritten whole, so something else cut it.
const CUT_OFF: &str = "the file was cut off, and only .csv and .jsonl can lose their last record: go on from \
                       one of these, or start over with --force";

fn json<R: Row>(name: &str, bytes: &[u8]) -> Result<Contents<R>> {
    let records = if bytes.trim_ascii().is_empty() {
        Vec::new()
    } else {
        serde_json::from_slice(bytes).map_err(|e| {
            let first = serde_json::from_slice::<Vec<Map<String, Value>>>(bytes);
            let first = first.ok().and_then(|records| records.into_iter().next());
            let error = first.and_then(|first| foreign::<R>(name, 1, &first));
            error.unwrap_or_else(|| match json_error(name, e.line(), &e) {
                error if e.is_eof() => error.hint(CUT_OFF),
                error => error,
            })
        })?
    };
    for (i, record) in records.iter().enumerate() {
        table::check_times::<R>(record)
            .map_err(|e| Error::input(format!("record {}: {e}", i + 1)).in_file(name))?;
    }
    Ok(Contents { records, valid_bytes: bytes.len() as u64, ..Contents::default() })
}

fn json_lines<R: Row>(name: &str, bytes: &[u8]) -> Result<Contents<R>> {
    let mut contents = Contents::default();
    for (i, line) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
        let cut = |e: serde_json::Error| line.starts_with(b"{") && e.is_eof();
        let object = || serde_json::from_slice::<Map<String, Value>>(line);
        if !line.ends_with(b"\n") && object().err().is_some_and(cut) {
            contents.cut_off = true;
            break;
        }
        if !line.trim_ascii().is_empty() {
            let record = serde_json::from_slice(line).map_err(|e| {
                let object = serde_json::from_slice(line).ok();
                let error = object.and_then(|object| foreign::<R>(name, i + 1, &object));
                error.unwrap_or_else(|| json_error(name, i + 1, &e))
            })?;
            table::check_times::<R>(&record).map_err(|e| e.at(name, i + 1, None))?;
            contents.records.push(record);
        }
        contents.valid_bytes += line.len() as u64;
    }
    Ok(contents)
}

/// That an object is a record of another command than `R`, if it is.
fn foreign<R: Row>(name: &str, line: usize, object: &Map<String, Value>) -> Option<Error> {
    let names: Vec<&str> = object.keys().map(String::as_str).collect();
    table::other_command::<R>(&names).map(|e| e.at(name, line, None))
}

fn json_error(name: &str, line: usize, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    // serde_json appends its own place, which counts within one line of JSON lines
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    let column = (error.column() > 0).then_some(error.column());
    Error::input(message).at(name, line, column)
}

/// Lines of a text by places that ascend.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line of the first row at or after byte `place`. A reader of CSV leaves the second byte of a line
    /// end to the row that follows.
    pub(crate) fn at(&mut self, place: Option<&csv::Position>) -> usize {
        let place = place.map_or(0, |p| p.byte() as usize).min(self.text.len());
        let ends = self.text[place..].iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let to = (place + ends).max(self.at);
        self.line += memchr::memchr_iter(b'\n', &self.text[self.at..to]).count();
        self.at = to;
        self.line
    }
}

fn csv<R: Row>(name: &str, bytes: &[u8]) -> Result<Contents<R>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let (mut row, mut header) = (csv::StringRecord::new(), None::<table::Reader<R>>);
    let mut contents = Contents::default();
    let mut lines = Lines::new(bytes);
    loop {
        let more = reader
            .read_record(&mut row)
            .map_err(|e| Error::input("not valid UTF-8").at(name, lines.at(e.position()), None))?;
        if !more {
            break;
        }
        let end = reader.position().byte() as usize;
        let start = row.position().map_or(0, |p| p.byte() as usize);
        let ended = end < bytes.len() || ends(&bytes[start..]);
        let columns = contents.header.len();
        if !ended && (header.is_none() || row.len() < columns || cut(&contents.header, &row)) {
            contents.cut_off = true;
            break;
        }
        let line = lines.at(row.position());
        match &header {
            None => {
                contents.header = row.iter().map(str::to_owned).collect();
                header = Some(reader_of(&mut contents).map_err(|e| e.at(name, line, None))?);
            }
            Some(_) if row.len() != columns => {
                let found = row.len();
                return Err(Error::input(format!("{found} values under {columns} columns"))
                    .at(name, line, None));
            }
            Some(reader) => {
                let record = reader.read(row.iter()).map_err(|e| e.at(name, line, None))?;
                if !ended && contents.header.last().is_none_or(|last| last != DATE) {
                    (contents.cut_off, contents.unsure) = (true, true);
                    break;
                }
                contents.records.push(record);
            }
        }
        // of two bytes of a line end the reader leaves the second one
        let rest = bytes[end..].starts_with(b"\n") && bytes[..end].ends_with(b"\r");
        contents.valid_bytes = (end + usize::from(rest)) as u64;
    }
    Ok(contents)
}

/// Whether the last row of a file, with all that follows, has its line end: none that a quoted cell holds.
fn ends(row: &[u8]) -> bool {
    row.ends_with(b"\n") && memchr::memchr_iter(b'"', row).count().is_multiple_of(2)
}

/// Whether a row without a line end, with all its cells, lacks a part of the last one. Of a date that can be
/// seen, for a whole one has a `Z` at its end.
fn cut(header: &[String], row: &csv::StringRecord) -> bool {
    let (last, cell) = (header.last(), row.iter().next_back().unwrap_or_default());
    row.len() == header.len() && last.is_some_and(|l| l == DATE) && !cell.ends_with('Z')
}

/// For rows under the header of `contents`.
fn reader_of<R: Row>(contents: &mut Contents<R>) -> Result<table::Reader<R>> {
    let header = &contents.header;
    let reader = table::Reader::new(header)?;
    // a default would make successes of what may have failed
    if !header.iter().any(|name| name == STATUS) {
        return Err(Error::input(format!("there is no column `{STATUS}`"))
            .hint("without it nobody knows which rows were solved"));
    }
    contents.unknown = reader.unknown(header);
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::samples::record;

    fn error(format: FileFormat, text: &str) -> String {
        read_rows_from::<Record>("a", format, text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn rows_without_a_status_are_refused() {
        let text = "matrix,solve-s\npoisson3d:5,1.0\n";
        assert_eq!(error(FileFormat::Csv, text), "a:1: there is no column `status`");
        let text = "matrix,status,solve-s\npoisson3d:5,stagnated,1.0\n";
        let read = read_rows_from::<Record>("a", FileFormat::Csv, text.as_bytes()).unwrap();
        assert!(!read.records[0].status.succeeded());
        assert_eq!(read.records[0].times.solve_s, Some(1.0));
    }

    #[test]
    fn negative_times_are_refused_where_they_are() {
        let text = "status,solve-s\nconverged,1.0\nconverged,-1.0\n";
        assert_eq!(error(FileFormat::Csv, text), "a:3: column solve-s: a time of -1");
        let good = record(crate::case::Case::default(), 3, 1.0);
        let mut bad = good.clone();
        bad.times.setup_s = Some(-0.5);
        let [good, bad] = [good, bad].map(|r| serde_json::to_string(&r).unwrap());
        let lines = format!("{good}\n{bad}\n");
        assert_eq!(error(FileFormat::JsonLines, &lines), "a:2: column setup-s: a time of -0.5");
        let array = format!("[{good},\n{bad}]");
        assert_eq!(error(FileFormat::Json, &array), "a: record 2: column setup-s: a time of -0.5");
    }
}
