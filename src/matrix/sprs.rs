//! Exchange with the `sprs` crate, for programs that have their matrices there.

use ::sprs::{CsMat, TriMat};

use super::Csr;
use crate::base::error::{Error, Result};

impl From<&Csr> for CsMat<f64> {
    /// The same entries, stored zeros included, by rows.
    fn from(a: &Csr) -> Self {
        let wide = |indices: &[u32]| indices.iter().map(|&i| i as usize).collect();
        Self::new((a.rows(), a.cols()), wide(a.row_ptr()), wide(a.col_ind()), a.values().to_vec())
    }
}

impl TryFrom<&CsMat<f64>> for Csr {
    type Error = Error;

    /// The same entries, stored zeros included; a matrix by columns is turned around.
    ///
    /// # Errors
    /// When a dimension or the number of entries passes 2^32 - 1.
    fn try_from(a: &CsMat<f64>) -> Result<Self> {
        let by_rows = a.to_csr();
        let narrow = |indices: &[usize]| -> Result<Vec<u32>> {
            let narrowed = indices.iter().map(|&i| u32::try_from(i)).collect::<Result<_, _>>();
            narrowed.map_err(|_| Error::input("the matrix has more than 2^32 - 1 rows or entries"))
        };
        let row_ptr = by_rows.indptr();
        Self::new(
            by_rows.rows(),
            by_rows.cols(),
            narrow(row_ptr.as_slice().unwrap_or(&row_ptr.to_owned().into_raw_storage()))?,
            narrow(by_rows.indices())?,
            by_rows.data().to_vec(),
        )
    }
}

impl TryFrom<&TriMat<f64>> for Csr {
    type Error = Error;

    /// Entries at the same place are added.
    ///
    /// # Errors
    /// As for a [`CsMat`].
    fn try_from(a: &TriMat<f64>) -> Result<Self> {
        Self::try_from(&a.to_csr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_the_same_also_by_columns() {
        let a = Csr::new(3, 4, vec![0, 2, 2, 4], vec![1, 3, 0, 2], vec![1.5, 0.0, -2.0, 4.0]);
        let a = a.expect("valid");
        let there = CsMat::from(&a);
        assert_eq!((there.shape(), there.get(2, 0), there.nnz()), ((3, 4), Some(&-2.0), 4));
        assert_eq!(Csr::try_from(&there).expect("fits"), a);
        assert_eq!(Csr::try_from(&there.to_csc()).expect("fits"), a);
    }

    #[test]
    fn triplets_at_one_place_are_added() {
        let mut t = TriMat::new((2, 2));
        for (i, j, v) in [(0, 0, 1.0), (1, 0, 2.0), (0, 0, 0.5)] {
            t.add_triplet(i, j, v);
        }
        let a = Csr::try_from(&t).expect("fits");
        assert_eq!((a.get(0, 0), a.get(1, 0), a.nnz()), (Some(1.5), Some(2.0), 2));
    }
}
