//! The head of an array, which tells its type and shape, and the numbers behind it.

use std::io::{Read, Write};

use super::Fault;
use crate::base::error::{Error, Result};

/// What every file begins with.
pub(in crate::matrix) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes before the text of the head in version 1.0.
const BEFORE: usize = 10;
/// Longest head that is read.
const LONGEST_HEAD: usize = 4096;
/// Numbers that are read at once.
pub(super) const AT_ONCE: usize = 1 << 13;

/// Writes the head of an array in version 1.0 of the format.
pub(super) fn write_head(out: &mut dyn Write, kind: &str, shape: &str) -> std::io::Result<()> {
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    // the numbers begin at a multiple of 64, behind a line end
    let length = (BEFORE + head.len() + 1).next_multiple_of(64) - BEFORE;
    out.write_all(MAGIC)?;
    out.write_all(b"\x01\x00")?;
    out.write_all(&u16::try_from(length).expect("a short head").to_le_bytes())?;
    writeln!(out, "{head:<width$}", width = length - 1)
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
pub(in crate::matrix) struct Head {
    /// Its type, as the file has it.
    pub(super) kind: String,
    /// Numbers in each dimension.
    pub(in crate::matrix) shape: Vec<usize>,
    /// Whether the first dimension varies fastest.
    pub(in crate::matrix) fortran: bool,
}

/// A number of an array.
#[derive(Clone, Copy, Debug)]
pub(in crate::matrix) enum Number {
    Real(f64),
    Whole(i64),
    Natural(u64),
}

impl Number {
    pub(in crate::matrix) fn real(self) -> f64 {
        match self {
            Self::Real(value) => value,
            Self::Whole(value) => value as f64,
            Self::Natural(value) => value as f64,
        }
    }

    /// As an integer.
    pub(in crate::matrix) fn whole(self) -> Option<i64> {
        match self {
            Self::Real(_) => None,
            Self::Whole(value) => Some(value),
            Self::Natural(value) => i64::try_from(value).ok(),
        }
    }
}

impl Head {
    /// Reads it.
    pub(in crate::matrix) fn read(from: &mut impl Read) -> Result<Self, Fault> {
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
    pub(in crate::matrix) fn shape_text(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        format!("({}{comma})", sizes.join(", "))
    }

    /// Rows and columns of an array of vectors; one of a row is a column.
    pub(super) fn of_vectors(&self, name: &str) -> Result<[usize; 2]> {
        match self.shape[..] {
            [rows] | [rows, 1] | [1, rows] => Ok([rows, 1]),
            [rows, columns] => Ok([rows, columns]),
            _ => {
                let message = format!("an array of shape {}, not a vector", self.shape_text());
                Err(Error::input(message).in_file(name))
            }
        }
    }

    /// Numbers of the array.
    pub(in crate::matrix) fn count(&self) -> Result<usize, String> {
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
    pub(in crate::matrix) fn string(&self, from: &mut impl Read) -> Result<String, Fault> {
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
    pub(in crate::matrix) fn numbers(
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
