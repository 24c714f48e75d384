//! Standard output and error of the program.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::error::{Error, Kind, Result};

/// Writes to standard output. A reader that went away (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Error::io("write to", Path::new("standard output"), &e)),
        Ok(()) => Ok(()),
    }
}

/// Prints an error and its hint to standard error.
pub fn error(error: &Error) {
    let bold = |color: AnsiColor| Style::new().bold().fg_color(Some(color.into()));
    let mut err = anstream::stderr().lock();
    if error.kind() == Kind::Stopped {
        // nothing is wrong
        let _ = writeln!(err, "{error}");
        return;
    }
    let style = bold(AnsiColor::Red);
    let _ = writeln!(err, "{style}error:{style:#} {error}");
    if let Some(hint) = error.hint_text() {
        let style = bold(AnsiColor::Cyan);
        let _ = writeln!(err, "{style}hint:{style:#} {hint}");
    }
}
