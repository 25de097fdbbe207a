//! The file of a trajectory.

use super::{Event, FORMAT};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// One line may not be longer: it is read into memory.
const MAX_LINE_BYTES: u64 = 64 << 20;
const MAX_FILE_BYTES: u64 = 4 << 30;

/// Why a trajectory could not be used.
#[derive(Debug)]
pub enum TrajectoryError {
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
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

impl fmt::Display for TrajectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrajectoryError::Io { path, error } => write!(f, "{}: {error}", path.display()),
            TrajectoryError::Damaged { path, line, message } => {
                write!(f, "{}:{line}:1: not an event of a trajectory: {message}", path.display())
            }
            TrajectoryError::Format { path, found } => write!(
                f,
                "{}: format {found}, but this version reads format {FORMAT}",
                path.display()
            ),
        }
    }
}

impl std::error::Error for TrajectoryError {}

fn io(path: &Path) -> impl Fn(std::io::Error) -> TrajectoryError + '_ {
    |error| TrajectoryError::Io { path: path.to_path_buf(), error }
}

/// A trajectory being written.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens a trajectory to go on with, and gives what is in it. A torn last line is cut off.
    pub fn open(path: &Path) -> Result<(Log, Vec<Event>), TrajectoryError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io(folder))?;
        }
        let file = OpenOptions::new().create(true).read(true).append(true).open(path);
        let file = file.map_err(io(path))?;
        let (events, whole_bytes) = parse(path, &file)?;
        if file.metadata().map_err(io(path))?.len() > whole_bytes {
            file.set_len(whole_bytes).map_err(io(path))?;
        }
        Ok((Log { path: path.to_path_buf(), file }, events))
    }

    /// Adds an event; when this returns, the operating system has it, and the death of this process loses nothing.
    /// The end of an attempt and a new best version are also pressed onto the disk.
    pub fn append(&mut self, event: &Event) -> Result<(), TrajectoryError> {
        let mut line = serde_json::to_vec(event)
            .map_err(|error| io(&self.path)(std::io::Error::other(error.to_string())))?;
        line.push(b'\n');
        let before = self.file.metadata().map_err(io(&self.path))?.len();
        let written = self.file.write_all(&line).and_then(|()| match event {
            Event::Best(_) | Event::End(_) => self.file.sync_data(),
            _ => Ok(()),
        });
        written.map_err(|error| {
            // If even this fails the torn line is cut off when the attempt goes on.
            let _ = self.file.set_len(before);
            io(&self.path)(error)
        })
    }
}

/// All events of a trajectory. A torn last line is left out.
pub fn read(path: &Path) -> Result<Vec<Event>, TrajectoryError> {
    let file = File::open(path).map_err(io(path))?;
    Ok(parse(path, &file)?.0)
}

/// The events, and the length of the lines that are whole.
fn parse(path: &Path, file: &File) -> Result<(Vec<Event>, u64), TrajectoryError> {
    let metadata = file.metadata().map_err(io(path))?;
    if !metadata.is_file() {
        return Err(io(path)(std::io::Error::other("not a regular file")));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(io(path)(std::io::Error::other("the trajectory is too large")));
    }
    let mut reader = BufReader::new(file);
    let (mut events, mut whole) = (Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let read = read.map_err(io(path))? as u64;
        if line.last() != Some(&b'\n') {
            return match read == MAX_LINE_BYTES {
                true => Err(io(path)(std::io::Error::other("a line without end"))),
                false => Ok((events, whole)),
            };
        }
        whole += read;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let event: Event = serde_json::from_slice(&line).map_err(|error| {
            let line = events.len() + 1;
            TrajectoryError::Damaged { path: path.to_path_buf(), line, message: error.to_string() }
        })?;
        if let Event::Start(start) = &event
            && start.format != FORMAT
        {
            return Err(TrajectoryError::Format { path: path.to_path_buf(), found: start.format });
        }
        events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Message;

    fn message(text: &str) -> Event {
        Event::Message { message: Message::User { content: text.into() } }
    }

    #[test]
    fn a_torn_line_is_cut_off_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/trajectory.jsonl");
        let (mut log, past) = Log::open(&path).unwrap();
        assert_eq!(past, []);
        log.append(&message("one")).unwrap();
        log.append(&message("two")).unwrap();
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..whole.len() {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (mut log, past) = Log::open(&path).unwrap();
            assert_eq!(past, [message("one"), message("two")][..past.len()]);
            log.append(&message("three")).unwrap();
            drop(log);
            assert_eq!(read(&path).unwrap().last(), Some(&message("three")));
        }
    }

    #[test]
    fn damage_in_the_middle_and_other_formats_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, "!!\n{}\n").unwrap();
        assert!(matches!(read(&path), Err(TrajectoryError::Damaged { line: 1, .. })));
        assert!(matches!(read(folder.path()), Err(TrajectoryError::Io { .. })));
    }
}
