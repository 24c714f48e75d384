//! Files whose content is looked at before it is known what they are.

use std::io::{Cursor, Read};
use std::path::Path;

use super::compression::{Bytes, Compression, START, content_error};
use super::copied::copied;
use super::{STDIN_NAME, Stream, is_stdin};
use crate::base::error::{Error, Result};

/// A file that is open, decompressed where it is compressed in a way that is read.
pub(crate) struct Opened {
    name: String,
    /// First bytes of the content, which `rest` begins behind.
    start: Vec<u8>,
    rest: Rest,
    /// Bytes of the file, where they are known.
    size: Option<u64>,
    /// The most bytes of content for each of the file, where there is a bound.
    expansion: Option<u64>,
}

enum Rest {
    Plain(Stream),
    Other(Bytes),
}

impl Opened {
    /// Opens `path`; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be opened, is empty or compressed in a way that is not read.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = if is_stdin(path) { STDIN_NAME.to_owned() } else { path.display().to_string() };
        if path.is_dir() {
            return Err(Error::input("is a directory, not a file of a matrix")
                .in_file(name)
                .hint("name the file in it"));
        }
        let mut stream = Stream::open(path)?;
        let size = stream.size();
        let start = begin(&name, &mut stream)?;
        Self::decoded(name, start, Rest::Plain(stream), size)
    }

    /// Takes `reader`, whose content may be compressed; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn of(name: &str, mut reader: Bytes) -> Result<Self> {
        let start = begin(name, &mut reader)?;
        Self::decoded(name.into(), start, Rest::Other(reader), None)
    }

    fn decoded(name: String, start: Vec<u8>, rest: Rest, size: Option<u64>) -> Result<Self> {
        if start.is_empty() {
            return Err(Error::input("the file is empty").in_file(name));
        }
        let plain = Self { name, start, rest, size, expansion: Some(1) };
        let Some(compression) = Compression::of(&plain.start) else { return Ok(plain) };
        if !compression.is_read() {
            return Ok(plain);
        }
        let (name, size) = (plain.name.clone(), plain.size);
        let Ok((mut content, expansion)) = compression.decoded(plain.into_bytes()) else {
            unreachable!("it is read")
        };
        let start = begin(&name, &mut content)?;
        if let Some(within) = Compression::of(&start) {
            return Err(within.refused(&name));
        }
        Ok(Self { name, start, rest: Rest::Other(content), size, expansion })
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes of the content: [`START`] of them, or all.
    pub(crate) fn start(&self) -> &[u8] {
        &self.start
    }

    /// Whether it is compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.expansion != Some(1)
    }

    /// The most bytes that the content can have, where there is a bound.
    pub(crate) fn most(&self) -> Option<u64> {
        Some(self.size?.saturating_mul(self.expansion?))
    }

    /// The content.
    pub(crate) fn into_bytes(self) -> Bytes {
        let start = Cursor::new(self.start);
        match self.rest {
            Rest::Plain(stream) => Box::new(start.chain(stream)),
            Rest::Other(bytes) => Box::new(start.chain(bytes)),
        }
    }

    /// The content with places to go to; that of a pipe is copied to a file without a name.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub(crate) fn into_file(self) -> Result<Stream> {
        let Self { name, start, rest, .. } = self;
        let start = Cursor::new(start);
        match rest {
            Rest::Plain(stream) if stream.size().is_some() => Ok(stream),
            Rest::Plain(stream) => copied(&name, &mut start.chain(stream)),
            Rest::Other(bytes) => copied(&name, &mut start.chain(bytes)),
        }
    }
}

/// The first bytes of `reader`.
fn begin(name: &str, reader: &mut impl Read) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let read = reader.take(START as u64).read_to_end(&mut start);
    read.map_err(|e| content_error(name, "", &e))?;
    Ok(start)
}
