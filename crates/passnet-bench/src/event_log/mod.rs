//! Files of events, one JSON object a line, that only ever grow.
//!
//! A killed process loses at most the line it was writing: opening the file again cuts a torn last line off.
//!
//! Lines may be sealed: each then begins with a digest of all before it and of itself, so that a line that is changed,
//! taken out or put in is noticed, and named. A seal is no signature: whoever rewrites a whole file can seal it again.

mod seal;

pub use seal::{BROKEN, Seal};

use seal::Chain;
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

    /// Whether lines carry seals.
    const IS_SEALED: bool = false;

    /// Whether the event must survive the machine, not only this process.
    fn is_worth_a_sync(&self) -> bool;
}

/// Why a file of events could not be used.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
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
    /// What is in it is not what was written.
    Broken {
        path: PathBuf,
        name: &'static str,
        line: usize,
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
            LogError::Broken { path, name, line } => {
                write!(f, "{}:{line}:1: this {name} was changed: {BROKEN}", path.display())
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

impl LogError {
    /// Whether there is no room left on the disk: nobody's fault who is under test.
    pub fn is_full_disk(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, LogError::Io { error, .. } if matches!(error.kind(), StorageFull | QuotaExceeded))
    }
}

/// The error of an operation on a path.
pub fn io(path: &Path) -> impl Fn(std::io::Error) -> LogError + '_ {
    |error| LogError::Io { path: path.to_path_buf(), error }
}

/// A file of events that is being written, by this process alone.
#[derive(Debug)]
pub struct EventLog<E> {
    path: PathBuf,
    file: File,
    chain: Chain,
    is_durable: bool,
    events: PhantomData<fn(&E)>,
}

impl<E: LoggedEvent> EventLog<E> {
    /// Opens a file to go on with, or begins a new one, and gives what is in it.
    pub fn open(path: &Path) -> Result<(EventLog<E>, Vec<E>), LogError> {
        let mut events = Vec::new();
        let log = EventLog::open_with(path, |event| events.push(event))?;
        Ok((log, events))
    }

    /// As [`open`](Self::open); what is in it is shown one by one, and not kept.
    pub fn open_with(path: &Path, mut see: impl FnMut(E)) -> Result<EventLog<E>, LogError> {
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
        let Parsed { whole_bytes, chain } = parse(path, &file, |_, event| see(event))?;
        if let Some(&line) = chain.seal.broken.first()
            && E::IS_SEALED
        {
            return Err(LogError::Broken { path: path.to_path_buf(), name: E::NAME, line });
        }
        if file.metadata().map_err(io(path))?.len() > whole_bytes {
            file.set_len(whole_bytes).map_err(io(path))?;
        }
        file.seek(SeekFrom::End(0)).map_err(io(path))?;
        let path = path.to_path_buf();
        Ok(EventLog { path, file, chain, is_durable: true, events: PhantomData })
    }

    /// From here on nothing waits for the disk: for a file that is of no use after the death of its machine.
    pub fn without_waits(&mut self) {
        self.is_durable = false;
    }

    /// Adds an event; when this returns, the death of this process no longer loses it. A line that could not be written
    /// whole is taken back.
    pub fn append(&mut self, event: &E) -> Result<(), LogError> {
        self.append_all(std::slice::from_ref(event))
    }

