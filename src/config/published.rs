//! Published results: a CSV file whose rows are keyed by settings of a case.

use crate::base::error::{Error, Result};
use crate::base::parse::whole;
use crate::case::Case;
use crate::config::csv;
use crate::config::sweep::Axis;

/// One of the two devices that a paper compares, and the corresponding backend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Column of its seconds.
    pub seconds: String,
    /// Its name in the paper.
    pub device: String,
    /// Corresponding backend.
    pub backend: String,
}

/// One published row.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// Values of the key settings, in the order of [`Published::keys`].
    pub key: Vec<String>,
    /// Iterations.
    pub iterations: usize,
    /// Seconds on the slow device.
    pub slow_s: Option<f64>,
    /// Seconds on the fast device.
    pub fast_s: Option<f64>,
}

impl PublishedRow {
    /// Slow over fast.
    pub fn speedup(&self) -> Option<f64> {
        Some(self.slow_s? / self.fast_s?)
    }
}

/// Published results of one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Source of the values.
    pub citation: String,
    /// Settings that key a row.
    pub keys: Vec<&'static Axis>,
    /// Iteration counts agree within this many percent.
    pub tolerance_percent: f64,
    /// The device whose time is divided.
    pub slow: Option<Device>,
    /// The device whose time divides.
    pub fast: Option<Device>,
    /// The rows, in the order of the file.
    pub rows: Vec<PublishedRow>,
}

impl Published {
    /// Takes the rows from CSV text with these columns: one for each of the keys, and that of the iteration counts.
    /// `file` is the name for errors.
    pub fn read(
        mut self,
        file: &str,
        text: &str,
        (keys, iterations): (&[String], &str),
    ) -> Result<Self> {
        let (header, records) = csv::read(file, text)?;
        let column = |name: &str| {
            header.iter().position(|c| c == name).ok_or_else(|| {
                let known = header.iter().collect::<Vec<_>>().join(", ");
                let error = Error::input(format!("no column `{name}`"));
                error.at(file, 1, None).hint(format!("columns: {known}"))
            })
        };
        let keys: Vec<usize> = keys.iter().map(|name| column(name)).collect::<Result<_>>()?;
        let iterations = column(iterations)?;
        let seconds = |device: &Option<Device>| {
            device.as_ref().map(|device| column(&device.seconds)).transpose()
        };
        let (slow, fast) = (seconds(&self.slow)?, seconds(&self.fast)?);

        let row = |(line, record): (usize, ::csv::StringRecord)| {
            let key = keys.iter().zip(&self.keys);
            let seconds =
                |column: Option<usize>| column.map(|i| csv::positive(&record[i])).transpose();
            let read = || {
                Ok(PublishedRow {
                    key: key.map(|(&i, axis)| axis.canonical(&record[i])).collect::<Result<_>>()?,
                    iterations: whole(&record[iterations], 1, usize::MAX)?,
                    slow_s: seconds(slow)?,
                    fast_s: seconds(fast)?,
                })
            };
            read().map_err(|e: Error| e.at(file, line, None))
        };
        self.rows = records.into_iter().map(row).collect::<Result<_>>()?;
        Ok(self)
    }

    /// The published row of a case.
    pub fn find(&self, case: &Case) -> Option<&PublishedRow> {
        let key: Vec<String> = self.keys.iter().map(|axis| (axis.text)(case)).collect();
        self.rows.iter().find(|row| row.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sweep::axis;

    fn read(text: &str) -> Result<Published> {
        let device = |column: &str| Some(Device { seconds: column.into(), ..Device::default() });
        let keys = ["block-size", "fill"].map(|name| axis(name).unwrap()).to_vec();
        let published =
            Published { keys, slow: device("cpu"), fast: device("gpu"), ..Published::default() };
        published.read("p.csv", text, (&["b", "k"].map(str::to_owned), "its"))
    }

    #[test]
    fn rows_are_found_by_their_settings() {
        let text = "b, k, gpu, cpu, its\n1,0,2.0,13.0,240\n2,1,2.5,10.0,80\n";
        let published = read(text).unwrap();
        let case = Case { block_size: 2, fill: 1, ..Case::default() };
        let row = published.find(&case).unwrap();
        assert_eq!((row.iterations, row.speedup()), (80, Some(4.0)));
        assert_eq!(published.find(&Case { fill: 3, ..case }), None);
    }

    #[test]
    fn bad_rows_are_named_by_line() {
        let message = |text| read(text).unwrap_err().to_string();
        assert_eq!(
            message("b,k,gpu,cpu,its\n1,0,2,13,240\n1,x,2,13,240\n"),
            "p.csv:3: `x` is not a whole number"
        );
        assert_eq!(message("b,k,gpu,cpu\n"), "p.csv:1: no column `its`");
        assert_eq!(
            message("b,k,gpu,cpu,its\n1,0,-2,13,240\n"),
            "p.csv:2: `-2` is outside the range: above 0"
        );
    }
}
