//! Products with a sparse matrix (`kernels/spmv/csr.cu`).

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError};

use super::Cuda;
use super::device::{Device, grid};
use super::launch::{Address, BlocksArg, SparseArg, address, launch};
use super::sources::SPMV;
use super::storage::DevicePattern;
use super::symbolic::{block_rows, fill_blocks};
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
    val: CudaSlice<f64>,
    way: Way,
    /// The scalar rows of which blocks were made on the device.
    scalar: Option<DevicePattern>,
}

/// Who multiplies.
enum Way {
    /// Chunks of rows: start of each, and one past the last.
    Chunks { first: CudaSlice<u32>, chunks: usize, kernel: CudaFunction },
    /// Lanes per block row.
    Blocks { kernel: CudaFunction },
}

impl Stored {
    pub(super) fn csr(d: &Device, a: &Csr) -> Result<Self> {
        let way = Way::of_rows(d, a.row_ptr())?;
        Self::new(d, way, 1, a.row_ptr(), a.col_ind(), a.values())
    }

    pub(super) fn bsr(d: &Device, a: &Bsr) -> Result<Self> {
        let b = a.block_size();
        let way = Way::Blocks { kernel: d.kernel(&SPMV, b, "spmv")? };
        Self::new(d, way, b, a.row_ptr(), a.col_ind(), a.values())
    }

    /// In blocks, which the device makes.
    pub(super) fn blocks(d: &Device, a: &Csr) -> Result<Self> {
        let b = a.block_size();
        let (rows, scalar) = block_rows(d, a)?;
        let mut new = Self {
            block_size: b,
            block_rows: a.rows() / b,
            blocks: rows.entries,
            rows: rows.pattern,
            val: d.zeros(rows.entries * b * b)?,
            way: Way::Blocks { kernel: d.kernel(&SPMV, b, "spmv")? },
            scalar: Some(scalar),
        };
        new.set_entries(d, a)?;
        Ok(new)
    }

    /// Whether [`set_entries`](Self::set_entries) can be called.
    pub(super) fn made_here(&self) -> bool {
        self.scalar.is_some()
    }

    /// Takes over the entries of a matrix with the pattern of the one that blocks were made of on the device.
    pub(super) fn set_entries(&mut self, d: &Device, a: &Csr) -> Result<()> {
        let scalar = self.scalar.as_ref().expect("made on the device");
        let val = d.copied(a.values())?;
        let arg = SparseArg {
            rows: a.rows() as u32,
            row_ptr: address(&scalar.row_ptr),
            col_ind: address(&scalar.col_ind),
            val: address(&val),
        };
        fill_blocks(d, arg, (self.block_size, &self.rows.row_ptr, &self.rows.col_ind), &self.val)
    }

    /// From arrays on the device; `row_ptr` is theirs on the host.
    pub(super) fn on_device(
        d: &Device,
        row_ptr: &[u32],
        blocks: usize,
        (starts, col_ind, val): (CudaSlice<u32>, CudaSlice<u32>, CudaSlice<f64>),
    ) -> Result<Self> {
        let way = Way::of_rows(d, row_ptr)?;
        let block_rows = row_ptr.len() - 1;
        let rows = Arc::new(DevicePattern { row_ptr: starts, col_ind });
        Ok(Self { block_size: 1, block_rows, blocks, rows, val, way, scalar: None })
    }

    fn new(
        d: &Device,
        way: Way,
        block_size: usize,
        row_ptr: &[u32],
        col_ind: &[u32],
        val: &[f64],
    ) -> Result<Self> {
        Ok(Self {
            block_size,
            block_rows: row_ptr.len() - 1,
            blocks: col_ind.len(),
            rows: Arc::new(DevicePattern {
                row_ptr: d.copied(row_ptr)?,
                col_ind: d.copied(col_ind)?,
            }),
            val: d.copied(val)?,
            way,
            scalar: None,
        })
    }

    /// Its arrays.
    pub(super) fn host(&self, d: &Device) -> Result<(Vec<u32>, Vec<u32>, Vec<f64>)> {
        let DevicePattern { row_ptr, col_ind } = &*self.rows;
        let mut arrays = (d.host(row_ptr)?, d.host(col_ind)?, d.host(&self.val)?);
        arrays.1.truncate(self.blocks);
        arrays.2.truncate(self.blocks * self.block_size * self.block_size);
        Ok(arrays)
    }

    /// Takes over values in the same places.
    pub(super) fn set_values(&mut self, d: &Device, val: &[f64]) -> Result<()> {
        d.overwrite(val, &mut self.val)
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

    /// Its rows, which others may keep.
    pub(super) fn rows(&self) -> &Arc<DevicePattern> {
        &self.rows
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
                launch!(d, kernel, config; *first, *row_ptr, *col_ind, *val, *x, b, *y)
            }
            Way::Blocks { kernel } => {
                let groups = (32 / self.block_size.min(32)) * THREADS as usize / 32;
                let config = grid(self.block_rows.div_ceil(groups), THREADS);
                let rows = self.block_rows as u32;
                launch!(d, kernel, config; rows, *row_ptr, *col_ind, *val, *x, b, *y)
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
        Stored::blocks(&self.device, a)?.host(&self.device)
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
    let mut first = 0;
    for i in 1..rows {
        if row_ptr[i + 1] - row_ptr[first] > CHUNK || (i - first) as u32 >= CHUNK_ROWS {
            starts.push(i as u32);
            first = i;
        }
    }
    starts.push(rows as u32);
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
