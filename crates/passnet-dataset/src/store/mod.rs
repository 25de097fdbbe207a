//! The graph store: one file that holds 10^5 graphs, content-addressed, compact, safe against crashes, read lazily.
//!
//! A store is an SQLite file. Files of graphs are blobs, each stored once whatever the number of graphs that share it
//! (the variants of a graph share most of theirs), compressed by zstd with dictionaries trained on the store itself.
//! SQLite was chosen over segment files with an index of our own because what is hard here (atomic batches, recovery
//! after a kill, a full disk, readers beside a writer) is what it does best, and it costs nothing measurable: a random
//! read is one or two B-tree lookups.
//!
//! One process writes at a time, and says so with a lock on `STORE.lock`, which the system drops when the process
//! ends, however it ends. Any number of processes may read meanwhile; each sees the last committed batch. A store
//! that was closed properly is a single file and can be shipped as such.

mod codec;
mod entry;
mod error;
mod files;
mod maintain;
mod mark;
mod note;
mod op_index;
mod read;
mod schema;
mod write;

pub use entry::{Description, Digests, Entry, Kind, Provenance, Record, Variant};
pub use error::{StoreError, StoreErrorKind};
pub use files::{FileBody, StoredFile};
pub use maintain::Compacted;
pub use mark::Mark;
pub use op_index::{OpCounts, Outline, Outlines};
pub use read::Entries;
pub use write::EntryChange;

use codec::{Decoder, Encoder};
use rusqlite::{Connection, OpenFlags};
use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Recovery and checkpoints of another process hold the file for moments; writers proper are kept apart by the lock.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// A killed process keeps its lock while the system takes it apart, which is when the user starts the next one.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// An open store. It can be moved between threads but not shared; a thread that wants to read on its own opens its
/// own, which takes well under a millisecond.
pub struct Store {
    path: PathBuf,
    connection: Connection,
    decoder: RefCell<Decoder>,
    /// Present while this is the one store open for writing.
    writer: Option<Writer>,
}

struct Writer {
    _lock: File,
    encoder: Encoder,
    workers: NonZeroUsize,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .field("writable", &self.writer.is_some())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a store to read from it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::new(path, StoreErrorKind::Missing));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Self::connect(path, flags)?;
        schema::check(&store.connection, path)?;
        Ok(store)
    }

    /// Opens a store to write to it, and makes it if there is none. Fails within a second if another process writes
    /// to it.
    pub fn open_for_writing(path: &Path, workers: NonZeroUsize) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Self::connect(path, flags)?;
        schema::prepare(&mut store.connection, path)?;
        store.connection.execute_batch(mark::TABLES).map_err(|error| store.sqlite(error))?;
        // WAL lets readers go on while we write; FULL makes a committed batch survive a power cut.
        store.pragma("journal_mode", "WAL")?;
        store.pragma("synchronous", "FULL")?;
        store.writer = Some(Writer { _lock: lock, encoder: Encoder::new(codec::FAST), workers });
        store.load_dictionaries()?;
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let sqlite = |error| StoreError::sqlite(path, error);
        let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
        connection.busy_timeout(BUSY_WAIT).map_err(sqlite)?;
        let decoder = RefCell::default();
        Ok(Self { path: path.to_owned(), connection, decoder, writer: None })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the file grow to about `bytes`; writing more is [`StoreErrorKind::Full`]. The limit holds until the store
    /// is closed and never cuts off what is there.
    pub fn limit_size(&self, bytes: u64) -> Result<(), StoreError> {
        let page: i64 = self
            .connection
            .pragma_query_value(None, "page_size", |row| row.get(0))
            .map_err(|error| self.sqlite(error))?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        self.pragma("max_page_count", pages.max(1))
    }

    fn pragma(&self, name: &str, value: impl rusqlite::ToSql) -> Result<(), StoreError> {
        // Some pragmas answer with a row and some do not.
        self.connection.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|error| {
            match error {
                rusqlite::Error::QueryReturnedNoRows => Ok(()),
                error => Err(self.sqlite(error)),
            }
        })
    }

    fn sqlite(&self, error: rusqlite::Error) -> StoreError {
        StoreError::sqlite(&self.path, error)
    }

    fn damaged(&self, what: impl Into<String>) -> StoreError {
        StoreError::new(&self.path, StoreErrorKind::Damaged(what.into()))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // Back to a single plain file, so that readers need no side files. Impossible while others read; then
            // the side files stay, and nothing is lost.
            let _ = self.connection.busy_timeout(Duration::ZERO);
            let _ = self.pragma("journal_mode", "DELETE");
        }
    }
}

/// A side file is locked, because closing any handle on the store's own file would drop SQLite's locks on it. The
/// file stays: removing it would let two processes lock two files of the same name.
fn lock(store: &Path) -> Result<File, StoreError> {
    let mut name = store.as_os_str().to_owned();
    name.push(".lock");
    let io = |error| StoreError::new(store, StoreErrorKind::Io(error));
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(PathBuf::from(name))
        .map_err(io)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
    }
    Err(StoreError::new(store, StoreErrorKind::InUse))
}
