//! Sparse matrices as archives of `NumPy` (`.npz`), as `scipy.sparse.save_npz` writes them.
//!
//! An archive of zip holds an array (`.npy`) for each part of the matrix: `format`, `shape`, `data`, and
//! `indices` with `indptr` (`csr`, `csc`, `bsr`), `row` with `col` (`coo`) or `offsets` (`dia`). What `SciPy` converts
//! to CSR is read: entries of one place are added up, blocks keep their zeros, diagonals do not.
//!
//! No memory is taken for what the archive only claims to hold: an array that its bytes, inflated, cannot fill is
//! refused before it is read.

use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rawzip::{
    CompressionMethod, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipArchive, ZipArchiveEntryWayfinder,
    ZipArchiveWriter, ZipLocator,
};

use super::csr::Csr;
use super::gather::{Gather, check_size, of_rows, room, zeros_left_out};
use super::market;
use super::npy::{self, Element, Fault, Head, Number};
use super::read::Matrix;
use crate::base::error::{Error, Result};
use crate::base::input::{Compression, Opened, Stream};
use crate::base::units::plural;

/// First bytes of an archive.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";
/// First bytes of an empty one.
const EMPTY: &[u8] = b"PK\x05\x06";
/// What a byte of DEFLATE can stand for.
const EXPANSION: u64 = 1032;
/// Parts of a matrix.
const PARTS: [&str; 8] = ["format", "shape", "data", "indices", "indptr", "row", "col", "offsets"];
/// Names of other arrays that are shown.
const SHOWN: usize = 6;

/// An archive whose parts are known.
struct Archive<R> {
    name: String,
    zip: ZipArchive<R>,
    /// Bytes of the file.
    size: u64,
    parts: Vec<(&'static str, ZipArchiveEntryWayfinder, CompressionMethod)>,
    /// Names of all arrays, a few of them.
    arrays: Vec<String>,
}

/// An array in an archive, with its numbers to come.
struct Array<'a> {
    part: &'static str,
    file: &'a str,
    head: Head,
    numbers: Box<dyn Read + 'a>,
    /// The most bytes that it can have.
    most: u64,
}

/// Whether a file that begins like this is an archive of zip.
pub(super) fn begins(start: &[u8]) -> bool {
    start.starts_with(MAGIC) || start.starts_with(EMPTY)
}

/// Reads a matrix.
///
/// # Errors
/// When it is no archive of a sparse matrix, or broken.
pub(super) fn read(file: Opened) -> Result<Matrix> {
    let name = file.name().to_owned();
    if file.is_compressed() {
        return Err(Error::input("is an archive within a compressed file")
            .in_file(name)
            .hint("unpack the outer file"));
    }
    let mut stream = file.into_file()?;
    let size = stream.seek(SeekFrom::End(0)).map_err(|e| Fault::Read(e).of(&name, ""))?;
    read_at(&name, Places(Mutex::new(stream)), size)
}

/// A file that is read at places.
struct Places(Mutex<Stream>);

impl ReaderAt for Places {
    fn read_at(&self, bytes: &mut [u8], place: u64) -> std::io::Result<usize> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(place))?;
        file.read(bytes)
    }
}

fn read_at(name: &str, reader: impl ReaderAt, size: u64) -> Result<Matrix> {
    let archive = Archive::open(name, reader, size)?;
    let format = archive.format()?;
    let shape = archive.shape()?;
    check_size(shape).map_err(|e| e.in_file(name))?;
    let read = match format.as_str() {
        "csr" => archive.rows(shape),
        "csc" => archive.columns(shape),
        "coo" => archive.entries(shape),
        "bsr" => archive.blocks(shape),
        "dia" => archive.diagonals(shape),
        other => Err(Error::input(format!("a sparse matrix of the format `{other}`"))
            .hint("csr, csc, coo, bsr and dia are read: save `a.tocsr()`")),
    };
    read.map_err(|e| if e.place().is_some() { e } else { e.in_file(name) })
}

