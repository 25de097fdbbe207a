//! Marks: what a sweep has done already. They are committed together with what the sweep made, so that a killed
//! sweep continues exactly where its last batch ended.

use super::{Store, StoreError};
use crate::content::ContentKey;
use rusqlite::params;
use std::collections::BTreeMap;

/// Made on demand: stores written before there were sweeps have none.
pub(super) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS mark (
    stage TEXT NOT NULL,      -- the name of the sweep
    path TEXT NOT NULL,       -- the graph the sweep worked on
    input BLOB NOT NULL,      -- key of all that the result depends on
    report TEXT NOT NULL,     -- what the sweep says about this graph
    PRIMARY KEY (stage, path)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL        -- JSON
) WITHOUT ROWID;
";

/// That a sweep is done with a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The path of the graph.
    pub path: String,
    /// The key of everything that the result depends on.
    pub input: ContentKey,
    /// What came of it, as JSON.
    pub report: String,
}

impl Store {
    /// The marks a sweep has left, by path: key of the input, and report.
    pub fn marks(&self, sweep: &str) -> Result<BTreeMap<String, (ContentKey, String)>, StoreError> {
        if !self.has_table("mark")? {
            return Ok(BTreeMap::new());
        }
        let sqlite = |error| self.sqlite(error);
        let mut statement = self
            .connection
            .prepare_cached("SELECT path, input, report FROM mark WHERE stage = ?1")
            .map_err(sqlite)?;
        let rows = statement
            .query_map([sweep], |row| {
                Ok((row.get(0)?, (ContentKey(row.get(1)?), row.get::<_, String>(2)?)))
            })
            .map_err(sqlite)?;
        rows.collect::<Result<_, _>>().map_err(sqlite)
    }

    pub(super) fn write_marks(&self, sweep: &str, marks: &[Mark]) -> Result<(), StoreError> {
        for mark in marks {
            self.execute(
                "INSERT OR REPLACE INTO mark (stage, path, input, report) VALUES (?1, ?2, ?3, ?4)",
                params![sweep, mark.path, mark.input.0, mark.report],
            )?;
        }
        Ok(())
    }

    /// Replaces the list of tasks: identifiers and JSON bodies.
    pub fn set_tasks(&mut self, tasks: &[(String, String)]) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        self.execute("DELETE FROM task", [])?;
        for (id, body) in tasks {
            self.execute("INSERT INTO task (id, body) VALUES (?1, ?2)", [id, body])?;
        }
        transaction.commit()
    }

    /// The tasks by identifier, as JSON.
    pub fn tasks(&self) -> Result<Vec<(String, String)>, StoreError> {
        if !self.has_table("task")? {
            return Ok(Vec::new());
        }
        let sqlite = |error| self.sqlite(error);
        let mut statement =
            self.connection.prepare("SELECT id, body FROM task ORDER BY id").map_err(sqlite)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sqlite)?;
        rows.collect::<Result<_, _>>().map_err(sqlite)
    }

    pub(super) fn has_table(&self, name: &str) -> Result<bool, StoreError> {
        self.connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = ?1", [name], |row| {
                row.get::<_, i64>(0)
            })
            .map(|count| count > 0)
            .map_err(|error| self.sqlite(error))
    }
}
