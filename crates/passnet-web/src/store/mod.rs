//! The leaderboard's memory: one SQLite file that holds bundles, what they achieved, who sent them and what became of it.
//!
//! Bundles are the truth; the other tables are what pages ask for, computed once when a bundle is admitted. Everything
//! that belongs together is written in one transaction, so a killed process leaves all of a submission or nothing.

mod admit;
mod authors;
mod corpus;
mod ranks;
mod read;
mod schema;
mod submissions;
mod types;
mod watched;

pub use admit::{Admission, Readied, readied, result_rows};
pub use authors::{Author, Token};
pub(crate) use corpus::operation_name;
pub use corpus::{CorpusGraph, CorpusModel, Shelf, Shelved};
pub use read::{EntryOrder, Filter, GraphOnRun};
pub use submissions::{Received, Submission, SubmissionState};
pub use types::{Badge, Board, Detail, Entry, EntryState, GroupScore, Rejudged, ResultRow};

use crate::Error;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The one file in a store's folder.
pub const FILE: &str = "leaderboard.sqlite";
/// How long a reader or writer waits for another process.
const BUSY_WAIT: Duration = Duration::from_secs(10);
/// Idle connections that are kept.
const READERS: usize = 8;

/// An open store, for all threads.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// The dataset's graphs, and of which import they are.
    corpus: Mutex<Option<(i64, Arc<Vec<CorpusModel>>)>>,
}

impl Store {
    /// Opens the store in a folder, and makes it where there is none.
    pub fn open(folder: &Path) -> Result<Store, Error> {
        std::fs::create_dir_all(folder).map_err(Error::at(folder))?;
        let path = folder.join(FILE);
        let mut writer = Connection::open(&path)?;
        writer.busy_timeout(BUSY_WAIT)?;
        // Readers go on while one writes; what was answered survives a power cut.
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(None, "synchronous", "FULL")?;
        writer.pragma_update(None, "foreign_keys", true)?;
        schema::prepare(&mut writer)?;
        Ok(Store {
            path,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
            corpus: Mutex::default(),
        })
    }

    /// Opens a store that is there already.
    pub fn open_existing(folder: &Path) -> Result<Store, Error> {
        if !folder.join(FILE).is_file() {
            return Err(Error::input(format!("{}: no leaderboard here", folder.display()))
                .with_hint("`passnet serve --store DIR` begins one"));
        }
        Store::open(folder)
    }

    /// Reads, beside whoever writes.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let connection = Connection::open_with_flags(&self.path, flags)?;
                connection.busy_timeout(BUSY_WAIT)?;
                connection.set_prepared_statement_cache_capacity(64);
                connection
            }
        };
        let result = work(&connection);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS {
            readers.push(connection);
        }
        result
    }

    /// Writes all of it or nothing; pages made before are old afterwards.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.write_quietly(|connection| {
            let result = work(connection)?;
            connection.execute("UPDATE generation SET number = number + 1", [])?;
            Ok(result)
        })
    }

    /// Writes all of it or nothing, and lets pages made before stand.
    pub(crate) fn write_quietly<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction =
            writer.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Changes with every write, of this process or another.
    pub fn generation(&self) -> Result<i64, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT number FROM generation")?;
            Ok(statement.query_row([], |row| row.get(0))?)
        })
    }

    /// A copy of the whole store as of now, while others read and write.
    pub fn back_up(&self, path: &Path) -> Result<(), Error> {
        if path.exists() {
            return Err(Error::input(format!("{}: is there already", path.display()))
                .with_hint("a backup never overwrites another"));
        }
        let path = path.to_str().ok_or_else(|| Error::input("the path is no text"))?;
        self.read(|connection| {
            connection.execute("VACUUM INTO ?1", [path])?;
            Ok(())
        })
    }

    /// Whether the file holds together.
    pub fn is_whole(&self) -> Result<bool, Error> {
        self.read(|connection| {
            let answer: String =
                connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
            Ok(answer == "ok")
        })
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
