//! Matrix Market files (`.mtx`, `.mtx.gz`): a strict reader and a writer.
//!
//! The format is that of Boisvert, Pozo and Remington, *The Matrix Market Exchange Formats*,
//! NISTIR 5935 (1996). Read are `coordinate` matrices (real, integer, pattern; general, symmetric,
//! skew-symmetric, hermitian with real values) and `array` vectors; comments and blank lines may
//! stand anywhere after the first line. What the format does not allow is refused with file,
//! line and column.
//!
//! A file is read as a stream of blocks cut at line ends, and the blocks are parsed in parallel;
//! the result does not depend on the number of threads. Nothing is allocated for declared sizes
//! that the file does not back with entries.

mod assemble;
mod blocks;
mod dealt;
mod entries;
mod field;
mod header;
mod line;
mod number;
mod vector;
mod write;

use std::io::Read;
use std::path::Path;

use crate::base::choices::ReadAs;
use crate::base::error::Result;
use crate::matrix::Csr;

pub use dealt::{Dealer, Dealt, DealtRows};
pub use field::{Field, Symmetry};
pub use header::Layout;
pub use vector::Vector;
pub(crate) use write::atomically;
pub use write::{write_matrix, write_vector};

use blocks::Text;
use header::Header;

/// A coordinate file as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The matrix; rectangular if the file is.
    pub matrix: Csr,
    /// Symmetry the header declares.
    pub symmetry: Symmetry,
    /// What a reader of the results has to know (duplicates summed).
    pub remarks: Vec<String>,
}

/// Whether a file begins as one of Matrix Market, or of gzip, does.
pub(crate) fn looks_like(path: &Path) -> bool {
    const START: &[u8] = b"%%MatrixMarket";
    let mut start = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(32).read_to_end(&mut start));
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let banner = text.len() >= START.len() && text[..START.len()].eq_ignore_ascii_case(START);
    read.is_ok() && (banner || start.starts_with(&[0x1f, 0x8b]))
}

/// Reads a coordinate file; gzip is recognised by its content.
///
/// With [`ReadAs::Expanded`] the entries above the diagonal of a symmetric file are added; with
/// [`ReadAs::AsStored`] the stored triangle is the matrix.
///
/// # Errors
/// Names line and column of the first thing the format does not allow.
pub fn read_matrix(path: &Path, read_as: ReadAs) -> Result<Matrix> {
    entries::read_file(path, read_as)
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

/// The same, where `take` gets the values of the first column in pieces; those that are returned are none.
///
/// # Errors
/// As [`read_vector`].
pub(crate) fn read_vector_to(path: &Path, take: &mut dyn FnMut(&[f64])) -> Result<Vector> {
    vector::read_to(Text::open(path)?, None, false, take)
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
