//! The text of a file as a stream of blocks cut at line ends, parsed in parallel.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::input;
use crate::base::input::{Bytes, Compression, Opened, content_error};
use crate::base::threads::Threads;

/// What some editors put before a text in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes a block is filled to, so that it stays in the second-level cache; a longer line is
/// refused.
const BLOCK: usize = 1 << 20;

/// Blocks read ahead per thread.
const AHEAD: usize = 4;

/// Something on a line that the format does not allow; line from 0 within its block.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: usize,
    /// Column from 1.
    pub(super) column: usize,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

impl Fault {
    /// A fault at `column` (from 1) of the first line.
    pub(super) fn new(column: usize, message: impl Into<String>) -> Self {
        Self { line: 0, column, message: message.into(), hint: None }
    }

    /// One entry too many.
    pub(super) fn surplus() -> Self {
        Self::new(1, "more entries than the size line declares")
            .hint("the size line is wrong, or lines were added")
    }

    /// Adds what to do.
    pub(super) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The same fault `lines` further down.
    pub(super) fn down(mut self, lines: usize) -> Self {
        self.line += lines;
        self
    }
}

/// What a block was parsed to.
pub(super) trait Part: Send {
    /// Entries taken, as the size line counts them.
    fn stored(&self) -> usize;
    /// Lines of the block.
    fn lines(&self) -> usize;
}

/// The text of one file, decompressed, with the place reached.
pub(super) struct Text {
    name: String,
    reader: BufReader<Bytes>,
    /// Bytes of the text at most, where there is a bound.
    most_bytes: Option<u64>,
    /// Whether they are compressed.
    is_compressed: bool,
    /// Lines taken so far.
    lines: usize,
    /// Blocks that are in memory at most.
    most: usize,
    /// Bytes read beyond the last block.
    carry: Vec<u8>,
    done: bool,
    /// Why reading stopped, to be reported once the blocks before are parsed.
    failure: Option<ReadFailure>,
}

/// Why no further block could be read.
enum ReadFailure {
    LongLine,
    Io(std::io::Error),
}

