//! Files of matrices and vectors, of whatever format: their content tells which.

use std::io::Read;
use std::path::Path;

use super::csr::Csr;
use super::market::{self, Dealer, Layout, Vector};
use super::read::{Matrix, Symmetry};
use super::{npy, npz, petsc};
use crate::base::choices::ReadAs;
use crate::base::error::{Error, Result};
use crate::base::input::{Compression, Opened, is_stdin};

/// Endings of files of matrices, longer ones behind their ends.
pub const ENDINGS: [&str; 7] =
    [".mtx", ".mtx.gz", ".mtx.xz", ".mtx.zst", ".mtx.bz2", ".npz", ".petsc"];
/// Endings of files of matrices that are written.
pub const WRITTEN: [&str; 4] = [".mtx", ".mtx.gz", ".npz", ".petsc"];
/// Endings of files of vectors.
pub(crate) const OF_VECTORS: [&str; 7] =
    [".mtx", ".mtx.gz", ".mtx.xz", ".mtx.zst", ".mtx.bz2", ".npy", ".petsc"];

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Matrix Market, or none that is known.
    Market,
    Npy,
    Npz,
    Petsc,
    /// One of [`FOREIGN`].
    Foreign(usize),
}

/// A format that is not read.
struct Foreign {
    /// First bytes of its files.
    magic: &'static [u8],
    what: &'static str,
    hint: &'static str,
}

const FOREIGN: [Foreign; 3] = [
    Foreign {
        magic: b"MATLAB 5.0 MAT-file",
        what: "is a file of MATLAB (version 5 to 7), which is not read here",
        hint: "in Python: `scipy.sparse.save_npz(\"a.npz\", scipy.io.loadmat(\"a.mat\")[\"A\"])`, where A is the matrix",
    },
    Foreign {
        magic: b"MATLAB 7.3 MAT-file",
        what: "is a file of MATLAB 7.3 (HDF5), which is not read here",
        hint: "in MATLAB: `save -v7 a.mat A`; then in Python: `scipy.sparse.save_npz(\"a.npz\", scipy.io.loadmat(\"a.mat\")[\"A\"])`",
    },
    Foreign {
        magic: b"\x89HDF\r\n\x1a\n",
        what: "is a file of HDF5, which is not read here",
        hint: "write the matrix with `scipy.sparse.save_npz`, or with MatView of PETSc",
    },
];

impl Format {
    fn of(start: &[u8]) -> Self {
        if let Some(at) = FOREIGN.iter().position(|foreign| start.starts_with(foreign.magic)) {
            Self::Foreign(at)
        } else if start.starts_with(npy::MAGIC) {
            Self::Npy
        } else if npz::begins(start) {
            Self::Npz
        } else if petsc::begins(start) {
            Self::Petsc
        } else {
            Self::Market
        }
    }
}

impl Foreign {
    fn refused(&self, name: &str) -> Error {
        Error::input(self.what).in_file(name).hint(self.hint)
    }
}

/// Whether a file is one of Matrix Market, or of no format that is known.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn is_market(path: &Path) -> Result<bool> {
    Ok(Format::of(Opened::open(path)?.start()) == Format::Market)
}

/// Reads a matrix.
///
/// With [`ReadAs::Expanded`] the entries above the diagonal of a symmetric file of Matrix Market are added; with
/// [`ReadAs::AsStored`] the stored triangle is the matrix. Other formats store all entries.
///
/// # Errors
/// When the file is of none of the formats, or at the first thing that its format does not allow.
pub fn read_matrix(path: &Path, read_as: ReadAs) -> Result<Matrix> {
    let file = Opened::open(path)?;
    match Format::of(file.start()) {
        Format::Market => market::read_open_matrix(path, file, read_as),
        _ => read_other(file),
    }
}

/// Reads a matrix from `reader`; `name` stands for the file in messages.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_from(
    name: &str,
    reader: impl Read + Send + 'static,
    read_as: ReadAs,
) -> Result<Matrix> {
    let file = Opened::of(name, Box::new(reader))?;
    match Format::of(file.start()) {
        Format::Market => market::read_matrix_from(name, file.into_bytes(), read_as),
        _ => read_other(file),
    }
}

/// Reads a matrix of another format than Matrix Market.
fn read_other(file: Opened) -> Result<Matrix> {
    match Format::of(file.start()) {
        Format::Market => unreachable!("another format"),
        Format::Npy => npy::read_matrix(file),
        Format::Npz => npz::read(file),
        Format::Petsc => petsc::read_matrix(file),
        Format::Foreign(at) => Err(FOREIGN[at].refused(file.name())),
    }
}

/// Opens a file for several owners of rows. Files of Matrix Market with coordinates are read as they are dealt, others as
/// a whole.
///
/// # Errors
/// Those of [`Dealer::open`] and [`read_matrix`].
pub(crate) fn dealer(path: &Path, read_as: ReadAs, owners: usize) -> Result<Dealer> {
    let file = Opened::open(path)?;
    match Format::of(file.start()) {
        Format::Market => Dealer::of_file(file, read_as, owners),
        _ => read_other(file).map(Dealer::of_matrix),
    }
}

/// Reads a vector: an array of Matrix Market or of `NumPy`, a sparse column, the first vector in a file of `PETSc`. Of
/// several columns of a file of Matrix Market the first is taken, and a remark says so.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_vector(path: &Path) -> Result<Vector> {
    let mut values = Vec::new();
    let read = vector(Opened::open(path)?, true, &mut |piece| values.extend_from_slice(piece))?;
    Ok(Vector { values, ..read })
}

