//! The folder on disk.

use super::{Event, FORMAT, GraphEvent};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const EVENTS: &str = "events.jsonl";
const OBJECTS: &str = "objects";
/// A store larger than this is refused rather than read into memory.
const MAX_EVENTS_BYTES: u64 = 4 << 30;

/// Why a run store could not be used.
#[derive(Debug)]
pub enum RunError {
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    /// Another process writes into the folder.
    InUse(PathBuf),
    /// A line that is no event, other than a torn last one.
    Damaged {
        path: PathBuf,
        line: usize,
        message: String,
    },
    /// Written by another version of this program.
    Format {
        path: PathBuf,
        found: u32,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Io { path, error } => write!(f, "{}: {error}", path.display()),
            RunError::InUse(path) => {
                write!(f, "{}: another process is writing this run", path.display())
            }
            RunError::Damaged { path, line, message } => {
                write!(f, "{}:{line}:1: not an event of a run: {message}", path.display())
            }
            RunError::Format { path, found } => write!(
                f,
                "{}: format {found}, but this version reads format {FORMAT}",
                path.display()
            ),
        }
    }
}

impl std::error::Error for RunError {}

fn io(path: &Path) -> impl Fn(std::io::Error) -> RunError + '_ {
    |error| RunError::Io { path: path.to_path_buf(), error }
}

/// A run that is being written.
#[derive(Debug)]
pub struct RunStore {
    folder: PathBuf,
    events: File,
    done: BTreeMap<String, GraphEvent>,
    /// The key of the last result of each graph, by sample and graph: what a report shows.
    latest: BTreeMap<(String, String), String>,
}

impl RunStore {
    /// Opens a run to go on with, or begins a new one.
    pub fn open(folder: &Path) -> Result<RunStore, RunError> {
        std::fs::create_dir_all(folder).map_err(io(folder))?;
        let path = folder.join(EVENTS);
        let mut events = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .map_err(io(&path))?;
        match events.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RunError::InUse(folder.to_path_buf())),
            Err(TryLockError::Error(error)) => return Err(io(&path)(error)),
        }
        let parsed = parse(&path, &mut events)?;
        if parsed.torn {
            events.set_len(parsed.whole_bytes).map_err(io(&path))?;
            events.seek(SeekFrom::End(0)).map_err(io(&path))?;
        }
        let mut store = RunStore {
            folder: folder.to_path_buf(),
            events,
            done: BTreeMap::new(),
            latest: BTreeMap::new(),
        };
        for event in parsed.events {
            if let Event::Graph(graph) = event {
                store.note(*graph);
            }
        }
        Ok(store)
    }

    fn note(&mut self, graph: GraphEvent) {
        let place = (graph.sample.clone(), graph.evaluation.judged.graph.clone());
        self.latest.insert(place, graph.key.clone());
        self.done.insert(graph.key.clone(), graph);
    }

    /// Whether this is the result that a report would show for its graph.
    pub fn is_latest(&self, graph: &GraphEvent) -> bool {
        let place = (graph.sample.clone(), graph.evaluation.judged.graph.clone());
        self.latest.get(&place) == Some(&graph.key)
    }

    /// What is already known for this key.
    pub fn known(&self, key: &str) -> Option<&GraphEvent> {
        self.done.get(key)
    }

    /// Adds an event; when this returns, it is on disk. A line that could not be written whole is taken back.
    pub fn append(&mut self, event: &Event) -> Result<(), RunError> {
        let path = self.folder.join(EVENTS);
        let mut line = serde_json::to_vec(event)
            .map_err(|error| io(&path)(std::io::Error::other(error.to_string())))?;
        line.push(b'\n');
        let before = self.events.metadata().map_err(io(&path))?.len();
        if let Err(error) = self.events.write_all(&line).and_then(|()| self.events.sync_data()) {
            // If even this fails the torn line is cut off when the run is opened again.
            let _ = self.events.set_len(before);
            return Err(io(&path)(error));
        }
        if let Event::Graph(graph) = event {
            self.note((**graph).clone());
        }
        Ok(())
    }

    /// Keeps a text under its digest, and gives the digest.
    pub fn keep(&self, text: &[u8]) -> Result<String, RunError> {
        let digest = blake3::hash(text).to_hex().to_string();
        let folder = self.folder.join(OBJECTS).join(&digest[..2]);
        let path = folder.join(&digest[2..]);
        if path.exists() {
            return Ok(digest);
        }
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
        // Written under another name first: a file under its digest is always whole.
        let partial = folder.join(format!("{}.{}", &digest[2..], std::process::id()));
        let written = File::create(&partial)
            .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_data()))
            .and_then(|()| std::fs::rename(&partial, &path));
        if let Err(error) = written {
            let _ = std::fs::remove_file(&partial);
            return Err(io(&path)(error));
        }
        Ok(digest)
    }
}

