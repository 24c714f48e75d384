//! Matrices whose rows couple a grid point to neighbours at fixed offsets, written straight into
//! CSR.

use rayon::prelude::*;

use crate::base::error::{Error, Result};
use crate::base::measure::check_memory;
use crate::matrix::Csr;

/// Grid lines are written in pieces of about this many entries.
const PIECE: usize = 1 << 16;

/// The matrix with entry `value([x, y, z], k)` between each point and its neighbour at
/// `offsets[k]`, where that lies on the grid of the given size; x is fastest.
///
/// The offsets must be sorted by z, y, x, so that columns increase.
///
/// # Errors
/// When there are too many entries for 32-bit indices or for the memory at hand.
pub(super) fn matrix(
    size: [usize; 3],
    offsets: &[[i64; 3]],
    value: impl Fn([usize; 3], usize) -> f64 + Sync,
) -> Result<Csr> {
    block_matrix(size, offsets, 1, |point, k, block| block[0] = value(point, k))
}

/// As [`matrix`] with `b` consecutive unknowns per point: `fill([x, y, z], k, block)` writes all
/// of the b x b block between a point and its neighbour, row by row.
///
/// # Errors
/// As [`matrix`].
pub(super) fn block_matrix(
    size: [usize; 3],
    offsets: &[[i64; 3]],
    b: usize,
    fill: impl Fn([usize; 3], usize, &mut [f64]) + Sync,
) -> Result<Csr> {
    let [nx, ny, nz] = size;
    let lines = ny * nz;
    // blocks of the line through (y, z)
    let line_blocks = |line: usize| -> usize {
        let (y, z) = (line % ny, line / ny);
        let on_grid = |o: &&[i64; 3]| inside(y, o[1], ny) && inside(z, o[2], nz);
        let per_offset = |o: &[i64; 3]| nx.saturating_sub(o[0].unsigned_abs() as usize);
        offsets.iter().filter(on_grid).map(per_offset).sum()
    };
    let nnz = entries(size, offsets, b)?;
    let n = nx * lines * b;
    let bytes = 4 * n as u64 + 12 * nnz;
    check_memory(bytes as usize).map_err(|e| e.hint("choose a smaller grid"))?;

    let nnz = nnz as usize;
    let mut row_ptr = vec![0_u32; n + 1];
    let mut col_ind = vec![0_u32; nnz];
    let mut values = vec![0.0_f64; nnz];
    let mut pieces = Vec::new();
    let (mut ends, mut cols, mut vals) = (&mut row_ptr[1..], &mut col_ind[..], &mut values[..]);
    let (mut line, mut base) = (0, 0);
    while line < lines {
        let first = line;
        let mut count = 0;
        while line < lines && (count == 0 || count < PIECE) {
            count += line_blocks(line) * b * b;
            line += 1;
        }
        let (ends_here, cols_here, vals_here);
        (ends_here, ends) = ends.split_at_mut((line - first) * nx * b);
        (cols_here, cols) = cols.split_at_mut(count);
        (vals_here, vals) = vals.split_at_mut(count);
        pieces.push((first, base, ends_here, cols_here, vals_here));
        base += count;
    }
    let shifts: Vec<i64> =
        offsets.iter().map(|o| o[0] + nx as i64 * (o[1] + ny as i64 * o[2])).collect();
    pieces.into_par_iter().for_each(|(first, base, ends, cols, vals)| {
        let mut blocks = vec![0.0; offsets.len() * b * b];
        // first columns of the blocks of a point
        let mut columns = Vec::with_capacity(offsets.len());
        let mut at = 0;
        for (r, ends) in ends.chunks_exact_mut(b).enumerate() {
            let line = first + r / nx;
            let point = [r % nx, line % ny, line / ny];
            columns.clear();
            for (k, (offset, shift)) in offsets.iter().zip(&shifts).enumerate() {
                if (0..3).all(|d| inside(point[d], offset[d], size[d])) {
                    let slot = columns.len() * b * b;
                    fill(point, k, &mut blocks[slot..slot + b * b]);
                    columns.push(((first * nx + r) as i64 + shift) as usize * b);
                }
            }
            for (c, end) in ends.iter_mut().enumerate() {
                for (block, &column) in blocks.chunks_exact(b * b).zip(&columns) {
                    for (d, &value) in block[c * b..(c + 1) * b].iter().enumerate() {
                        cols[at] = (column + d) as u32;
                        vals[at] = value;
                        at += 1;
                    }
                }
                *end = (base + at) as u32;
            }
        }
    });
    Csr::new(n, n, row_ptr, col_ind, values)
}