/// The same, where `take` gets the values in pieces: their number, and the rest of the vector without them.
///
/// # Errors
/// As [`read_vector`].
pub(crate) fn read_vector_to(path: &Path, take: &mut dyn FnMut(&[f64])) -> Result<(usize, Vector)> {
    let mut length = 0;
    let read = vector(Opened::open(path)?, false, &mut |piece| {
        length += piece.len();
        take(piece);
    })?;
    Ok((length, read))
}

/// Reads a vector from `reader`; `name` stands for the file in messages.
///
/// # Errors
/// As [`read_vector`].
pub fn read_vector_from(name: &str, reader: impl Read + Send + 'static) -> Result<Vector> {
    let mut values = Vec::new();
    let file = Opened::of(name, Box::new(reader))?;
    let read = vector(file, true, &mut |piece| values.extend_from_slice(piece))?;
    Ok(Vector { values, ..read })
}

/// Columns of a file of vectors, of which the first lines are read: several of an array alone.
///
/// # Errors
/// When they are those of no such file.
pub(crate) fn vector_columns(path: &Path) -> Result<usize> {
    let file = Opened::open(path)?;
    match Format::of(file.start()) {
        Format::Market => {
            let size = market::read_size(path)?;
            Ok(if size.layout == Layout::Array { size.cols } else { 1 })
        }
        Format::Npy => npy::vector_columns(file),
        // what is wrong with others shows when they are read
        Format::Petsc | Format::Npz | Format::Foreign(_) => Ok(1),
    }
}

fn vector(file: Opened, whole: bool, take: &mut dyn FnMut(&[f64])) -> Result<Vector> {
    match Format::of(file.start()) {
        Format::Market => market::read_open_vector(file, whole, take),
        Format::Npy => npy::read_vector(file, whole, take),
        Format::Petsc => petsc::read_vector(file, whole, take),
        Format::Npz => Err(Error::input("is an archive, not a vector")
            .in_file(file.name())
            .hint("save the vector alone: `numpy.save(\"b.npy\", b)`")),
        Format::Foreign(at) => Err(FOREIGN[at].refused(file.name())),
    }
}

/// Whether the file of a matrix holds a right-hand side, too: a vector behind the matrix of `PETSc`.
pub(crate) fn holds_vector(path: &Path) -> bool {
    if is_stdin(path) || !path.is_file() {
        return false;
    }
    let file = Opened::open(path).ok();
    let petsc = file.filter(|file| Format::of(file.start()) == Format::Petsc);
    petsc.is_some_and(petsc::has_vector)
}

/// Whether a file begins as one of a matrix does, or is compressed.
pub(crate) fn looks_like(path: &Path) -> bool {
    const BANNER: &[u8] = b"%%MatrixMarket";
    let Ok(file) = Opened::open(path) else {
        // what is wrong with it shows when it is read
        return Compression::of_name(path).is_some();
    };
    let start = file.start().strip_prefix(b"\xef\xbb\xbf").unwrap_or(file.start());
    let banner = start.len() >= BANNER.len() && start[..BANNER.len()].eq_ignore_ascii_case(BANNER);
    banner || file.is_compressed() || Format::of(start) != Format::Market
}

/// Whether a file of such a name holds a triangle where the matrix is symmetric.
pub(crate) fn stores_triangles(path: &Path) -> bool {
    !ends_with(path, ".npz") && !ends_with(path, ".petsc")
}

/// Whether the right-hand side of a matrix is written to the file of such a name, too.
pub(crate) fn takes_vectors(path: &Path) -> bool {
    ends_with(path, ".petsc")
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.to_string_lossy().ends_with(ending)
}

/// Writes a matrix in the format that the name of the file tells. A file of `PETSc` takes a right-hand side, too.
///
/// # Errors
/// When the matrix does not have the symmetry, or the file cannot be written.
pub fn write_matrix(
    path: &Path,
    matrix: &Csr,
    symmetry: Symmetry,
    rhs: Option<&[f64]>,
) -> Result<()> {
    if ends_with(path, ".npz") {
        npz::write(path, matrix)
    } else if ends_with(path, ".petsc") {
        petsc::write(path, matrix, rhs)
    } else {
        market::write_matrix(path, matrix, symmetry)
    }
}

/// Writes a vector as an array of `NumPy` or of Matrix Market, as the name of the file tells.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_vector(path: &Path, values: &[f64]) -> Result<()> {
    if ends_with(path, ".npy") {
        npy::write_file(path, values.iter().copied())
    } else {
        market::write_vector(path, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_tells_the_format() {
        let of = |start: &[u8]| Format::of(start);
        assert_eq!(of(b"%%MatrixMarket matrix"), Format::Market);
        assert_eq!(of(b"\x93NUMPY\x01\x00"), Format::Npy);
        assert_eq!(of(b"PK\x03\x04"), Format::Npz);
        assert_eq!(of(b"PK\x05\x06"), Format::Npz);
        assert_eq!(of(&1_211_216_u32.to_be_bytes()), Format::Petsc);
        assert_eq!(of(&1_211_214_u64.to_be_bytes()), Format::Petsc);
        assert_eq!(of(&1_211_216_u32.to_le_bytes()), Format::Petsc);
        assert_eq!(of(b"MATLAB 5.0 MAT-file, Platform"), Format::Foreign(0));
        assert_eq!(of(b""), Format::Market);
    }
}
