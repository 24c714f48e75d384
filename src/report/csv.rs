//! Rows as comma-separated values.

use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::record::table::cell;
use crate::report::{Export, Report};

/// A header and one row per record.
pub struct Csv;

impl Export for Csv {
    fn render(&self, report: &Report) -> Result<String> {
        let keys = report.keys();
        if keys.is_empty() {
            return Ok(String::new());
        }
        let row = |row: &Map<String, Value>| -> Vec<String> {
            keys.iter().map(|key| row.get(*key).map(cell).unwrap_or_default()).collect()
        };
        let heads = keys.iter().map(|key| (*key).to_owned()).collect();
        text(std::iter::once(heads).chain(report.rows.iter().map(row)))
    }
}

/// Lines of as many cells each as comma-separated values.
pub(super) fn text(lines: impl IntoIterator<Item = Vec<String>>) -> Result<String> {
    let failed = |e: csv::Error| Error::run(format!("cannot write CSV: {e}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|e| Error::run(e.to_string()))?;
    String::from_utf8(bytes).map_err(|e| Error::run(e.to_string()))
}
