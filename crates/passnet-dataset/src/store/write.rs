//! Writing: batches of entries, each batch one transaction. A batch is stored whole or not at all.

use super::codec::{self, Encoder, Trainer};
use super::entry::{Entry, Provenance};
use super::error::StoreErrorKind;
use super::mark::Mark;
use super::schema::ENTRY_COLUMNS;
use super::{Store, StoreError};
use crate::content::ContentKey;
use passnet_graph::FileName;
use passnet_work::parallel;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params, params_from_iter};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroUsize;

/// Blobs compressed by one worker in one go, so that it sets up its memory once.
const BLOBS_PER_JOB: usize = 32;
/// The store learns dictionaries when it first holds this many blobs, and again each time it has grown by the factor.
const FIRST_TRAINING: i64 = 1_000;
const TRAINING_GROWTH: i64 = 16;
/// Bytes of files held when packing again.
const REPACKED_AT_ONCE: usize = 32 << 20;
/// Blobs looked at for one training.
const TRAINING_SAMPLES: i64 = 8_192;

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    /// Its path was new.
    Added,
    /// There was an entry with this path and other files or another description.
    Replaced,
    /// Path, files and description were already there.
    Unchanged,
}

/// A blob's compressed form.
struct Packed {
    dictionary: i64,
    data: Vec<u8>,
}

/// A file whose content is not in the store yet.
struct NewFile<'a> {
    key: ContentKey,
    name: FileName,
    bytes: &'a [u8],
}

impl Store {
    /// Stores a batch in one transaction: after an error, or a kill, none of it is there. Call it with some hundred
    /// entries at a time; each call waits for the disk.
    pub fn insert(&mut self, entries: &[Entry]) -> Result<Vec<EntryChange>, StoreError> {
        self.insert_marked(entries, "", &[])
    }

    /// Like [`Store::insert`], and says in the same transaction that a sweep is done with some graphs.
    pub fn insert_marked(
        &mut self,
        entries: &[Entry],
        sweep: &str,
        marks: &[Mark],
    ) -> Result<Vec<EntryChange>, StoreError> {
        let writer = self.writer.as_ref().ok_or_else(|| self.read_only())?;
        for entry in entries {
            entry
                .check()
                .map_err(|why| StoreError::new(&self.path, StoreErrorKind::Refused(why)))?;
        }
        let new = self.new_files(entries)?;
        let files: Vec<_> = new.iter().map(|file| (file.name, file.bytes)).collect();
        let packed = pack(&writer.encoder, writer.workers, &files)
            .map_err(|error| StoreError::new(&self.path, StoreErrorKind::Io(error)))?;

        let transaction = self.begin()?;
        for (file, packed) in new.iter().zip(&packed) {
            self.write_file(file, packed)?;
        }
        let outcomes = entries
            .iter()
            .map(|entry| self.write_entry(entry))
            .collect::<Result<Vec<_>, StoreError>>()?;
        self.write_marks(sweep, marks)?;
        let trained = self.train_when_due()?;
        transaction.commit()?;
        if trained {
            self.load_dictionaries()?;
        }
        Ok(outcomes)
    }

    /// Removes entries, in one transaction; returns how many there were. Their files go at the next
    /// [`Store::compact`].
    pub fn remove<'a>(
        &mut self,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<usize, StoreError> {
        if self.writer.is_none() {
            return Err(self.read_only());
        }
        let transaction = self.begin()?;
        let mut removed = 0;
        for path in paths {
            removed += self.execute("DELETE FROM entry WHERE path = ?1", [path])?;
        }
        transaction.commit()?;
        Ok(removed)
    }

    fn read_only(&self) -> StoreError {
        StoreError::new(&self.path, StoreErrorKind::ReadOnly)
    }