/// The entries of [`block_matrix`], without making it.
///
/// # Errors
/// When these or the unknowns are too many for 32-bit indices.
pub(super) fn entries(size: [usize; 3], offsets: &[[i64; 3]], b: usize) -> Result<u64> {
    check_unknowns(size, b)?;
    let per_offset = |o: &[i64; 3]| -> u64 {
        (0..3).map(|d| (size[d] as u64).saturating_sub(o[d].unsigned_abs())).product()
    };
    let nnz = offsets.iter().map(per_offset).sum::<u64>().saturating_mul((b * b) as u64);
    if nnz > u64::from(u32::MAX) {
        return Err(Error::input(format!("{nnz} entries: the limit is {}", u32::MAX))
            .hint("choose a smaller grid"));
    }
    Ok(nnz)
}

/// Refuses a box of cells with more unknowns than 32 bits count.
pub(super) fn check_unknowns(size: [usize; 3], of_cell: usize) -> Result<()> {
    let unknowns = size.iter().map(|&s| s as u128).product::<u128>() * of_cell as u128;
    if unknowns > u128::from(u32::MAX) {
        let message = format!("{unknowns} unknowns: the limit is {}", u32::MAX);
        return Err(Error::input(message).hint("choose a smaller grid or fewer unknowns per cell"));
    }
    Ok(())
}

/// Whether `at + offset` is one of `0..size`.
fn inside(at: usize, offset: i64, size: usize) -> bool {
    at.checked_add_signed(offset as isize).is_some_and(|at| at < size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_neighbours_outside_the_grid() {
        let offsets = [[0, -1, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0]];
        let a = matrix([2, 2, 1], &offsets, |p, k| (100 * p[1] + 10 * p[0] + k) as f64).unwrap();
        assert_eq!(a.row_ptr(), [0, 3, 6, 9, 12]);
        assert_eq!(a.col_ind(), [0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3]);
        let values = [2., 3., 4., 11., 12., 14., 100., 102., 103., 110., 111., 112.];
        assert_eq!(a.values(), values);
    }

    #[test]
    fn blocks_are_written_row_by_row() {
        let offsets = [[-1, 0, 0], [0, 0, 0], [1, 0, 0]];
        let fill = |p: [usize; 3], k: usize, block: &mut [f64]| {
            for (e, v) in block.iter_mut().enumerate() {
                *v = (100 * p[0] + 10 * k + e) as f64;
            }
        };
        let a = block_matrix([2, 1, 1], &offsets, 2, fill).unwrap();
        assert_eq!(a.row_ptr(), [0, 4, 8, 12, 16]);
        assert_eq!(a.col_ind(), [[0, 1, 2, 3]; 4].concat());
        assert_eq!(a.row(0).1, [10., 11., 20., 21.]);
        assert_eq!(a.row(1).1, [12., 13., 22., 23.]);
        assert_eq!(a.row(2).1, [100., 101., 110., 111.]);
        assert_eq!(a.row(3).1, [102., 103., 112., 113.]);
    }

    #[test]
    fn refuses_more_entries_than_indices() {
        let seven = [[0, 0, 0]; 7];
        let error = matrix([1 << 30, 1, 1], &seven, |_, _| 0.0).unwrap_err();
        assert_eq!(error.to_string(), "7516192768 entries: the limit is 4294967295");
        let error = block_matrix([1 << 20, 1, 1], &seven, 25, |_, _, _| {}).unwrap_err();
        assert_eq!(error.to_string(), "4587520000 entries: the limit is 4294967295");
    }
}
