//! Tables, and how older files become newer ones.

use crate::Error;
use rusqlite::Connection;

/// Each step is applied once, in order; the file remembers how many were.
const MIGRATIONS: &[&str] = &[
    // The board: bundles, entries, their results, who submits.
    "CREATE TABLE generation (number INTEGER NOT NULL);
     INSERT INTO generation VALUES (1);
     CREATE TABLE author (
         id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, public_key TEXT NOT NULL, made INTEGER NOT NULL);
     CREATE TABLE token (
         hash BLOB PRIMARY KEY, author INTEGER NOT NULL REFERENCES author(id), made INTEGER NOT NULL,
         revoked INTEGER) WITHOUT ROWID;
     CREATE TABLE bundle (digest TEXT PRIMARY KEY, bytes BLOB NOT NULL);
     CREATE TABLE submission (
         id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, author INTEGER NOT NULL REFERENCES author(id),
         replaces TEXT, received INTEGER NOT NULL, state TEXT NOT NULL, reasons TEXT NOT NULL DEFAULT '[]');
     CREATE INDEX submission_state ON submission(state, id);
     CREATE TABLE class (key TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL);
     CREATE TABLE benchmark (
         key TEXT PRIMARY KEY, name TEXT NOT NULL, tasks INTEGER NOT NULL, graphs INTEGER NOT NULL);
     CREATE TABLE entry (
         number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, digest TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
         author TEXT NOT NULL, public_key TEXT, added INTEGER NOT NULL, time INTEGER NOT NULL,
         compiler TEXT NOT NULL, class TEXT NOT NULL REFERENCES class(key),
         benchmark TEXT NOT NULL REFERENCES benchmark(key), state TEXT NOT NULL, replaced_by TEXT,
         score REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, mean REAL, correct REAL NOT NULL,
         fast_1 REAL NOT NULL, fast_15 REAL NOT NULL, task_rate REAL NOT NULL, tokens INTEGER, cost REAL,
         rejudged INTEGER NOT NULL DEFAULT 0, agreed INTEGER NOT NULL DEFAULT 0,
         disagreed INTEGER NOT NULL DEFAULT 0, place INTEGER, detail TEXT NOT NULL);
     CREATE INDEX entry_board ON entry(class, benchmark, score DESC);
     CREATE TABLE result (
         entry INTEGER NOT NULL REFERENCES entry(number), position INTEGER NOT NULL, task INTEGER NOT NULL,
         task_name TEXT NOT NULL, graph TEXT NOT NULL, model TEXT, verdict TEXT NOT NULL, decision TEXT,
         speedup REAL, low REAL, high REAL, dtype TEXT NOT NULL, log_score REAL NOT NULL, evidence TEXT NOT NULL,
         PRIMARY KEY (entry, position)) WITHOUT ROWID;
     CREATE INDEX result_graph ON result(task_name, graph, entry);
     CREATE TABLE rejudged (
         entry INTEGER NOT NULL REFERENCES entry(number), position INTEGER NOT NULL, verdict TEXT,
         speedup REAL, agrees INTEGER, text TEXT NOT NULL, place TEXT NOT NULL, time INTEGER NOT NULL,
         PRIMARY KEY (entry, position)) WITHOUT ROWID;
     CREATE TABLE dataset (
         path TEXT PRIMARY KEY, kind TEXT NOT NULL, family TEXT NOT NULL, task TEXT, structure TEXT NOT NULL,
         operations INTEGER NOT NULL, model TEXT NOT NULL) WITHOUT ROWID;
     CREATE INDEX dataset_task ON dataset(task);
     CREATE TABLE dataset_operation (
         operation TEXT NOT NULL, path TEXT NOT NULL, calls INTEGER NOT NULL,
         PRIMARY KEY (operation, path)) WITHOUT ROWID;",
    // What watched kernels did, and with which tasks those of an entry were watched. How often a dataset was imported, and
    // its graphs by number. Ways to the best entries; what only a run's own page shows lies apart, so that rankings need not
    // read over it.
    "CREATE TABLE watching (entry INTEGER PRIMARY KEY REFERENCES entry(number), tasks TEXT NOT NULL);
     ALTER TABLE generation ADD COLUMN dataset INTEGER NOT NULL DEFAULT 1;
     CREATE TABLE numbered (
         number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, family TEXT NOT NULL, task TEXT,
         structure TEXT NOT NULL, operations INTEGER NOT NULL, model TEXT NOT NULL);
     INSERT INTO numbered SELECT row_number() OVER (ORDER BY path) - 1, path, kind, family, task, structure, operations,
         model FROM dataset;
     DROP TABLE dataset;
     ALTER TABLE numbered RENAME TO dataset;
     CREATE INDEX dataset_task ON dataset(task);
     CREATE INDEX dataset_structure ON dataset(structure);
     CREATE TABLE detail (entry INTEGER PRIMARY KEY REFERENCES entry(number), text TEXT NOT NULL);
     INSERT INTO detail SELECT number, detail FROM entry;
     ALTER TABLE entry DROP COLUMN detail;
     CREATE INDEX entry_standing ON entry(class, benchmark, state, score DESC, number);
     CREATE INDEX entry_compiler ON entry(class, benchmark, compiler, state, score DESC);
     CREATE TABLE watched (key TEXT PRIMARY KEY, found TEXT NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID;",
];

/// Brings a file to the newest schema.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), Error> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let found = usize::try_from(found).unwrap_or(0);
    if found > MIGRATIONS.len() {
        return Err(Error::input(format!(
            "the store has schema {found}, but this version knows {}",
            MIGRATIONS.len()
        ))
        .with_hint("a newer `passnet` wrote it"));
    }
    for (index, step) in MIGRATIONS.iter().enumerate().skip(found) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", index as i64 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_files_become_newer_ones_and_lose_nothing() {
        for known in 1..MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            for step in &MIGRATIONS[..known] {
                connection.execute_batch(step).unwrap();
            }
            connection.pragma_update(None, "user_version", known as i64).unwrap();
            connection
                .execute("INSERT INTO author (name, public_key, made) VALUES ('alice', 'k', 1)", [])
                .unwrap();
            let insert = "INSERT INTO dataset (path, kind, family, structure, operations, model)
                 VALUES (?1, 'k', 'f', 's', 1, 'm')";
            for path in ["b", "c", "a"] {
                connection.execute(insert, [path]).unwrap();
            }
            connection
                .execute_batch(
                    "INSERT INTO class VALUES ('c', '', '');
                     INSERT INTO benchmark VALUES ('b', '', 1, 1);
                     INSERT INTO entry (id, digest, name, author, added, time, compiler, class, benchmark, state, score,
                         low, high, correct, fast_1, fast_15, task_rate, detail)
                     VALUES ('i', 'd', 'n', 'a', 1, 1, 'pass', 'c', 'b', 'listed', 1, 1, 1, 1, 1, 1, 1, 'told');",
                )
                .unwrap();
            prepare(&mut connection).unwrap();
            prepare(&mut connection).unwrap();
            let detail: String = connection
                .query_row("SELECT text FROM detail JOIN entry ON number = entry", [], |row| {
                    row.get(0)
                })
                .unwrap();
            assert_eq!(detail, "told");
            let name: String =
                connection.query_row("SELECT name FROM author", [], |row| row.get(0)).unwrap();
            assert_eq!(name, "alice", "from {known}");
            let second: String = connection
                .query_row("SELECT path FROM dataset WHERE number = 1", [], |row| row.get(0))
                .unwrap();
            assert_eq!(second, "b", "numbers follow the paths");
            connection.prepare("SELECT tasks FROM watching").unwrap();
            connection.prepare("SELECT found FROM watched").unwrap();
        }
    }

    #[test]
    fn a_file_of_a_later_version_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", MIGRATIONS.len() as i64 + 1).unwrap();
        let error = prepare(&mut connection).unwrap_err();
        assert!(error.message.contains("schema") && error.hint.is_some(), "{error}");
    }
}
