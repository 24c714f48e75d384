//! Rows as comma-separated values.

use crate::base::error::{Error, Result};
use crate::record::table::cell;
use crate::report::Report;

/// A header and one row per record.
pub(super) fn rows(report: &Report) -> Result<String> {
    let keys = report.keys();
    if keys.is_empty() {
        return Ok(String::new());
    }
    let rows = report
        .rows
        .iter()
        .map(|row| keys.iter().map(|key| row.get(*key).map(cell).unwrap_or_default()).collect());
    let heads = keys.iter().map(|key| (*key).to_owned()).collect();
    text(std::iter::once(heads).chain(rows))
}

/// Lines of as many cells each as comma-separated values.
pub(super) fn text(lines: impl IntoIterator<Item = Vec<String>>) -> Result<String> {
    let failed = |e: &dyn std::fmt::Display| Error::run(format!("cannot write CSV: {e}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(|e| failed(&e))?;
    }
    let bytes = writer.into_inner().map_err(|e| failed(&e))?;
    String::from_utf8(bytes).map_err(|e| failed(&e))
}
