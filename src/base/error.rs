//! One error type for the whole crate: what is wrong, where, and what to do about it.

use std::fmt;
use std::path::Path;

/// Exit code after Ctrl-C.
pub(crate) const STOPPED: u8 = 130;

/// Result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who has to act, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The command line, a file or a value the user gave is wrong: exit code 2.
    Input,
    /// The run itself failed: exit code 1.
    Run,
    /// There is not enough memory on the host or on a device: exit code 1.
    Memory,
    /// The user asked to stop: exit code 130.
    Stopped,
}

/// A position in a file; line and column count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File name as the user knows it.
    pub file: String,
    /// Line, if known.
    pub line: Option<usize>,
    /// Column, if known.
    pub column: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

/// What went wrong. Prints as `file:line:column: message`; the hint is kept apart so that the
/// program can print it on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.prefix())]
pub struct Error {
    kind: Kind,
    message: String,
    place: Option<Place>,
    hint: Option<String>,
}

impl Error {
    /// An error in what the user gave (exit code 2).
    pub fn input(message: impl Into<String>) -> Self {
        Self { kind: Kind::Input, message: message.into(), place: None, hint: None }
    }

    /// An error of the run itself (exit code 1).
    pub fn run(message: impl Into<String>) -> Self {
        Self { kind: Kind::Run, message: message.into(), place: None, hint: None }
    }

    /// Not enough memory: what was asked for and what is free.
    pub fn memory(message: impl Into<String>) -> Self {
        Self { kind: Kind::Memory, message: message.into(), place: None, hint: None }
    }

    /// The user asked to stop; `message` says what was stopped.
    pub fn stopped(message: impl Into<String>) -> Self {
        Self { kind: Kind::Stopped, message: message.into(), place: None, hint: None }
    }

    /// An input error from the operating system, naming the file.
    pub fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::input(format!("cannot {action} `{}`: {error}", path.display()))
    }

    /// An unknown name, with the nearest known one as the hint.
    pub fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        let list = known.join(", ");
        let hint = match nearest(name, known) {
            Some(best) => format!("did you mean `{best}`? known: {list}"),
            None => format!("known: {list}"),
        };
        Self::input(format!("unknown {what} `{name}`")).hint(hint)
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the file.
    #[must_use]
    pub(crate) fn in_file(mut self, file: impl Into<String>) -> Self {
        self.place = Some(Place { file: file.into(), line: None, column: None });
        self
    }

    /// Adds file, line and column (from 1).
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: usize, column: Option<usize>) -> Self {
        self.place = Some(Place { file: file.into(), line: Some(line), column });
        self
    }

    /// What to do about it, if known.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The message without place and hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it is, if known.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Who has to act.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Process exit code: 2 for input, 1 for a failed run, 130 when the user stopped it.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Input => 2,
            Kind::Run | Kind::Memory => 1,
            Kind::Stopped => STOPPED,
        }
    }

    fn prefix(&self) -> String {
        self.place.as_ref().map(|p| format!("{p}: ")).unwrap_or_default()
    }
}

/// The known name most like `name`, in any case of letters, when one is near enough to be worth
/// suggesting.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let (best, score) = known
        .iter()
        .map(|k| (*k, strsim::jaro_winkler(&name, &k.to_lowercase())))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (score > 0.75).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_place_before_message_and_keeps_hint_apart() {
        let e = Error::input("row 5 is outside 1..=3").at("a.mtx", 3, Some(1)).hint("fix it");
        assert_eq!(e.to_string(), "a.mtx:3:1: row 5 is outside 1..=3");
        assert_eq!((e.hint_text(), e.exit_code()), (Some("fix it"), 2));
        assert_eq!(Error::run("x").exit_code(), 1);
    }

    #[test]
    fn suggests_only_near_names() {
        assert_eq!(nearest("gmers", &["gmres", "cg"]), Some("gmres"));
        assert_eq!(nearest("GMRES", &["gmres", "cg"]), Some("gmres"));
        assert_eq!(nearest("zzz", &["gmres", "cg"]), None);
    }
}
