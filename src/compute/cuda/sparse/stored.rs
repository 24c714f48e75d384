//! From a matrix by rows to one that is stored for products.

use crate::base::error::Result;
use crate::compute::cuda::Matrix;
use crate::compute::cuda::compressed::{Compressed, THREADS, kernel, run};
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::formats::Formatted;
use crate::compute::cuda::spmv::Stored;
use crate::matrix::Dia;
use crate::matrix::storage::TILE;

/// The kernel has a thread for each row of a tile.
const _: () = assert!(TILE == THREADS as usize);

impl Compressed {
    /// The matrix stored by diagonals or by rows; back it is given when a number is not finite, or entries lie
    /// apart from whole diagonals.
    pub(super) fn stored(self, d: &Device) -> Result<std::result::Result<Matrix, Self>> {
        if !self.finite(d)? {
            return Ok(Err(self));
        }
        if let Some(diagonals) = self.diagonals(d)? {
            if diagonals.iter().any(|&(_, count)| !Dia::whole(count as usize, self.rows)) {
                return Ok(Err(self));
            }
            let offsets: Vec<i32> = diagonals.into_iter().map(|(offset, _)| offset).collect();
            let formatted = self.by_diagonals(d, &offsets)?;
            return Ok(Ok(Matrix::Formatted(Box::new(formatted))));
        }
        let row_ptr = d.host_part(&self.pattern.row_ptr, self.rows + 1)?;
        Ok(Ok(Matrix::Ours(Stored::rows(d, &row_ptr, self)?)))
    }

    /// Column minus row of every diagonal with entries, ascending, and how many it has, where diagonals suit
    /// the matrix and their kernel can count its rows.
    fn diagonals(&self, d: &Device) -> Result<Option<Vec<(i32, u32)>>> {
        if self.rows > i32::MAX as usize / 2 {
            return Ok(None);
        }
        let places = 2 * self.rows - 1;
        let most = Dia::MOST_SUITING;
        let count = d.zeros::<u32>(places)?;
        let (found, list) = (d.zeros::<u32>(1)?, d.zeros::<u32>(2 * most)?);
        run!(d, kernel(d, "count_diagonals")?, self.by_rows(); self.argument(), count);
        let config = grid(places.div_ceil(THREADS as usize), THREADS);
        let of = kernel(d, "list_diagonals")?;
        let (places, room) = (places as u32, most as u32);
        run!(d, of, config; places, count, room, found, list);
        let found = d.host(&found)?[0] as usize;
        if !Dia::few(found, [self.rows, self.entries]) {
            return Ok(None);
        }
        let list = d.host(&list)?;
        let offset = |place: u32| (i64::from(place) - (self.rows as i64 - 1)) as i32;
        let mut diagonals: Vec<(i32, u32)> =
            list[..2 * found].chunks_exact(2).map(|two| (offset(two[0]), two[1])).collect();
        diagonals.sort_unstable();
        Ok(Some(diagonals))
    }

    fn by_diagonals(&self, d: &Device, offsets: &[i32]) -> Result<Formatted> {
        let at = d.copied(offsets)?;
        let val = d.alloc(self.rows.next_multiple_of(TILE) * offsets.len())?;
        let (of, count) = (kernel(d, "fill_diagonals")?, offsets.len() as u32);
        run!(d, of, self.by_rows(); self.argument(), count, at, val);
        Formatted::of_diagonals(d, [self.rows, self.entries], (offsets.len(), at), val)
    }
}
