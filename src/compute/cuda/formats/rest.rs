//! Single entries beside another part, gathered by rows (`Rest` of `kernels/spmv/formats.cuh`).

use cudarc::driver::CudaSlice;

use super::near;
use crate::base::error::Result;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::{RestArg, address};
use crate::matrix::Coo;

/// Rows with more single entries have a warp of their own; mirrors `spmv/formats.cuh`.
const LONG: u32 = 16;

/// Entries of a COO part on the device; nothing when there are none.
pub(super) struct Rest(Option<Arrays>);

struct Arrays {
    near: CudaSlice<u32>,
    row: CudaSlice<u32>,
    start: CudaSlice<u32>,
    col_ind: CudaSlice<u32>,
    val: CudaSlice<f64>,
    own: CudaSlice<u32>,
    owns: usize,
}

impl Rest {
    /// The entries of a matrix with so many rows.
    pub(super) fn new(d: &Device, entries: &Coo, rows: usize) -> Result<Self> {
        if entries.is_empty() {
            return Ok(Self(None));
        }
        let (row, start) = gathered(entries.rows());
        let own = long(&start);
        Ok(Self(Some(Arrays {
            near: d.copied(&near(&row, rows))?,
            row: d.copied(&row)?,
            start: d.copied(&start)?,
            col_ind: d.copied(entries.cols())?,
            val: d.copied(entries.values())?,
            owns: own.len(),
            own: d.copied(&own)?,
        })))
    }

    /// Rows with a warp of their own.
    pub(super) fn own_rows(&self) -> usize {
        self.0.as_ref().map_or(0, |a| a.owns)
    }

    pub(super) fn argument(&self) -> RestArg {
        self.0.as_ref().map_or_else(RestArg::default, |a| RestArg {
            near: address(&a.near),
            row: address(&a.row),
            start: address(&a.start),
            col_ind: address(&a.col_ind),
            val: address(&a.val),
            own: address(&a.own),
            owns: a.owns as u32,
        })
    }
}

/// The distinct ones of ascending rows, and where each begins.
fn gathered(rows: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut row, mut start) = (Vec::new(), Vec::new());
    for (e, &i) in rows.iter().enumerate() {
        if row.last() != Some(&i) {
            row.push(i);
            start.push(e as u32);
        }
    }
    start.push(rows.len() as u32);
    (row, start)
}

/// Numbers of the gathered rows that are long.
fn long(start: &[u32]) -> Vec<u32> {
    (0..start.len() as u32 - 1)
        .filter(|&at| start[at as usize + 1] - start[at as usize] > LONG)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_gathered_by_rows() {
        assert_eq!(gathered(&[2, 2, 5, 9, 9, 9]), (vec![2, 5, 9], vec![0, 2, 3, 6]));
    }

    #[test]
    fn long_rows_have_more_entries_than_a_lane_takes() {
        assert_eq!(long(&[0, 16, 33, 34, 60]), [1, 3]);
    }
}
