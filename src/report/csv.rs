//! Rows as comma-separated values.

use crate::error::{Error, Result};
use crate::report::{Export, Report};
use crate::result::table::cell;

/// A header and one row per record.
pub struct Csv;

impl Export for Csv {
    fn render(&self, report: &Report) -> Result<String> {
        let keys = report.keys();
        let mut writer = csv::Writer::from_writer(Vec::new());
        let failed = |e: csv::Error| Error::run(format!("cannot write CSV: {e}"));
        if keys.is_empty() {
            return Ok(String::new());
        }
        writer.write_record(&keys).map_err(failed)?;
        for row in &report.rows {
            let cells = keys.iter().map(|key| row.get(*key).map(cell).unwrap_or_default());
            writer.write_record(cells).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|e| Error::run(e.to_string()))?;
        String::from_utf8(bytes).map_err(|e| Error::run(e.to_string()))
    }
}
