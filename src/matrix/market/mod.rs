//! Matrix Market files (`.mtx`, also compressed): a strict reader and a writer.
//!
//! The format is that of Boisvert, Pozo and Remington, *The Matrix Market Exchange Formats*,
//! NISTIR 5935 (1996). Read are `coordinate` matrices (real, integer, pattern; general, symmetric,
//! skew-symmetric, hermitian with real values), `array` vectors and matrices, of which the entries
//! that are not zero are kept; comments and blank lines may stand anywhere after the first line. What the format does not allow is refused with file,
//! line and column.
//!
//! A file is read as a stream of blocks cut at line ends, and the blocks are parsed in parallel;
//! the result does not depend on the number of threads. Nothing is allocated for declared sizes
//! that the file does not back with entries.

mod blocks;
mod dealt;
mod dense;
mod entries;
mod field;
mod header;
mod line;
mod number;
mod values;
mod vector;
mod write;

use std::io::Read;
use std::path::Path;

use crate::base::choices::ReadAs;
use crate::base::error::Result;
use crate::base::input::Opened;

pub use crate::matrix::read::Matrix;
pub use dealt::{Dealer, Dealt, DealtRows};
pub use field::{Field, Symmetry};
pub use header::Layout;
pub use vector::Vector;
pub(crate) use write::{atomically, write_columns};
pub use write::{write_matrix, write_vector};

use blocks::Text;
use header::Header;

/// Reads a matrix; how the file is compressed is recognised by its content.
///
/// With [`ReadAs::Expanded`] the entries above the diagonal of a symmetric file are added; with
/// [`ReadAs::AsStored`] the stored triangle is the matrix.
///
/// # Errors
/// Names line and column of the first thing the format does not allow.
pub fn read_matrix(path: &Path, read_as: ReadAs) -> Result<Matrix> {
    read_open_matrix(path, Opened::open(path)?, read_as)
}

/// The same for a file that is open.
pub(crate) fn read_open_matrix(path: &Path, file: Opened, read_as: ReadAs) -> Result<Matrix> {
    entries::read_file(path, file, read_as)
}

/// Reads a coordinate file from `reader`; `name` stands for the file in messages.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_from(
    name: &str,
    reader: impl Read + Send + 'static,
    read_as: ReadAs,
) -> Result<Matrix> {
    entries::read(Text::new(name, Box::new(reader))?, read_as)
}

/// What the first lines of a file declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries in the file; one triangle where it is symmetric.
    pub entries: usize,
    /// Entries left out.
    pub symmetry: Symmetry,
    /// Coordinate or array.
    pub layout: Layout,
}

/// Reads the first lines only.
///
/// # Errors
/// As [`read_matrix`], for those lines.
pub(crate) fn read_size(path: &Path) -> Result<Size> {
    let Header { rows, cols, entries, symmetry, layout, .. } =
        header::read(&mut Text::open(path)?)?;
    Ok(Size { rows, cols, entries, symmetry, layout })
}

/// Reads a vector: an `array` file, or a `coordinate` file whose missing entries are zero.
///
/// `column` (from 0) chooses one of several columns; without it the first is taken and a remark
/// says so.
///
/// # Errors
/// As [`read_matrix`]; also when there is no such column.
pub fn read_vector(path: &Path, column: Option<usize>) -> Result<Vector> {
    vector::read(Text::open(path)?, column)
}

/// The same of a file that is open, where `take` gets the values of the first column in pieces; those that are
/// returned are none. They may be too many for the memory, unless all are to be kept as a `whole`.
///
/// # Errors
/// As [`read_vector`].
pub(crate) fn read_open_vector(
    file: Opened,
    whole: bool,
    take: &mut dyn FnMut(&[f64]),
) -> Result<Vector> {
    vector::read_to(Text::of(file)?, None, whole, take)
}

/// Reads a vector from `reader`; `name` stands for the file in messages.
///
/// # Errors
/// As [`read_vector`].
pub fn read_vector_from(
    name: &str,
    reader: impl Read + Send + 'static,
    column: Option<usize>,
) -> Result<Vector> {
    vector::read(Text::new(name, Box::new(reader))?, column)
}
