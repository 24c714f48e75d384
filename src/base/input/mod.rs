//! Files that are read: what may be opened and how much of it; Ctrl-C and a bar on the way.

mod compression;
mod copied;
mod opened;
mod progress;
mod stdin;
mod wait;
mod zstd;

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::interrupt;
use crate::base::interrupt::Reading;

pub(crate) use compression::{Bytes, Compression, content_error};
pub(crate) use opened::Opened;
pub(crate) use progress::{bars, say, say_once, silence};
pub(crate) use stdin::{NAME as STDIN_NAME, is_stdin};

use progress::Progress;

/// The bytes of a file, a pipe or standard input. Reading ends with an error when the user asks to stop,
/// also while a pipe has nothing to offer, and is shown where it takes long.
pub(crate) struct Stream {
    file: File,
    progress: Progress,
    size: Option<u64>,
    /// Whether a read may wait for another process.
    waits: bool,
    _reading: Reading,
}

impl Stream {
    /// Opens `path`; `-` is standard input.
    ///
    /// # Errors
    /// When there is no such file, or it is a folder.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if is_stdin(path) {
            return stdin::open();
        }
        let cannot = |e: &io::Error| Error::io("open", path, e);
        let kind = std::fs::metadata(path).map_err(|e| cannot(&e))?;
        if kind.is_dir() {
            return Err(Error::input("is a folder, not a file").in_file(path.display().to_string()));
        }
        let file = wait::open(path, &kind).map_err(|e| cannot(&e))?;
        Ok(Self::of(file, &path.display().to_string()))
    }

    /// Takes an open file, from where it stands.
    fn of(file: File, name: &str) -> Self {
        let kind = file.metadata().ok();
        let size = kind.as_ref().filter(|k| k.is_file()).map(Metadata::len);
        let waits = kind.is_none_or(|k| !k.is_file());
        let progress = Progress::new(name, size);
        Self { file, progress, size, waits, _reading: Reading::begin() }
    }

    /// Bytes of a regular file.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        check_stopped()?;
        if self.waits {
            wait::for_bytes(&self.file, &mut || {
                self.progress.advance(0);
                check_stopped()
            })?;
        }
        let count = self.file.read(bytes)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}

impl Seek for Stream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// What an error of reading holds after a request to stop.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct Interrupted;

/// An error when the user asked to stop.
pub(crate) fn check_stopped() -> io::Result<()> {
    // of another kind than `Interrupted`, after which readers try again
    if interrupt::requested() { Err(io::Error::other(Interrupted)) } else { Ok(()) }
}

/// That reading `name` was stopped, where `error` comes from a request to stop.
pub(crate) fn stopped(name: &str, error: &io::Error) -> Option<Error> {
    let stopped =
        error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Interrupted>);
    stopped.then(|| Error::stopped(format!("stopped while reading `{name}`")))
}

/// The error for `error` while `path` was read.
pub(crate) fn read_error(path: &Path, error: &io::Error) -> Error {
    stopped(&path.display().to_string(), error).unwrap_or_else(|| Error::io("read", path, error))
}

/// All bytes of a file or a pipe, at most `most` of them; `what` it should be, for messages.
///
/// # Errors
/// When it cannot be read, is a folder or a device, or holds more.
pub(crate) fn whole(path: &Path, what: &str, most: u64) -> Result<Vec<u8>> {
    let kind = std::fs::metadata(path).map_err(|e| Error::io("read", path, &e))?;
    let named = |message: String| Error::input(message).in_file(path.display().to_string());
    if let Some(other) = other_than_bytes(kind.file_type()) {
        return Err(named(format!("is {other}, not {what}")));
    }
    let too_long = || {
        let mib = most >> 20;
        named(format!("is larger than {mib} MiB, the limit of {what}"))
    };
    if kind.is_file() && kind.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let read = Stream::open(path)?.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|e| read_error(path, &e))?;
    if bytes.len() as u64 > most {
        return Err(too_long());
    }
    Ok(bytes)
}

/// What something is that has no end, or no bytes.
fn other_than_bytes(kind: FileType) -> Option<&'static str> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_char_device() || kind.is_block_device() {
            return Some("a device");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
    }
    kind.is_dir().then_some("a folder")
}

/// Refuses text without line ends: `most` bytes and no line feed among them.
pub(crate) struct Lines<R> {
    inner: R,
    most: usize,
    since: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(inner: R, most: usize) -> Self {
        Self { inner, most, since: 0 }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.since = match memchr::memrchr(b'\n', &bytes[..count]) {
            Some(end) => count - end - 1,
            None => self.since + count,
        };
        if self.since > self.most {
            let message = format!("a line is longer than {} bytes", self.most);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_pipes_are_read_up_to_the_limit() {
        let message = |path: &str, most| {
            whole(Path::new(path), "an experiment", most).unwrap_err().to_string()
        };
        assert_eq!(message("/dev/zero", 1 << 20), "/dev/zero: is a device, not an experiment");
        assert_eq!(message("/", 1 << 20), "/: is a folder, not an experiment");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, vec![b' '; (1 << 20) + 1]).unwrap();
        let name = path.display().to_string();
        let too_large = format!("{name}: is larger than 1 MiB, the limit of an experiment");
        assert_eq!(message(&name, 1 << 20), too_large);
        assert_eq!(whole(&path, "an experiment", (1 << 20) + 1).unwrap().len(), (1 << 20) + 1);
        let link = folder.path().join("zero.toml");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let name = link.display().to_string();
        assert_eq!(message(&name, 1 << 20), format!("{name}: is a device, not an experiment"));

        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for (length, most, fits) in [(100, 100, true), (101, 100, false), (0, 100, true)] {
            let to = pipe.clone();
            let writer = std::thread::spawn(move || {
                use std::io::Write;
                let mut to = std::fs::OpenOptions::new().write(true).open(to).unwrap();
                // the reader may go away
                let _ = to.write_all(&vec![b'x'; length]);
            });
            let read = whole(&pipe, "an experiment", most);
            assert_eq!(read.ok().map(|b| b.len()), fits.then_some(length), "{length}");
            writer.join().unwrap();
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let read = |text: Vec<u8>| {
            let mut all = Vec::new();
            Lines::new(io::Cursor::new(text), 10).read_to_end(&mut all).map(|_| all.len())
        };
        assert_eq!(read(b"0123456789\n0123456789\n".to_vec()).unwrap(), 22);
        let error = read(vec![b'x'; 1000]).unwrap_err();
        assert_eq!(error.to_string(), "a line is longer than 10 bytes");
    }
}
