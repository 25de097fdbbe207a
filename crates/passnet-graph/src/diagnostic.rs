//! Located errors: every message about a text names its file, line and column and, where we know one, a hint.

use serde::Serialize;
use std::fmt;

/// What is wrong with a text, and where. `line` and `column` count from 1; 0 means "the file as a whole".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The path as the caller gave it.
    pub file: String,
    /// Where it begins.
    pub line: usize,
    /// In characters.
    pub column: usize,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The source line the error points at, shortened, so that it can be shown without the file. Boxed because every
    /// fallible function returns a `Diagnostic` by value.
    #[serde(skip)]
    pub source_line: Option<Box<SourceLine>>,
}

/// One line of source and where in it the error stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The line without its end.
    pub text: String,
    /// Byte range inside `text`.
    pub start: usize,
    /// The byte after the marked part.
    pub end: usize,
}

impl Diagnostic {
    /// An error about a file as a whole (missing, unreadable, not UTF-8).
    pub fn file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            message: message.into(),
            hint: None,
            source_line: None,
        }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.file, self.message)?;
        } else {
            write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}
