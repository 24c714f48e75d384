//! Vectors as files of `NumPy` (`.npy`): one array of float64 or of integers.

use std::io::{Read, Write};
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::matrix::market;

/// What every file begins with.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
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
    let (kind, length) = (T::TYPE, values.len());
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({length},), }}");
    // the numbers begin at a multiple of 64, behind a line end
    let length = (BEFORE + head.len() + 1).next_multiple_of(64) - BEFORE;
    out.write_all(MAGIC)?;
    out.write_all(b"\x01\x00")?;
    out.write_all(&u16::try_from(length).expect("a short head").to_le_bytes())?;
    writeln!(out, "{head:<width$}", width = length - 1)?;
    values.into_iter().try_for_each(|v| v.write(out))
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

/// Reads an array of `n` numbers of type float64, one or two dimensions with one column or row.
///
/// # Errors
/// When the file cannot be read, is another kind of file, or holds other numbers or another number of them.
/// No memory is taken for what a file only claims to hold.
pub(crate) fn read_file(path: &Path, n: usize) -> Result<Vec<f64>> {
    let file = std::fs::File::open(path).map_err(|e| Error::io("read", path, &e))?;
    read(std::io::BufReader::new(file), n).map_err(|what| {
        let name = path.file_name().unwrap_or_default().display();
        Error::run(format!("`{name}`: {what}"))
    })
}

fn read(mut from: impl Read, n: usize) -> Result<Vec<f64>, String> {
    let told = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        _ => e.to_string(),
    };
    let mut start = [0; 8];
    from.read_exact(&mut start).map_err(told)?;
    let (magic, version) = start.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err("no file of NumPy".into());
    }
    let mut length = [0; 4];
    // version 1 has two bytes for the length of its head, later ones four
    let bytes = if version[0] == 1 { 2 } else { 4 };
    from.read_exact(&mut length[..bytes]).map_err(told)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEAD {
        return Err(format!("its head has {length} bytes"));
    }
    let mut head = vec![0; length];
    from.read_exact(&mut head).map_err(told)?;
    check_head(&String::from_utf8_lossy(&head), n)?;
    let mut values = Vec::new();
    let mut bytes = vec![0; 8 * AT_ONCE];
    while values.len() < n {
        let part = &mut bytes[..8 * (n - values.len()).min(AT_ONCE)];
        from.read_exact(part).map_err(told)?;
        let numbers =
            part.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight")));
        values.extend(numbers);
    }
    match from.read(&mut bytes[..1]).map_err(told)? {
        0 => Ok(values),
        _ => Err(format!("more than {n} numbers")),
    }
}

/// Checks that a head tells of `n` numbers of type float64.
fn check_head(head: &str, n: usize) -> Result<(), String> {
    let behind = |key: &str| {
        let (_, rest) = head.split_once(&format!("'{key}':"))?;
        Some(rest.trim_start())
    };
    let quoted = |text: &str| text.strip_prefix('\'')?.split('\'').next().map(str::to_owned);
    let kind = behind("descr").and_then(quoted).ok_or("its head tells no type")?;
    if kind != f64::TYPE {
        return Err(format!("numbers of type `{kind}`, not `{}`", f64::TYPE));
    }
    let shape = behind("shape").and_then(|text| text.strip_prefix('(')?.split(')').next());
    let shape = shape.ok_or("its head tells no shape")?;
    let sizes: Result<Vec<usize>, _> =
        shape.split(',').map(str::trim).filter(|size| !size.is_empty()).map(str::parse).collect();
    match sizes.as_deref() {
        Ok([length] | [length, 1] | [1, length]) if *length == n => Ok(()),
        _ => Err(format!("an array of shape ({}), not ({n},)", shape.trim())),
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
        let read = read(&written(&values)[..], values.len()).unwrap();
        assert!(read.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn heads_of_other_versions_and_a_column_are_read() {
        let head = "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 2), }\n";
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend(u32::try_from(head.len()).unwrap().to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend([3.0f64, 4.0].map(f64::to_le_bytes).concat());
        assert_eq!(read(&bytes[..], 2).unwrap(), [3.0, 4.0]);
    }

    #[test]
    fn what_is_none_of_it_is_refused() {
        let refused = |bytes: &[u8], n| read(bytes, n).unwrap_err();
        let good = written(&[1.0, 2.0]);
        assert_eq!(refused(b"1.0 2.0 3.0", 2), "no file of NumPy");
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
