//! Waiting for another process at the other end of a pipe, without being deaf to Ctrl-C.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens `path`, which is of this kind: a pipe without waiting for who writes to it.
pub(super) fn open(path: &Path, kind: &Metadata) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
        if kind.file_type().is_fifo() {
            options.custom_flags(libc::O_NONBLOCK);
        }
    }
    #[cfg(not(unix))]
    let _ = kind;
    options.open(path)
}

/// Returns when `file` has bytes or has ended; calls `meanwhile` ten times a second until then, and ends with
/// its error.
#[cfg(unix)]
pub(super) fn for_bytes(
    file: &File,
    meanwhile: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let turn = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    loop {
        let mut of = [PollFd::new(file, PollFlags::IN)];
        match poll(&mut of, Some(&turn)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => meanwhile()?,
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(not(unix))]
pub(super) fn for_bytes(_: &File, _: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
    Ok(())
}
