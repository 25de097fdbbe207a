//! The tables of a store file, and what makes a file one.

use super::error::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

/// Raised with every change that older programs cannot read.
pub(super) const FORMAT: i64 = 1;

/// Marks the SQLite file as ours ("PNDS"); `file` and other tools show it.
const APPLICATION_ID: i64 = 0x504e_4453;

/// Keys of blobs stand in a table of their own, so that each key is stored once and reading by number stays one
/// lookup. Entries are clustered by path: a scan is in path order, and the path is stored once.
const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE dictionary (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: open readers keep dictionaries by number
    file INTEGER NOT NULL,                 -- kind of file, in the order of FileName::ALL
    data BLOB NOT NULL
);
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    dictionary INTEGER NOT NULL,  -- -1: stored as is, 0: compressed alone
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE blob_key (key BLOB PRIMARY KEY, blob INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE parent (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE entry (
    path TEXT PRIMARY KEY,
    content BLOB NOT NULL,
    kind TEXT NOT NULL,
    op_count INTEGER NOT NULL,
    structure NOT NULL,
    literals NOT NULL,
    full NOT NULL,
    provenance TEXT,              -- parent:start-end,start-end;parent:...
    variant_dtype TEXT,
    variant_shape INTEGER,
    model INTEGER,
    weight_meta INTEGER,
    input_meta INTEGER,
    input_tensor_constraints INTEGER,
    graph_net INTEGER,
    graph_hash INTEGER,
    subgraph_sources INTEGER
) WITHOUT ROWID;
";

/// The columns of `entry`, in the order in which rows are read and written; blobs in the order of `FileName::ALL`.
pub(super) const ENTRY_COLUMNS: &str = "path, content, kind, op_count, structure, literals, full, \
     provenance, variant_dtype, variant_shape, model, weight_meta, input_meta, \
     input_tensor_constraints, graph_net, graph_hash, subgraph_sources";
pub(super) const FIRST_BLOB_COLUMN: usize = 10;

/// Makes the tables in a new file, or checks that an existing file is a store this program can use.
pub(super) fn prepare(connection: &mut Connection, store: &Path) -> Result<(), StoreError> {
    let sqlite = |error| StoreError::sqlite(store, error);
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(sqlite)?;
    let tables: i64 = transaction
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(sqlite)?;
    if tables > 0 {
        return check(&transaction, store);
    }
    transaction.execute_batch(TABLES).map_err(sqlite)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite)?;
    transaction
        .execute("INSERT INTO meta (key, value) VALUES ('format', ?1)", [FORMAT])
        .map_err(sqlite)?;
    transaction.commit().map_err(sqlite)
}

pub(super) fn check(connection: &Connection, store: &Path) -> Result<(), StoreError> {
    let sqlite = |error| StoreError::sqlite(store, error);
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sqlite)?;
    if application != APPLICATION_ID {
        return Err(StoreError::new(store, StoreErrorKind::NotAStore));
    }
    let format: Option<i64> = connection
        .query_row("SELECT value FROM meta WHERE key = 'format'", [], |row| row.get(0))
        .optional()
        .map_err(sqlite)?;
    match format {
        Some(FORMAT) => Ok(()),
        Some(found) if found > FORMAT => {
            let kind = StoreErrorKind::NewerFormat { found, supported: FORMAT };
            Err(StoreError::new(store, kind))
        }
        found => {
            let what = format!("its format number is {found:?}");
            Err(StoreError::new(store, StoreErrorKind::Damaged(what)))
        }
    }
}
