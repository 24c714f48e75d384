//! The values of array files, one a line.

use super::blocks::{Fault, Part};
use super::field::Field;
use super::{line, number};

/// The values of one block.
pub(super) struct Values {
    pub(super) values: Vec<f64>,
    lines: usize,
}

impl Part for Values {
    fn stored(&self) -> usize {
        self.values.len()
    }

    fn lines(&self) -> usize {
        self.lines
    }
}

/// Parses whole lines; faults at the first that is no value, or a value beyond `limit`.
pub(super) fn parse(block: &[u8], field: Field, limit: usize) -> Result<Values, Fault> {
    let mut part = Values { values: Vec::new(), lines: 0 };
    let mut at = 0;
    while at < block.len() {
        let fast = number::real(block, at)
            .filter(|&(v, end)| field == Field::Real && v.is_finite() && block[end] == b'\n');
        let (value, next) = if let Some((value, end)) = fast {
            (Some(value), end + 1)
        } else {
            let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |e| at + e);
            let value = line::single(&block[at..end], field).map_err(|f| f.down(part.lines))?;
            (value, end + 1)
        };
        if let Some(value) = value {
            if part.values.len() == limit {
                return Err(Fault::surplus().down(part.lines));
            }
            part.values.push(value);
        }
        part.lines += 1;
        at = next;
    }
    Ok(part)
}
