//! Matrices whose rows couple a grid point to neighbours at fixed offsets, written straight into
//! CSR.

use std::ops::Range;

use crate::base::error::{Error, Result};
use crate::base::measure::check_memory;
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::symbolic::stencil::coordinates;

use super::generator::{Generated, Piece};

/// Grid lines are written in pieces of about this many entries.
const PIECE: usize = 1 << 16;

/// A piece of the matrix with entry `value([x, y, z], k)` between each point and its neighbour at
/// `offsets[k]`, where that lies on the grid of the given size; x is fastest. Not marked as symmetric.
///
/// The offsets must be sorted by z, y, x, so that columns increase.
///
/// # Errors
/// When there are too many entries for 32-bit indices or for the memory at hand.
pub(super) fn matrix(
    size: [usize; 3],
    offsets: &[[i64; 3]],
    piece: Piece,
    value: impl Fn([usize; 3], usize) -> f64 + Sync,
) -> Result<Generated> {
    block_matrix(size, offsets, 1, piece, |point, k, block| block[0] = value(point, k))
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
    piece: Piece,
    fill: impl Fn([usize; 3], usize, &mut [f64]) + Sync,
) -> Result<Generated> {
    let all = size.iter().product();
    let part = Part { size, offsets, b, points: piece.of(all) };
    let shifts = part.shifts();
    let is_whole = piece == Piece::WHOLE;
    let near = if is_whole { 0..all } else { reached(&part.points, &shifts, all) };
    let nnz = if is_whole {
        entries(size, offsets, b)?
    } else {
        check_piece(near.len() as u128 * b as u128, "unknowns")?;
        let entries = part.lines().map(|line| part.entries(line) as u64).sum();
        check_piece(u128::from(entries), "entries")?;
        entries
    };
    let n = part.points.len() * b;
    let bytes = 4 * n as u64 + 12 * nnz;
    check_memory(bytes as usize).map_err(|e| e.hint("choose a smaller grid"))?;

    let nnz = nnz as usize;
    let mut row_ptr = vec![0_u32; n + 1];
    let mut col_ind = vec![0_u32; nnz];
    let mut values = vec![0.0_f64; nnz];
    let rows = part.cut(&mut row_ptr[1..], &mut col_ind, &mut values);
    Threads::Pool.each(rows, |rows| part.write(rows, &shifts, near.start, &fill));
    let matrix = Csr::new(n, near.len() * b, row_ptr, col_ind, values)?;
    let (first, columns, order) = (part.points.start * b, near.start * b, all * b);
    Ok(Generated { matrix, first, columns, order, grid: size, symmetric: false, rhs: None })
}

/// The points of a grid whose rows are made.
struct Part<'a> {
    size: [usize; 3],
    offsets: &'a [[i64; 3]],
    b: usize,
    points: Range<usize>,
}

/// Rows that are written together.
struct Rows<'a> {
    /// Their first point.
    first: usize,
    /// Entries of the rows before.
    base: usize,
    ends: &'a mut [u32],
    columns: &'a mut [u32],
    values: &'a mut [f64],
}

impl Part<'_> {
    /// Distances of a point to its neighbours in the order of the points.
    fn shifts(&self) -> Vec<i64> {
        let [nx, ny, _] = self.size.map(|n| n as i64);
        self.offsets.iter().map(|o| o[0] + nx * (o[1] + ny * o[2])).collect()
    }

    /// Lines with points that are made.
    fn lines(&self) -> Range<usize> {
        let nx = self.size[0];
        self.points.start / nx..self.points.end.div_ceil(nx)
    }

    /// Entries of the points of a line that are made.
    fn entries(&self, line: usize) -> usize {
        let [nx, ny, nz] = self.size;
        let (y, z) = (line % ny, line / ny);
        let at = |point: usize| point.clamp(line * nx, (line + 1) * nx) - line * nx;
        let made = at(self.points.start)..at(self.points.end);
        let on_grid = |o: &&[i64; 3]| inside(y, o[1], ny) && inside(z, o[2], nz);
        let per_offset = |o: &[i64; 3]| {
            let least = made.start.max(o[0].min(0).unsigned_abs() as usize);
            made.end.min(nx.saturating_sub(o[0].max(0) as usize)).saturating_sub(least)
        };
        let blocks: usize = self.offsets.iter().filter(on_grid).map(per_offset).sum();
        blocks * self.b * self.b
    }

    /// The arrays in pieces of whole lines.
    fn cut<'a>(
        &self,
        mut ends: &'a mut [u32],
        mut columns: &'a mut [u32],
        mut values: &'a mut [f64],
    ) -> Vec<Rows<'a>> {
        let (nx, lines) = (self.size[0], self.lines());
        let mut pieces = Vec::new();
        let (mut line, mut base) = (lines.start, 0);
        while line < lines.end {
            let first = (line * nx).max(self.points.start);
            let mut count = 0;
            while line < lines.end && (count == 0 || count < PIECE) {
                count += self.entries(line);
                line += 1;
            }
            let end = (line * nx).min(self.points.end);
            let (ends_here, columns_here, values_here);
            (ends_here, ends) = ends.split_at_mut((end - first) * self.b);
            (columns_here, columns) = columns.split_at_mut(count);
            (values_here, values) = values.split_at_mut(count);
            pieces.push(Rows {
                first,
                base,
                ends: ends_here,
                columns: columns_here,
                values: values_here,
            });
            base += count;
        }
        pieces
    }

    /// Writes rows whose columns are numbered from those of the point `origin` on.
    fn write(
        &self,
        rows: Rows<'_>,
        shifts: &[i64],
        origin: usize,
        fill: &impl Fn([usize; 3], usize, &mut [f64]),
    ) {
        let &Self { size, offsets, b, .. } = self;
        let Rows { first, base, ends, columns, values } = rows;
        let mut blocks = vec![0.0; offsets.len() * b * b];
        // first columns of the blocks of a point
        let mut firsts = Vec::with_capacity(offsets.len());
        let mut at = 0;
        for (at_point, ends) in (first..).zip(ends.chunks_exact_mut(b)) {
            let point = coordinates(size, at_point);
            firsts.clear();
            for (k, (offset, shift)) in offsets.iter().zip(shifts).enumerate() {
                if (0..3).all(|d| inside(point[d], offset[d], size[d])) {
                    let slot = firsts.len() * b * b;
                    fill(point, k, &mut blocks[slot..slot + b * b]);
                    firsts.push(((at_point as i64 + shift) as usize - origin) * b);
                }
            }
            for (c, end) in ends.iter_mut().enumerate() {
                for (block, &column) in blocks.chunks_exact(b * b).zip(&firsts) {
                    for (d, &value) in block[c * b..(c + 1) * b].iter().enumerate() {
                        columns[at] = (column + d) as u32;
                        values[at] = value;
                        at += 1;
                    }
                }
                *end = (base + at) as u32;
            }
        }
    }
}

