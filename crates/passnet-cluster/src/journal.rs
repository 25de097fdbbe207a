//! What a run over a cluster remembers of its units: `cluster.jsonl` in its folder.
//!
//! A unit is written down when its result is on the disk. A driver that is killed and started again finds what is done
//! here, by the unit's name and the digest of its input, and repeats none of it; the result that was on its way when it
//! died is made again, and stored once.

use passnet_bench::event_log::{EventLog, LogError, LoggedEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

const FORMAT: u32 = 1;
const FILE: &str = "cluster.jsonl";

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum JournalEvent {
    /// What results of this run have in common; one of another command or class does not go on with it.
    Start { format: u32, command: String, class: String },
    /// A unit is done, and its result is on the disk.
    Unit {
        unit: String,
        input: String,
        node: String,
        seconds: f64,
        /// Between the unit before and this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited: Option<f64>,
        /// What the worker said, where the command needs it later.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        words: Value,
    },
    /// Not tried again by this command; the next one tries it.
    Aside { unit: String, reasons: Vec<String> },
    /// A node came, left, or was set aside.
    Node { node: String, what: String, reason: String },
}

impl LoggedEvent for JournalEvent {
    const NAME: &'static str = "journal of a cluster";
    const FORMAT: u32 = FORMAT;

    fn format(&self) -> Option<u32> {
        match self {
            JournalEvent::Start { format, .. } => Some(*format),
            _ => None,
        }
    }

    fn is_worth_a_sync(&self) -> bool {
        true
    }
}

/// The journal of a run.
#[derive(Debug)]
pub struct Journal {
    log: EventLog<JournalEvent>,
    /// Of names and inputs; sixteen bytes for each unit are all that is kept of it.
    done: HashSet<[u8; 16]>,
    begun: Option<(String, String)>,
    words: BTreeMap<String, Value>,
    waiting: Vec<JournalEvent>,
}

impl Journal {
    /// Opens the journal of a run's folder, or begins one.
    pub fn open(folder: &Path) -> Result<Journal, LogError> {
        let (mut done, mut begun, mut said) = (HashSet::new(), None, BTreeMap::new());
        let log = EventLog::open_with(&folder.join(FILE), |event| match event {
            JournalEvent::Start { command, class, .. } => begun = Some((command, class)),
            JournalEvent::Unit { unit, input, words, .. } => {
                done.insert(key(&unit, &input));
                if !words.is_null() {
                    said.insert(unit, words);
                }
            }
            JournalEvent::Aside { .. } | JournalEvent::Node { .. } => {}
        })?;
        Ok(Journal { log, done, begun, words: said, waiting: Vec::new() })
    }

    /// The class of the results that are there, where there are any.
    pub fn class(&self) -> Option<&str> {
        self.begun.as_ref().map(|(_, class)| &**class)
    }

    /// Says what all results have in common, or refuses to mix: the error names both sides.
    pub fn begin(&mut self, command: &str, class: &str) -> Result<Result<(), String>, LogError> {
        match &self.begun {
            Some((before, _)) if before != command => {
                return Ok(Err(format!("the run is of `{before}`, not of `{command}`")));
            }
            Some((_, before)) if before != class => {
                return Ok(Err(format!("the run is of `{before}`, and this is `{class}`")));
            }
            Some(_) => return Ok(Ok(())),
            None => {}
        }
        let (command, class) = (command.to_string(), class.to_string());
        self.begun = Some((command.clone(), class.clone()));
        self.log.append(&JournalEvent::Start { format: FORMAT, command, class })?;
        Ok(Ok(()))
    }

    /// Whether this unit is done with this very input.
    pub fn is_done(&self, unit: &str, input: &str) -> bool {
        self.done.contains(&key(unit, input))
    }

    /// How many units are done.
    pub fn count(&self) -> usize {
        self.done.len()
    }

    /// What workers said of units, by name, where they said anything.
    pub fn into_words(self) -> BTreeMap<String, Value> {
        self.words
    }

    /// To be written with the next [`commit`](Self::commit).
    pub fn note(&mut self, event: JournalEvent) {
        self.waiting.push(event);
    }

    /// When this returns, all that was noted is on the disk.
    pub fn commit(&mut self) -> Result<(), LogError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.log.append_all(&self.waiting)?;
        for event in self.waiting.drain(..) {
            if let JournalEvent::Unit { unit, input, words, .. } = event {
                self.done.insert(key(&unit, &input));
                if !words.is_null() {
                    self.words.insert(unit, words);
                }
            }
        }
        Ok(())
    }
}

fn key(unit: &str, input: &str) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(unit.len() as u64).to_le_bytes());
    hasher.update(unit.as_bytes());
    hasher.update(input.as_bytes());
    let mut key = [0; 16];
    key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str) -> JournalEvent {
        let (unit, input, node) = (name.into(), "digest".into(), "a".into());
        JournalEvent::Unit { unit, input, node, seconds: 1.0, waited: None, words: Value::Null }
    }

    #[test]
    fn what_was_committed_is_known_after_a_kill_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.begin("bench", "native on a laptop").unwrap(), Ok(()));
        journal.note(unit("one"));
        journal.commit().unwrap();
        journal.note(unit("two"));
        drop(journal);
        let mut journal = Journal::open(folder.path()).unwrap();
        assert!(journal.is_done("one", "digest") && journal.count() == 1);
        assert!(!journal.is_done("two", "digest"));
        assert!(!journal.is_done("one", "another input"));
        assert_eq!(journal.begin("bench", "native on a laptop").unwrap(), Ok(()));
        let refused = journal.begin("bench", "a GPU").unwrap().unwrap_err();
        assert_eq!(refused, "the run is of `native on a laptop`, and this is `a GPU`");
        assert!(journal.begin("solve", "a GPU").unwrap().is_err());
    }
}
