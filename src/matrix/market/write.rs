//! Writing files: shortest decimal numbers that read back to the same bits, atomically.

use std::fmt::Write as _;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::matrix::Csr;

use super::field::Symmetry;

/// Writes `matrix` to `path`, gzipped when the name ends in `.gz`.
///
/// With [`Symmetry::Symmetric`] only the lower triangle is written. The file appears under its
/// name when it is complete; an existing one is replaced with its permissions, where a symbolic link
/// leads. A device or a pipe is written to as it is.
///
/// # Errors
/// When the matrix does not have the symmetry, or the file cannot be written.
pub fn write_matrix(path: &Path, matrix: &Csr, symmetry: Symmetry) -> Result<()> {
    let (word, stored) = match symmetry {
        Symmetry::General => ("general", matrix.nnz()),
        Symmetry::Symmetric => ("symmetric", lower_entries(matrix, 1.0, path)?),
        Symmetry::SkewSymmetric => ("skew-symmetric", lower_entries(matrix, -1.0, path)?),
    };
    atomically(path, |out| {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        writeln!(out, "%%MatrixMarket matrix coordinate real {word}\n{rows} {cols} {stored}")?;
        let mut line = String::new();
        for i in 0..rows {
            let (cols, values) = matrix.row(i);
            line.clear();
            for (&j, v) in cols.iter().zip(values) {
                let j = j as usize;
                let keep = match symmetry {
                    Symmetry::General => true,
                    Symmetry::Symmetric => j <= i,
                    Symmetry::SkewSymmetric => j < i,
                };
                if keep {
                    _ = writeln!(line, "{} {} {v:?}", i + 1, j + 1);
                }
            }
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    })
}

/// Writes `values` to `path` as an `array` of one column; else as [`write_matrix`].
///
/// # Errors
/// When the file cannot be written.
pub fn write_vector(path: &Path, values: &[f64]) -> Result<()> {
    write_columns(path, values, 1)
}

/// The same of rows of `columns` numbers.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_columns(path: &Path, values: &[f64], columns: usize) -> Result<()> {
    let rows = values.len() / columns;
    atomically(path, |out| {
        writeln!(out, "%%MatrixMarket matrix array real general\n{rows} {columns}")?;
        let mut column =
            |j| values.iter().skip(j).step_by(columns).try_for_each(|v| writeln!(out, "{v:?}"));
        (0..columns).try_for_each(&mut column)
    })
}

/// Entries of the lower triangle, after checking `a(j,i) = sign * a(i,j)` bit for bit.
fn lower_entries(matrix: &Csr, sign: f64, path: &Path) -> Result<usize> {
    let broken = |i: usize, j: usize| {
        let file = path.display();
        let (i, j) = (i + 1, j + 1);
        let kind = if sign > 0.0 { "symmetric" } else { "skew-symmetric" };
        Err(Error::input(format!(
            "cannot write `{file}` as {kind}: entries ({i}, {j}) and ({j}, {i}) do not match"
        ))
        .hint("write it as a general matrix"))
    };
    let mut stored = 0;
    for i in 0..matrix.rows() {
        let (cols, values) = matrix.row(i);
        for (&j, &v) in cols.iter().zip(values) {
            let j = j as usize;
            let mirrored = if j < matrix.rows() { matrix.get(j, i) } else { None };
            if mirrored != Some(sign * v) {
                return broken(i, j);
            }
            stored += usize::from(if sign > 0.0 { j <= i } else { j < i });
        }
    }
    if sign < 0.0 && (0..matrix.rows()).any(|i| matrix.get(i, i).is_some()) {
        return Err(Error::input(format!(
            "cannot write `{}` as skew-symmetric: its diagonal has entries",
            path.display()
        )));
    }
    Ok(stored)
}

/// Lets `content` write a file that replaces `path` when it is complete; gzipped when the name ends in
/// `.gz`.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn atomically(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    if path.is_dir() || path.file_name().is_none() {
        return Err(Error::input(format!("cannot write `{}`: it is a directory", path.display()))
            .hint("add a file name"));
    }
    let gzipped = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let written = files::replace(path, |file| {
        if gzipped {
            let mut out = BufWriter::new(GzEncoder::new(file, Compression::default()));
            content(&mut out)?;
            out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish().map(drop)
        } else {
            let mut out = BufWriter::with_capacity(1 << 18, file);
            content(&mut out)?;
            out.flush()
        }
    });
    written.map(drop).or_else(|e| {
        if e.kind() == ErrorKind::NotFound {
            files::check_folder(path)?;
        }
        Err(Error::io("write", path, &e)
            .hint("check that the folder exists, is writable and has room"))
    })
}