/// Points that these are coupled with, of so many in all.
fn reached(points: &Range<usize>, shifts: &[i64], all: usize) -> Range<usize> {
    let least = shifts.iter().copied().min().unwrap_or(0).min(0).unsigned_abs() as usize;
    let most = shifts.iter().copied().max().unwrap_or(0).max(0) as usize;
    points.start.saturating_sub(least)..(points.end + most).min(all)
}

/// Refuses a piece of a matrix that has more than 32-bit indices have places for.
fn check_piece(count: u128, of: &str) -> Result<()> {
    if count > u128::from(u32::MAX) {
        let text = format!("{count} {of} of one rank: the limit is {}", u32::MAX);
        return Err(Error::input(text).hint("start more ranks, or choose a smaller grid"));
    }
    Ok(())
}

/// The entries of the whole [`block_matrix`], without making it.
///
/// # Errors
/// When these or the unknowns are too many for 32-bit indices.
pub(super) fn entries(size: [usize; 3], offsets: &[[i64; 3]], b: usize) -> Result<u64> {
    check_unknowns(size, b)?;
    let per_offset = |o: &[i64; 3]| -> u64 {
        (0..3).map(|d| (size[d] as u64).saturating_sub(o[d].unsigned_abs())).product()
    };
    check_entries(offsets.iter().map(per_offset).sum::<u64>().saturating_mul((b * b) as u64))
}

/// Refuses more entries than 32-bit indices have places for.
fn check_entries(nnz: u64) -> Result<u64> {
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
        let value = |p: [usize; 3], k: usize| (100 * p[1] + 10 * p[0] + k) as f64;
        let a = matrix([2, 2, 1], &offsets, Piece::WHOLE, value).unwrap().matrix;
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
        let a = block_matrix([2, 1, 1], &offsets, 2, Piece::WHOLE, fill).unwrap().matrix;
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
        let error = matrix([1 << 30, 1, 1], &seven, Piece::WHOLE, |_, _| 0.0).unwrap_err();
        assert_eq!(error.to_string(), "7516192768 entries: the limit is 4294967295");
        let size = [1 << 20, 1, 1];
        let error = block_matrix(size, &seven, 25, Piece::WHOLE, |_, _, _| {}).unwrap_err();
        assert_eq!(error.to_string(), "4587520000 entries: the limit is 4294967295");
    }

    /// 3000^3 points, of which a rank of 100,000 makes its piece.
    #[test]
    fn a_piece_of_more_unknowns_than_32_bits_has_columns_of_32_bits() {
        let edge = 3000;
        let size = [edge; 3];
        let offsets =
            [[0, 0, -1], [0, -1, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]];
        let value = |[x, y, z]: [usize; 3], k: usize| (x + 2 * y + 3 * z) as f64 + k as f64 / 8.0;
        let piece = Piece { number: 77_777, count: 100_000 };
        let made = matrix(size, &offsets, piece, value).unwrap();
        let first = 77_777 * 270_000;
        assert_eq!((made.first, made.order), (first, edge * edge * edge));
        assert_eq!((made.matrix.rows(), made.columns), (270_000, first - edge * edge));
        let shifts = [-9_000_000, -3000, -1, 0, 1, 3000, 9_000_000_i64];
        for row in [0, 1, 2999, 3000, 123_456, 269_999] {
            let point = first + row;
            let at = [point % edge, point / edge % edge, point / (edge * edge)];
            let (columns, values) = made.matrix.row(row);
            let columns: Vec<i64> = columns
                .iter()
                .map(|&j| (made.columns + j as usize) as i64 - point as i64)
                .collect();
            let kept = |k: &usize| (0..3).all(|d| inside(at[d], offsets[*k][d], edge));
            let want: Vec<usize> = (0..7).filter(kept).collect();
            assert!(columns.into_iter().eq(want.iter().map(|&k| shifts[k])), "{at:?}");
            assert!(values.iter().copied().eq(want.iter().map(|&k| value(at, k))), "{at:?}");
        }
        let error = matrix(size, &offsets, Piece { number: 1, count: 6 }, value).unwrap_err();
        let said = "4518000000 unknowns of one rank: the limit is 4294967295";
        assert_eq!(error.to_string(), said);
        let error = matrix(size, &offsets, Piece { number: 1, count: 30 }, value).unwrap_err();
        assert!(error.to_string().ends_with(" entries of one rank: the limit is 4294967295"));
        assert_eq!(error.hint_text(), Some("start more ranks, or choose a smaller grid"));
    }
}
