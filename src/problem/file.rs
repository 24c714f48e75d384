//! Systems in files, and where files are looked for by name.

use std::path::{Path, PathBuf};

use crate::base::choices::ReadAs;
use crate::base::error::{Error, Kind, Result};
use crate::base::input::{Compression, STDIN_NAME, is_stdin};
use crate::matrix::cache::Cache;
use crate::matrix::file::{ENDINGS, OF_VECTORS, holds_vector, read_vector, read_vector_to};
use crate::matrix::market::{Layout, Symmetry, Vector};
use crate::matrix::one_column;

use crate::base::units::plural;

use super::{Problem, several};

/// Whether `spec` is meant as a path.
pub(super) fn is_path(spec: &str) -> bool {
    looks_like_path(spec) || Path::new(spec).is_file()
}

/// Whether `spec` can only be a path, or standard input, whether there is such a file or not.
fn looks_like_path(spec: &str) -> bool {
    let packed = || Compression::endings(false).any(|e| spec.ends_with(&format!(".mtx{e}")));
    spec.contains('/')
        || spec.contains(std::path::MAIN_SEPARATOR)
        || ENDINGS.iter().any(|e| spec.ends_with(e))
        || packed()
        || is_stdin(Path::new(spec))
}

/// The spec of a matrix that is named in a file of `folder`: a relative path counts from there.
pub(crate) fn located(spec: &str, folder: &Path) -> String {
    let in_folder = |path: &str| folder.join(path).display().to_string();
    let name = spec.split(':').next().unwrap_or_default();
    if crate::problem::generators::find(name).is_some() {
        // of the arguments only a field may be a file
        let argument = |word: &str| match word.split_once('=') {
            Some(("field", path)) if folder.join(path).is_file() => {
                format!("field={}", in_folder(path))
            }
            _ => word.to_owned(),
        };
        return spec.split(',').map(argument).collect::<Vec<_>>().join(",");
    }
    let is_path = looks_like_path(spec) || folder.join(spec).is_file();
    if is_path && !is_stdin(Path::new(spec)) { in_folder(spec) } else { spec.to_owned() }
}

/// As [`located`] for a right-hand side.
pub(crate) fn located_rhs(spec: &str, folder: &Path) -> String {
    match spec.strip_prefix("file:").or(is_rhs_file(spec).then_some(spec)) {
        Some(path) => format!("file:{}", folder.join(path).display()),
        None => spec.to_owned(),
    }
}

/// Whether the spec of a right-hand side is the path of a file of vectors, without `file:`.
pub(super) fn is_rhs_file(spec: &str) -> bool {
    let name = several::name(spec);
    let packed = Compression::endings(true).find_map(|ending| name.strip_suffix(ending));
    let name = packed.unwrap_or(name);
    !name.starts_with("file:") && OF_VECTORS.iter().any(|ending| name.ends_with(ending))
}