    pub(super) fn begin(&self) -> Result<Transaction<'_>, StoreError> {
        // `&mut self` of the callers keeps transactions from nesting; this form lets them call `&self` helpers.
        rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
            .map(|transaction| Transaction { transaction, store: self })
            .map_err(|error| self.sqlite(error))
    }

    pub(super) fn execute(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params))
            .map_err(|error| self.sqlite(error))
    }

    fn blob_of(&self, key: ContentKey) -> Result<Option<i64>, StoreError> {
        self.connection
            .prepare_cached("SELECT blob FROM blob_key WHERE key = ?1")
            .and_then(|mut statement| statement.query_row([key.0], |row| row.get(0)).optional())
            .map_err(|error| self.sqlite(error))
    }

    /// The files whose content is not there yet, each once, in the order in which entries bring them: blobs are
    /// numbered in that order, so that a graph's blobs lie together.
    fn new_files<'a>(&self, entries: &'a [Entry]) -> Result<Vec<NewFile<'a>>, StoreError> {
        let mut seen = BTreeSet::new();
        let mut new = Vec::new();
        for (&name, bytes) in entries.iter().flat_map(|entry| &entry.graph.files) {
            let key = ContentKey::of(bytes);
            if seen.insert(key) && self.blob_of(key)?.is_none() {
                new.push(NewFile { key, name, bytes });
            }
        }
        Ok(new)
    }

    fn write_file(&self, file: &NewFile<'_>, packed: &Packed) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO blob (file, dictionary, size, data) VALUES (?1, ?2, ?3, ?4)",
            params![file.name as i64, packed.dictionary, file.bytes.len() as i64, packed.data],
        )?;
        let id = self.connection.last_insert_rowid();
        self.execute("INSERT INTO blob_key (key, blob) VALUES (?1, ?2)", params![file.key.0, id])?;
        Ok(())
    }

    fn write_entry(&self, entry: &Entry) -> Result<EntryChange, StoreError> {
        let graph = &entry.graph;
        let content = ContentKey::of_graph(graph);
        let old = self.get(&graph.path)?;
        let outcome = match &old {
            None => EntryChange::Added,
            Some(old) if old.content == content && old.description == entry.description => {
                return Ok(EntryChange::Unchanged);
            }
            Some(_) => EntryChange::Replaced,
        };
        let description = &entry.description;
        let variant = description.variant.as_ref();
        let mut values: Vec<Value> = vec![
            graph.path.clone().into(),
            content.0.to_vec().into(),
            description.kind.as_str().to_owned().into(),
            description.op_count.into(),
            encode_digest(&description.digests.structure),
            encode_digest(&description.digests.literals),
            encode_digest(&description.digests.full),
            self.encode_provenance(&description.provenance)?.into(),
            variant.map(|variant| variant.dtype.clone()).into(),
            variant.map(|variant| variant.shape_index).into(),
        ];
        for name in FileName::ALL {
            let blob = match graph.get(name) {
                Some(bytes) => self.blob_of(ContentKey::of(bytes))?,
                None => None,
            };
            values.push(blob.into());
        }
        let places = vec!["?"; values.len()].join(", ");
        self.execute(
            &format!("INSERT OR REPLACE INTO entry ({ENTRY_COLUMNS}) VALUES ({places})"),
            params_from_iter(values),
        )?;
        Ok(outcome)
    }

    fn encode_provenance(&self, all: &[Provenance]) -> Result<Option<String>, StoreError> {
        let mut parts = Vec::new();
        for one in all {
            self.execute("INSERT OR IGNORE INTO parent (path) VALUES (?1)", [&one.parent])?;
            let parent: i64 = self
                .connection
                .prepare_cached("SELECT id FROM parent WHERE path = ?1")
                .and_then(|mut statement| statement.query_row([&one.parent], |row| row.get(0)))
                .map_err(|error| self.sqlite(error))?;
            let ranges: Vec<_> =
                one.ranges.iter().map(|range| format!("{}-{}", range.start, range.end)).collect();
            parts.push(format!("{parent}:{}", ranges.join(",")));
        }
        Ok((!parts.is_empty()).then(|| parts.join(";")))
    }

    /// Learns dictionaries when the store has grown enough since the last time.
    fn train_when_due(&self) -> Result<bool, StoreError> {
        let sqlite = |error| self.sqlite(error);
        // Blobs are numbered from 1 without gaps until the first compaction: the highest number is count enough.
        let (blobs, trained_at): (i64, i64) = self
            .connection
            .query_row(
                "SELECT (SELECT coalesce(max(id), 0) FROM blob),
                        coalesce((SELECT value FROM meta WHERE key = 'trained_at'), 0)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(sqlite)?;
        if blobs < FIRST_TRAINING.max(trained_at.saturating_mul(TRAINING_GROWTH)) {
            return Ok(false);
        }
        let encoder = self.train(blobs, codec::FAST)?;
        if trained_at == 0 {
            // What came before the first dictionary is little, and is packed again with it.
            self.repack(&encoder, 1..blobs + 1)?;
        }
        Ok(true)
    }

    /// Learns one dictionary for each kind of file from blobs spread over the whole store.
    pub(super) fn train(&self, blobs: i64, level: i32) -> Result<Encoder, StoreError> {
        let mut trainers: BTreeMap<FileName, Trainer> = BTreeMap::new();
        let step = (blobs / TRAINING_SAMPLES).max(1) as usize;
        for blob in (1..=blobs).step_by(step) {
            // Compaction leaves gaps in the numbers.
            let Some((name, size)) = self.file_of_blob(blob)? else { continue };
            if Trainer::wants(size) {
                trainers.entry(name).or_default().add(&self.read_blob(blob)?);
            }
        }
        let mut encoder = Encoder::new(level);
        for (name, trainer) in trainers {
            if let Some(dictionary) = trainer.train() {
                self.execute(
                    "INSERT INTO dictionary (file, data) VALUES (?1, ?2)",
                    params![name as i64, dictionary],
                )?;
                let id = self.connection.last_insert_rowid();
                encoder.set(name, id, &dictionary).map_err(|e| self.damaged(e.to_string()))?;
            }
        }
        self.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('trained_at', ?1)",
            [blobs],
        )?;
        Ok(encoder)
    }

    /// The kind and the size of a blob, if there is one with this number.
    fn file_of_blob(&self, blob: i64) -> Result<Option<(FileName, i64)>, StoreError> {
        let row: Option<(i64, i64)> = self
            .connection
            .prepare_cached("SELECT file, size FROM blob WHERE id = ?1")
            .and_then(|mut statement| {
                statement.query_row([blob], |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .map_err(|error| self.sqlite(error))?;
        match row {
            None => Ok(None),
            Some((file, size)) => file_name(file)
                .map(|name| Some((name, size)))
                .ok_or_else(|| self.damaged(format!("blob {blob} is of unknown kind {file}"))),
        }
    }

    /// Compresses the blobs with these numbers again.
    pub(super) fn repack(
        &self,
        encoder: &Encoder,
        blobs: std::ops::Range<i64>,
    ) -> Result<(), StoreError> {
        let mut plain = Vec::new();
        let mut bytes = 0;
        for blob in blobs {
            if let Some((name, _)) = self.file_of_blob(blob)? {
                let file = self.read_blob(blob)?;
                bytes += file.len();
                plain.push((blob, name, file));
            }
            if bytes >= REPACKED_AT_ONCE {
                self.repack_files(encoder, &plain)?;
                plain.clear();
                bytes = 0;
            }
        }
        self.repack_files(encoder, &plain)
    }

    fn repack_files(
        &self,
        encoder: &Encoder,
        plain: &[(i64, FileName, Vec<u8>)],
    ) -> Result<(), StoreError> {
        let writer = self.writer.as_ref().ok_or_else(|| self.read_only())?;
        let files: Vec<_> =
            plain.iter().map(|(_, name, bytes)| (*name, bytes.as_slice())).collect();
        let packed = pack(encoder, writer.workers, &files)
            .map_err(|error| StoreError::new(&self.path, StoreErrorKind::Io(error)))?;
        for ((blob, ..), packed) in plain.iter().zip(packed) {
            self.execute(
                "UPDATE blob SET dictionary = ?2, data = ?3 WHERE id = ?1",
                params![blob, packed.dictionary, packed.data],
            )?;
        }
        Ok(())
    }

    /// Makes the encoder use the newest dictionaries in the file.
    pub(super) fn load_dictionaries(&mut self) -> Result<(), StoreError> {
        let newest = newest_dictionaries(&self.connection).map_err(|error| self.sqlite(error))?;
        let mut encoder = Encoder::new(codec::FAST);
        for (file, id, data) in newest {
            let name = file_name(file)
                .ok_or_else(|| self.damaged(format!("dictionary {id} is of unknown kind")))?;
            encoder.set(name, id, &data).map_err(|error| self.damaged(error.to_string()))?;
        }
        if let Some(writer) = &mut self.writer {
            writer.encoder = encoder;
        }
        Ok(())
    }
}

/// A transaction that rolls back when dropped.
pub(super) struct Transaction<'a> {
    transaction: rusqlite::Transaction<'a>,
    store: &'a Store,
}

impl Transaction<'_> {
    pub(super) fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().map_err(|error| self.store.sqlite(error))
    }
}

