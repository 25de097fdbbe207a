//! The folder on disk.

use super::{Event, GraphEvent, GraphId};
use crate::event_log::{self, EventLog, LogError, Seal, io};
use crate::verdict::VerdictKind;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

pub(super) const EVENTS: &str = "events.jsonl";
const OBJECTS: &str = "objects";

/// A run that is being written.
#[derive(Debug)]
pub struct RunStore {
    folder: PathBuf,
    events: EventLog<Event>,
    is_durable: bool,
    done: BTreeMap<String, GraphEvent>,
    /// The key of the last result of each graph: what a report shows.
    latest: BTreeMap<GraphId, String>,
}

impl RunStore {
    /// Opens a run to go on with, or begins a new one.
    pub fn open(folder: &Path) -> Result<RunStore, LogError> {
        let (events, past) = EventLog::open(&folder.join(EVENTS))?;
        let mut store = RunStore {
            folder: folder.to_path_buf(),
            events,
            is_durable: true,
            done: BTreeMap::new(),
            latest: BTreeMap::new(),
        };
        for event in past {
            if let Event::Graph(graph) = event {
                store.note(*graph);
            }
        }
        Ok(store)
    }

    /// Begins a run that is sent elsewhere when it is done. Nothing of it is needed after the death of this machine, so
    /// nothing waits for the disk.
    pub fn scratch(folder: &Path) -> Result<RunStore, LogError> {
        let mut store = RunStore::open(folder)?;
        store.is_durable = false;
        store.events.without_waits();
        Ok(store)
    }

    fn note(&mut self, graph: GraphEvent) {
        self.latest.insert(graph.id(), graph.key.clone());
        self.done.insert(graph.key.clone(), graph);
    }

    /// Whether this is the result that a report would show for its graph.
    pub fn is_latest(&self, graph: &GraphEvent) -> bool {
        self.latest.get(&graph.id()) == Some(&graph.key)
    }

    /// From here on only results that are right are known: the others are to be found again.
    pub fn forget_failures(&mut self) {
        let is_right = |kind: VerdictKind| kind == VerdictKind::Correct;
        self.done.retain(|_, graph| is_right(graph.evaluation.judged.verdict.kind));
        self.latest.retain(|_, key| self.done.contains_key(key));
    }

    /// The result that a report would show for a graph.
    pub fn latest(&self, id: &GraphId) -> Option<&GraphEvent> {
        self.done.get(self.latest.get(id)?)
    }

    /// What is already known for this key.
    pub fn known(&self, key: &str) -> Option<&GraphEvent> {
        self.done.get(key)
    }

    /// Adds an event; when this returns, it is on disk.
    pub fn append(&mut self, event: &Event) -> Result<(), LogError> {
        self.append_all(std::slice::from_ref(event))
    }

    /// Adds events, all or none; when this returns, they are on disk.
    pub fn append_all(&mut self, events: &[Event]) -> Result<(), LogError> {
        self.events.append_all(events)?;
        for event in events {
            if let Event::Graph(graph) = event {
                self.note((**graph).clone());
            }
        }
        Ok(())
    }

    /// Keeps a text under its digest, and gives the digest.
    pub fn keep(&self, text: &[u8]) -> Result<String, LogError> {
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
            .and_then(|mut file| {
                file.write_all(text)?;
                if self.is_durable { file.sync_data() } else { Ok(()) }
            })
            .and_then(|()| std::fs::rename(&partial, &path));
        if let Err(error) = written {
            let _ = std::fs::remove_file(&partial);
            return Err(io(&path)(error));
        }
        Ok(digest)
    }
}

/// All events of a run, for reports. A torn last line is left out.
pub fn read(folder: &Path) -> Result<Vec<Event>, LogError> {
    event_log::read(&folder.join(EVENTS))
}

/// As [`read`], with the numbers of lines, and whether they hold together.
pub fn read_sealed(folder: &Path) -> Result<(Vec<(usize, Event)>, Seal), LogError> {
    event_log::read_sealed(&folder.join(EVENTS))
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

#[cfg(test)]
mod tests {
    use super::*;

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
