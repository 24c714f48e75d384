//! Parsed matrices kept on disk, so that a compressed file is inflated and parsed once.
//!
//! The key is the SHA-256 of the file's bytes with the way it is read, so a changed file is
//! never mistaken. Only compressed files are kept. For them the hash runs over the compressed bytes and
//! inflating is saved: a gzipped file of 18 MB loads in a seventh of the time. Of a plain file the hash
//! alone takes 0.4 of the time of parsing it on one thread (`cargo bench --bench market` prints
//! both), and parsing is spread over threads while hashing is not. The cache never causes an error:
//! what is damaged or cannot be written is left out, with a remark.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use directories::ProjectDirs;
use flate2::Crc;
use sha2::{Digest, Sha256};

use super::Csr;
use super::file;
use super::read::{Matrix, Symmetry};
use crate::base::choices::ReadAs;
use crate::base::error::Result;
use crate::base::files::temporary_in;
use crate::base::input::{Compression, check_stopped};
use crate::base::measure::check_memory;
use crate::base::parse::choice_name;

/// Environment variable with the folder of the cache, or `off`.
pub(crate) const CACHE: &str = "BILU_BENCH_CACHE";

/// First bytes of an entry; the digit is the version of the format.
const MAGIC: [u8; 8] = *b"BILUCSR1";
/// Bytes before the remarks: magic, symmetry, rows, columns, entries, length of the remarks.
const HEADER: usize = 8 + 5 * 8;
/// Ending of entries.
const ENDING: &str = "csr";
/// Smaller files are parsed faster than they are worth keeping.
const SMALLEST: u64 = 128 << 10;
/// Bytes the cache may hold; the entries that were not used for longest are dropped.
const LARGEST: u64 = 4 << 30;

/// Where parsed matrices are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// The folder of `BILU_BENCH_CACHE`, else the user's cache folder.
    pub(crate) fn from_env() -> Self {
        match std::env::var_os(CACHE) {
            Some(value) if value == "off" => Self::off(),
            Some(value) if !value.is_empty() => Self::at(value),
            _ => Self {
                folder: ProjectDirs::from("", "", "bilu-bench").map(|d| d.cache_dir().into()),
            },
        }
    }

    /// No cache.
    pub fn off() -> Self {
        Self { folder: None }
    }

    /// A cache in `folder`, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// Its folder, which need not exist; `None` when there is no cache.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// As [`file::read_matrix`], from the cache where that holds the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_matrix(&self, path: &Path, read_as: ReadAs) -> Result<Matrix> {
        let Some(entry) = self.entry(path, read_as) else {
            return file::read_matrix(path, read_as);
        };
        let damaged = match load(&entry) {
            Ok(matrix) => return Ok(matrix),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(format!("cache entry not used: {error}")),
        };
        let mut matrix = file::read_matrix(path, read_as)?;
        let stored = store(&entry, &matrix).err();
        matrix.remarks.extend(damaged);
        matrix.remarks.extend(stored.map(|e| format!("cache not written: {e}")));
        Ok(matrix)
    }

    /// The entry for `path`, if that is a file worth keeping.
    fn entry(&self, path: &Path, read_as: ReadAs) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        // a pipe gives what is in it to who opens it first
        let meta = path.metadata().ok()?;
        let is_compressed = Compression::of_name(path).is_some_and(|c| c.is_read());
        if !is_compressed || !meta.is_file() || meta.len() < SMALLEST {
            return None;
        }
        let key = sha256(&mut File::open(path).ok()?).ok()?;
        Some(folder.join(format!("{key}-{}.{ENDING}", choice_name(&read_as))))
    }
}

/// SHA-256 of everything in `reader`, in hexadecimal digits.
pub(crate) fn sha256(reader: &mut impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 18];
    loop {
        // who reads the file next says so
        check_stopped()?;
        match reader.read(&mut block)? {
            0 => break,
            count => hasher.update(&block[..count]),
        }
    }
    Ok(hex(&hasher.finalize()))
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, b| {
        _ = write!(text, "{b:02x}");
        text
    })
}