fn newest_dictionaries(connection: &Connection) -> rusqlite::Result<Vec<(i64, i64, Vec<u8>)>> {
    let mut statement = connection.prepare(
        "SELECT file, id, data FROM dictionary
         WHERE id IN (SELECT max(id) FROM dictionary GROUP BY file) ORDER BY file",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

/// Compresses files on all workers, in order.
fn pack(
    encoder: &Encoder,
    workers: NonZeroUsize,
    files: &[(FileName, &[u8])],
) -> io::Result<Vec<Packed>> {
    let mut packed = Vec::with_capacity(files.len());
    parallel::ordered(
        files.chunks(BLOBS_PER_JOB),
        workers,
        |job| {
            let mut session = encoder.session();
            job.iter()
                .map(|&(name, bytes)| {
                    let (dictionary, data) = session.pack(name, bytes)?;
                    Ok(Packed { dictionary, data })
                })
                .collect::<io::Result<Vec<_>>>()
        },
        |job| {
            packed.extend(job.map_err(io::Error::other)??);
            Ok::<(), io::Error>(())
        },
    )
    .map_err(|stopped| match stopped {
        parallel::Stopped::Consumer(error) | parallel::Stopped::NoThread(error) => error,
    })?;
    Ok(packed)
}

fn file_name(code: i64) -> Option<FileName> {
    FileName::ALL.into_iter().find(|&name| name as i64 == code)
}

/// Hex digits as bytes, anything else as text.
fn encode_digest(digest: &str) -> Value {
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digest.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect();
    match bytes {
        Some(bytes) if rest.is_empty() && !bytes.is_empty() => bytes.into(),
        _ => digest.to_owned().into(),
    }
}
