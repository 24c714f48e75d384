//! Size and parallelism of the ILU(k) factors.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::base::choices::LevelRule;
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern;
use crate::symbolic::{iluk, schedule};

/// Most blocks of L and U that are worked out: a few seconds and about 1 GB.
pub(crate) const FILL_LIMIT: usize = 200_000_000;

/// The factors of ILU(k) at one block size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fill {
    /// Unknowns per block.
    pub block_size: usize,
    /// Fill level.
    pub k: usize,
    /// Its factors.
    pub outcome: FillOutcome,
}

/// Factor sizes, or why there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub enum FillOutcome {
    /// The pattern was worked out.
    #[serde(rename_all = "kebab-case")]
    Done {
        /// Blocks of L, D and U together.
        factor_blocks: usize,
        /// Factor blocks over matrix blocks.
        fill_ratio: f64,
        /// Levels of the L solve.
        levels_lower: usize,
        /// Levels of the U solve.
        levels_upper: usize,
    },
    /// It was not: L and U hold more blocks than this limit.
    #[serde(rename_all = "kebab-case")]
    Skipped {
        /// The limit.
        above_blocks: usize,
    },
}

/// Factor sizes for every block size and fill level, by the textbook rule.
///
/// A level whose factors hold more than `limit` blocks is skipped, and so are the levels above it.
pub(crate) fn factor_sizes(
    a: &Csr,
    block_sizes: &[usize],
    levels: RangeInclusive<usize>,
    limit: usize,
) -> Vec<Fill> {
    let mut sizes = Vec::new();
    for &block_size in block_sizes {
        let blocks = a.in_blocks(block_size);
        let pattern = block_pattern(&blocks);
        let mut skip = false;
        for k in levels.clone() {
            let filled = if skip { None } else { iluk(&pattern, k, LevelRule::Min, limit).ok() };
            skip = filled.is_none();
            let outcome = match filled {
                None => FillOutcome::Skipped { above_blocks: limit },
                Some(f) => FillOutcome::Done {
                    factor_blocks: f.blocks(),
                    fill_ratio: f.blocks() as f64 / pattern.entries() as f64,
                    levels_lower: schedule::levels_lower(&f),
                    levels_upper: schedule::levels_upper(&f),
                },
            };
            sizes.push(Fill { block_size, k, outcome });
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five-point pattern on 3 x 3 points.
    fn five_point() -> Csr {
        let (mut row_ptr, mut cols) = (vec![0], Vec::new());
        for i in 0..9_usize {
            let near = |j: usize| (i % 3).abs_diff(j % 3) + (i / 3).abs_diff(j / 3) <= 1;
            cols.extend((0..9).filter(|&j| near(j)).map(|j| j as u32));
            row_ptr.push(cols.len() as u32);
        }
        let values = vec![1.0; cols.len()];
        Csr::new(9, 9, row_ptr, cols, values).unwrap()
    }

    #[test]
    fn sizes_of_a_small_grid_by_hand() {
        let a = five_point();
        assert_eq!(a.nnz(), 33);
        let sizes = factor_sizes(&a, &[1], 0..=1, 1000);
        // wavefronts of a 3 x 3 grid: 5. ILU(1) adds one diagonal of each of the four cells in
        // both factors, which chains the rows of the grid: 7 levels
        let done = |factor_blocks, fill_ratio, levels| FillOutcome::Done {
            factor_blocks,
            fill_ratio,
            levels_lower: levels,
            levels_upper: levels,
        };
        let expected = [
            Fill { block_size: 1, k: 0, outcome: done(33, 1.0, 5) },
            Fill { block_size: 1, k: 1, outcome: done(41, 41.0 / 33.0, 7) },
        ];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn beyond_the_limit_all_higher_levels_are_skipped() {
        let sizes = factor_sizes(&five_point(), &[1], 0..=2, 25);
        let skipped = FillOutcome::Skipped { above_blocks: 25 };
        assert!(matches!(sizes[0].outcome, FillOutcome::Done { factor_blocks: 33, .. }));
        assert_eq!((sizes[1].outcome, sizes[2].outcome), (skipped, skipped));
    }
}