/// All events of a run, for reports. A torn last line is left out.
pub fn read(folder: &Path) -> Result<Vec<Event>, RunError> {
    let path = folder.join(EVENTS);
    let mut file = File::open(&path).map_err(io(&path))?;
    Ok(parse(&path, &mut file)?.events)
}

/// Whether a folder holds a run.
pub fn is_run(folder: &Path) -> bool {
    folder.join(EVENTS).is_file()
}

/// A kept text. `None` where the digest is none (it comes from a file, and names a path), the object is missing, is
/// larger than `limit` or is not what its digest says.
pub fn read_object(folder: &Path, digest: &str, limit: u64) -> Option<Vec<u8>> {
    let is_digest = digest.len() == 2 * blake3::OUT_LEN
        && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_digest {
        return None;
    }
    let file = File::open(folder.join(OBJECTS).join(&digest[..2]).join(&digest[2..])).ok()?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    let is_whole = bytes.len() as u64 <= limit && *blake3::hash(&bytes).to_hex() == *digest;
    is_whole.then_some(bytes)
}

struct Parsed {
    events: Vec<Event>,
    /// Length of the lines that are whole.
    whole_bytes: u64,
    torn: bool,
}

fn parse(path: &Path, file: &mut File) -> Result<Parsed, RunError> {
    let metadata = file.metadata().map_err(io(path))?;
    // A device or a pipe may have no end.
    if !metadata.is_file() {
        return Err(io(path)(std::io::Error::other("not a regular file")));
    }
    if metadata.len() > MAX_EVENTS_BYTES {
        return Err(io(path)(std::io::Error::other("the run is too large")));
    }
    file.seek(SeekFrom::Start(0)).map_err(io(path))?;
    let mut bytes = Vec::new();
    file.take(MAX_EVENTS_BYTES).read_to_end(&mut bytes).map_err(io(path))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut events = Vec::new();
    for (index, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let event: Event = serde_json::from_slice(line).map_err(|error| RunError::Damaged {
            path: path.to_path_buf(),
            line: index + 1,
            message: error.to_string(),
        })?;
        if let Event::Start(start) = &event
            && start.format != FORMAT
        {
            return Err(RunError::Format { path: path.to_path_buf(), found: start.format });
        }
        events.push(event);
    }
    Ok(Parsed { events, whole_bytes: whole as u64, torn: whole < bytes.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_read_back_and_a_torn_line_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = RunStore::open(folder.path()).unwrap();
        store.append(&Event::End { graphs: 1 }).unwrap();
        store.append(&Event::End { graphs: 2 }).unwrap();
        drop(store);
        let path = folder.path().join(EVENTS);
        let whole = std::fs::read(&path).unwrap();
        for cut in [1, 5, whole.len() / 2 + 3] {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let events = read(folder.path()).unwrap();
            assert_eq!(events, [Event::End { graphs: 1 }][..events.len()]);
            let mut store = RunStore::open(folder.path()).unwrap();
            store.append(&Event::End { graphs: 3 }).unwrap();
            drop(store);
            assert_eq!(read(folder.path()).unwrap().last(), Some(&Event::End { graphs: 3 }));
        }
    }

    #[test]
    fn two_writers_are_refused_and_readers_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::open(folder.path()).unwrap();
        assert!(matches!(RunStore::open(folder.path()), Err(RunError::InUse(_))));
        assert_eq!(read(folder.path()).unwrap(), []);
        drop(store);
        assert!(RunStore::open(folder.path()).is_ok());
    }

    #[test]
    fn damage_in_the_middle_is_named_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(EVENTS);
        std::fs::write(&path, "{\"event\":\"end\",\"graphs\":1}\n!!\n").unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(matches!(error, RunError::Damaged { line: 2, .. }), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = RunStore::open(folder.path()).unwrap();
        store.append(&Event::End { graphs: 1 }).unwrap();
        store.events = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let error = store.append(&Event::End { graphs: 2 }).unwrap_err().to_string();
        assert!(error.contains(EVENTS) && error.contains("No space left"), "{error}");
        assert_eq!(read(folder.path()).unwrap(), [Event::End { graphs: 1 }]);
    }

    #[test]
    fn objects_lie_under_their_digest() {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::open(folder.path()).unwrap();
        let digest = store.keep(b"text").unwrap();
        assert_eq!(store.keep(b"text").unwrap(), digest);
        let path = folder.path().join(OBJECTS).join(&digest[..2]).join(&digest[2..]);
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        assert_eq!(read_object(folder.path(), &digest, 4).as_deref(), Some(&b"text"[..]));
        assert_eq!(read_object(folder.path(), &digest, 3), None, "too large");
        assert_eq!(read_object(folder.path(), &"0".repeat(64), 4), None, "not there");
        let outside = format!("../../{}", "x".repeat(58));
        assert_eq!(read_object(folder.path(), &outside, 4), None, "no digest");
        std::fs::write(&path, b"tex_").unwrap();
        assert_eq!(read_object(folder.path(), &digest, 4), None, "damaged");
    }
}
