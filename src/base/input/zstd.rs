//! Files of Zstandard: frames one behind the other.

use std::error::Error as _;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The content of all frames. A window of at most 128 MiB is kept, as the program `zstd` does without `--long`.
pub(super) struct Frames<R> {
    source: BufReader<R>,
    frame: FrameDecoder,
    inside: bool,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source: BufReader::new(source), frame: FrameDecoder::new(), inside: false }
    }

    /// Goes to the next frame; `false` at the end.
    fn enter(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.source) {
                Ok(()) => {
                    self.inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.source).take(length), &mut io::sink())? < length {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(told(error)),
            }
        }
        Ok(false)
    }

    /// Compares the checksum of a frame that has ended.
    fn leave(&mut self) -> io::Result<()> {
        self.inside = false;
        let written = self.frame.get_checksum_from_data();
        if written.is_some() && written != self.frame.get_calculated_checksum() {
            return Err(io::Error::new(ErrorKind::InvalidData, "the checksum is wrong"));
        }
        Ok(())
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside && !self.enter()? {
                return Ok(0);
            }
            while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.frame.decode_blocks(&mut self.source, one).map_err(told)?;
            }
            match self.frame.read(bytes)? {
                0 => self.leave()?,
                count => return Ok(count),
            }
        }
    }
}

/// An error of the decoder as one of reading: a request to stop and an early end are told apart.
fn told(error: FrameDecoderError) -> io::Error {
    if let Err(stopped) = super::check_stopped() {
        return stopped;
    }
    if matches!(error, FrameDecoderError::WindowSizeTooBig { .. }) {
        return io::Error::new(ErrorKind::OutOfMemory, error);
    }
    let mut cause = error.source();
    while let Some(inner) = cause {
        let ends = |e: &io::Error| e.kind() == ErrorKind::UnexpectedEof;
        if inner.downcast_ref().is_some_and(ends) {
            return ErrorKind::UnexpectedEof.into();
        }
        cause = inner.source();
    }
    io::Error::new(ErrorKind::InvalidData, "a frame cannot be decoded")
}
