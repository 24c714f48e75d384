//! Layout of a result file: its columns, their order and the line ending.

use std::marker::PhantomData;

use crate::record::columns;
use crate::record::read::FileFormat;
use crate::record::table::{Row, cell, fields, to_cells};

/// Columns and line end of a file that is appended to.
#[derive(Clone, Debug)]
pub(super) struct Layout<R> {
    /// Columns of a CSV file, in its order.
    header: Vec<String>,
    /// Line ends are CR and LF.
    crlf: bool,
    row: PhantomData<R>,
}

impl<R: Row> Default for Layout<R> {
    /// That of a new file.
    fn default() -> Self {
        let header = R::schema().iter().map(|c| c.name.clone()).collect();
        Self { header, crlf: false, row: PhantomData }
    }
}

impl<R: Row> Layout<R> {
    /// Of a file that begins with `bytes` and has this header.
    pub(super) fn of(header: Vec<String>, bytes: &[u8]) -> Self {
        let end = memchr::memchr(b'\n', bytes);
        let crlf = end.is_some_and(|end| bytes[..end].ends_with(b"\r"));
        Self { header, crlf, row: PhantomData }
    }

    /// What a new file begins with.
    pub(super) fn start(&self, format: FileFormat) -> Vec<u8> {
        if format == FileFormat::Csv { self.csv(&self.header) } else { Vec::new() }
    }

    /// What `bytes` lack to end in a whole line.
    pub(super) fn end_of(&self, bytes: &[u8]) -> Vec<u8> {
        match bytes.last() {
            None | Some(b'\n') => Vec::new(),
            Some(b'\r') => b"\n".to_vec(),
            Some(_) if self.crlf => b"\r\n".to_vec(),
            Some(_) => b"\n".to_vec(),
        }
    }

    /// The line of a record. Columns that this version does not know are empty.
    pub(super) fn line(&self, format: FileFormat, record: &R) -> Vec<u8> {
        if format == FileFormat::JsonLines {
            let mut line = serde_json::to_vec(record)
                .expect("records are flat objects of strings and numbers");
            line.push(b'\n');
            return line;
        }
        let values = fields(record);
        let of = |name: &String| values.get(columns::current(name)).map(cell).unwrap_or_default();
        self.csv(&self.header.iter().map(of).collect::<Vec<_>>())
    }

    /// Columns of this version that the file does not have.
    pub(super) fn lacking(&self) -> Vec<usize> {
        let has = |name: &str| self.header.iter().any(|own| columns::current(own) == name);
        let schema = R::schema().iter().enumerate();
        schema.filter(|(_, column)| !has(&column.name)).map(|(i, _)| i).collect()
    }

    /// The header with these columns: before the last one, which shows where a line was cut off.
    fn extended_header(&self) -> Vec<String> {
        let mut header = self.header.clone();
        let at = self.insertion();
        let new = self.lacking().into_iter().map(|i| R::schema()[i].name.clone());
        header.splice(at..at, new);
        header
    }

    /// Where columns are inserted.
    fn insertion(&self) -> usize {
        let last = R::schema().last().map(|c| c.name.as_str());
        let ends = self.header.last().is_some_and(|own| Some(own.as_str()) == last);
        self.header.len() - usize::from(ends)
    }

    /// The rows of `text`, which are these `records`, under a header that has all columns of this version
    /// too. Cells that the file has stay as they are.
    pub(super) fn extended(&self, text: &[u8], records: &[R]) -> Vec<u8> {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(true).flexible(true).from_reader(text);
        let (lacking, at) = (self.lacking(), self.insertion());
        let mut lines = self.csv(&self.extended_header());
        for (row, record) in reader.records().flatten().zip(records) {
            let mut cells: Vec<String> = row.iter().map(str::to_owned).collect();
            let all = to_cells(record);
            cells.splice(at..at, lacking.iter().map(|&i| all[i].clone()));
            lines.extend(self.csv(&cells));
        }
        lines
    }

    /// Adopts the columns with which the file was rewritten.
    pub(super) fn grown(&mut self) {
        self.header = self.extended_header();
    }

    fn csv(&self, cells: &[String]) -> Vec<u8> {
        let end = if self.crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().terminator(end).from_writer(Vec::new());
        writer.write_record(cells).expect("writing to memory");
        writer.into_inner().expect("writing to memory")
    }
}
