//! Keeping a store small and telling whether it is sound.

use super::{Store, StoreError, StoreErrorKind, codec};
use crate::content::ContentKey;
use passnet_work::progress::{Progress, Task};

/// Blobs packed again in one transaction.
const BATCH: i64 = 2_048;

/// What a compaction gained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// How large the file was.
    pub bytes_before: u64,
    /// How large it is now.
    pub bytes_after: u64,
    /// Files that no entry used any more.
    pub files_dropped: usize,
}

impl Store {
    /// Drops files no entry uses, learns dictionaries from what is left, packs everything again with them and gives
    /// free space back. Worth it after large changes. A kill on the way leaves a sound store.
    pub fn compact(&mut self, progress: &dyn Progress) -> Result<Compacted, StoreError> {
        let bytes_before = self.size()?;
        let files_dropped = self.drop_unused()?;

        let blobs: i64 = self
            .connection
            .query_row("SELECT coalesce(max(id), 0) FROM blob", [], |row| row.get(0))
            .map_err(|error| self.sqlite(error))?;
        let transaction = self.begin()?;
        let encoder = self.train(blobs, codec::DENSE)?;
        transaction.commit()?;
        let mut task = Task::begin(progress, "compacting", Some(blobs.unsigned_abs()));
        for first in (1..=blobs).step_by(BATCH as usize) {
            let last = blobs.min(first + BATCH - 1);
            let transaction = self.begin()?;
            self.repack(&encoder, first..last + 1)?;
            transaction.commit()?;
            task.advance((last + 1 - first).unsigned_abs());
        }
        self.execute("DELETE FROM dictionary WHERE id NOT IN (SELECT dictionary FROM blob)", [])?;
        self.connection
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
            .map_err(|error| self.sqlite(error))?;
        self.load_dictionaries()?;
        Ok(Compacted { bytes_before, bytes_after: self.size()?, files_dropped })
    }

    fn drop_unused(&mut self) -> Result<usize, StoreError> {
        if self.writer.is_none() {
            return Err(StoreError::new(&self.path, StoreErrorKind::ReadOnly));
        }
        let transaction = self.begin()?;
        // One list of all used blobs, or SQLite would look for each blob in seven columns.
        self.connection
            .execute_batch(
                "CREATE TEMP TABLE used AS
                 SELECT model AS id FROM entry UNION SELECT weight_meta FROM entry
                 UNION SELECT input_meta FROM entry UNION SELECT input_tensor_constraints FROM entry
                 UNION SELECT graph_net FROM entry UNION SELECT graph_hash FROM entry
                 UNION SELECT subgraph_sources FROM entry;
                 DELETE FROM used WHERE id IS NULL;
                 DELETE FROM blob_key WHERE blob NOT IN (SELECT id FROM used);",
            )
            .map_err(|error| self.sqlite(error))?;
        let dropped = self.execute("DELETE FROM blob WHERE id NOT IN (SELECT id FROM used)", [])?;
        self.connection.execute_batch("DROP TABLE used").map_err(|error| self.sqlite(error))?;
        transaction.commit()?;
        Ok(dropped)
    }

    /// Closes a store for shipping: read from then on without other files beside it, be it where nothing can be
    /// written.
    pub fn seal(self) -> Result<(), StoreError> {
        self.pragma("journal_mode", "DELETE")
    }

    /// Bytes of the store's content.
    pub fn size(&self) -> Result<u64, StoreError> {
        let pragma = |name| -> Result<i64, StoreError> {
            self.connection
                .pragma_query_value(None, name, |row| row.get(0))
                .map_err(|error| self.sqlite(error))
        };
        Ok((pragma("page_count")? * pragma("page_size")?).unsigned_abs())
    }

    /// Checks the whole store: the file's structure, every blob against its key, and every entry's references.
    /// Returns what is wrong, in words; nothing for a sound store.
    pub fn check(&self, progress: &dyn Progress) -> Result<Vec<String>, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let _snapshot = self.snapshot()?;
        let mut problems: Vec<String> = self
            .connection
            .prepare("PRAGMA integrity_check(20)")
            .and_then(|mut statement| {
                statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
            })
            .map_err(sqlite)?;
        problems.retain(|line| line != "ok");

        let mut statement = self
            .connection
            .prepare("SELECT key, blob FROM blob_key ORDER BY blob")
            .map_err(sqlite)?;
        let keys: Vec<([u8; 16], i64)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(sqlite)?;
        let mut task = Task::begin(progress, "checking", Some(keys.len() as u64));
        for (key, blob) in &keys {
            match self.read_blob(*blob) {
                Ok(bytes) if ContentKey::of(&bytes).0 == *key => {}
                Ok(_) => problems.push(format!("blob {blob} does not fit its key")),
                Err(error) => problems.push(error.to_string()),
            }
            task.advance(1);
        }
        for record in self.entries() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    problems.push(error.to_string());
                    continue;
                }
            };
            let missing = record
                .blobs
                .values()
                .find(|blob| keys.binary_search_by_key(*blob, |(_, id)| *id).is_err());
            if let Some(blob) = missing {
                problems
                    .push(format!("entry `{}` needs blob {blob}, which is missing", record.path));
            }
        }
        Ok(problems)
    }
}
