//! Recognises the block hepta-diagonal part of a matrix by its pattern.

use std::collections::HashMap;
use std::ops::Range;

use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, block_pattern_on};

/// A distance belongs to the stencil when on average every other one of the inspected cells has a
/// block there: two cells in a direction give one each, above and below taken together.
const LEAST_SHARE: f64 = 0.5;

/// Directions of a box.
const DIRECTIONS: usize = 3;

/// Where the blocks of H are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hepta {
    /// Unknowns of a cell.
    pub block_size: usize,
    /// Number of cells.
    pub cells: usize,
    /// Block column minus block row of each block, ascending: 0 and up to three distances both ways.
    pub offsets: Vec<i64>,
    /// Whether the blocks of cells with an odd number lie half a block further right (GH-h).
    pub half_shift: bool,
}

impl Hepta {
    /// Finds the distances that most cells share, the number of cells and the shift, and checks that
    /// every entry between cells fits.
    ///
    /// With the largest distance J H, the cells are the largest multiple of it whose last plane has
    /// couplings of its own; the rows behind are those of wells.
    ///
    /// # Errors
    /// Names the first row that does not fit.
    pub(super) fn detect(a: &Csr) -> Result<Self> {
        let block_size = a.block_size();
        let whole = a.rows().is_multiple_of(block_size);
        assert!(a.rows() == a.cols() && whole, "pad the matrix first");
        let blocks = block_pattern_on(Threads::Pool, a);
        let distances = distances(&blocks);
        let largest = distances.last().copied().unwrap_or(1);
        let mut offsets: Vec<i64> =
            distances.iter().flat_map(|&d| [-(d as i64), d as i64]).collect();
        offsets.push(0);
        offsets.sort_unstable();
        let cells = cells(a, block_size, &distances, largest);
        let mut hepta = Self { block_size, cells, offsets, half_shift: false };
        let Some(straight) = hepta.straight_misfit(a, &blocks) else { return Ok(hepta) };
        if block_size.is_multiple_of(2) {
            hepta.half_shift = true;
            if hepta.misfit(a, 0..cells * block_size).is_none() {
                return Ok(hepta);
            }
            hepta.half_shift = false;
        }
        Err(hepta.refuse(straight))
    }

    /// First column of the block at offset number `at` of a cell, which may lie outside the matrix.
    #[inline]
    pub fn column(&self, cell: usize, at: usize) -> i64 {
        let k = self.block_size as i64;
        let shift = if self.is_shifted(cell) { k / 2 } else { 0 };
        (cell as i64 + self.offsets[at]) * k + shift
    }

    /// Whether the blocks of a cell lie half a block further right.
    #[inline]
    pub(crate) fn is_shifted(&self, cell: usize) -> bool {
        self.half_shift && cell % 2 == 1
    }

    /// Number of the offset, `from` or a later one, and column within the block at which a cell holds column `j`.
    #[inline]
    pub(super) fn place(&self, cell: usize, from: usize, j: usize) -> Option<(usize, usize)> {
        (from..self.offsets.len()).find_map(|at| {
            let c = j as i64 - self.column(cell, at);
            (0..self.block_size as i64).contains(&c).then_some((at, c as usize))
        })
    }

    /// Row and column of the first entry between cells that lies in no block, where blocks are those of the pattern:
    /// each of those is in place, or none of its entries is.
    fn straight_misfit(&self, a: &Csr, blocks: &Pattern) -> Option<(usize, usize)> {
        let in_place = |i: usize, j: u32| {
            j as usize >= self.cells
                || self.offsets.binary_search(&(i64::from(j) - i as i64)).is_ok()
        };
        let all_in_place = |i: usize| blocks.row(i).iter().all(|&j| in_place(i, j));
        let first =
            Threads::Pool.find_map(self.cells, 1024, |i| (!all_in_place(i)).then_some(i))?;
        self.misfit(a, first * self.block_size..(first + 1) * self.block_size)
    }

    /// The same among some rows.
    fn misfit(&self, a: &Csr, rows: Range<usize>) -> Option<(usize, usize)> {
        let scalars = self.cells * self.block_size;
        Threads::Pool.find_map(rows.len(), 1024, |r| {
            let i = rows.start + r;
            let mut between = a.row(i).0.iter().map(|&j| j as usize).take_while(|&j| j < scalars);
            let outside = |&j: &usize| self.place(i / self.block_size, 0, j).is_none();
            between.find(outside).map(|j| (i, j))
        })
    }

    fn refuse(&self, (row, column): (usize, usize)) -> Error {
        let k = self.block_size;
        let offset = (column / k) as i64 - (row / k) as i64;
        let known: Vec<String> = self
            .offsets
            .iter()
            .filter(|&&o| o >= 0)
            .map(|&o| if o == 0 { "0".into() } else { format!("+-{o}") })
            .collect();
        Error::input(format!(
            "the matrix does not fit `bdia`: row {} couples to the block at offset {offset:+}, not \
             one of {}",
            row + 1,
            known.join(", ")
        ))
        .hint("`bdia` holds box grids with one block size, and wells behind the cells")
    }
}

/// The distances, at most three, at which most cells with an even number have blocks.
fn distances(blocks: &Pattern) -> Vec<usize> {
    let even = blocks.rows().div_ceil(2);
    let count = |mut counts: HashMap<usize, usize>, cell: usize| {
        let i = 2 * cell;
        for &j in blocks.row(i).iter().filter(|&&j| j as usize != i) {
            *counts.entry((j as usize).abs_diff(i)).or_default() += 1;
        }
        counts
    };
    let together = |mut all: HashMap<usize, usize>, more: HashMap<usize, usize>| {
        for (distance, count) in more {
            *all.entry(distance).or_default() += count;
        }
        all
    };
    let counts = Threads::Pool.fold(even, 4096, HashMap::new, count, together);
    let least = LEAST_SHARE * even as f64;
    let mut frequent: Vec<(usize, usize)> =
        counts.into_iter().filter(|&(_, count)| count as f64 >= least).collect();
    frequent.sort_unstable_by_key(|&(distance, count)| (std::cmp::Reverse(count), distance));
    let mut distances: Vec<usize> =
        frequent.into_iter().take(DIRECTIONS).map(|(distance, _)| distance).collect();
    distances.sort_unstable();
    distances
}

/// Number of cells: see [`Hepta::detect`].
fn cells(a: &Csr, k: usize, distances: &[usize], largest: usize) -> usize {
    let blocks = a.rows() / k;
    let mut cells = blocks / largest * largest;
    // a plane of cells has couplings within; rows of wells have none but the diagonal
    while distances.len() > 1 && cells > largest {
        let first = (cells - largest) * k;
        let alone = |i: usize| a.row(i).0.iter().all(|&j| (j as usize) < first || j as usize == i);
        if !(first..a.rows()).all(alone) {
            break;
        }
        cells -= largest;
    }
    cells
}
