//! Why an array cannot be read.

use std::io::{self, ErrorKind};

use crate::base::error::Error;
use crate::base::input;

/// Why an array cannot be read.
pub(in crate::matrix) enum Fault {
    /// Its bytes cannot be.
    Read(io::Error),
    /// They are not what they should be.
    Content(String),
    /// What they hold is no use.
    Refused(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self::Content(what)
    }
}

impl From<&str> for Fault {
    fn from(what: &str) -> Self {
        Self::Content(what.into())
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl Fault {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Content(what) => what.clone(),
            Self::Refused(error) => error.message().to_owned(),
            Self::Read(error) => match error.kind() {
                ErrorKind::UnexpectedEof => "it ends early".into(),
                ErrorKind::InvalidData | ErrorKind::InvalidInput => format!("is damaged: {error}"),
                _ => error.to_string(),
            },
        }
    }

    /// The error for it in the file `name`; `what` is the array.
    pub(in crate::matrix) fn of(self, name: &str, what: &str) -> Error {
        let stopped = match &self {
            Self::Read(error) => input::stopped(name, error),
            _ => None,
        };
        match self {
            Self::Refused(error) => error.in_file(name),
            _ => stopped
                .unwrap_or_else(|| Error::input(format!("{what}{}", self.text())).in_file(name)),
        }
    }
}