/// Why an entry is not used.
pub(crate) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Reads an entry, checking length, checksum and the invariants of the matrix.
fn load(entry: &Path) -> io::Result<Matrix> {
    let file = File::open(entry)?;
    let length = file.metadata()?.len();
    let mut reader = Checked { inner: BufReader::with_capacity(1 << 18, &file), crc: Crc::new() };
    let mut header = [0; HEADER];
    reader.read_exact(&mut header)?;
    if header[..8] != MAGIC {
        return Err(damaged("another format or version"));
    }
    let number =
        |k: usize| u64::from_le_bytes(header[8 * k..8 * k + 8].try_into().expect("eight bytes"));
    let (symmetry, rows, cols, nnz, remarks) =
        (symmetry(number(1))?, number(2), number(3), number(4), number(5));
    let size = |count: u64, bytes: u64| count.checked_mul(bytes);
    let expected = size(rows.saturating_add(1), 4)
        .and_then(|s| s.checked_add(size(nnz, 12)?))
        .and_then(|s| s.checked_add(remarks))
        .and_then(|s| s.checked_add(HEADER as u64 + 4));
    if expected != Some(length) || rows > u64::from(u32::MAX) || cols > u64::from(u32::MAX) {
        return Err(damaged("its length is wrong"));
    }
    check_memory(length as usize).map_err(|e| io::Error::other(e.to_string()))?;
    let mut text = vec![0; remarks as usize];
    reader.read_exact(&mut text)?;
    let row_ptr = read_array(&mut reader, rows as usize + 1, u32::from_le_bytes)?;
    let col_ind = read_array(&mut reader, nnz as usize, u32::from_le_bytes)?;
    let values = read_array(&mut reader, nnz as usize, f64::from_le_bytes)?;
    let sum = reader.crc.sum();
    let mut written = [0; 4];
    reader.read_exact(&mut written)?;
    if u32::from_le_bytes(written) != sum {
        return Err(damaged("its checksum is wrong"));
    }
    let text = String::from_utf8(text).map_err(|_| damaged("its remarks are no text"))?;
    let matrix = Csr::new(rows as usize, cols as usize, row_ptr, col_ind, values)
        .map_err(|e| damaged(e.message()))?;
    // the last use, for the choice of what to drop
    _ = file.set_modified(SystemTime::now());
    Ok(Matrix { matrix, symmetry, remarks: text.lines().map(str::to_owned).collect() })
}

/// Writes an entry beside its final name and moves it there.
fn store(entry: &Path, matrix: &Matrix) -> io::Result<()> {
    let folder = entry.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let a = &matrix.matrix;
    let file = temporary_in(folder)?;
    let mut out =
        Checked { inner: BufWriter::with_capacity(1 << 18, file.as_file()), crc: Crc::new() };
    let remarks = matrix.remarks.join("\n");
    out.write_all(&MAGIC)?;
    let symmetry = SYMMETRIES.iter().position(|s| *s == matrix.symmetry).unwrap_or(0);
    for number in [symmetry, a.rows(), a.cols(), a.nnz(), remarks.len()] {
        out.write_all(&(number as u64).to_le_bytes())?;
    }
    out.write_all(remarks.as_bytes())?;
    write_array(&mut out, a.row_ptr(), |v| v.to_le_bytes())?;
    write_array(&mut out, a.col_ind(), |v| v.to_le_bytes())?;
    write_array(&mut out, a.values(), |v| v.to_le_bytes())?;
    let sum = out.crc.sum();
    out.write_all(&sum.to_le_bytes())?;
    out.flush()?;
    drop(out);
    file.persist(entry).map_err(|e| e.error)?;
    prune(folder, ENDING, LARGEST)
}

/// In the order of their numbers in an entry.
const SYMMETRIES: [Symmetry; 3] = [Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric];

fn symmetry(number: u64) -> io::Result<Symmetry> {
    let known = usize::try_from(number).ok().and_then(|n| SYMMETRIES.get(n));
    known.copied().ok_or_else(|| damaged("unknown symmetry"))
}

/// Drops the entries, files with that `ending`, that were not used for longest until at most
/// `largest` bytes are left.
pub(crate) fn prune(folder: &Path, ending: &str, largest: u64) -> io::Result<()> {
    let mut entries = Vec::new();
    for file in std::fs::read_dir(folder)?.flatten() {
        if file.path().extension() == Some(OsStr::new(ending)) {
            let meta = file.metadata()?;
            entries.push((meta.modified()?, meta.len(), file.path()));
        }
    }
    entries.sort();
    let mut total: u64 = entries.iter().map(|e| e.1).sum();
    for (_, length, path) in entries {
        if total <= largest {
            break;
        }
        std::fs::remove_file(path)?;
        total -= length;
    }
    Ok(())
}

/// A stream whose bytes are summed on the way.
struct Checked<T> {
    inner: T,
    crc: Crc,
}

impl<T: Read> Checked<T> {
    fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.crc.update(bytes);
        Ok(())
    }
}

impl<T: Write> Checked<T> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        self.inner.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Values converted at a time.
const STEP: usize = 1 << 14;

