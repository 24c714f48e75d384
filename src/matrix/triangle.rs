//! Parts of a matrix.

use super::Csr;

/// The entries on and below the diagonal: what a symmetric file stores.
pub fn lower_triangle(a: &Csr) -> Csr {
    let mut row_ptr = Vec::with_capacity(a.rows() + 1);
    row_ptr.push(0);
    let (mut col_ind, mut values) = (Vec::new(), Vec::new());
    for i in 0..a.rows() {
        let (cols, vals) = a.row(i);
        let end = cols.partition_point(|&j| j as usize <= i);
        col_ind.extend_from_slice(&cols[..end]);
        values.extend_from_slice(&vals[..end]);
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new(a.rows(), a.cols(), row_ptr, col_ind, values).expect("rows of a matrix, cut short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_diagonal_and_below() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1., 2., 3., 4.]).unwrap();
        let lower = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![1., 3., 4.]).unwrap();
        assert_eq!(lower_triangle(&a), lower);
    }
}
