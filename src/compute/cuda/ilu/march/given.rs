//! Rows of a factorisation on a pattern that is one stencil on a box (`kernels/ilu/stencil/rows.cuh`): which
//! entries the matrix has.

use crate::base::threads::Threads;
use crate::compute::cuda::sources::Variant;
use crate::compute::cuda::tiles::{Tile, variant};
use crate::matrix::Csr;
use crate::symbolic::Stencil;

/// Entries of the rows of the matrix, in natural order, by their numbers in a row of the factors: offsets in the
/// order of the march, the diagonal, the offsets' opposites.
pub(in crate::compute::cuda::ilu) struct Given(Vec<usize>);

impl Given {
    /// Those of `a`; `None` when a block that leads into the box, or one of its entries, is missing.
    pub(in crate::compute::cuda::ilu) fn of(
        stencil: &Stencil,
        a: &Csr,
        block_size: usize,
    ) -> Option<Self> {
        let entries = entries(stencil);
        let given = Self::at(stencil, &entries, &distances(a, block_size)?);
        let offsets = given.0.iter().map(|&entry| entries[entry]).collect();
        let full = Stencil::uniform(stencil.extents, offsets);
        let blocks = a.nnz() / (block_size * block_size);
        (blocks * block_size * block_size == a.nnz() && full.is_complete(blocks)).then_some(given)
    }

    /// Those of a matrix that has all entries of the stencil `a` which lead into the box; `None` when the factors
    /// lack one of them.
    pub(in crate::compute::cuda::ilu) fn whole(stencil: &Stencil, a: &Stencil) -> Option<Self> {
        let distances: Vec<i64> = a.offsets.iter().map(|o| distance(a, o)).collect();
        let given = Self::at(stencil, &entries(stencil), &distances);
        (a.extents == stencil.extents && given.count() == a.offsets.len()).then_some(given)
    }

    /// Those of a 7-point matrix.
    pub(in crate::compute::cuda::ilu) fn seven_points(stencil: &Stencil) -> Self {
        let [nx, ny, _] = stencil.extents.map(|n| n as i64);
        Self::at(stencil, &entries(stencil), &[-nx * ny, -nx, -1, 0, 1, nx, nx * ny])
    }

    /// Those of the `entries` at the `distances` from the diagonal in natural order.
    fn at(stencil: &Stencil, entries: &[[i32; 3]], distances: &[i64]) -> Self {
        let there = |&entry: &usize| distances.contains(&distance(stencil, &entries[entry]));
        let mut given: Vec<usize> = (0..entries.len()).filter(there).collect();
        given.sort_by_key(|&entry| {
            let [dx, dy, dz] = entries[entry];
            [dz, dy, dx]
        });
        Self(given)
    }

    /// How many there are.
    pub(in crate::compute::cuda::ilu) fn count(&self) -> usize {
        self.0.len()
    }

    /// The variant of a source for a march over `stencil` in the tile.
    pub(in crate::compute::cuda::ilu) fn variant(
        &self,
        block_size: usize,
        stencil: &Stencil,
        tile: &Tile,
    ) -> Variant {
        let mut variant = variant(block_size, &stencil.march(), tile);
        let list: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        variant.lists.push(("GIVEN", list.join(",")));
        variant
    }
}

/// Cells between those of a box that are an offset apart, in natural order.
fn distance(within: &Stencil, offset: &[i32; 3]) -> i64 {
    let ([nx, ny, _], [dx, dy, dz]) = (within.extents.map(|n| n as i64), offset.map(i64::from));
    dx + nx * (dy + ny * dz)
}

/// Offsets of the entries of a row of the factors, by number.
fn entries(stencil: &Stencil) -> Vec<[i32; 3]> {
    let march = stencil.march();
    let shear = march.shear as i32;
    let lower: Vec<[i32; 3]> =
        march.offsets.iter().map(|&[dx, dy, dz]| [dx, dy - shear * dz, dz]).collect();
    let upper = lower.iter().map(|o| o.map(|d| -d));
    lower.iter().copied().chain([[0; 3]]).chain(upper).collect()
}

/// Distances of the blocks of `a` from its diagonal; `None` when a row has a part of a block only.
fn distances(a: &Csr, block_size: usize) -> Option<Vec<i64>> {
    let whole = |block: &[u32]| {
        let (first, last) = (block[0] as usize, block[block.len() - 1] as usize);
        first.is_multiple_of(block_size) && last == first + block_size - 1
    };
    let shift = block_size as u32;
    // whether row i has the entries of the block row before
    let again = |i: usize| {
        let (row, before) = (a.row(i).0, a.row(i - block_size).0);
        let same = |same, (j, b): (&u32, &u32)| same & (*j == b.wrapping_add(shift));
        row.len() == before.len() && row.iter().zip(before).fold(true, same)
    };
    let seen = |seen: Option<Vec<i64>>, i: usize| {
        let mut seen = seen?;
        if i >= block_size && again(i) {
            return Some(seen);
        }
        for (at, block) in a.row(i).0.chunks(block_size).enumerate() {
            if !whole(block) {
                return None;
            }
            let d = (i64::from(block[0]) - (i - i % block_size) as i64) / block_size as i64;
            // rows mostly have the entries of the row before
            if seen.get(at) != Some(&d) && !seen.contains(&d) {
                seen.push(d);
            }
        }
        Some(seen)
    };
    let both = |a: Option<Vec<i64>>, b: Option<Vec<i64>>| Some([a?, b?].concat());
    let mut all = Threads::Pool.fold(a.rows(), 4096, || Some(Vec::new()), seen, both)?;
    all.sort_unstable();
    all.dedup();
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem;
    use crate::symbolic::iluk;

    fn system(matrix: &str, b: usize, k: usize) -> (Csr, Stencil) {
        let a = problem::load(matrix, ReadAs::Expanded).expect("a generator").matrix;
        let p =
            iluk(&block_pattern(&a.in_blocks(b)), k, LevelRule::Min, usize::MAX).expect("small");
        let stencil = Stencil::of_lower(p.lower.view()).expect("a stencil");
        (Csr::clone(&a), stencil)
    }

    #[test]
    fn a_seven_point_matrix_has_seven_of_the_entries_of_its_filled_factors() {
        for (matrix, b) in [("poisson3d:9x8x7", 1), ("blockpoisson3d:9x8x7,b=3", 3)] {
            for (k, entries) in [(0, vec![0, 1, 2, 3, 6, 5, 4]), (1, vec![0, 2, 5, 6, 12, 9, 7])] {
                let (a, stencil) = system(matrix, b, k);
                assert_eq!(Given::seven_points(&stencil).0, entries, "{matrix}, k = {k}");
                assert_eq!(
                    Given::of(&stencil, &a, b).expect("complete").0,
                    entries,
                    "{matrix}, k = {k}"
                );
            }
        }
    }

    #[test]
    fn a_matrix_without_one_of_its_entries_has_no_such_rows() {
        let (a, stencil) = system("poisson3d:9x8x7", 1, 1);
        let mut rest = a;
        rest.values_mut()[100] = 0.0;
        assert!(Given::of(&stencil, &rest.without_zeros(), 1).is_none());
    }

    #[test]
    fn blocks_must_be_whole() {
        let (a, stencil) = system("blockpoisson3d:9x8x7,b=3", 3, 0);
        for entry in [0, 1, a.nnz() - 1] {
            let mut rest = a.clone();
            rest.values_mut()[entry] = 0.0;
            assert!(Given::of(&stencil, &rest.without_zeros(), 3).is_none(), "{entry}");
        }
    }
}
