//! A published residual history.

use crate::base::error::{Error, Result};
use crate::base::parse::whole;
use crate::config::csv;

/// Sums of squares of the residual vector per iterative correction, as a paper prints them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Source of the values.
    pub citation: String,
    /// Corrections over which the executions must agree.
    pub corrections: usize,
    /// Decimal digits to which they must agree.
    pub digits: usize,
    /// Headings of the published columns.
    pub names: Vec<String>,
    /// Corrections with the value of each column; correction 0 is the first estimate.
    pub rows: Vec<(usize, Vec<f64>)>,
}

impl History {
    /// Takes the published values from CSV text: corrections in the first column, increasing, a
    /// history in each of the others. `file` is the name for errors.
    pub fn read(mut self, file: &str, text: &str) -> Result<Self> {
        let (header, rows) = csv::read(file, text)?;
        self.names = header.iter().skip(1).map(str::to_owned).collect();
        for (line, record) in rows {
            let here = |e: Error| e.at(file, line, None);
            let correction = whole(&record[0], 0, usize::MAX).map_err(here)?;
            if self.rows.last().is_some_and(|(last, _)| *last >= correction) {
                return Err(here(Error::input(format!("correction {correction} is not the next"))));
            }
            let values = record.iter().skip(1).map(csv::positive);
            self.rows.push((correction, values.collect::<Result<_>>().map_err(here)?));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_histories() {
        let read = |text: &str| History::default().read("h.csv", text);
        let history = read("l,a,b\n0,0.5E+05,5e4\n3,1e-3,2e-3\n").unwrap();
        assert_eq!(history.names, ["a", "b"]);
        assert_eq!(history.rows, [(0, vec![5e4, 5e4]), (3, vec![1e-3, 2e-3])]);
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(message("l,a\n1,2\n1,2\n"), "h.csv:3: correction 1 is not the next");
        assert_eq!(message("l,a\nx,2\n"), "h.csv:2: `x` is not a whole number");
        assert_eq!(message("l,a\n0,-2\n"), "h.csv:2: `-2` is outside the range: above 0");
    }
}
