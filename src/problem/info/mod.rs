//! What a matrix looks like: sizes, symmetry, diagonal, blocks, grid and the fill of its ILU(k)
//! factors.

mod block;
mod division;
mod fill;
mod scaling;

use serde::Serialize;

use crate::base::threads::Threads;
use crate::matrix::{Asymmetry, Csr};

use crate::symbolic::grid::{Grid, detect_grid};
pub use block::{BlockSize, MAX_BLOCK, natural_block};
pub use division::{Division, division};
pub(crate) use fill::{FILL_LIMIT, factor_sizes};
pub use fill::{Fill, FillOutcome};
pub use scaling::{Scaling, Weakest, Zeros, scaling};

/// Everything that is found out about a square matrix without factoring it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Info {
    /// Rows and columns.
    pub n: usize,
    /// Stored entries, explicit zeros included.
    pub nnz: usize,
    /// Stored entries that are zero.
    pub explicit_zeros: usize,
    /// Entries of a row.
    pub row_length: RowLength,
    /// Largest distance of an entry below the diagonal from it.
    pub lower_bandwidth: usize,
    /// Largest distance of an entry above the diagonal from it.
    pub upper_bandwidth: usize,
    /// How symmetric it is.
    pub symmetry: SymmetryInfo,
    /// Its diagonal.
    pub diagonal: Diagonal,
    /// Magnitudes of its values.
    pub scaling: Scaling,
    /// Its natural block size.
    pub block: BlockSize,
    /// The grid its block pattern shows.
    pub grid: Option<Grid>,
}

/// Entries of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RowLength {
    /// Fewest.
    pub min: usize,
    /// On average.
    pub mean: f64,
    /// Most.
    pub max: usize,
}

/// How symmetric a matrix is. The shares are those of the `SuiteSparse` collection except that
/// stored zeros count as entries; they are 1 where there is nothing off the diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SymmetryInfo {
    /// Share of the off-diagonal entries whose mirror image is stored.
    pub pattern: f64,
    /// Share of the off-diagonal entries whose mirror image has the same value.
    pub numeric: f64,
    /// Largest `|a(i,j) - a(j,i)|` over the largest `|a(i,j)|`.
    pub difference: f64,
    /// Where the asymmetry is largest, relative as in [`Asymmetry::relative`]; none where there is none.
    pub largest: Option<Asymmetry>,
}

/// The diagonal of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Diagonal {
    /// Rows without a stored diagonal entry.
    pub missing: usize,
    /// Rows with a stored diagonal entry of zero.
    pub zero: usize,
    /// Rows with `|a(i,i)|` at least the sum of the other magnitudes.
    pub dominant_rows: usize,
    /// Rows with `|a(i,i)|` above the sum of the other magnitudes.
    pub strictly_dominant_rows: usize,
}

/// Inspects a square matrix.
pub fn inspect(a: &Csr) -> Info {
    let lengths = || a.row_ptr().windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    let sum = |count, of: &(dyn Fn(usize) -> usize + Sync)| {
        Threads::Pool.fold(count, 1, || 0, |sum, i| sum + of(i), |a, b| a + b)
    };
    let most = |of: &(dyn Fn(usize) -> usize + Sync)| {
        Threads::Pool.fold(a.rows(), 1, || 0, |most, i| most.max(of(i)), usize::max)
    };
    let first_below = |i: usize| a.row(i).0.first().map_or(0, |&j| i.saturating_sub(j as usize));
    let last_above = |i: usize| a.row(i).0.last().map_or(0, |&j| (j as usize).saturating_sub(i));
    let block = natural_block(a);
    Info {
        n: a.rows(),
        nnz: a.nnz(),
        explicit_zeros: sum(a.nnz(), &|at| usize::from(a.values()[at] == 0.0)),
        row_length: RowLength {
            min: lengths().min().unwrap_or(0),
            mean: a.nnz() as f64 / a.rows().max(1) as f64,
            max: lengths().max().unwrap_or(0),
        },
        lower_bandwidth: most(&first_below),
        upper_bandwidth: most(&last_above),
        symmetry: symmetry(a),
        diagonal: diagonal(a),
        scaling: scaling(a),
        grid: detect_grid(&a.in_blocks(block.size)),
        block,
    }
}

