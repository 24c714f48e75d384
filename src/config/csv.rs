//! CSV files of published values.

use csv::StringRecord;

use crate::base::error::{Error, Result};
use crate::base::parse::number;

/// Header and rows of `text`, each with its line. `file` is the name for errors.
pub(super) fn read(file: &str, text: &str) -> Result<(StringRecord, Vec<(usize, StringRecord)>)> {
    let broken = |e: csv::Error| match e.position() {
        Some(place) => Error::input(e.to_string()).at(file, place.line() as usize, None),
        None => Error::input(e.to_string()).in_file(file),
    };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(broken)?.clone();
    let line = |row: &StringRecord| row.position().map_or(0, |place| place.line() as usize);
    let rows = reader.records().map(|row| row.map(|row| (line(&row), row)).map_err(broken));
    Ok((header, rows.collect::<Result<_>>()?))
}

/// A number above 0.
pub(super) fn positive(text: &str) -> Result<f64> {
    number(text, "above 0", |v| v > 0.0)
}
