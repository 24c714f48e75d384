//! Whether a matrix is symmetric.

use std::fmt;

use rayon::prelude::*;

use super::Csr;

/// Difference of mirrored entries, relative to the larger, that is taken for rounding.
const ROUNDING: f64 = 1e-10;

/// An entry that is not that of its mirror place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asymmetry {
    /// Row, from 0.
    pub row: usize,
    /// Column, from 0.
    pub column: usize,
    /// The entry.
    pub value: f64,
    /// The one across the diagonal.
    pub mirrored: f64,
}

impl fmt::Display for Asymmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (i, j) = (self.row + 1, self.column + 1);
        write!(
            f,
            "the matrix is not symmetric: ({i}, {j}) is {}, ({j}, {i}) is {}",
            self.value, self.mirrored
        )
    }
}

impl Csr {
    /// The first entry that differs from the one across the diagonal by more than rounding; entries
    /// that are not stored count as zero.
    pub fn asymmetry(&self) -> Option<Asymmetry> {
        (0..self.rows()).into_par_iter().with_min_len(1024).find_map_first(|row| {
            let (columns, values) = self.row(row);
            columns.iter().zip(values).find_map(|(&column, &value)| {
                let column = column as usize;
                let mirrored = self.get(column, row).unwrap_or(0.0);
                let differs = (value - mirrored).abs() > ROUNDING * value.abs().max(mirrored.abs());
                (differs || value.is_nan()).then_some(Asymmetry { row, column, value, mirrored })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::ReadAs;
    use crate::problem::load;

    #[test]
    fn the_first_entry_without_its_mirror_is_found() {
        assert_eq!(load("poisson3d:9x8x7", ReadAs::Expanded).unwrap().matrix.asymmetry(), None);
        let a = load("convdiff3d:4x3x2,px=0.25", ReadAs::Expanded).unwrap().matrix;
        let found = a.asymmetry().unwrap().to_string();
        assert_eq!(found, "the matrix is not symmetric: (1, 2) is -0.75, (2, 1) is -1.25");
        // stored on one side alone
        let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 0.5, 1.0]).unwrap();
        assert_eq!(a.asymmetry().map(|e| (e.row, e.column, e.mirrored)), Some((0, 1, 0.0)));
    }
}
