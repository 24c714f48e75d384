//! How files are compressed, told by their first bytes and by their names.

use std::io::{self, BufReader, Read};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::zstd::Frames;
use crate::base::error::Error;

/// A reader of a file's bytes.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// A way to compress or to pack files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compression {
    /// What it is called.
    name: &'static str,
    /// Ending of its files.
    ending: &'static str,
    /// First bytes of its files, and where they stand.
    magic: (usize, &'static [u8]),
    how: How,
}

/// What becomes of such a file.
#[derive(Clone, Copy, Debug)]
enum How {
    /// It is read; the most bytes of content for each of the file, where there is a bound.
    Read(fn(Bytes) -> Bytes, Option<u64>),
    /// It is refused, and this command unpacks it.
    Unpack(&'static str),
}

/// Bytes from the start of a file that tell.
pub(crate) const START: usize = 512;

/// Memory for the dictionary of xz in KiB: that of `xz -9` is 64 MiB.
const DICTIONARY: u32 = 256 << 10;

const fn known(
    name: &'static str,
    ending: &'static str,
    magic: (usize, &'static [u8]),
    how: How,
) -> Compression {
    Compression { name, ending, magic, how }
}

const KNOWN: [Compression; 9] = [
    // a byte of DEFLATE stands for 1032 at most
    known("gzip", ".gz", (0, b"\x1f\x8b"), How::Read(gzip, Some(1032))),
    known("xz", ".xz", (0, b"\xfd7zXZ\0"), How::Read(xz, None)),
    known("Zstandard", ".zst", (0, b"\x28\xb5\x2f\xfd"), How::Read(zstd, None)),
    known("bzip2", ".bz2", (0, b"BZh"), How::Read(bzip2, None)),
    known("zip", ".zip", (0, b"PK\x03\x04"), How::Unpack("unzip")),
    known("7-Zip", ".7z", (0, b"7z\xbc\xaf\x27\x1c"), How::Unpack("7z x")),
    known("LZ4", ".lz4", (0, b"\x04\x22\x4d\x18"), How::Unpack("lz4 -dk")),
    known("compress", ".Z", (0, b"\x1f\x9d"), How::Unpack("uncompress -k")),
    known("tar", ".tar", (257, b"ustar"), How::Unpack("tar -xf")),
];

fn gzip(bytes: Bytes) -> Bytes {
    Box::new(MultiGzDecoder::new(bytes))
}

fn xz(bytes: Bytes) -> Bytes {
    Box::new(XzReader::new_mem_limit(BufReader::new(bytes), true, DICTIONARY))
}

fn zstd(bytes: Bytes) -> Bytes {
    Box::new(Frames::new(bytes))
}

fn bzip2(bytes: Bytes) -> Bytes {
    Box::new(MultiBzDecoder::new(bytes))
}

impl Compression {
    /// The one whose files begin with these bytes.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let begins = |c: &&Self| {
            let (at, magic) = c.magic;
            start.get(at..).is_some_and(|rest| rest.starts_with(magic))
        };
        KNOWN.iter().find(begins).copied()
    }

    /// The one whose files have names like `path`.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy();
        KNOWN.iter().find(|c| name.ends_with(c.ending)).copied()
    }

    /// Endings of those that are read, or of those that are not.
    pub(crate) fn endings(read: bool) -> impl Iterator<Item = &'static str> {
        KNOWN.iter().filter(move |c| c.is_read() == read).map(|c| c.ending)
    }

    /// Whether such files are read.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.how, How::Read(..))
    }

    /// The content of a file, where such files are read, and the most bytes of it for each of the file.
    pub(super) fn decoded(&self, bytes: Bytes) -> Result<(Bytes, Option<u64>), Bytes> {
        match self.how {
            How::Read(decode, most) => Ok((decode(bytes), most)),
            How::Unpack(_) => Err(bytes),
        }
    }

    /// That a file cannot be read because of it.
    pub(crate) fn refused(self, file: &str) -> Error {
        let Self { name, ending, how, .. } = self;
        let what = match ending {
            ".tar" | ".zip" | ".7z" => format!("is an archive of {name}"),
            _ => format!("is compressed by {name}"),
        };
        let error = Error::input(format!("{what}, which is not read here")).in_file(file);
        let outer = KNOWN.iter().find(|c| c.is_read() && file.ends_with(c.ending));
        match how {
            How::Unpack(_) if outer.is_some() => error.hint(
                "unpack the file first: files of NumPy (.npz) are archives, and read as they are",
            ),
            How::Unpack(command) => error.hint(format!(
                "unpack it: `{command} {file}`; of compressions gzip, xz, zstd and bzip2 are read"
            )),
            // one within another
            How::Read(..) => error.hint("unpack it"),
        }
    }
}

/// The error for `error` while the content of `name` was read; `place` is where, for other errors than damage.
pub(crate) fn content_error(name: &str, place: &str, error: &io::Error) -> Error {
    if let Some(stopped) = super::stopped(name, error) {
        return stopped;
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::input("the compressed data end too early")
            .in_file(name)
            .hint("the file is incomplete, or bytes were added behind it: fetch it again"),
        io::ErrorKind::OutOfMemory => {
            Error::input(format!("the compressed data need too much memory: {error}"))
                .in_file(name)
                .hint("unpack the file")
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Error::input(format!("the compressed data are damaged: {error}"))
                .in_file(name)
                .hint("fetch the file again")
        }
        _ => Error::input(format!("cannot read{place}: {error}")).in_file(name),
    }
}
