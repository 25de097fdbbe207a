//! Reading: single entries, all entries in path order, and their files.

use super::entry::{Description, Digests, Kind, Provenance, Record, Variant};
use super::error::StoreErrorKind;
use super::schema::{ENTRY_COLUMNS, FIRST_BLOB_COLUMN};
use super::{Store, StoreError};
use crate::content::ContentKey;
use passnet_graph::{FileName, GraphFiles};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;

/// Entries fetched at a time when iterating.
const PAGE: usize = 256;

impl Store {
    /// The number of entries.
    pub fn len(&self) -> Result<u64, StoreError> {
        self.connection
            .query_row("SELECT count(*) FROM entry", [], |row| row.get(0))
            .map(i64::unsigned_abs)
            .map_err(|error| self.sqlite(error))
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.len()? == 0)
    }

    /// The entry with this logical path.
    pub fn get(&self, path: &str) -> Result<Option<Record>, StoreError> {
        let sql = format!("SELECT {ENTRY_COLUMNS} FROM entry WHERE path = ?1");
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| self.sqlite(e))?;
        let row = statement
            .query_row([path], |row| Ok(self.record(row)))
            .optional()
            .map_err(|error| self.sqlite(error))?;
        row.transpose()
    }

    /// All entries in the order of their paths, read a page at a time. Entries written meanwhile appear if their
    /// place has not been passed.
    pub fn entries(&self) -> Entries<'_> {
        Entries { store: self, after: String::new(), page: VecDeque::new(), ended: false }
    }

    /// All entries of a kind, in the order of their paths.
    pub fn of_kind(&self, kind: Kind) -> Result<Vec<Record>, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let sql = format!("SELECT {ENTRY_COLUMNS} FROM entry WHERE kind = ?1 ORDER BY path");
        let mut statement = self.connection.prepare_cached(&sql).map_err(sqlite)?;
        let mut rows = statement.query([kind.as_str()]).map_err(sqlite)?;
        let mut records = Vec::new();
        while let Some(row) = rows.next().map_err(sqlite)? {
            records.push(self.record(row)?);
        }
        Ok(records)
    }

    /// The content key of every entry by its path: what an import needs to know what is new.
    pub fn content_keys(&self) -> Result<HashMap<String, ContentKey>, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let mut statement =
            self.connection.prepare("SELECT path, content FROM entry").map_err(sqlite)?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, ContentKey(row.get(1)?))))
            .map_err(sqlite)?;
        rows.collect::<Result<_, _>>().map_err(sqlite)
    }

    /// A key of all that the store holds: graphs, tasks and files, however they came in.
    pub fn content(&self) -> Result<ContentKey, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let mut hasher = blake3::Hasher::new();
        // Neither paths nor tasks hold the zero byte that ends each.
        let sql = "SELECT path, content FROM entry ORDER BY path";
        let mut statement = self.connection.prepare(sql).map_err(sqlite)?;
        let mut rows = statement.query([]).map_err(sqlite)?;
        while let Some(row) = rows.next().map_err(sqlite)? {
            let (path, key): (String, [u8; 16]) =
                (row.get(0).map_err(sqlite)?, row.get(1).map_err(sqlite)?);
            hasher.update(path.as_bytes()).update(&[0]).update(&key);
        }
        for (id, body) in self.tasks()? {
            hasher.update(id.as_bytes()).update(&[0]).update(body.as_bytes()).update(&[0]);
        }
        if let Some(files) = self.files_key()? {
            hasher.update(files.as_bytes());
        }
        Ok(ContentKey::truncate(hasher.finalize()))
    }

    /// All files of an entry, checked against its content key.
    pub fn load(&self, record: &Record) -> Result<GraphFiles, StoreError> {
        let snapshot = self.snapshot()?;
        let mut graph = GraphFiles::new(record.path.as_str());
        for (&name, &blob) in &record.blobs {
            graph.files.insert(name, self.read_blob(blob)?);
        }
        drop(snapshot);
        if ContentKey::of_graph(&graph) == record.content {
            Ok(graph)
        } else {
            Err(self.damaged(format!("the files of `{}` are not those stored", record.path)))
        }
    }

    /// Makes the reads that follow one transaction, until it is dropped: SQLite locks the file anew for each query
    /// outside one, at several times the cost of the query. Nothing inside a transaction that is open already.
    pub(super) fn snapshot(&self) -> Result<Option<rusqlite::Transaction<'_>>, StoreError> {
        if !self.connection.is_autocommit() {
            return Ok(None);
        }
        self.connection.unchecked_transaction().map(Some).map_err(|error| self.sqlite(error))
    }

    /// One file of an entry, if it has it.
    pub fn load_file(
        &self,
        record: &Record,
        name: FileName,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        record.blobs.get(&name).map(|&blob| self.read_blob(blob)).transpose()
    }

    pub(super) fn read_blob(&self, blob: i64) -> Result<Vec<u8>, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let mut statement = self
            .connection
            .prepare_cached("SELECT dictionary, size, data FROM blob WHERE id = ?1")
            .map_err(sqlite)?;
        let row: Option<(i64, i64, Vec<u8>)> = statement
            .query_row([blob], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()
            .map_err(sqlite)?;
        let (dictionary, size, packed) =
            row.ok_or_else(|| self.damaged(format!("blob {blob} is missing")))?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.decoder
            .borrow_mut()
            .unpack(dictionary, size, packed, |id| self.read_dictionary(id))
            .map_err(|failure: Unreadable| match failure {
                Unreadable::Store(error) => error,
                Unreadable::Content(why) => self.damaged(format!("blob {blob}: {why}")),
            })
    }

    fn read_dictionary(&self, id: i64) -> Result<Vec<u8>, Unreadable> {
        self.connection
            .query_row("SELECT data FROM dictionary WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map_err(|error| Unreadable::Store(self.sqlite(error)))?
            .ok_or_else(|| Unreadable::Store(self.damaged(format!("dictionary {id} is missing"))))
    }

    /// Reads a row of [`ENTRY_COLUMNS`].
    pub(super) fn record(&self, row: &Row<'_>) -> Result<Record, StoreError> {
        let path: String = row.get(0).map_err(|error| self.sqlite(error))?;
        self.record_at(&path, row).map_err(|error| match error.kind {
            // What SQLite says of a value of the wrong type does not say where it stands.
            StoreErrorKind::Sqlite(why) => self.damaged(format!("entry `{path}`: {why}")),
            _ => error,
        })
    }

    fn record_at(&self, path: &str, row: &Row<'_>) -> Result<Record, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let bad = |what: &str| self.damaged(format!("entry `{path}`: bad {what}"));
        let kind: String = row.get(2).map_err(sqlite)?;
        let provenance: Option<String> = row.get(7).map_err(sqlite)?;
        let dtype: Option<String> = row.get(8).map_err(sqlite)?;
        let shape: Option<u32> = row.get(9).map_err(sqlite)?;
        let digest = |column| -> Result<String, StoreError> {
            match row.get_ref(column).map_err(sqlite)? {
                ValueRef::Blob(bytes) => Ok(hex(bytes)),
                ValueRef::Text(text) => Ok(String::from_utf8_lossy(text).into_owned()),
                _ => Err(bad("digest")),
            }
        };
        let digests = Digests { structure: digest(4)?, literals: digest(5)?, full: digest(6)? };
        let mut blobs = std::collections::BTreeMap::new();
        for (index, name) in FileName::ALL.into_iter().enumerate() {
            let blob: Option<i64> = row.get(FIRST_BLOB_COLUMN + index).map_err(sqlite)?;
            blobs.extend(blob.map(|blob| (name, blob)));
        }
        Ok(Record {
            path: path.to_owned(),
            content: ContentKey(row.get(1).map_err(sqlite)?),
            description: Description {
                kind: Kind::parse(&kind).ok_or_else(|| bad("kind"))?,
                digests,
                op_count: row.get(3).map_err(sqlite)?,
                provenance: self.decode_provenance(path, provenance.as_deref().unwrap_or(""))?,
                variant: dtype
                    .zip(shape)
                    .map(|(dtype, shape_index)| Variant { dtype, shape_index }),
            },
            blobs,
        })
    }

    fn decode_provenance(&self, path: &str, text: &str) -> Result<Vec<Provenance>, StoreError> {
        text.split(';')
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (parent, ranges) = part
                    .split_once(':')
                    .and_then(|(parent, ranges)| Some((parent.parse().ok()?, ranges)))
                    .ok_or_else(|| self.damaged(format!("entry `{path}`: bad provenance")))?;
                let ranges = ranges.split(',').filter(|range| !range.is_empty());
                let ranges = ranges
                    .map(parse_range)
                    .collect::<Option<_>>()
                    .ok_or_else(|| self.damaged(format!("entry `{path}`: bad provenance")))?;
                Ok(Provenance { parent: self.parent_path(parent)?, ranges })
            })
            .collect()
    }

    fn parent_path(&self, id: i64) -> Result<String, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let mut statement = self
            .connection
            .prepare_cached("SELECT path FROM parent WHERE id = ?1")
            .map_err(sqlite)?;
        statement
            .query_row([id], |row| row.get(0))
            .optional()
            .map_err(sqlite)?
            .ok_or_else(|| self.damaged(format!("parent {id} is missing")))
    }
}

