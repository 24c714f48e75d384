//! Rows as JSON.

use crate::base::error::{Error, Result};
use crate::report::{Export, Report};

/// An array of flat objects.
pub struct Json;

impl Export for Json {
    fn render(&self, report: &Report) -> Result<String> {
        serde_json::to_string_pretty(&report.rows)
            .map(|text| text + "\n")
            .map_err(|e| Error::run(format!("cannot write JSON: {e}")))
    }
}
