//! Bdia on the device (`Bdia` of `kernels/spmv/formats.cuh`).

use cudarc::driver::CudaSlice;

use super::{MOST_ROWS, WARP};
use crate::base::error::Result;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::{BdiaArg, WellsArg, address};
use crate::compute::cuda::layout::shared;
use crate::matrix::Bdia;
use crate::matrix::bdia::Wells;
use crate::matrix::storage::TILE;

/// Most offsets of a cell's blocks; mirrors `spmv/formats.cuh`.
const OFFSETS: usize = 7;

/// A Bdia matrix with H column-major in tiles of rows.
pub(super) struct DeviceBdia {
    scalars: usize,
    offsets: Vec<i32>,
    half_shift: bool,
    val: CudaSlice<f64>,
    wells: Option<DeviceWells>,
}

shared! { words [u32; 4] = "Well" of "spmv/formats.cuh"; }

/// W, WT and D in the order of the cells.
struct DeviceWells {
    /// Entries in the row of each, by number.
    entries: Vec<u32>,
    near: CudaSlice<[u32; 2]>,
    /// Of each its first row of a cell, its first entry, their number, its own number.
    well: CudaSlice<[u32; 4]>,
    row: CudaSlice<f64>,
    column: CudaSlice<f64>,
    diagonal: CudaSlice<f64>,
}

impl DeviceBdia {
    pub(super) fn new(d: &Device, bdia: &Bdia) -> Result<Self> {
        let hepta = bdia.hepta();
        let k = hepta.block_size;
        let scalars = hepta.cells * k;
        let val = tiled(bdia);
        Ok(Self {
            scalars,
            offsets: hepta.offsets.iter().map(|&o| o as i32 * k as i32).collect(),
            half_shift: hepta.half_shift,
            val: d.copied(&val)?,
            wells: DeviceWells::new(d, bdia.wells(), scalars)?,
        })
    }

    /// Rows of the cells.
    pub(super) fn scalars(&self) -> usize {
        self.scalars
    }

    /// Number of wells.
    pub(super) fn wells(&self) -> usize {
        self.wells.as_ref().map_or(0, |w| w.entries.len())
    }

    /// Entries of the rows before each row, those of the wells last, and of all.
    pub(super) fn entries_before(&self) -> Box<dyn Fn(usize) -> u64> {
        let of_cell_row = (self.val.len() / self.scalars.max(1)) as u64;
        let mut of_wells = vec![0_u64];
        for &entries in self.wells.iter().flat_map(|w| &w.entries) {
            of_wells.push(of_wells.last().unwrap_or(&0) + u64::from(entries));
        }
        let scalars = self.scalars;
        Box::new(move |row| {
            let (cells, wells) = (row.min(scalars), row.saturating_sub(scalars));
            cells as u64 * of_cell_row + of_wells[wells.min(of_wells.len() - 1)]
        })
    }

    /// What beside the block size decides how the kernel runs.
    pub(super) fn shape(&self) -> String {
        let half = if self.half_shift { ", half shift" } else { "" };
        format!(", {} offsets{half}", self.offsets.len())
    }

