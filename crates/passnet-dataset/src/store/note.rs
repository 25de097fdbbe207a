//! Notes: what a store says beside its graphs, each a text under a name.

use super::{Store, StoreError};
use rusqlite::OptionalExtension;

impl Store {
    /// Keeps a text under a name, in place of an earlier one.
    pub fn set_note(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
        self.execute(sql, [key(name).as_str(), text])?;
        transaction.commit()
    }

    /// The text kept under a name.
    pub fn note(&self, name: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        let found = self.connection.query_row(sql, [key(name)], |row| row.get(0)).optional();
        found.map_err(|error| self.sqlite(error))
    }
}

/// Notes share a table with the store's own settings.
fn key(name: &str) -> String {
    format!("note: {name}")
}
