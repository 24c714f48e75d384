//! Matrices and vectors in binary files of `PETSc`, as `MatView` and `VecView` write them.
//!
//! A file holds objects one behind the other, all of it big-endian. A matrix is its class, rows, columns, entries, the
//! entries of each row, the columns, the values; a vector its class, length, values. Integers have 32 or 64 bits, as
//! `PETSc` was configured, which the class at the beginning tells. A matrix with -1 entries is dense, by rows.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::Path;

use super::csr::Csr;
use super::gather::{Gather, check_size, of_rows, room, zeros_left_out};
use super::market;
use super::market::{Layout, Vector};
use super::read::Matrix;
use crate::base::error::{Error, Result};
use crate::base::input::{Bytes, Opened, content_error};
use crate::base::measure::check_memory;
use crate::base::units::plural;

/// Classes of objects.
const MATRIX: u32 = 1_211_216;
const VECTOR: u32 = 1_211_214;
/// All classes, of index sets, viewers and so on: the library numbers them from here.
const CLASSES: std::ops::RangeInclusive<u32> = 1_211_211..=1_211_300;
/// What stands for the entries of a dense matrix.
const DENSE: i64 = -1;
/// Bytes that are read at once.
const AT_ONCE: usize = 1 << 16;

/// Whether a file that begins like this is one of `PETSc`.
pub(super) fn begins(start: &[u8]) -> bool {
    width(start).is_some() || is_little_endian(start)
}

/// Bytes of the integers in a file that begins like this.
fn width(start: &[u8]) -> Option<usize> {
    let class = |at: usize| Some(u32::from_be_bytes(start.get(at..at + 4)?.try_into().ok()?));
    match class(0)? {
        0 => CLASSES.contains(&class(4)?).then_some(8),
        narrow => CLASSES.contains(&narrow).then_some(4),
    }
}

fn is_little_endian(start: &[u8]) -> bool {
    let class = start.get(..4).and_then(|four| four.try_into().ok());
    class.is_some_and(|four| CLASSES.contains(&u32::from_le_bytes(four)))
}

/// The objects of a file, one after the other.
struct Objects {
    name: String,
    from: BufReader<Bytes>,
    /// Bytes of an integer.
    width: usize,
    /// Bytes that can follow, where there is a bound.
    left: Option<u64>,
}

/// The beginning of an object.
enum Object {
    Matrix { size: [usize; 2], entries: Option<usize> },
    Vector(usize),
}

/// Reads the first matrix of a file.
///
/// # Errors
/// When it does not begin with one, or is broken.
pub(super) fn read_matrix(file: Opened) -> Result<Matrix> {
    let mut objects = Objects::new(file)?;
    let Some(Object::Matrix { size, entries }) = objects.next()? else {
        return Err(objects
            .error("begins with a vector, not with a matrix")
            .hint(format!("name it as a right-hand side: `file:{}`", objects.name)));
    };
    let mut matrix = match entries {
        Some(entries) => objects.matrix(size, entries)?,
        None => objects.dense(size)?,
    };
    matrix.remarks.extend(objects.more()?);
    Ok(matrix)
}

/// Reads the first vector of a file, where `take` gets the values in pieces.
///
/// # Errors
/// When there is none, it is broken, or its values cannot be in memory as a `whole`.
pub(super) fn read_vector(
    file: Opened,
    whole: bool,
    take: &mut dyn FnMut(&[f64]),
) -> Result<Vector> {
    let mut objects = Objects::new(file)?;
    let Some(length) = objects.next_vector()? else {
        return Err(objects.error("holds no vector, only matrices"));
    };
    if whole {
        check_memory(8 * length).map_err(|e| e.in_file(&objects.name))?;
    }
    let mut before = 0;
    objects.reals(length, &mut |values| {
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let message =
                format!("number {} (from 0) of the vector is {}", before + at, values[at]);
            return Err(Error::input(message));
        }
        before += values.len();
        take(values);
        Ok(())
    })?;
    Ok(Vector { values: Vec::new(), columns: 1, layout: Layout::Array, remarks: Vec::new() })
}

/// Whether a file that is one of `PETSc` has a vector behind its first matrix.
pub(super) fn has_vector(file: Opened) -> bool {
    let Ok(mut objects) = Objects::new(file) else { return false };
    let first = objects.next();
    let Ok(Some(matrix @ Object::Matrix { .. })) = first else { return false };
    let skipped = objects.skip(&matrix);
    skipped.is_ok() && matches!(objects.next(), Ok(Some(Object::Vector(_))))
}