fn read_array<V, const N: usize>(
    reader: &mut Checked<impl Read>,
    count: usize,
    value: impl Fn([u8; N]) -> V,
) -> io::Result<Vec<V>> {
    let mut values = Vec::with_capacity(count);
    let mut block = vec![0; N * STEP.min(count)];
    while values.len() < count {
        let bytes = &mut block[..N * STEP.min(count - values.len())];
        reader.read_exact(bytes)?;
        values.extend(bytes.as_chunks().0.iter().map(|b| value(*b)));
    }
    Ok(values)
}

fn write_array<V, const N: usize>(
    out: &mut Checked<impl Write>,
    values: &[V],
    bytes: impl Fn(&V) -> [u8; N],
) -> io::Result<()> {
    let mut block = Vec::with_capacity(N * STEP);
    for values in values.chunks(STEP) {
        block.clear();
        for v in values {
            block.extend_from_slice(&bytes(v));
        }
        out.write_all(&block)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// A symmetric gzipped file that is large enough to be kept, with one duplicate.
    fn file(folder: &Path) -> PathBuf {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let n = 20_000;
        let mut text =
            format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n1 1 1\n", n + 1);
        for i in 1..=n {
            _ = writeln!(text, "{i} {} {}", rng.random_range(1..=i), rng.random::<f64>());
        }
        let path = folder.join("a.mtx.gz");
        let out = File::create(&path).unwrap();
        let mut gz = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap();
        path
    }

    fn entries(folder: &Path) -> Vec<PathBuf> {
        let mut all: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
        all.sort();
        all
    }

    #[test]
    fn second_read_is_the_same_and_ways_of_reading_are_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let cache = Cache::at(folder.path().join("cache"));
        let mut sizes = Vec::new();
        for read_as in [ReadAs::Expanded, ReadAs::AsStored] {
            let parsed = super::file::read_matrix(&path, read_as).unwrap();
            assert_eq!(parsed.remarks, ["1 duplicate entry summed"]);
            assert_eq!(cache.read_matrix(&path, read_as).unwrap(), parsed);
            let entry = cache.entry(&path, read_as).unwrap();
            assert_eq!(load(&entry).unwrap(), parsed);
            assert_eq!(cache.read_matrix(&path, read_as).unwrap(), parsed);
            sizes.push(parsed.matrix.nnz());
        }
        assert!(sizes[0] > sizes[1]);
        assert_eq!(entries(&folder.path().join("cache")).len(), 2);
    }

    #[test]
    fn damaged_entries_are_bypassed_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let cache = Cache::at(folder.path().join("cache"));
        let parsed = cache.read_matrix(&path, ReadAs::Expanded).unwrap();
        let entry = cache.entry(&path, ReadAs::Expanded).unwrap();
        let good = std::fs::read(&entry).unwrap();
        let flipped = |at: usize| {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            bytes
        };
        for (bytes, why) in [
            (flipped(0), "another format or version"),
            (flipped(8 + 8), "its length is wrong"),
            (flipped(8 + 1), "unknown symmetry"),
            (flipped(good.len() / 2), "its checksum is wrong"),
            (good[..good.len() - 1].to_vec(), "its length is wrong"),
            (Vec::new(), "failed to fill whole buffer"),
        ] {
            std::fs::write(&entry, bytes).unwrap();
            let mut read = cache.read_matrix(&path, ReadAs::Expanded).unwrap();
            assert_eq!(read.remarks.pop().unwrap(), format!("cache entry not used: {why}"));
            assert_eq!(read, parsed);
            assert_eq!(std::fs::read(&entry).unwrap(), good);
        }
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_a_remark() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let cache = Cache::at(path.join("below a file"));
        let read = cache.read_matrix(&path, ReadAs::Expanded).unwrap();
        let remark = read.remarks.last().unwrap();
        assert!(remark.starts_with("cache not written: "), "{remark}");
        assert!(Cache::off().entry(&path, ReadAs::Expanded).is_none());
    }

    #[test]
    fn the_oldest_entries_are_dropped_first() {
        let folder = tempfile::tempdir().unwrap();
        for (age, name) in [(30, "a.csr"), (20, "b.csr"), (10, "c.csr"), (40, "kept.txt")] {
            let file = File::create(folder.path().join(name)).unwrap();
            (&file).write_all(&[0; 100]).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        prune(folder.path(), ENDING, 200).unwrap();
        let left = ["b.csr", "c.csr", "kept.txt"].map(|n| folder.path().join(n));
        assert_eq!(entries(folder.path()), left);
    }
}
