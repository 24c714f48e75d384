//! Arrays as files of `NumPy` (`.npy`): numbers of float64, float32 or integers.

mod fault;
mod head;

use std::io::{Read, Write};
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::input::Opened;
use crate::base::measure::check_memory;
use crate::base::units::plural;
use crate::matrix::gather::{Gather, zeros_left_out};
use crate::matrix::market;
use crate::matrix::market::{Layout, Vector};
use crate::matrix::read::{Matrix, one_column};

pub(super) use fault::Fault;
use head::{AT_ONCE, write_head};
pub(super) use head::{Head, MAGIC, Number};

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
        return Err(one_column(&name, [rows, columns]));
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
