//! Products with a sparse matrix (`kernels/spmv/csr.cu`).

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError};

use super::Cuda;
use super::compressed::{Compressed, overwrite};
use super::device::{Device, grid};
use super::launch::{Address, BlocksArg, address, launch};
use super::sources::SPMV;
use super::storage::DevicePattern;
use super::symbolic::{Rows, block_rows, fill_blocks};
use crate::base::error::Result;
use crate::compute::Bytes;
use crate::matrix::{Bsr, Csr};

/// Threads of a block; mirrors `spmv/csr.cu`.
const THREADS: u32 = 256;

/// Entries and rows of a chunk of CSR rows; the entries mirror `spmv/csr.cu`.
const CHUNK: u32 = 2048;
const CHUNK_ROWS: u32 = 512;

/// A matrix on the device.
pub struct Stored {
    pub(super) block_size: usize,
    block_rows: usize,
    blocks: usize,
    rows: Arc<DevicePattern>,
    val: Rc<CudaSlice<f64>>,
    way: Way,
    /// The matrix of which blocks were made on the device.
    scalar: Option<Compressed>,
}

/// Who multiplies.
enum Way {
    /// Chunks of rows: start of each, and one past the last.
    Chunks { first: CudaSlice<u32>, chunks: usize, kernel: CudaFunction },
    /// Lanes per block row.
    Blocks { kernel: CudaFunction },
}

impl Stored {
    pub(super) fn bsr(d: &Device, a: &Bsr) -> Result<Self> {
        let b = a.block_size();
        Ok(Self {
            block_size: b,
            block_rows: a.row_ptr().len() - 1,
            blocks: a.col_ind().len(),
            rows: DevicePattern::copied(d, a.row_ptr(), a.col_ind())?,
            val: Rc::new(d.copied(a.values())?),
            way: Way::Blocks { kernel: d.kernel(&SPMV, b, "spmv")? },
            scalar: None,
        })
    }

    /// In blocks of a size, of which the device has made the rows.
    pub(super) fn blocks(d: &Device, scalar: Compressed, (b, rows): (usize, Rows)) -> Result<Self> {
        let new = Self {
            block_size: b,
            block_rows: scalar.rows / b,
            blocks: rows.entries,
            rows: rows.pattern,
            val: Rc::new(d.zeros(rows.entries * b * b)?),
            way: Way::Blocks { kernel: d.kernel(&SPMV, b, "spmv")? },
            scalar: Some(scalar),
        };
        new.fill(d)?;
        Ok(new)
    }

    /// Puts the entries of the scalar matrix into blocks.
    fn fill(&self, d: &Device) -> Result<()> {
        let Some(scalar) = &self.scalar else { return Ok(()) };
        fill_blocks(d, scalar.argument(), (self.block_size, &self.rows), &self.val)
    }

    /// A matrix that is on the device; `row_ptr` has the starts of its rows.
    pub(super) fn rows(d: &Device, row_ptr: &[u32], a: Compressed) -> Result<Self> {
        Ok(Self {
            block_size: 1,
            block_rows: a.rows,
            blocks: a.entries,
            way: Way::of_rows(d, row_ptr)?,
            rows: a.pattern,
            val: a.val,
            scalar: None,
        })
    }

    /// The matrix by scalar rows, where it is on the device.
    pub(super) fn scalar(&self) -> Option<Compressed> {
        let own = || Compressed {
            rows: self.block_rows,
            entries: self.blocks,
            pattern: Arc::clone(&self.rows),
            val: Rc::clone(&self.val),
        };
        self.scalar.clone().or_else(|| (self.block_size == 1).then(own))
    }

    /// Its arrays.
    pub(super) fn host(&self, d: &Device) -> Result<(Vec<u32>, Vec<u32>, Vec<f64>)> {
        let [row_ptr, col_ind] = self.rows.host(d, self.blocks)?;
        let mut val = d.host(&self.val)?;
        val.truncate(self.blocks * self.block_size * self.block_size);
        Ok((row_ptr, col_ind, val))
    }

    /// Takes over the values of `a`, which has the pattern of the matrix at hand; those who share the old ones keep
    /// them.
    pub(super) fn set_values(&mut self, d: &Device, a: &Csr) -> Result<()> {
        if let Some(scalar) = &mut self.scalar {
            scalar.overwrite(d, a.values())?;
            return self.fill(d);
        }
        let blocks = (self.block_size > 1).then(|| Bsr::from_csr(a));
        let values = blocks.as_ref().map_or(a.values(), Bsr::values);
        overwrite(d, values, &mut self.val)
    }

