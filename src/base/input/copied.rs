//! What gives its bytes once, as a file.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::Stream;
use super::compression::content_error;
use crate::base::error::{Error, Result};

/// A file without a name that holds what `from` does.
pub(super) fn copied(name: &str, from: &mut impl Read) -> Result<Stream> {
    let cannot = |e: io::Error| {
        Error::run(format!("cannot copy {name} to a temporary file: {e}"))
            .hint("TMPDIR names the folder of temporary files")
    };
    let mut copy = tempfile::tempfile().map_err(cannot)?;
    let mut block = vec![0; 1 << 18];
    loop {
        let count = from.read(&mut block).map_err(|e| content_error(name, "", &e))?;
        if count == 0 {
            break;
        }
        copy.write_all(&block[..count]).map_err(cannot)?;
    }
    copy.seek(SeekFrom::Start(0)).map_err(cannot)?;
    Ok(Stream::of(copy, name))
}