/// File name without `.mtx`, `.mtx.gz` and the like.
pub(crate) fn stem(path: &Path) -> String {
    if is_stdin(path) {
        return STDIN_NAME.to_owned();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = ENDINGS.iter().rev().find_map(|e| name.strip_suffix(e));
    stem.unwrap_or(&name).to_owned()
}

/// The file of a matrix's right-hand side: its own, where a vector follows the matrix, or one beside it,
/// `<stem>_rhs` or `<stem>_b` with an ending of vectors.
pub(crate) fn own_rhs_path(matrix: &Path) -> Option<PathBuf> {
    if is_stdin(matrix) {
        return None;
    }
    if holds_vector(matrix) {
        return Some(matrix.to_owned());
    }
    let stem = stem(matrix);
    let packed = || std::iter::once("").chain(Compression::endings(true));
    let endings = || OF_VECTORS.iter().flat_map(|e| packed().map(move |p| format!("{e}{p}")));
    let mut names =
        ["rhs", "b"].into_iter().flat_map(|s| endings().map(move |e| format!("{s}{e}")));
    names.find_map(|n| {
        Some(matrix.with_file_name(format!("{stem}_{n}"))).filter(|path| path.is_file())
    })
}

/// Reads a square matrix and the right-hand side beside it.
pub(super) fn load(path: &Path, read_as: ReadAs, cache: &Cache) -> Result<Problem> {
    let file = if is_stdin(path) { STDIN_NAME.to_owned() } else { path.display().to_string() };
    let read = cache.read_matrix(path, read_as)?;
    let rows = read.matrix.rows();
    check_square(path, [rows, read.matrix.cols()])?;
    if read_as == ReadAs::AsStored && read.symmetry == Symmetry::General {
        return Err(Error::input("a general file cannot be read as stored")
            .in_file(file)
            .hint("only symmetric files store a triangle; read it expanded"));
    }
    let mut remarks = read.remarks;
    let own_rhs = own_rhs(path, rows, &mut remarks)?;
    Ok(Problem { name: stem(path), matrix: read.matrix.into(), grid: None, own_rhs, remarks })
}

/// Refuses a matrix that is not square.
pub(crate) fn check_square(path: &Path, [rows, cols]: [usize; 2]) -> Result<()> {
    if rows == cols {
        return Ok(());
    }
    let file = if is_stdin(path) { STDIN_NAME.to_owned() } else { path.display().to_string() };
    Err(Error::input(format!("the matrix is {rows} x {cols}, not square"))
        .in_file(file)
        .hint("only square systems are solved here"))
}

/// The right-hand side of `rows` values in the file beside a matrix, if there is one. One that cannot be used is a remark.
///
/// # Errors
/// When the user stops it, or there is no memory for it.
fn own_rhs(matrix: &Path, rows: usize, remarks: &mut Vec<String>) -> Result<Option<Vec<f64>>> {
    let mut values = Vec::new();
    let read = |path: &Path| {
        let mut read = read_vector(path)?;
        values = std::mem::take(&mut read.values);
        Ok((values.len(), read))
    };
    let used = used_rhs(matrix, rows, remarks, read)?;
    Ok(used.then_some(values))
}

/// The same, where `take` gets the values in pieces; whether they are to be used.
///
/// # Errors
/// As there.
pub(crate) fn own_rhs_to(
    matrix: &Path,
    rows: usize,
    remarks: &mut Vec<String>,
    take: &mut dyn FnMut(&[f64]),
) -> Result<bool> {
    used_rhs(matrix, rows, remarks, |path| read_vector_to(path, take))
}

/// Whether there is a right-hand side of `rows` values beside a matrix, of which `read` finds the length.
fn used_rhs(
    matrix: &Path,
    rows: usize,
    remarks: &mut Vec<String>,
    read: impl FnOnce(&Path) -> Result<(usize, Vector)>,
) -> Result<bool> {
    let Some(path) = &own_rhs_path(matrix) else { return Ok(false) };
    let rhs = read(path).and_then(|(length, v)| {
        if v.layout == Layout::Coordinate {
            // a matrix that happens to have such a name
            check_columns(path, [length, v.columns])?;
        }
        check_length(path, length, rows)?;
        Ok(v)
    });
    match rhs {
        Ok(rhs) => {
            remarks.extend(rhs.remarks.into_iter().map(|r| format!("right-hand side: {r}")));
            Ok(true)
        }
        Err(error) if matches!(error.kind(), Kind::Stopped | Kind::Memory) => Err(error),
        Err(error) => {
            remarks.push(format!("{UNUSED}{error}"));
            Ok(false)
        }
    }
}

/// Start of the remark about a right-hand side that could not be used.
pub(super) const UNUSED: &str = "right-hand side not used: ";

/// Refuses a matrix, or several right-hand sides, where one is asked for.
pub(super) fn check_columns(path: &Path, [rows, columns]: [usize; 2]) -> Result<()> {
    if columns == 1 {
        return Ok(());
    }
    Err(one_column(&path.display().to_string(), [rows, columns]))
}

/// Refuses a right-hand side that does not fit.
pub(super) fn check_length(path: &Path, length: usize, n: usize) -> Result<()> {
    if length == n {
        return Ok(());
    }
    Err(Error::input(format!("{} for a matrix of {}", plural(length, "value"), plural(n, "row")))
        .in_file(path.display().to_string()))
}
