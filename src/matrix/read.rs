//! A matrix as a file gave it.

use super::csr::Csr;
use crate::base::error::Error;

/// A matrix as it was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The matrix; rectangular if the file is.
    pub matrix: Csr,
    /// Symmetry the file declares.
    pub symmetry: Symmetry,
    /// What a reader of the results has to know (duplicates summed, zeros left out).
    pub remarks: Vec<String>,
}

/// Which entries the file leaves out because others imply them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// None.
    General,
    /// Those above the diagonal: `a(j,i) = a(i,j)`. Also `hermitian`, whose values are real here.
    Symmetric,
    /// Those on and above the diagonal: `a(j,i) = -a(i,j)`.
    SkewSymmetric,
}

/// The error of several columns where one is asked for.
pub(crate) fn one_column(file: &str, [rows, columns]: [usize; 2]) -> Error {
    let message = format!("{rows} x {columns} numbers: a right-hand side has one column");
    let error = Error::input(message).in_file(file);
    // as many columns as rows are a matrix
    if columns < 2 || columns >= rows {
        return error;
    }
    error.hint(format!("`block-cg` and `block-gmres` solve for several: `--rhs {file}`"))
}