/// Entries in path order; see [`Store::entries`].
#[derive(Debug)]
pub struct Entries<'a> {
    store: &'a Store,
    after: String,
    page: VecDeque<Result<Record, StoreError>>,
    ended: bool,
}

impl Entries<'_> {
    fn fetch(&mut self) -> Result<(), StoreError> {
        let sqlite = |error| self.store.sqlite(error);
        // No path is empty, so the first page starts after the empty one.
        let sql =
            format!("SELECT {ENTRY_COLUMNS} FROM entry WHERE path > ?1 ORDER BY path LIMIT {PAGE}");
        let mut statement = self.store.connection.prepare_cached(&sql).map_err(sqlite)?;
        let mut rows = statement.query([&self.after]).map_err(sqlite)?;
        while let Some(row) = rows.next().map_err(sqlite)? {
            self.after = row.get(0).map_err(sqlite)?;
            self.page.push_back(self.store.record(row));
        }
        self.ended = self.page.len() < PAGE;
        Ok(())
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty()
            && !self.ended
            && let Err(error) = self.fetch()
        {
            self.ended = true;
            return Some(Err(error));
        }
        self.page.pop_front()
    }
}

/// Why a blob cannot be unpacked: the store failed, or the content is wrong.
enum Unreadable {
    Store(StoreError),
    Content(io::Error),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Content(error)
    }
}

fn parse_range(text: &str) -> Option<Range<u32>> {
    let (start, end) = text.split_once('-')?;
    Some(start.parse().ok()?..end.parse().ok()?)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}