impl Objects {
    fn new(file: Opened) -> Result<Self> {
        let name = file.name().to_owned();
        let Some(width) = width(file.start()) else {
            let message = if is_little_endian(file.start()) {
                "is a binary file of PETSc in little-endian order: PETSc writes big-endian"
            } else {
                "is no binary file of PETSc"
            };
            return Err(Error::input(message).in_file(name));
        };
        let left = file.most();
        let from = BufReader::with_capacity(AT_ONCE, file.into_bytes());
        Ok(Self { name, from, width, left })
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::input(message).in_file(&self.name)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.from.read_exact(bytes).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => self.early(),
            _ => content_error(&self.name, "", &e),
        })?;
        self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
        Ok(())
    }

    fn early(&self) -> Error {
        self.error("the file ends early")
            .hint("it is incomplete: was the program that wrote it stopped?")
    }

    /// The next integer.
    fn integer(&mut self) -> Result<i64> {
        let mut bytes = [0; 8];
        let width = self.width;
        self.fill(&mut bytes[8 - width..])?;
        let value = i64::from_be_bytes(bytes);
        Ok(if width == 4 { i64::from(value as i32) } else { value })
    }

    /// The next integer, which counts something.
    fn count(&mut self, what: &str) -> Result<usize> {
        let count = self.integer()?;
        usize::try_from(count).map_err(|_| self.error(format!("its head tells of {count} {what}")))
    }

    /// Whether nothing follows.
    fn ended(&mut self) -> Result<bool> {
        use std::io::BufRead;
        let ended = self.from.fill_buf().map(<[u8]>::is_empty);
        ended.map_err(|e| content_error(&self.name, "", &e))
    }

    /// The beginning of the next object; `None` at the end.
    fn next(&mut self) -> Result<Option<Object>> {
        if self.ended()? {
            return Ok(None);
        }
        let class = self.integer()?;
        let object = match u32::try_from(class).unwrap_or(0) {
            MATRIX => {
                let size = [self.count("rows")?, self.count("columns")?];
                check_size(size).map_err(|e| e.in_file(&self.name))?;
                let entries = self.integer()?;
                if entries != DENSE && !(0..=i64::from(u32::MAX)).contains(&entries) {
                    return Err(self.error(format!("{entries} entries: the limit is {}", u32::MAX)));
                }
                Object::Matrix { size, entries: usize::try_from(entries).ok() }
            }
            VECTOR => Object::Vector(self.count("values")?),
            class if CLASSES.contains(&class) => {
                return Err(self
                    .error(format!(
                        "holds an object of PETSc of the class {class}, which is not read here"
                    ))
                    .hint("matrices (MatView) and vectors (VecView) are read"));
            }
            _ => {
                return Err(self
                    .error("what follows an object of PETSc begins no other one")
                    .hint("was it written with complex numbers, or in single precision?"));
            }
        };
        let bytes = self.bytes(&object);
        if let Some(left) = self.left.filter(|&left| bytes.is_none_or(|bytes| bytes > left)) {
            let what = match object {
                Object::Matrix { size: [rows, cols], entries: Some(entries) } => {
                    format!("a matrix of {rows} x {cols} with {}", plural_entries(entries))
                }
                Object::Matrix { size: [rows, cols], .. } => {
                    format!("a dense matrix of {rows} x {cols}")
                }
                Object::Vector(length) => format!("a vector of {}", plural(length, "value")),
            };
            let message = format!("its head tells of {what}, and at most {left} bytes follow");
            return Err(self.error(message).hint("the file is incomplete or damaged"));
        }
        Ok(Some(object))
    }

    /// Bytes behind the beginning of an object.
    fn bytes(&self, object: &Object) -> Option<u64> {
        let (width, real) = (self.width as u64, 8);
        match *object {
            Object::Matrix { size: [rows, _], entries: Some(entries) } => {
                Some(width * (rows as u64 + entries as u64) + real * entries as u64)
            }
            Object::Matrix { size: [rows, cols], entries: None } => {
                (rows as u64).checked_mul(cols as u64)?.checked_mul(real)
            }
            Object::Vector(length) => (length as u64).checked_mul(real),
        }
    }

    fn skip(&mut self, object: &Object) -> Result<()> {
        let bytes = self.bytes(object).ok_or_else(|| self.early())?;
        let skipped = std::io::copy(&mut (&mut self.from).take(bytes), &mut std::io::sink());
        if skipped.map_err(|e| content_error(&self.name, "", &e))? < bytes {
            return Err(self.early());
        }
        self.left = self.left.map(|left| left.saturating_sub(bytes));
        Ok(())
    }

    /// Goes to the next vector; its length.
    fn next_vector(&mut self) -> Result<Option<usize>> {
        loop {
            match self.next()? {
                None => return Ok(None),
                Some(Object::Vector(length)) => return Ok(Some(length)),
                Some(matrix @ Object::Matrix { .. }) => self.skip(&matrix)?,
            }
        }
    }

    /// A word on further matrices, where vectors alone stand before the next one.
    fn more(&mut self) -> Result<Option<String>> {
        loop {
            match self.next()? {
                None => return Ok(None),
                Some(vector @ Object::Vector(_)) => self.skip(&vector)?,
                Some(Object::Matrix { .. }) => {
                    return Ok(Some("the first of several matrices in the file".into()));
                }
            }
        }
    }

    /// The next integers, each from 0 to `last`.
    fn indices(&mut self, count: usize, last: usize, what: &str) -> Result<Vec<u32>> {
        let mut all = room(count).map_err(|e| e.in_file(&self.name))?;
        let mut bytes = vec![0; AT_ONCE];
        while all.len() < count {
            let part = (count - all.len()).min(AT_ONCE / self.width) * self.width;
            self.fill(&mut bytes[..part])?;
            for number in bytes[..part].chunks_exact(self.width) {
                let value = number.iter().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
                if value > last as u64 {
                    let signed =
                        if self.width == 4 { i64::from(value as i32) } else { value as i64 };
                    let message =
                        format!("{what} {} (from 0) is {signed}, outside 0 to {last}", all.len());
                    return Err(self.error(message));
                }
                all.push(value as u32);
            }
        }
        Ok(all)
    }

    /// The next numbers, handed on in pieces.
    fn reals(&mut self, count: usize, take: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let (mut left, mut bytes, mut values) = (count, vec![0; AT_ONCE], Vec::new());
        while left > 0 {
            let part = &mut bytes[..8 * left.min(AT_ONCE / 8)];
            self.fill(part)?;
            values.clear();
            let number = |eight: &[u8]| f64::from_be_bytes(eight.try_into().expect("eight bytes"));
            values.extend(part.chunks_exact(8).map(number));
            take(&values).map_err(|e| e.in_file(&self.name))?;
            left -= values.len();
        }
        Ok(())
    }

    fn matrix(&mut self, size: [usize; 2], entries: usize) -> Result<Matrix> {
        check_memory(12 * entries + 4 * size[0]).map_err(|e| e.in_file(&self.name))?;
        let mut starts =
            self.indices(size[0], entries.min(size[1]), "the number of entries of row")?;
        let mut end = 0_u64;
        for start in &mut starts {
            end += u64::from(std::mem::replace(start, end as u32));
            if end > entries as u64 {
                break;
            }
        }
        if end != entries as u64 {
            let all = plural_entries(entries);
            return Err(
                self.error(format!("its rows do not have the {all} that the head tells of"))
            );
        }
        starts.push(entries as u32);
        let columns = self.indices(entries, size[1] - 1, "the column of entry")?;
        let mut values = room(entries).map_err(|e| e.in_file(&self.name))?;
        self.reals(entries, &mut |piece| {
            values.extend_from_slice(piece);
            Ok(())
        })?;
        of_rows(size, starts, columns, values).map_err(|e| e.in_file(&self.name))
    }

    fn dense(&mut self, [rows, cols]: [usize; 2]) -> Result<Matrix> {
        let count = rows.checked_mul(cols).ok_or_else(|| self.early())?;
        let gather = Gather::new([rows, cols], count);
        let mut gather = gather.map_err(|e| e.in_file(&self.name))?;
        let (mut at, mut zeros) = (0, 0);
        self.reals(count, &mut |piece| {
            for &value in piece {
                let (row, col) = (at / cols, at % cols);
                at += 1;
                if value == 0.0 {
                    zeros += 1;
                } else {
                    gather.push(row as u32, col as u32, value)?;
                }
            }
            Ok(())
        })?;
        let mut matrix = gather.finish().map_err(|e| e.in_file(&self.name))?;
        matrix.remarks.extend(zeros_left_out(zeros, &format!("dense {rows} x {cols} matrix")));
        Ok(matrix)
    }
}