impl<R: ReaderAt> Archive<R> {
    fn open(name: &str, reader: R, size: u64) -> Result<Self> {
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let broken = |e: rawzip::Error| {
            let fault = match e.into_kind() {
                rawzip::ErrorKind::IO(e) => Fault::Read(e),
                kind => Fault::Content(format!("a damaged or incomplete archive of zip: {kind}")),
            };
            fault.of(name, "").hint("fetch the file again")
        };
        let zip = ZipLocator::new()
            .locate_in_reader(reader, &mut buffer, size)
            .map_err(|(_, e)| broken(e))?;
        let (mut parts, mut arrays) = (Vec::new(), Vec::new());
        let mut entries = zip.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(broken)? {
            let path = entry.file_path();
            let Some(array) = path.as_bytes().strip_suffix(b".npy") else { continue };
            if let Some(part) = PARTS.iter().find(|part| part.as_bytes() == array) {
                if entry.flags().is_encrypted() {
                    return Err(Error::input("an encrypted archive").in_file(name));
                }
                parts.push((*part, entry.wayfinder(), entry.compression_method()));
            }
            if arrays.len() < SHOWN {
                arrays.push(String::from_utf8_lossy(array).into_owned());
            }
        }
        Ok(Self { name: name.into(), zip, size, parts, arrays })
    }