    /// What the kernel is compiled for.
    pub(super) fn defines(&self) -> [(&'static str, usize); 2] {
        [("OFFSETS", self.offsets.len()), ("HALF_SHIFT", usize::from(self.half_shift))]
    }

    pub(super) fn argument(&self) -> BdiaArg {
        let mut at = [0; OFFSETS];
        at[..self.offsets.len()].copy_from_slice(&self.offsets);
        BdiaArg {
            rows: self.scalars as u32,
            at,
            val: address(&self.val),
            wells: self.wells.as_ref().map_or_else(WellsArg::default, |w| WellsArg {
                count: w.entries.len() as u32,
                near: address(&w.near),
                well: address(&w.well),
                row: address(&w.row),
                column: address(&w.column),
                diagonal: address(&w.diagonal),
            }),
        }
    }
}

/// H in tiles of [`TILE`] rows, the last with room for as many; columns are those of the blocks of a
/// cell, one block after the other.
fn tiled(bdia: &Bdia) -> Buffer<f64> {
    let hepta = bdia.hepta();
    let (k, columns) = (hepta.block_size, hepta.offsets.len() * hepta.block_size);
    let scalars = hepta.cells * k;
    let mut val = Buffer::<f64>::zeros(scalars.div_ceil(TILE) * TILE * columns);
    Threads::Pool.chunks(&mut val, TILE * columns, 1, |tile, to| {
        let rows = tile * TILE..scalars.min((tile + 1) * TILE);
        for (at, i) in rows.enumerate() {
            let (cell, r) = (i / k, i % k);
            let blocks = &bdia.values()[cell * columns * k..(cell + 1) * columns * k];
            for (c, column) in blocks.chunks_exact(k).enumerate() {
                to[c * TILE + at] = column[r];
            }
        }
    });
    val
}

impl DeviceWells {
    /// `None` when there is no well.
    fn new(d: &Device, wells: &Wells, scalars: usize) -> Result<Option<Self>> {
        if wells.count() == 0 {
            return Ok(None);
        }
        let number = in_order(wells);
        let runs = || number.iter().map(|&w| w as usize);
        let first: Vec<u32> = runs().map(|w| wells.run(w).start as u32).collect();
        let mut start = vec![0_u32];
        let (mut row, mut column) = (Vec::new(), Vec::new());
        for w in runs() {
            row.extend_from_slice(wells.row(w));
            column.extend_from_slice(wells.column(w));
            start.push(row.len() as u32);
        }
        let each = number.iter().zip(&first).zip(start.windows(2));
        let well: Vec<[u32; 4]> =
            each.map(|((&number, &first), run)| [first, run[0], run[1] - run[0], number]).collect();
        let diagonal: Vec<f64> = runs().map(|w| wells.diagonal()[w]).collect();
        Ok(Some(Self {
            entries: (0..wells.count()).map(|w| wells.run(w).len() as u32).collect(),
            near: d.copied(&near(&first, &start, scalars))?,
            well: d.copied(&well)?,
            row: d.copied(&row)?,
            column: d.copied(&column)?,
            diagonal: d.copied(&diagonal)?,
        }))
    }
}

/// The wells in the order of their cells; those without cells come last.
fn in_order(wells: &Wells) -> Vec<u32> {
    let mut number: Vec<u32> = (0..wells.count() as u32).collect();
    number.sort_by_key(|&w| {
        let run = wells.run(w as usize);
        (run.is_empty(), run.start)
    });
    number
}

/// For each [`WARP`] rows the first of the wells that reach into them and the one after the last, where
/// there is none a first beyond all; further groups so that a lane may have several rows.
fn near(first: &[u32], start: &[u32], scalars: usize) -> Vec<[u32; 2]> {
    let mut near = vec![[u32::MAX, 0]; scalars.div_ceil(WARP) + MOST_ROWS];
    for (w, (&first, run)) in first.iter().zip(start.windows(2)).enumerate() {
        let (first, length) = (first as usize, (run[1] - run[0]) as usize);
        if length > 0 {
            for group in &mut near[first / WARP..(first + length).div_ceil(WARP)] {
                *group = [group[0].min(w as u32), w as u32 + 1];
            }
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::problem::load;

    #[test]
    fn tiles_hold_the_blocks_column_by_column() {
        let a = load("reservoir:5x7x9,k=2,at=2x3+1x1", ReadAs::Expanded).unwrap().matrix;
        let bdia = Bdia::from_csr(&a.in_blocks(2)).unwrap();
        let val = tiled(&bdia);
        let rows = 5 * 7 * 9 * 2;
        assert_eq!(val.len(), 3 * TILE * 14);
        for (at, &v) in val.iter().enumerate() {
            let (i, column) = (at / (TILE * 14) * TILE + at % TILE, at / TILE % 14);
            let j = (i as i64 / 2 + bdia.hepta().offsets[column / 2]) * 2 + column as i64 % 2;
            let inside = i < rows && (0..rows as i64).contains(&j);
            let want = if inside { a.get(i, j as usize).unwrap_or(0.0) } else { 0.0 };
            assert_eq!(v.to_bits(), want.to_bits(), "row {i}, column {j}");
        }
    }

    #[test]
    fn warps_know_the_wells_that_they_meet() {
        // runs 10..40, 40..50, 100..101; no run; rows 0..128
        let none = [u32::MAX, 0];
        let near = near(&[10, 40, 100, 0], &[0, 30, 40, 41, 41], 128);
        assert_eq!(near, [[0, 1], [0, 2], none, [2, 3], none, none, none, none]);
    }

    #[test]
    fn wells_are_in_the_order_of_their_cells() {
        let a = load("reservoir:3x4x5,k=2,at=2x3+1x1", ReadAs::Expanded).unwrap().matrix;
        let bdia = Bdia::from_csr(&a.in_blocks(2)).unwrap();
        let runs: Vec<usize> =
            in_order(bdia.wells()).iter().map(|&w| bdia.wells().run(w as usize).start).collect();
        assert_eq!(runs.len(), 2);
        assert!(runs[0] < runs[1], "{runs:?}");
    }
}
