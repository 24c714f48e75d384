//! Bdia: the storage of Al-Mouhamed and Khan (2017, section 6) for reservoir matrices with wells.

mod detect;
mod wells;

use std::sync::Arc;

use super::Csr;
use super::storage::Storage;
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;
pub use detect::Hepta;
pub use wells::Wells;

/// A generalised block hepta-diagonal matrix `GH = [H WT; W D]`.
///
/// H couples each cell to itself and to its neighbours at fixed distances, of which there are at
/// most three in each direction: the offsets 0, +-1, +-J and +-J H of a box of J x H x I cells. For
/// every cell there is a k x k block for each offset, in ascending order, also where the box ends and
/// there is no neighbour: those are zeros. So no index is stored. W has a row for each well and WT a
/// column, D is diagonal: see [`Wells`].
///
/// Blocks are column-major and those of a cell lie together, as a processor likes it; the paper's
/// column-major order of all rows is a GPU's.
///
/// In the variant GH-h of the paper (section 7.2) the blocks of every other cell lie half a block
/// further right.
pub struct Bdia {
    hepta: Hepta,
    values: Buffer<f64>,
    wells: Wells,
}

impl Bdia {
    /// Converts `a`, whose blocks are the unknowns of a cell.
    ///
    /// # Errors
    /// When the cells are not coupled as those of a box, or the rows behind them not as those of
    /// wells; names the first such row, counted from 1, and the offset of the block or the column.
    ///
    /// # Panics
    /// If the last block of `a` is not full (see [`super::bsr::pad`]).
    pub(crate) fn from_csr(a: &Csr) -> Result<Self> {
        let hepta = Hepta::detect(a)?;
        let wells = Wells::collect(a, &hepta)?;
        let k = hepta.block_size;
        let values = Buffer::zeros(hepta.cells * hepta.offsets.len() * k * k);
        let mut bdia = Self { hepta, values, wells };
        bdia.fill(a);
        Ok(bdia)
    }

    /// Where the blocks of H are.
    pub(crate) fn hepta(&self) -> &Hepta {
        &self.hepta
    }

    /// The blocks of H: cell by cell, offset by offset, column-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// W, WT and D.
    pub fn wells(&self) -> &Wells {
        &self.wells
    }

    /// Copies the entries of H.
    fn fill(&mut self, a: &Csr) {
        let hepta = &self.hepta;
        let (k, scalars) = (hepta.block_size, hepta.cells * hepta.block_size);
        let of_cell = hepta.offsets.len() * k * k;
        Threads::Pool.chunks(&mut self.values, of_cell.max(1), 256, |cell, blocks| {
            for r in 0..k {
                let (cols, row) = a.row(cell * k + r);
                // columns increase, so the blocks come one after the other
                let mut from = 0;
                for (&j, &v) in cols.iter().zip(row).take_while(|(j, _)| (**j as usize) < scalars) {
                    let found = hepta.place(cell, from, j as usize);
                    let (at, c) = found.expect("checked when detected");
                    blocks[(at * k + c) * k + r] = v;
                    from = at;
                }
            }
        });
    }
}

impl Storage for Bdia {
    fn format(&self) -> Format {
        Format::Bdia
    }
    fn rows(&self) -> usize {
        self.hepta.cells * self.hepta.block_size + self.wells.count()
    }
    fn stored(&self) -> usize {
        self.values.len() + self.wells.stored()
    }
    fn bytes(&self) -> usize {
        8 * self.values.len() + self.wells.bytes()
    }
    fn set_values(&mut self, a: &Arc<Csr>) {
        self.fill(a);
        self.wells = Wells::collect(a, &self.hepta).expect("the pattern was stored before");
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
