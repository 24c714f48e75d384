//! Writes the linearised equations as one matrix.

use super::flow::MOST;
use super::system::{CellRows, System, WellParts};
use crate::base::error::{Error, Result};
use crate::base::measure::check_memory;
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::problem::generator::Piece;
use crate::problem::stencil::check_unknowns;

/// Cells that a task writes.
const CELLS_PER_TASK: usize = 1024;

/// How the matrix is arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// The blocks of cells with an odd number lie half a block further right.
    pub(super) half_bias: bool,
    /// The pressures of wells are eliminated.
    pub(super) without_wells: bool,
}

/// A piece of the matrix and its right-hand side: cells, then, in the last, wells.
pub(super) fn assemble<const N: usize>(
    system: &System<'_, N>,
    arrangement: Arrangement,
    piece: Piece,
) -> Result<(Csr, Vec<f64>)> {
    let with_wells = piece.is_last() && !arrangement.without_wells;
    let needed = if with_wells || arrangement.without_wells { system.wells.len() } else { 0 };
    let wells: Vec<WellParts> = Threads::Pool.map(needed, 1, |w| system.well_parts(w));
    let plan = Plan { system, arrangement, wells: &wells };
    let (k, made) = (system.flow.k, piece.of(system.cells()));
    let scalars = made.len() * k;
    let n = scalars + if with_wells { wells.len() } else { 0 };

    let counts: Vec<usize> =
        Threads::Pool.map(made.len(), 1, |i| plan.entries_of_row(made.start + i));
    let of_cells = counts.iter().map(|&c| (c * k) as u64).sum::<u64>();
    let of_wells: usize = if with_wells { wells.iter().map(|w| w.row.len() + 1).sum() } else { 0 };
    let nnz = of_cells + of_wells as u64;
    check_size(made.len(), n, nnz)?;

    let (mut row_ptr, mut col_ind) = (vec![0_u32; n + 1], vec![0_u32; nnz as usize]);
    let (mut values, mut rhs) = (vec![0.0; nnz as usize], vec![0.0; n]);
    let mut at = 0;
    for (ends, count) in row_ptr[1..].chunks_exact_mut(k).zip(&counts) {
        for end in ends {
            at += count;
            *end = at as u32;
        }
    }
    let mut tasks = Vec::new();
    let (mut cols, mut vals) = (&mut col_ind[..], &mut values[..]);
    for (t, counts) in counts.chunks(CELLS_PER_TASK).enumerate() {
        let entries = counts.iter().sum::<usize>() * k;
        let (cols_here, vals_here);
        (cols_here, cols) = cols.split_at_mut(entries);
        (vals_here, vals) = vals.split_at_mut(entries);
        tasks.push((made.start + t * CELLS_PER_TASK, cols_here, vals_here));
    }
    let parts = tasks.into_iter().zip(rhs[..scalars].chunks_mut(CELLS_PER_TASK * k));
    Threads::Pool.each(parts.collect(), |((first, cols, vals), rhs)| {
        let mut at = 0;
        for (cell, rhs) in (first..).zip(rhs.chunks_exact_mut(k)) {
            at += plan.write(cell, &mut cols[at..], &mut vals[at..], rhs);
        }
    });
    if with_wells {
        let mut end = of_cells as usize;
        for (w, (parts, well)) in wells.iter().zip(&system.wells).enumerate() {
            for (c, &v) in parts.row.iter().chain([&parts.diagonal]).enumerate() {
                let own = c == parts.row.len();
                let place = if own { system.cells() * k + w } else { well.first * k + c };
                col_ind[end] = place as u32;
                values[end] = v;
                end += 1;
            }
            row_ptr[scalars + w + 1] = end as u32;
            rhs[scalars + w] = parts.rhs;
        }
    }
    Ok((Csr::new(n, plan.order(), row_ptr, col_ind, values)?, rhs))
}

/// What the rows of all cells share.
struct Plan<'a, const N: usize> {
    system: &'a System<'a, N>,
    arrangement: Arrangement,
    /// All of them, where they are eliminated.
    wells: &'a [WellParts],
}

