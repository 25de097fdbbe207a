//! Files beside the graphs: lists, and whatever else the folder of a sample holds. They are kept as they came, so that an
//! export gives them back byte for byte.

use super::{EntryChange, Store, StoreError, StoreErrorKind};
use crate::content::check_path_part;
use rusqlite::{OptionalExtension, params};

/// Made with the first file: most stores have none.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS file (
    path TEXT PRIMARY KEY,
    kind TEXT NOT NULL,       -- text, script, link, folder
    size INTEGER NOT NULL,
    data BLOB NOT NULL        -- compressed where that is shorter than `size`
);
";

/// How strongly files are compressed: they are short and written once.
const LEVEL: i32 = 9;

/// One file, with its path from the top of the dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its path.
    pub path: String,
    /// What it holds.
    pub body: FileBody,
}

/// What a file holds, by what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBody {
    /// Its bytes.
    Text(Vec<u8>),
    /// A file that may be executed.
    Script(Vec<u8>),
    /// Where a link leads, relative to its folder.
    Link(String),
    /// A folder with nothing in it.
    Folder,
}

impl FileBody {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Script(_) => "script",
            Self::Link(_) => "link",
            Self::Folder => "folder",
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) | Self::Script(bytes) => bytes,
            Self::Link(target) => target.as_bytes(),
            Self::Folder => &[],
        }
    }

    pub(crate) fn read(kind: &str, bytes: Vec<u8>) -> Option<Self> {
        match kind {
            "text" => Some(Self::Text(bytes)),
            "script" => Some(Self::Script(bytes)),
            "link" => String::from_utf8(bytes).ok().map(Self::Link),
            "folder" => Some(Self::Folder),
            _ => None,
        }
    }
}

impl Store {
    /// Keeps files in one transaction, in place of those with the same paths.
    pub fn put_files(&mut self, files: &[StoredFile]) -> Result<Vec<EntryChange>, StoreError> {
        for file in files {
            file.path.split('/').try_for_each(check_path_part).map_err(|why| {
                let message =
                    format!("`{}` cannot be stored: its path {why}", file.path.escape_debug());
                StoreError::new(&self.path, StoreErrorKind::Refused(message))
            })?;
        }
        let transaction = self.begin()?;
        if !files.is_empty() {
            self.connection.execute_batch(TABLES).map_err(|error| self.sqlite(error))?;
        }
        let mut outcomes = Vec::with_capacity(files.len());
        for file in files {
            let outcome = match self.file(&file.path)? {
                Some(old) if old == *file => EntryChange::Unchanged,
                Some(_) => EntryChange::Replaced,
                None => EntryChange::Added,
            };
            if outcome != EntryChange::Unchanged {
                self.write_stored_file(file)?;
            }
            outcomes.push(outcome);
        }
        transaction.commit()?;
        Ok(outcomes)
    }

    fn write_stored_file(&self, file: &StoredFile) -> Result<(), StoreError> {
        let plain = file.body.bytes();
        let packed = zstd::bulk::compress(plain, LEVEL)
            .map_err(|error| StoreError::new(&self.path, StoreErrorKind::Io(error)))?;
        let data = if packed.len() < plain.len() { packed.as_slice() } else { plain };
        self.execute(
            "INSERT OR REPLACE INTO file (path, kind, size, data) VALUES (?1, ?2, ?3, ?4)",
            params![file.path, file.body.kind(), plain.len() as i64, data],
        )?;
        Ok(())
    }

    /// Forgets files; those that are not there are no error.
    pub fn remove_files<'a>(
        &mut self,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), StoreError> {
        if !self.has_table("file")? {
            return Ok(());
        }
        let transaction = self.begin()?;
        for path in paths {
            self.execute("DELETE FROM file WHERE path = ?1", [path])?;
        }
        transaction.commit()
    }

    /// The paths of all files, in order.
    pub fn file_paths(&self) -> Result<Vec<String>, StoreError> {
        self.paths("SELECT path FROM file ORDER BY path")
    }

    /// The paths of those that are links, in order.
    pub fn link_paths(&self) -> Result<Vec<String>, StoreError> {
        self.paths("SELECT path FROM file WHERE kind = 'link' ORDER BY path")
    }

    fn paths(&self, sql: &str) -> Result<Vec<String>, StoreError> {
        if !self.has_table("file")? {
            return Ok(Vec::new());
        }
        let sqlite = |error| self.sqlite(error);
        let mut statement = self.connection.prepare(sql).map_err(sqlite)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(sqlite)?;
        rows.collect::<Result<_, _>>().map_err(sqlite)
    }

    /// One file.
    pub fn file(&self, path: &str) -> Result<Option<StoredFile>, StoreError> {
        if !self.has_table("file")? {
            return Ok(None);
        }
        let sql = "SELECT kind, size, data FROM file WHERE path = ?1";
        let row: Option<(String, i64, Vec<u8>)> = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| {
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                statement.query_row([path], read).optional()
            })
            .map_err(|error| self.sqlite(error))?;
        let Some((kind, size, data)) = row else { return Ok(None) };
        let bad = |what: &str| self.damaged(format!("file `{path}`: {what}"));
        let size = usize::try_from(size).map_err(|_| bad("bad size"))?;
        let bytes = match data.len() == size {
            true => data,
            false => {
                zstd::bulk::decompress(&data, size).map_err(|error| bad(&error.to_string()))?
            }
        };
        if bytes.len() != size {
            return Err(bad("it is shorter than it was"));
        }
        let body = FileBody::read(&kind, bytes).ok_or_else(|| bad("bad kind"))?;
        Ok(Some(StoredFile { path: path.to_string(), body }))
    }

    /// A key of all files, for the key of the whole store; `None` where there is no file.
    pub(super) fn files_key(&self) -> Result<Option<blake3::Hash>, StoreError> {
        let paths = self.file_paths()?;
        let mut hasher = blake3::Hasher::new();
        for path in &paths {
            if let Some(file) = self.file(path)? {
                let (kind, bytes) = (file.body.kind(), file.body.bytes());
                hasher.update(path.as_bytes()).update(&[0]).update(kind.as_bytes()).update(&[0]);
                hasher.update(blake3::hash(bytes).as_bytes());
            }
        }
        Ok((!paths.is_empty()).then(|| hasher.finalize()))
    }
}
