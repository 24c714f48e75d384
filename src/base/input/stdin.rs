//! Standard input in place of a file: `-`.
//!
//! A pipe gives its bytes once, and a matrix may be read again, by another case or because its entries are
//! out of order. So what comes through a pipe is first copied to a file without a name.

use std::fs::File;
use std::io::{self, IsTerminal, Seek, SeekFrom};
use std::path::Path;
use std::sync::Mutex;

use super::Stream;
use super::copied::copied;
use crate::base::error::{Error, Result};

/// What standard input is called in messages.
pub(crate) const NAME: &str = "standard input";

/// Whether `path` stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What standard input held, and where that begins in its file.
static KEPT: Mutex<Option<(File, u64)>> = Mutex::new(None);

/// Standard input from where it stood at first.
///
/// # Errors
/// When it is a terminal, or cannot be copied.
pub(super) fn open() -> Result<Stream> {
    let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if kept.is_none() {
        *kept = Some(keep()?);
    }
    let (file, start) = kept.as_ref().expect("kept above");
    let cannot = |e: io::Error| Error::io("read", Path::new(NAME), &e);
    let mut file = file.try_clone().map_err(cannot)?;
    file.seek(SeekFrom::Start(*start)).map_err(cannot)?;
    Ok(Stream::of(file, NAME))
}

/// A file with what standard input holds, and where that begins.
fn keep() -> Result<(File, u64)> {
    if io::stdin().is_terminal() {
        return Err(Error::input("standard input is a terminal, and `-` reads a file from it")
            .hint("pipe it in: `zcat a.mtx.gz | bilu-bench ...`"));
    }
    let mut input = own().map_err(|e| Error::io("read", Path::new(NAME), &e))?;
    if input.metadata().is_ok_and(|m| m.is_file())
        && let Ok(start) = input.stream_position()
    {
        return Ok((input, start));
    }
    let mut from = Stream::of(input, NAME);
    Ok((copied(NAME, &mut from)?.file, 0))
}

/// Standard input without the buffer of the standard library.
#[cfg(unix)]
fn own() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn own() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}
