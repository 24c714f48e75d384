//! Arrays as files of `NumPy` (`.npy`): numbers of float64, float32 or integers.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::input::{self, Opened};
use crate::base::measure::check_memory;
use crate::base::units::plural;
use crate::matrix::gather::{Gather, zeros_left_out};
use crate::matrix::market;
use crate::matrix::market::{Layout, Vector};
use crate::matrix::read::Matrix;

/// What every file begins with.
pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes before the text of the head in version 1.0.
const BEFORE: usize = 10;
/// Longest head that is read.
const LONGEST_HEAD: usize = 4096;
/// Numbers that are read at once.
const AT_ONCE: usize = 1 << 13;

/// A number that can be an element of an array.
pub(crate) trait Element: Copy {
    /// Its type in the head of a file.
    const TYPE: &'static str;
    /// Writes it, little-endian.
    fn write(self, out: &mut dyn Write) -> std::io::Result<()>;
}

macro_rules! elements {
    ($($number:ty: $name:literal;)*) => {
        $(impl Element for $number {
            const TYPE: &'static str = $name;

            fn write(self, out: &mut dyn Write) -> std::io::Result<()> {
                out.write_all(&self.to_le_bytes())
            }
        })*
    };
}

elements! {
    f64: "<f8";
    i32: "<i4";
    i64: "<i8";
}

/// Writes an array in version 1.0 of the format: 64 or more bytes of head, then the numbers.
pub(crate) fn write<T: Element>(
    out: &mut dyn Write,
    values: impl ExactSizeIterator<Item = T>,
) -> std::io::Result<()> {
    write_head(out, T::TYPE, &format!("({},)", values.len()))?;
    values.into_iter().try_for_each(|v| v.write(out))
}

/// Writes rows of `columns` numbers to a file, as [`write_file`] does; one column as a vector.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_columns(path: &Path, values: &[f64], columns: usize) -> Result<()> {
    if columns == 1 {
        return write_file(path, values.iter().copied());
    }
    market::atomically(path, |out| {
        write_head(out, f64::TYPE, &format!("({}, {columns})", values.len() / columns))?;
        values.iter().try_for_each(|v| v.write(out))
    })
}

/// Writes an array that is one word.
pub(super) fn write_word(out: &mut dyn Write, word: &str) -> std::io::Result<()> {
    write_head(out, &format!("|S{}", word.len()), "()")?;
    out.write_all(word.as_bytes())
}

fn write_head(out: &mut dyn Write, kind: &str, shape: &str) -> std::io::Result<()> {
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    // the numbers begin at a multiple of 64, behind a line end
    let length = (BEFORE + head.len() + 1).next_multiple_of(64) - BEFORE;
    out.write_all(MAGIC)?;
    out.write_all(b"\x01\x00")?;
    out.write_all(&u16::try_from(length).expect("a short head").to_le_bytes())?;
    writeln!(out, "{head:<width$}", width = length - 1)
}

/// Writes an array to a file, which appears whole or not at all.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_file<T: Element>(
    path: &Path,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<()> {
    market::atomically(path, |out| write(out, values))
}

/// Why an array cannot be read.
pub(super) enum Fault {
    /// Its bytes cannot be.
    Read(io::Error),
    /// They are not what they should be.
    Content(String),
    /// What they hold is no use.
    Refused(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self::Content(what)
    }
}

impl From<&str> for Fault {
    fn from(what: &str) -> Self {
        Self::Content(what.into())
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl Fault {
    fn text(&self) -> String {
        match self {
            Self::Content(what) => what.clone(),
            Self::Refused(error) => error.message().to_owned(),
            Self::Read(error) => match error.kind() {
                ErrorKind::UnexpectedEof => "it ends early".into(),
                ErrorKind::InvalidData | ErrorKind::InvalidInput => format!("is damaged: {error}"),
                _ => error.to_string(),
            },
        }
    }

    /// The error for it in the file `name`; `what` is the array.
    pub(super) fn of(self, name: &str, what: &str) -> Error {
        let stopped = match &self {
            Self::Read(error) => input::stopped(name, error),
            _ => None,
        };
        match self {
            Self::Refused(error) => error.in_file(name),
            _ => stopped
                .unwrap_or_else(|| Error::input(format!("{what}{}", self.text())).in_file(name)),
        }
    }
}

/// Type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// `f`, `i`, `u` or `b`.
    class: u8,
    bytes: usize,
    big_endian: bool,
}

/// What the head of an array tells.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Its type, as the file has it.
    kind: String,
    /// Numbers in each dimension.
    pub(super) shape: Vec<usize>,
    /// Whether the first dimension varies fastest.
    pub(super) fortran: bool,
}