impl Text {
    /// Opens `path`; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Self::of(Opened::open(path)?)
    }

    /// Takes `reader`, whose content may be compressed.
    pub(super) fn new(name: &str, reader: Bytes) -> Result<Self> {
        Self::of(Opened::of(name, reader)?)
    }

    /// Takes a file from its beginning.
    pub(super) fn of(file: Opened) -> Result<Self> {
        let (name, start) = (file.name().to_owned(), file.start());
        if let Some(other) = Compression::of(start) {
            return Err(other.refused(&name));
        }
        if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
            return Err(Error::input("is text in UTF-16")
                .in_file(name)
                .hint("save it as ASCII or UTF-8"));
        }
        let marked = start.starts_with(MARK);
        let (most_bytes, is_compressed) = (file.most(), file.is_compressed());
        let mut reader = BufReader::with_capacity(64 << 10, file.into_bytes());
        if marked {
            reader.read_exact(&mut [0; MARK.len()]).map_err(|e| read_error(&name, 0, &e))?;
        }
        Ok(Self {
            name,
            reader,
            most_bytes,
            is_compressed,
            lines: 0,
            most: usize::MAX,
            carry: Vec::new(),
            done: false,
            failure: None,
        })
    }

    /// The part of `declared` entries that memory is taken for before they come: what the file is large
    /// enough to hold; 0 where its size is not known.
    pub(super) fn backed(&self, declared: usize) -> usize {
        if self.is_compressed || self.most_bytes.is_none() { 0 } else { self.at_most(declared) }
    }

    /// The part of `declared` entries that can be in the file at most.
    pub(super) fn at_most(&self, declared: usize) -> usize {
        /// Bytes of a line.
        const SHORTEST: u64 = 4;
        self.most_bytes.map_or(declared, |bytes| declared.min((bytes / SHORTEST) as usize))
    }

    /// From now on reads so many blocks ahead at most, whatever the number of threads.
    pub(super) fn limit(&mut self, blocks: usize) {
        self.most = blocks;
    }

    /// An error when the user asked to stop.
    pub(super) fn check_stopped(&self) -> Result<()> {
        input::check_stopped().map_err(|e| read_error(&self.name, self.lines, &e))
    }

    /// Name of the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Lines taken so far.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// The next line without its end; `None` at the end of the text.
    pub(super) fn line(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(BLOCK as u64);
        let count = limited
            .read_until(b'\n', &mut line)
            .map_err(|e| read_error(&self.name, self.lines, &e))?;
        if count == 0 {
            return Ok(None);
        }
        if count == BLOCK && line.last() != Some(&b'\n') {
            return Err(self.failed(&ReadFailure::LongLine));
        }
        self.lines += 1;
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        Ok(Some(line))
    }

    /// The error for `fault` in the block that starts after the lines taken so far.
    pub(super) fn error(&self, fault: Fault) -> Error {
        let place = self.lines + fault.line + 1;
        let error = Error::input(fault.message).at(&self.name, place, Some(fault.column));
        fault.hint.into_iter().fold(error, Error::hint)
    }

    /// The error for `fault` in the line taken last.
    pub(super) fn error_at_last(&self, fault: Fault) -> Error {
        let error = Error::input(fault.message).at(&self.name, self.lines, Some(fault.column));
        fault.hint.into_iter().fold(error, Error::hint)
    }

    /// An error at the last line taken.
    pub(super) fn error_here(&self, message: impl Into<String>) -> Error {
        Error::input(message).at(&self.name, self.lines.max(1), None)
    }

    /// The error for a failure after the lines taken so far.
    fn failed(&self, failure: &ReadFailure) -> Error {
        match failure {
            ReadFailure::LongLine => Error::input(format!("line longer than {BLOCK} bytes"))
                .at(&self.name, self.lines + 1, None)
                .hint("is this a Matrix Market file?"),
            ReadFailure::Io(error) => read_error(&self.name, self.lines, error),
        }
    }

    /// Parses the rest of the text: `parse(block, limit)` may take at most `limit` entries and
    /// faults at the next; `take` gets the parts in the order of the text.
    ///
    /// Blocks are read while the ones before are parsed. When a block faults or holds more
    /// entries than `declared` leaves, it is parsed again with the exact limit, so that the
    /// first fault in the text is the one reported. An error of `take` ends it.
    pub(super) fn parse<P: Part>(
        &mut self,
        declared: usize,
        parse: impl Fn(&[u8], usize) -> Result<P, Fault> + Sync,
        mut take: impl FnMut(P) -> Result<()>,
    ) -> Result<()> {
        let mut stored = 0;
        let mut batch = self.batch();
        while !batch.is_empty() {
            let run = || Threads::Pool.map(batch.len(), 1, |i| parse(&batch[i], usize::MAX));
            let (results, next) = rayon::join(run, || self.batch());
            for (result, block) in results.into_iter().zip(&batch) {
                let part = match result {
                    Ok(part) if stored + part.stored() <= declared => part,
                    _ => parse(block, declared - stored).map_err(|fault| self.error(fault))?,
                };
                stored += part.stored();
                self.lines += part.lines();
                take(part).map_err(|e| e.in_file(&self.name))?;
            }
            batch = next;
        }
        if let Some(failure) = self.failure.take() {
            return Err(self.failed(&failure));
        }
        if stored < declared {
            return Err(self
                .error_here(format!("the file ends after {stored} of {declared} entries"))
                .hint("the file is incomplete, or its size line is wrong"));
        }
        Ok(())
    }

    /// A few blocks for each thread, fewer at the end of the text or of what can be read.
    fn batch(&mut self) -> Vec<Vec<u8>> {
        let mut blocks = Vec::new();
        let most = self.most.min(AHEAD * rayon::current_num_threads());
        while blocks.len() < most && !self.done {
            match self.block() {
                Ok(block) if block.is_empty() => {}
                Ok(block) => blocks.push(block),
                Err(failure) => {
                    self.failure = Some(failure);
                    self.done = true;
                }
            }
        }
        blocks
    }

    /// The next block: whole lines, each ended by a line feed.
    fn block(&mut self) -> Result<Vec<u8>, ReadFailure> {
        // a gzipped file may give gigabytes between two reads
        input::check_stopped().map_err(ReadFailure::Io)?;
        let mut block = Vec::with_capacity(BLOCK + 1);
        block.append(&mut self.carry);
        let want = BLOCK - block.len();
        let limited = &mut (&mut self.reader).take(want as u64);
        let got = limited.read_to_end(&mut block).map_err(ReadFailure::Io)?;
        if got < want {
            self.done = true;
            if block.last().is_some_and(|&b| b != b'\n') {
                block.push(b'\n');
            }
        } else {
            let end = memchr::memrchr(b'\n', &block).ok_or(ReadFailure::LongLine)? + 1;
            self.carry.extend_from_slice(&block[end..]);
            block.truncate(end);
        }
        Ok(block)
    }
}

fn read_error(name: &str, lines: usize, error: &std::io::Error) -> Error {
    content_error(name, &format!(" beyond line {lines}"), error)
}