fn plural_entries(entries: usize) -> String {
    format!("{entries} {}", if entries == 1 { "entry" } else { "entries" })
}

/// Writes a matrix with integers of 32 bits and, behind it, a right-hand side.
///
/// # Errors
/// When there are too many entries for them, or the file cannot be written.
pub(super) fn write(path: &Path, matrix: &Csr, rhs: Option<&[f64]>) -> Result<()> {
    if i32::try_from(matrix.nnz().max(matrix.rows()).max(matrix.cols())).is_err() {
        return Err(Error::input(
            "the matrix is too large for a file of PETSc with 32-bit integers",
        )
        .hint("write it as `.npz` or `.mtx`"));
    }
    market::atomically(path, |out| {
        let mut integer = |value: usize| out.write_all(&(value as i32).to_be_bytes());
        integer(MATRIX as usize)?;
        [matrix.rows(), matrix.cols(), matrix.nnz()].into_iter().try_for_each(&mut integer)?;
        matrix.row_ptr().windows(2).try_for_each(|w| integer((w[1] - w[0]) as usize))?;
        matrix.col_ind().iter().try_for_each(|&col| integer(col as usize))?;
        write_reals(out, matrix.values())?;
        let Some(b) = rhs else { return Ok(()) };
        out.write_all(&VECTOR.to_be_bytes())?;
        out.write_all(&(b.len() as i32).to_be_bytes())?;
        write_reals(out, b)
    })
}

fn write_reals(out: &mut dyn Write, values: &[f64]) -> std::io::Result<()> {
    values.iter().try_for_each(|value| out.write_all(&value.to_be_bytes()))
}
