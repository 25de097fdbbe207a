//! Which operations graphs have, by their structure: graphs of one structure have the same. Most graphs of a store are
//! variants of others, so that the index is small, and what stands in it never becomes wrong.

use super::read::hex;
use super::{Kind, Store, StoreError};
use rusqlite::types::ValueRef;
use std::collections::{BTreeMap, HashMap};

/// Made when something is kept in it: most stores have none.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS op_index (structure TEXT PRIMARY KEY, ops TEXT NOT NULL) WITHOUT ROWID;
";

/// How often each operation is called.
pub type OpCounts = BTreeMap<String, u32>;

/// An entry without its files: what a search over all of them needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Its logical path.
    pub path: String,
    /// Whole model or piece, and of which kind.
    pub kind: Kind,
    /// The number of its structure among those of [`Outlines`].
    pub structure: usize,
    /// The number of its structure with literals among those of [`Outlines`].
    pub literals: usize,
}

/// Entries in the order of their paths.
#[derive(Debug, Clone, Default)]
pub struct Outlines {
    /// The entries.
    pub entries: Vec<Outline>,
    /// The distinct structures, each by its digest.
    pub structures: Vec<String>,
    /// How many distinct graphs there are by structure and literals.
    pub literals: usize,
}

impl Store {
    /// All entries of some kinds.
    pub fn outlines(&self, kinds: &[Kind]) -> Result<Outlines, StoreError> {
        let sqlite = |error| self.sqlite(error);
        let sql = "SELECT path, kind, structure, literals FROM entry ORDER BY path";
        let mut statement = self.connection.prepare(sql).map_err(sqlite)?;
        let mut rows = statement.query([]).map_err(sqlite)?;
        let (mut structures, mut literals) = (HashMap::new(), HashMap::new());
        let mut found = Outlines::default();
        while let Some(row) = rows.next().map_err(sqlite)? {
            let path: String = row.get(0).map_err(sqlite)?;
            let kind: String = row.get(1).map_err(sqlite)?;
            let kind = Kind::parse(&kind)
                .ok_or_else(|| self.damaged(format!("entry `{path}`: bad kind")))?;
            if !kinds.contains(&kind) {
                continue;
            }
            let structure = digest(row.get_ref(2).map_err(sqlite)?);
            let next = structures.len();
            let structure = *structures.entry(structure).or_insert_with_key(|digest| {
                found.structures.push(digest.clone());
                next
            });
            let next = literals.len();
            let literal = digest(row.get_ref(3).map_err(sqlite)?);
            let literals = *literals.entry(literal).or_insert(next);
            found.entries.push(Outline { path, kind, structure, literals });
        }
        found.literals = literals.len();
        Ok(found)
    }

    /// What is kept of the operations of structures.
    pub fn op_index(&self) -> Result<HashMap<String, OpCounts>, StoreError> {
        if !self.has_table("op_index")? {
            return Ok(HashMap::new());
        }
        let sqlite = |error| self.sqlite(error);
        let sql = "SELECT structure, ops FROM op_index";
        let mut statement = self.connection.prepare(sql).map_err(sqlite)?;
        let mut rows = statement.query([]).map_err(sqlite)?;
        let mut index = HashMap::new();
        while let Some(row) = rows.next().map_err(sqlite)? {
            let structure: String = row.get(0).map_err(sqlite)?;
            let ops: String = row.get(1).map_err(sqlite)?;
            let ops = serde_json::from_str(&ops)
                .map_err(|error| self.damaged(format!("index of `{structure}`: {error}")))?;
            index.insert(structure, ops);
        }
        Ok(index)
    }

    /// Keeps the operations of structures, in one transaction.
    pub fn keep_op_index(&mut self, index: &[(String, OpCounts)]) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        self.connection.execute_batch(TABLES).map_err(|error| self.sqlite(error))?;
        for (structure, ops) in index {
            // Strings and numbers: cannot fail.
            let ops = serde_json::to_string(ops).unwrap_or_default();
            let sql = "INSERT OR REPLACE INTO op_index (structure, ops) VALUES (?1, ?2)";
            self.execute(sql, [structure, &ops])?;
        }
        transaction.commit()
    }
}

fn digest(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Blob(bytes) => hex(bytes),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}