    /// An array, its head read.
    fn array(&self, part: &'static str) -> Result<Array<'_>> {
        let of = |fault: Fault| fault.of(&self.name, &format!("`{part}.npy`: "));
        let mut found = self.parts.iter().filter(|(name, ..)| *name == part);
        let Some(&(_, at, method)) = found.next() else {
            return Err(of("the archive has no such array".into()));
        };
        if found.next().is_some() {
            return Err(of("the archive has two such arrays".into()));
        }
        let told = |e: rawzip::Error| match e.into_kind() {
            rawzip::ErrorKind::IO(e) => of(Fault::Read(e)),
            kind => of(Fault::Content(format!("is damaged: {kind}"))),
        };
        let entry = self.zip.get_entry(at).map_err(told)?;
        let (start, end) = entry.compressed_data_range();
        let packed = end.min(self.size).saturating_sub(start);
        let bytes = BufReader::with_capacity(1 << 16, entry.reader());
        let (mut numbers, most): (Box<dyn Read>, u64) = match method {
            CompressionMethod::STORE => (Box::new(entry.verifying_reader(bytes)), packed),
            CompressionMethod::DEFLATE => {
                let inflated = DeflateDecoder::new(bytes);
                (Box::new(entry.verifying_reader(inflated)), packed.saturating_mul(EXPANSION))
            }
            other => {
                let message =
                    format!("compressed in a way that is not read (method {})", other.as_u16());
                return Err(of(message.into()));
            }
        };
        let head = Head::read(&mut numbers).map_err(of)?;
        Ok(Array { part, file: &self.name, head, numbers, most })
    }

    fn format(&self) -> Result<String> {
        if self.arrays.is_empty() {
            let zip = Compression::of(MAGIC).expect("zip is known");
            return Err(zip.refused(&self.name));
        }
        if !self.parts.iter().any(|(name, ..)| *name == "format") {
            let (count, names) = (plural(self.arrays.len(), "array"), self.arrays.join(", "));
            let message = format!("an archive of NumPy with {count} ({names}), no sparse matrix");
            return Err(Error::input(message)
                .in_file(&self.name)
                .hint("`scipy.sparse.save_npz` writes one; a vector is saved alone, as `.npy`"));
        }
        let mut array = self.array("format")?;
        let word = array.head.string(&mut array.numbers);
        word.map_err(|fault| fault.of(&self.name, "`format.npy`: "))
    }

    fn shape(&self) -> Result<[usize; 2]> {
        let array = self.array("shape")?;
        let [dimensions] = array.head.shape[..] else {
            let message = format!("an array of shape {}", array.head.shape_text());
            return Err(array.fault(message.into()));
        };
        if dimensions != 2 {
            let message =
                format!("a sparse array of {}, not a matrix", plural(dimensions, "dimension"));
            return Err(array.fault(message.into()));
        }
        let sizes = array.indices(u32::MAX as usize)?;
        Ok([sizes[0] as usize, sizes[1] as usize])
    }

    /// Starts of `count` rows and the end of the last, with as many columns and values as it says or more.
    fn compressed(&self, [count, other]: [usize; 2]) -> Result<[Vec<u32>; 2]> {
        let array = self.array("indptr")?;
        array.check_length(count + 1)?;
        let starts = array.indices(u32::MAX as usize)?;
        if let Some(at) = starts.windows(2).position(|two| two[0] > two[1]) {
            let (from, to) = (starts[at], starts[at + 1]);
            let message = format!("`indptr.npy`: decreases from {from} to {to} at number {at}");
            return Err(Error::input(message));
        }
        if starts[0] != 0 {
            return Err(Error::input(format!("`indptr.npy`: begins with {}, not 0", starts[0])));
        }
        let indices = self.array("indices")?.indices(other)?;
        if starts[count] as usize > indices.len() {
            let (end, length) = (starts[count], indices.len());
            let message = format!("`indptr.npy`: ends with {end}, and there are {length} indices");
            return Err(Error::input(message));
        }
        Ok([starts, indices])
    }

    /// Values, as many as there are `indices`.
    fn values(&self, indices: usize) -> Result<Vec<f64>> {
        let array = self.array("data")?;
        array.check_length(indices)?;
        array.reals()
    }

    fn rows(&self, shape: [usize; 2]) -> Result<Matrix> {
        let [starts, columns] = self.compressed(shape)?;
        let values = self.values(columns.len())?;
        of_rows(shape, starts, columns, values)
    }

    fn columns(&self, [rows, cols]: [usize; 2]) -> Result<Matrix> {
        let [starts, of_entries] = self.compressed([cols, rows])?;
        let values = self.values(of_entries.len())?;
        let mut gather = Gather::new([rows, cols], values.len())?;
        for (col, ends) in starts.windows(2).enumerate() {
            for at in ends[0] as usize..ends[1] as usize {
                gather.push(of_entries[at], col as u32, values[at])?;
            }
        }
        gather.finish()
    }

    fn entries(&self, [rows, cols]: [usize; 2]) -> Result<Matrix> {
        let of_rows = self.array("row")?.indices(rows)?;
        let array = self.array("col")?;
        array.check_length(of_rows.len())?;
        let of_cols = array.indices(cols)?;
        let values = self.values(of_rows.len())?;
        let mut gather = Gather::new([rows, cols], values.len())?;
        for ((row, col), value) in of_rows.into_iter().zip(of_cols).zip(values) {
            gather.push(row, col, value)?;
        }
        gather.finish()
    }

    fn blocks(&self, [rows, cols]: [usize; 2]) -> Result<Matrix> {
        let array = self.array("data")?;
        let &[count, high, wide] = &array.head.shape[..] else {
            let message = format!("an array of shape {}, not of blocks", array.head.shape_text());
            return Err(array.fault(message.into()));
        };
        if high == 0 || wide == 0 || rows % high != 0 || cols % wide != 0 {
            let message = format!("blocks of {high} x {wide} in a matrix of {rows} x {cols}");
            return Err(array.fault(message.into()));
        }
        let fortran = array.head.fortran;
        let values = array.reals()?;
        let [starts, of_blocks] = self.compressed([rows / high, cols / wide])?;
        if of_blocks.len() != count {
            let message = format!("`indices.npy`: {} numbers for {count} blocks", of_blocks.len());
            return Err(Error::input(message));
        }
        let place = |block: usize, i: usize, j: usize| {
            if fortran { block + count * (i + high * j) } else { (block * high + i) * wide + j }
        };
        let mut gather = Gather::new([rows, cols], values.len())?;
        for (block_row, ends) in starts.windows(2).enumerate() {
            for i in 0..high {
                for block in ends[0] as usize..ends[1] as usize {
                    for j in 0..wide {
                        let (row, col) =
                            (block_row * high + i, of_blocks[block] as usize * wide + j);
                        gather.push(row as u32, col as u32, values[place(block, i, j)])?;
                    }
                }
            }
        }
        gather.finish()
    }

    fn diagonals(&self, [rows, cols]: [usize; 2]) -> Result<Matrix> {
        let mut offsets = Vec::new();
        self.array("offsets")?.each(|number| {
            offsets.push(number.whole().ok_or("numbers that are no integers")?);
            Ok(())
        })?;
        let array = self.array("data")?;
        let &[count, width] = &array.head.shape[..] else {
            let message =
                format!("an array of shape {}, not of diagonals", array.head.shape_text());
            return Err(array.fault(message.into()));
        };
        if count != offsets.len() {
            let message =
                format!("{} for {}", plural(count, "diagonal"), plural(offsets.len(), "offset"));
            return Err(array.fault(message.into()));
        }
        let fortran = array.head.fortran;
        let values = array.reals()?;
        let mut gather = Gather::new([rows, cols], values.len())?;
        let mut zeros = 0;
        for (diagonal, &offset) in offsets.iter().enumerate() {
            for col in 0..width.min(cols) {
                let row =
                    (col as i64).checked_sub(offset).and_then(|row| usize::try_from(row).ok());
                let Some(row) = row.filter(|&row| row < rows) else { continue };
                let at = if fortran { diagonal + count * col } else { diagonal * width + col };
                if values[at] == 0.0 {
                    zeros += 1;
                } else {
                    gather.push(row as u32, col as u32, values[at])?;
                }
            }
        }
        let mut matrix = gather.finish()?;
        matrix.remarks.extend(zeros_left_out(zeros, "stored diagonals"));
        Ok(matrix)
    }
}

impl Array<'_> {
    fn fault(&self, fault: Fault) -> Error {
        fault.of(self.file, &format!("`{}.npy`: ", self.part))
    }

