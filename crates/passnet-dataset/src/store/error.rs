//! What can go wrong with a store, said so that the user knows what to do next.

use passnet_graph::Diagnostic;
use std::fmt;
use std::path::{Path, PathBuf};

/// Something that went wrong with a store.
#[derive(Debug)]
pub struct StoreError {
    /// The store's file.
    pub store: PathBuf,
    /// What it is.
    pub kind: StoreErrorKind,
}

/// What can go wrong.
#[derive(Debug)]
pub enum StoreErrorKind {
    /// There is no such file.
    Missing,
    /// The file exists but is no store of ours.
    NotAStore,
    /// The store was written by a later program.
    NewerFormat {
        /// Its format.
        found: i64,
        /// The newest format that this program reads.
        supported: i64,
    },
    /// Another process writes to the store.
    InUse,
    /// No space left on the disk, or the size limit is reached. What was committed is kept.
    Full,
    /// The file or its folder must not be written.
    ReadOnly,
    /// Content that does not fit its key or its form.
    Damaged(String),
    /// An entry that cannot be stored as it is.
    Refused(String),
    /// The system refused to read or write.
    Io(std::io::Error),
    /// Anything else that SQLite says.
    Sqlite(rusqlite::Error),
}

impl StoreError {
    pub(super) fn new(store: &Path, kind: StoreErrorKind) -> Self {
        Self { store: store.to_owned(), kind }
    }

    pub(super) fn sqlite(store: &Path, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::InUse,
            Some(ErrorCode::ReadOnly) => StoreErrorKind::ReadOnly,
            Some(ErrorCode::NotADatabase) => StoreErrorKind::NotAStore,
            Some(ErrorCode::DatabaseCorrupt) => StoreErrorKind::Damaged(error.to_string()),
            _ => StoreErrorKind::Sqlite(error),
        };
        Self::new(store, kind)
    }

    fn hint(&self) -> Option<&'static str> {
        match self.kind {
            StoreErrorKind::InUse => Some("wait for the other command to end, then run this again"),
            StoreErrorKind::Full => Some("make room and run the same command again: it continues"),
            StoreErrorKind::NewerFormat { .. } => Some("update passnet"),
            StoreErrorKind::Missing => Some("`passnet dataset import` makes one"),
            _ => None,
        }
    }

    fn message(&self) -> String {
        match &self.kind {
            StoreErrorKind::Missing => "there is no store here".into(),
            StoreErrorKind::NotAStore => "this file is not a graph store".into(),
            StoreErrorKind::NewerFormat { found, supported } => {
                format!("this store has format {found}; this program reads up to {supported}")
            }
            StoreErrorKind::InUse => "the store is in use by another process".into(),
            StoreErrorKind::Full => {
                "no space left for the store; everything committed so far is kept".into()
            }
            StoreErrorKind::ReadOnly => "the store cannot be written to".into(),
            StoreErrorKind::Damaged(what) => format!("the store is damaged: {what}"),
            StoreErrorKind::Refused(why) => why.clone(),
            StoreErrorKind::Io(error) => error.to_string(),
            StoreErrorKind::Sqlite(error) => error.to_string(),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Diagnostic::from(self).fmt(f)
    }
}

impl std::error::Error for StoreError {}

impl From<&StoreError> for Diagnostic {
    fn from(error: &StoreError) -> Self {
        let diagnostic = Self::file(error.store.display().to_string(), error.message());
        match error.hint() {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        }
    }
}
