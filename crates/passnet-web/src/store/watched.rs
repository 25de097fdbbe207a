//! What watched kernels did, by what was watched.

use super::types::Entry;
use super::{Store, now, read};
use crate::Error;
use crate::watch::Watched;
use rusqlite::{OptionalExtension, params};

impl Store {
    /// What was seen of a subject; `None` where it was not watched yet.
    pub fn watched(&self, key: &str) -> Result<Option<Watched>, Error> {
        let text: Option<String> = self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT found FROM watched WHERE key = ?1")?;
            Ok(statement.query_row([key], |row| row.get(0)).optional()?)
        })?;
        let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
        parsed.map_err(|error| Error::storage(format!("watched {key}: {error}")))
    }

    /// Keeps what was seen. Pages change when the whole entry is done, not with every part of it.
    pub fn keep_watched(&self, key: &str, found: &Watched) -> Result<(), Error> {
        let text =
            serde_json::to_string(found).map_err(|error| Error::storage(error.to_string()))?;
        self.write_quietly(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO watched (key, found, time) VALUES (?1, ?2, ?3)",
                params![key, text, now()],
            )?;
            Ok(())
        })
    }

    /// The first standing entry whose kernels were not watched with these tasks.
    pub fn next_unwatched(&self, tasks: &str) -> Result<Option<Entry>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM entry WHERE state = 'listed' AND NOT EXISTS (
                     SELECT 1 FROM watching WHERE watching.entry = entry.number AND watching.tasks = ?1)
                 ORDER BY number LIMIT 1",
            )?;
            let id: Option<String> = statement.query_row([tasks], |row| row.get(0)).optional()?;
            match id {
                Some(id) => read::by_id(connection, &id),
                None => Ok(None),
            }
        })
    }

    /// Says that everything of an entry that can be watched with these tasks was.
    pub fn end_watching(&self, entry: &Entry, tasks: &str) -> Result<(), Error> {
        self.write(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO watching (entry, tasks) VALUES (?1, ?2)",
                params![entry.number, tasks],
            )?;
            Ok(())
        })
    }
}