/// A number of an array.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Real(f64),
    Whole(i64),
    Natural(u64),
}

impl Number {
    pub(super) fn real(self) -> f64 {
        match self {
            Self::Real(value) => value,
            Self::Whole(value) => value as f64,
            Self::Natural(value) => value as f64,
        }
    }

    /// As an integer.
    pub(super) fn whole(self) -> Option<i64> {
        match self {
            Self::Real(_) => None,
            Self::Whole(value) => Some(value),
            Self::Natural(value) => i64::try_from(value).ok(),
        }
    }
}

impl Head {
    /// Reads it.
    pub(super) fn read(from: &mut impl Read) -> Result<Self, Fault> {
        let mut start = [0; 8];
        from.read_exact(&mut start)?;
        let (magic, version) = start.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err("no array of NumPy".into());
        }
        let mut length = [0; 4];
        // version 1 has two bytes for the length of its head, later ones four
        let bytes = if version[0] == 1 { 2 } else { 4 };
        from.read_exact(&mut length[..bytes])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_HEAD {
            return Err(format!("its head has {length} bytes").into());
        }
        let mut head = vec![0; length];
        from.read_exact(&mut head)?;
        Ok(Self::parse(&String::from_utf8_lossy(&head))?)
    }

    fn parse(head: &str) -> Result<Self, String> {
        let behind = |key: &str| {
            let (_, rest) = head.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let quoted = |text: &str| text.strip_prefix('\'')?.split('\'').next().map(str::to_owned);
        let kind = behind("descr").ok_or("its head tells no type")?;
        let kind = quoted(kind).ok_or("an array of records, not of numbers")?;
        let shape = behind("shape").and_then(|text| text.strip_prefix('(')?.split(')').next());
        let shape = shape.ok_or("its head tells no shape")?;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        let sizes: Result<Vec<usize>, _> = sizes.map(str::parse).collect();
        let sizes = sizes.map_err(|_| format!("an array of shape ({})", shape.trim()))?;
        let fortran = behind("fortran_order").is_some_and(|text| text.starts_with("True"));
        Ok(Self { kind, shape: sizes, fortran })
    }

    /// The shape as Python writes it.
    pub(super) fn shape_text(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        format!("({}{comma})", sizes.join(", "))
    }

    /// Numbers of the array.
    pub(super) fn count(&self) -> Result<usize, String> {
        let product = |count: usize, size: &usize| count.checked_mul(*size);
        let count = self.shape.iter().try_fold(1, product).filter(|count| *count < 1 << 48);
        count.ok_or_else(|| format!("an array of shape {}", self.shape_text()))
    }

    fn kind(&self) -> Result<Kind, String> {
        let text = self.kind.as_bytes();
        let bytes = self.kind.get(2..).and_then(|digits| digits.parse().ok());
        let big_endian = text.first() == Some(&b'>');
        let kind = |class| Kind { class, bytes: bytes.unwrap_or(0), big_endian };
        match (text.get(1), bytes) {
            (Some(class @ b'f'), Some(4 | 8))
            | (Some(class @ (b'i' | b'u')), Some(1 | 2 | 4 | 8))
            | (Some(class @ b'b'), Some(1)) => Ok(kind(*class)),
            (Some(b'c'), _) => {
                Err("complex numbers, which are not supported: only real systems are solved here"
                    .into())
            }
            (Some(b'O'), _) => Err("Python objects, which are not read: loading these (`pickle`) \
                                    may run any program"
                .into()),
            _ => Err(format!(
                "numbers of type `{}`: float64, float32 and integers are read",
                self.kind
            )),
        }
    }

    /// Bytes of the numbers.
    pub(super) fn bytes(&self) -> Result<u64, String> {
        Ok(self.count()? as u64 * self.kind()?.bytes as u64)
    }

    /// The text of an array that is one string.
    pub(super) fn string(&self, from: &mut impl Read) -> Result<String, Fault> {
        let bytes: usize = self.kind.get(2..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        // of four bytes for each letter, or of one
        let wide = self.kind.as_bytes().get(1) == Some(&b'U');
        let is_text = wide || self.kind.as_bytes().get(1) == Some(&b'S');
        if !is_text || bytes > 64 || self.count()? != 1 {
            return Err(format!("type `{}`, not a word", self.kind).into());
        }
        let mut text = vec![0; bytes * if wide { 4 } else { 1 }];
        from.read_exact(&mut text)?;
        text.retain(|&byte| byte != 0);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads the numbers in the order of the file, which has to end behind them.
    pub(super) fn numbers(
        &self,
        from: &mut impl Read,
        mut take: impl FnMut(Number) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (kind, mut left) = (self.kind()?, self.count()?);
        let mut bytes = vec![0; kind.bytes * AT_ONCE];
        while left > 0 {
            let count = left.min(AT_ONCE);
            let part = &mut bytes[..kind.bytes * count];
            from.read_exact(part)?;
            for number in part.chunks_exact_mut(kind.bytes) {
                if kind.big_endian {
                    number.reverse();
                }
                take(kind.number(number))?;
            }
            left -= count;
        }
        match from.read(&mut bytes[..1])? {
            0 => Ok(()),
            _ => Err(format!("more than {} numbers", self.count()?).into()),
        }
    }
}

impl Kind {
    /// The number of so many bytes, little-endian.
    fn number(self, bytes: &[u8]) -> Number {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(eight);
        let unused = 64 - 8 * bytes.len() as u32;
        match (self.class, bytes.len()) {
            (b'f', 4) => Number::Real(f64::from(f32::from_bits(bits as u32))),
            (b'f', _) => Number::Real(f64::from_bits(bits)),
            (b'i', _) => Number::Whole(((bits << unused) as i64) >> unused),
            _ => Number::Natural(bits),
        }
    }
}

/// Reads an array of `n` numbers of type float64, one or two dimensions with one column or row.
///
/// # Errors
/// When the file cannot be read, is another kind of file, or holds other numbers or another number of them.
/// No memory is taken for what a file only claims to hold.
pub(crate) fn read_file(path: &Path, n: usize) -> Result<Vec<f64>> {
    let file = std::fs::File::open(path).map_err(|e| Error::io("read", path, &e))?;
    read(std::io::BufReader::new(file), n).map_err(|fault| {
        let name = path.file_name().unwrap_or_default().display();
        Error::run(format!("`{name}`: {}", fault.text()))
    })
}

fn read(mut from: impl Read, n: usize) -> Result<Vec<f64>, Fault> {
    let head = Head::read(&mut from)?;
    if head.kind != f64::TYPE {
        return Err(format!("numbers of type `{}`, not `{}`", head.kind, f64::TYPE).into());
    }
    match head.shape[..] {
        [length] | [length, 1] | [1, length] if length == n => {}
        _ => return Err(format!("an array of shape {}, not ({n},)", head.shape_text()).into()),
    }
    let mut values = Vec::new();
    head.numbers(&mut from, |number| {
        values.push(number.real());
        Ok(())
    })?;
    Ok(values)
}

/// Reads a vector from a file, where `take` gets the values in pieces.
///
/// # Errors
/// When it is no vector, a value is not finite, or the values cannot be in memory as a `whole`.
pub(super) fn read_vector(
    file: Opened,
    whole: bool,
    take: &mut dyn FnMut(&[f64]),
) -> Result<Vector> {
    let (name, most) = (file.name().to_owned(), file.most());
    let mut from = file.into_bytes();
    let named = |fault: Fault| fault.of(&name, "");
    let head = Head::read(&mut from).map_err(named)?;
    let [rows, columns] = head.of_vectors(&name)?;
    if columns > 1 {
        let message = format!("{rows} x {columns} numbers: a right-hand side has one column");
        return Err(Error::input(message).in_file(name));
    }
    check_backed(&head, most).map_err(|fault| fault.of(&name, ""))?;
    if whole {
        check_memory(8 * rows).map_err(|e| e.in_file(&name))?;
    }
    let (mut piece, mut count) = (Vec::with_capacity(AT_ONCE), 0_usize);
    let read = head.numbers(&mut from, |number| {
        let value = number.real();
        if !value.is_finite() {
            return Err(format!("number {count} (from 0) is {value}").into());
        }
        count += 1;
        piece.push(value);
        if piece.len() == AT_ONCE {
            take(&piece);
            piece.clear();
        }
        Ok(())
    });
    read.map_err(named)?;
    take(&piece);
    Ok(Vector { values: Vec::new(), columns, layout: Layout::Array, remarks: Vec::new() })
}

/// Columns of an array of vectors.
///
/// # Errors
/// When it is none.
pub(super) fn vector_columns(file: Opened) -> Result<usize> {
    let name = file.name().to_owned();
    let head = Head::read(&mut file.into_bytes()).map_err(|fault| fault.of(&name, ""))?;
    head.of_vectors(&name).map(|[_, columns]| columns)
}

impl Head {
    /// Rows and columns of an array of vectors; one of a row is a column.
    fn of_vectors(&self, name: &str) -> Result<[usize; 2]> {
        match self.shape[..] {
            [rows] | [rows, 1] | [1, rows] => Ok([rows, 1]),
            [rows, columns] => Ok([rows, columns]),
            _ => {
                let message = format!("an array of shape {}, not a vector", self.shape_text());
                Err(Error::input(message).in_file(name))
            }
        }
    }
}

/// Reads an array of two dimensions: the matrix of its numbers that are not zero.
///
/// # Errors
/// When it is no such array, or broken.
pub(super) fn read_matrix(file: Opened) -> Result<Matrix> {
    let (name, most) = (file.name().to_owned(), file.most());
    let mut from = file.into_bytes();
    let head = Head::read(&mut from).map_err(|fault| fault.of(&name, ""))?;
    let &[rows, cols] = &head.shape[..] else {
        let error = Error::input(format!("an array of shape {}, not a matrix", head.shape_text()));
        return Err(error
            .in_file(&name)
            .hint(format!("name it as a right-hand side: `file:{name}`")));
    };
    check_backed(&head, most).map_err(|fault| fault.of(&name, ""))?;
    let mut gather =
        Gather::new([rows, cols], rows.saturating_mul(cols)).map_err(|e| e.in_file(&name))?;
    let (mut at, mut zeros) = (0, 0);
    let read = head.numbers(&mut from, |number| {
        let [row, col] = if head.fortran { [at % rows, at / rows] } else { [at / cols, at % cols] };
        at += 1;
        let value = number.real();
        if value == 0.0 {
            zeros += 1;
        } else {
            gather.push(row as u32, col as u32, value)?;
        }
        Ok(())
    });
    read.map_err(|fault| fault.of(&name, ""))?;
    let mut matrix = gather.finish().map_err(|e| e.in_file(&name))?;
    matrix.remarks.extend(zeros_left_out(zeros, &format!("{rows} x {cols} array")));
    Ok(matrix)
}

/// Refuses an array that has more bytes than the `most` that its file can hold.
pub(super) fn check_backed(head: &Head, most: Option<u64>) -> Result<(), Fault> {
    match most {
        Some(most) if head.bytes()? > most => {
            let count = plural(head.count()?, "number");
            Err(format!("its head tells of {count}, and it ends early").into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<T: Element>(values: &[T]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, values.iter().copied()).unwrap();
        bytes
    }

    #[test]
    fn the_head_is_that_of_numpy_and_numbers_begin_at_a_multiple_of_64() {
        let bytes = written(&[1.5, -2.0]);
        assert_eq!(bytes.len(), 128 + 16);
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        let head = std::str::from_utf8(&bytes[10..128]).unwrap();
        let told = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(head.trim_end(), told);
        assert!(head.ends_with('\n'));
        assert_eq!(bytes[128..136], 1.5f64.to_le_bytes());
        assert!(written(&[7i32]).windows(3).any(|w| w == b"<i4"));
        assert_eq!(written(&[7i64]).len(), 128 + 8);
    }

    #[test]
    fn what_was_written_is_read_bit_for_bit() {
        let values: Vec<f64> = (0..20_000).map(|i| f64::from(i).sin()).chain([f64::NAN]).collect();
        let read = read(&written(&values)[..], values.len()).unwrap_or_default();
        assert!(read.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn heads_of_other_versions_and_a_column_are_read() {
        let head = "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 2), }\n";
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend(u32::try_from(head.len()).unwrap().to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend([3.0f64, 4.0].map(f64::to_le_bytes).concat());
        assert_eq!(read(&bytes[..], 2).unwrap_or_default(), [3.0, 4.0]);
    }

    #[test]
    fn what_is_none_of_it_is_refused() {
        let refused = |bytes: &[u8], n| read(bytes, n).unwrap_err().text();
        let good = written(&[1.0, 2.0]);
        assert_eq!(refused(b"1.0 2.0 3.0", 2), "no array of NumPy");
        assert_eq!(refused(b"", 2), "it ends early");
        assert_eq!(refused(&good[..good.len() - 1], 2), "it ends early");
        assert_eq!(refused(&[&good[..], b"x"].concat(), 2), "more than 2 numbers");
        assert_eq!(refused(&good, 3), "an array of shape (2,), not (3,)");
        assert_eq!(refused(&written(&[1i64, 2]), 2), "numbers of type `<i8`, not `<f8`");
        assert_eq!(
            refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", 2),
            "its head has 4294967295 bytes"
        );
        // a claim takes no memory
        let claims = String::from_utf8_lossy(&good[10..128]).replace("(2,)", "(99999999999,)");
        let bytes = [&good[..8], &(claims.len() as u16).to_le_bytes(), claims.as_bytes()].concat();
        assert_eq!(refused(&bytes, 99_999_999_999), "it ends early");
    }
}