fn symmetry(a: &Csr) -> SymmetryInfo {
    // off-diagonal entries, mirrored ones, equal ones, largest difference, largest magnitude
    type Found = (usize, usize, usize, f64, f64);
    let row = |mut found: Found, i: usize| {
        let (cols, values) = a.row(i);
        for (&j, &v) in cols.iter().zip(values) {
            found.4 = found.4.max(v.abs());
            if j as usize == i {
                continue;
            }
            let mirror = a.get(j as usize, i);
            found.0 += 1;
            found.1 += usize::from(mirror.is_some());
            found.2 += usize::from(mirror == Some(v));
            found.3 = found.3.max((v - mirror.unwrap_or(0.0)).abs());
        }
        found
    };
    let both = |a: Found, b: Found| (a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3.max(b.3), a.4.max(b.4));
    let (all, mirrored, equal, difference, largest) =
        Threads::Pool.fold(a.rows(), 1, Found::default, row, both);
    let share = |count: usize| if all == 0 { 1.0 } else { count as f64 / all as f64 };
    SymmetryInfo {
        pattern: share(mirrored),
        numeric: share(equal),
        difference: if largest == 0.0 { 0.0 } else { difference / largest },
        largest: a.asymmetry(),
    }
}

fn diagonal(a: &Csr) -> Diagonal {
    let mut found = Diagonal { missing: 0, zero: 0, dominant_rows: 0, strictly_dominant_rows: 0 };
    for i in 0..a.rows() {
        let entry = a.get(i, i);
        let own = entry.unwrap_or(0.0).abs();
        let others = a.row(i).1.iter().map(|v| v.abs()).sum::<f64>() - own;
        found.missing += usize::from(entry.is_none());
        found.zero += usize::from(entry == Some(0.0));
        found.dominant_rows += usize::from(own >= others);
        found.strictly_dominant_rows += usize::from(own > others);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_small_matrix_by_hand() {
        // [ 4 -1  0*]   0* is a stored zero
        // [-1  2  1 ]
        // [ .  2  . ]
        let a = Csr::new(
            3,
            3,
            vec![0, 3, 6, 7],
            vec![0, 1, 2, 0, 1, 2, 1],
            vec![4.0, -1.0, 0.0, -1.0, 2.0, 1.0, 2.0],
        )
        .unwrap();
        let info = inspect(&a);
        assert_eq!((info.n, info.nnz, info.explicit_zeros), (3, 7, 1));
        assert_eq!(info.row_length, RowLength { min: 1, mean: 7.0 / 3.0, max: 3 });
        assert_eq!((info.lower_bandwidth, info.upper_bandwidth), (1, 2));
        // of (0,1), (0,2), (1,0), (1,2), (2,1) all but (0,2) have a mirror; two are equal
        let largest =
            Some(Asymmetry { row: 1, column: 2, value: 1.0, mirrored: 2.0, relative: 0.5 });
        let expected =
            SymmetryInfo { pattern: 4.0 / 5.0, numeric: 2.0 / 5.0, difference: 0.25, largest };
        assert_eq!(info.symmetry, expected);
        let expected =
            Diagonal { missing: 1, zero: 0, dominant_rows: 2, strictly_dominant_rows: 1 };
        assert_eq!(info.diagonal, expected);
    }

    #[test]
    fn a_diagonal_matrix_is_symmetric() {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 0.0]).unwrap();
        let info = inspect(&a);
        let symmetric = SymmetryInfo { pattern: 1.0, numeric: 1.0, difference: 0.0, largest: None };
        assert_eq!((info.symmetry, info.diagonal.zero, info.block.size), (symmetric, 1, 1));
    }
}