    /// How many numbers it has, no more than its bytes can hold.
    fn count(&self) -> Result<usize> {
        let backed = npy::check_backed(&self.head, Some(self.most));
        let count = backed.and_then(|()| Ok(self.head.count()?));
        count.map_err(|fault| self.fault(fault))
    }

    /// Refuses an array that is not one of `length` numbers.
    fn check_length(&self, length: usize) -> Result<()> {
        if self.head.shape == [length] {
            return Ok(());
        }
        let shape = self.head.shape_text();
        Err(self.fault(format!("an array of shape {shape}, not ({length},)").into()))
    }

    fn each(mut self, take: impl FnMut(Number) -> Result<(), Fault>) -> Result<()> {
        let read = self.head.numbers(&mut self.numbers, take);
        read.map_err(|fault| self.fault(fault))
    }

    /// The numbers of an array of one dimension, which are integers from 0 to below `end`, or to [`u32::MAX`].
    fn indices(self, end: usize) -> Result<Vec<u32>> {
        let count = self.count()?;
        if self.head.shape.len() != 1 {
            let shape = self.head.shape_text();
            return Err(
                self.fault(format!("an array of shape {shape}, not of one dimension").into())
            );
        }
        let mut all = room(count)?;
        let last = if end == u32::MAX as usize { end } else { end.saturating_sub(1) };
        self.each(|number| {
            let index = number.whole().ok_or("numbers that are no integers")?;
            if index < 0 || index > last as i64 {
                return Err(format!("number {} is {index}, outside 0 to {last}", all.len()).into());
            }
            all.push(index as u32);
            Ok(())
        })?;
        Ok(all)
    }

    fn reals(self) -> Result<Vec<f64>> {
        let count = self.count()?;
        let mut all = room(count)?;
        self.each(|number| {
            all.push(number.real());
            Ok(())
        })?;
        Ok(all)
    }
}

/// Writes a matrix as `scipy.sparse.save_npz` does, compressed; the file appears whole or not at all.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(path: &Path, matrix: &Csr) -> Result<()> {
    market::atomically(path, |out| {
        let mut zip = ZipArchiveWriter::new(out);
        let short = i32::try_from(matrix.nnz().max(matrix.cols())).is_ok();
        for part in ["indices", "indptr"] {
            let numbers = if part == "indices" { matrix.col_ind() } else { matrix.row_ptr() };
            if short {
                add(&mut zip, part, numbers.iter().map(|&i| i as i32))?;
            } else {
                add(&mut zip, part, numbers.iter().map(|&i| i64::from(i)))?;
            }
        }
        member(&mut zip, "format", |out| npy::write_word(out, "csr"))?;
        add(&mut zip, "shape", [matrix.rows() as i64, matrix.cols() as i64].into_iter())?;
        add(&mut zip, "data", matrix.values().iter().copied())?;
        zip.finish().map(drop).map_err(std::io::Error::other)
    })
}

fn add<W: Write, T: Element>(
    zip: &mut ZipArchiveWriter<W>,
    part: &str,
    numbers: impl ExactSizeIterator<Item = T>,
) -> std::io::Result<()> {
    member(zip, part, |out| npy::write(out, numbers))
}

fn member<W: Write>(
    zip: &mut ZipArchiveWriter<W>,
    part: &str,
    content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let io = std::io::Error::other::<rawzip::Error>;
    let name = format!("{part}.npy");
    let file = zip.new_file(&name).compression_method(CompressionMethod::DEFLATE);
    let (mut entry, config) = file.start().map_err(io)?;
    let packed = DeflateEncoder::new(&mut entry, flate2::Compression::default());
    let mut out = std::io::BufWriter::with_capacity(1 << 16, config.wrap(packed));
    content(&mut out)?;
    let out = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    let (packed, descriptor) = out.finish().map_err(io)?;
    packed.finish()?;
    entry.finish(descriptor).map(drop).map_err(io)
}