impl<const N: usize> Plan<'_, N> {
    fn order(&self) -> usize {
        let wells = if self.arrangement.without_wells { 0 } else { self.system.wells.len() };
        self.system.cells() * self.system.flow.k + wells
    }

    /// Cells in whose columns the rows of a cell have blocks, ascending: its neighbours and, when
    /// the well of the cell is eliminated, all cells of the well.
    fn columns(&self, cell: usize) -> Vec<usize> {
        let mut columns: Vec<usize> = self.system.neighbours(cell).collect();
        if self.arrangement.without_wells
            && let Some(w) = self.system.well(cell)
        {
            let first = self.system.wells[w].first;
            columns.extend(first..first + self.system.flow.rock.size[0]);
            columns.sort_unstable();
            columns.dedup();
        }
        columns
    }

    /// First column of a block, and how many of its columns lie in the matrix of the cells.
    fn place(&self, cell: usize, column: usize) -> (usize, usize) {
        let k = self.system.flow.k;
        let shift = if self.arrangement.half_bias && cell % 2 == 1 { k / 2 } else { 0 };
        let first = column * k + shift;
        (first, k.min(self.system.cells() * k - first))
    }

    fn entries_of_row(&self, cell: usize) -> usize {
        let blocks: usize = self.columns(cell).iter().map(|&c| self.place(cell, c).1).sum();
        let well = !self.arrangement.without_wells && self.system.well(cell).is_some();
        blocks + usize::from(well)
    }

    /// Writes the rows of a cell and returns the number of their entries.
    fn write(&self, cell: usize, cols: &mut [u32], vals: &mut [f64], rhs: &mut [f64]) -> usize {
        let k = self.system.flow.k;
        let mut rows = self.system.cell(cell);
        let columns = self.columns(cell);
        let well = self.system.well(cell);
        if self.arrangement.without_wells
            && let Some(w) = well
        {
            self.eliminate(cell, w, &columns, &mut rows);
        }
        let scalars = self.system.cells() * k;
        let mut at = 0;
        for e in 0..k {
            for (block, &column) in rows.blocks.iter().zip(&columns) {
                let (first, width) = self.place(cell, column);
                for u in 0..width {
                    cols[at] = (first + u) as u32;
                    vals[at] = block[e * k + u];
                    at += 1;
                }
            }
            if let Some(w) = well.filter(|_| !self.arrangement.without_wells) {
                cols[at] = (scalars + w) as u32;
                vals[at] = rows.well[e];
                at += 1;
            }
            rhs[e] = rows.rhs[e];
        }
        at
    }

    /// Subtracts `WT D^-1 W` and, on the right, `WT D^-1 b`.
    fn eliminate(&self, cell: usize, w: usize, columns: &[usize], rows: &mut CellRows) {
        let k = self.system.flow.k;
        let (parts, first) = (&self.wells[w], self.system.wells[w].first);
        let neighbours: Vec<usize> = self.system.neighbours(cell).collect();
        let mut blocks = Vec::with_capacity(columns.len());
        for &column in columns {
            let known = neighbours.iter().position(|&n| n == column);
            let mut block = known.map_or([0.0; MOST * MOST], |at| rows.blocks[at]);
            let of_well = column.checked_sub(first).and_then(|c| parts.row.get(c * k..(c + 1) * k));
            for (e, u) in (0..k).flat_map(|e| (0..k).map(move |u| (e, u))) {
                if let Some(row) = of_well {
                    block[e * k + u] -= rows.well[e] * row[u] / parts.diagonal;
                }
            }
            blocks.push(block);
        }
        rows.blocks = blocks;
        for e in 0..k {
            rows.rhs[e] -= rows.well[e] * parts.rhs / parts.diagonal;
        }
    }
}

/// Refuses a box that is too large before anything of its size is made.
pub(super) fn check_box(size: [usize; 3], k: usize) -> Result<()> {
    check_unknowns(size, k)?;
    let cells: u64 = size.iter().map(|&s| s as u64).product();
    let faces: u64 = size.iter().map(|&s| cells - cells / s as u64).sum();
    let blocks = (k * k) as u64;
    check_size(cells as usize, cells as usize * k, (cells + 2 * faces).saturating_mul(blocks))
}

/// Bytes for each cell beside the matrix: two states, rock, counts.
const OF_A_CELL: u64 = 2 * 8 * MOST as u64 + 24;

/// Refuses what 32-bit indices or the memory at hand cannot hold.
fn check_size(cells: usize, n: usize, nnz: u64) -> Result<()> {
    let limit = u64::from(u32::MAX);
    if nnz > limit {
        return Err(Error::input(format!("{nnz} entries: the limit is {limit}"))
            .hint("choose a smaller grid"));
    }
    let needed = OF_A_CELL * cells as u64 + 12 * n as u64 + 12 * nnz;
    check_memory(needed as usize).map_err(|e| e.hint("choose a smaller grid"))
}
