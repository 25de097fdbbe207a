//! Export: the dataset as other tools read it. [`folders`] writes graph folders, sample folders and lists as PassNet
//! has them.

pub mod folders;

use crate::store::StoreError;
use passnet_graph::Diagnostic;
use std::fmt;
use std::path::Path;

/// Why an export ended.
#[derive(Debug)]
pub enum ExportError {
    Store(StoreError),
    /// A file that could not be written.
    Write(Diagnostic),
}

impl ExportError {
    fn write(path: &Path, error: impl fmt::Display) -> Self {
        let message = format!("cannot be written: {error}");
        let hint = "make room or choose another folder, then run the same command again";
        Self::Write(Diagnostic::file(path.display().to_string(), message).with_hint(hint))
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
