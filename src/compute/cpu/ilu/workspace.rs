//! Scratch of the threads of a factorisation.

use std::sync::Mutex;

use super::super::groups::MOST;
use super::{Update, repeated};
use crate::base::memory::Buffer;
use crate::base::threads::{Threads, on_each};
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// Scratch of one thread.
pub(in crate::compute::cpu) struct Workspace {
    /// Blocks of the current row: lower, diagonal, upper. For b = 1 a dense row instead.
    pub(super) row: Buffer<f64>,
    /// Where each column of the current row is in `row`, plus one; 0 where it is not.
    pub(super) position: Buffer<u32>,
    pub(super) window: Window,
    /// Updates of the current row, p by p, and where those of each p end.
    pub(super) updates: Vec<Update>,
    pub(super) ends: Vec<u32>,
    pub(super) repeated: repeated::Plan,
    /// Numbers of the rows of a supernode, for each column.
    pub(super) columns: Buffer<[f64; MOST]>,
}

impl Workspace {
    /// That of each thread, made by it. Several threads have places for as many columns as a row reaches alone: all
    /// of each would be much memory to clear.
    pub(super) fn of_each(
        threads: Threads,
        pattern: &FillPattern,
        supernodes: bool,
    ) -> Vec<Mutex<Self>> {
        let (rows, b) = (pattern.rows(), pattern.block_size());
        let (window, columns) = Window::of(threads, pattern);
        let length = |i| pattern.lower.row(i).len() + 1 + pattern.upper.row(i).len();
        let longest = |most: usize, i| most.max(length(i));
        let sizes = match b {
            1 => [columns, 0],
            _ => [threads.fold(rows, 1 << 14, || 0, longest, usize::max) * b * b, columns],
        };
        // supernodes are for the one thread that makes a factorisation alone
        let beside = |thread| if supernodes && thread == 0 { rows } else { 0 };
        let new = |thread| Mutex::new(Self::new(sizes, beside(thread), window));
        match threads {
            Threads::One => vec![new(0)],
            Threads::Pool => on_each(new),
        }
    }

    /// For so many numbers of a row, columns, and columns of supernodes.
    fn new([row, position]: [usize; 2], columns: usize, window: Window) -> Self {
        let (updates, ends, repeated) = Default::default();
        let (row, position) = (Buffer::zeros(row), Buffer::zeros(position));
        let columns = Buffer::zeros(columns);
        Self { row, position, window, updates, ends, repeated, columns }
    }
}

/// Columns that a row of L and U has, or a row that it updates with, from the first to the last: a factorisation
/// changes no others, so that columns as far apart as the window is wide may share a place.
#[derive(Clone, Copy)]
pub(super) struct Window {
    mask: usize,
    /// Columns left and right of the diagonal.
    left: usize,
    right: usize,
}

impl Window {
    /// That of one thread, of all columns, or the least one that rows need, and the number of its places.
    fn of(threads: Threads, pattern: &FillPattern) -> (Self, usize) {
        let rows = pattern.rows();
        let all = (Self { mask: usize::MAX, left: rows, right: rows }, rows);
        if threads == Threads::One {
            return all;
        }
        let farthest = |half: &Pattern, most: usize, i: usize| match half.repeated(i..i + 1) {
            0 => half.row(i).iter().fold(most, |most, &j| most.max(i.abs_diff(j as usize))),
            _ => most,
        };
        let of_row = |[left, right]: [usize; 2], i| {
            [farthest(&pattern.lower, left, i), farthest(&pattern.upper, right, i)]
        };
        let join = |a: [usize; 2], b: [usize; 2]| [a[0].max(b[0]), a[1].max(b[1])];
        let [left, right] = threads.fold(rows, 1 << 14, || [0; 2], of_row, join);
        let columns = (left + 1 + right).next_power_of_two();
        if columns < rows { (Self { mask: columns - 1, left, right }, columns) } else { all }
    }

    /// The place of a column.
    #[inline(always)]
    pub(super) fn place(self, column: u32) -> usize {
        column as usize & self.mask
    }

    /// Whether a column of row i may have a place: a matrix may have entries that its factors have not.
    #[inline(always)]
    pub(super) fn holds(self, i: usize, column: u32) -> bool {
        let j = column as usize;
        j + self.left >= i && j <= i + self.right
    }
}

