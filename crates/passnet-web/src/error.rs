//! Why something could not be done, in words for whoever asked.

use passnet_bench::event_log::LogError;
use std::fmt;
use std::path::Path;

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was given is not as it should be.
    Input,
    /// This machine lacks something.
    Lacking,
    /// The store failed.
    Storage,
}

/// What went wrong, with a hint where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Error {
    /// What was given is not as it should be.
    pub fn input(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Input, message: message.into(), hint: None }
    }

    /// This machine lacks something.
    pub fn lacking(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Lacking, message: message.into(), hint: None }
    }

    pub(crate) fn storage(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Storage, message: message.into(), hint: None }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// The error of an operation on a path.
    pub fn at(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
        |error| Error::input(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        Error::storage(format!("the leaderboard's store: {error}"))
    }
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Error {
        Error::input(error.to_string())
    }
}
