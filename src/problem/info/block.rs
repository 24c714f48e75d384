//! Detection of the natural block size.

use serde::Serialize;

use crate::base::threads::Threads;
use crate::matrix::Csr;

/// Largest block size that is looked for.
pub const MAX_BLOCK: usize = 32;

/// Fill below which storing blocks costs more than storing scalars: an entry of CSR takes 12
/// bytes, one of a full block 8 and the share of one index, so 2/3 is the least that can pay.
const LEAST_FILL: f64 = 0.68;
/// A block size is natural when moving the block boundaries lowers the fill by at least this
/// factor; a band of scalars fills blocks equally wherever they begin.
const LEAST_DROP: f64 = 1.15;

/// Unknowns that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BlockSize {
    /// Unknowns per block; 1 when the matrix shows no blocks.
    pub size: usize,
    /// Blocks with at least one stored entry.
    pub blocks: usize,
    /// Share of the scalars of these blocks that is stored.
    pub fill: f64,
}

/// The largest b up to [`MAX_BLOCK`] that divides n and for which
///
/// 1. the b x b blocks that hold anything are at least 68 % full, and
/// 2. blocks shifted along the diagonal, by any number of unknowns, are less full by a factor of
///    at least 1.15.
///
/// Stored zeros count as entries: simulators store full blocks. The second condition tells blocks
/// from bands: a pentadiagonal matrix fills 2 x 2 blocks to 5/6, but wherever they begin. A system
/// of two unknowns that hardly couple (Olmstead's model: 2/3) stays scalar.
pub fn natural_block(a: &Csr) -> BlockSize {
    let n = a.rows();
    let candidates: Vec<usize> = (2..=MAX_BLOCK).filter(|b| n.is_multiple_of(*b)).collect();
    let natural = |b: usize| -> Option<BlockSize> {
        let blocks = count_blocks(a, b, 0);
        let fill = a.nnz() as f64 / (blocks * b * b) as f64;
        if blocks == 0 || fill < LEAST_FILL {
            return None;
        }
        let fewest = (1..b).map(|shift| count_blocks(a, b, shift)).min()?;
        let locked = fewest as f64 >= LEAST_DROP * blocks as f64;
        locked.then_some(BlockSize { size: b, blocks, fill })
    };
    let found: Vec<_> = Threads::Pool.each(candidates, natural);
    found.into_iter().flatten().last().unwrap_or(BlockSize { size: 1, blocks: a.nnz(), fill: 1.0 })
}

/// Blocks with an entry when block i holds the unknowns from `b i - shift` on.
fn count_blocks(a: &Csr, b: usize, shift: usize) -> usize {
    let block = |i: usize| (i + shift) / b;
    let mut last_row = vec![u32::MAX; block(a.cols().saturating_sub(1)) + 1];
    let mut count = 0;
    for i in 0..a.rows() {
        let row = block(i) as u32;
        for &j in a.row(i).0 {
            let seen = &mut last_row[block(j as usize)];
            count += usize::from(*seen != row);
            *seen = row;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n x n with entry (i, j) where `stored(i, j)`.
    fn pattern(n: usize, stored: impl Fn(usize, usize) -> bool) -> Csr {
        let (mut row_ptr, mut cols) = (vec![0], Vec::new());
        for i in 0..n {
            cols.extend((0..n).filter(|&j| stored(i, j)).map(|j| j as u32));
            row_ptr.push(cols.len() as u32);
        }
        let values = vec![1.0; cols.len()];
        Csr::new(n, n, row_ptr, cols, values).unwrap()
    }

    #[test]
    fn bands_are_no_blocks() {
        for width in 0..6 {
            let band = pattern(60, |i, j| i.abs_diff(j) <= width);
            assert_eq!(natural_block(&band).size, 1, "{width}");
        }
    }

    #[test]
    fn full_blocks_are_found_whatever_couples_them() {
        for b in 2..=10 {
            let chain = pattern(12 * b, |i, j| (i / b).abs_diff(j / b) <= 1);
            let found = natural_block(&chain);
            assert_eq!((found.size, found.blocks, found.fill), (b, 34, 1.0), "{b}");
            let far = pattern(12 * b, |i, j| (i / b).abs_diff(j / b) % 5 == 0);
            assert_eq!(natural_block(&far).size, b, "{b}");
        }
    }

    #[test]
    fn blocks_with_a_few_missing_entries_are_found() {
        let a = pattern(60, |i, j| (i / 3).abs_diff(j / 3) <= 1 && (7 * i + 3 * j) % 10 != 0);
        let found = natural_block(&a);
        assert_eq!((found.size, found.blocks), (3, 58));
        assert!((found.fill - 0.9).abs() < 0.02);
    }

    #[test]
    fn shifts_count_the_cut_blocks_at_both_ends() {
        let identity = pattern(6, |i, j| i == j);
        assert_eq!((0..3).map(|s| count_blocks(&identity, 3, s)).collect::<Vec<_>>(), [2, 3, 3]);
    }
}
