//! Recognition of the seven-point pattern of a box grid.

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;

use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, block_pattern};
use crate::symbolic::hyperplanes::{are_neighbours, box_of};

/// A distance from the diagonal belongs to the stencil when it holds an entry in at least this
/// share of the block rows; two points in a direction give one half.
const LEAST_SHARE: f64 = 0.25;
/// Share of the off-diagonal blocks that may lie elsewhere (wells).
const MOST_OTHERS: f64 = 0.1;

/// A grid whose neighbours the block pattern couples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Grid {
    /// Points in x, y and z; x is fastest.
    pub size: [usize; 3],
    /// Off-diagonal blocks that are not between neighbours.
    pub others: usize,
}

/// The grid whose three-, five- or seven-point pattern the blocks show.
///
/// The distances from the diagonal that many block rows share must be 1, nx and nx ny, each a
/// multiple of the one before; up to 10 % of the off-diagonal blocks may lie elsewhere, entries
/// across the end of a grid line among them. A plane of one point is not told from a grid of fewer
/// dimensions.
pub(crate) fn detect_grid(a: &Csr) -> Option<Grid> {
    let p = block_pattern(a);
    let rows = p.rows();
    let counts = distances(couplings(&p, 0..rows, |i| i as u64));
    let mut found: Vec<u64> = counts
        .into_iter()
        .filter(|&(_, count)| is_frequent(count, rows))
        .map(|(distance, _)| distance)
        .collect();
    found.sort_unstable();
    let size = box_at(&found, rows)?;
    let [all, others] = others_of(couplings(&p, 0..rows, |i| i as u64), size);
    is_box([all, others]).then_some(Grid { size, others })
}

/// Pairs of coupled rows of a pattern by their numbers, without diagonals.
pub(crate) fn couplings(
    p: &Pattern,
    rows: Range<usize>,
    number: impl Fn(usize) -> u64 + Copy,
) -> impl Iterator<Item = [u64; 2]> {
    rows.flat_map(move |i| p.row(i).iter().map(move |&j| [i, j as usize].map(number)))
        .filter(|[i, j]| i != j)
}

/// How many couplings have each distance behind the diagonal.
pub(crate) fn distances(couplings: impl Iterator<Item = [u64; 2]>) -> HashMap<u64, usize> {
    let mut counts = HashMap::new();
    for [i, j] in couplings.filter(|[i, j]| i < j) {
        *counts.entry(j - i).or_default() += 1;
    }
    counts
}

/// Whether a distance that so many couplings have may belong to the stencil of a grid.
pub(crate) fn is_frequent(count: usize, rows: usize) -> bool {
    count as f64 >= LEAST_SHARE * rows as f64
}

/// The box whose points are these distances apart, ascending.
pub(crate) fn box_at(distances: &[u64], rows: usize) -> Option<[usize; 3]> {
    let distances: Vec<usize> = distances.iter().map(|&distance| distance as usize).collect();
    box_of(&distances, rows)
}

/// How many couplings there are, and how many of them not between neighbours on a box.
pub(crate) fn others_of(couplings: impl Iterator<Item = [u64; 2]>, size: [usize; 3]) -> [usize; 2] {
    let mut found = [0; 2];
    for [i, j] in couplings {
        found[0] += 1;
        found[1] += usize::from(!are_neighbours([i as usize, j as usize], size));
    }
    found
}

/// Whether these couplings, in all and others, are those of a box.
pub(crate) fn is_box([all, others]: [usize; 2]) -> bool {
    others as f64 <= MOST_OTHERS * all as f64
}

/// The box whose points the blocks of `a` are, x fastest: `known`, or the one that the pattern shows. None where the
/// last block is not full.
pub(crate) fn box_of_blocks(a: &Csr, known: Option<[usize; 3]>) -> Option<[usize; 3]> {
    if !a.rows().is_multiple_of(a.block_size()) {
        return None;
    }
    let blocks = a.rows() / a.block_size();
    let fits = |extents: &[usize; 3]| extents.iter().product::<usize>() == blocks;
    known.filter(fits).or_else(|| detect_grid(a).map(|grid| grid.size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::cache::Cache;
    use crate::problem::{Folders, Source};

    fn grid(spec: &str) -> Option<Grid> {
        let source = Source::find(spec, &Folders::default()).unwrap();
        detect_grid(&source.load(ReadAs::Expanded, &Cache::off()).unwrap().matrix)
    }

    #[test]
    fn boxes_are_found_and_triangles_are_not() {
        let at = |size| Some(Grid { size, others: 0 });
        assert_eq!(grid("poisson3d:5x4x3"), at([5, 4, 3]));
        assert_eq!(grid("poisson3d:2"), at([2, 2, 2]));
        assert_eq!(grid("poisson3d:7x6x1"), at([7, 6, 1]));
        assert_eq!(grid("poisson3d:9x1x1"), at([9, 1, 1]));
        assert_eq!(grid("poisson3d:1x6x5"), at([6, 5, 1]));
        assert_eq!(grid("fem-p1:6x5"), None);
    }

    #[test]
    fn a_few_wells_are_counted() {
        let source = Source::find("poisson3d:6x5x4", &Folders::default()).unwrap();
        let a = source.load(ReadAs::Expanded, &Cache::off()).unwrap().matrix;
        let well = |i: usize, j: usize| (i == 3 && j == 77) || (i == 77 && j == 3);
        let (mut row_ptr, mut cols) = (vec![0], Vec::new());
        for i in 0..120 {
            cols.extend(
                (0..120).filter(|&j| a.get(i, j).is_some() || well(i, j)).map(|j| j as u32),
            );
            row_ptr.push(cols.len() as u32);
        }
        let values = vec![1.0; cols.len()];
        let with_well = Csr::new(120, 120, row_ptr, cols, values).unwrap();
        assert_eq!(detect_grid(&with_well), Some(Grid { size: [6, 5, 4], others: 2 }));
    }
}
