//! How files are compressed, told by their first bytes and by their names.

use std::path::Path;

use crate::base::error::Error;

/// A way to compress or to pack files that is not read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compression {
    /// What it is called.
    name: &'static str,
    /// Ending of its files.
    ending: &'static str,
    /// First bytes of its files, and where they stand.
    magic: (usize, &'static [u8]),
    /// The command that unpacks a file.
    unpack: &'static str,
}

/// Bytes from the start of a file that tell.
pub(crate) const START: usize = 512;

const fn known(
    name: &'static str,
    ending: &'static str,
    magic: (usize, &'static [u8]),
    unpack: &'static str,
) -> Compression {
    Compression { name, ending, magic, unpack }
}

const KNOWN: [Compression; 8] = [
    known("xz", ".xz", (0, b"\xfd7zXZ\0"), "xz -dk"),
    known("zip", ".zip", (0, b"PK\x03\x04"), "unzip"),
    known("bzip2", ".bz2", (0, b"BZh"), "bzip2 -dk"),
    known("Zstandard", ".zst", (0, b"\x28\xb5\x2f\xfd"), "zstd -dk"),
    known("7-Zip", ".7z", (0, b"7z\xbc\xaf\x27\x1c"), "7z x"),
    known("LZ4", ".lz4", (0, b"\x04\x22\x4d\x18"), "lz4 -dk"),
    known("compress", ".Z", (0, b"\x1f\x9d"), "uncompress -k"),
    known("tar", ".tar", (257, b"ustar"), "tar -xf"),
];

/// First bytes of a gzipped file.
pub(crate) const GZIP: &[u8] = &[0x1f, 0x8b];

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

    /// Endings of all of them.
    pub(crate) fn endings() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|c| c.ending)
    }

    /// That a file cannot be read because of it.
    pub(crate) fn refused(self, file: &str) -> Error {
        let Self { name, ending, unpack, .. } = self;
        let what = match ending {
            ".tar" | ".zip" | ".7z" => format!("is an archive of {name}"),
            _ => format!("is compressed by {name}"),
        };
        Error::input(format!("{what}, which is not read here"))
            .in_file(file)
            .hint(format!("unpack it (`{unpack} {file}`); plain and gzipped files are read"))
    }
}
