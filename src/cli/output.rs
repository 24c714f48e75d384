//! Standard output and error of the program.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};

use crate::base::error::{Error, Kind, Result};
use crate::base::input::say;
use crate::record::{Record, contents, read, rounds};
use crate::report::columns::Columns;
use crate::report::{Report, ReportFormat};

/// Writes to standard output. A closed pipe (`| head`) is not an error.
pub fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Error::io("write to", Path::new("standard output"), &e)),
        Ok(()) => Ok(()),
    }
}

/// Prints a report in a format. A table has the requested `columns`; by default those that fit the terminal,
/// and a line that says `how` to see the others.
pub fn report(report: &Report, format: ReportFormat, columns: &Columns, how: &str) -> Result<()> {
    let mut report = report.clone();
    if matches!(format, ReportFormat::Table | ReportFormat::Markdown) {
        match (columns, width()) {
            (Columns::Named(names), _) if !report.choose(names) => {
                say("note: --columns: this table has none of them");
            }
            (Columns::Fit, Some(width)) if format == ReportFormat::Table => {
                report = report.fitted(width, how);
            }
            _ => {}
        }
    }
    print(&format.render(&report)?)
}

/// The same for a command without a flag for columns.
pub fn tables(report: &Report, format: ReportFormat) -> Result<()> {
    self::report(report, format, &Columns::Fit, "`| less -S` shows them")
}

/// Width of the terminal behind standard output, in characters; `COLUMNS` overrides it, as in `ps`.
pub(super) fn width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    // some terminals know their width and not their height
    let own = || rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col));
    set.or_else(own).filter(|width| *width > 0)
}

/// Prints notes to standard error.
pub(super) fn notes(notes: impl IntoIterator<Item = impl Display>) {
    for note in notes {
        say(&format!("note: {note}"));
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

/// The records of a result file; prints a note when the last one is truncated.
pub(super) fn records(path: &Path) -> Result<Vec<Record>> {
    let contents = read::read(path)?;
    notes(contents.remarks().iter().map(|remark| format!("{}: {remark}", path.display())));
    Ok(contents.records)
}

/// The records of result files, one of all rounds of a case; prints a note where other systems of one name are
/// set apart.
pub(super) fn aggregated(paths: &[PathBuf]) -> Result<Vec<Record>> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(rounds::aggregated(&records(path)?));
    }
    notes(contents::set_apart(&mut all.iter_mut().collect::<Vec<_>>()));
    Ok(all)
}
