//! The folder of a run.
//!
//! ```text
//! settings.json                      what `agent resume` needs
//! attempts/TASK/N/trajectory.jsonl   the record of an attempt
//! attempts/TASK/N/best/              its best version, a pass folder
//! attempts/TASK/N/best.json          what PassBench found about it
//! best/                              a PassBench run: the best attempt of each task
//! ```

use super::{RunError, io};
use crate::episode::Episode;
use passnet_bench::run::{Event, GraphEvent};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

const SETTINGS: &str = "settings.json";
const ATTEMPTS: &str = "attempts";
const LOCK: &str = "lock";
const BEST: &str = "best";
/// What PassBench found about the best version of an attempt.
pub(super) const BEST_EVENTS: &str = "best.json";

/// A run's folder, held by one process.
#[derive(Debug)]
pub struct RunFolder {
    root: PathBuf,
    _lock: Option<File>,
}

/// Whether a folder holds a run of an agent.
pub fn is_agent_run(folder: &Path) -> bool {
    folder.join(SETTINGS).is_file() && folder.join(ATTEMPTS).is_dir()
}

impl RunFolder {
    /// For writing; nobody else may write meanwhile.
    pub fn open(root: &Path) -> Result<RunFolder, RunError> {
        let attempts = root.join(ATTEMPTS);
        std::fs::create_dir_all(&attempts).map_err(io(&attempts))?;
        let path = root.join(LOCK);
        let lock = OpenOptions::new().create(true).append(true).open(&path).map_err(io(&path))?;
        match lock.try_lock() {
            Ok(()) => Ok(RunFolder { root: root.to_path_buf(), _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(RunError::InUse(root.to_path_buf())),
            Err(TryLockError::Error(error)) => Err(io(&path)(error)),
        }
    }

    /// For reading, also while somebody writes.
    pub fn reader(root: &Path) -> RunFolder {
        RunFolder { root: root.to_path_buf(), _lock: None }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn settings(&self) -> PathBuf {
        self.root.join(SETTINGS)
    }

    /// The PassBench run of the best attempts.
    pub fn best_run(&self) -> PathBuf {
        self.root.join(BEST)
    }

    /// Whether the last command on it made all attempts that it was asked for.
    pub fn is_complete(&self) -> bool {
        let events = passnet_bench::run::read(&self.best_run()).unwrap_or_default();
        matches!(events.last(), Some(Event::End { .. }))
    }

    pub(crate) fn attempts(&self) -> PathBuf {
        self.root.join(ATTEMPTS)
    }

    /// The folder of one attempt, counted from 0.
    pub fn attempt(&self, task: &str, attempt: u32) -> PathBuf {
        self.attempts().join(task).join(attempt.to_string())
    }

    /// The file with its events.
    pub fn trajectory(&self, task: &str, attempt: u32) -> PathBuf {
        self.attempt(task, attempt).join("trajectory.jsonl")
    }

    pub(super) fn best_events(&self, task: &str, attempt: u32) -> PathBuf {
        self.attempt(task, attempt).join(BEST_EVENTS)
    }

    /// Stores the best version of an attempt and what is known about it.
    pub(super) fn keep_best(
        &self,
        task: &str,
        attempt: u32,
        episode: &Episode,
    ) -> Result<(), (PathBuf, std::io::Error)> {
        let Some(best) = episode.best() else { return Ok(()) };
        let folder = self.attempt(task, attempt);
        if let Some(answer) = &best.answer {
            let events: &[GraphEvent] = &answer.events;
            let path = self.best_events(task, attempt);
            let json = serde_json::to_vec(events).map_err(std::io::Error::from);
            json.and_then(|json| write_whole(&path, &json)).map_err(|error| (path, error))?;
        }
        let (fresh, place) = (folder.join("best.partial"), folder.join(BEST));
        let replaced = remove(&fresh)
            .and_then(|()| std::fs::create_dir_all(&fresh))
            .and_then(|()| {
                best.files
                    .iter()
                    .try_for_each(|(name, text)| std::fs::write(fresh.join(name), text))
            })
            .and_then(|()| remove(&place))
            .and_then(|()| std::fs::rename(&fresh, &place));
        replaced.map_err(|error| (place, error))
    }
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whole or not at all: a reader never finds half a file.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut partial = path.as_os_str().to_os_string();
    partial.push(".partial");
    let partial = Path::new(&partial);
    std::fs::write(partial, bytes)?;
    std::fs::rename(partial, path)
}