    /// As [`append`](Self::append), all of them or none: one wait for the disk, however many there are.
    pub fn append_all(&mut self, events: &[E]) -> Result<(), LogError> {
        let mut chain = self.chain.clone();
        let mut lines = Vec::new();
        for event in events {
            let mut line = serde_json::to_vec(event)
                .map_err(|error| io(&self.path)(std::io::Error::other(error.to_string())))?;
            if E::IS_SEALED {
                line = chain.append(&line);
            }
            lines.extend(line);
            lines.push(b'\n');
        }
        let before = self.file.metadata().map_err(io(&self.path))?.len();
        let is_synced = self.is_durable && events.iter().any(LoggedEvent::is_worth_a_sync);
        let written = self.file.write_all(&lines).and_then(|()| match is_synced {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        written.map_err(|error| {
            // If even this fails the torn line is cut off when the file is opened again.
            let _ = self.file.set_len(before);
            io(&self.path)(error)
        })?;
        self.chain = chain;
        Ok(())
    }
}

/// All events of a file. A torn last line is left out.
pub fn read<E: LoggedEvent>(path: &Path) -> Result<Vec<E>, LogError> {
    Ok(read_sealed(path)?.0.into_iter().map(|(_, event)| event).collect())
}

/// As [`read`], with the numbers of lines, and whether they hold together.
pub fn read_sealed<E: LoggedEvent>(path: &Path) -> Result<(Vec<(usize, E)>, Seal), LogError> {
    let file = File::open(path).map_err(io(path))?;
    let mut events = Vec::new();
    let parsed = parse(path, &file, |line, event| events.push((line, event)))?;
    Ok((events, parsed.chain.seal))
}

/// What is in a file.
struct Parsed {
    /// Length of the lines that are whole.
    whole_bytes: u64,
    chain: Chain,
}

/// Reads a file, and shows its events with the numbers of their lines.
fn parse<E: LoggedEvent>(
    path: &Path,
    file: &File,
    mut see: impl FnMut(usize, E),
) -> Result<Parsed, LogError> {
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
    let mut parsed = Parsed { whole_bytes: 0, chain: Chain::default() };
    let mut line_number = 0;
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let read = read.map_err(io(path))? as u64;
        if line.last() != Some(&b'\n') {
            return match read == MAX_LINE_BYTES {
                true => Err(refused("a line without end")),
                false => Ok(parsed),
            };
        }
        parsed.whole_bytes += read;
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
            _ => see(line_number, event),
        }
        if E::IS_SEALED {
            parsed.chain.read(line_number, line.strip_suffix(b"\n").unwrap_or(&line));
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

    /// As [`Count`], sealed.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Sealed {
        count: u32,
    }

    impl LoggedEvent for Sealed {
        const NAME: &'static str = "count";
        const FORMAT: u32 = 7;
        const IS_SEALED: bool = true;

        fn format(&self) -> Option<u32> {
            None
        }

        fn is_worth_a_sync(&self) -> bool {
            false
        }
    }

    /// The text of a sealed file of five lines.
    fn sealed_text(path: &Path) -> String {
        let (mut log, _) = EventLog::open(path).unwrap();
        (0..3).for_each(|count| log.append(&Sealed { count }).unwrap());
        drop(log);
        // One that was stopped and goes on is one chain.
        let (mut log, past) = EventLog::open(path).unwrap();
        assert_eq!(past.len(), 3);
        (3..5).for_each(|count| log.append(&Sealed { count }).unwrap());
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn whatever_is_done_to_a_sealed_line_is_noticed_at_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.jsonl");
        let text = sealed_text(&path);
        let (events, seal) = read_sealed::<Sealed>(&path).unwrap();
        assert_eq!(
            events.iter().map(|(line, e)| (*line, e.count)).collect::<Vec<_>>(),
            [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
        );
        assert!(seal.is_whole() && seal.state() == "sealed" && seal.sealed == 5, "{seal:?}");
        let lines: Vec<&str> = text.lines().collect();
        let broken = |lines: Vec<String>| {
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            let (_, seal) = read_sealed::<Sealed>(&path).unwrap();
            if let Some(&first) = seal.broken.first() {
                let error = EventLog::<Sealed>::open(&path).unwrap_err();
                assert!(matches!(error, LogError::Broken { line, .. } if line == first), "{error}");
            }
            seal.broken
        };
        let all = || lines.iter().map(ToString::to_string).collect::<Vec<String>>();
        for place in 0..5 {
            let mut edited = all();
            edited[place] = edited[place].replace("\"count\":", "\"count\":1");
            assert_eq!(broken(edited), [place + 1], "edited");
            let mut shorter = all();
            shorter.remove(place);
            // A file that ends earlier is one that was stopped earlier.
            let expected = if place == 4 { vec![] } else { vec![place + 1] };
            assert_eq!(broken(shorter), expected, "taken out");
            let mut longer = all();
            longer.insert(place, lines[place].to_string());
            assert_eq!(broken(longer), [place + 2], "put in twice");
            let mut bare = all();
            bare[place] = format!("{{\"count\":{place}}}");
            let expected = match place {
                // Taken for a line from before seals, and called so.
                0 => vec![],
                _ => vec![place + 1],
            };
            assert_eq!(broken(bare), expected, "without its seal");
        }
        let mut swapped = all();
        swapped.swap(1, 2);
        assert_eq!(broken(swapped), [2, 3, 4]);
    }

    #[test]
    fn a_file_from_before_seals_goes_on_sealed_and_pins_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.jsonl");
        std::fs::write(&path, "{\"count\":1}\n{\"count\":2}\n").unwrap();
        let (_, seal) = read_sealed::<Sealed>(&path).unwrap();
        assert_eq!((seal.state(), seal.unsealed), ("unsealed", 2));
        let (mut log, _) = EventLog::open(&path).unwrap();
        log.append(&Sealed { count: 3 }).unwrap();
        drop(log);
        let (_, seal) = read_sealed::<Sealed>(&path).unwrap();
        assert_eq!((seal.state(), seal.unsealed, seal.sealed), ("unsealed", 2, 1));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"count\":1", "\"count\":7")).unwrap();
        assert_eq!(read_sealed::<Sealed>(&path).unwrap().1.broken, [3]);
    }

    #[test]
    fn a_torn_sealed_line_is_cut_off_and_the_chain_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.jsonl");
        let whole = sealed_text(&path);
        for cut in 1..=whole.lines().last().unwrap().len() {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (mut log, past) = EventLog::open(&path).unwrap();
            assert_eq!(past.len(), 4);
            log.append(&Sealed { count: 9 }).unwrap();
            drop(log);
            let (events, seal) = read_sealed::<Sealed>(&path).unwrap();
            assert!(seal.is_whole() && events.len() == 5, "{seal:?}");
        }
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
        let error = log.append(&count(2)).unwrap_err();
        assert!(error.is_full_disk());
        let error = error.to_string();
        assert!(error.contains("counts.jsonl") && error.contains("No space left"), "{error}");
        assert_eq!(read::<Count>(&path).unwrap(), [count(1)]);
    }
}
