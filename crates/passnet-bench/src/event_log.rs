//! Files of events, one JSON object a line, that only ever grow.
//!
//! A killed process loses at most the line it was writing: opening the file again cuts a torn last line off.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// One line may not be longer: it is read into memory.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// A larger file is refused rather than read into memory.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// What such a file holds.
pub trait LoggedEvent: Serialize + DeserializeOwned {
    /// What a file of these is, in messages.
    const NAME: &'static str;
    /// The format that this version reads and writes.
    const FORMAT: u32;

    /// The format that the event says the file has, if it says so.
    fn format(&self) -> Option<u32>;

    /// Whether the event must survive the machine, not only this process.
    fn is_worth_a_sync(&self) -> bool;
}

/// Why a file of events could not be used.
#[derive(Debug)]
pub enum LogError {
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    /// Another process writes it.
    InUse {
        path: PathBuf,
        name: &'static str,
    },
    /// A line that is no event, other than a torn last one.
    Damaged {
        path: PathBuf,
        name: &'static str,
        line: usize,
        message: String,
    },
    /// Written by another version of this program.
    Format {
        path: PathBuf,
        found: u32,
        reads: u32,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io { path, error } => write!(f, "{}: {error}", path.display()),
            LogError::InUse { path, name } => {
                write!(f, "{}: another process is writing this {name}", path.display())
            }
            LogError::Damaged { path, name, line, message } => {
                write!(f, "{}:{line}:1: not an event of a {name}: {message}", path.display())
            }
            LogError::Format { path, found, reads } => {
                write!(
                    f,
                    "{}: format {found}, but this version reads format {reads}",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for LogError {}

/// The error of an operation on a path.
pub fn io(path: &Path) -> impl Fn(std::io::Error) -> LogError + '_ {
    |error| LogError::Io { path: path.to_path_buf(), error }
}

/// A file of events that is being written, by this process alone.
#[derive(Debug)]
pub struct EventLog<E> {
    path: PathBuf,
    file: File,
    events: PhantomData<fn(&E)>,
}

impl<E: LoggedEvent> EventLog<E> {
    /// Opens a file to go on with, or begins a new one, and gives what is in it.
    pub fn open(path: &Path) -> Result<(EventLog<E>, Vec<E>), LogError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io(folder))?;
        }
        let file = OpenOptions::new().create(true).read(true).append(true).open(path);
        let mut file = file.map_err(io(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LogError::InUse { path: path.to_path_buf(), name: E::NAME });
            }
            Err(TryLockError::Error(error)) => return Err(io(path)(error)),
        }
        let (events, whole_bytes) = parse(path, &file)?;
        if file.metadata().map_err(io(path))?.len() > whole_bytes {
            file.set_len(whole_bytes).map_err(io(path))?;
        }
        file.seek(SeekFrom::End(0)).map_err(io(path))?;
        Ok((EventLog { path: path.to_path_buf(), file, events: PhantomData }, events))
    }

    /// Adds an event; when this returns, the death of this process no longer loses it. A line that could not be written
    /// whole is taken back.
    pub fn append(&mut self, event: &E) -> Result<(), LogError> {
        let mut line = serde_json::to_vec(event)
            .map_err(|error| io(&self.path)(std::io::Error::other(error.to_string())))?;
        line.push(b'\n');
        let before = self.file.metadata().map_err(io(&self.path))?.len();
        let written = self.file.write_all(&line).and_then(|()| match event.is_worth_a_sync() {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        written.map_err(|error| {
            // If even this fails the torn line is cut off when the file is opened again.
            let _ = self.file.set_len(before);
            io(&self.path)(error)
        })
    }
}

/// All events of a file. A torn last line is left out.
pub fn read<E: LoggedEvent>(path: &Path) -> Result<Vec<E>, LogError> {
    let file = File::open(path).map_err(io(path))?;
    Ok(parse(path, &file)?.0)
}

/// The events, and the length of the lines that are whole.
fn parse<E: LoggedEvent>(path: &Path, file: &File) -> Result<(Vec<E>, u64), LogError> {
    let refused = |message: &'static str| io(path)(std::io::Error::other(message));
    let metadata = file.metadata().map_err(io(path))?;
    // A device or a pipe may have no end.
    if !metadata.is_file() {
        return Err(refused("not a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(refused("the file is too large"));
    }
    let mut reader = BufReader::new(file);
    let (mut events, mut whole_bytes, mut line_number) = (Vec::new(), 0, 0);
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let read = read.map_err(io(path))? as u64;
        if line.last() != Some(&b'\n') {
            return match read == MAX_LINE_BYTES {
                true => Err(refused("a line without end")),
                false => Ok((events, whole_bytes)),
            };
        }
        whole_bytes += read;
        line_number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let event: E = serde_json::from_slice(&line).map_err(|error| LogError::Damaged {
            path: path.to_path_buf(),
            name: E::NAME,
            line: line_number,
            message: error.to_string(),
        })?;
        match event.format() {
            Some(found) if found != E::FORMAT => {
                let reads = E::FORMAT;
                return Err(LogError::Format { path: path.to_path_buf(), found, reads });
            }
            _ => events.push(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Count {
        count: u32,
        #[serde(default)]
        format: Option<u32>,
    }

    impl LoggedEvent for Count {
        const NAME: &'static str = "count";
        const FORMAT: u32 = 7;

        fn format(&self) -> Option<u32> {
            self.format
        }

        fn is_worth_a_sync(&self) -> bool {
            self.count.is_multiple_of(2)
        }
    }

    fn count(count: u32) -> Count {
        Count { count, format: None }
    }

    #[test]
    fn a_torn_line_is_cut_off_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/counts.jsonl");
        let (mut log, past) = EventLog::open(&path).unwrap();
        assert_eq!(past, []);
        log.append(&count(1)).unwrap();
        log.append(&count(2)).unwrap();
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..whole.len() {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (mut log, past) = EventLog::open(&path).unwrap();
            assert_eq!(past, [count(1), count(2)][..past.len()]);
            log.append(&count(3)).unwrap();
            drop(log);
            assert_eq!(read::<Count>(&path).unwrap().last(), Some(&count(3)));
        }
    }

    #[test]
    fn damage_and_other_formats_are_named_by_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.jsonl");
        std::fs::write(&path, "{\"count\":1}\n\n!!\n").unwrap();
        let error = read::<Count>(&path).unwrap_err();
        assert!(matches!(error, LogError::Damaged { line: 3, .. }), "{error}");
        std::fs::write(&path, "{\"count\":1,\"format\":8}\n").unwrap();
        let error = read::<Count>(&path).unwrap_err().to_string();
        assert!(error.ends_with("format 8, but this version reads format 7"), "{error}");
        assert!(matches!(read::<Count>(folder.path()), Err(LogError::Io { .. })));
    }

    #[test]
    fn two_writers_are_refused_and_readers_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.jsonl");
        let first = EventLog::<Count>::open(&path).unwrap();
        assert!(matches!(EventLog::<Count>::open(&path), Err(LogError::InUse { .. })));
        assert_eq!(read::<Count>(&path).unwrap(), []);
        drop(first);
        assert!(EventLog::<Count>::open(&path).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.jsonl");
        let (mut log, _) = EventLog::open(&path).unwrap();
        log.append(&count(1)).unwrap();
        log.file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let error = log.append(&count(2)).unwrap_err().to_string();
        assert!(error.contains("counts.jsonl") && error.contains("No space left"), "{error}");
        assert_eq!(read::<Count>(&path).unwrap(), [count(1)]);
    }
}