/// Where the columns of a row are among its blocks, plus one; 0 where they are not.
pub(super) struct Places<'a> {
    pub(super) of: &'a mut [u32],
    pub(super) window: Window,
}

impl Places<'_> {
    #[inline(always)]
    pub(super) fn get(&self, column: u32) -> u32 {
        self.of[self.window.place(column)]
    }

    #[inline(always)]
    pub(super) fn set(&mut self, column: u32, place: u32) {
        self.of[self.window.place(column)] = place;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::BlockIlu;
    use super::*;
    use crate::base::choices::FactorPrecision;
    use crate::compute::cpu::values::Values;
    use crate::matrix::Csr;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::samples::{matrix, pattern};

    fn factors(a: &Csr, pattern: &Arc<FillPattern>, parallel: bool) -> Vec<u64> {
        let mut ilu = BlockIlu::new(pattern, FactorPrecision::Float64, parallel);
        ilu.factor(a, 0.0, !parallel).expect("pivots");
        let Values::Double(blocks) = &ilu.values else { unreachable!("float64") };
        let parts = [&blocks.lower, &blocks.inverse_diagonal, &blocks.upper];
        parts.iter().flat_map(|part| part.iter()).map(|v| v.to_bits()).collect()
    }

    /// `a` with entries far to the right and to the left, where columns of a row would share places with them.
    fn with_far_entries(a: &Csr, far: usize) -> Csr {
        let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..a.rows() {
            let (columns, own) = a.row(i);
            let left = i.checked_sub(far).map(|j| (j as u32, 5.0));
            let right = (i + far < a.rows()).then_some(((i + far) as u32, 7.0));
            let near = columns.iter().copied().zip(own.iter().copied());
            for (j, v) in left.into_iter().chain(near).chain(right) {
                col_ind.push(j);
                values.push(v);
            }
            row_ptr.push(col_ind.len() as u32);
        }
        let n = a.rows();
        Csr::new(n, n, row_ptr, col_ind, values).expect("sorted").in_blocks(a.block_size())
    }

    #[test]
    fn few_places_give_the_factors_of_many() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
        for (spec, b) in [("poisson3d:16x15x60", 1), ("blockpoisson3d:12x11x40,b=3", 3)] {
            let grid = matrix(spec).in_blocks(b);
            for k in 0..3 {
                let pattern = pattern(&grid, k);
                let columns = pool.install(|| Window::of(Threads::Pool, &pattern).1);
                assert!(4 * columns <= pattern.rows(), "{spec}, k = {k}: {columns}");
                for a in [grid.clone(), with_far_entries(&grid, columns * b)] {
                    let one = factors(&a, &pattern, false);
                    let several = pool.install(|| factors(&a, &pattern, true));
                    assert!(one == several, "{spec}, k = {k}");
                }
            }
        }
    }

    #[test]
    fn blocks_that_are_known_to_be_whole_make_the_same_factors() {
        // on the second pattern A has blocks that the factors have not
        for (spec, of, b) in [
            ("blockpoisson3d:6x5x4,b=3", "blockpoisson3d:6x5x4,b=3", 3),
            ("blockpoisson3d:6x5x4,b=4", "blockpoisson3d:120x1x1,b=4", 4),
            ("blockpoisson3d:9x4x3,b=5", "blockpoisson3d:9x4x3,b=5", 5),
        ] {
            let (a, of) = (matrix(spec).in_blocks(b), matrix(of).in_blocks(b));
            for k in 0..3 {
                let pattern = pattern(&of, k);
                let unknown = a.in_blocks(b);
                assert!(unknown.whole_pattern(b).is_none());
                let known = a.in_blocks(b);
                block_pattern(&known);
                assert!(known.whole_pattern(b).is_some() && known.whole_pattern(1).is_none());
                let [unknown, known] = [unknown, known].map(|a| factors(&a, &pattern, false));
                assert!(unknown == known, "{spec}, k = {k}");
            }
        }
        let part = matrix("poisson3d:6").in_blocks(2);
        block_pattern(&part);
        assert!(part.whole_pattern(2).is_none());
    }
}