    /// Unknowns.
    pub(super) fn order(&self) -> usize {
        self.block_rows * self.block_size
    }

    /// Mean blocks of a row.
    pub(super) fn mean_blocks(&self) -> usize {
        self.blocks / self.block_rows.max(1)
    }

    /// First block of each row, and the end of the last.
    pub(super) fn row_ptr(&self) -> &CudaSlice<u32> {
        &self.rows.row_ptr
    }

    /// For kernels that multiply within.
    pub(super) fn argument(&self) -> BlocksArg {
        BlocksArg {
            rows: self.order() as u32,
            row_ptr: address(&self.rows.row_ptr),
            col_ind: address(&self.rows.col_ind),
            val: address(&self.val),
        }
    }

    /// Bytes held, and moved by a product: matrix, x and y once.
    pub(super) fn bytes(&self) -> Bytes {
        let b = self.block_size;
        let held = 4 * (self.block_rows + 1 + self.blocks) + 8 * self.blocks * b * b;
        Bytes { held, moved: held + 16 * self.block_rows * b }
    }

    /// `y = A x`, or `y = b - A x` when the address `b` is not null.
    pub(super) fn product(
        &self,
        d: &Device,
        x: &CudaSlice<f64>,
        b: Address,
        y: &mut CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let (DevicePattern { row_ptr, col_ind }, val) = (&*self.rows, &self.val);
        match &self.way {
            Way::Chunks { first, chunks, kernel } => {
                let config = grid(*chunks, THREADS);
                launch!(d, kernel, config; *first, *row_ptr, *col_ind, **val, *x, b, *y)
            }
            Way::Blocks { kernel } => {
                let groups = (32 / self.block_size.min(32)) * THREADS as usize / 32;
                let config = grid(self.block_rows.div_ceil(groups), THREADS);
                let rows = self.block_rows as u32;
                launch!(d, kernel, config; rows, *row_ptr, *col_ind, **val, *x, b, *y)
            }
        }
    }
}

impl Cuda {
    /// `a` in blocks that the device makes: starts of the rows, block columns, and numbers column by column.
    ///
    /// # Errors
    /// When the device fails or has too little memory.
    pub fn in_blocks(&self, a: &Csr) -> Result<(Vec<u32>, Vec<u32>, Vec<f64>)> {
        let (d, b) = (&*self.device, a.block_size());
        let scalar = Compressed::copied(d, a)?;
        let rows = block_rows(d, b, &scalar)?;
        Stored::blocks(d, scalar, (b, rows))?.host(d)
    }
}

impl Way {
    /// For scalar rows.
    fn of_rows(d: &Device, row_ptr: &[u32]) -> Result<Self> {
        let chunks = chunks(row_ptr);
        Ok(Self::Chunks {
            chunks: chunks.len() - 1,
            first: d.copied(&chunks)?,
            kernel: d.kernel(&SPMV, 1, "spmv")?,
        })
    }
}

/// Consecutive rows with at most [`CHUNK`] entries and [`CHUNK_ROWS`] rows together, or one row
/// alone.
fn chunks(row_ptr: &[u32]) -> Vec<u32> {
    let rows = row_ptr.len() - 1;
    let mut starts = vec![0];
    if rows == 0 {
        return vec![0; 2];
    }
    let mut first = 0;
    while first < rows {
        let ends = &row_ptr[first + 1..=rows.min(first + CHUNK_ROWS as usize)];
        let end = row_ptr[first].saturating_add(CHUNK);
        first += ends.partition_point(|&p| p <= end).max(1);
        starts.push(first as u32);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_all_rows_and_few_entries() {
        assert_eq!(chunks(&[0, 3]), [0, 1]);
        // rows of 1000, 1000, 100, 5000, 1 entries
        assert_eq!(chunks(&[0, 1000, 2000, 2100, 7100, 7101]), [0, 2, 3, 4, 5]);
        let empty = vec![0; 3001];
        assert_eq!(chunks(&empty), [0, 512, 1024, 1536, 2048, 2560, 3000]);
    }
}
